"""The GPT that is trained in both libraries: its sizes, weights and batches, drawn once with NumPy, and its bare matmuls.

It is GPT-2 in small: pre-norm, learned positions, GELU by tanh, biases, the head tied to the embedding, no dropout.
The twin models are in `gpt_minigrad.py` and `gpt_torch.py`, so that neither process imports the other's library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

ADAMW: dict[str, Any] = {"lr": 1e-3, "betas": (0.9, 0.99), "eps": 1e-8, "weight_decay": 0.1}
MAX_NORM = 1.0


@dataclass(frozen=True)
class Config:
    """Sizes of a GPT and of its batches; "baby" and "nano" are nanoGPT's models for characters."""

    layers: int
    dim: int
    heads: int
    batch: int
    length: int
    vocabulary: int = 65
    dtype: str = "float32"


CONFIGS = {
    "tiny": Config(layers=1, dim=16, heads=2, batch=4, length=8, vocabulary=11),  # shows that everything works
    "nano": Config(layers=4, dim=128, heads=4, batch=12, length=64),
    "baby": Config(layers=6, dim=384, heads=6, batch=8, length=256),
}


def shapes(config: Config) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The parameters, as minigrad's state dict names them."""
    d = config.dim
    yield from {"tokens.weight": (config.vocabulary, d), "positions.weight": (config.length, d)}.items()
    block: dict[str, tuple[int, ...]] = {
        "attention_norm.weight": (d,),
        "attention_norm.bias": (d,),
        "attention.in_proj_weight": (3 * d, d),
        "attention.in_proj_bias": (3 * d,),
        "attention.out_proj.weight": (d, d),
        "attention.out_proj.bias": (d,),
        "mlp_norm.weight": (d,),
        "mlp_norm.bias": (d,),
        "mlp.up.weight": (4 * d, d),
        "mlp.up.bias": (4 * d,),
        "mlp.down.weight": (d, 4 * d),
        "mlp.down.bias": (d,),
    }
    for i in range(config.layers):
        yield from ((f"encoder.blocks.{i}.{name}", shape) for name, shape in block.items())
    yield from {"encoder.norm.weight": (d,), "encoder.norm.bias": (d,)}.items()


def weights(config: Config) -> dict[str, np.ndarray]:
    """Normal with deviation 0.02, as GPT-2's, those of norms around 1. Biases too, lest a forgotten one go unnoticed."""
    rng = np.random.default_rng(0)
    return {
        name: (rng.normal(float(name.endswith("norm.weight")), 0.02, shape)).astype(config.dtype)
        for name, shape in shapes(config)
    }


def batches(config: Config) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Endless (tokens, next tokens), each (B, T): walks of random small steps through the vocabulary, which can be learnt."""
    rng = np.random.default_rng(1)
    while True:
        walk = rng.integers(0, 4, (config.batch, config.length + 1)).cumsum(axis=1) % config.vocabulary
        yield walk[:, :-1].copy(), walk[:, 1:].copy()


Product = tuple[int, int, int, int]  # how many products, of (rows, inner) and (inner, columns)


def products(config: Config) -> Iterator[Product]:
    """Every matmul of one step, forward and backward; those of attention in full, although a causal one needs only half."""
    tokens, d = config.batch * config.length, config.dim
    layers = config.layers
    linear = [(layers, d, 3 * d), (layers, d, d), (layers, d, 4 * d), (layers, 4 * d, d), (1, d, config.vocabulary)]
    for count, inner, columns in linear:
        yield count, tokens, inner, columns  # the output
        yield count, tokens, columns, inner  # the gradient of the input
        yield count, columns, tokens, inner  # the gradient of the weight
    heads = config.layers * config.batch * config.heads
    size, length = d // config.heads, config.length
    yield 2 * heads, length, size, length  # the scores, and the gradient of the weights of attention
    yield 2 * heads, length, length, size  # the output, and the gradient of the queries
    yield 2 * heads, length, length, size  # the gradients of the keys and of the values


def operations(config: Config) -> int:
    """Floating-point operations in the matmuls of a step."""
    return sum(2 * count * rows * inner * columns for count, rows, inner, columns in products(config))


def gemm_step(config: Config) -> Callable[[], np.ndarray]:
    """The bare matmuls of a step in NumPy, which write into arrays that are already there: the floor below any step."""
    rng = np.random.default_rng(0)
    work = []
    for count, rows, inner, columns in products(config):
        a, b = (rng.standard_normal(shape).astype(config.dtype) for shape in ((rows, inner), (inner, columns)))
        work.append((count, a, b, np.empty((rows, columns), config.dtype)))

    def step() -> np.ndarray:
        for count, a, b, out in work:
            for _ in range(count):
                np.matmul(a, b, out=out)
        return out.ravel()[:1]

    return step
