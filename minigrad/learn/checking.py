"""Marks a learner's file: it is run in a process of its own, and stopped when it takes too long."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ArgumentError
from .engine import ENGINE
from .exercise import Exercise
from .lessons import exercises
from .sheet import lesson_of

__all__ = ["MEMORY", "SECONDS", "Verdict", "check", "check_engine"]

SECONDS = 10.0  # for one exercise
MEMORY = 2**30  # bytes, beyond what minigrad itself takes
START = 60.0  # seconds for Python and minigrad to start
ROOT = Path(__file__).resolve().parents[2]
# What the process may know of its surroundings.
KEPT = (
    "PATH",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "TMPDIR",
    "HOME",
    "USERPROFILE",
    "APPDATA",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "VIRTUAL_ENV",
)


@dataclass(frozen=True)
class Verdict:
    """What became of one exercise: right, wrong, open, failed, slow, or memory; and what is told of it."""

    name: str
    status: str
    case: str = ""  # the call that was tried
    at: str = ""  # the place in the result of the first difference
    expected: str = ""
    got: str = ""
    hint: str = ""
    printed: str = ""
    whole: bool = False  # it is of the file, which could not even be read to its end, and so of all exercises


def check(path: Path, seconds: float = SECONDS, memory: int = MEMORY) -> list[Verdict]:
    """A verdict on each exercise of the lesson that a file holds, in their order.

    The file runs in another process, which may take so many seconds for an exercise and so many bytes of memory. (On Windows
    and macOS only the time is limited.) An exercise that breaks its process, or is too slow, does not spoil the others.
    """
    return _checked(path, str(number := lesson_of(path)), exercises(number), seconds, memory)


def check_engine(path: Path, seconds: float = SECONDS, memory: int = MEMORY) -> list[Verdict]:
    """A verdict on the `Value` of a file of lesson 2, for each thing of lessons 3 to 6 that it computes in the place of minigrad."""
    if lesson_of(path) != 2:
        raise ArgumentError(
            f"{str(path)!r} has no engine", "a file of lesson 2, with its Value", f"lesson {lesson_of(path)}"
        )
    return _checked(path, "engine", ENGINE, seconds, memory)


def _checked(path: Path, number: str, tried: list[Exercise], seconds: float, memory: int) -> list[Verdict]:
    known = {one.name: one for one in tried}
    verdicts: dict[str, Verdict] = {}
    while rest := [name for name in known if name not in verdicts]:
        words = [str(path.resolve()), number, str(memory), str(int(seconds * len(known)) + 1), *rest]
        begun = None
        for said in _said(words, seconds):
            if "begun" in said:
                begun = said["begun"]
            elif "file" in said:  # it cannot even be read, so all of it shares the verdict
                return [Verdict(name, whole=True, **said["file"]) for name in known]
            elif "name" in said and said["name"] in known:
                verdicts[said["name"]] = _verdict(said, known[said["name"]].hint)
                begun = None
            elif "stopped" in said and begun:
                verdicts[begun] = _verdict({"name": begun, "status": said["stopped"]}, known[begun].hint)
            elif "stopped" in said and begun is None:
                raise ArgumentError("the process for exercises does not start", fix="minigrad doctor")
            elif "stopped" in said:
                return [Verdict(name, said["stopped"], whole=True) for name in known]
    return [verdicts[name] for name in known]


def _verdict(said: dict[str, Any], hint: str) -> Verdict:
    told = {key: str(said.get(key, "")) for key in ("name", "status", "at", "expected", "got", "printed")}
    return Verdict(case=str(said.get("for", "")), hint=hint, whole=False, **told)


def _said(words: list[str], seconds: float) -> Iterator[dict[str, Any]]:
    """What the process tells, line by line; at the end, unless it ended well, how it was `stopped`: slow or crashed."""
    settings = {name: os.environ[name] for name in KEPT if name in os.environ}
    path = [str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    settings |= {"PYTHONPATH": os.pathsep.join(path), "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    settings |= {"MINIGRAD_KERNELS": "numpy", "MINIGRAD_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", "minigrad.learn.worker", *words],
            cwd=folder, env=settings, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, encoding="utf-8", errors="replace", start_new_session=True,
        )  # fmt: skip
        lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=_read, args=(process, lines), daemon=True).start()
        patience = START
        try:
            while (line := lines.get(timeout=patience)) is not None:
                patience = seconds
                with contextlib.suppress(ValueError):
                    yield json.loads(line)
            process.wait(timeout=seconds)
            if process.returncode:
                yield {"stopped": "slow" if -process.returncode == getattr(signal, "SIGXCPU", None) else "crashed"}
        except (queue.Empty, subprocess.TimeoutExpired):
            yield {"stopped": "slow"}
        finally:
            _kill(process)


def _read(process: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put(None)


def _kill(process: subprocess.Popen[str]) -> None:
    """End a process, and those that it started, where the system knows them together."""
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
    process.wait()
