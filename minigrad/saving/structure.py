"""Nested values as named tensors and a description in JSON, and back: what lets one file hold a model and its optimiser.

In the description a tensor is `{"tensor": name}`, a dict `{"dict": [[key, value], …]}`, a list `{"list": […]}`, a tuple
`{"tuple": […]}`, and a number, a text, a truth value or None is itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..engine.backend import is_array
from ..engine.tensor import Tensor
from ..errors import ArgumentError, DtypeError, describe
from ..kernels import Packed

__all__ = ["described", "restored"]


def described(value: Any, name: str, tensors: dict[str, Any]) -> Any:
    """The description of a value, whose tensors are added to `tensors`; an object is described by its `state_dict()`."""
    if not isinstance(value, Tensor) and hasattr(value, "state_dict"):
        value = value.state_dict()
    if isinstance(value, (Tensor, Packed)) or is_array(value):
        if name in tensors:
            raise ArgumentError(f"save: two tensors would have the name {name!r}", fix="rename one of the keys")
        tensors[name] = value
        return {"tensor": name}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {"dict": [[_key(name, key), described(v, _joined(name, key), tensors)] for key, v in value.items()]}
    if isinstance(value, (list, tuple)):
        parts = [described(part, _joined(name, i), tensors) for i, part in enumerate(value)]
        return {"tuple" if isinstance(value, tuple) else "list": parts}
    raise DtypeError(
        f"save: {name or 'this'!r} cannot be saved",
        "Tensors, arrays, numbers, texts, what has a state_dict(), and dicts, lists and tuples of them",
        describe(value),
    )


def restored(description: Any, take: Callable[[str], Any]) -> Any:
    """The value that was described; `take(name)` gives its tensors. Raises KeyError or ValueError on any other description."""
    if not isinstance(description, dict):
        if isinstance(description, list):
            raise ValueError("a list in the place of a value")
        return description
    ((kind, parts),) = description.items()
    if kind == "tensor":
        return take(parts)
    if kind == "dict":
        return {key: restored(part, take) for key, part in parts}
    if kind in ("list", "tuple"):
        made = [restored(part, take) for part in parts]
        return made if kind == "list" else tuple(made)
    raise ValueError(f"there is no kind {kind!r}")


def _joined(name: str, key: Any) -> str:
    return f"{name}.{key}" if name else str(key)


def _key(name: str, key: Any) -> Any:
    if isinstance(key, bool) or not isinstance(key, (str, int)):
        raise DtypeError(f"save: {key!r} in {name or 'the dict'!r} is no name", "texts or whole numbers", describe(key))
    return key
