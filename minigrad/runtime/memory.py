"""Keep freed memory for the next step, and leave the search for reference cycles alone while a plan is made.

A training step allocates and frees the same large arrays again and again. By default glibc returns each one to the system,
which must clear every page when it is asked for again. With two `mallopt` settings glibc keeps the pages, and after a few
steps no page is asked for at all.
"""

from __future__ import annotations

import ctypes
import gc
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h
_LARGEST_THRESHOLD = 32 << 20  # bytes: glibc accepts no more


@cache
def keep_freed_memory() -> bool:
    """Let glibc keep freed memory until the process ends; False where the C library is another."""
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(_MMAP_THRESHOLD, _LARGEST_THRESHOLD) and mallopt(_TRIM_THRESHOLD, 2**31 - 1))


@contextmanager
def without_collection() -> Iterator[None]:
    """Inside, Python does not search for reference cycles.

    Making a plan creates thousands of objects that stay. Each search would go through all of them, and find no cycle.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
