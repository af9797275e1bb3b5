"""Ctrl-C and SIGTERM while training: the first asks to stop, the second stops."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from typing import Any

__all__ = ["StopSignal"]

_NOTICE = b"\nstopping after this step, then saving; once more to stop at once, without saving\n"


class StopSignal:
    """Inside, the first SIGINT or SIGTERM only sets `received`, and says so if `verbose`; the second has its usual effect.

    Python delivers signals to the main thread: in other threads this does nothing.
    """

    def __init__(self, verbose: bool = True) -> None:
        self.received = False
        self._verbose = verbose
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> StopSignal:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                # None: the handler was not set by Python. SIG_IGN: the process ignores it, as under nohup.
                if signal.getsignal(number) not in (None, signal.SIG_IGN):
                    self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()

    def _handle(self, number: int, frame: Any) -> None:
        if self.received:
            self.__exit__()
            signal.raise_signal(number)
            return
        self.received = True
        if self._verbose:
            with contextlib.suppress(OSError):
                os.write(2, _NOTICE)  # unlike print, safe in a signal handler
