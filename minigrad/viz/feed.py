"""What is new in a run directory while it trains, for pages that follow it."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from time import monotonic

from .curves import Best
from .page import as_data
from .report import About, contents, page_of
from .runs import Shown, read_run

__all__ = ["Feed"]

REST = 20  # times as long as a look at the run took, it is not looked at again, so that training is not slowed
WHOLE = ("config.json", "metrics.csv")  # what curves are drawn anew for


class Feed:
    """The page of a run, and what is newer than a version of it. Threads may ask at once."""

    def __init__(self, run: str | os.PathLike[str], about: About | None = None):
        self._run, self._about = Path(run), about or About()
        self._lock = threading.Lock()
        self._version = 0
        self._stamps: dict[str, tuple[int, int] | None] = {}  # of each file, when it was written and how long it is
        self._changed: dict[str, int] = {}  # in which version
        self._shown: Shown | None = None
        self._next = 0.0
        self.ended = False

    def page(self) -> str:
        """The whole page as of now."""
        with self._lock:
            shown = self._looked()
            return page_of(shown, self._about, self._version)

    def since(self, version: int) -> str:
        """What is newer than a version, as JSON."""
        with self._lock:
            shown = self._looked()
            newer = {name for name, changed in self._changed.items() if changed > version}
            frames, samples = (
                [step for step, path in files.items() if _name(path) in newer]
                for files in (shown.frames, shown.samples)
            )
            found = contents(shown, frames, samples, curves=not newer.isdisjoint(WHOLE))
            return as_data({**found, "version": self._version, "ended": self.ended})

    def _looked(self) -> Shown:
        began = monotonic()
        if self._shown is not None and began < self._next and not self.ended:
            return self._shown
        self._shown = shown = read_run(self._run) if self._run.is_dir() else _nothing(self._run)
        paths = [*shown.frames.values(), *shown.samples.values(), *(self._run / name for name in WHOLE)]
        before, self._stamps = self._stamps, {_name(path): _stamp(path) for path in paths}
        for name, stamp in self._stamps.items():
            if name not in before or before[name] != stamp:
                self._version += 1
                self._changed[name] = self._version
        self._next = monotonic() + REST * (monotonic() - began)
        return shown


def _name(path: Path) -> str:
    """`frames/step-00000100.svg`, or the name of a file of the run itself."""
    return path.name if path.name in WHOLE else f"{path.parent.name}/{path.name}"


def _nothing(run: Path) -> Shown:
    return Shown(run, {}, {}, Best(), None, {}, {}, ["nothing is written yet"])


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        known = path.stat()
    except OSError:
        return None
    return known.st_mtime_ns, known.st_size
