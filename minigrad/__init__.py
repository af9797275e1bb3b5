"""minigrad: autograd with an engine to read in an afternoon. `import minigrad as mg`, as with NumPy and PyTorch."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from numpy import bool_, float16, float32, float64, int8, int16, int32, int64, uint8

from . import autograd
from .engine.convert import from_dlpack, get_default_dtype, set_default_dtype, tensor
from .engine.elsewhere import NAMES
from .engine.errors import MinigradError, nearest
from .engine.modes import debug, enable_grad, is_grad_enabled, no_grad
from .engine.op import op
from .engine.tensor import Tensor
from .functions import *  # noqa: F403
from .functions import __all__ as _functions
from .ops import products as _products
from .ops.creation import arange, empty, eye, full, full_like, linspace, ones, ones_like, zeros, zeros_like
from .ops.random import manual_seed, rand, randint, randn, randperm
from .saving import load, save
from .transforms import grad, hessian, jacobian, jvp, recompute, value_and_grad, vjp

if TYPE_CHECKING:
    from . import check as check
    from . import data as data
    from . import decode as decode
    from . import nn as nn
    from . import optim as optim
    from . import train as train
    from . import viz as viz
    from . import zoo as zoo

__version__ = "0.1.0"
_LAZY = {
    "check",
    "data",
    "decode",
    "nn",
    "optim",
    "train",
    "viz",
    "zoo",
}  # loaded when first used, so that importing minigrad stays quick


def _stacked(a: Any, b: Any) -> Any:
    """Load the kernels when the first stacks of matrices are multiplied; they put their own function in this one's place."""
    import_module(f"{__name__}.kernels")
    return _products.stacked(a, b) if _products.stacked is not None else None


if _products.stacked is None:
    _products.stacked = _stacked


if not TYPE_CHECKING:  # a type checker knows what is here

    def __getattr__(name: str) -> Any:
        if name in _LAZY:
            return import_module(f"{__name__}.{name}")
        fix = f"minigrad calls it {NAMES[name]}" if name in NAMES else nearest(name, __all__)
        raise AttributeError(f"module 'minigrad' has no attribute {name!r}: {fix}")

    def __dir__() -> list[str]:
        return sorted({*__all__, *_LAZY, "__doc__", "__file__", "__name__", "__path__", "__version__"})


__all__ = [
    *_functions,
    "MinigradError",
    "Tensor",
    "arange",
    "autograd",
    "bool_",
    "debug",
    "empty",
    "enable_grad",
    "eye",
    "float16",
    "float32",
    "float64",
    "from_dlpack",
    "full",
    "full_like",
    "get_default_dtype",
    "grad",
    "hessian",
    "int16",
    "int32",
    "int64",
    "int8",
    "is_grad_enabled",
    "jacobian",
    "jvp",
    "linspace",
    "load",
    "manual_seed",
    "nn",
    "no_grad",
    "ones",
    "ones_like",
    "op",
    "rand",
    "randint",
    "randn",
    "randperm",
    "recompute",
    "save",
    "set_default_dtype",
    "tensor",
    "uint8",
    "value_and_grad",
    "vjp",
    "zeros",
    "zeros_like",
]
