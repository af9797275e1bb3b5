"""Safetensors files, which hold numbers and no code. A crash while one is written leaves the old file intact."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from .engine.backend import DTYPES, is_array, to_numpy
from .engine.tensor import Tensor
from .engine.writes import tick
from .errors import ArgumentError, CheckpointError, DtypeError
from .ops.creation import tensor

__all__ = ["load", "save"]


def save(tensors: Mapping[str, Any], path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None) -> None:
    """Write named tensors to a safetensors file; an existing file stays until the new one is complete.

    >>> import minigrad as mg, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "weights.safetensors")
    >>> mg.save({"w": mg.ones(2, 3)}, path)
    >>> mg.load(path)["w"].shape
    (2, 3)
    """
    from safetensors.numpy import save as to_bytes

    if not isinstance(tensors, Mapping):
        raise ArgumentError(
            "save: the tensors need names", "save({'name': tensor}, path)", f"save({type(tensors).__name__}, …)"
        )
    if not all(isinstance(text, str) for pair in (metadata or {}).items() for text in pair):
        raise ArgumentError("save: metadata is made of strings", "{'name': 'text'}", repr(metadata), "use str(value)")
    arrays = {name: _contiguous(name, value) for name, value in tensors.items()}
    content = to_bytes(arrays, metadata=dict(metadata) if metadata else None)
    try:
        write_atomically(path, content)
    except OSError as error:
        raise CheckpointError(
            f"save: {os.fspath(path)!r} cannot be written: {error.strerror}", fix="check the folder"
        ) from error


def load(path: str | os.PathLike[str], device: str | None = None) -> dict[str, Tensor]:
    """The named tensors of a safetensors file, sorted by name."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as from_bytes

    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise CheckpointError(
            f"load: {os.fspath(path)!r} cannot be read: {error.strerror}", fix="check the path"
        ) from None
    try:
        arrays = from_bytes(content)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"load: {os.fspath(path)!r} is not a whole safetensors file: {error}",
            fix="it may be truncated or of another format",
        ) from None
    return {name: tensor(arrays[name], device=device) for name in sorted(arrays)}


def check_folder(path: str | os.PathLike[str]) -> None:
    """Refuse a path in a folder that does not exist, before the content of the file is computed."""
    folder, name = os.path.split(os.fspath(path))
    if folder and not os.path.isdir(folder):
        raise ArgumentError(f"the folder {folder!r} does not exist", fix=f"make it, or write {name!r} into another")


def write_atomically(
    path: str | os.PathLike[str], content: bytes | bytearray | memoryview, durable: bool = True
) -> None:
    """Write to a temporary file, flush it to the disk, then rename it: a reader sees the old file or the new one, never half.

    A new file gets the usual permissions; a replaced one keeps its own. A file that is not `durable` is not flushed, and may
    be lost in a power cut.
    """
    folder, name = os.path.split(os.path.realpath(path))
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.{tick()}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        if os.path.exists(path):
            os.chmod(temporary, os.stat(path).st_mode & 0o7777)
        os.replace(temporary, os.path.join(folder, name))
    except BaseException:
        with contextlib.suppress(FileNotFoundError):  # an interrupt may come just after the rename
            os.unlink(temporary)
        raise


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Flush a folder to the disk, where the system can, so that new names in it survive a power cut."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # as some network disks answer
                raise
        finally:
            os.close(handle)


def _contiguous(name: str, value: Any) -> np.ndarray:
    """A C-contiguous copy: safetensors 0.8.0 writes other layouts wrongly, without an error."""
    array = value.data if isinstance(value, Tensor) else value
    if not isinstance(name, str) or not is_array(array):
        raise DtypeError(
            f"save: {name!r} is not a named tensor", "a dict from str to Tensor or array", type(value).__name__
        )
    if array.dtype.name not in DTYPES or array.dtype == "complex128":
        raise DtypeError(
            f"save: {name!r} has a dtype that safetensors files cannot hold",
            "bool, integers, float16/32/64 or complex64",
            array.dtype,
            "convert it with x.astype",
        )
    return np.array(to_numpy(array), order="C", copy=True)
