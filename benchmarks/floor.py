"""The matrix products of a training step: what they cost alone is the floor below any step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

Product = tuple[int, int, int, int, int]  # how often, of how many pairs at once, of (rows, inner) and (inner, columns)


def linear(count: int, rows: int, inner: int, columns: int) -> Iterator[Product]:
    """The products of `count` linear layers, forward and backward: (rows, inner) -> (rows, columns)."""
    yield count, 1, rows, inner, columns  # the output
    yield count, 1, rows, columns, inner  # the gradient of the input
    yield count, 1, columns, rows, inner  # the gradient of the weight


def attention(count: int, heads: int, length: int, size: int, width: int) -> Iterator[Product]:
    """Those of `count` attentions, which have so many heads in the whole batch; in full, also where it is causal."""
    yield 2 * count, heads, length, width, size  # the scores, and the gradient of the weights of attention
    yield 2 * count, heads, length, size, width  # the output, and the gradient of the queries
    yield 2 * count, heads, size, length, width  # the gradients of the keys and of the values


def operations(products: Iterable[Product]) -> int:
    """Floating-point operations."""
    return sum(2 * count * stack * rows * inner * columns for count, stack, rows, inner, columns in products)


def gemm_step(products: Iterable[Product], dtype: str) -> Callable[[], np.ndarray]:
    """The products alone in NumPy, which writes into arrays that are already there."""
    rng = np.random.default_rng(0)
    work = []
    for count, stack, rows, inner, columns in products:
        shapes = (stack, rows, inner), (stack, inner, columns)
        a, b = (rng.standard_normal(shape).astype(dtype) for shape in shapes)
        work.append((count, a, b, np.empty((stack, rows, columns), dtype)))

    def step() -> np.ndarray:
        for count, a, b, out in work:
            for _ in range(count):
                np.matmul(a, b, out=out)
        return out.ravel()[:1]

    return step
