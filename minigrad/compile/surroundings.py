"""What a function refers to besides its arguments: closures, globals, modules, optimisers.

A compiled function is right only as long as these are what they were when it was traced. `look` says what a value is, as
something that can be compared; `sources` says where the arrays are found again at each call.

An object with tensors of its own (a module, an optimiser) says itself what there is to compare, by a method
`compiled_state()` that returns its tensors and anything hashable.
"""

from __future__ import annotations

import dataclasses
import dis
import types
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from ..engine.backend import Array, device_of, is_array
from ..engine.graph import Node
from ..engine.tensor import Tensor

__all__ = ["Argument", "Held", "Look", "Surroundings", "look", "look_at_argument", "sources", "together"]

_VALUES = (int, float, complex, str, bytes, bool, np.generic, type(None), type(Ellipsis))
_INEXACT = (float, complex, np.inexact)
_DEPTH = 4  # so deep are nested lists, dicts and objects looked into
_LIBRARIES = ("minigrad", "numpy", "cupy", "builtins")
_FUNCTIONS = (types.FunctionType, types.MethodType)
_content, _owner = attrgetter("cell_contents"), attrgetter("__self__")
_defaults = attrgetter("__defaults__"), attrgetter("__kwdefaults__")


class Argument(NamedTuple):
    """An input that is an argument."""

    position: int

    def __call__(self, leaves: Sequence[Any]) -> Any:
        return leaves[self.position]


class Held(NamedTuple):
    """An input that is always the same array, or is held by the same Tensor."""

    holder: Any

    def __call__(self, leaves: Sequence[Any]) -> Any:
        return self.holder


class Look(NamedTuple):
    """What a compiled function depends on in a value."""

    state: Any  # equal as long as nothing has changed; it can be hashed
    tensors: list[Tensor | Array]  # all that are in it
    is_settled: bool  # whether it cannot change without becoming another object, or being noted in `changes`


class Surroundings:
    """The names that a function, and the functions it calls, look up."""

    def __init__(self, function: Callable[..., Any]):
        self.lookups: list[tuple[Callable[[Any], Any], Any]] = []  # `get(key)` is what a name stands for now
        self._seen: set[int] = set()
        self._add_function(function)

    def _add_function(self, function: Any) -> None:
        function = getattr(function, "__wrapped__", function)
        if isinstance(function, types.MethodType):
            self.lookups.append((_owner, function))
            function = function.__func__
        code = getattr(function, "__code__", None)
        if code is None and callable(function) and not isinstance(function, type):
            self.lookups.append((lambda itself: itself, function))
        if code is None or id(code) in self._seen:
            return
        self._seen.add(id(code))
        for cell in function.__closure__ or ():
            self._add(_content, cell)
        for name in dict.fromkeys(_names(code)):
            if name in function.__globals__:
                self._add(function.__globals__.get, name)
                self._add_members(function.__globals__[name], code)
        for get in _defaults:
            if get(function):
                self._add(get, function)

    def _add_members(self, value: Any, code: types.CodeType) -> None:
        """Of a module or a class that is no library's, the members whose names stand in the code."""
        home = getattr(value, "__module__", None) if isinstance(value, type) else getattr(value, "__name__", None)
        if isinstance(value, (types.ModuleType, type)) and not _is_of_library(home):
            for name in {*code.co_names} & {*vars(value)}:
                self._add(vars(value).get, name)

    def _add(self, get: Callable[[Any], Any], key: Any) -> None:
        try:
            value = get(key)
        except ValueError:  # a variable that is not assigned yet
            return
        if isinstance(value, (types.ModuleType, types.BuiltinFunctionType, type)):
            return
        is_known = hasattr(value, "compiled_state") or isinstance(value, (Tensor, *_VALUES)) or is_array(value)
        if not is_known and _is_of_library(getattr(value, "__module__", None)):
            return
        self.lookups.append((get, key))
        self.follow(value)

    def follow(self, value: Any, depth: int = _DEPTH) -> None:
        """Add the names that a function, the methods of an object, or the functions in it, look up."""
        if isinstance(value, _FUNCTIONS) or hasattr(value, "__wrapped__"):
            self._add_function(value)
        elif hasattr(value, "compiled_functions"):
            for function in value.compiled_functions():
                self._add_function(function)
        elif depth and (parts := _parts(value)) is not None:
            own = () if _is_of_library(type(value).__module__) else vars(type(value)).values()
            for part in (*own, *parts.values()):
                self.follow(part, depth - 1)

    def look(self) -> Look:
        """What the names stand for now."""
        return together([look(get(key)) for get, key in self.lookups])


