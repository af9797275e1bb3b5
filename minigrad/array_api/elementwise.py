"""Functions of one or two arrays, element by element: our ops, under the standard's names and signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import functions as f
from ..engine.tensor import Tensor
from ..fft import Spectrum
from .arrays import writable

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "clip",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "divide",
    "equal",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "real",
    "reciprocal",
    "remainder",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "trunc",
]

# What the standard calls an op of ours, if not by its own name.
NAMES = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atan2": "arctan2",
    "atanh": "arctanh", "pow": "power",
}  # fmt: skip


def _one(name: str) -> Callable[[Any], Tensor]:
    ours = getattr(f, NAMES.get(name, name))

    def function(x: Tensor, /) -> Tensor:
        return ours(x)

    return _named(function, name, ours)


def _two(name: str) -> Callable[[Any, Any], Tensor]:
    ours = getattr(f, NAMES.get(name, name))

    def function(x1: Any, x2: Any, /) -> Tensor:
        return ours(x1, x2)

    return _named(function, name, ours)


def _named(function: Callable[..., Tensor], name: str, ours: Callable[..., Any]) -> Callable[..., Tensor]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = ours.__doc__
    return writable(function)


acos = _one("acos")
acosh = _one("acosh")
add = _two("add")
asin = _one("asin")
asinh = _one("asinh")
atan = _one("atan")
atan2 = _two("atan2")
atanh = _one("atanh")
bitwise_and = _two("bitwise_and")
bitwise_invert = _one("bitwise_invert")
bitwise_left_shift = _two("bitwise_left_shift")
bitwise_or = _two("bitwise_or")
bitwise_right_shift = _two("bitwise_right_shift")
bitwise_xor = _two("bitwise_xor")
ceil = _one("ceil")
copysign = _two("copysign")
cos = _one("cos")
cosh = _one("cosh")
divide = _two("divide")
equal = _two("equal")
exp = _one("exp")
expm1 = _one("expm1")
floor = _one("floor")
floor_divide = _two("floor_divide")
greater = _two("greater")
greater_equal = _two("greater_equal")
hypot = _two("hypot")
isfinite = _one("isfinite")
isinf = _one("isinf")
isnan = _one("isnan")
less = _two("less")
less_equal = _two("less_equal")
log = _one("log")
log10 = _one("log10")
log1p = _one("log1p")
log2 = _one("log2")
logaddexp = _two("logaddexp")
logical_and = _two("logical_and")
logical_not = _one("logical_not")
logical_or = _two("logical_or")
logical_xor = _two("logical_xor")
maximum = _two("maximum")
minimum = _two("minimum")
multiply = _two("multiply")
negative = _one("negative")
nextafter = _two("nextafter")
not_equal = _two("not_equal")
positive = _one("positive")
pow = _two("pow")
reciprocal = _one("reciprocal")
remainder = _two("remainder")
round = _one("round")
sign = _one("sign")
signbit = _one("signbit")
sin = _one("sin")
sinh = _one("sinh")
sqrt = _one("sqrt")
square = _one("square")
subtract = _two("subtract")
tan = _one("tan")
tanh = _one("tanh")
trunc = _one("trunc")


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """`x`, but never below `min` nor above `max`, in the dtype of `x`."""
    return f.clip(x, min, max).to(dtype=x.dtype)


@writable
def abs(x: Any, /) -> Tensor:
    """`|x|`, also of a `Spectrum`, the complex numbers that a Fourier transform gives where a gradient is needed."""
    return f.abs(x) if isinstance(x, Tensor) else x.__abs__()


def conj(x: Any, /) -> Any:
    """The complex conjugate; real numbers stay as they are."""
    return x.conj() if isinstance(x, Spectrum) else f.conj(x)


def real(x: Any, /) -> Tensor:
    """The real part."""
    return x.real if isinstance(x, Spectrum) else f.real(x)


def imag(x: Any, /) -> Tensor:
    """The imaginary part, of real numbers 0."""
    return x.imag if isinstance(x, Spectrum) else f.imag(x)
