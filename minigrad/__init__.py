"""minigrad: autograd with an engine to read in an afternoon. `import minigrad as mg`, as with NumPy and PyTorch."""

from importlib import import_module
from math import e, inf, nan, pi
from typing import TYPE_CHECKING, Any

from numpy import (
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

from . import autograd
from . import hooks as _hooks  # noqa: F401  (Tensor gets register_hook)
from . import kernels as _kernels  # noqa: F401  (ops get their kernels)
from .debug import debug
from .engine.modes import enable_grad, is_grad_enabled, no_grad
from .engine.op import op
from .engine.tensor import Tensor
from .errors import MinigradError, missing_name
from .functions import *  # noqa: F403
from .functions import __all__ as _functions
from .interop import from_dlpack, is_hint
from .ops.creation import (
    arange,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    get_default_dtype,
    linspace,
    ones,
    ones_like,
    set_default_dtype,
    tensor,
    zeros,
    zeros_like,
)
from .ops.layout.diagonals import tril_indices, triu_indices
from .ops.random import (
    bernoulli,
    manual_seed,
    multinomial,
    normal,
    rand,
    rand_like,
    randint,
    randn,
    randn_like,
    randperm,
    uniform,
)
from .ops.reductions.sets import allclose, array_equal, array_equiv
from .saving import load, save
from .transforms import grad, hessian, jacrev, recompute, value_and_grad, vjp

if TYPE_CHECKING:
    from . import array_api as array_api
    from . import check as check
    from . import data as data
    from . import decode as decode
    from . import fft as fft
    from . import hub as hub
    from . import linalg as linalg
    from . import metrics as metrics
    from . import nn as nn
    from . import optim as optim
    from . import tokenizers as tokenizers
    from . import train as train
    from . import viz as viz
    from . import zoo as zoo
    from .compile import compile as compile
    from .transforms.batching import vmap as vmap
    from .transforms.custom import custom_vjp as custom_vjp
    from .transforms.custom import fixed_point as fixed_point
    from .transforms.forward import hvp as hvp
    from .transforms.forward import jacfwd as jacfwd
    from .transforms.forward import jacobian as jacobian
    from .transforms.forward import jvp as jvp
    from .transforms.forward import linearize as linearize

__version__ = "0.2.0"
newaxis = None
_LAZY = {
    "array_api",
    "check",
    "compile",
    "data",
    "decode",
    "fft",
    "hub",
    "linalg",
    "metrics",
    "nn",
    "optim",
    "tokenizers",
    "train",
    "viz",
    "zoo",
}  # loaded when first used, so that importing minigrad stays quick
_LAZY_FUNCTIONS = {
    **dict.fromkeys(("hvp", "jacfwd", "jacobian", "jvp", "linearize"), "transforms.forward"),
    "vmap": "transforms.batching",
    **dict.fromkeys(("custom_vjp", "fixed_point"), "transforms.custom"),
}


if not TYPE_CHECKING:  # a type checker knows what is here

    def __getattr__(name: str) -> Any:
        if name in _LAZY:
            return import_module(f"{__name__}.{name}")
        if name in _LAZY_FUNCTIONS:
            globals()[name] = found = getattr(import_module(f"{__name__}.{_LAZY_FUNCTIONS[name]}"), name)
            return found
        if name == "__array_namespace_info__":
            return import_module(f"{__name__}.array_api").__array_namespace_info__
        if name.startswith("__"):
            raise AttributeError(name)
        is_attribute = hasattr(Tensor, name) and not is_hint(name)
        near = f"tensors have it: x.{name}" if is_attribute else _elsewhere(name)
        raise missing_name("minigrad", name, __all__, "arrays", near)

    def _elsewhere(name: str) -> str:
        """Which module has a name that PyTorch or JAX has at its top."""
        for place in ("linalg", "nn.functional", "nn", "optim", "data"):
            if name in dir(import_module(f"{__name__}.{place}")):
                return f"it is mg.{place}.{name}"
        return ""

    def __dir__() -> list[str]:
        return sorted({*__all__, *_LAZY, "__doc__", "__file__", "__name__", "__path__", "__version__"})


__all__ = [
    *_functions,
    "MinigradError",
    "Tensor",
    "allclose",
    "arange",
    "array_equal",
    "array_equiv",
    "autograd",
    "bernoulli",
    "bool_",
    "complex128",
    "complex64",
    "custom_vjp",
    "debug",
    "e",
    "empty",
    "empty_like",
    "enable_grad",
    "eye",
    "fixed_point",
    "float16",
    "float32",
    "float64",
    "from_dlpack",
    "full",
    "full_like",
    "get_default_dtype",
    "grad",
    "hessian",
    "hvp",
    "inf",
    "int16",
    "int32",
    "int64",
    "int8",
    "is_grad_enabled",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linearize",
    "linspace",
    "load",
    "manual_seed",
    "multinomial",
    "nan",
    "newaxis",
    "nn",
    "no_grad",
    "normal",
    "ones",
    "ones_like",
    "op",
    "pi",
    "rand",
    "rand_like",
    "randint",
    "randn",
    "randn_like",
    "randperm",
    "recompute",
    "save",
    "set_default_dtype",
    "tensor",
    "tril_indices",
    "triu_indices",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "uniform",
    "value_and_grad",
    "vjp",
    "vmap",
    "zeros",
    "zeros_like",
]
