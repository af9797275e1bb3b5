"""Memory that is kept for the next step.

A training step makes and drops the same large arrays again and again. The C library gives each back to the system and
asks for it anew, and every page of it is then cleared once more. Told to keep what is freed, it hands out warm memory:
after a few steps no page is asked for at all.
"""

from __future__ import annotations

import ctypes
import platform
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # the numbers that mallopt knows its settings by
_LARGEST_THRESHOLD = 32 << 20  # bytes: the C library takes no more


@cache
def keep_memory() -> bool:
    """Let the C library keep freed memory for the rest of this process; False where it cannot be told (not glibc)."""
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(_MMAP_THRESHOLD, _LARGEST_THRESHOLD) and mallopt(_TRIM_THRESHOLD, 2**31 - 1))
