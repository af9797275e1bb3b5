"""Reductions and running sums that skip NaN."""

from __future__ import annotations

import math
from typing import Any

from ...errors import ArgumentError
from ..composite import composite
from ..elementwise.arithmetic import isnan, where
from .cumulative import cumprod, cumsum
from .reduction import _safe_sqrt, all, any, argmax, argmin, count_reduced, halves_in_float32, max, mean, min, prod, sum


def _filled(a: Any, value: float) -> Any:
    """`a` with a number in place of NaN, which only floating tensors have."""
    return where(isnan(a), value, a) if a.dtype.kind in "fc" else a


@composite
def nansum(a, *, axis=None, keepdims=False, dtype=None):
    """The sum along axes of what is not NaN, as NumPy's."""
    return sum(_filled(a, 0), axis=axis, keepdims=keepdims, dtype=dtype)


@composite
def nanprod(a, *, axis=None, keepdims=False, dtype=None):
    """The product along axes of what is not NaN, as NumPy's."""
    return prod(_filled(a, 1), axis=axis, keepdims=keepdims, dtype=dtype)


@composite
@halves_in_float32
def nanmean(a, *, axis=None, keepdims=False):
    """The mean along axes of what is not NaN, as NumPy's; NaN where there is nothing else."""
    if a.dtype.kind not in "fc":
        return mean(a, axis=axis, keepdims=keepdims)
    return sum(_filled(a, 0), axis=axis, keepdims=keepdims) / _count(a, axis, keepdims)


def _count(a: Any, axis: Any, keepdims: bool) -> Any:
    """How many elements along the axes are not NaN, in the dtype of `a`."""
    return count_reduced(a.shape, axis) - sum(isnan(a), axis=axis, keepdims=keepdims, dtype=a.dtype)


@composite
@halves_in_float32
def nanvar(a, *, axis=None, ddof=0, keepdims=False):
    """The variance along axes of what is not NaN, as NumPy's: divided by `n - ddof`, and NaN where that is not positive."""
    if a.dtype.kind != "f":
        a = a * 1.0
    distance = _filled(a - nanmean(a, axis=axis, keepdims=True), 0)
    count = _count(a, axis, keepdims) - ddof
    return sum(distance * distance, axis=axis, keepdims=keepdims) / where(count > 0, count, math.nan)


@composite
@halves_in_float32
def nanstd(a, *, axis=None, ddof=0, keepdims=False):
    """The standard deviation along axes of what is not NaN, as NumPy's; where it is 0, so is its gradient."""
    return _safe_sqrt(nanvar(a, axis=axis, ddof=ddof, keepdims=keepdims))


@composite
def nanmax(a, *, axis=None, keepdims=False):
    """The largest along axes that is not NaN, as NumPy's; NaN where there is nothing else. Equal ones share the gradient."""
    return _unless_all_nan(a, max(_filled(a, -math.inf), axis=axis, keepdims=keepdims), axis, keepdims)


@composite
def nanmin(a, *, axis=None, keepdims=False):
    """The smallest along axes that is not NaN, as NumPy's; NaN where there is nothing else. Equal ones share the gradient."""
    return _unless_all_nan(a, min(_filled(a, math.inf), axis=axis, keepdims=keepdims), axis, keepdims)


def _unless_all_nan(a: Any, result: Any, axis: Any, keepdims: bool) -> Any:
    if a.dtype.kind != "f":
        return result
    return where(all(isnan(a), axis=axis, keepdims=keepdims), math.nan, result)


@composite
def nanargmax(a, *, axis=None, keepdims=False):
    """The position of the largest that is not NaN: the first, if there are several, as NumPy's."""
    _check_some(a, axis)
    return argmax(_filled(a, -math.inf), axis=axis, keepdims=keepdims)


@composite
def nanargmin(a, *, axis=None, keepdims=False):
    """The position of the smallest that is not NaN: the first, if there are several, as NumPy's."""
    _check_some(a, axis)
    return argmin(_filled(a, math.inf), axis=axis, keepdims=keepdims)


def _check_some(a: Any, axis: Any) -> None:
    if bool(any(all(isnan(a), axis=axis))):
        raise ArgumentError("there is nothing but NaN to choose from", "a number along each axis", f"shape {a.shape}")


@composite
def nancumsum(a, *, axis=None, dtype=None):
    """The running sum along an axis, or of the raveled tensor, with 0 in place of NaN, as NumPy's."""
    return cumsum(_filled(a, 0), axis=axis, dtype=dtype)


@composite
def nancumprod(a, *, axis=None, dtype=None):
    """The running product along an axis, or of the raveled tensor, with 1 in place of NaN, as NumPy's."""
    return cumprod(_filled(a, 1), axis=axis, dtype=dtype)
