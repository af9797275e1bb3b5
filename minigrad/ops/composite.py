"""Functions made of ops: their derivatives, of any order, follow from those of the ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..engine.backend import on_device_of
from ..engine.call import EXPLAINED, call
from ..engine.modes import local, notify, reported
from ..engine.op import Function
from ..engine.tensor import Tensor
from ..errors import MinigradError, explain, inside
from ..signature import Signature

COMPOSITES: dict[str, Composite] = {}


class Composite(Function):
    """A function made of ops, with a name, inputs and attributes like those of an op."""

    def __init__(self, function: Callable[..., Any], listed: bool = False, **facts: Any):
        super().__init__(function, Signature(function), facts)
        self.function = function
        self.signature.spread &= not listed

    def __repr__(self) -> str:
        return f"<function {self.name}{self.signature}>"

    def __call__(self, *args: Any, **attrs: Any) -> Any:
        if self.kernels is not None:
            return call(self, args, attrs)
        return self.define(*self.bind(args, attrs))

    def bind(self, args: Sequence[Any], attrs: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        if not self.signature.spread:
            return super().bind(args, attrs)
        count = len(self.signature.inputs) - 1
        inputs, attrs = super().bind([*args[:count], *([args[count:]] if len(args) > count else [])], attrs)
        return [*inputs[:-1], *inputs[-1]], attrs

    def define(self, args: Sequence[Any], attrs: dict[str, Any]) -> Any:
        mode = local.mode
        try:
            for tracer in mode.tracers:
                tracer.entered(self.name, "")
            first = next((x.data for x in args if isinstance(x, Tensor)), None)
            if first is None or type(first) is np.ndarray:
                return self.function(*args, **attrs)
            with on_device_of(first):  # its body may look at arrays outside of any op
                return self.function(*args, **attrs)
        except MinigradError as error:
            reported(self, args, attrs, inside(self.name, mode.scope, error))
            raise
        except EXPLAINED as error:
            raise reported(self, args, attrs, explain(self, args, attrs, mode.scope, error)) from None
        finally:
            for tracer in mode.tracers:
                tracer.left()


def composite(function: Callable[..., Any] | None = None, /, **facts: Any) -> Any:
    """Declare a function made of ops; its inputs stand before `*`, its attributes after.

    One with `*arrays` takes them one by one or, if it is `listed`, in a list, as `concatenate` does.
    """
    if function is None:
        return lambda f: composite(f, **facts)
    result = COMPOSITES[function.__name__.rstrip("_")] = Composite(function, **facts)
    return result


def host_constant(array: np.ndarray) -> np.ndarray:
    """An array made from numbers alone, such as a table of positions: whoever follows every value is told so."""
    notify("created", array)
    return array
