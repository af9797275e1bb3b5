"""Checkpoints: one safetensors file with a JSON state and a checksum, written so that a crash never leaves half of one.

A file may come from a stranger or a failing disk. So the checksum of every byte is verified before tensors are read, the
header is capped before it is parsed, and the tensors take no more memory than the file.

The safetensors library reads the tensors. What it does not do is done here: it accepts a name that comes twice, and any
name and any truth value; it would copy the tensors once more to write them; and it writes the metadata in no fixed order,
while the checksum needs a fixed place, and the same content should give the same bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any, cast

import numpy as np

from ..data import Tokenizer
from ..engine.backend import is_array, to_numpy
from ..engine.tensor import Tensor
from ..errors import CheckpointError, DtypeError
from ..saving import sync_folder, write_atomically
from ..tokenizers import from_json as tokenizer_from_json

__all__ = ["Checkpoint", "read_checkpoint", "read_state", "write_checkpoint"]

FORMAT = "minigrad-checkpoint-1"
HEADER_LIMIT = 384 * 1024  # bytes of JSON; parsing the worst of it makes about thirty times as many
BLANK = b"0" * 64
_CHUNK = 1 << 20  # bytes that are hashed at a time
_PREFIX = b'{"__metadata__":{"checksum":"'  # every header begins with this, and the checksum follows
_SUM = slice(8 + len(_PREFIX), 8 + len(_PREFIX) + len(BLANK))
_NAME = re.compile(r"[^\x00-\x1f\x7f/\\]{1,512}")
_CODES = {
    np.dtype(dtype): code
    for code, dtype in {
        "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
        "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1", "C64": "<c8",
    }.items()
}  # fmt: skip


@dataclass
class Checkpoint:
    """The content of a file: named arrays, and a state of numbers, strings, lists and dicts."""

    tensors: dict[str, np.ndarray]
    state: dict[str, Any]

    @property
    def model(self) -> dict[str, np.ndarray]:
        """The weights that a Trainer saved, for `model.load_state_dict`."""
        return self.part("model.")

    def part(self, prefix: str) -> dict[str, np.ndarray]:
        """The tensors whose names begin with `prefix`, without it."""
        return {name.removeprefix(prefix): a for name, a in self.tensors.items() if name.startswith(prefix)}

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer that a Trainer saved, if it was given one."""
        if "tokenizer" not in self.tensors:
            return None
        try:
            return tokenizer_from_json(self.tensors["tokenizer"].tobytes().decode())
        except UnicodeDecodeError:
            raise CheckpointError("checkpoint: its tokenizer is not text", fix="use another checkpoint") from None


