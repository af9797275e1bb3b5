"""The GPT that is trained in both libraries: its sizes, weights and batches, drawn once with NumPy, and its bare matmuls.

It is GPT-2 in small: pre-norm, learned positions, GELU by tanh, biases, the head tied to the embedding, no dropout.
The twin models are in `gpt_minigrad.py` and `gpt_torch.py`, so that neither process imports the other's library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..floor import Product, attention, linear

ADAMW: dict[str, Any] = {"lr": 1e-3, "betas": (0.9, 0.99), "eps": 1e-8, "weight_decay": 0.1}
MAX_NORM = 1.0
Shape = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class Config:
    """Sizes of a GPT and of its batches; "baby" and "nano" are nanoGPT's models for characters."""

    family: ClassVar[str] = "gpt"  # its twins are in gpt_minigrad.py and gpt_torch.py
    tiny: ClassVar[str] = "tiny"

    layers: int
    dim: int
    heads: int
    batch: int
    length: int
    vocabulary: int = 65
    dtype: str = "float32"

    def __str__(self) -> str:
        width = f"d {self.dim}, {self.heads} heads"
        return f"{self.layers} layers, {width}, batch {self.batch} x {self.length}, vocabulary {self.vocabulary}, {self.dtype}"

    def products(self) -> Iterator[Product]:
        """Every matmul of one step, forward and backward."""
        tokens, d, layers = self.batch * self.length, self.dim, self.layers
        for columns, inner in ((3 * d, d), (d, d), (4 * d, d), (d, 4 * d)):
            yield from linear(layers, tokens, inner, columns)
        yield from linear(1, tokens, d, self.vocabulary)
        yield from attention(layers, self.batch * self.heads, self.length, self.length, d // self.heads)


CONFIGS = {
    "tiny": Config(layers=1, dim=16, heads=2, batch=4, length=8, vocabulary=11),  # shows that everything works
    "nano": Config(layers=4, dim=128, heads=4, batch=12, length=64),
    "baby": Config(layers=6, dim=384, heads=6, batch=8, length=256),
}


def block_shapes(place: str, dim: int, hidden: int, cross: bool = False) -> Iterator[Shape]:
    """The parameters of one block, as minigrad's state dict names them; `cross` if it looks at a memory as well."""
    for part in ("attention", "cross_attention") if cross else ("attention",):
        yield from norm_shapes(f"{place}.{part.removesuffix('_attention')}_norm", dim)
        yield f"{place}.{part}.in_proj_weight", (3 * dim, dim)
        yield f"{place}.{part}.in_proj_bias", (3 * dim,)
        yield f"{place}.{part}.out_proj.weight", (dim, dim)
        yield f"{place}.{part}.out_proj.bias", (dim,)
    yield from norm_shapes(f"{place}.mlp_norm", dim)
    yield f"{place}.mlp.up.weight", (hidden, dim)
    yield f"{place}.mlp.up.bias", (hidden,)
    yield f"{place}.mlp.down.weight", (dim, hidden)
    yield f"{place}.mlp.down.bias", (dim,)


def norm_shapes(place: str, dim: int) -> Iterator[Shape]:
    """The parameters of a norm."""
    yield f"{place}.weight", (dim,)
    yield f"{place}.bias", (dim,)


def shapes(config: Config) -> Iterator[Shape]:
    """The parameters, as minigrad's state dict names them."""
    d = config.dim
    yield "tokens.weight", (config.vocabulary, d)
    yield "positions.weight", (config.length, d)
    for i in range(config.layers):
        yield from block_shapes(f"encoder.blocks.{i}", d, 4 * d)
    yield from norm_shapes("encoder.norm", d)


def drawn(shapes: Iterable[Shape], dtype: str) -> dict[str, np.ndarray]:
    """Normal with deviation 0.02, as GPT-2's, those of norms around 1. Biases too, lest a forgotten one go unnoticed."""
    rng = np.random.default_rng(0)
    return {name: rng.normal(float(name.endswith("norm.weight")), 0.02, shape).astype(dtype) for name, shape in shapes}


def weights(config: Config) -> dict[str, np.ndarray]:
    """The common weights."""
    return drawn(shapes(config), config.dtype)


def batches(config: Config) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Endless (tokens, next tokens), each (B, T): walks of random small steps through the vocabulary, which can be learnt."""
    rng = np.random.default_rng(1)
    while True:
        walk = rng.integers(0, 4, (config.batch, config.length + 1)).cumsum(axis=1) % config.vocabulary
        yield walk[:, :-1].copy(), walk[:, 1:].copy()
