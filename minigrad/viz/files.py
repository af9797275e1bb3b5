"""Files of a run directory that somebody else may have written: read only where they are plain and small."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from ..train import RunError

__all__ = ["check_run", "is_plain", "read_config", "text_of"]

CONFIG = 1 << 20  # bytes
PARTS = ("config.json", "metrics.csv", "timing.csv", "checkpoints", "frames", "samples")  # of which a run has one


def check_run(run: str | os.PathLike[str]) -> None:
    """Refuse what is no directory of a run, be it ever so damaged."""
    folder = Path(run)
    if not folder.is_dir():
        what = "is no directory" if folder.exists() else "does not exist"
        raise RunError(f"{os.fspath(run)!r} {what}", "the directory of a run", fix="check the path")
    if not any(os.path.lexists(folder / part) for part in PARTS):
        raise RunError(
            f"{os.fspath(run)!r} is no run", f"a directory with {PARTS[0]} or {PARTS[1]}", fix="check the path"
        )


def is_plain(path: Path) -> bool:
    """A file itself: not what a link leads to, nor anything that would be waited for."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def text_of(path: Path, most: int) -> str | None:
    """The text of a small file; None where it is no plain file, cannot be read or is too large."""
    try:
        if not is_plain(path) or path.stat().st_size > most:
            return None
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return None


def read_config(run: str | os.PathLike[str]) -> dict[str, Any] | None:
    """The config.json of a run: empty where there is none, None where it is damaged."""
    try:
        found = json.loads(text_of(Path(run) / "config.json", CONFIG) or "{}")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
