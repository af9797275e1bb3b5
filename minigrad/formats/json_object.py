"""JSON from a file that may be anything: one object, without a name twice."""

from __future__ import annotations

import json
from typing import Any

from ..errors import CheckpointError
from .mapped_file import MappedFile

__all__ = ["json_object"]


def json_object(file: MappedFile, text: str) -> dict[str, Any]:
    """The object that is described by a part of a file."""

    def no_name_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in pairs:
            if name in found:
                raise file.error("has a name twice", got=repr(name))
            found[name] = value
        return found

    try:
        value = json.loads(text, object_pairs_hook=no_name_twice)
    except CheckpointError:
        raise
    except (RecursionError, ValueError) as error:
        raise file.error("is not whole, or no safetensors file: what should be JSON is not", got=str(error)) from None
    if not isinstance(value, dict):
        raise file.error("has no JSON object where it should", "{…}", repr(text[:20]))
    return value
