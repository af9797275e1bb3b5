"""The first difference between what was expected and what came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["difference", "shown"]

MANY = 10  # elements of an array that are shown in full


def difference(expected: Any, got: Any, tolerance: float, place: str = "") -> dict[str, str] | None:
    """Where two values first differ, `at` a place, with what was `expected` there and what was `got`; None if they agree.

    Numbers may come as numbers, arrays or tensors, and sequences as lists or tuples.

    >>> difference([1.0, 2.0], [1.0, 2.5], 1e-6)
    {'at': '[1]', 'expected': '2.0', 'got': '2.5'}
    """
    got = _plain(got)
    if expected is None or isinstance(expected, (str, frozenset, set)):
        same = type(got) is type(expected) and got == expected
        return None if same else _told(place, shown(expected), shown(got))
    if isinstance(expected, Mapping):
        return _of_mappings(expected, got, tolerance, place)
    if isinstance(expected, (list, tuple)):
        return _of_sequences(expected, got, tolerance, place)
    return _of_numbers(np.asarray(expected), got, tolerance, place)


def shown(value: Any) -> str:
    """A value in one short line."""
    value = _plain(value)
    if isinstance(value, np.generic) or isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, np.ndarray):
        if value.size > MANY:
            return f"an array of shape {value.shape}"
        return np.array2string(value, precision=6, separator=", ", max_line_width=1000).replace("\n", "")
    if isinstance(value, float):
        return repr(value) if value.is_integer() and abs(value) < 1e9 else f"{value:.8g}"
    if isinstance(value, (list, tuple)):
        inside = ", ".join(map(shown, value[:MANY])) + (", …" if len(value) > MANY else "")
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' * (len(value) == 1)})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{shown(key)}: {shown(inner)}" for key, inner in [*value.items()][:MANY]) + "}"
    if callable(value):
        return str(getattr(value, "__name__", type(value).__name__)).lstrip("_")
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _plain(value: Any) -> Any:
    """A tensor as an array; anything else as it is."""
    if hasattr(value, "requires_grad") and hasattr(value, "detach"):
        return value.detach().numpy()
    return value


def _told(place: str, expected: str, got: str) -> dict[str, str]:
    return {**({"at": place} if place else {}), "expected": expected, "got": got}


def _of_mappings(expected: Mapping[Any, Any], got: Any, tolerance: float, place: str) -> dict[str, str] | None:
    if not isinstance(got, Mapping):
        return _told(place, f"a dict with the keys {shown([*expected])}", shown(got))
    if set(got) != set(expected):
        return _told(place, f"the keys {shown([*expected])}", shown([*got]))
    found = (difference(value, got[key], tolerance, f"{place}[{key!r}]") for key, value in expected.items())
    return next(filter(None, found), None)


def _of_sequences(expected: list[Any] | tuple[Any, ...], got: Any, tolerance: float, place: str) -> Any:
    if isinstance(got, np.ndarray) and got.ndim > 0:
        got = [*got]
    if not isinstance(got, (list, tuple)):
        return _told(place, f"{len(expected)} values: {shown(expected)}", shown(got))
    found = (difference(e, g, tolerance, f"{place}[{i}]") for i, (e, g) in enumerate(zip(expected, got)))
    first = next(filter(None, found), None)
    if first is None and len(got) != len(expected):
        return _told(place, f"{len(expected)} values: {shown(expected)}", f"{len(got)}: {shown(got)}")
    return first


def _of_numbers(expected: np.ndarray, got: Any, tolerance: float, place: str) -> dict[str, str] | None:
    try:
        found = np.asarray(got)
        if found.dtype.kind not in "biufc":
            raise TypeError
    except (TypeError, ValueError):
        what = "a number" if expected.ndim == 0 else f"an array of shape {expected.shape}"
        return _told(place, f"{what}: {shown(expected)}", shown(got))
    if found.shape != expected.shape:
        return _told(place, f"the shape {expected.shape}: {shown(expected)}", f"the shape {found.shape}: {shown(got)}")
    if (expected.dtype.kind == "b") != (found.dtype.kind == "b"):
        return _told(place, f"{expected.dtype}: {shown(expected)}", f"{found.dtype}: {shown(got)}")
    if expected.dtype.kind in "biu" and found.dtype.kind in "biu":
        same = found == expected
    else:
        same = np.isclose(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    if same.all():
        return None
    index = tuple(int(i) for i in np.argwhere(~same)[0]) if expected.ndim else ()
    where = f"{place}[{', '.join(map(str, index))}]" if index else place
    return _told(where, shown(expected[index]), shown(found[index]))
