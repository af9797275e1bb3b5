"""Marian's binary models: a table of items with names, types and shapes, their bytes, and the model's options as YAML.

The int8 matrices of a model for fast CPUs ("intgemm") have one multiplier, which lies behind them: a number is `q / multiplier`.
They are stored transposed, with the inputs of each output side by side, but for the embeddings, which are looked up by row.
"""

from __future__ import annotations

import numpy as np

from .flat_yaml import flat_yaml
from .mapped_file import HEADER_LIMIT, Cursor, MappedFile
from .stored_tensor import DTYPES, StoredTensor, Weights

__all__ = ["is_marian", "read_marian"]

_PLAIN = {
    0x101: "i8", 0x102: "i16", 0x104: "i32", 0x108: "i64", 0x201: "u8", 0x202: "u16", 0x204: "u32", 0x208: "u64",
    0x402: "f16", 0x404: "f32", 0x408: "f64",
}  # fmt: skip
_QUANTISED = {0x4101: "i8", 0x4102: "i16"}
_OPTIONS = "special:model.yml"


def is_marian(file: MappedFile) -> bool:
    """Whether a file looks like a model of Marian: it begins with its version, which is 1."""
    return file.starts_with((1).to_bytes(8, "little"))


def read_marian(file: MappedFile) -> Weights:
    """The tensors of a model of Marian, with shapes as Marian uses them, (inputs, outputs), and its options as metadata."""
    cursor = Cursor(file, 8, min(file.size, HEADER_LIMIT))
    count = cursor.number("Q", "the number of its items")
    if count > cursor.left // 32:
        raise file.error("is too short for its items", f"{count:,} of them", f"{cursor.left:,} bytes")
    headers = [cursor.numbers("QQQQ", "its items") for _ in range(count)]
    names = [cursor.text(header[0], "the name of an item").rstrip("\0") for header in headers]
    shapes = [_shape(cursor, axes, name) for (_, _, axes, _), name in zip(headers, names, strict=True)]
    cursor.skip(cursor.number("Q", "its padding"), "its padding")
    cursor.end = file.size
    tensors: dict[str, StoredTensor] = {}
    for name, shape, (_, kind, _, size) in zip(names, shapes, headers, strict=True):
        if name in tensors:
            raise file.error("has an item twice", got=repr(name))
        start = cursor.skip(size, f"the item {name!r}")
        tensors[name] = _tensor(file, name, kind, shape, start)
        if tensors[name].data.nbytes + 4 * (tensors[name].scale is not None) > size:
            raise file.error(f"has too few bytes for the item {name!r}", f"shape {shape}", f"{size:,} bytes")
    options = tensors.pop(_OPTIONS, None)
    text = b"" if options is None else options.data.tobytes().rstrip(b"\0")
    return Weights("marian", tensors, flat_yaml(file, text))


def _shape(cursor: Cursor, axes: int, name: str) -> tuple[int, ...]:
    if axes > 8:
        raise cursor.file.error(f"has too many axes for the item {name!r}", "at most 8", axes)
    return cursor.numbers("i" * axes, f"the shape of {name!r}")


def _tensor(file: MappedFile, name: str, kind: int, shape: tuple[int, ...], start: int) -> StoredTensor:
    if kind in _PLAIN:
        return StoredTensor(name, _PLAIN[kind], shape, file.array(name, start, DTYPES[_PLAIN[kind]], shape))
    if kind not in _QUANTISED or len(shape) != 2:
        raise file.error(
            f"has the item {name!r} in a type that cannot be read",
            "plain numbers, or matrices in intgemm8 or intgemm16",
            f"type {kind:#x}, shape {shape}",
            "convert the model with marian-conv --gemm-type intgemm8, which fits every processor",
        )
    format = _QUANTISED[kind]
    as_rows = "Wemb" in name  # this is also how Marian tells them apart
    data = file.array(name, start, DTYPES[format], shape if as_rows else shape[::-1])
    multiplier = float(file.array(f"{name}, multiplier", start + data.nbytes, "<f4", (1,))[0])
    if not 1e-30 < multiplier < 1e30:  # which leaves out what is not a number, too
        raise file.error(f"has an impossible multiplier for {name!r}", "a positive number", multiplier)
    return StoredTensor(name, format, shape, data if as_rows else data.T, float(np.float32(1 / multiplier)))
