"""Ops become operators and methods of Tensor, public functions, and the targets of NumPy's protocols."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ..engine.backend import is_array
from ..engine.convert import tensor
from ..engine.errors import is_whole
from ..engine.op import COMPOSITES, OPS, Composite, Op
from ..engine.protocols import NUMPY
from ..engine.tensor import Tensor
from . import creation
from .arithmetic import where
from .indexing import clean_index, getitem
from .inplace import assign, in_place
from .shape import reshape, swapaxes, transpose

OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide", "mod": "remainder",
    "pow": "power", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
}  # fmt: skip
COMPARISONS = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
}  # fmt: skip
UNARY = {"neg": "negative", "pos": "positive", "abs": "abs", "invert": "bitwise_invert"}
NUMPY_ALIASES = {  # NumPy has two functions for one of ours
    np.amax: "max",
    np.amin: "min",
    np.around: "round",
    np.rint: "round",
    np.invert: "bitwise_invert",
    np.linalg.matmul: "matmul",
    np.linalg.tensordot: "tensordot",
    np.linalg.vecdot: "vecdot",
    np.linalg.outer: "outer",
}
NOT_NUMPY = {"put_along_axis", "svd"}  # of the same name, but NumPy's writes in place, or gives another form
IN_LINALG = {"inv", "solve", "det", "slogdet", "cholesky", "qr", "norm"}
INTERNAL = {"getitem", "setitem", "place", "to_device"}  # reached through x[...], x.to(...)
NOT_METHODS = {  # their natural first argument is not one tensor, or they live elsewhere, or their method is written by hand
    "concatenate", "stack", "meshgrid", "einsum", "tensordot",
    "elu", "selu", "gelu", "silu", "mish", "leaky_relu", "hardtanh", "hardsigmoid", "softplus", "softsign", "logsigmoid", "one_hot",
    "reshape", "transpose", "where",
}  # fmt: skip


def public(function: Op | Composite) -> Callable[..., Any]:
    """The form of an op for `mg.NAME`: arrays, lists and numbers are taken too, and a Tensor always comes back."""
    signature = function.signature

    def call(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], Tensor) and not signature.variadic:
            return function(*args, **kwargs)
        if signature.variadic and isinstance(function, Op):
            first, *rest = args or [kwargs.pop(signature.inputs[0], None)]
            if isinstance(first, (list, tuple)):
                first = [x if isinstance(x, Tensor) else tensor(x) for x in first]
            return function(first, *rest, **kwargs)
        count = len(args) if signature.variadic else len(signature.inputs)
        inputs = (*args[:count], *[v for k, v in kwargs.items() if k in signature.inputs])
        weak = any(isinstance(x, (Tensor, list, tuple)) or is_array(x) for x in inputs)
        given = [_as_input(x, weak) for x in args[:count]] + list(args[count:])
        kwargs = {k: _as_input(v, weak) if k in signature.inputs else v for k, v in kwargs.items()}
        return function(*given, **kwargs)

    call.__name__ = call.__qualname__ = function.name
    call.__doc__ = function.__doc__
    call.__module__ = "minigrad"
    call.__signature__ = function.signature.shown  # type: ignore[attr-defined]
    return call


def _as_input(value: Any, weak: bool) -> Any:
    """A Tensor from an array or a list; numbers stay numbers beside another Tensor, whose dtype and device they then follow."""
    if isinstance(value, (bool, int, float, np.generic)):
        return value if weak else tensor(value)
    return tensor(value) if is_array(value) or isinstance(value, (list, tuple)) else value


def _comparison(op: Op) -> Callable[[Tensor, Any], Any]:
    comparable = (Tensor, int, float, complex, np.generic, np.ndarray, list, tuple)

    def method(self: Tensor, other: Any) -> Any:
        return op(self, other) if isinstance(other, comparable) or is_array(other) else NotImplemented

    return method


def _method(op: Op | Composite) -> Callable[..., Any]:
    short: Callable[[Tensor], Any] = op
    if isinstance(op, Op) and op.arity == 1 and not op.several:
        complete = inspect.Parameter.empty not in op.signature.defaults.values()
        short = op.unary if complete else op

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return op(self, *args, **kwargs) if args or kwargs or op.fused else short(self)

    method.__name__ = op.name
    method.__qualname__ = f"Tensor.{op.name}"
    method.__doc__ = op.__doc__
    method.__signature__ = op.signature.shown  # type: ignore[attr-defined]
    return method


def _reflected(op: Op) -> Callable[..., Any]:
    compute = op.binary
    return lambda self, other: compute(other, self)


def _reshape(self: Tensor, *shape: Any) -> Tensor:
    """The same elements in another shape: `x.reshape(2, 3)` or `x.reshape((2, 3))`; one size may be -1."""
    return reshape(self, shape=tuple(shape[0]) if len(shape) == 1 and not is_whole(shape[0]) else shape)


def _where(self: Tensor, condition: Any, other: Any) -> Tensor:
    """This tensor where the condition holds, else `other`, as PyTorch's method."""
    return where(condition, self, other)


