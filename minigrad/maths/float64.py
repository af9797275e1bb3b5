"""What compiled loops call for float64: NumPy's and the C library's functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .float32 import exact, index, kept, maximum, minimum, plus, select, times

__all__ = ["index", "kept", "maximum", "minimum", "plus", "select", "times"]

I64, NAN = np.int64, math.nan
_POSITIVE = I64(0x7FFFFFFFFFFFFFFF)
LEAST = I64(-0x8000000000000000)


@exact
def ordered(a: Any) -> Any:
    """The bits of a float in an order of integers that is the order of floats, NaN above all."""
    bits = np.float64(a if a == a else NAN).view(I64)
    return bits ^ ((bits >> 63) & _POSITIVE)


@exact
def unordered(bits: Any) -> Any:
    """The float of `ordered`."""
    return I64(bits ^ ((bits >> 63) & _POSITIVE)).view(np.float64)


@exact
def sign(a: Any) -> Any:
    """-1, 0 or 1; NaN stays."""
    return 1.0 if a > 0.0 else (-1.0 if a < 0.0 else a if a != a else 0.0)


@exact
def sigmoid(a: Any) -> Any:
    """`1 / (1 + exp(-a))`"""
    return math.exp(min(a, 0.0)) / (1.0 + math.exp(-abs(a))) if a == a else a


@exact
def normal_cdf(a: Any) -> Any:
    """The share of the normal distribution below `a`."""
    return 0.5 * math.erfc(-a * math.sqrt(0.5))


@exact
def power(a: Any, b: Any) -> Any:
    """`a ** b`"""
    return a**b


def _scalar(function: Any) -> Any:
    @exact
    def double(a: Any) -> Any:
        return np.float64(function(a))

    return double


exp, expm1, log, log1p, log2, log10 = map(_scalar, (math.exp, math.expm1, math.log, math.log1p, np.log2, np.log10))
sqrt, floor, ceil, trunc, erf = map(_scalar, (math.sqrt, np.floor, np.ceil, np.trunc, math.erf))
sin, cos, tan, arcsin, arccos, arctan = map(_scalar, (math.sin, math.cos, math.tan, math.asin, math.acos, math.atan))
sinh, cosh, tanh = map(_scalar, (math.sinh, math.cosh, math.tanh))
arcsinh, arccosh, arctanh = map(_scalar, (math.asinh, math.acosh, math.atanh))


@exact
def arctan2(a: Any, b: Any) -> Any:
    """The angle of a point."""
    return math.atan2(a, b)


@exact
def hypot(a: Any, b: Any) -> Any:
    """`sqrt(a² + b²)` without overflow."""
    return math.hypot(a, b)
