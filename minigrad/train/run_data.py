"""Reads a run directory for display; skips what is missing or damaged, and reads only regular files of bounded size."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import MinigradError
from ..metrics.units import spelled
from ..saving import write_atomically
from .progress import duration
from .run import RunError, files_of_steps

__all__ = [
    "Best", "Curve", "RunData", "check_run", "panels_of", "read_config", "read_metrics", "read_run", "shown_path", "text_of",
    "write_scores",
]  # fmt: skip

Curve = list[tuple[int, float]]  # steps and values, which may be NaN or infinite
LAST_STEP = 10**15  # no run gets there; a table that says so is damaged
CONFIG, SAMPLE, FRAME = 1 << 20, 1 << 16, 1 << 21  # bytes of a file that are read
MOST_FILES = 80  # samples and frames: more are no run's of ours
SCORES = "scores.json"  # of the last evaluation
RECENT = 20  # rows of timing.csv that the time left is told from
NOISES = {"smoothing": "label smoothing", "dropout": "dropout", "sampling": "scheduled sampling"}  # of training alone
PARTS = ("config.json", "metrics.csv", "timing.csv", "checkpoints", "frames", "samples")  # of which a run has one


@dataclass(frozen=True)
class Best:
    """Which validation is called the best: of which column, and whether that is the greatest or the least."""

    column: str = "valid_loss"
    maximize: bool = False

    @classmethod
    def of(cls, config: Any) -> Best:
        """What the config.json of a run says."""
        try:
            return cls(f"valid_{config['training']['metric']}", config["training"]["maximize"] is True)
        except (LookupError, TypeError):
            return cls()

    def point(self, curve: Curve) -> tuple[int, float] | None:
        """The step and value of the best point, the first of equals."""
        known = [point for point in curve if math.isfinite(point[1])]
        return (max if self.maximize else min)(known, key=lambda point: point[1]) if known else None


@dataclass(frozen=True)
class RunData:
    """A run as far as it could be read."""

    folder: Path
    config: Mapping[str, Any]  # of config.json: "config", "training" and "versions"
    curves: Mapping[str, Curve]
    best: Best
    timing: list[tuple[float, float, float]]  # steps, seconds, and units per second
    evaluated: Mapping[str, float]  # the scores of the last evaluation
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

    def scores(self) -> list[tuple[str, str]]:
        """What it reached, as pairs of words: the best validation, or else the last loss, and the last evaluation."""
        best = self.best.point(list(self.curves.get(self.best.column, [])))
        columns = sorted(
            (name for name in self.curves if name.startswith("valid_")), key=lambda n: n != self.best.column
        )
        found = {} if best is None else {n.removeprefix("valid_"): dict(self.curves[n]).get(best[0]) for n in columns}
        pairs = [(f"validation: {_words(name)}", spelled(name, v)) for name, v in found.items() if v is not None]
        if not pairs and self.curves.get("loss"):
            pairs = [("training: loss", spelled("loss", self.curves["loss"][-1][1]))]
        return pairs + [(f"test: {_words(name)}", spelled(name, v)) for name, v in self.evaluated.items()]

    def summary(self) -> list[tuple[str, str]]:
        """What it is and how far it came, as pairs of words."""
        config, training = self.part("config"), self.part("training")
        step = max((curve[-1][0] for curve in self.curves.values() if curve), default=0)
        asked, data = training.get("max_steps"), config.get("data")
        best = self.best.point(list(self.curves.get(self.best.column, [])))
        pairs = {
            "model": config.get("model") or training.get("model"),
            "preset": config.get("preset"),
            "seed": config.get("seed", training.get("seed")),
            "steps": f"{step:,} of {asked:,}" if isinstance(asked, int) and asked != step else f"{step:,}",
            "best validation": None if best is None else f"at step {best[0]:,}",
            "time": duration(self.timing[-1][1]) if self.timing else None,
            "device": config.get("device"),
            # Only file names: folders would tell about the machine that trained.
            "data": ", ".join(map(os.path.basename, data.split(","))) if isinstance(data, str) else None,
        }
        return [(label, str(value)) for label, value in pairs.items() if value is not None]

    def progress(self) -> dict[str, Any] | None:
        """How far it is of how many steps, and in words how fast and for how long yet; None where that is not known."""
        asked = self.part("training").get("max_steps")
        if not isinstance(asked, int) or not 0 < asked < LAST_STEP or len(self.timing) < 2:
            return None
        (first, began, _), (step, now, speed) = self.timing[-RECENT:][0], self.timing[-1]
        left = (asked - step) * (now - began) / max(step - first, 1)
        words = f"step {step:,.0f} of {asked:,} · {speed:,.0f} units/s · {duration(max(left, 0))} left"
        return {"step": step, "of": asked, "words": words}

    def note(self) -> str:
        """Why the training loss lies above that of validation, where it does and the settings say why."""
        both = [dict(self.curves.get(name, [])) for name in ("loss", "valid_loss")]
        shared = sorted(both[0].keys() & both[1].keys())
        own = self.part("config").get("config")
        values = {word: own.get(name) for name, word in NOISES.items()} if isinstance(own, dict) else {}
        noises = [f"{word} {v:g}" for word, v in values.items() if isinstance(v, float) and 0 < v < math.inf]
        if not noises or not shared or not both[0][shared[-1]] > both[1][shared[-1]]:
            return ""
        return f"The training loss is taken with {' and '.join(noises)}, that of validation without: so it lies above."


def _words(name: str) -> str:
    """The name of a score as it is written: `exact_match` is "exact match"."""
    return {"bleu": "BLEU", "chrf": "chrF"}.get(name, name.replace("_", " "))


def check_run(run: str | os.PathLike[str]) -> None:
    """Refuse what is no directory of a run; even a damaged one is accepted."""
    folder = Path(run)
    if not folder.is_dir():
        what = "is no directory" if folder.exists() else "does not exist"
        raise RunError(f"{os.fspath(run)!r} {what}", "the directory of a run", fix="check the path")
    if not any(os.path.lexists(folder / part) for part in PARTS):
        wanted = f"a directory with {PARTS[0]} or {PARTS[1]}"
        raise RunError(f"{os.fspath(run)!r} is no run", wanted, fix="check the path")


def shown_path(run: str | os.PathLike[str]) -> str:
    """The path of a run for a command typed here; of one that lies elsewhere its name, since folders tell about the machine."""
    folder = Path(run).absolute()
    return os.fspath(folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder.name)


def _is_regular_file(path: Path) -> bool:
    """A file itself: not what a link leads to, nor anything that would be waited for."""
    return os.path.isfile(path) and not os.path.islink(path)


def text_of(path: Path, most: int) -> str | None:
    """The text of a small file; None where it is no regular file, cannot be read or is too large."""
    try:
        if not _is_regular_file(path) or path.stat().st_size > most:
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


def read_metrics(run: str | os.PathLike[str]) -> dict[str, Curve]:
    """The columns of a run's metrics.csv by name, each as (step, value) in order; cells without a number are left out."""
    check_run(run)
    path = Path(run) / "metrics.csv"
    try:
        with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
            names, *rows = list(csv.reader(file)) or [[]]
    except (OSError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise RunError(f"{os.fspath(path)!r} cannot be read: {reason}", fix="give the directory of a run") from None
    curves: dict[str, Curve] = {}
    for row in rows:
        cells = {name: value for name, cell in zip(names, row) if (value := _number(cell)) is not None}
        step = cells.pop("step", None)
        if step is not None and 0 <= step < LAST_STEP:
            for name in filter(None, cells):
                curves.setdefault(name, []).append((int(step), cells[name]))
    if not curves:
        raise RunError(f"{os.fspath(path)!r} holds no numbers yet", fix="train for some more steps")
    return {name: sorted(curve, key=lambda point: point[0]) for name, curve in curves.items()}


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def panels_of(curves: Mapping[str, Curve]) -> dict[str, dict[str, Curve]]:
    """Each quantity with its curves: that of training, and that of validation beside it; one without any number is left out.

    >>> list(panels_of({"loss": [(1, 2.0)], "lr": [(1, 0.1)], "valid_loss": [(1, 2.5)]})["loss"])
    ['loss', 'valid_loss']
    """
    panels: dict[str, dict[str, Curve]] = {}
    for name, curve in curves.items():
        panels.setdefault(name.removeprefix("valid_"), {})[name] = curve
    numbers = {name: [value for curve in group.values() for _, value in curve] for name, group in panels.items()}
    return {name: group for name, group in panels.items() if any(map(math.isfinite, numbers[name]))}


def read_run(run: str | os.PathLike[str]) -> RunData:
    """All that can be shown of a run directory; what cannot be read is among the problems."""
    folder = Path(run)
    config, curves, table = read_config(folder), {}, folder / "metrics.csv"
    problems = ["config.json is damaged"] if config is None else []
    try:
        curves = read_metrics(folder) if _is_regular_file(table) else {}
        problems += [] if curves else [_why_no_curves(folder, config)]
    except MinigradError as error:
        problems.append(str(error).splitlines()[0].replace(repr(os.fspath(table)), table.name))
    frames, samples = (_some(files_of_steps(folder / name)) for name in ("frames", "samples"))
    return RunData(
        folder, config or {}, curves, Best.of(config), _timing(folder), _evaluated(folder), frames, samples, problems
    )


def _why_no_curves(folder: Path, config: Any) -> str:
    if config and "format" in config:
        return "this is an exported model: its settings and its graph are shown; curves and samples stay in its run"
    return "there is no metrics.csv yet" if folder.is_dir() else "nothing is written yet"


def _evaluated(folder: Path) -> dict[str, float]:
    """Only the finite numbers of an evaluation: words and counts are no scores."""
    try:
        found = json.loads(text_of(folder / SCORES, CONFIG) or "{}")
    except (ValueError, RecursionError):
        return {}
    items = found.items() if isinstance(found, dict) else ()
    return {name: value for name, value in items if isinstance(value, float) and math.isfinite(value)}


def write_scores(run: str | os.PathLike[str], scores: Mapping[str, Any]) -> None:
    """Keep the scores of an evaluation beside the run, where its report finds them; of what is no run, or read-only, none."""
    folder = Path(run)
    if not (folder / "config.json").is_file() or not (folder / "checkpoints").is_dir():
        return
    known = {name: value for name, value in scores.items() if isinstance(value, float) and math.isfinite(value)}
    with contextlib.suppress(OSError):
        write_atomically(folder / SCORES, (json.dumps(known, indent=1) + "\n").encode())


def _timing(folder: Path) -> list[tuple[float, float, float]]:
    """The rows of timing.csv as far as they make sense."""
    found: list[tuple[float, float, float]] = []
    try:
        for row in csv.DictReader((text_of(folder / "timing.csv", 1 << 26) or "").splitlines()):
            step, seconds, speed = (float(row.get(name) or "nan") for name in ("step", "seconds", "units_per_second"))
            if 0 <= step < LAST_STEP and 0 <= seconds < math.inf:
                found.append((step, seconds, speed if 0 <= speed < math.inf else 0.0))
    except (csv.Error, TypeError, ValueError):
        pass
    return found


def _some(files: Mapping[int, Path]) -> dict[int, Path]:
    steps = list(files)
    while len(steps) > MOST_FILES:
        steps = steps[:1] + steps[1:-1][::2] + steps[-1:]
    return {step: files[step] for step in steps if _is_regular_file(files[step])}
