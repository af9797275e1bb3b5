"""The numbers of a run: metrics.csv as curves, and which of them belong in one panel."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..train import RunError
from .files import check_run

__all__ = ["Curve", "panels_of", "read_metrics"]

Curve = list[tuple[int, float]]  # steps and values, which may be NaN or infinite
LAST_STEP = 10**15  # no run gets there; a table that says so is damaged


def read_metrics(run: str | os.PathLike[str]) -> dict[str, Curve]:
    """The columns of a run's metrics.csv by their names, each as (step, value), in the order of steps.

    Cells that are empty or no numbers are left out.
    """
    check_run(run)
    path = Path(run) / "metrics.csv"
    try:
        with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
            rows = list(csv.reader(file))
    except (OSError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise RunError(f"{os.fspath(path)!r} cannot be read: {reason}", fix="give the directory of a run") from None
    curves = _columns(rows)
    if not curves:
        raise RunError(f"{os.fspath(path)!r} holds no numbers yet", fix="train for some more steps")
    return curves


def _columns(rows: Sequence[Sequence[str]]) -> dict[str, Curve]:
    names = rows[0] if rows else []
    if "step" not in names:
        return {}
    place = names.index("step")
    curves: dict[str, Curve] = {}
    for row in rows[1:]:
        step = _number(row[place]) if len(row) > place else None
        if step is None or not 0 <= step < LAST_STEP:
            continue
        for name, cell in zip(names, row):
            value = _number(cell)
            if value is not None and name and name != "step":
                curves.setdefault(name, []).append((int(step), value))
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
    return {
        name: group
        for name, group in panels.items()
        if any(math.isfinite(value) for curve in group.values() for _, value in curve)
    }
