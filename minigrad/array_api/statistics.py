"""Reductions, running sums and products, and differences."""

from __future__ import annotations

from typing import Any

from .. import functions as f
from ..engine.tensor import Tensor
from .arrays import writable

__all__ = [
    "all",
    "any",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]


def all(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether every element is true."""
    return f.all(x, axis, keepdims)


def any(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether any element is true."""
    return f.any(x, axis, keepdims)


@writable
def max(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The largest along axes."""
    return f.max(x, axis, keepdims)


@writable
def min(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The smallest along axes."""
    return f.min(x, axis, keepdims)


def mean(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean along axes."""
    return f.mean(x, axis, keepdims)


@writable
def std(x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The standard deviation along axes, from a sum of squares divided by `n - correction`."""
    return f.std(x, axis=axis, ddof=correction, keepdims=keepdims)


def var(x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance along axes, a sum of squares divided by `n - correction`."""
    return f.var(x, axis=axis, ddof=correction, keepdims=keepdims)


def count_nonzero(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """How many elements are not 0."""
    return f.count_nonzero(x, axis=axis, keepdims=keepdims)


def sum(x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum along axes; without a dtype, whole numbers are summed in the widest of their kind."""
    return f.sum(x, axis=axis, dtype=dtype, keepdims=keepdims)


@writable
def prod(x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product along axes; without a dtype, whole numbers are multiplied in the widest of their kind."""
    return f.prod(x, axis=axis, dtype=dtype, keepdims=keepdims)


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """The running sum along an axis, after a 0 if asked for."""
    return f.cumulative_sum(x, axis=axis, dtype=dtype, include_initial=include_initial)


@writable
def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """The running product along an axis, after a 1 if asked for."""
    return f.cumulative_prod(x, axis=axis, dtype=dtype, include_initial=include_initial)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The differences of neighbours along an axis, `n` times."""
    return f.diff(x, n=n, axis=axis, prepend=prepend, append=append)
