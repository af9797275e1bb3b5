"""The translator that is trained in both libraries: its sizes, weights and batches, drawn once with NumPy, and its bare matmuls.

It is the plugin `translator`: pre-norm, sinusoidal positions, ReLU, one matrix for both languages and the output, label
smoothing, here without dropout. The twins are in `translator_minigrad.py` and `translator_torch.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..floor import Product, attention, linear
from .gpt import Shape, block_shapes, drawn, norm_shapes

PAD, BOS = 0, 1  # minigrad's, which PyTorch's process does not import


@dataclass(frozen=True)
class Config:
    """Sizes of a translator, with `depth` layers in each half, and of its batches, which have one length on both sides."""

    family: ClassVar[str] = "translator"  # its twins are in translator_minigrad.py and translator_torch.py
    tiny: ClassVar[str] = "tiny-translator"

    depth: int
    dim: int
    heads: int
    hidden: int
    batch: int
    length: int
    vocabulary: int
    smoothing: float = 0.1
    dtype: str = "float32"

    def __str__(self) -> str:
        width = f"d {self.dim}, {self.heads} heads, hidden {self.hidden}"
        batch = f"batch {self.batch} x {self.length} on both sides"
        return f"{self.depth}+{self.depth} layers, {width}, {batch}, vocabulary {self.vocabulary}, {self.dtype}"

    def products(self) -> Iterator[Product]:
        """Every matmul of one step, forward and backward; cross-attention projects its queries and its memory apart."""
        tokens, d = self.batch * self.length, self.dim
        stack = [(2, 3 * d, d), (3, d, d), (1, d, d), (1, 2 * d, d), (2, self.hidden, d), (2, d, self.hidden)]
        for count, columns, inner in stack:
            yield from linear(count * self.depth, tokens, inner, columns)
        yield from linear(1, tokens, d, self.vocabulary)
        yield from attention(3 * self.depth, self.batch * self.heads, self.length, self.length, d // self.heads)


CONFIGS = {
    "tiny-translator": Config(depth=1, dim=16, heads=2, hidden=32, batch=4, length=8, vocabulary=23),
    "translator": Config(depth=3, dim=256, heads=8, hidden=1024, batch=64, length=20, vocabulary=8000),
}


def shapes(config: Config) -> Iterator[Shape]:
    """The parameters, as minigrad's state dict names them."""
    d = config.dim
    yield "embedding.weight", (config.vocabulary, d)
    for half, cross in (("encoder", False), ("decoder", True)):
        for i in range(config.depth):
            yield from block_shapes(f"{half}.blocks.{i}", d, config.hidden, cross)
        yield from norm_shapes(f"{half}.norm", d)


def weights(config: Config) -> dict[str, np.ndarray]:
    """The common weights."""
    return drawn(shapes(config), config.dtype)


def batches(config: Config) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Endless sources (B, S), and targets (B, 1 + S), which begin with BOS and then are the sources from the end.

    Tokens are as frequent as words are: the one of rank r as often as 1 / r. There is no padding, but the models do not know that.
    """
    rng = np.random.default_rng(1)
    first = np.full((config.batch, 1), BOS)
    while True:
        ranks = config.vocabulary ** rng.random((config.batch, config.length))  # from 1 to the vocabulary
        source = ranks.astype(np.int64)
        yield source, np.concatenate([first, source[:, ::-1]], axis=1)
