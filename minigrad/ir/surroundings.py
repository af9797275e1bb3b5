"""What a function refers to besides its arguments: closures, globals, modules, optimisers.

A compiled function is right only as long as these are what they were when it was traced. `look` says what a value is, as
something that can be compared; `sources` says where the arrays are found again at each call.

An object with tensors of its own (a module, an optimiser) says itself what there is to compare, by a method
`compiled_state()` that returns its tensors and anything hashable.
"""

from __future__ import annotations

import dataclasses
import dis
import random
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from ..engine.backend import Array, device_of, is_array
from ..engine.graph import Node
from ..engine.op import PACKAGE
from ..engine.tensor import Tensor

__all__ = [
    "Argument", "Held", "Look", "is_called", "look", "look_at_argument", "random_states", "reads_data", "sources", "together",
]  # fmt: skip

_VALUES = (int, float, complex, str, bytes, bool, np.generic, type(None), type(Ellipsis))
_INEXACT = (float, complex, np.inexact)
_DEPTH = 4  # so deep are nested lists, dicts and objects looked into
# Whose functions and objects do not change: they are not looked into.
_LIBRARIES = {
    "minigrad", "numpy", "cupy", "scipy", "sklearn", "array_api_compat", "torch", "jax", "matplotlib", "pandas", "builtins"
}  # fmt: skip
_FUNCTIONS = (types.FunctionType, types.MethodType)
_MEMBERS = (*_VALUES, list, tuple, dict, set, Tensor, np.ndarray)  # of a class that are looked at as what they are
_content, _owner = attrgetter("cell_contents"), attrgetter("__self__")
Lookup = tuple[Callable[[Any], Any], Any, Any]  # `get(key)`, and what it was
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
    is_settled: bool  # whether it cannot change unless a name does, it becomes another object, or `changes` notes it
    names: Sequence[Lookup] = ()  # what the functions in it look up


def _is_of_library(module: str | None) -> bool:
    return (module or "").partition(".")[0] in _LIBRARIES


