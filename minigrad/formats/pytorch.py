"""Files of `torch.save`: a pickle that describes tensors, and their storages, in a zip archive or, before 2020, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .mapped_file import HEADER_LIMIT, Cursor, MappedFile
from .pickled import Global, PickledTensor, Unpickler
from .stored_tensor import DTYPES, StoredTensor, Weights
from .zip_directory import stored_members

__all__ = ["is_pytorch", "read_pytorch"]

_MAGIC, _VERSION = 0x1950A86A20F9469CFC6C, 1001  # of files before the zip archive
_VALUES, _DEEPEST, _LONGEST = 200_000, 32, 500  # how many values, levels, and letters of a name there may be


def is_pytorch(file: MappedFile) -> bool:
    """Whether a file looks like one of `torch.save`: a zip archive that begins with data.pkl, or a pickle."""
    if file.starts_with(b"PK\3\4"):
        size = int.from_bytes(file.bytes[26:28].tobytes(), "little")  # of the first member's name
        return file.bytes[30 : 30 + size].tobytes().endswith(b"data.pkl")
    return file.starts_with(b"\x80") and file.bytes[8:9].tobytes() != b"{"  # which a header of safetensors has there


def read_pytorch(file: MappedFile) -> Weights:
    """The tensors that a file of `torch.save` holds in dicts and lists, under names joined by dots; the rest is metadata."""
    value, places = _from_zip(file) if file.starts_with(b"PK") else _from_stream(file)
    tensors: dict[str, StoredTensor] = {}
    metadata: dict[str, Any] = {}
    for name, leaf in _leaves(file, value):
        if name in tensors or name in metadata:
            raise file.error("has a name twice", got=repr(name))
        if isinstance(leaf, PickledTensor):
            tensors[name] = StoredTensor(name, leaf.storage.format, leaf.shape, _data(file, name, leaf, places))
        else:
            metadata[name] = leaf.name if isinstance(leaf, Global) else leaf
    return Weights("pytorch", tensors, metadata)


def _from_zip(file: MappedFile) -> tuple[Any, Mapping[str, tuple[int, int]]]:
    """The value of data.pkl, and the first byte and size of each storage."""
    members = stored_members(file)
    found = [name for name in members if name.rpartition("/")[2] == "data.pkl"]
    if len(found) != 1:
        raise file.error("is not a file of torch.save", "one data.pkl in its zip archive", f"{len(found)} of them")
    folder = found[0].removesuffix("data.pkl")
    start, size = members.get(f"{folder}byteorder", (0, 0))
    if file.bytes[start : start + size].tobytes() == b"big":
        raise file.error("was written on a big-endian machine", fix="save it again on another machine")
    start, size = members[found[0]]
    if size > HEADER_LIMIT:
        raise file.error("has a data.pkl that is too large", f"at most {HEADER_LIMIT:,} bytes", f"{size:,}")
    prefix = f"{folder}data/"
    places = {name.removeprefix(prefix): place for name, place in members.items() if name.startswith(prefix)}
    return Unpickler(Cursor(file, start, start + size)).read(), places


def _from_stream(file: MappedFile) -> tuple[Any, Mapping[str, tuple[int, int]]]:
    """The same from an old file: five pickles, of which the last lists the storages that follow."""
    cursor = Cursor(file)
    unpickler = Unpickler(cursor)
    if unpickler.read() != _MAGIC or unpickler.read() != _VERSION:
        raise file.error("is a pickle, but not one of torch.save")
    system = unpickler.read()
    if not isinstance(system, dict) or system.get("little_endian") is not True:
        raise file.error("was written on a big-endian machine", fix="save it again on another machine")
    value, keys = unpickler.read(), unpickler.read()
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys) or len(set(keys)) < len(keys):
        raise file.error("has no list of its storages")
    used = {leaf.storage.key: leaf.storage for _, leaf in _leaves(file, value) if isinstance(leaf, PickledTensor)}
    places = {}
    for key in keys:
        count = cursor.number("q", f"the storage {key!r}")
        if key not in used or used[key].count != count:
            raise file.error(f"has a storage {key!r} that fits no tensor", got=f"{count:,} numbers")
        size = count * np.dtype(DTYPES[used[key].format]).itemsize
        places[key] = cursor.skip(size, f"the storage {key!r}"), size
    return value, places


def _leaves(file: MappedFile, value: Any) -> Iterator[tuple[str, Any]]:
    """Whatever is no container, with its name. A pickle may contain a list in itself, so depth and number are limited."""
    waiting, seen = [("", value, 0)], 0
    while waiting:
        name, found, depth = waiting.pop()
        if not isinstance(found, (dict, list, tuple)):
            yield name, found
            continue
        seen += len(found)
        if depth == _DEEPEST or seen > _VALUES or len(name) > _LONGEST:
            limits = f"at most {_VALUES:,} values, {_DEEPEST} levels and names of {_LONGEST} letters"
            raise file.error("is nested too deeply", limits, name[:100])
        for key, part in reversed(found.items() if isinstance(found, dict) else list(enumerate(found))):
            waiting.append((f"{name}.{key}"[: _LONGEST + 1] if depth else str(key)[: _LONGEST + 1], part, depth + 1))


def _data(file: MappedFile, name: str, tensor: PickledTensor, places: Mapping[str, tuple[int, int]]) -> np.ndarray:
    """The part of its storage that a tensor shows."""
    storage, shape, strides = tensor.storage, tensor.shape, tensor.strides
    dtype = np.dtype(DTYPES[storage.format])
    start, size = places.get(storage.key, (0, -1))
    if size != storage.count * dtype.itemsize:
        got = "none" if size < 0 else f"{size:,} bytes"
        raise file.error(
            f"has no storage for the tensor {name!r}", f"{storage.count:,} numbers of {storage.format}", got
        )
    numbers = file.nbytes(name, shape, dtype.itemsize) // dtype.itemsize
    last = tensor.offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=False))
    if len(shape) != len(strides) or numbers > storage.count or numbers and last >= storage.count:
        raise file.error(
            f"has a tensor that is larger than its storage: {name!r}",
            f"at most {storage.count:,} numbers",
            f"shape {shape}, strides {strides} from {tensor.offset}",
        )
    if not numbers:
        return np.empty(shape, dtype)
    whole = file.array(name, start, dtype.str, (storage.count,))
    steps = [stride * dtype.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(whole[tensor.offset :], shape, steps, writeable=False)
