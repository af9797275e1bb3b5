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
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from ..engine.backend import Array, device_of, is_array
from ..engine.graph import Node
from ..engine.tensor import Tensor

__all__ = ["Argument", "Held", "Surroundings", "is_settled", "kind_of", "sources"]

_VALUES = (int, float, complex, str, bytes, bool, np.generic, type(None), type(Ellipsis))
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
        for get in _defaults:
            if get(function):
                self._add(get, function)

    def _add(self, get: Callable[[Any], Any], key: Any) -> None:
        try:
            value = get(key)
        except ValueError:  # a variable that is not assigned yet
            return
        if isinstance(value, (types.ModuleType, types.BuiltinFunctionType, type)):
            return
        is_known = hasattr(value, "compiled_state") or isinstance(value, (Tensor, *_VALUES)) or is_array(value)
        if not is_known and (getattr(value, "__module__", None) or "").partition(".")[0] in _LIBRARIES:
            return
        self.lookups.append((get, key))
        if isinstance(value, _FUNCTIONS) or hasattr(value, "__wrapped__"):
            self._add_function(value)
        for function in getattr(value, "compiled_functions", tuple)():
            self._add_function(function)

    def objects(self) -> list[Any]:
        """What the names stand for now."""
        return [get(key) for get, key in self.lookups]

    def fingerprint(self) -> tuple[Any, ...]:
        """Changes whenever what the names stand for does."""
        return tuple([fingerprint_of(value) for value in self.objects()])

    def tensors(self) -> Iterator[Tensor | Array]:
        """All tensors and arrays that can be reached."""
        for value in self.objects():
            yield from tensors_in(value)


def _names(code: types.CodeType) -> Iterator[str]:
    """The global names that a function, or a function inside it, may look up."""
    yield from (i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def kind_of(leaf: Any) -> Any:
    """All of an argument that a trace depends on."""
    if not isinstance(leaf, Tensor) and not is_array(leaf):
        return fingerprint_of(leaf)
    needs_gradient = getattr(leaf, "node", None) is not None
    return isinstance(leaf, Tensor), leaf.shape, leaf.dtype, device_of(_array(leaf)), needs_gradient


def fingerprint_of(value: Any, depth: int = _DEPTH) -> Any:
    """What there is to compare of a value; it can be hashed."""
    if isinstance(value, _VALUES):
        return type(value), value
    if isinstance(value, Tensor) or is_array(value):
        return id(value), value.shape, value.dtype, getattr(value, "node", None) is not None
    if hasattr(value, "compiled_state"):
        return id(value), value.compiled_state()[1]
    parts = _parts(value) if depth else None
    if parts is None:
        return id(value)
    which = type(value) if isinstance(value, (list, tuple, dict)) else id(value)
    return which, tuple([(name, fingerprint_of(part, depth - 1)) for name, part in parts])


def tensors_in(value: Any, depth: int = _DEPTH) -> Iterator[Tensor | Array]:
    """The tensors and arrays in a value."""
    if isinstance(value, Tensor) or is_array(value):
        yield value
    elif hasattr(value, "compiled_state"):
        yield from value.compiled_state()[0]
    elif depth:
        for _, part in _parts(value) or ():
            yield from tensors_in(part, depth - 1)


def _parts(value: Any) -> Iterable[tuple[Any, Any]] | None:
    """What is in a list, a dict or an object, by place or name; None if nothing is looked at."""
    if isinstance(value, (list, tuple)):
        return enumerate(value)
    if isinstance(value, dict):
        return value.items()
    is_plain = type(value).__module__ not in _LIBRARIES or dataclasses.is_dataclass(value)
    return vars(value).items() if is_plain and hasattr(value, "__dict__") and not isinstance(value, type) else None


def is_settled(value: Any) -> bool:
    """Whether a value cannot change without becoming another object, or being noted in `changes`."""
    if isinstance(value, (*_VALUES, Tensor, *_FUNCTIONS)) or is_array(value):
        return True
    if isinstance(value, tuple):
        return all(is_settled(part) for part in value)
    return hasattr(value, "compiled_state") and getattr(value, "is_settled", lambda: True)()


def sources(leaves: Sequence[Any], surroundings: Surroundings) -> tuple[dict[int, Any], set[Node], set[int]]:
    """For each array that the function may use: how to get it, or the Tensor that holds it, at each call.

    Also the nodes that have a gradient before the call, and the arrays, by identity, whose Tensors need one.
    """
    given = {i: x for i, x in enumerate(leaves) if isinstance(x, Tensor)}
    held = [*surroundings.tensors(), *[t for i, x in enumerate(leaves) if i not in given for t in tensors_in(x)]]
    recorded = [(t, t.node) for t in (*held, *given.values()) if isinstance(t, Tensor) and t.node is not None]
    having = {node for _, node in recorded if node.grad is not None}
    found: dict[int, Any] = {id(_array(t)): Held(t) for t in held}
    found |= {id(node.grad): lambda leaves, node=node: node.grad for node in having}
    found |= {id(x.data): Argument(i) for i, x in given.items()}
    return found, having, {id(t.data) for t, _ in recorded}


def _array(x: Any) -> Array:
    return x.data if isinstance(x, Tensor) else x
