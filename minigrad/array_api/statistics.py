"""Reductions, running sums and products, and differences."""

from __future__ import annotations

from typing import Any

from .. import functions as f
from ..engine.tensor import Tensor
from ..errors import ArgumentError
from ..ops.creation import full
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


def count_nonzero(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """How many elements are not 0."""
    return f.sum(x != 0, axis=axis, keepdims=keepdims)


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


def _in(dtype: Any, reduction: Any, x: Tensor, **options: Any) -> Tensor:
    """A reduction that computes in, and gives, a dtype; without one, whole numbers become the widest of their kind."""
    if dtype is None:
        return reduction(x, **options)
    return reduction(x.to(dtype=dtype), **options).to(dtype=dtype)


def sum(x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum along axes."""
    return _in(dtype, f.sum, x, axis=axis, keepdims=keepdims)


@writable
def prod(x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product along axes."""
    return _in(dtype, f.prod, x, axis=axis, keepdims=keepdims)


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """The running sum along an axis, after a 0 if asked for."""
    return _running("cumulative_sum", f.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """The running product along an axis, after a 1 if asked for."""
    return _running("cumulative_prod", f.cumprod, 1, x, axis, dtype, include_initial)


def _running(
    name: str, reduction: Any, start: int, x: Tensor, axis: int | None, dtype: Any, include_initial: bool
) -> Tensor:
    if axis is None and x.ndim != 1:
        raise ArgumentError(f"{name}: which axis?", "an axis, or a vector", f"axis=None for shape {x.shape}")
    axis = 0 if axis is None else axis
    result = _in(dtype, reduction, x, axis=axis)
    if not include_initial:
        return result
    shape = tuple([1 if i == axis % x.ndim else n for i, n in enumerate(x.shape)])
    return f.concatenate([full(shape, start, dtype=result.dtype, device=x.device), result], axis=axis)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The differences of neighbours along an axis, `n` times."""
    parts = [part for part in (prepend, x, append) if part is not None]
    if len(parts) > 1:
        x = f.concatenate(parts, axis=axis)
    lead = (slice(None),) * (axis % x.ndim)
    for _ in range(n):
        later, earlier = x[(*lead, slice(1, None))], x[(*lead, slice(None, -1))]
        x = later != earlier if x.dtype.kind == "b" else later - earlier
    return x
