"""Activation functions as modules, for use in Sequential; the functions themselves are in `minigrad.nn.functional`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ...engine.tensor import Tensor
from ...errors import ShapeError
from ...ops.creation import full, tensor
from .. import functional as F
from ..module import Module, Parameter
from .linear import check_sizes

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
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


class ReLU6(_Activation):
    """`min(max(0, x), 6)`."""

    function = staticmethod(F.relu6)


class Threshold(_Activation):
    """`x` where it is above the threshold, else `value`."""

    function, options = staticmethod(F.threshold), ("threshold", "value")

    def __init__(self, threshold: float, value: float):
        self.threshold, self.value = threshold, value


class LeakyReLU(_Activation):
    """`x` where it is positive, else `negative_slope * x`."""

    function, options = staticmethod(F.leaky_relu), ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01):
        self.negative_slope = negative_slope


class PReLU(Module):
    """`x` where it is positive, else `weight * x` with slopes that are learned, one or one for each channel: (N, C, …) -> the same."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, dtype: Any = None, device: str | None = None):
        check_sizes(self, num_parameters=num_parameters)
        self.num_parameters = num_parameters
        self.weight = Parameter(full((num_parameters,), init, dtype=dtype, device=device))

    def forward(self, input: Any) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class RReLU(Module):
    """`x` where it is positive, else `slope * x`: a random slope for each element in training, else their mean."""

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3):
        self.lower, self.upper = lower, upper

    def forward(self, input: Any) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}"


class ELU(_Activation):
    """`x` where it is positive, else `alpha * (exp(x) - 1)`."""

    function, options = staticmethod(F.elu), ("alpha",)

    def __init__(self, alpha: float = 1.0):
        self.alpha = alpha


class CELU(_Activation):
    """`x` where it is positive, else `alpha * (exp(x / alpha) - 1)`, which has slope 1 at 0."""

    function, options = staticmethod(F.celu), ("alpha",)

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
    """`log(1 + exp(beta · x)) / beta`, a smooth ReLU."""

    function, options = staticmethod(F.softplus), ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0):
        self.beta, self.threshold = beta, threshold


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


class Hardswish(_Activation):
    """`x * hardsigmoid(x)`."""

    function = staticmethod(F.hardswish)


class Hardshrink(_Activation):
    """`x`, but 0 where it is at most `lambd` away from 0."""

    function, options = staticmethod(F.hardshrink), ("lambd",)

    def __init__(self, lambd: float = 0.5):
        self.lambd = lambd


class Softshrink(_Activation):
    """`x` moved towards 0 by `lambd`, and 0 where it is nearer than that."""

    function, options = staticmethod(F.softshrink), ("lambd",)

    def __init__(self, lambd: float = 0.5):
        self.lambd = lambd


class Tanhshrink(_Activation):
    """`x - tanh(x)`."""

    function = staticmethod(F.tanhshrink)


class GLU(_Activation):
    """`a * sigmoid(b)`, where a and b are the halves of `x` along an axis, the last unless given."""

    function, options = staticmethod(F.glu), ("axis",)

    def __init__(self, axis: int = -1):
        self.axis = axis


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


class Softmin(_Activation):
    """`softmax(-x)` along an axis, the last unless given."""

    function, options = staticmethod(F.softmin), ("axis",)

    def __init__(self, axis: int = -1):
        self.axis = axis


class Softmax2d(Module):
    """The softmax over the channels at each place of a picture: (N, C, H, W) or (C, H, W) -> the same."""

    def forward(self, input: Any) -> Tensor:
        x = input if isinstance(input, Tensor) else tensor(input)
        if x.ndim not in (3, 4):
            raise ShapeError("Softmax2d: the input is no picture", "(N, C, H, W) or (C, H, W)", x.shape)
        return F.softmax(x, axis=-3)
