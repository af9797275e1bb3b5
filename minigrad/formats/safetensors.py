"""Safetensors: eight bytes with the size of a header, the header in JSON, and the numbers of one tensor after the other."""

from __future__ import annotations

from typing import Any

from .json_object import json_object
from .mapped_file import HEADER_LIMIT, Cursor, MappedFile
from .stored_tensor import DTYPES, StoredTensor, Weights

__all__ = ["read_safetensors"]

_KEYS = {"dtype", "shape", "data_offsets"}


def read_safetensors(file: MappedFile) -> Weights:
    """The tensors of a safetensors file, and its texts as metadata."""
    cursor = Cursor(file)
    size = cursor.number("Q", "the size of its header")
    if size > HEADER_LIMIT:
        raise file.error("is no safetensors file: its header is too large", f"at most {HEADER_LIMIT:,} bytes", size)
    header = json_object(file, cursor.text(size, "its header"))
    notes = header.pop("__metadata__", None)
    notes = {} if notes is None else notes
    if not isinstance(notes, dict) or not all(isinstance(text, str) for text in notes.values()):
        raise file.error("has metadata that are not texts", "{name: text}", type(notes).__name__)
    tensors, places = {}, []
    for name, entry in header.items():
        dtype, shape, (start, end) = _checked(file, name, entry)
        tensors[name] = StoredTensor(name, dtype, shape, file.array(name, cursor.at + start, DTYPES[dtype], shape))
        places.append((start, end, name))
        if tensors[name].data.nbytes != end - start:
            raise file.error(f"has {end - start:,} bytes for {name!r}", f"{tensors[name].data.nbytes:,} for {shape}")
    _check_places(file, places, cursor.left)
    return Weights("safetensors", tensors, notes)


def _checked(file: MappedFile, name: str, entry: Any) -> tuple[str, tuple[int, ...], tuple[int, int]]:
    """The format, shape and place of a tensor."""
    if not isinstance(entry, dict) or entry.keys() != _KEYS:
        raise file.error(f"does not describe the tensor {name!r}", ", ".join(sorted(_KEYS)), str(entry)[:100])
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    format = dtype.lower() if isinstance(dtype, str) and dtype.isupper() else None
    if format not in DTYPES:
        raise file.error(
            f"has the tensor {name!r} in a dtype that cannot be read",
            ", ".join(known.upper() for known in DTYPES),
            dtype,
            "convert it to float32, float16 or bfloat16",
        )
    for numbers in (shape, offsets):
        if not isinstance(numbers, list) or not all(type(n) is int and 0 <= n < 2**63 for n in numbers):
            raise file.error(f"does not describe the tensor {name!r}", "lists of whole numbers", str(numbers)[:100])
    if len(offsets) != 2 or offsets[0] > offsets[1]:
        raise file.error(f"has no place for the tensor {name!r}", "[start, end]", offsets[:5])
    return format, tuple(shape), (offsets[0], offsets[1])


def _check_places(file: MappedFile, places: list[tuple[int, int, str]], size: int) -> None:
    """The tensors must fill what is behind the header, one after the other, as the format demands."""
    file.check_apart(places)
    used = sum(end - start for start, end, _ in places)
    if used != size:
        raise file.error("is not a whole safetensors file", f"{used:,} bytes behind the header", f"{size:,}")
