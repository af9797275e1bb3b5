"""Arithmetic, rounding, comparison and choice, element by element. The engine undoes broadcasting."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...engine.op import Op
from ...errors import ArgumentError, describe
from ..creation import astype
from .unary import elementwise, log, sigmoid


def _not_for_booleans(*operands: Any, instead: str) -> tuple[str, str] | None:
    if any(hasattr(x, "dtype") and x.dtype.kind == "b" for x in operands):
        return "numbers", f"{instead}, or x.astype('float32')"
    return None


@elementwise(symbol="+", lowering="a + b")
def add(xp, a, b):
    """`a + b`, as NumPy's."""
    return a + b


add.vjp(a=lambda g: g, b=lambda g: g)


@elementwise(symbol="−", lowering="a - b")
def subtract(xp, a, b):
    """`a - b`, as NumPy's."""
    return a - b


subtract.explain = lambda a, b: _not_for_booleans(a, b, instead="use ^ or logical_xor")
subtract.vjp(a=lambda g: g, b=lambda g: -g)


@elementwise(symbol="×", lowering="a * b")
def multiply(xp, a, b):
    """`a * b`, as NumPy's."""
    return a * b


multiply.vjp(a=lambda g, b: g * b, b=lambda g, a: g * a)


@elementwise(symbol="/", lowering="a / b")
def divide(xp, a, b):
    """`a / b`, as NumPy's true division."""
    return a / b


divide.vjp(a=lambda g, b: g / b, b=lambda g, a, b: -g * (a / b) / b)  # not with `out`, which may be written to


@elementwise
def floor_divide(xp, a, b):
    """`a // b`, as NumPy's; it has no gradient."""
    return a // b


@elementwise
def remainder(xp, a, b):
    """`a % b`, as NumPy's: the result has the sign of `b`."""
    return a % b


remainder.vjp(a=lambda g: g, b=lambda g, a, b: -g * floor_divide(a, b))


@elementwise(symbol="**", lowering="power(a, b)")
def power(xp, a, b):
    """`a ** b`, as NumPy's; a cube is two products, as in PyTorch."""
    is_cube = type(b) in (int, float) and b == 3 and a.dtype.kind == "f"
    return a * a * a if is_cube else a**b


def _power_wrt_base(g, a, b):
    if isinstance(b, (int, float)):
        return where(False, g, 0) if b == 0 else g if b == 1 else g * (b * a) if b == 2 else g * (b * a ** (b - 1))
    # Otherwise b = 0 must stay in the formula, since its own derivative there is not 0.
    flat = ((a == 0) | (a != a)) & (b == 0)
    return where(flat, 0, g * b * a ** where(flat, 1, b - 1.0))  # 1.0: whole numbers of few bits would wrap


def _power_wrt_exponent(g, a, b, out):
    still = (a == 0) & (b >= 0)
    return where(still, 0, g * out * log(astype(where(still, 1, a), dtype=out.dtype)))


def _explain_power(a, b):
    if not (b < 0 if isinstance(b, (int, float)) else (b < 0).any()):
        return None
    return ArgumentError(
        "whole numbers have no negative powers",
        "a floating base",
        f"{describe(a)} ** {describe(b)}",
        "x.astype('float32') ** n",
    )


power.explain = _explain_power
power.vjp(a=_power_wrt_base, b=_power_wrt_exponent)


@elementwise(lowering="-a")
def negative(xp, a):
    """`-a`, as NumPy's."""
    return -a


negative.explain = lambda a: _not_for_booleans(a, instead="use ~ or logical_not")
negative.vjp(a=lambda g: -g)


@elementwise(lowering="a")
def positive(xp, a):
    """`+a`, as NumPy's."""
    return +a


positive.vjp(a=lambda g: g)


@elementwise(lowering="abs(a)")
def abs_(xp, a):
    """`|a|`, as NumPy's; the gradient at 0 is 0."""
    return xp.abs(a)


abs_.vjp(a=lambda g, a: g * sign(a))


@elementwise(lowering="sign(a)")
def sign(xp, a):
    """-1, 0 or 1, as NumPy's; the gradient is 0 everywhere."""
    return xp.sign(a)


@elementwise(lowering="floor(a)")
def floor(xp, a):
    """The next whole number below, as NumPy's; the gradient is 0."""
    return xp.floor(a)


@elementwise(lowering="ceil(a)")
def ceil(xp, a):
    """The next whole number above, as NumPy's; the gradient is 0."""
    return xp.ceil(a)


@elementwise(lowering="trunc(a)")
def trunc(xp, a):
    """The next whole number towards 0, as NumPy's; the gradient is 0."""
    return xp.trunc(a)


@elementwise
def round_(xp, a, *, decimals=0):
    """The nearest number of so many decimals, halves to even, as NumPy's; the gradient is 0."""
    return xp.round(a, decimals)


for _step in (sign, floor, ceil, trunc, round_):
    _step.vjp(a=lambda g: where(False, g, 0))  # g * 0 would turn an infinite gradient into NaN


