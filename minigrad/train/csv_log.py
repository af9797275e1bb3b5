"""CSV logs of a run: they grow by a row, survive a crash in the middle of a write, and can be cut back to a step."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from ..errors import ArgumentError
from ..saving import write_atomically

__all__ = ["CSVLog"]

Row = Mapping[str, float | int]
_COLUMN = re.compile(r"[\w.-]+")


class CSVLog:
    """Rows of numbers, one for each step. The first column is `step`; new columns may appear at any time.

    While the disk is full, rows wait in memory, and `problem` holds the error.
    """

    def __init__(self, path: Path):
        self.path = path
        self.columns: list[str] = []
        self.problem: OSError | None = None
        self._size = 0  # how much of the file is whole rows
        self._waiting: list[Row] = []

    def add(self, row: Row) -> None:
        """Append a row. Its numbers are written so that they are read back exactly."""
        for name in row:
            if not _COLUMN.fullmatch(name):
                raise ArgumentError(
                    f"{self.path.name}: {name!r} cannot be a column", "letters, digits, and any of _ . -", repr(name)
                )
        self._waiting.append(dict(row))
        self.flush()

    def flush(self) -> None:
        """Write the rows that wait."""
        try:
            while self._waiting:
                self._write(self._waiting[0])
                self._waiting.pop(0)
            self.problem = None
        except OSError as error:
            self.problem = error

    def _write(self, row: Row) -> None:
        new = [name for name in row if name not in self.columns]
        if new or not self.path.exists():  # rewritten with the new columns, which are empty in the rows so far
            self._replace([*self.columns, *new], [old + "," * len(new) for old in self._lines()[1:]])
        line = ",".join(_cell(row.get(name)) for name in self.columns).encode() + b"\n"
        with open(self.path, "r+b", buffering=0) as file:
            file.seek(self._size)
            file.truncate()  # a failed write may have left something
            if file.write(line) != len(line):
                raise OSError(28, "No space left on device")
        self._size += len(line)

    def _replace(self, columns: list[str], lines: list[str]) -> None:
        content = "".join(f"{line}\n" for line in [",".join(columns), *lines]).encode()
        write_atomically(self.path, content)
        self.columns, self._size = columns, len(content)

    def _lines(self) -> list[str]:
        """The complete lines of the file, which a spreadsheet may have rewritten; a crash may have cut off the last one."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return []
        return content.decode("utf-8-sig", "replace").replace("\r\n", "\n").split("\n")[:-1]

    def rewind(self, step: int) -> None:
        """Continue an existing file without its rows after `step`; rename it if it is no such log."""
        lines = self._lines()
        columns = lines[0].split(",") if lines else []
        if columns[:1] != ["step"]:
            if lines:
                os.replace(self.path, self.path.with_name(f"{self.path.name}.old"))
            self.path.unlink(missing_ok=True)
            return
        kept = [line for line in lines[1:] if line.count(",") == len(columns) - 1 and _is_until(line, step)]
        self._replace(columns, kept)

    def sync(self) -> None:
        """Flush to the disk, so that the rows survive a power cut."""
        self.flush()
        if not self._size or self.problem is not None:
            return
        try:
            with open(self.path, "rb+") as file:
                os.fsync(file.fileno())
        except OSError as error:
            self.problem = error


def _cell(value: float | int | None) -> str:
    return "" if value is None else repr(int(value) if isinstance(value, int) else float(value))


def _is_until(line: str, step: int) -> bool:
    first = line.partition(",")[0]
    return first.isdecimal() and len(first) < 20 and int(first) <= step
