"""A layout as settings `key=value` of the command."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from ..errors import ArgumentError
from .mesh import Layout

__all__ = ["KEYS", "fitting", "layout_from", "parted"]

KEYS = tuple(field.name for field in dataclasses.fields(Layout))


def parted(settings: Mapping[str, Any], known: Collection[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings that are the model's, whose names are `known`, and those of a layout."""
    ours = {key: value for key, value in settings.items() if key in KEYS and key not in known}
    return {key: value for key, value in settings.items() if key not in ours}, ours


def layout_from(settings: Mapping[str, Any]) -> Layout | None:
    """The layout that settings say; None if they say nothing.

    >>> layout_from({"tensor": "2", "stages": "3,1", "pipeline": "2"}).stages
    (3, 1)
    """
    if not settings:
        return None
    return Layout(**{key: _value(key, value) for key, value in settings.items()})


def _value(key: str, value: Any) -> Any:
    if not isinstance(value, str):
        return tuple(value) if key == "stages" and value is not None else value
    text = value.strip()
    try:
        if key == "stages":
            return tuple(int(part) for part in text.split(","))
        if key in ("recompute", "sequence"):
            return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[text.lower()]
        return text if key == "schedule" else int(text)
    except (KeyError, ValueError):
        expected = {"stages": "counts such as 3,1", "recompute": "true or false", "sequence": "true or false"}
        raise ArgumentError(f"{key}={value} cannot be used", expected.get(key, "a whole number"), repr(value)) from None


def fitting(layout: Layout, ranks: int) -> Layout:
    """The layout that a run had, or data parallelism alone if the ranks do not factor so."""
    return Layout(shard=layout.shard if ranks > 1 else 0) if ranks % layout.model_size else layout
