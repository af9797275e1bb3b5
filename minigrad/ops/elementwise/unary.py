"""The functions of one number: exponentials, logarithms, roots, angles. The engine undoes broadcasting."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from ...engine.op import op

elementwise = partial(op, elementwise=True)


def floating(a: Any) -> Any:
    """Whole numbers as float64: unsigned ones would wrap where they are negated or subtracted."""
    return a * 1.0 if hasattr(a, "dtype") and a.dtype.kind in "biu" else a


def widened(a: Any) -> Any:
    """Floating, and float16 as float32: the sum of 70,000 ones is more than it can hold."""
    return a.astype("float32") if a.dtype == "float16" else floating(a)


def narrowed(result: Any, a: Any) -> Any:
    """What was computed from `widened(a)`, in float16 again if `a` is."""
    return result.astype("float16") if a.dtype == "float16" else result


@elementwise(lowering="exp(a)")
def exp(xp, a):
    """`e ** a`, as NumPy's."""
    return xp.exp(a)


exp.vjp(a=lambda g, out: g * out)


@elementwise(lowering="expm1(a)")
def expm1(xp, a):
    """`exp(a) - 1` without cancellation, as NumPy's."""
    return xp.expm1(a)


expm1.vjp(a=lambda g, out: g * (out + 1))


@elementwise(lowering="log(a)")
def log(xp, a):
    """The natural logarithm, as NumPy's."""
    return xp.log(a)


log.vjp(a=lambda g, a: g / a)


@elementwise
def exp2(xp, a):
    """`2 ** a`, as NumPy's."""
    return xp.exp2(a)


exp2.vjp(a=lambda g, out: g * (out * math.log(2)))


@elementwise(lowering="log1p(a)")
def log1p(xp, a):
    """`log(1 + a)` without cancellation, as NumPy's."""
    return xp.log1p(a)


log1p.vjp(a=lambda g, a: g / (1 + a))


@elementwise(lowering="log2(a)")
def log2(xp, a):
    """The logarithm to base 2, as NumPy's."""
    return xp.log2(a)


log2.vjp(a=lambda g, a: g / (a * math.log(2)))


@elementwise(lowering="log10(a)")
def log10(xp, a):
    """The logarithm to base 10, as NumPy's."""
    return xp.log10(a)


log10.vjp(a=lambda g, a: g / (a * math.log(10)))


@elementwise(lowering="sqrt(a)")
def sqrt(xp, a):
    """The square root, as NumPy's."""
    return xp.sqrt(a)


sqrt.vjp(a=lambda g, out: g / (2 * out))


@elementwise(lowering="1 / sqrt(a)")
def rsqrt(xp, a):
    """`1 / sqrt(a)`."""
    return 1 / xp.sqrt(a)


rsqrt.vjp(a=lambda g, out: -0.5 * g * out * out * out)


@elementwise
def cbrt(xp, a):
    """The cube root, also of negative numbers, as NumPy's."""
    return xp.cbrt(a)


cbrt.vjp(a=lambda g, out: g / (3 * out * out))


@elementwise(lowering="a * a")
def square(xp, a):
    """`a * a`, as NumPy's."""
    return a * a


square.vjp(a=lambda g, a: g * (2 * a))


@elementwise(lowering="1 / a")
def reciprocal(xp, a):
    """`1 / a`, as NumPy's."""
    return xp.reciprocal(a)


reciprocal.vjp(a=lambda g, out: -g * out * out)


@elementwise(lowering="a * 0.017453292519943295")
def deg2rad(xp, a):
    """Degrees as radians, `a * π / 180`, as NumPy's."""
    return xp.deg2rad(a)


deg2rad.vjp(a=lambda g: g * (math.pi / 180))


@elementwise(lowering="a * 57.29577951308232")
def rad2deg(xp, a):
    """Radians as degrees, `a * 180 / π`, as NumPy's."""
    return xp.rad2deg(a)


rad2deg.vjp(a=lambda g: g * (180 / math.pi))


@elementwise(lowering="sin(a)")
def sin(xp, a):
    """The sine, as NumPy's."""
    return xp.sin(a)


sin.vjp(a=lambda g, a: g * cos(a))


@elementwise(lowering="cos(a)")
def cos(xp, a):
    """The cosine, as NumPy's."""
    return xp.cos(a)


cos.vjp(a=lambda g, a: -g * sin(a))


@elementwise(lowering="tan(a)")
def tan(xp, a):
    """The tangent, as NumPy's."""
    return xp.tan(a)


tan.vjp(a=lambda g, out: g * (1 + out * out))


@elementwise(lowering="arcsin(a)")
def arcsin(xp, a):
    """The angle with this sine, as NumPy's."""
    return xp.arcsin(a)


arcsin.vjp(a=lambda g, a: g * rsqrt(1 - a * a))


@elementwise(lowering="arccos(a)")
def arccos(xp, a):
    """The angle with this cosine, as NumPy's."""
    return xp.arccos(a)