def write_checkpoint(path: str | os.PathLike[str], tensors: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    """Write named tensors and a JSON-able state to one file; an existing file stays until the new one is complete."""
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
    """The tensors and the state of a checkpoint file, or a CheckpointError that says what is wrong with it."""
    with _opened(path) as file:
        header = _read_header(file)
        _verify(header, file)
        state = _parse_state(header)
        return Checkpoint(_read_tensors(path, header[_SUM]), state)


def read_state(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The state of a checkpoint file, without its tensors: only the header is read.

    The checksum is of the whole file, and is not verified here.
    """
    with _opened(path) as file:
        return _parse_state(_read_header(file))


def _content(tensors: Mapping[str, Any], state: Mapping[str, Any]) -> bytearray:
    """The bytes of the file. Each tensor is written to its place in it, so that there is only one copy."""
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
    content[_SUM] = _header_digest(memoryview(content)).hexdigest().encode()
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
            f"checkpoint: {name!r} has a dtype that safetensors files cannot hold",
            ", ".join(map(str, _CODES)),
            host.dtype,
        )
    return host


def _is_name(name: Any) -> bool:
    """Whether a tensor may have this name. None leads out of a folder if someone makes a path of it."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None and ".." not in name


def _header_digest(header: bytes | bytearray | memoryview) -> Any:
    """The SHA-256 up to here, with the checksum itself taken as zeros."""
    digest = hashlib.sha256(header[: _SUM.start])
    digest.update(BLANK)
    digest.update(header[_SUM.stop :])
    return digest


class _Damaged(Exception):
    """Why the bytes are not a checkpoint."""

    def __init__(self, why: str, fix: str = "use another checkpoint of the run, if there is one"):
        super().__init__(why)
        self.fix = fix


@contextlib.contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """The file, open for reading; inside, whatever is wrong with it is a CheckpointError."""
    shown = os.fspath(path)
    if os.path.isdir(path):
        raise CheckpointError(
            f"checkpoint: {shown!r} is a directory",
            "a checkpoint file",
            fix=f"read_checkpoint(find_checkpoint({shown!r}))",
        )
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would block, and a device need not end
            raise _Damaged("it is not a file")
        with open(path, "rb") as file:
            yield file
    except OSError as error:
        raise CheckpointError(f"checkpoint: {shown!r} cannot be read: {error.strerror}", fix="check the path") from None
    except _Damaged as damage:
        raise CheckpointError(
            f"checkpoint: {shown!r} is damaged or not a checkpoint: {damage}", fix=damage.fix
        ) from None


def _read_header(file: IO[bytes]) -> bytes:
    """The length and the JSON of the header; of a file that does not begin like a checkpoint only the first bytes are read."""
    size = os.fstat(file.fileno()).st_size
    start = file.read(_SUM.stop)
    length = int.from_bytes(start[:8], "little")
    if start[8:10] == _PREFIX[:2] and start[8 : _SUM.start] != _PREFIX[: len(start[8 : _SUM.start])]:
        fix = "if minigrad.save wrote it: model.load_state_dict(minigrad.load(path))"
        raise _Damaged("it holds tensors, but no state of a run", fix)
    if len(start) < _SUM.stop or length > size - 8:
        raise _Damaged("the file is too short")
    if length > HEADER_LIMIT or length < _SUM.stop - 8 or start[8 : _SUM.start] != _PREFIX:
        raise _Damaged("it does not begin as a checkpoint does")
    return start + file.read(8 + length - len(start))


def _verify(header: bytes, file: IO[bytes]) -> None:
    """Compare the checksum in the header with that of the header and the rest of the file."""
    digest = _header_digest(header)
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    if header[_SUM] != digest.hexdigest().encode():
        raise _Damaged("the checksum does not fit")


def _parse_state(header: bytes) -> dict[str, Any]:
    """The state in a header, whose tensors must have proper names and descriptions."""
    entries = _json(header[8:])
    metadata = entries.pop("__metadata__", None)
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT or not isinstance(metadata.get("state"), str):
        raise _Damaged("it was not written by this version of minigrad")
    for name, entry in entries.items():
        if not _is_name(name):
            raise _Damaged("a tensor has a name that no model would give")
        if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
            raise _Damaged(f"tensor {name!r} is not described as safetensors files do")
    entries.clear()  # before the state is parsed, which may take as much memory
    return _json(metadata["state"])


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


def _read_tensors(path: str | os.PathLike[str], checksum: bytes) -> dict[str, np.ndarray]:
    """The tensors of the file whose checksum was verified, read by the safetensors library."""
    from safetensors import SafetensorError, safe_open

    tensors: dict[str, np.ndarray] = {}
    try:
        with safe_open(path, "np") as file:
            if file.metadata()["checksum"].encode() != checksum:
                raise _Damaged("it was replaced while it was read")
            for name in file.keys():  # noqa: SIM118  (the file itself is not iterable)
                tensors[name] = array = file.get_tensor(name)
                if array.dtype == bool and array.size and array.view(np.uint8).max() > 1:
                    raise _Damaged(f"tensor {name!r} holds truth values that are neither true nor false")
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise _Damaged(f"safetensors cannot read it: {error}") from None
    return tensors
