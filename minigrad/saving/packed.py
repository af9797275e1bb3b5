"""Packed weights in a safetensors file: a tensor of bytes each, and in the metadata what they stand for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import MinigradError
from ..kernels import Packed

__all__ = ["PACKED", "packed_in", "packed_note"]

PACKED = "minigrad.packed"  # in the metadata: {name: {"format": "q8_0", "shape": [out, in]}, …}


def packed_note(weights: Mapping[str, Packed]) -> str:
    """The text that describes packed weights."""
    return json.dumps({name: {"format": weight.format, "shape": weight.shape} for name, weight in weights.items()})


def packed_in(metadata: Mapping[str, Any], bytes_of: Mapping[str, np.ndarray]) -> dict[str, Packed]:
    """The packed weights that the metadata of a file describe; raises ValueError where they do not fit what is in it."""
    found = json.loads(metadata.get(PACKED, "{}"))
    if not isinstance(found, dict):
        raise ValueError("its packed weights are not described by name")
    return {name: _packed(name, entry, bytes_of) for name, entry in found.items()}


def _packed(name: str, entry: Any, bytes_of: Mapping[str, np.ndarray]) -> Packed:
    if not isinstance(entry, dict) or entry.keys() != {"format", "shape"} or name not in bytes_of:
        raise ValueError(f"the packed weight {name!r} is not described")
    try:
        return Packed(bytes_of[name], str(entry["format"]), entry["shape"])
    except MinigradError as error:
        raise ValueError(f"{name!r} is not packed as it says: {str(error).splitlines()[0]}") from None
