"""Files that are written completely or not at all: a crash while one is written leaves the old file intact."""

from __future__ import annotations

import contextlib
import errno
import os

from ..engine.writes import tick
from ..errors import ArgumentError

__all__ = ["check_folder", "sync_folder", "write_atomically"]


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
