"""The bytes of a file, also out of a zip or gzip: in memory, never onto the disk, and never more than was allowed."""

from __future__ import annotations

import gzip
import os
import struct
import zipfile
import zlib
from typing import Any

from ..errors import ArgumentError
from .errors import DataError

__all__ = ["MAX_BYTES", "unpacked"]

MAX_BYTES = 2**30
MAX_MEMBERS = 10_000


def unpacked(path: str | os.PathLike[str], member: str | None = None, max_bytes: int = MAX_BYTES) -> tuple[bytes, str]:
    """The content of a file, and a name for it. A zip or gzip is known by its first bytes, whatever its name is."""
    name = os.fspath(path)
    try:
        with open(path, "rb") as file:
            start = file.read(4)
            file.seek(0)
            if start[:2] == b"\x1f\x8b":
                return _from_gzip(file, name, max_bytes), name
            if start in (b"PK\x03\x04", b"PK\x05\x06"):
                return _from_zip(file, name, member, max_bytes)
            return _bounded(file, name, max_bytes), name
    except OSError as error:
        raise DataError(f"read: {name} cannot be read: {error.strerror or error}", fix="check the path") from None


def _bounded(file: Any, name: str, max_bytes: int) -> bytes:
    content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise DataError(
            f"read: {name} is too large",
            f"at most {max_bytes:,} bytes, unpacked",
            fix="pass max_bytes=… if you trust the file",
        )
    return content


def _from_gzip(file: Any, name: str, max_bytes: int) -> bytes:
    try:
        with gzip.GzipFile(fileobj=file) as unzipped:
            return _bounded(unzipped, name, max_bytes)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _damaged(name, "gzip", error) from None


def _from_zip(file: Any, name: str, member: str | None, max_bytes: int) -> tuple[bytes, str]:
    try:
        with zipfile.ZipFile(file) as archive:
            chosen = _chosen(archive.infolist(), name, member)
            # Only deflate is unpacked piece by piece; with bzip2 and LZMA a few bytes can become all memory.
            if chosen.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or chosen.flag_bits & 1:
                raise DataError(f"read: {name} is encrypted, or packed in an unusual way", "an ordinary zip")
            full = f"{name} › {chosen.filename!r}"
            with archive.open(chosen) as unzipped:
                content = _bounded(unzipped, full, max_bytes)
            return content, full
    except (
        zipfile.BadZipFile,
        EOFError,
        zlib.error,
        struct.error,
        NotImplementedError,
        RuntimeError,
        ValueError,
    ) as error:
        if isinstance(error, (DataError, ArgumentError)):
            raise
        raise _damaged(name, "zip", error) from None


def _chosen(members: list[zipfile.ZipInfo], name: str, member: str | None) -> zipfile.ZipInfo:
    """The file asked for, or the only one that can be data. Names are compared and shown, never used as paths."""
    files = [info for info in members[:MAX_MEMBERS] if info.filename and info.filename[-1] != "/"]
    if member is not None:
        found = [info for info in files if info.filename == member]
    else:
        found = [
            i for i in files if not i.filename.startswith("__MACOSX/") and i.filename.split("/")[-1][:1] not in "_."
        ]
        if len(found) > 1:
            texts = [info for info in found if info.filename.lower().endswith((".tsv", ".csv", ".txt"))]
            found = texts if len(texts) == 1 else found
    if len(found) != 1:
        shown = ", ".join(repr(info.filename)[:80] for info in files[:10]) or "none"
        problem = "holds several files" if member is None and found else "does not hold such a file"
        raise ArgumentError(f"read: {name} {problem}", "one file", shown, "choose one with member='…'")
    return found[0]


def _damaged(name: str, kind: str, error: Exception) -> DataError:
    return DataError(f"read: {name} is not a whole {kind} file: {error}"[:300], fix="it may be truncated; get it again")
