"""Nested structures: mappings, lists, tuples, NamedTuples and dataclasses. All that is none of these is a leaf.

>>> from minigrad import tree
>>> tree.map(lambda x: 2 * x, {"a": 1, "b": (2, [3])})
{'a': 2, 'b': (4, [6])}
>>> list(tree.paths({"a": 1, "b": (2, [3])}))
[(('a',), 1), (('b', 0), 2), (('b', 1, 0), 3)]
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

__all__ = ["form", "jsonable", "leaves", "map", "paths", "unflatten"]

IsLeaf = Callable[[Any], bool]


def map(function: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf | None = None) -> Any:
    """The same structure with `function(leaf)` in the place of each leaf; what `is_leaf` is true of is one, whatever it holds."""
    parts = None if is_leaf is not None and is_leaf(tree) else _parts(tree)
    if parts is None:
        return function(tree)
    made = {key: map(function, part, is_leaf) for key, part in parts}
    if isinstance(tree, Mapping):
        return made
    if isinstance(tree, (list, tuple)):
        return type(tree)(*made.values()) if hasattr(tree, "_fields") else type(tree)(made.values())
    return dataclasses.replace(tree, **made)


def paths(
    tree: Any, is_leaf: IsLeaf | None = None, prefix: tuple[Any, ...] = ()
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Each leaf behind its path: the keys, field names and numbers that lead to it."""
    parts = None if is_leaf is not None and is_leaf(tree) else _parts(tree)
    if parts is None:
        yield prefix, tree
    else:
        for key, part in parts:
            yield from paths(part, is_leaf, (*prefix, key))


def leaves(tree: Any, is_leaf: IsLeaf | None = None) -> Iterator[Any]:
    """The leaves, in order."""
    return (leaf for _, leaf in paths(tree, is_leaf))


def unflatten(tree: Any, values: Iterable[Any]) -> Any:
    """The structure of `tree` with the next value in the place of each leaf."""
    following = iter(values)
    return map(lambda _: next(following), tree)


def form(tree: Any) -> Any:
    """The structure without its leaves, as something that can be compared and hashed."""
    parts = _parts(tree)
    return None if parts is None else (type(tree), tuple([(key, form(part)) for key, part in parts]))


def jsonable(value: Any) -> Any:
    """What standard JSON can say of a value: arrays as lists, NaN and infinity as None, and what it does not know as text.

    >>> jsonable({1: (2.0, float("nan"))})
    {'1': [2.0, None]}
    """
    if hasattr(value, "tolist"):  # arrays, tensors, and NumPy's numbers
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _parts(tree: Any) -> list[tuple[Any, Any]] | None:
    """What a container holds, by key, field name or number; None for a leaf."""
    if isinstance(tree, Mapping):
        return list(tree.items())
    if isinstance(tree, (list, tuple)):
        return list(zip(getattr(tree, "_fields", range(len(tree))), tree))
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        return [(field.name, getattr(tree, field.name)) for field in dataclasses.fields(tree) if field.init]
    return None
