"""A file in memory without a copy, and a cursor over it that never reads past its end."""

from __future__ import annotations

import math
import mmap
import os
import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from ..errors import CheckpointError, printable

__all__ = ["HEADER_LIMIT", "Cursor", "MappedFile", "release", "writable"]

HEADER_LIMIT = 100_000_000  # bytes of whatever describes the tensors of a file; a real one has some megabytes
_DAMAGED = "it may be damaged or truncated: fetch it again"


class MappedFile:
    """The bytes of a file, as a read-only array: the system reads a page when it is first touched.

    Parts that `writable` gives are copied page by page where somebody writes; the file stays as it is.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = os.fspath(path)
        self.bytes = np.empty(0, np.uint8)
        if os.path.exists(path) and not os.path.isfile(path):
            raise self.error("is not a file", fix="give the path of a file of weights")
        try:
            with open(path, "rb") as file:
                if os.fstat(file.fileno()).st_size:  # an empty file cannot be mapped
                    self.bytes = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY), np.uint8)
                    self.bytes.flags.writeable = False
        except OSError as error:
            raise self.error(f"cannot be read: {error.strerror}", fix="check the path") from None

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return len(self.bytes)

    def starts_with(self, magic: bytes) -> bool:
        """Whether these are its first bytes."""
        return self.bytes[: len(magic)].tobytes() == magic

    def error(
        self, problem: str, expected: object = None, got: object = None, fix: object = _DAMAGED
    ) -> CheckpointError:
        """What is wrong with this file; texts that came from it cannot do anything to a terminal."""
        expected, got = (None if text is None else printable(str(text)[:300]) for text in (expected, got))
        return CheckpointError(f"load: {self.path!r} {printable(problem[:500])}", expected, got, fix)

    def array(self, name: str, start: int, dtype: str, shape: Sequence[int]) -> np.ndarray:
        """The numbers of the tensor `name` from byte `start` on, checked against the end of the file."""
        nbytes = self.nbytes(name, shape, np.dtype(dtype).itemsize)
        if not 0 <= start <= start + nbytes <= self.size:
            raise self.error(
                f"is too short for the tensor {name!r}",
                f"bytes {start:,} to {start + nbytes:,} for shape {tuple(shape)}",
                f"a file of {self.size:,} bytes",
            )
        return self.bytes[start : start + nbytes].view(dtype).reshape(shape)

    def nbytes(self, name: str, shape: Sequence[int], itemsize: int) -> int:
        """How many bytes a tensor has; a shape that no array can have is refused."""
        sizes = [max(size, 1) for size in shape]
        if len(shape) > 32 or any(size < 0 for size in shape) or math.prod(sizes) * itemsize >= 2**63:
            raise self.error(f"has an impossible shape for the tensor {name!r}", got=tuple(shape)[:33])
        return math.prod(shape) * itemsize

    def check_apart(self, places: Iterable[tuple[int, int, str]]) -> None:
        """Refuse tensors, as (start, end, name), that share bytes."""
        last, before = 0, ""
        for start, end, name in sorted(places):
            if start < last:
                raise self.error(f"has overlapping tensors: {before!r} and {name!r}", got=f"byte {start:,} in both")
            last, before = max(last, end), name


def writable(array: np.ndarray) -> np.ndarray:
    """The same array, in which may be written: a part of a mapped file without a copy, anything else copied if it must be."""
    try:
        array.flags.writeable = True
    except ValueError:
        array = array.copy()
    return array


def release(array: np.ndarray) -> None:
    """Let the system take the memory of a part of a mapped file; who reads it again has it from the file again."""
    file: Any = array
    while isinstance(file, np.ndarray):
        file = file.base.obj if isinstance(file.base, memoryview) else file.base
    if not isinstance(file, mmap.mmap) or not hasattr(mmap, "MADV_DONTNEED"):
        return
    low, high = byte_bounds(array)
    start = low - np.frombuffer(file, np.uint8).ctypes.data
    first, last = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE, (start + high - low) // mmap.PAGESIZE * mmap.PAGESIZE
    if first < last:  # pages that nothing else is in
        file.madvise(mmap.MADV_DONTNEED, first, last - first)


class Cursor:
    """Reads one thing after the other from a part of a file; what reaches past its end is an error."""

    def __init__(self, file: MappedFile, start: int = 0, end: int | None = None):
        self.file = file
        self.at = start
        self.end = file.size if end is None else end
        self.view = file.bytes.data

    @property
    def left(self) -> int:
        """How many bytes are left."""
        return self.end - self.at

    def take(self, count: int, what: str) -> bytes:
        """The next bytes."""
        start = self.skip(count, what)
        return bytes(self.view[start : self.at])

    def skip(self, count: int, what: str) -> int:
        """Pass over bytes; where they began."""
        if not 0 <= count <= self.left:
            raise self.file.error(f"ends inside {what}", f"{count:,} more bytes at byte {self.at:,}", f"{self.left:,}")
        self.at += count
        return self.at - count

    def number(self, code: str, what: str) -> int:
        """The next number, by its letter in Python's `struct`."""
        return int(self.numbers(code, what)[0])

    def numbers(self, codes: str, what: str) -> tuple[int, ...]:
        """The next numbers, by their letters in Python's `struct`."""
        start = self.skip(struct.calcsize(f"<{codes}"), what)
        return struct.unpack_from(f"<{codes}", self.view, start)

    def text(self, count: int, what: str) -> str:
        """The next bytes, as UTF-8."""
        start = self.skip(count, what)
        try:
            return str(self.view[start : self.at], "utf-8")
        except UnicodeDecodeError:
            got = bytes(self.view[start : min(start + 40, self.at)])
            raise self.file.error(f"has {what} that is not text", "UTF-8", repr(got)) from None

    def sized_text(self, what: str) -> str:
        """Eight bytes with a size, and so many bytes of text: quickly, because vocabularies have many."""
        return self.text(int.from_bytes(self.view[self.skip(8, what) : self.at], "little"), what)