arccos.vjp(a=lambda g, a: -g * rsqrt(1 - a * a))


@elementwise(lowering="arctan(a)")
def arctan(xp, a):
    """The angle with this tangent, as NumPy's."""
    return xp.arctan(a)


arctan.vjp(a=lambda g, a: g / (1 + a * a))


@elementwise(lowering="arctan2(a, b)")
def arctan2(xp, a, b):
    """The angle of the point `(x=b, y=a)`, as NumPy's; the gradient at the origin is 0."""
    return xp.arctan2(a, b)


def _squared_radius(a, b):
    """`a² + b²`, but 1 at the origin, so that one may divide by it."""
    total = a * a + b * b
    return total + (total == 0)


arctan2.vjp(a=lambda g, a, b: g * b / _squared_radius(a, b), b=lambda g, a, b: -g * a / _squared_radius(a, b))


@elementwise(lowering="sinh(a)")
def sinh(xp, a):
    """The hyperbolic sine, as NumPy's."""
    return xp.sinh(a)


sinh.vjp(a=lambda g, a: g * cosh(a))


@elementwise(lowering="cosh(a)")
def cosh(xp, a):
    """The hyperbolic cosine, as NumPy's."""
    return xp.cosh(a)


cosh.vjp(a=lambda g, a: g * sinh(a))


@elementwise(lowering="tanh(a)")
def tanh(xp, a):
    """The hyperbolic tangent, as NumPy's."""
    return xp.tanh(a)


tanh.vjp(a=lambda g, out: g * (1 - out * out))


@elementwise(lowering="sigmoid(a)")
def sigmoid(xp, a):
    """`1 / (1 + exp(-a))`, exact at both ends."""
    a = floating(a)
    return xp.exp(xp.minimum(a, 0)) / (1 + xp.exp(-xp.abs(a)))


sigmoid.vjp(a=lambda g, out: g * out * (1 - out))


@elementwise(lowering="arcsinh(a)")
def arcsinh(xp, a):
    """The inverse of sinh, as NumPy's."""
    return xp.arcsinh(a)


arcsinh.vjp(a=lambda g, a: g * rsqrt(a * a + 1))


@elementwise(lowering="arccosh(a)")
def arccosh(xp, a):
    """The inverse of cosh, as NumPy's."""
    return xp.arccosh(a)


arccosh.vjp(a=lambda g, a: g * rsqrt(a * a - 1))


@elementwise(lowering="arctanh(a)")
def arctanh(xp, a):
    """The inverse of tanh, as NumPy's."""
    return xp.arctanh(a)


arctanh.vjp(a=lambda g, a: g / (1 - a * a))


@elementwise(lowering="hypot(a, b)")
def hypot(xp, a, b):
    """`sqrt(a² + b²)` without overflow, as NumPy's."""
    return xp.hypot(a, b)


hypot.vjp(a=lambda g, a, out: g * (a / out), b=lambda g, b, out: g * (b / out))


@elementwise(lowering="erf(a)")
def erf(xp, a):
    """The error function, `2/√π ∫₀ᵃ exp(-t²) dt`."""
    x = xp.abs(a)
    near, far = xp.minimum(x, 0.5), xp.clip(x, 0.5, 6)
    u = (2 / (2 + far) - 0.525) / 0.275  # from -1 to 1
    small = near * horner(near * near, _TAYLOR)
    large = 1 - xp.exp(-far * far) * horner(u, _TAIL)
    return xp.copysign(xp.where(x < 0.5, small, xp.where(xp.isnan(x), x, large)), a)


erf.vjp(a=lambda g, a: g * (2 / math.sqrt(math.pi)) * exp(-a * a))

# Below 0.5 the Taylor series of erf. Above, exp(x²) erfc(x) is smooth in t = 2 / (2 + x): these are the coefficients of its
# interpolation at the Chebyshev nodes of t in [0.25, 0.8], scaled to [-1, 1]. Together they are right to 7e-16.
_TAYLOR = [(-1) ** n / (math.factorial(n) * (2 * n + 1)) * 2 / math.sqrt(math.pi) for n in range(12)]
_TAIL = [
    0.27736900762083944,
    0.2485701088698088,
    0.07669952688522116,
    0.013234851813130163,
    0.00017899240478655085,
    -0.00036235876228752793,
    -1.3901031429172947e-05,
    1.4983411338049936e-05,
    -2.61965108082363e-07,
    -7.239850133640514e-07,
    1.0224606743916511e-07,
    2.66867780856216e-08,
    -1.0809882952440365e-08,
    2.8021318610376115e-10,
    6.614489081324798e-10,
    -1.1777381466351726e-10,
    -1.521116370005691e-11,
]


def horner(x: Any, coefficients: Any) -> Any:
    """`c₀ + x (c₁ + x (c₂ + …))`"""
    total = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total
