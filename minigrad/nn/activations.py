"""Activation functions as modules, for use in Sequential; the functions themselves are in `minigrad.nn.functional`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ..engine.tensor import Tensor
from . import functional as F
from .module import Module

__all__ = [
    "ELU",
    "GELU",
    "SELU",
    "Hardsigmoid",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "ReLU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Softsign",
    "Tanh",
]


class _Activation(Module):
    """A function as a module; what `options` names are the module's attributes and the function's arguments."""

    function: ClassVar[Callable[..., Tensor]]
    options: ClassVar[tuple[str, ...]] = ()

    def forward(self, input: Any) -> Tensor:
        if not self.options:
            return type(self).function(input)
        return type(self).function(input, **{name: getattr(self, name) for name in self.options})

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self.options)


class ReLU(_Activation):
    """`max(0, x)`."""

    function = staticmethod(F.relu)


class LeakyReLU(_Activation):
    """`x` where it is positive, else `negative_slope * x`."""

    function, options = staticmethod(F.leaky_relu), ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01):
        self.negative_slope = negative_slope


class ELU(_Activation):
    """`x` where it is positive, else `alpha * (exp(x) - 1)`."""

    function, options = staticmethod(F.elu), ("alpha",)

    def __init__(self, alpha: float = 1.0):
        self.alpha = alpha


class SELU(_Activation):
    """ELU with the two constants that keep mean 0 and variance 1."""

    function = staticmethod(F.selu)


class GELU(_Activation):
    """`x * Φ(x)`, with the normal distribution's Φ; `approximate="tanh"` is GPT-2's version of it."""

    function, options = staticmethod(F.gelu), ("approximate",)

    def __init__(self, approximate: str = "none"):
        self.approximate = approximate


class SiLU(_Activation):
    """`x * sigmoid(x)`, also called swish."""

    function = staticmethod(F.silu)


class Mish(_Activation):
    """`x * tanh(softplus(x))`."""

    function = staticmethod(F.mish)


class Tanh(_Activation):
    """The hyperbolic tangent."""

    function = staticmethod(F.tanh)


class Sigmoid(_Activation):
    """`1 / (1 + exp(-x))`."""

    function = staticmethod(F.sigmoid)


class LogSigmoid(_Activation):
    """`log(sigmoid(x))`, without overflow."""

    function = staticmethod(F.logsigmoid)


class Softplus(_Activation):
    """`log(1 + exp(x))`, a smooth ReLU."""

    function = staticmethod(F.softplus)


class Softsign(_Activation):
    """`x / (1 + |x|)`."""

    function = staticmethod(F.softsign)


class Hardtanh(_Activation):
    """`x`, held between `min_val` and `max_val`."""

    function, options = staticmethod(F.hardtanh), ("min_val", "max_val")

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0):
        self.min_val, self.max_val = min_val, max_val


class Hardsigmoid(_Activation):
    """`x / 6 + 1/2`, held between 0 and 1."""

    function = staticmethod(F.hardsigmoid)


class Softmax(_Activation):
    """`exp(x) / sum(exp(x))` along an axis, the last unless given."""

    function, options = staticmethod(F.softmax), ("axis",)

    def __init__(self, axis: int = -1):
        self.axis = axis


class LogSoftmax(_Activation):
    """`log(softmax(x))` along an axis, the last unless given, without overflow."""

    function, options = staticmethod(F.log_softmax), ("axis",)

    def __init__(self, axis: int = -1):
        self.axis = axis