def _is_of_library(module: str | None) -> bool:
    return (module or "").partition(".")[0] in _LIBRARIES


def _names(code: types.CodeType) -> Iterator[str]:
    """The global names that a function, or a function inside it, may look up."""
    yield from (i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def look(value: Any, depth: int = _DEPTH) -> Look:
    """Look at a value, and into lists, dicts and plain objects."""
    if isinstance(value, _VALUES):  # as text, in which 0.0 is not -0.0, and NaN is NaN
        return Look((type(value), repr(value) if isinstance(value, _INEXACT) else value), [], True)
    if isinstance(value, (set, frozenset)):
        return Look((type(value), frozenset([look(part, depth - 1).state for part in value])), [], False)
    if isinstance(value, Tensor) or is_array(value):
        return Look((id(value), value.shape, value.dtype, _needs_gradient(value)), [value], True)
    if hasattr(value, "compiled_state") and not isinstance(value, type):
        tensors, state = value.compiled_state()
        return Look((id(value), state), tensors, getattr(value, "is_settled", lambda: True)())
    parts = _parts(value) if depth else None
    if parts is None:
        return Look(id(value), [], isinstance(value, _FUNCTIONS))
    which = type(value) if isinstance(value, (list, tuple, dict)) else id(value)
    inside = together([look(part, depth - 1) for part in parts.values()])
    return Look((which, tuple(parts), inside.state), inside.tensors, inside.is_settled and isinstance(value, tuple))


def together(looks: Sequence[Look]) -> Look:
    """Several values as one."""
    tensors = [t for found in looks for t in found.tensors]
    return Look(tuple([found.state for found in looks]), tensors, all(found.is_settled for found in looks))


def look_at_argument(leaf: Any) -> Look:
    """Of a tensor or an array that is given, only the kind counts."""
    if not isinstance(leaf, Tensor) and not is_array(leaf):
        return look(leaf)
    kind = isinstance(leaf, Tensor), leaf.shape, leaf.dtype, device_of(_array(leaf)), _needs_gradient(leaf)
    return Look(kind, [], True)


def _parts(value: Any) -> dict[Any, Any] | None:
    """What is in a list, a dict or an object, by place or name; None if nothing is looked at."""
    if isinstance(value, (list, tuple)):
        return dict(enumerate(value))
    if isinstance(value, dict):
        return value
    if isinstance(value, partial):
        return {"func": value.func, "args": value.args, "keywords": value.keywords}
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()) if hasattr(value, name)]
    if slots and not _is_of_library(type(value).__module__):
        return {name: getattr(value, name) for name in slots} | getattr(value, "__dict__", {})
    is_plain = type(value).__module__ not in _LIBRARIES or dataclasses.is_dataclass(value)
    return vars(value) if is_plain and hasattr(value, "__dict__") and not isinstance(value, type) else None


def sources(leaves: Sequence[Any], surroundings: Surroundings) -> tuple[dict[int, Any], set[Node], set[int]]:
    """For each array that the function may use: how to get it, or the Tensor that holds it, at each call.

    Also the nodes that have a gradient before the call, and the arrays, by identity, whose Tensors need one.
    """
    given = {i: x for i, x in enumerate(leaves) if isinstance(x, Tensor)}
    held = together([surroundings.look(), *[look_at_argument(x) for x in leaves]]).tensors
    recorded = [(t, t.node) for t in (*held, *given.values()) if isinstance(t, Tensor) and t.node is not None]
    having = {node for _, node in recorded if node.grad is not None}
    found: dict[int, Any] = {id(_array(t)): Held(t) for t in held}
    found |= {id(node.grad): lambda leaves, node=node: node.grad for node in having}
    found |= {id(x.data): Argument(i) for i, x in given.items()}
    return found, having, {id(t.data) for t, _ in recorded}


def _needs_gradient(x: Any) -> bool:
    return getattr(x, "node", None) is not None


def _array(x: Any) -> Array:
    return x.data if isinstance(x, Tensor) else x
