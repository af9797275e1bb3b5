"""float32 exp, sigmoid, log and normal distribution without branches or calls, so that loops over them are vectorised; and a hash."""

from __future__ import annotations

import math

import numpy as np

from .compiling import exact

F = np.float32
INF, ZERO, HALF, ONE, TWO = F(math.inf), F(0), F(0.5), F(1), F(2)

_LOG2E = F(math.log2(math.e))
_LN2_HIGH = F(45426 / 65536)  # 16 bits, so that its multiples are exact
_LN2_LOW = F(math.log(2) - 45426 / 65536)
_ROUND = F(1.5 * 2**23 + 126)  # added to a number, it rounds it, and leaves 126 + the integer in the lowest bits
_LOWEST, _HIGHEST = F(-87.5), F(89)
_E2, _E3, _E4, _E5, _E6 = F(0.49999994), F(0.16666521), F(0.04166839), F(0.0083687175), F(0.0013814596)


@exact
def exp(x: np.float32) -> np.float32:
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
def sigmoid(x: np.float32) -> np.float32:
    """`1 / (1 + exp(-x))`"""
    return ONE / (ONE + exp(-x))


_ROOT_HALF = np.int32(0x3F3504F3)  # the bits of √½
_EXPONENT = np.int32(-0x800000)  # all bits but those of the mantissa
_L3, _L4, _L5, _L6 = F(0.3333333), F(-0.2500082), F(0.20001227), F(-0.16623357)
_L7, _L8, _L9, _L10 = F(0.14201759), F(-0.13160183), F(0.12761575), F(-0.07634493)


@exact
def log(x: np.float32) -> np.float32:
    """`log(x)` to 1 unit in the last place, for x that are not subnormal."""
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


_SLOW = F(0.4)
_N1, _N2, _N3, _N4 = F(0.15718105), F(0.18471749), F(0.026902039), F(0.3149375)
_N5, _N6, _N7 = F(-0.22987689), F(0.043294325), F(0.0028445323)


@exact
def normal_cdf(x: np.float32) -> np.float32:
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
def _mixed(number, half):
    number = np.uint32(number ^ half)
    number = np.uint32(number ^ np.uint32(number >> _16))
    number = np.uint32(number * _MIX_1)
    number = np.uint32(number ^ np.uint32(number >> _15))
    number = np.uint32(number * _MIX_2)
    return np.uint32(number ^ np.uint32(number >> _15))


@exact
def hashed(number: np.uint32, low: np.uint32, high: np.uint32) -> np.uint32:
    """What minigrad.random.hashed gives for a uint32, the key in two halves."""
    return _mixed(_mixed(number, low), high)
