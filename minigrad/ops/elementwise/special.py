"""Functions of statistics and physics beyond those of NumPy: the error function's relatives, gamma, logarithms with limits.

They are computed in float64, whatever the floating dtype, and rounded at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import ArgumentError, is_whole
from ..composite import composite
from .arithmetic import clip, where
from .unary import elementwise, erf, exp, floating, horner, log, log1p, sin


def _in_float64(xp: Any, a: Any, compute: Callable[[Any, Any], Any]) -> Any:
    """`compute(xp, a)` in float64; the result is rounded to the floating dtype of `a`."""
    with np.errstate(all="ignore"):  # branches that are not taken, and poles
        out = compute(xp, xp.asarray(a, dtype="float64"))
    return out.astype(a.dtype) if a.dtype.kind == "f" else out


@elementwise(cost=60)
def erfc(xp, a):
    """The complementary error function, `1 - erf(a)`, exact also where that is tiny."""
    return _in_float64(xp, a, _erfc)


erfc.vjp(a=lambda g, a: g * (-2 / math.sqrt(math.pi)) * exp(-a * a))


def _erfc(xp: Any, a: Any) -> Any:
    x = xp.abs(a)
    t = 2 / (2 + x)
    tail = xp.exp(-x * x) * t * horner(2 * t - 1, _ERFC)
    return xp.where(a < 0, 2 - tail, tail)


# exp(x²) erfc(x) / t is smooth in t = 2 / (2 + x), from x = 0 to infinity: these are the coefficients of its interpolation
# at the Chebyshev nodes of t in [0, 1], scaled to [-1, 1]. It is right to 9e-16.
_ERFC = [
    0.5107913526210118, 0.34358034220690536, 0.13973604627794017, 0.018221115753413866,
    -0.010755330940551767, -0.0032395925326627493, 0.0015453059501721663, 0.00041864800911864327,
    -0.00033153596951670036, -1.7185510228970984e-05, 7.223078005558086e-05, -1.7075587078862068e-05,
    -1.0830840140061017e-05, 8.064338825028904e-06, -6.061660648176088e-07, -1.8303070086835044e-06,
    1.0753034265368385e-06, 1.0360790539807586e-08, -3.7262437397408343e-07, 1.5349222085928225e-07,
    6.651691098356388e-08, -5.297335962428669e-08, -5.021930669720097e-09, 6.86212563148957e-09,
]  # fmt: skip


@elementwise(cost=200)
def erfinv(xp, a):
    """The inverse of erf, as PyTorch's: infinite at ±1, NaN outside of [-1, 1]."""
    return _in_float64(xp, a, _erfinv)


erfinv.vjp(a=lambda g, out: g * (math.sqrt(math.pi) / 2) * exp(out * out))


def _erfinv(xp: Any, a: Any) -> Any:
    x = xp.abs(a)
    rest = 1 - x
    near, far = xp.minimum(-xp.log(rest * (1 + x)), 5), xp.maximum(-xp.log(rest), 5)
    y = xp.where(near < 5, x * horner(near - 2.5, _ERFINV), xp.sqrt(far - xp.log(math.pi * far) / 2))
    for _ in range(3):  # Halley's steps, each of which triples the number of right digits
        off = xp.where(x < 0.5, erf.forward(xp, y) - x, rest - _erfc(xp, y))
        step = off * (math.sqrt(math.pi) / 2) * xp.exp(y * y)
        y = y - step / (1 + y * step)
    return xp.copysign(xp.where(x == 1, math.inf, xp.where(x < 1, y, math.nan)), a)


# Start values to six digits: M. Giles, Approximating the erfinv function, GPU Computing Gems, 2010. Far out, two terms of the
# asymptotic series of erfc are enough to start from.
_ERFINV = [
    1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087, -4.39150654e-06, -3.5233877e-06, 3.43273939e-07,
    2.81022636e-08,
]  # fmt: skip

# B(2k), the numbers of Bernoulli, which the series of Stirling and of Euler and Maclaurin are made of.
_BERNOULLI = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510]
_FAR = 10  # from here on the series are right to all digits; smaller numbers are moved there by the recurrences


@elementwise(cost=60)
def lgamma(xp, a):
    """The logarithm of the absolute value of the gamma function, as PyTorch's and `math.lgamma`."""
    return _in_float64(xp, a, _lgamma)


lgamma.vjp(a=lambda g, a: g * digamma(a))


def _lgamma(xp: Any, a: Any) -> Any:
    mirrored = a < 0.5  # gamma(a) gamma(1 - a) = π / sin(π a)
    x = xp.where(mirrored, 1 - a, a)
    small = xp.minimum(x, _FAR)
    product = small
    for k in range(1, _FAR):
        product = product * (small + k)
    w = xp.where(x < _FAR, x + _FAR, x)
    series = horner(1 / (w * w), [b / (2 * k * (2 * k - 1)) for k, b in enumerate(_BERNOULLI, 1)]) / w
    total = (w - 0.5) * (xp.log(w) - 1) + (math.log(2 * math.pi) - 1) / 2 + series
    total = total - xp.where(x < _FAR, xp.log(product), 0)
    sine = xp.abs(xp.sin(math.pi * (a - xp.round(a))))
    return xp.where(xp.isinf(a), math.inf, xp.where(mirrored, xp.log(math.pi / sine) - total, total))


@elementwise(cost=60)
def digamma(xp, a):
    """The derivative of lgamma, as PyTorch's: NaN at negative whole numbers, infinite at 0."""
    return _in_float64(xp, a, _digamma)


