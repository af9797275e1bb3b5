"""What a learner has got right so far: a small file beside the exercises."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from ..errors import ArgumentError
from ..saving.files import write_atomically
from .lessons import TITLES

__all__ = ["FILE", "progress_in", "record"]

FILE = "progress.json"


def progress_in(folder: Path) -> dict[int, list[str]]:
    """The exercises of each lesson that were right when they were last checked, by what a folder says; nothing, if nothing."""
    path = folder / FILE
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {int(number): [str(name) for name in names] for number, names in found.items() if int(number) in TITLES}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, TypeError):
        raise ArgumentError(f"{str(path)!r} is damaged", fix="delete it, and check your files again") from None


def record(folder: Path, number: int, right: Iterable[str]) -> None:
    """Note which exercises of a lesson are right."""
    found = {**progress_in(folder), number: [*right]}
    text = json.dumps({str(lesson): names for lesson, names in sorted(found.items())}, indent=1)
    write_atomically(folder / FILE, f"{text}\n".encode(), durable=False)
