"""Progress of training: a tqdm bar in a terminal or notebook, a line every few seconds in a log.

tqdm draws the bar. It does not do the rest: a log would get ten lines a second, or none; time is left until the first of two
limits, steps and minutes, in a run that may have been resumed; and an output that was closed must not stop training.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from time import monotonic
from typing import Any, TextIO

from ..errors import printable

__all__ = ["Progress", "Timer", "duration"]

_TERMINAL, _NOTEBOOK, _LOG = 0.1, 0.5, 10.0  # seconds between two updates


def duration(seconds: float) -> str:
    """`4s`, `3:07` or `12:03:07`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02}:{rest:02}"
    return f"{minutes}:{rest:02}" if minutes else f"{rest}s"


class Timer:
    """The time that a run has taken, its speed, and the time left; it starts from the seconds of a resumed run."""

    def __init__(self, seconds: float):
        self._earlier = seconds
        self._began = monotonic()
        self._warm: tuple[int, float] | None = None  # the step and time from which on steps are timed
        self.units = 0  # done since then

    def total(self) -> float:
        """The seconds of the whole run."""
        return self._earlier + monotonic() - self._began

    def speed(self) -> float:
        """Units per second, on average since training began or was resumed."""
        return self.units / max(monotonic() - self._began, 1e-9)

    def remaining(self, step: int, max_steps: int | None, max_minutes: float | None) -> float | None:
        """The seconds until the first limit is reached; None if there is no limit, or no step has been timed yet.

        The first call only starts the clock: the first step also compiles, and tells nothing of the others.
        """
        now = monotonic()
        self._warm = self._warm or (step, now)
        began, since = self._warm
        limits = []
        if max_steps is not None and step > began:
            limits.append((max_steps - step) * (now - since) / (step - began))
        if max_minutes is not None:
            limits.append(60 * max_minutes - self.total())
        return max(min(limits), 0.0) if limits else None


class Progress:
    """A progress bar on `stream` (standard output unless given), and text between its updates.

    It is silent once the stream is closed, as when the reader of a pipe has exited.
    """

    def __init__(self, stream: TextIO | None = None, shown: bool = True, clock: Callable[[], float] = monotonic):
        self._stream = stream
        self.shown = shown
        self._clock = clock
        self._last = float("-inf")
        self._bar: Any = None

    def update(self, step: int, total: int | None, parts: Callable[[], str]) -> None:
        """Show `step 10/100 | …`, unless the last update was a moment ago; `parts` is only called if it is shown."""
        if not self.shown:
            return
        now = self._clock()
        interactive, interval = self._mode()
        if now - self._last < interval:
            return
        self._last = now
        if interactive:
            self._draw(step, total, printable(parts()))
        else:
            self._write(f"step {step:,}/{total:,} | {parts()}\n" if total else f"step {step:,} | {parts()}\n")

    def say(self, text: str) -> None:
        """Print text on lines of its own, without control characters: a model or its data may have written it."""
        if self.shown:
            if self._bar is not None:
                with self._silent_if_closed():
                    self._bar.clear()
            self._write(f"{printable(text)}\n")

    def close(self) -> None:
        """Leave the bar as it is, and begin a new line."""
        if self._bar is not None:
            with self._silent_if_closed():
                self._bar.close()
            self._bar = None
        self._last = float("-inf")

    def _draw(self, step: int, total: int | None, text: str) -> None:
        width = max(shutil.get_terminal_size().columns - 1, 20)
        layout = "step {n:,}/{total:,} |{bar:10}| {desc}" if total else "step {n:,} | {desc}"
        with self._silent_if_closed():
            if self._bar is None:
                self._bar = _bar_class()(
                    total=total,
                    initial=step,
                    file=self._stream or sys.stdout,
                    bar_format=layout,
                    ncols=width,
                    desc=text,
                )
                return
            self._bar.n, self._bar.ncols = step, width
            self._bar.set_description_str(text)

    def _mode(self) -> tuple[bool, float]:
        """Whether a bar is drawn, and the seconds between two updates."""
        if _in_notebook():
            return True, _NOTEBOOK
        stream = self._stream or sys.stdout
        with contextlib.suppress(ValueError, AttributeError):
            if stream.isatty() and os.environ.get("TERM") != "dumb":
                return True, _TERMINAL
        return False, _LOG

    def _write(self, text: str) -> None:
        stream = self._stream or sys.stdout
        with self._silent_if_closed():
            try:
                stream.write(text)
            except UnicodeEncodeError:
                stream.write(text.encode("ascii", "backslashreplace").decode())
            stream.flush()

    @contextlib.contextmanager
    def _silent_if_closed(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError, AttributeError):  # AttributeError: without a console sys.stdout is None
            self.shown = False


@cache
def _bar_class() -> Any:
    """tqdm for where this runs, without its monitor thread: updates are not left to it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without ipywidgets a notebook gets a bar of text
        from tqdm.auto import tqdm
    return type("Bar", (tqdm,), {"monitor_interval": 0})


def _in_notebook() -> bool:
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"
