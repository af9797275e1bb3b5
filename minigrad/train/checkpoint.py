"""Checkpoints: one safetensors file with a JSON state and a checksum, written so that a crash never leaves half of one.

What is read may come from a stranger, or from a failing disk. So nothing in a file is believed: the checksum is
verified over every byte before anything is parsed, sizes are capped before anything is allocated, and the tensors are
views into the bytes that were read, never larger than them.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..engine.backend import is_array, to_numpy
from ..engine.errors import CheckpointError, DtypeError
from ..engine.tensor import Tensor
from ..saving import write_atomically

if TYPE_CHECKING:
    from ..data import Tokenizer

__all__ = ["Checkpoint", "read_checkpoint", "sync_folder", "write_checkpoint"]

FORMAT = "minigrad-checkpoint-1"
HEADER_LIMIT = 384 * 1024  # bytes of JSON; parsing the worst of it makes about thirty times as many
LARGEST = 2**62  # bytes: what a shape may multiply to, its zeros left out
BLANK = b"0" * 64
_PREFIX = b'{"__metadata__":{"checksum":"'  # so every header begins, and the checksum follows
_SUM = slice(8 + len(_PREFIX), 8 + len(_PREFIX) + len(BLANK))
_NAME = re.compile(r"[^\x00-\x1f\x7f/\\]{1,512}")
_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1", "C64": "<c8",
}  # fmt: skip
_CODES = {np.dtype(dtype): code for code, dtype in _DTYPES.items()}


@dataclass
class Checkpoint:
    """What a file holds: named arrays, and a state of numbers, strings, lists and dicts."""

    tensors: dict[str, np.ndarray]
    state: dict[str, Any]

    @property
    def model(self) -> dict[str, np.ndarray]:
        """The weights that a Trainer saved, for `model.load_state_dict`."""
        return {name.removeprefix("model."): a for name, a in self.tensors.items() if name.startswith("model.")}

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer that a Trainer saved, if it was given one."""
        if "tokenizer" not in self.tensors:
            return None
        from ..data import Tokenizer

        try:
            return Tokenizer.from_json(self.tensors["tokenizer"].tobytes().decode())
        except UnicodeDecodeError:
            raise CheckpointError("checkpoint: its tokenizer is not text", fix="use another checkpoint") from None


def write_checkpoint(path: str | os.PathLike[str], tensors: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    """Write named tensors and a JSON-able state to one file; what was there before stays until the new one is complete."""
    content = _content(tensors, state)
    try:
        write_atomically(path, cast(bytes, content))
        sync_folder(os.path.dirname(os.path.abspath(path)))
    except OSError as error:
        raise CheckpointError(
            f"checkpoint: {os.fspath(path)!r} cannot be written: {error.strerror}",
            fix="what was there before is unchanged; make room on the disk, or choose another folder",
        ) from error


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """The tensors and the state of a checkpoint file, or a CheckpointError that says what is wrong with it.

    The arrays are views of the file's bytes and cannot be written to.
    """
    shown = os.fspath(path)
    if os.path.isdir(path):
        raise CheckpointError(
            f"checkpoint: {shown!r} is a directory",
            "a checkpoint file",
            fix=f"read_checkpoint(find_checkpoint({shown!r}))",
        )
    try:
        return _parse(_bytes_of(path))
    except OSError as error:
        raise CheckpointError(f"checkpoint: {shown!r} cannot be read: {error.strerror}", fix="check the path") from None
    except _Damaged as damage:
        raise CheckpointError(
            f"checkpoint: {shown!r} is damaged or not a checkpoint: {damage}",
            fix=damage.fix,
        ) from None


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Make the names in a folder outlive a power cut, where the system can."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # as some network disks answer
                raise
        finally:
            os.close(handle)


def _content(tensors: Mapping[str, Any], state: Mapping[str, Any]) -> bytearray:
    """The bytes of the file, of which there is one copy: the tensors are put where they belong one after the other."""
    try:
        text = json.dumps(dict(state), separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise DtypeError(
            f"checkpoint: the state is not made of plain values: {error}", fix="numbers, strings, lists, dicts"
        ) from None
    entries: dict[str, Any] = {"__metadata__": {"checksum": BLANK.decode(), "format": FORMAT, "state": text}}
    arrays = {name: _as_array(name, value) for name, value in tensors.items()}
    end = 0
    for name, array in sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0])):
        begin, end = end, end + array.nbytes
        entries[name] = {"dtype": _CODES[array.dtype], "shape": array.shape, "data_offsets": (begin, end)}
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    if len(header) > HEADER_LIMIT:
        raise CheckpointError(
            "checkpoint: too many tensors or too large a state",
            f"a header of at most {HEADER_LIMIT} bytes",
            len(header),
            "store large values as uint8 tensors",
        )
    start = 8 + len(header)
    content = bytearray(start + end)
    content[:start] = len(header).to_bytes(8, "little") + header
    for name, array in arrays.items():
        begin, stop = entries[name]["data_offsets"]
        place = np.frombuffer(memoryview(content)[start + begin : start + stop], array.dtype)
        place.reshape(array.shape)[...] = array
    content[_SUM] = _digest(content)
    return content


