"""float32: without branches or calls, so that loops over them are vectorised; right to 1 or 2 units in the last place."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

# Inlined always: a call would keep a loop from being vectorised. The order of additions is what makes them right.
exact = numba.njit(nogil=True, error_model="numpy", fastmath={"contract"}, forceinline=True)
F, I32 = np.float32, np.int32
ZERO, HALF, ONE, TWO, INF, NAN = F(0), F(0.5), F(1), F(2), F(math.inf), F(math.nan)
_POSITIVE = I32(0x7FFFFFFF)
_BELOW = I32(0x7FFFFF)  # so many NaN with a sign there are
LEAST = I32(-0x80000000)  # where a maximum of `ordered` numbers begins

_free = numba.njit(nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})


@_free
def plus(a: Any, b: Any) -> Any:
    """A sum that may be taken in any order, which lets it be vectorised."""
    return a + b


@_free
def times(a: Any, b: Any) -> Any:
    """A product that may be taken in any order."""
    return a * b


@exact
def select(condition: Any, a: Any, b: Any) -> Any:
    """`a if condition else b`, both computed before."""
    return a if condition else b


@exact
def maximum(a: Any, b: Any) -> Any:
    """The larger; NaN if one is."""
    return a if (a > b) | (a != a) else b


@exact
def minimum(a: Any, b: Any) -> Any:
    """The smaller; NaN if one is."""
    return a if (a < b) | (a != a) else b


@exact
def ordered(a: Any) -> Any:
    """The bits of a float in an order of integers that is the order of floats, NaN above all: maxima of integers are vectorised.

    -inf becomes the least of all, and what lies below it, NaN with a sign, goes around to the other end.
    """
    bits = F(a).view(I32)
    return I32(I32(bits ^ I32(I32(bits >> I32(31)) & _POSITIVE)) - _BELOW)


@exact
def unordered(bits: Any) -> Any:
    """The float of `ordered`."""
    bits = I32(bits + _BELOW)
    return I32(bits ^ I32(I32(bits >> I32(31)) & _POSITIVE)).view(F)


@exact
def sign(a: Any) -> Any:
    """-1, 0 or 1; NaN stays."""
    return ONE if a > ZERO else (-ONE if a < ZERO else a if a != a else ZERO)


@exact
def blend(condition: Any, a: Any, b: Any) -> Any:
    """`a if condition else b` bit by bit: no compiler turns it into a branch that keeps a loop from being vectorised."""
    mask = I32(-I32(condition))
    return I32(I32(F(a).view(I32) & mask) | I32(F(b).view(I32) & ~mask)).view(F)


_LOG2E = F(math.log2(math.e))
_LN2_HIGH = F(45426 / 65536)  # 16 bits, so that its multiples are exact
_LN2_LOW = F(math.log(2) - 45426 / 65536)
_ROUND = F(1.5 * 2**23 + 126)  # added to a number, it rounds it, and leaves 126 + the integer in the lowest bits
_LOWEST, _HIGHEST = F(-87.5), F(89)
_E2, _E3, _E4, _E5, _E6 = F(0.49999994), F(0.16666521), F(0.04166839), F(0.0083687175), F(0.0013814596)


@exact
def exp(x: Any) -> Any:
    """`exp(x)` to 1 unit in the last place; 0 where that is below 1.7e-38."""
    y = _LOWEST if x < _LOWEST else x
    y = _HIGHEST if y > _HIGHEST else y  # NaN fails both comparisons, and stays
    n = y * _LOG2E + _ROUND
    power = np.int32(np.float32(n).view(np.int32) << 23).view(np.float32)  # 2 ** (round(y / ln 2) - 1)
    n = n - _ROUND
    r = y - n * _LN2_HIGH - n * _LN2_LOW
    p = _E6 * r + _E5
    p = p * r + _E4
    p = p * r + _E3
    p = p * r + _E2
    p = p * (r * r) + r
    return (p + p + TWO) * power


@exact
def sigmoid(x: Any) -> Any:
    """`1 / (1 + exp(-x))`"""
    return ONE / (ONE + exp(-x))


_ROOT_HALF = np.int32(0x3F3504F3)  # the bits of √½
_EXPONENT = np.int32(-0x800000)  # all bits but those of the mantissa
_L3, _L4, _L5, _L6 = F(0.3333333), F(-0.2500082), F(0.20001227), F(-0.16623357)
_L7, _L8, _L9, _L10 = F(0.14201759), F(-0.13160183), F(0.12761575), F(-0.07634493)


@exact
def _normal_log(x: Any) -> Any:
    """`log(x)` for x that are not subnormal."""
    bits = np.float32(x).view(np.int32)
    shift = np.int32(np.int32(bits - _ROOT_HALF) & _EXPONENT)
    r = np.int32(bits - shift).view(np.float32) - ONE  # x = (1 + r) 2ⁿ, with 1 + r between √½ and √2
    n = F(np.int32(shift >> 23))
    p = _L10 * r + _L9
    p = p * r + _L8
    p = p * r + _L7
    p = p * r + _L6
    p = p * r + _L5
    p = p * r + _L4
    p = p * r + _L3
    square = r * r
    p = p * r * square + n * _LN2_LOW - HALF * square
    p = p + r + n * _LN2_HIGH
    p = p if x < INF else x  # also NaN
    return p if x > ZERO else (-INF if x == ZERO else F(math.nan))


_SMALLEST, _SCALE, _SHIFT = F(2.0**-126), F(2.0**23), F(23 * math.log(2))


@exact
def log(a: Any) -> Any:
    """The natural logarithm."""
    small = a < _SMALLEST
    return _normal_log(a * _SCALE if small else a) - (_SHIFT if small else ZERO)


@exact
def log1p(a: Any) -> Any:
    """`log(1 + a)`, corrected for what the sum loses."""
    one_more = ONE + a
    lost = a - (one_more - ONE)
    fixed = log(one_more) + lost / one_more
    return fixed if (a < INF) & (a > -ONE) & (a != ZERO) else (-INF if a == -ONE else a if a > -ONE else NAN)


_LEAST_CHANGE = F(-20)
_X2, _X3, _X4, _X5, _X6 = F(0.49999997), F(0.16666539), F(0.041667223), F(0.00836718), F(0.0013882394)


@exact
def expm1(a: Any) -> Any:
    """`exp(a) - 1` without cancellation: `2ⁿ (exp(r) - 1) + (2ⁿ - 1)`."""
    y = _LEAST_CHANGE if a < _LEAST_CHANGE else a
    y = _HIGHEST if y > _HIGHEST else y
    n = y * _LOG2E + _ROUND
    power = I32(F(n).view(I32) << I32(23)).view(F)  # 2ⁿ / 2
    n = n - _ROUND
    r = y - n * _LN2_HIGH - n * _LN2_LOW
    p = _X6 * r + _X5
    p = p * r + _X4
    p = p * r + _X3
    p = p * r + _X2
    p = p * (r * r) + r
    result = TWO * (p * power + (power - HALF))
    return a if abs(a) < F(1e-7) else result


_T1, _T2, _T3, _T4, _T5 = F(-0.33333284), F(0.13331491), F(-0.053743497), F(0.020650582), F(-0.0057170405)
_NEAR = F(0.625)


@exact
def tanh(a: Any) -> Any:
    """The hyperbolic tangent: a series near 0, `1 - 2 / (exp(2 |a|) + 1)` elsewhere."""
    x = abs(a)
    u = x * x
    p = _T5 * u + _T4
    p = p * u + _T3
    p = p * u + _T2
    p = p * u + _T1
    near = a + a * (p * u)
    far = ONE - TWO / (exp(x + x) + ONE)
    return blend(x < _NEAR, near, -far if a < ZERO else far)


_R0, _R1, _R2, _R3 = F(1.1283791), F(-0.37612626), F(0.11283585), F(-0.026853811)
_R4, _R5, _R6 = F(0.0051883277), F(-0.0008010193), F(7.853859e-05)
_S0, _S1, _S2, _S3 = F(0.9861272), F(-1.0482104), F(0.7925943), F(-0.43167913)
_S4, _S5, _S6, _S7 = F(0.16413338), F(-0.040998083), F(0.0060051107), F(-0.00038888294)
_FAR = F(4)


@exact
def erf(a: Any) -> Any:
    """The error function: its series up to 1, `1 - exp(-a²) · polynomial` beyond."""
    u = a * a
    p = _R6 * u + _R5
    p = p * u + _R4
    p = p * u + _R3
    p = p * u + _R2
    p = p * u + _R1
    p = p * u + _R0
    x = abs(a)
    y = _FAR if x > _FAR else x
    q = _S7 * y + _S6
    q = q * y + _S5
    q = q * y + _S4
    q = q * y + _S3
    q = q * y + _S2
    q = q * y + _S1
    q = q * y + _S0
    far = ONE - q * exp(-a * a)
    return blend(x < ONE, p * a, -far if a < ZERO else far)


_SLOW = F(0.4)
_N1, _N2, _N3, _N4 = F(0.15718105), F(0.18471749), F(0.026902039), F(0.3149375)
_N5, _N6, _N7 = F(-0.22987689), F(0.043294325), F(0.0028445323)


@exact
def normal_cdf(x: Any) -> Any:
    """`Φ(x) = (1 + erf(x / √2)) / 2` to 1e-7, and small values better.

    `Φ(-|x|) / exp(-x² / 2)` is almost a polynomial in `1 / (1 + 0.4 |x|)`; this is the best one of degree 7.
    """
    k = ONE / (ONE + _SLOW * abs(x))
    p = _N7 * k + _N6
    p = p * k + _N5
    p = p * k + _N4
    p = p * k + _N3
    p = p * k + _N2
    p = p * k + _N1
    tail = p * k * exp(x * x * -HALF)
    return tail if x < ZERO else ONE - tail


_MIX_1, _MIX_2, _16, _15 = np.uint32(0x21F0AAAD), np.uint32(0x735A2D97), np.uint32(16), np.uint32(15)


@exact
def _mixed(number: Any, half: Any) -> Any:
    number = np.uint32(number ^ half)
    number = np.uint32(number ^ np.uint32(number >> _16))
    number = np.uint32(number * _MIX_1)
    number = np.uint32(number ^ np.uint32(number >> _15))
    number = np.uint32(number * _MIX_2)
    return np.uint32(number ^ np.uint32(number >> _15))


@exact
def hashed(number: Any, low: Any, high: Any) -> Any:
    """What minigrad.random.hashed gives for a uint32, the key in two halves."""
    return _mixed(_mixed(number, low), high)


@exact
def _plus_word(a: Any, b: Any) -> Any:
    """A sum of 32 bits. As a function of its own it stays one; within `kept` LLVM makes it one of 64."""
    return np.uint32(a + b)


@exact
def kept(element: Any, p: Any, key: Any, start: Any) -> Any:
    """Whether dropout keeps an element, by its number and the step's key: what minigrad.random.hashed decides."""
    word = np.int64(0xFFFFFFFF)
    number = _plus_word(np.uint32(start), np.uint32(element))
    low, high = np.uint32(np.int64(key) & word), np.uint32((np.int64(key) >> np.int64(32)) & word)
    threshold = min(np.int64(np.float64(p) * 4294967296.0), word)
    return hashed(number, low, high) >= np.uint32(threshold)


