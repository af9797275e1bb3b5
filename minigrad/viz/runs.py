"""What of a run directory can be shown: whatever is there and whole, of a run that is training, finished or damaged."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..engine.errors import MinigradError
from ..train.progress import duration
from ..train.run import files_of_steps
from .curves import Best, best_of
from .files import is_plain, read_config, text_of
from .metrics import Curve, read_metrics

__all__ = ["FRAME", "SAMPLE", "Shown", "read_run"]

SAMPLE, FRAME = 1 << 16, 1 << 21  # bytes of a file that are shown
PARTS = 80  # samples and frames: more are no run's of ours


@dataclass(frozen=True)
class Shown:
    """A run as far as it could be read."""

    folder: Path
    config: Mapping[str, Any]  # of config.json: "config", "training" and "versions"
    curves: Mapping[str, Curve]
    best: Best
    seconds: float | None
    frames: Mapping[int, Path]
    samples: Mapping[int, Path]
    problems: list[str]

    @property
    def name(self) -> str:
        """The folder's own name."""
        return self.folder.absolute().name or "run"

    def part(self, name: str) -> dict[str, Any]:
        """A part of config.json, empty where it is missing."""
        found = self.config.get(name)
        return dict(found) if isinstance(found, dict) else {}

    @property
    def step(self) -> int:
        """The last step that was written down."""
        return max((curve[-1][0] for curve in self.curves.values() if curve), default=0)

    def summary(self) -> list[tuple[str, str]]:
        """What it is and how far it came, as pairs of words."""
        story, training = self.part("config"), self.part("training")
        asked = training.get("max_steps")
        steps = f"{self.step:,} of {asked:,}" if isinstance(asked, int) and asked != self.step else f"{self.step:,}"
        best = self.best.point(list(self.curves.get(self.best.column, [])))
        pairs = [
            ("model", story.get("model") or training.get("model")),
            ("preset", story.get("preset")),
            ("seed", story.get("seed", training.get("seed"))),
            ("steps", steps),
            ("best " + self.best.column, None if best is None else f"{best[1]:.6g} at step {best[0]:,}"),
            ("time", None if self.seconds is None else duration(self.seconds)),
            ("device", story.get("device")),
            ("data", _names(story.get("data"))),
        ]
        return [(label, str(value)) for label, value in pairs if value is not None]


def _names(data: Any) -> str | None:
    """Paths without their folders, which are nobody's business but of who trained."""
    return ", ".join(os.path.basename(part) for part in data.split(",")) if isinstance(data, str) else None


def read_run(run: str | os.PathLike[str]) -> Shown:
    """All that can be shown of a run directory; what cannot be read is among the problems."""
    folder = Path(run)
    config = read_config(folder)
    problems = ["config.json is damaged"] if config is None else []
    return Shown(
        folder,
        config or {},
        _metrics(folder, problems),
        best_of(config),
        _seconds(folder),
        _few(files_of_steps(folder / "frames")),
        _few(files_of_steps(folder / "samples")),
        problems,
    )


def _metrics(folder: Path, problems: list[str]) -> dict[str, Curve]:
    if not is_plain(folder / "metrics.csv"):
        problems.append("there is no metrics.csv yet")
        return {}
    try:
        return read_metrics(folder)
    except MinigradError as error:
        problems.append(str(error).splitlines()[0].replace(repr(os.fspath(folder / "metrics.csv")), "metrics.csv"))
        return {}


def _seconds(folder: Path) -> float | None:
    """How long it has trained, as the last row of timing.csv says."""
    text = text_of(folder / "timing.csv", 1 << 26)
    try:
        rows = list(csv.DictReader((text or "").splitlines()))
        seconds = float(rows[-1]["seconds"])
    except (csv.Error, LookupError, TypeError, ValueError):
        return None
    return seconds if 0 <= seconds < math.inf else None


def _few(files: Mapping[int, Path]) -> dict[int, Path]:
    """Evenly some of them, the first and the last included."""
    steps = list(files)
    while len(steps) > PARTS:
        steps = steps[:1] + steps[1:-1][::2] + steps[-1:]
    return {step: files[step] for step in steps if is_plain(files[step])}
