"""What a function refers to besides its arguments: closures, globals, modules, optimisers.

A compiled function is right only as long as these are what they were when it was traced. `fingerprint` says what they are,
as something that can be compared; `sources` says where the arrays in them are found again at each call.

An object with tensors of its own (a module, an optimiser) says itself what there is to compare, by a method
`compiled_state()` that returns its tensors and anything hashable.
"""

from __future__ import annotations

import dataclasses
import dis
import types
from collections.abc import Callable, Iterator
from typing import Any

from ..engine.backend import Array, is_array
from ..engine.tensor import Tensor

__all__ = ["Surroundings", "fingerprint_of", "is_settled", "tensors_in"]

_VALUES = (int, float, complex, str, bytes, bool, type(None), type(Ellipsis))
_DEPTH = 4  # so deep are nested lists, dicts and objects looked into
_LIBRARIES = ("minigrad", "numpy", "cupy", "builtins")


class Surroundings:
    """The names that a function, and the functions it calls, look up."""

    def __init__(self, function: Callable[..., Any]):
        self.lookups: list[Callable[[], Any]] = []
        self._seen: set[int] = set()
        self._add_function(function)

    def _add_function(self, function: Any) -> None:
        function = getattr(function, "__wrapped__", function)
        if isinstance(function, types.MethodType):
            self.lookups.append(lambda: function.__self__)
            function = function.__func__
        code = getattr(function, "__code__", None)
        if code is None:
            if callable(function) and not isinstance(function, type):
                self.lookups.append(lambda: function)
            return
        if id(code) in self._seen:
            return
        self._seen.add(id(code))
        for cell in function.__closure__ or ():
            self._add(_in_cell(cell))
        for name in dict.fromkeys(_names(code)):
            self._add(_in_globals(function.__globals__, name))
        if function.__defaults__ or function.__kwdefaults__:
            self._add(lambda: (function.__defaults__, function.__kwdefaults__))

    def _add(self, look: Callable[[], Any]) -> None:
        value = look()
        if value is _MISSING or isinstance(value, (types.ModuleType, types.BuiltinFunctionType)):
            return
        if (
            isinstance(value, type)
            or (getattr(value, "__module__", None) or "").partition(".")[0] in _LIBRARIES
            and not (hasattr(value, "compiled_state") or isinstance(value, (Tensor, *_VALUES)) or is_array(value))
        ):
            return
        self.lookups.append(look)
        if isinstance(value, (types.FunctionType, types.MethodType)) or hasattr(value, "__wrapped__"):
            self._add_function(value)
        for function in getattr(value, "compiled_functions", tuple)():
            self._add_function(function)

    def objects(self) -> list[Any]:
        """What the names stand for now."""
        return [look() for look in self.lookups]

    def fingerprint(self) -> tuple[Any, ...]:
        """Changes whenever what the names stand for does."""
        return tuple([fingerprint_of(value, _DEPTH) for value in self.objects()])

    def tensors_only(self) -> Iterator[Tensor]:
        """All Tensors that can be reached."""
        return (t for t in self.tensors() if isinstance(t, Tensor))

    def tensors(self) -> Iterator[Tensor | Array]:
        """All tensors and arrays that can be reached."""
        for value in self.objects():
            yield from tensors_in(value, _DEPTH)


_MISSING = object()


def _in_cell(cell: Any) -> Callable[[], Any]:
    def look() -> Any:
        try:
            return cell.cell_contents
        except ValueError:  # not yet assigned
            return _MISSING

    return look


def _in_globals(scope: dict[str, Any], name: str) -> Callable[[], Any]:
    return lambda: scope.get(name, _MISSING)


def _names(code: types.CodeType) -> Iterator[str]:
    """The global names that a function, or a function inside it, may look up."""
    yield from (i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def fingerprint_of(value: Any, depth: int = _DEPTH) -> Any:
    """What there is to compare of a value; it can be hashed."""
    if isinstance(value, _VALUES):
        return type(value), value
    if isinstance(value, Tensor):
        return id(value), value.shape, value.dtype, value.node is not None
    if is_array(value):
        return id(value), value.shape, value.dtype
    if hasattr(value, "compiled_state"):
        return id(value), value.compiled_state()[1]
    if depth and isinstance(value, (list, tuple)):
        return type(value), tuple([fingerprint_of(part, depth - 1) for part in value])
    if depth and isinstance(value, dict):
        return type(value), tuple([(k, fingerprint_of(part, depth - 1)) for k, part in value.items()])
    if (
        depth
        and (dataclasses.is_dataclass(value) or type(value).__module__ not in _LIBRARIES)
        and hasattr(value, "__dict__")
    ):
        if isinstance(value, (types.FunctionType, types.ModuleType, type)):
            return id(value)
        return id(value), fingerprint_of(vars(value), depth - 1)
    return id(value)


def is_settled(value: Any) -> bool:
    """Whether a value cannot change without becoming another object, or being noted in `changes`."""
    if isinstance(value, (*_VALUES, Tensor, types.FunctionType, types.MethodType)) or is_array(value):
        return True
    if isinstance(value, tuple):
        return all(is_settled(part) for part in value)
    return hasattr(value, "compiled_state")


def tensors_in(value: Any, depth: int = _DEPTH) -> Iterator[Tensor | Array]:
    """The tensors and arrays in a value."""
    if isinstance(value, Tensor) or is_array(value):
        yield value
    elif hasattr(value, "compiled_state"):
        yield from value.compiled_state()[0]
    elif depth and isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors_in(part, depth - 1)
    elif depth and isinstance(value, dict):
        for part in value.values():
            yield from tensors_in(part, depth - 1)
    elif depth and hasattr(value, "__dict__") and not isinstance(value, (types.FunctionType, types.ModuleType, type)):
        yield from tensors_in(vars(value), depth - 1)