@exact
def index(number: Any, size: Any) -> Any:
    """A place along an axis from one that may count from the end; -1 if there is no such place."""
    place = number + size if number < 0 else number
    return place if (place >= 0) & (place < size) else np.int64(-1)


def _scalar(function: Any) -> Any:
    """A function of the C library, an element at a time."""

    @exact
    def single(a: Any) -> Any:
        return F(function(a))

    return single


sqrt, floor, ceil, trunc = map(_scalar, (math.sqrt, np.floor, np.ceil, np.trunc))
sin, cos, tan, log2, log10 = map(_scalar, (math.sin, math.cos, math.tan, math.log2, math.log10))
arcsin, arccos, arctan = map(_scalar, (math.asin, math.acos, math.atan))
sinh, cosh, arcsinh, arccosh, arctanh = map(_scalar, (math.sinh, math.cosh, math.asinh, math.acosh, math.atanh))


@exact
def power(a: Any, b: Any) -> Any:
    """`a ** b`"""
    return F(np.float64(a) ** np.float64(b))


@exact
def arctan2(a: Any, b: Any) -> Any:
    """The angle of a point."""
    return F(math.atan2(a, b))


@exact
def hypot(a: Any, b: Any) -> Any:
    """`sqrt(a² + b²)`"""
    return F(math.sqrt(np.float64(a) * np.float64(a) + np.float64(b) * np.float64(b)))
