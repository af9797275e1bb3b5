"""Runs what a learner wrote, in a process of its own with little time and memory, and says which exercises are right.

    python -m minigrad.learn.worker FILE LESSON|engine MEMORY SECONDS [EXERCISE …]

It writes a line of JSON before each exercise and one after it. What the learner prints is kept apart, and told with the
verdict.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import sys
from typing import Any

from .engine import ENGINE
from .exercise import MISSING, described, tried
from .lessons import exercises

PRINTED = 1000  # characters of what an answer prints that are told
FILES = 2**24  # bytes that it may write to a file


class Kept(io.StringIO):
    """Keeps the beginning of what is printed."""

    def write(self, text: str) -> int:
        """Write a text, as far as there is room."""
        super().write(text[: max(0, PRINTED - self.tell())])
        return len(text)


def limit(memory: int, seconds: int) -> None:
    """Let this process have so many bytes and seconds more, where the system can hold it to that."""
    try:
        import resource
    except ImportError:  # Windows: the parent stops what takes too long, and memory is not limited
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    limits = {
        "RLIMIT_AS": _address_space() + memory,
        "RLIMIT_CPU": int(used.ru_utime + used.ru_stime) + seconds + 1,
        "RLIMIT_FSIZE": FILES,
        "RLIMIT_CORE": 0,
    }
    for name, most in limits.items():
        with contextlib.suppress(ValueError, OSError):  # a limit that is lower already stays, and macOS lacks some
            resource.setrlimit(getattr(resource, name), (most, most))


def _address_space() -> int:
    """The bytes of addresses that this process has, of which libraries reserve more than they use."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 2**32


def loaded(path: str) -> Any:
    """The learner's file as a module."""
    spec = importlib.util.spec_from_file_location("exercises", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["exercises"] = module
    spec.loader.exec_module(module)
    return module


def main(words: list[str]) -> None:
    """Try the exercises that are named, or all, and tell of each."""
    path, number, memory, seconds, *names = words
    known = ENGINE if number == "engine" else exercises(int(number))
    # What a learner prints, and whatever writes to the standard output, goes elsewhere from here on.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as channel:
        os.dup2(2, 1)

        def tell(**said: Any) -> None:
            print(json.dumps(said), file=channel, flush=True)

        limit(int(memory), int(seconds))
        tell(begun="")
        with contextlib.redirect_stdout(Kept()) as printed, contextlib.redirect_stderr(printed):
            try:
                module = loaded(path)
            except MemoryError:
                return tell(file={"status": "memory"})
            except (Exception, SystemExit) as error:
                return tell(file={"status": "failed", "got": described(error, path)})
        for one in known:
            if not names or one.name in names:
                tell(begun=one.name)
                with contextlib.redirect_stdout(Kept()) as printed, contextlib.redirect_stderr(printed):
                    verdict = tried(one, getattr(module, one.answer or one.name, MISSING), path)
                tell(name=one.name, printed=printed.getvalue(), **verdict)
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(0)  # threads and exit handlers of the learner's code do not hold the answer up
