"""Numbers taken apart and put together: signs, fractions, exponents, bits and divisors. The engine undoes broadcasting."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..composite import composite
from ..creation import astype
from .arithmetic import floor_divide, isinf, isnan, power, remainder, sign, trunc, where
from .unary import elementwise, sigmoid

_WHOLE = "whole numbers"


@elementwise
def fmod(xp, a, b):
    """The remainder of `a / b` with the sign of `a`, as NumPy's and PyTorch's."""
    return xp.fmod(a, b)


fmod.vjp(a=lambda g: g, b=lambda g, a, b: -g * trunc(a / b))


@elementwise
def lerp(xp, a, b, weight):
    """`a + weight * (b - a)`, exact at both ends, as PyTorch's."""
    return xp.where(xp.asarray(weight) < 0.5, a + weight * (b - a), b - (b - a) * (1 - weight))


lerp.vjp(a=lambda g, weight: g * (1 - weight), b=lambda g, weight: g * weight, weight=lambda g, a, b: g * (b - a))


@elementwise
def fmax(xp, a, b):
    """The larger of the two, or the one that is not NaN, as NumPy's; where they are equal, `a` gets the gradient, as PyTorch's."""
    return xp.fmax(a, b)


@elementwise
def fmin(xp, a, b):
    """The smaller of the two, or the one that is not NaN, as NumPy's; where they are equal, `a` gets the gradient, as PyTorch's."""
    return xp.fmin(a, b)


fmax.vjp(
    a=lambda g, a, b: where((a >= b) | isnan(b), g, 0),
    b=lambda g, a, b: where((a >= b) | isnan(b), 0, g),
)
fmin.vjp(
    a=lambda g, a, b: where((a <= b) | isnan(b), g, 0),
    b=lambda g, a, b: where((a <= b) | isnan(b), 0, g),
)


@elementwise
def logaddexp2(xp, a, b):
    """`log2(2**a + 2**b)` without overflow, as NumPy's."""
    return xp.logaddexp2(a, b)


logaddexp2.vjp(
    a=lambda g, a, b: g * sigmoid((a - b) * math.log(2)),
    b=lambda g, a, b: g * sigmoid((b - a) * math.log(2)),
)


@elementwise
def copysign(xp, a, b):
    """`|a|` with the sign of `b`, as NumPy's; the gradient at `a = 0` is 0, as PyTorch's."""
    return xp.copysign(a, b)


copysign.vjp(a=lambda g, a, b: g * sign(a) * copysign(1.0, b))


@elementwise
def nextafter(xp, a, b):
    """The next floating number after `a` towards `b`, as NumPy's; it has no gradient."""
    return xp.nextafter(a, b)


@elementwise
def heaviside(xp, a, b):
    """0 where `a` is negative, 1 where it is positive, `b` where it is 0, as NumPy's; it has no gradient."""
    return xp.heaviside(a, b)


@elementwise
def ldexp(xp, a, b):
    """`a * 2**b` for whole numbers `b`, as NumPy's."""
    return xp.ldexp(a, b)


ldexp.vjp(a=lambda g, b: ldexp(g, b))


@elementwise(several=True)
def frexp(xp, a):
    """A fraction with a size in [0.5, 1), and the whole exponent of 2 to multiply it by, as NumPy's."""
    return xp.frexp(a)


frexp.vjp(a=lambda g, out: ldexp(g[0], -out[1]))


@composite
def frac(a):
    """What follows the point, with the sign of `a`: `a - trunc(a)`, as PyTorch's."""
    return a - trunc(a)


@composite
def fix(a):
    """The next whole number towards 0, as NumPy's: `trunc`."""
    return trunc(a)


@composite(several=True)
def modf(a):
    """What follows the point, and what stands before it, as NumPy's."""
    whole = trunc(a)
    return where(isinf(a), 0, a - whole), whole


@composite(several=True)
def divmod_(a, b):
    """`a // b` and `a % b`, as NumPy's; the first has no gradient."""
    return floor_divide(a, b), remainder(a, b)


@composite
def float_power(a, b):
    """`a ** b` in float64, as NumPy's."""
    wide = (astype(x, dtype="float64") if hasattr(x, "dtype") else float(x) for x in (a, b))
    return power(*wide)


@composite
def nan_to_num(a, *, nan=0.0, posinf=None, neginf=None):
    """`a` with numbers in place of NaN and the infinities, the largest of the dtype unless given, as NumPy's; the gradient is 0 there."""
    if a.dtype.kind not in "fc":
        return a
    limits = np.finfo(a.dtype)
    a = where(isnan(a), nan, a)
    a = where(a == math.inf, limits.max if posinf is None else posinf, a)
    return where(a == -math.inf, limits.min if neginf is None else neginf, a)


def _numpys(name: str, doc: str, arguments: int = 2, expects: str | None = None) -> Any:
    """An op without a gradient: NumPy's function of that name."""

    def two(xp: Any, a: Any, b: Any) -> Any:
        return getattr(xp, name)(a, b)

    def one(xp: Any, a: Any) -> Any:
        return getattr(xp, name)(a)

    function = two if arguments == 2 else one
    function.__name__, function.__doc__ = name, doc
    return elementwise(function, expects=expects)


gcd = _numpys("gcd", "The greatest common divisor of whole numbers, as NumPy's.", expects=_WHOLE)
lcm = _numpys("lcm", "The least common multiple of whole numbers, as NumPy's.", expects=_WHOLE)
signbit = _numpys("signbit", "Whether it is negative, -0.0 included, as NumPy's.", arguments=1)
isposinf = _numpys("isposinf", "Whether it is positive infinity, as NumPy's.", arguments=1)
isneginf = _numpys("isneginf", "Whether it is negative infinity, as NumPy's.", arguments=1)
isreal = _numpys("isreal", "Whether it has no imaginary part, as NumPy's.", arguments=1)


@elementwise
def isclose(xp, a, b, *, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether `|a - b| <= atol + rtol * |b|`, as NumPy's."""
    return xp.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
