"""Ops become operators and methods of Tensor, and public functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ..engine.backend import is_array
from ..engine.op import OPS, Op
from ..engine.tensor import Tensor
from ..errors import is_whole
from ..foreign_arrays import is_foreign
from ..signature import Signature
from . import creation
from .composite import COMPOSITES, Composite
from .creation import tensor
from .elementwise.arithmetic import where
from .elementwise.complex_parts import imag, real
from .indexing.getitem import clean_index, getitem
from .indexing.inplace import assign, in_place
from .layout.shape import reshape, swapaxes, transpose

OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide", "mod": "remainder",
    "pow": "power", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}  # fmt: skip
COMPARISONS = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
}  # fmt: skip
UNARY = {"neg": "negative", "pos": "positive", "abs": "abs", "invert": "bitwise_invert"}


def shown(signature: Signature) -> inspect.Signature:
    """As a user calls it: attributes also by position, whatever is required first."""
    kind: Any = inspect.Parameter
    by_place = kind.POSITIONAL_OR_KEYWORD
    inputs = [kind(n, by_place, default=signature.optional.get(n, kind.empty)) for n in signature.inputs]
    if signature.spread:
        inputs[-1] = inputs[-1].replace(kind=kind.VAR_POSITIONAL)
    attributes = [
        kind(n, kind.KEYWORD_ONLY if signature.spread else by_place, default=d) for n, d in signature.defaults.items()
    ]
    return inspect.Signature(sorted(inputs + attributes, key=lambda p: (p.kind, p.default is not p.empty)))


def public(function: Op | Composite) -> Callable[..., Any]:
    """The form of an op for `mg.NAME`: arrays, lists and numbers are taken too, and a Tensor always comes back."""
    signature = function.signature
    beside = (
        len(signature.inputs) if isinstance(function, Composite) else 1
    )  # an op takes a list beside a Tensor itself

    def call(*args: Any, **kwargs: Any) -> Any:
        usual = args and isinstance(args[0], Tensor) and not signature.variadic
        if usual and (beside == 1 or not any(isinstance(x, (list, tuple)) for x in args[1:beside])):
            return function(*args, **kwargs)
        if signature.variadic and not signature.spread:
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
    call.__signature__ = shown(function.signature)  # type: ignore[attr-defined]
    return call


def _as_input(value: Any, weak: bool) -> Any:
    """A Tensor from an array or a list; numbers stay numbers beside another Tensor, whose dtype and device they then follow."""
    if isinstance(value, (bool, int, float, np.generic)):
        return value if weak else tensor(value)
    return (
        tensor(value)
        if isinstance(value, (list, tuple)) or not isinstance(value, Tensor) and is_foreign(value)
        else value
    )


def _comparison(op: Op) -> Callable[[Tensor, Any], Any]:
    comparable = (Tensor, int, float, complex, np.generic, np.ndarray, list, tuple)

    def method(self: Tensor, other: Any) -> Any:
        return op(self, other) if isinstance(other, comparable) or is_foreign(other) else NotImplemented

    return method


def _method(op: Op | Composite) -> Callable[..., Any]:
    short: Callable[[Tensor], Any] = op
    if isinstance(op, Op) and op.arity == 1 and not op.several:
        complete = inspect.Parameter.empty not in op.signature.defaults.values()
        short = op.unary if complete else op

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return op(self, *args, **kwargs) if args or kwargs or op.kernels is not None else short(self)

    method.__name__ = op.name
    method.__qualname__ = f"Tensor.{op.name}"
    method.__doc__ = op.__doc__
    method.__signature__ = shown(op.signature)  # type: ignore[attr-defined]
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
    """Fill Tensor; return the public functions by name."""
    for name, op in ((name, OPS[ours]) for name, ours in OPERATORS.items()):
        setattr(Tensor, f"__{name}__", op.binary)
        setattr(Tensor, f"__r{name}__", _reflected(op))
        setattr(Tensor, f"__i{name}__", in_place(name, op))
    Tensor.__divmod__ = _method(COMPOSITES["divmod"])  # type: ignore[method-assign]
    Tensor.__rdivmod__ = lambda self, other: COMPOSITES["divmod"](other, self)  # type: ignore[method-assign]
    for name, ours in COMPARISONS.items():
        setattr(Tensor, f"__{name}__", _comparison(OPS[ours]))
    for name, ours in UNARY.items():
        setattr(Tensor, f"__{name}__", OPS[ours].unary)
    Tensor.__getitem__ = lambda self, index: getitem(self, index=clean_index(index))  # type: ignore[method-assign]
    Tensor.__setitem__ = assign  # type: ignore[assignment, method-assign]
    everything: dict[str, Op | Composite] = {**OPS, **COMPOSITES}
    named = {name: f for name, f in everything.items() if f.public and not name.startswith("_")}
    for name, function in named.items():
        if function.method:
            setattr(Tensor, name, _method(function))
    for method in (_reshape, _transpose, _where, creation.to, creation.cpu, creation.cuda):
        setattr(Tensor, method.__name__.lstrip("_"), method)
    for name, getter in (("T", _reversed_axes), ("mT", _exchanged_axes), ("real", real), ("imag", imag)):
        setattr(Tensor, name, property(getter))
    return {name: public(f) for name, f in named.items()}
