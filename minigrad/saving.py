"""Tensors in files: safetensors, which holds numbers and no code, written so that a crash leaves the old file whole."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from .engine.backend import DTYPES, is_array, to_numpy
from .engine.convert import tensor
from .engine.errors import ArgumentError, CheckpointError, DtypeError
from .engine.tensor import Tensor
from .engine.writes import tick

__all__ = ["load", "save"]


def save(tensors: Mapping[str, Any], path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None) -> None:
    """Write named tensors to a safetensors file; what was there before stays until the new file is complete.

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
    """Refuse a file in a folder that does not exist, before the work of making its content is done."""
    folder, name = os.path.split(os.fspath(path))
    if folder and not os.path.isdir(folder):
        raise ArgumentError(f"the folder {folder!r} does not exist", fix=f"make it, or write {name!r} elsewhere")


def write_atomically(
    path: str | os.PathLike[str], content: bytes | bytearray | memoryview, durable: bool = True
) -> None:
    """Write beside `path`, flush to the disk, then rename: a reader sees the old file or the new one, never half.

    A new file gets the permissions that any new file gets; one that is replaced keeps its own. What need not outlive a
    power cut is not `durable`, and does not wait for the disk.
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


def _contiguous(name: str, value: Any) -> np.ndarray:
    """A C-contiguous copy: some versions of safetensors write other layouts wrongly."""
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
