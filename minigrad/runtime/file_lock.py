"""A lock on a file that one process holds, and that the system frees when the process ends, however it ends.

The package `filelock` would do most of it, but loses two things. It does not say which process holds a lock, and on Windows it
locks the first byte, so that the file cannot be read to find out. And where the file system has no `flock`, as with some
network disks, it falls back to a marker file, which a killed process leaves behind.
"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import IO

__all__ = ["lock_file"]

_LOCKED_BYTE = 1 << 20  # past the content: on Windows a locked byte cannot be read


def lock_file(path: str | os.PathLike[str]) -> IO[bytes]:
    """The open file, locked until it is closed; a BlockingIOError whose `strerror` names the process that holds the lock."""
    file = open(path, "a+b", buffering=0)  # noqa: SIM115  (it stays open as long as the lock is held)
    try:
        if os.name == "nt":
            import msvcrt

            file.seek(_LOCKED_BYTE)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        file.seek(0)
        holder = file.read(64).decode("ascii", "replace").strip()
        file.close()
        raise BlockingIOError(errno.EAGAIN, holder) from None
    except OSError:
        file.close()
        raise
    with contextlib.suppress(OSError):  # on a full disk the lock holds, but its file does not name the process
        file.truncate(0)
        file.write(f"process {os.getpid()}\n".encode())
    return file
