"""GGUF, the file of llama.cpp: metadata with types, a table of tensors, and their numbers, plain or in quantised blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from .blocks import BLOCKS
from .mapped_file import HEADER_LIMIT, Cursor, MappedFile
from .stored_tensor import DTYPES, StoredTensor, Weights

__all__ = ["read_gguf"]

_TYPES = {
    0: "f32", 1: "f16", 2: "q4_0", 3: "q4_1", 6: "q5_0", 7: "q5_1", 8: "q8_0", 10: "q2_k", 11: "q3_k", 12: "q4_k", 13: "q5_k",
    14: "q6_k", 24: "i8", 25: "i16", 26: "i32", 27: "i64", 28: "f64", 30: "bf16",
}  # fmt: skip
_UNREADABLE = {
    9: "Q8_1", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS",
    29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4", 40: "NVFP4",
}  # fmt: skip
_NUMBERS = {0: "u1", 1: "i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?", 10: "<u8", 11: "<i8", 12: "<f8"}
_STRING, _ARRAY = 8, 9
_DEEPEST = 4  # arrays in arrays


def read_gguf(file: MappedFile) -> Weights:
    """The tensors of a GGUF file, with their axes in the order of NumPy, and its metadata."""
    cursor = Cursor(file, 4, min(file.size, HEADER_LIMIT))
    version = cursor.number("I", "its version")
    if version not in (2, 3):
        order = "a file for big-endian machines" if version in (2 << 24, 3 << 24) else version
        raise file.error(
            "is a GGUF file that cannot be read", "version 2 or 3, little-endian", order, "convert it again"
        )
    tensors, fields = cursor.numbers("QQ", "its header")
    metadata: dict[str, Any] = {}
    for _ in range(_count(cursor, fields, 13, "metadata")):
        key = cursor.sized_text("a key of its metadata")
        if key in metadata:
            raise file.error("has a key twice in its metadata", got=repr(key))
        metadata[key] = _value(cursor, cursor.number("I", f"the type of {key!r}"), key)
    infos = [_info(cursor) for _ in range(_count(cursor, tensors, 24, "tensors"))]
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or alignment not in [8 << n for n in range(20)]:
        raise file.error("has an impossible general.alignment", "8, 16, 32, …", str(alignment)[:20])
    start = -(-cursor.at // alignment) * alignment
    return Weights("gguf", _tensors(file, infos, start, alignment), metadata)


def _count(cursor: Cursor, count: int, least: int, what: str) -> int:
    """How many things follow, each of which takes some bytes at least."""
    if count > cursor.left // least:
        raise cursor.file.error(f"is too short for its {what}", f"{count:,} of them", f"{cursor.left:,} bytes")
    return count


def _value(cursor: Cursor, kind: int, key: str, depth: int = 0) -> Any:
    """A number, a truth value, a text, or a list of one of them."""
    what = f"the value of {key!r}"
    if kind in _NUMBERS:
        return _several(cursor, kind, 1, what)[0]
    if kind == _STRING:
        return cursor.sized_text(what)
    if kind != _ARRAY or depth == _DEEPEST:
        raise cursor.file.error(f"has an unknown type for {what}", "a number, a text or a list", f"type {kind}")
    inner, count = cursor.numbers("IQ", what)
    if inner in _NUMBERS:
        return _several(cursor, inner, count, what)
    if inner == _STRING:
        return [cursor.sized_text(what) for _ in range(_count(cursor, count, 8, what))]
    return [_value(cursor, inner, key, depth + 1) for _ in range(_count(cursor, count, 12, what))]


def _several(cursor: Cursor, kind: int, count: int, what: str) -> list[Any]:
    dtype = np.dtype(_NUMBERS[kind])
    start = cursor.skip(count * dtype.itemsize, what)
    numbers = cursor.file.bytes[start : cursor.at].view("u1" if dtype.kind == "b" else dtype)
    return (numbers != 0 if dtype.kind == "b" else numbers).tolist()


def _info(cursor: Cursor) -> tuple[str, tuple[int, ...], int, int]:
    """The name, shape, type and offset of one tensor; the file has the last axis first."""
    name = cursor.sized_text("the name of a tensor")
    axes = cursor.number("I", f"the shape of {name!r}")
    if axes > 8:
        raise cursor.file.error(f"has too many axes for the tensor {name!r}", "at most 4", axes)
    shape = cursor.numbers("Q" * axes, f"the shape of {name!r}")[::-1]
    kind, offset = cursor.numbers("IQ", f"the place of {name!r}")
    return name, shape, kind, offset


def _tensors(
    file: MappedFile, infos: list[tuple[str, tuple[int, ...], int, int]], start: int, alignment: int
) -> dict[str, StoredTensor]:
    tensors: dict[str, StoredTensor] = {}
    places = []
    for name, shape, kind, offset in infos:
        if name in tensors:
            raise file.error("has a tensor twice", got=repr(name))
        if kind not in _TYPES:
            known = ", ".join(format.upper() for format in _TYPES.values())
            raise file.error(
                f"has the tensor {name!r} in a type that cannot be read",
                known,
                _UNREADABLE.get(kind, f"type {kind}"),
                "take a file with another quantisation, such as Q8_0 or Q4_K",
            )
        if offset % alignment:
            raise file.error(f"has the tensor {name!r} at an odd place", f"a multiple of {alignment}", offset)
        data = _data(file, name, _TYPES[kind], shape, start + offset)
        tensors[name] = StoredTensor(name, _TYPES[kind], shape, data)
        places.append((offset, offset + data.nbytes, name))
    file.check_apart(places)
    return tensors


def _data(file: MappedFile, name: str, format: str, shape: tuple[int, ...], start: int) -> np.ndarray:
    """The numbers, or the bytes of each row of blocks."""
    if format in DTYPES:
        return file.array(name, start, DTYPES[format], shape)
    size, nbytes = BLOCKS[format]
    if not shape or shape[-1] % size:
        raise file.error(f"has a row of {name!r} that is not whole blocks", f"a multiple of {size}", shape)
    file.nbytes(name, shape, 4)
    return file.array(name, start, "u1", (*shape[:-1], shape[-1] // size * nbytes))
