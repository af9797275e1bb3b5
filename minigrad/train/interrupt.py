"""Ctrl-C and termination while training: the first asks to stop, the second stops."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from typing import Any

__all__ = ["Interrupts"]

_NAMES = ("SIGINT", "SIGTERM")
_NOTICE = b"\nstopping after this step, then saving; once more to stop at once, without saving\n"


class Interrupts:
    """Inside, the first SIGINT or SIGTERM only sets `asked`; the second has its usual effect. In other threads, nothing.

    Unless `aloud`, it does not tell that it has heard.
    """

    def __init__(self, aloud: bool = True) -> None:
        self.asked = False
        self._aloud = aloud
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for name in _NAMES:
                number = getattr(signal, name)
                # None: something other than Python has set it. SIG_IGN: it was started so as not to hear, as by nohup.
                if signal.getsignal(number) not in (None, signal.SIG_IGN):
                    self._previous[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()

    def _take(self, number: int, frame: Any) -> None:
        if self.asked:
            self.__exit__()
            signal.raise_signal(number)
            return
        self.asked = True
        if not self._aloud:
            return
        with contextlib.suppress(OSError):
            os.write(2, _NOTICE)  # unlike print, it may be called in the middle of anything
