"""Console output: tables, JSON, and error messages, which differ for mistakes of a user and of a plugin."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import textwrap
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

from ..errors import CheckpointError, DeviceError, MinigradError, MissingExtraError, NonFiniteError, printable
from ..tree import jsonable

__all__ = ["as_command", "as_json", "explained", "printable", "styled", "table"]


LEAST_COLUMN = 20  # letters to a line, however narrow the terminal is
STYLES = {"good": "32", "bad": "31", "faint": "2"}  # codes of terminals


def styled(text: str, style: str, stream: TextIO | None = None) -> str:
    """A text in colour where it goes to a terminal; NO_COLOR=1 is respected."""
    stream = sys.stdout if stream is None else stream
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty()
    return text if is_plain else f"\x1b[{STYLES[style]}m{text}\x1b[0m"


def as_json(value: Any) -> str:
    """Standard JSON: NaN and infinity become null."""
    return json.dumps(jsonable(value), indent=2)


def table(rows: Iterable[Sequence[Any]], wrapped: bool = False) -> str:
    """Rows as aligned columns, two spaces apart; `wrapped` breaks the last one to fit the terminal, if there is one."""
    cells = [[printable(cell).replace("\n", " ") for cell in row] for row in rows]
    if not cells:
        return ""
    *widths, last = [max(map(len, column)) for column in zip(*cells)]
    if wrapped and sys.stdout.isatty():
        last = max(shutil.get_terminal_size().columns - sum(widths) - 2 * len(widths), LEAST_COLUMN)
    lines = []
    for *first, text in cells:
        for part in textwrap.wrap(text, last, break_on_hyphens=False) if len(text) > last else [text]:
            lines.append("  ".join([*(cell.ljust(width) for cell, width in zip(first, widths)), part]).rstrip())
            first = [""] * len(first)
    return "\n".join(lines)


def as_command(*words: object) -> str:
    """A command that can be copied into a shell."""
    return shlex.join(["minigrad", *map(str, words)])


def explained(error: Exception, run: Path | None = None) -> str:
    """The message of an error, with its fix; `run` is the run directory, whose last checkpoint is named."""
    place = _place(error.__cause__ if isinstance(error.__cause__, Exception) else error)
    if isinstance(error, MinigradError):
        text = str(error) + (f"\n  where:    {place}" if place and not _is_meant_for_the_user(error) else "")
    elif isinstance(error, MemoryError):
        text = "there is not enough memory\n  fix:      use a smaller batch=…, or a smaller preset"
    elif place:
        fix = "if none of the settings explains it, the plugin needs repair; --debug shows the traceback"
        text = f"a plugin failed: {type(error).__name__}: {error}\n  fix:      {fix}\n  where:    {place}"
    elif isinstance(error, OSError):
        where = f"{error.filename!r}: " if error.filename is not None else ""
        text = f"{where}{error.strerror or error}"
    else:
        fix = "this is a mistake in minigrad, not yours; please report it with what --debug shows"
        text = f"{type(error).__name__}: {error}\n  fix:      {fix}"
    return printable(text if "minigrad resume" in text else text + _kept(run))


def _kept(run: Path | None) -> str:
    from ..train.run import checkpoints_of, step_of

    try:
        saved = checkpoints_of(run) if run is not None else []
    except MinigradError:
        return ""
    if not saved:
        return ""
    return (
        f"\n  kept:     the checkpoint of step {step_of(saved[-1]):,}; go on from it with: {as_command('resume', run)}"
    )


def _place(error: Exception) -> str | None:
    """The innermost line of a traceback in a plugin: in the first package that is neither minigrad's nor a library's."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}"
    frames = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__) if _package(frame) not in _OWN]
    if not frames:
        return None
    owner = _package(frames[0][0])
    frame, line = [(frame, line) for frame, line in frames if _package(frame) == owner][-1]
    return f"{frame.f_code.co_filename}:{line}, in {frame.f_code.co_name}"


_OWN = {  # packages that minigrad itself calls
    "", "__main__", "minigrad", "numpy", "safetensors", "threadpoolctl", "numba", "llvmlite", "cupy", "cupyx", "mpi4py",
    "matplotlib", *sys.stdlib_module_names,
}  # fmt: skip


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _is_meant_for_the_user(error: MinigradError) -> bool:
    """Whether an error needs no line of a plugin: the plugin raised it on purpose, or it is about files or the machine."""
    from ..data.errors import DataError
    from ..train import RunError

    if isinstance(error, (DataError, CheckpointError, RunError, MissingExtraError, DeviceError, NonFiniteError)):
        return True
    *_, (last, _) = traceback.walk_tb(error.__traceback__)
    return error.__cause__ is None and _package(last) not in _OWN
