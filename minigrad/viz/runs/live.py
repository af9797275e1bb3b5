"""The page of a run that follows it while it trains."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

from ...train import RunError
from ...train.run_data import RunData, read_run
from ...web import server
from ..drawing.page import as_data
from .report import About, contents, page_of

__all__ = ["serve"]

REST = 20  # a reading that took t seconds is kept for 20 t, so that training is not slowed
WHOLE = ("config.json", "metrics.csv")  # a change of these redraws the curves


@contextlib.contextmanager
def serve(run: str | os.PathLike[str], about: About | None = None) -> Iterator[str]:
    """Inside, the page of a run is at the address that this gives, `http://127.0.0.1:PORT/TOKEN/`, and follows it."""
    with contextlib.ExitStack() as stack:
        try:
            address = stack.enter_context(server.serve(RunFeed(run, about), "minigrad live page"))
        except OSError as error:
            raise RunError(f"the live page cannot be served: {error.strerror}", fix="train without --live") from error
        yield address


class RunFeed:
    """The page of a run, and what is newer than a version of it. Threads may ask at once."""

    def __init__(self, run: str | os.PathLike[str], about: About | None = None):
        self._run, self._about = Path(run), about or About()
        self._lock, self._version = threading.Lock(), 0
        self._stamps: dict[Path, tuple[int, int] | None] = {}  # of each file, when it was written and how long it is
        self._changed: dict[Path, int] = {}  # in which version
        self._shown: RunData | None = None
        self._next, self.ended = 0.0, False

    def page(self) -> str:
        """The whole page as of now."""
        with self._lock:
            return page_of(self._read(), self._about, self._version)

    def since(self, version: int) -> str:
        """What is newer than a version, as JSON."""
        with self._lock:
            shown = self._read()
            newer = {path for path, changed in self._changed.items() if changed > version}
            folders = shown.frames, shown.samples
            frames, samples = ([step for step, path in files.items() if path in newer] for files in folders)
            found = contents(shown, frames, samples, any(path.name in WHOLE for path in newer))
            return as_data({**found, "version": self._version, "ended": self.ended})

    def _read(self) -> RunData:
        began = monotonic()
        if self._shown is not None and began < self._next and not self.ended:
            return self._shown
        self._shown = shown = read_run(self._run)
        paths = [*shown.frames.values(), *shown.samples.values(), *(self._run / name for name in WHOLE)]
        before, self._stamps = self._stamps, {path: _stamp(path) for path in paths}
        for path in [path for path, stamp in self._stamps.items() if path not in before or before[path] != stamp]:
            self._version += 1
            self._changed[path] = self._version
        self._next = monotonic() + REST * (monotonic() - began)
        return shown


def _stamp(path: Path) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        return path.stat().st_mtime_ns, path.stat().st_size
    return None