digamma.vjp(a=lambda g, a: g * _polygamma(a, order=1))


def _digamma(xp: Any, a: Any) -> Any:
    mirrored = a < 0.5  # digamma(a) = digamma(1 - a) - π / tan(π a)
    x = xp.where(mirrored, 1 - a, a)
    w = xp.where(x < _FAR, x + _FAR, x)
    square = 1 / (w * w)
    total = xp.log(w) - 0.5 / w - square * horner(square, [b / (2 * k) for k, b in enumerate(_BERNOULLI, 1)])
    passed = 1 / x
    for k in range(1, _FAR):
        passed = passed + 1 / (x + k)
    total = total - xp.where(x < _FAR, passed, 0)
    turned = total - math.pi / xp.tan(math.pi * (a - xp.round(a)))
    poles = xp.where(a == 0, -xp.copysign(math.inf, a), math.nan)
    return xp.where((a <= 0) & (a == xp.round(a)), poles, xp.where(mirrored, turned, total))


@composite(method=False)
def polygamma(n, a):
    """The derivative number `n` of digamma, as PyTorch's and SciPy's; `polygamma(0, a)` is digamma."""
    if not is_whole(n) or n < 0:
        raise ArgumentError("polygamma: n counts derivatives", "a whole number from 0 up", repr(n))
    return _polygamma(a, order=int(n)) if n else digamma(a)


@elementwise(cost=100)
def _polygamma(xp, a, *, order):
    """The derivative number `order`, from 1 up, of digamma."""
    return _in_float64(xp, a, lambda xp, wide: _derivative_of_digamma(xp, wide, order))


_polygamma.vjp(a=lambda g, a, order: g * _polygamma(a, order=order + 1))


def _derivative_of_digamma(xp: Any, a: Any, n: int) -> Any:
    mirrored = a < 0.5
    x = xp.where(mirrored, 1 - a, a)
    total = (-1) ** (n + 1) * math.factorial(n) * _hurwitz_zeta(n + 1, x)
    cotangent = [0.0, 1.0]  # the derivatives of cot, as polynomials in it: cot' = -(1 + cot²)
    for _ in range(n):
        slope = [i * c for i, c in enumerate(cotangent)][1:]
        cotangent = [-p - q for p, q in zip([*slope, 0, 0], [0, 0, *slope])]
    turns = math.pi ** (n + 1) * horner(1 / xp.tan(math.pi * (a - xp.round(a))), cotangent)
    return xp.where(mirrored, (-1) ** n * total - turns, total)


def _hurwitz_zeta(s: int, x: Any) -> Any:
    """`Σ 1 / (x + k)ˢ` over k = 0, 1, 2 …, by the formula of Euler and Maclaurin."""
    total = x**-s
    for k in range(1, _FAR):
        total = total + (x + k) ** -s
    w = x + _FAR
    total = total + w ** (1 - s) / (s - 1) + 0.5 * w**-s
    factor = float(s)
    for k, b in enumerate(_BERNOULLI, 1):
        total = total + b / math.factorial(2 * k) * factor * w ** (1 - s - 2 * k)
        factor *= (s + 2 * k - 1) * (s + 2 * k)
    return total


@composite
def sinc(a):
    """`sin(π a) / (π a)`, and 1 at 0, as NumPy's; its derivatives are right at 0, too."""
    near = (a < 0.5) & (a > -0.5)
    angle = math.pi * floating(a)
    square = where(near, angle, 0) ** 2
    series = horner(square, [(-1) ** n / math.factorial(2 * n + 1) for n in range(12)])
    angle = where(near, 1, angle)
    return where(near, series, sin(angle) / angle)


@composite
def logit(a, *, eps=None):
    """`log(a / (1 - a))`, the inverse of sigmoid, as PyTorch's; `eps` keeps `a` within [eps, 1 - eps]."""
    return _logit(a if eps is None else clip(a, eps, 1 - eps))


@elementwise
def _logit(xp, a):
    """`log(a / (1 - a))`."""
    return xp.log(a) - xp.log1p(-floating(a))


_logit.vjp(a=lambda g, a: where((a < 0) | (a > 1), math.nan, g / (a * (1 - a))))


@elementwise
def xlogy(xp, a, b):
    """`a * log(b)`, but 0 where `a` is 0, as PyTorch's and SciPy's."""
    return _unless_zero(xp, xp.log, a, b)


def _unless_zero(xp: Any, logarithm: Any, a: Any, b: Any) -> Any:
    """`a * logarithm(b)`, but 0 where `a` is 0 and `b` a number."""
    common = np.result_type(*[getattr(x, "dtype", x) for x in (a, b)])
    with np.errstate(divide="ignore", invalid="ignore"):
        return xp.where((a == 0) & ~xp.isnan(b), 0, a * logarithm(xp.asarray(b, dtype=common)))


xlogy.vjp(a=lambda g, a, b: where((a == 0) & (b <= 0), 0, g * log(b)), b=lambda g, a, b: g * a / b)


@elementwise
def xlog1py(xp, a, b):
    """`a * log(1 + b)`, but 0 where `a` is 0, as PyTorch's and SciPy's."""
    return _unless_zero(xp, xp.log1p, a, b)


xlog1py.vjp(a=lambda g, a, b: where((a == 0) & (b <= -1), 0, g * log1p(b)), b=lambda g, a, b: g * a / (1 + b))
