"""Safetensors files with numbers in bfloat16, which NumPy does not have: read as float32, which holds them exactly."""

from __future__ import annotations

import numpy as np

_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?", "C64": "<c8",
}  # fmt: skip


def load_widened(content: bytes) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file, by name."""
    from safetensors import deserialize

    return {name: _array(part["dtype"], part["shape"], part["data"]) for name, part in deserialize(content)}


def _array(dtype: str, shape: list[int], data: bytes) -> np.ndarray:
    if dtype != "BF16":
        return np.frombuffer(data, _DTYPES[dtype]).reshape(shape)
    halves = np.frombuffer(data, "<u2").astype(np.uint32)  # bfloat16 is the upper half of a float32
    return (halves << 16).view(np.float32).reshape(shape)
