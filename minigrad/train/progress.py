"""What training shows: one line that is rewritten in a terminal or notebook, a line every few seconds in a log."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable
from time import monotonic
from typing import Any, TextIO

from ..engine.errors import plain

__all__ = ["Progress", "duration"]

_TERMINAL, _NOTEBOOK, _LOG = 0.1, 0.5, 10.0  # seconds between two updates


def duration(seconds: float) -> str:
    """`4s`, `3:07` or `12:03:07`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    minutes, hours = whole // 60, whole // 3600
    return f"{hours}:{minutes % 60:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


class Progress:
    """A progress line on `stream` (standard output unless given), and text between its updates.

    A stream that is closed, as when the reader of a pipe has gone, is no reason to stop training: it is then silent.
    """

    def __init__(self, stream: TextIO | None = None, shown: bool = True, clock: Callable[[], float] = monotonic):
        self._stream = stream
        self.shown = shown
        self._clock = clock
        self._last = float("-inf")
        self._length = 0  # how much of the terminal's line is written on

    def update(self, step: int, total: int | None, parts: Callable[[], str]) -> None:
        """Show `step 10/100 | …`, unless the last update was a moment ago; `parts` is only called if it is shown."""
        if not self.shown:
            return
        now = self._clock()
        rewritten, interval = self._manner()
        if now - self._last < interval:
            return
        self._last = now
        line = f"step {step:,}/{total:,} | {parts()}" if total else f"step {step:,} | {parts()}"
        if not rewritten:
            self._write(f"{line}\n")
            return
        line = line[: max(shutil.get_terminal_size().columns - 1, 20)]
        self._write(f"\r{line}{' ' * (self._length - len(line))}")
        self._length = len(line)

    def say(self, text: str) -> None:
        """Print text on lines of its own; what a model writes, or its data holds, may not command the terminal."""
        if self.shown:
            self._clear()
            self._write(f"{plain(text)}\n")

    def close(self) -> None:
        """Leave the line as it stands, and begin a new one."""
        if self._length:
            self._write("\n")
            self._length = 0
        self._last = float("-inf")

    def _clear(self) -> None:
        if self._length:
            self._write(f"\r{' ' * self._length}\r")
            self._length = 0

    def _manner(self) -> tuple[bool, float]:
        """Whether the line is rewritten, and how often."""
        if _in_notebook():
            return True, _NOTEBOOK
        stream = self._stream or sys.stdout
        with contextlib.suppress(ValueError, AttributeError):
            if stream.isatty() and os.environ.get("TERM") != "dumb":
                return True, _TERMINAL
        return False, _LOG

    def _write(self, text: str) -> None:
        stream = self._stream or sys.stdout
        try:
            stream.write(text)
            stream.flush()
        except UnicodeEncodeError:
            with contextlib.suppress(OSError, ValueError):
                stream.write(text.encode("ascii", "backslashreplace").decode())
        except (OSError, ValueError, AttributeError):  # the last: sys.stdout is None where there is no console
            self.shown = False


def _in_notebook() -> bool:
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"
