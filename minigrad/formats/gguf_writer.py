"""Writes GGUF: metadata with types, a table of tensors in float32, and their numbers."""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["gguf_bytes"]

VERSION, ALIGNMENT, FLOAT32 = 3, 32, 0
UINT32, INT32, FLOAT, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9


def gguf_bytes(metadata: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> bytes:
    """The content of a file of llama.cpp; whole numbers are of 32 bits, and so are floats."""
    file = io.BytesIO()
    file.write(b"GGUF" + struct.pack("<IQQ", VERSION, len(tensors), len(metadata)))
    for key, value in metadata.items():
        _text(file, key)
        kind = _kind(value)
        file.write(struct.pack("<I", kind))
        _value(file, kind, value)
    offset = 0
    for name, array in tensors.items():
        _text(file, name)
        file.write(struct.pack(f"<I{array.ndim}QIQ", array.ndim, *array.shape[::-1], FLOAT32, offset))
        offset += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    for array in tensors.values():
        file.write(bytes(-file.tell() % ALIGNMENT))
        file.write(np.ascontiguousarray(array, "<f4").tobytes())
    return file.getvalue()


def _kind(value: Any) -> int:
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return UINT32 if value >= 0 else INT32
    return FLOAT if isinstance(value, float) else STRING if isinstance(value, str) else ARRAY


def _value(file: io.BytesIO, kind: int, value: Any) -> None:
    if kind == STRING:
        _text(file, value)
    elif kind == ARRAY:
        inner = _kind(value[0]) if value else STRING
        inner = INT32 if inner == UINT32 else inner
        file.write(struct.pack("<IQ", inner, len(value)))
        for part in value:
            _value(file, inner, part)
    else:
        file.write(struct.pack({UINT32: "<I", INT32: "<i", FLOAT: "<f", BOOL: "<?"}[kind], value))


def _text(file: io.BytesIO, text: str) -> None:
    content = text.encode()
    file.write(struct.pack("<Q", len(content)) + content)