def _transpose(self: Tensor, *axes: Any) -> Tensor:
    """The axes in another order, reversed unless given: `x.transpose(1, 0)` or `x.transpose((1, 0))`."""
    given = axes[0] if len(axes) == 1 and not is_whole(axes[0]) else axes
    return transpose(self, axes=tuple(given) if given else None)


def _reversed_axes(self: Tensor) -> Tensor:
    """The tensor with its axes reversed."""
    return transpose(self)


def _exchanged_axes(self: Tensor) -> Tensor:
    """The tensor with its last two axes exchanged."""
    return swapaxes(self, axis1=-1, axis2=-2)


def attach() -> dict[str, Callable[..., Any]]:
    """Fill Tensor and the table behind NumPy's protocols; return the public functions by name."""
    for name, op in ((name, OPS[ours]) for name, ours in OPERATORS.items()):
        setattr(Tensor, f"__{name}__", op.binary)
        setattr(Tensor, f"__r{name}__", _reflected(op))
        setattr(Tensor, f"__i{name}__", in_place(name, op))
    for name, ours in COMPARISONS.items():
        setattr(Tensor, f"__{name}__", _comparison(OPS[ours]))
    for name, ours in UNARY.items():
        setattr(Tensor, f"__{name}__", OPS[ours].unary)
    Tensor.__getitem__ = lambda self, index: getitem(self, index=clean_index(index))  # type: ignore[method-assign]
    Tensor.__setitem__ = assign  # type: ignore[assignment, method-assign]
    everything: dict[str, Op | Composite] = {**OPS, **COMPOSITES}
    named = {name: f for name, f in everything.items() if not name.startswith("_") and name not in INTERNAL}
    for name, function in named.items():
        if name not in NOT_METHODS:
            setattr(Tensor, name, _method(function))
    for method in (_reshape, _transpose, _where, creation.to):
        setattr(Tensor, method.__name__.lstrip("_"), method)
    for name, getter in (("T", _reversed_axes), ("mT", _exchanged_axes)):
        setattr(Tensor, name, property(getter))
    functions = {name: public(f) for name, f in named.items()}
    NUMPY.update(_counterparts(functions))
    return functions


def _counterparts(functions: dict[str, Callable[..., Any]]) -> dict[Callable[..., Any], Callable[..., Any]]:
    """NumPy's functions and what they call when given a Tensor."""
    table: dict[Any, Any] = {
        getattr(np, name): f for name, f in functions.items() if hasattr(np, name) and name not in NOT_NUMPY
    }
    table.update({getattr(np.linalg, name): functions[name] for name in IN_LINALG})
    table.update({theirs: functions[ours] for theirs, ours in NUMPY_ALIASES.items()})
    table.update(
        {
            np.transpose: functions["transpose"],
            np.matrix_transpose: lambda x: x.mT,
            np.linalg.matrix_transpose: lambda x: x.mT,
        }
    )
    table.update({np.shape: lambda x: x.shape, np.ndim: lambda x: x.ndim, np.size: lambda x: x.size})
    table.update(
        {np.zeros_like: creation.zeros_like, np.ones_like: creation.ones_like, np.full_like: creation.full_like}
    )
    table[np.linalg.svd] = lambda x, full_matrices=True: functions["svd"](x, full_matrices=full_matrices)
    return table