@elementwise(lowering="a + log(2) if a == b else maximum(a, b) + log1p(exp(-abs(a - b)))")
def logaddexp(xp, a, b):
    """`log(exp(a) + exp(b))` without overflow, as NumPy's."""
    return xp.logaddexp(a, b)


logaddexp.vjp(a=lambda g, a, b: g * sigmoid(a - b), b=lambda g, a, b: g * sigmoid(b - a))


@elementwise(lowering="maximum(a, b)")
def maximum(xp, a, b):
    """The larger of the two, as NumPy's; where they are equal, each gets half the gradient."""
    return xp.maximum(a, b)


maximum.vjp(
    a=lambda g, a, b: where(a < b, 0, where(a == b, g / 2, g)),
    b=lambda g, a, b: where(b < a, 0, where(a == b, g / 2, g)),
)


@elementwise(lowering="minimum(a, b)")
def minimum(xp, a, b):
    """The smaller of the two, as NumPy's; where they are equal, each gets half the gradient."""
    return xp.minimum(a, b)


minimum.vjp(
    a=lambda g, a, b: where(a > b, 0, where(a == b, g / 2, g)),
    b=lambda g, a, b: where(b > a, 0, where(a == b, g / 2, g)),
)


@elementwise
def clip(xp, a, min=None, max=None):
    """`a`, but never below `min` nor above `max`; the gradient passes on the borders, as PyTorch's."""
    if xp is np or min is None and max is None:
        return np.clip(a, min, max) if min is not None or max is not None else +a
    above = a if min is None else xp.maximum(a, min)  # CuPy's clip does not take a number for `a`
    return above if max is None else xp.minimum(above, max)


def _clip_wrt_a(g, a, min, max):
    g = g if min is None else where(a >= min, g, 0)
    return g if max is None else where(a <= max, g, 0)


def _clip_parts(ops, a, min, max):
    above = a if min is None else ops.maximum(a, min)
    return above if max is None else ops.minimum(above, max)


clip.lowering = _clip_parts
clip.vjp(
    a=_clip_wrt_a,
    min=lambda g, a, min, max: where(a < min if max is None else (a < min) & (min < max), g, 0),
    max=lambda g, a, min, max: where(a > max if min is None else (a > max) | (max < min), g, 0),
)


@elementwise(method=False, cost=0, lowering="a if condition else b")
def where(xp, condition, a, b):
    """`a` where the condition holds, else `b`, as NumPy's."""
    return xp.where(xp.asarray(condition), a, b)


where.vjp(a=lambda g, condition: where(condition, g, 0), b=lambda g, condition: where(condition, 0, g))


def _test(name: str, lowering: str, doc: str, symbol: str | None = None) -> Op:
    """An op that answers yes or no, and so has no gradient: NumPy's function of that name."""

    def two(xp: Any, a: Any, b: Any) -> Any:
        return getattr(xp, name)(a, b)

    def one(xp: Any, a: Any) -> Any:
        return getattr(xp, name)(a)

    function = one if name.startswith("is") or name == "logical_not" else two
    function.__name__, function.__doc__ = name, doc
    expects = "whole numbers or booleans" if name.startswith("bitwise") else None
    return elementwise(function, expects=expects, symbol=symbol, lowering=lowering)


equal = _test("equal", "a == b", "`a == b`, as NumPy's.", symbol="=")
not_equal = _test("not_equal", "a != b", "`a != b`, as NumPy's.", symbol="≠")
less = _test("less", "a < b", "`a < b`, as NumPy's.", symbol="<")
less_equal = _test("less_equal", "a <= b", "`a <= b`, as NumPy's.", symbol="≤")
greater = _test("greater", "a > b", "`a > b`, as NumPy's.", symbol=">")
greater_equal = _test("greater_equal", "a >= b", "`a >= b`, as NumPy's.", symbol="≥")
logical_and = _test("logical_and", "a and b", "Whether both are true, as NumPy's.")
logical_or = _test("logical_or", "a or b", "Whether one or both are true, as NumPy's.")
logical_xor = _test("logical_xor", "(not a) != (not b)", "Whether exactly one is true, as NumPy's.")
logical_not = _test("logical_not", "not a", "Whether it is false, as NumPy's.")
bitwise_and = _test("bitwise_and", "a & b", "`a & b`, as NumPy's.")
bitwise_or = _test("bitwise_or", "a | b", "`a | b`, as NumPy's.")
bitwise_xor = _test("bitwise_xor", "a ^ b", "`a ^ b`, as NumPy's.")
isnan = _test("isnan", "a != a", "Whether it is NaN, as NumPy's.")
isinf = _test("isinf", "abs(a) == inf", "Whether it is infinite, as NumPy's.")
isfinite = _test("isfinite", "abs(a) < inf", "Whether it is neither NaN nor infinite, as NumPy's.")


@elementwise(expects="whole numbers or booleans", lowering="~a")
def bitwise_invert(xp, a):
    """`~a`, as NumPy's."""
    return ~a


@elementwise(expects="whole numbers")
def bitwise_left_shift(xp, a, b):
    """`a << b`, as NumPy's."""
    return a << b


@elementwise(expects="whole numbers")
def bitwise_right_shift(xp, a, b):
    """`a >> b`, as NumPy's."""
    return a >> b
