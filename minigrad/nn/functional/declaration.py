"""The decorator that declares a function of `nn.functional`: once, with its types, in PyTorch's order of arguments.

    @function
    def linear(input: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:

The arguments annotated `TensorLike` are its inputs, everything else is an attribute. Called by its name, the function
takes Tensors, arrays, lists and numbers for its inputs and returns a Tensor. `COMPOSITES` gets the form that maps
arrays to arrays, with the inputs first, like every other function made of ops.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from ...engine.backend import device_of
from ...engine.modes import reported
from ...engine.tensor import Tensor
from ...errors import CallError, MinigradError
from ...kernels import Packed
from ...ops.composite import Composite
from ...ops.composite import composite as as_composite
from ...ops.creation import tensor
from ...signature import unknown_argument
from ..weights.low_rank import LowRank

TensorLike = (
    Any  # a Tensor, an array of NumPy or CuPy, a nested list, or a number; for a weight also a Packed or a LowRank
)
READY = (Tensor, Packed, LowRank)
F = TypeVar("F", bound=Callable[..., Any])


def function(body: F) -> F:
    """Declare a neural-network function."""
    signature = inspect.signature(body)
    is_input = [p.annotation.startswith("TensorLike") for p in signature.parameters.values()]
    inputs = [name for name, is_one in zip(signature.parameters, is_input) if is_one]
    attributes = signature.parameters.keys() - inputs
    composite = _register(body, inputs)
    needed = sum(p.default is p.empty for p in signature.parameters.values())
    by_place = sum(p.kind is not p.KEYWORD_ONLY for p in signature.parameters.values())
    leading = is_input.index(False) if False in is_input else len(is_input)
    usual = by_place if leading == len(inputs) else leading  # of so many by position, only the leading ones are inputs

    @wraps(body)
    def call(*args: Any, **kwargs: Any) -> Any:
        is_usual = len(args) <= leading and kwargs.keys() <= attributes if kwargs else len(args) <= usual
        if is_usual and needed <= len(args):
            for x in args if len(args) <= leading else args[:leading]:
                if x is not None and not isinstance(x, READY):
                    break
            else:  # the usual case, without looking further
                try:
                    return body(*args, **kwargs)
                except MinigradError as error:
                    reported(composite, args, kwargs, error)
                    raise
        given = [as_tensor(x) if is_one else x for x, is_one in zip(args, is_input)]
        named = {name: as_tensor(x) if name in inputs else x for name, x in kwargs.items()}
        try:
            return body(*given, *args[len(given) :], **named)
        except MinigradError as error:
            reported(composite, given, named, error)
            raise
        except TypeError:
            if problem := _misfit(body.__name__, signature, args, kwargs):
                raise problem from None
            raise

    return call  # type: ignore[return-value]


def _register(body: Callable[..., Any], inputs: list[str]) -> Composite:
    """Enter the function into `COMPOSITES`, its inputs before `*` and its attributes after."""
    parameters = inspect.signature(body).parameters

    @wraps(body)
    def core(*given: Any, **attributes: Any) -> Any:
        return body(**dict(zip(inputs, given)), **attributes)

    first = [parameters[name] for name in inputs]
    rest = [p.replace(kind=p.KEYWORD_ONLY) for name, p in parameters.items() if name not in inputs]
    core.__signature__ = inspect.Signature(first + rest)  # type: ignore[attr-defined]
    return as_composite(core)


def as_constant(value: Any) -> Any:
    """The same values, through which no gradient goes back."""
    return value.detach() if isinstance(value, Tensor) else value


def constant_like(values: Any, model: Any) -> Any:
    """A constant of these values on the device of `model`; an array if that is one."""
    is_tensor = isinstance(model, Tensor)
    made = tensor(values, device=device_of(model.data if is_tensor else model))
    return made if is_tensor else made.data


def as_tensor(value: Any) -> Any:
    """A Tensor, a weight of another kind or None as it is, anything else as a Tensor."""
    return value if value is None or isinstance(value, READY) else tensor(value)


def _misfit(name: str, signature: inspect.Signature, args: Any, kwargs: Any) -> CallError | None:
    """The error for arguments that do not fall on those of the function; None if they do."""
    shown = f"{name}({', '.join(signature.parameters)})"
    if unknown := [key for key in kwargs if key not in signature.parameters]:
        return unknown_argument(name, unknown[0], [*signature.parameters])
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        return CallError(f"{name}: {error}", shown, f"{len(args)} by position, {len(kwargs)} by name")
    return None