def _as_array(name: str, value: Any) -> np.ndarray:
    """The value on the host, its numbers little-endian."""
    array = value.data if isinstance(value, Tensor) else value
    if not is_array(array) or not _is_name(name) or name == "__metadata__":
        raise DtypeError(
            f"checkpoint: {name!r} is not a named tensor", "a plain name, and a Tensor or array", type(value).__name__
        )
    host = to_numpy(array)
    host = host.astype(host.dtype.newbyteorder("<"), copy=False)
    if host.dtype not in _CODES:
        raise DtypeError(
            f"checkpoint: {name!r} has a dtype that safetensors files cannot hold", ", ".join(_DTYPES), host.dtype
        )
    return host


def _is_name(name: Any) -> bool:
    """Whether a model could have given it; none of them leads out of a folder, should anybody make a path of it."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None and ".." not in name


def _digest(content: bytes | bytearray) -> bytes:
    """The SHA-256 of everything, with the checksum itself taken as zeros."""
    view = memoryview(content)
    digest = hashlib.sha256(view[: _SUM.start])
    digest.update(BLANK)
    digest.update(view[_SUM.stop :])
    return digest.hexdigest().encode()


class _Damaged(Exception):
    """Why the bytes are not a checkpoint."""

    fix = "use another checkpoint of the run, if there is one"


class _OnlyTensors(_Damaged):
    """The bytes begin like those of any other file of tensors."""

    fix = "if minigrad.save wrote it: model.load_state_dict(minigrad.load(path))"


def _bytes_of(path: str | os.PathLike[str]) -> bytes:
    """All of a file that begins like a checkpoint; of any other no more than its beginning is read."""
    if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would block, and a device need not end
        raise _Damaged("it is not a file")
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(_SUM.stop)
        header_size = int.from_bytes(start[:8], "little")
        if start[8:10] == _PREFIX[:2] and start[8 : _SUM.start] != _PREFIX[: len(start[8 : _SUM.start])]:
            raise _OnlyTensors("it holds tensors, but no state of a run")
        if len(start) < _SUM.stop or header_size > size - 8:
            raise _Damaged("the file is too short")
        if header_size > HEADER_LIMIT or header_size < _SUM.stop - 8 or start[8 : _SUM.start] != _PREFIX:
            raise _Damaged("it does not begin as a checkpoint does")
        file.seek(0)
        return file.read(size)


def _parse(content: bytes) -> Checkpoint:
    if content[_SUM] != _digest(content):
        raise _Damaged("the checksum does not fit")
    start = 8 + int.from_bytes(content[:8], "little")
    if start > len(content):
        raise _Damaged("the file is too short")
    header = _json(content[8:start])
    metadata = header.pop("__metadata__", None)
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT or not isinstance(metadata.get("state"), str):
        raise _Damaged("it was not written by this version of minigrad")
    tensors = _tensors(header, memoryview(content)[start:])
    header.clear()
    return Checkpoint(tensors, _json(metadata.pop("state")))


def _json(text: bytes | str) -> dict[str, Any]:
    try:
        value = json.loads(text, object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        raise _Damaged(f"bad JSON, {type(error).__name__}") from None
    if not isinstance(value, dict):
        raise _Damaged("its JSON is not an object")
    return value


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise _Damaged("a name comes twice")
    return result


def _tensors(header: dict[str, Any], data: memoryview) -> dict[str, np.ndarray]:
    """Views of the data section; the pieces must follow each other without a gap or an overlap."""
    tensors: dict[str, np.ndarray] = {}
    end = 0
    for name, entry in sorted(header.items(), key=lambda item: _offsets(item[1])):
        begin, stop = _offsets(entry)
        if not _is_name(name):
            raise _Damaged("a tensor has a name that no model would give")
        dtype, shape = _dtype_and_shape(name, entry)
        size = dtype.itemsize
        for n in shape:
            size *= n
        if begin != end or stop != begin + size or stop > len(data):
            raise _Damaged(f"tensor {name!r} does not lie where it should")
        array = np.frombuffer(data[begin:stop], dtype=dtype).reshape(shape)
        if dtype.kind == "b" and size and array.view("u1").max() > 1:
            raise _Damaged(f"tensor {name!r} holds truth values that are neither true nor false")
        tensors[name] = array
        end = stop
    if end != len(data):
        raise _Damaged("there are bytes that belong to no tensor")
    return tensors


def _dtype_and_shape(name: str, entry: dict[str, Any]) -> tuple[np.dtype, list[int]]:
    code, shape = entry.get("dtype"), entry.get("shape")
    if not isinstance(code, str) or code not in _DTYPES or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise _Damaged(f"tensor {name!r} has no proper dtype")
    if not isinstance(shape, list) or len(shape) > 32 or not all(type(n) is int and 0 <= n < LARGEST for n in shape):
        raise _Damaged(f"tensor {name!r} has no proper shape")
    dtype = np.dtype(_DTYPES[code])
    size = dtype.itemsize
    for n in shape:
        size *= n or 1
    if size >= LARGEST:  # which only an empty tensor of absurd shape could have
        raise _Damaged(f"tensor {name!r} has no proper shape")
    return dtype, shape


def _offsets(entry: Any) -> tuple[int, int]:
    offsets = entry.get("data_offsets") if isinstance(entry, dict) else None
    if (
        not isinstance(offsets, list)
        or len(offsets) != 2
        or not all(type(n) is int and 0 <= n < LARGEST for n in offsets)
    ):
        raise _Damaged("a tensor has no proper place")
    return offsets[0], offsets[1]
