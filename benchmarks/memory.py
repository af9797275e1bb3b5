"""How far the memory of a process grows, as the system counts it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np


def resident(field: str) -> int:
    """Bytes in memory: now ("VmRSS") or at the peak ("VmHWM"). Read from /proc: getrusage counts the parent's as well."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {field}")


class Peak:
    """A step that returns by how many bytes the peak so far exceeds what was in memory before the step was made.

    `prepare` comes before that: it imports the library.
    """

    def __init__(self, prepare: Callable[[], Any], make: Callable[[], Callable[[], Any]]):
        prepare()
        with suppress(OSError):  # where it is not allowed, the peak of the import is counted as well
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins again from here
        self.before = resident("VmRSS")
        self.step = make()

    def __call__(self) -> np.int64:
        self.step()
        return np.int64(resident("VmHWM") - self.before)
