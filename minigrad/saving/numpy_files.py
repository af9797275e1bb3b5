"""NumPy's own files: .npz, a zip of named arrays, and .npy, one array. Neither is read or written with pickle."""

from __future__ import annotations

import io
import zlib
from collections.abc import Mapping

import numpy as np

from ..errors import CheckpointError

__all__ = ["from_npy", "from_npz", "to_npy", "to_npz"]


def to_npy(array: np.ndarray) -> bytes:
    """The bytes of a .npy file."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def to_npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The bytes of an .npz file; `numpy.savez` would not take every name."""
    import zipfile  # which takes a while to load

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in arrays.items():
            archive.writestr(f"{name}.npy", to_npy(array))
    return buffer.getvalue()


def from_npy(content: bytes, shown: str) -> np.ndarray:
    """The array of a .npy file."""
    try:
        return _native(np.lib.format.read_array(io.BytesIO(content), allow_pickle=False))
    except (ValueError, EOFError, MemoryError, OverflowError, TypeError) as error:
        raise _refused(shown, error) from None


def from_npz(content: bytes, shown: str) -> dict[str, np.ndarray]:
    """The arrays of an .npz file, sorted by name."""
    import zipfile

    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.namelist()
            others = [name for name in members if not name.endswith(".npy")]
            if others:
                raise ValueError(f"{others[0]!r} in it is no .npy file")
            arrays = {name.removesuffix(".npy"): from_npy(archive.read(name), shown) for name in sorted(members)}
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, NotImplementedError, RuntimeError) as error:
        if isinstance(error, CheckpointError):
            raise
        raise _refused(shown, error) from None
    return arrays


def _native(array: np.ndarray) -> np.ndarray:
    """In the byte order of this machine."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _refused(shown: str, error: Exception) -> CheckpointError:
    if "Object arrays" in str(error) or "allow_pickle" in str(error):
        return CheckpointError(
            f"load: {shown!r} holds Python objects, which may run code", "arrays of numbers", fix="save it with numbers"
        )
    text = " ".join(str(error).split())[:200] or type(error).__name__
    return CheckpointError(f"load: {shown!r} is not a whole file of NumPy's: {text}", fix="it may be truncated")