@cache
def _names(code: types.CodeType) -> dict[str, None]:
    """The global names that a function, or a function inside it, may look up."""
    found = [i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")]
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return dict.fromkeys([*found, *[name for names in inner for name in names]])


def _lookups(function: Any) -> Iterator[tuple[Callable[[Any], Any], Any]]:
    """What a function refers to besides its arguments: `get(key)` is what a name stands for now."""
    yield from [(_content, cell) for cell in function.__closure__ or ()]
    yield from [(get, function) for get in _defaults if get(function)]
    home, code = function.__globals__, function.__code__
    for name in [name for name in _names(code) if name in home]:
        yield home.get, name
        value = home[name]
        is_namespace = isinstance(value, (types.ModuleType, type))
        if is_namespace and not _is_of_library(value.__module__ if isinstance(value, type) else value.__name__):
            yield from [(vars(value).get, member) for member in {*code.co_names} & {*vars(value)}]


@cache
def reads_data(code: types.CodeType) -> bool:
    """Whether a function, or one inside it, reads `.data` of anything but a global name or `self`, as it does of a Tensor."""
    steps = list(dis.get_instructions(code))
    for before, step in zip(steps, steps[1:]):
        is_read = step.opname == "LOAD_ATTR" and step.argval == "data" and "NULL" not in step.argrepr
        if is_read and before.opname not in ("LOAD_GLOBAL", "LOAD_NAME") and before.argval != "self":
            return True
    if "data" in code.co_consts and not {"getattr", "attrgetter"}.isdisjoint(code.co_names):
        return True
    return any(reads_data(constant) for constant in code.co_consts if isinstance(constant, types.CodeType))


def is_called(function: Any) -> bool:
    """Whether a user's function has a name of its own, or is what a module runs: whether other methods are called is not known."""
    home, _, name = function.__qualname__.rpartition(".")
    is_named = not home or home.endswith("<locals>") or name in ("forward", "__call__")
    return is_named and not function.__code__.co_filename.startswith(PACKAGE)


def random_states(functions: Iterable[Any]) -> list[str]:
    """The states of the random generators of NumPy and Python that functions name: they change when one draws from them."""
    found: dict[Any, None] = {}
    for function in functions:
        for get, key in _lookups(function):
            with suppress(ValueError):  # a variable that is not assigned yet
                value = get(key)
                if isinstance(value, types.ModuleType):
                    by_numpy = value is np.random or value is np and "random" in function.__code__.co_names
                    value = np.random.random if by_numpy else random.random if value is random else None
                owner = getattr(value, "__self__", value)  # their functions are methods of one generator
                if isinstance(owner, (np.random.Generator, np.random.RandomState, random.Random)):
                    found[owner] = None
    return [repr(_state_of(generator)) for generator in found]


def _state_of(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return generator.getstate()
    return generator.get_state() if isinstance(generator, np.random.RandomState) else generator.bit_generator.state


def _look_at_function(function: Any, seen: set[Any]) -> Look:
    """Look at what a function, and the functions that it calls, refer to."""
    inner = getattr(function, "__wrapped__", function)
    found: list[Lookup] = [(_owner, inner, inner.__self__)] if isinstance(inner, types.MethodType) else []
    inner = getattr(inner, "__func__", inner)
    if not hasattr(inner, "__code__"):  # an object that can be called
        return look(inner, _DEPTH, seen)
    for get, key in _lookups(inner) if inner not in seen else ():
        with suppress(ValueError):  # a variable that is not assigned yet
            found.append((get, key, get(key)))
    seen.add(inner)
    found = [lookup for lookup in found if not isinstance(lookup[2], types.ModuleType)]
    inside = together([_look_at_name(value, seen) for _, _, value in found])
    return Look((id(function), inside.state), inside.tensors, inside.is_settled, [*found, *inside.names])


def _look_at_name(value: Any, seen: set[Any]) -> Look:
    """Look at what a name stands for; what is of a library, and says nothing of itself, does not change."""
    is_known = hasattr(value, "compiled_state") or isinstance(value, (Tensor, *_VALUES)) or is_array(value)
    is_fixed = (
        isinstance(value, (type, types.BuiltinFunctionType))
        or not is_known
        and _is_of_library(getattr(value, "__module__", None))
    )
    return Look(id(value), [], True) if is_fixed else look(value, _DEPTH, seen)


def _look_at_class(kind: type, seen: set[Any]) -> Look:
    """Look at what an object finds in its classes: methods, properties, and values."""
    homes = [
        home for home in kind.__mro__ if home.__module__.partition(".")[0] not in sys.stdlib_module_names | _LIBRARIES
    ]
    found = [(vars(home).get, name, x) for home in homes for name, x in vars(home).items()]
    found = [(get, name, x) for get, name, x in found if isinstance(x, _MEMBERS) and not name.startswith("__")]
    methods = [getattr(x, "fget", getattr(x, "__func__", x)) for home in homes for x in vars(home).values()]
    looks = [_look_at_function(f, seen) for f in methods if isinstance(f, _FUNCTIONS)]
    inside = together([*looks, *[_look_at_name(x, seen) for _, _, x in found]])
    return Look(inside.state, inside.tensors, inside.is_settled, [*found, *inside.names])


def look(value: Any, depth: int = _DEPTH, seen: set[Any] | None = None) -> Look:
    """Look at a value, into lists, dicts and plain objects, and at functions that were not `seen` before."""
    seen = set() if seen is None else seen
    if isinstance(value, _VALUES):  # as text, in which 0.0 is not -0.0, and NaN is NaN
        return Look((type(value), repr(value) if isinstance(value, _INEXACT) else value), [], True)
    if isinstance(value, (set, frozenset)):
        return Look((type(value), frozenset([look(part, depth - 1).state for part in value])), [], False)
    if isinstance(value, Tensor) or is_array(value):
        return Look((id(value), value.shape, value.dtype, _needs_gradient(value)), [value], True)
    if isinstance(value, _FUNCTIONS) or hasattr(value, "__wrapped__"):
        return _look_at_function(value, seen)
    if hasattr(value, "compiled_state") and not isinstance(value, type):
        tensors, state = value.compiled_state()
        classes: list[Any] = getattr(value, "compiled_classes", list)()
        own = Look((id(value), state), tensors, getattr(value, "is_settled", lambda: True)())
        return together([own, *[_look_at_class(kind, seen) for kind in classes]])
    parts = _parts(value) if depth else None
    if parts is None:
        return Look(id(value), [], False)
    which = type(value) if isinstance(value, (list, tuple, dict)) else id(value)
    inside = together([*[look(part, depth - 1, seen) for part in parts.values()], _look_at_class(type(value), seen)])
    is_settled = inside.is_settled and isinstance(value, tuple)
    return Look((which, tuple(parts), inside.state), inside.tensors, is_settled, inside.names)


def together(looks: Sequence[Look]) -> Look:
    """Several values as one."""
    tensors, names = [t for found in looks for t in found.tensors], [x for found in looks for x in found.names]
    return Look(tuple([found.state for found in looks]), tensors, all(found.is_settled for found in looks), names)


def look_at_argument(leaf: Any, seen: set[Any] | None = None) -> Look:
    """Of a tensor or an array that is given, only the kind counts."""
    if not isinstance(leaf, Tensor) and not is_array(leaf):
        return look(leaf, seen=seen)
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


def sources(
    function: Any, leaves: Sequence[Any], seen: set[Any] | None = None
) -> tuple[dict[int, Any], set[Node], set[int]]:
    """For each array that the function may use: how to get it, or the Tensor that holds it, at each call.

    Also the nodes that have a gradient before the call, and the arrays, by identity, whose Tensors need one. The functions
    that it may call, as far as they are not a library's, are added to `seen`.
    """
    given = {i: x for i, x in enumerate(leaves) if isinstance(x, Tensor)}
    held = together([look(function, seen=seen), *[look_at_argument(x, seen) for x in leaves]]).tensors
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
