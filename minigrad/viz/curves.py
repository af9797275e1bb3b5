"""Curves of training: loss, learning rate, norm of the gradient and whatever else a run writes down, over its steps."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .axes import Scale, frame, span
from .colors import SERIES
from .files import read_config
from .metrics import Curve, panels_of, read_metrics
from .scene import Ellipse, Group, Line, Scene, Text, clean, text_width

__all__ = ["Best", "best_of", "curves", "drawable", "drawn", "is_wide", "named", "panel", "reach", "room_for"]

WIDTH, HEIGHT = 640, 220
LEFT, RIGHT, ABOVE, BELOW = 62, 12, 30, 26  # around the box of a panel
NAME = 22  # letters of a curve's name that are shown
DOTS = 30  # a curve of fewer points shows them
PANELS = 24  # more columns than this are no metrics of ours


@dataclass(frozen=True)
class Best:
    """Which validation is called the best: of which column, and whether that is the greatest or the least."""

    column: str = "valid_loss"
    maximize: bool = False

    def point(self, curve: Curve) -> tuple[int, float] | None:
        """The step and value of the best point, the first of equals."""
        known = [point for point in curve if math.isfinite(point[1])]
        choose = max if self.maximize else min
        return choose(known, key=lambda point: point[1]) if known else None


def best_of(config: Any) -> Best:
    """What a run calls its best, as its config says."""
    try:
        training = config["training"]
        return Best(f"valid_{training['metric']}", training["maximize"] is True)
    except (LookupError, TypeError):
        return Best()


def curves(source: str | os.PathLike[str] | Mapping[str, Curve], log: bool = False) -> Scene:
    """The curves of a run directory, or of named lists of (step, value), a panel for each quantity, one below the other.

    With `log`, the axes of values that are all above zero show powers of ten. NaN and infinities are gaps with a mark.

    >>> picture = curves({"loss": [(10, 0.7), (20, 0.5)], "valid_loss": [(20, 0.6)], "lr": [(10, 0.1), (20, 0.1)]})
    >>> picture.title
    'loss, lr'
    """
    if isinstance(source, Mapping):
        found, best = panels_of(source), Best()
    else:
        found, best = panels_of(read_metrics(source)), best_of(read_config(source))
    names = list(found)[:PANELS]
    room = room_for(found)
    shapes: list[Any] = [_panel(name, found[name], best, log, room, i * HEIGHT) for i, name in enumerate(names)]
    if not names:
        shapes.append(Text(WIDTH / 2, HEIGHT / 2, "no numbers yet", 12, "faint", "middle"))
    return Scene(WIDTH, HEIGHT * max(len(names), 1), shapes, ", ".join(names))


def room_for(panels: Mapping[str, Mapping[str, Curve]]) -> float:
    """How much room the names at the ends of curves need, so that all panels are equally wide."""
    words = [word for group in panels.values() for word in _words(group).values()]
    return max((text_width(word, 11) for word in words), default=0)


def panel(name: str, group: Mapping[str, Curve], best: Best, log: bool = False, room: float = 100) -> Scene:
    """One panel alone, with so much room for the names at the ends of its curves."""
    return Scene(WIDTH, HEIGHT, [_panel(name, group, best, log, room, 0)], name)


def _words(group: Mapping[str, Curve]) -> dict[str, str]:
    """What is written at the end of each curve: its name, or its last value where it is alone."""
    if len(group) > 1:
        return {column: clean(column, NAME) for column in group}
    return {column: f"{curve[-1][1]:.4g}" for column, curve in group.items()}


def _panel(name: str, group: Mapping[str, Curve], best: Best, log: bool, room: float, top: float) -> Group:
    points = np.array([point for curve in group.values() for point in curve], float).reshape(-1, 2)
    finite = points[np.isfinite(points[:, 1])][:, 1]
    log = log and is_wide(finite)
    right = WIDTH - RIGHT - room - 8
    x = _steps(points[:, 0], LEFT, right)
    y = Scale(*reach(finite, log), top + HEIGHT - BELOW, top + ABOVE, log)
    shapes: list[Any] = [
        Text(LEFT, top + 19, clean(name, 40) + (", powers of ten" if log else ""), 12.5, bold=True),
        Text(LEFT - 24, y.start + 14, "step", 10.5, "faint", "end"),
        *frame(x, y),
    ]
    ends = {}
    for color, (column, curve) in zip(SERIES, group.items()):
        shapes += drawn(np.array(curve, float), x, y, color, len(curve) < DOTS)
        known = [point for point in curve if math.isfinite(point[1])]
        if known:
            ends[column] = (float(y(known[-1][1])), color)
    shapes += named(ends, _words(group), right, y)
    if best.column in group:
        shapes += _best(best.point(group[best.column]), x, y)
    data = {
        "left": LEFT, "right": right, "top": y.end, "bottom": y.start, "first": x.low, "last": x.high,
        "low": y.low, "high": y.high, "log": int(log), "columns": json.dumps(list(group)),
    }  # fmt: skip
    return Group(shapes, "curves", data=data)


def is_wide(values: np.ndarray) -> bool:
    """Whether powers of ten tell more about numbers than the numbers themselves."""
    return bool(len(values)) and bool(values.min() > 0) and bool(values.max() / 5 > values.min())


def _steps(steps: np.ndarray, start: float, end: float) -> Scale:
    """The axis of steps, from the first to the last."""
    if not len(steps):
        return Scale(0, 1, start, end)
    first, last = float(steps.min()), float(steps.max())
    return (
        Scale(first, last, start, end, whole=True)
        if last > first
        else Scale(first - 1, last + 1, start, end, whole=True)
    )


def reach(values: np.ndarray, log: bool, pad: float = 0.05) -> tuple[float, float]:
    """From where to where an axis of numbers or of powers of ten must reach."""
    if not log:
        return span(values, pad)
    low, high = span(np.log10(values), pad)
    return 10.0 ** max(low, -300), 10.0 ** min(high, 300)


def drawable(values: np.ndarray, log: bool) -> np.ndarray:
    """Which numbers have a place on an axis."""
    return np.isfinite(values) & ((values > 0) | (not log))


def drawn(points: np.ndarray, x: Scale, y: Scale, color: str, dots: bool, axis: str = "step") -> list[Any]:
    """A curve through points (N, 2) as lines between its gaps, its points with `dots`, and a cross for every value without a place."""
    placed = drawable(points[:, 0], x.log)
    finite = placed & drawable(points[:, 1], y.log)
    across, up = x(np.where(placed, points[:, 0], np.nan)), y(np.where(finite, points[:, 1], np.nan))
    shapes: list[Any] = []
    pieces = np.split(np.arange(len(up)), np.flatnonzero(finite[1:] != finite[:-1]) + 1)
    for piece in pieces:
        if not finite[piece[0]]:
            continue
        line = _thinned(across[piece], up[piece])
        if len(line) > 1:
            shapes.append(Line(line, stroke=color, thick=1.7 if len(line) < 2 * WIDTH else 1.0))
        if dots or len(line) == 1:
            shapes += [Ellipse(px, py, 4, 4, fill=color, stroke=None) for px, py in line]
    seen: set[int] = set()
    for place in np.flatnonzero(placed & ~finite):
        if round(across[place]) not in seen:
            seen.add(round(across[place]))
            shapes += _cross(float(across[place]), y.end + 7, points[place], axis)
    return shapes


def _thinned(across: np.ndarray, up: np.ndarray) -> list[tuple[float, float]]:
    """Where several points share a column of the picture: the first, the highest, the lowest and the last of them."""
    columns = np.round(across).astype(int)
    starts = np.flatnonzero(np.diff(columns, prepend=columns[0] - 1))
    if len(starts) * 2 > len(columns):
        return list(zip(across.tolist(), up.tolist()))
    kept: list[int] = []
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(columns)]):
        part = up[start:end]
        kept += sorted({start, start + int(part.argmin()), start + int(part.argmax()), end - 1})
    return [(float(across[i]), float(up[i])) for i in kept]


def _cross(x: float, y: float, point: np.ndarray, axis: str) -> list[Any]:
    arms = [Line([(x - 3, y - 3), (x + 3, y + 3)], "error", 1.6), Line([(x - 3, y + 3), (x + 3, y - 3)], "error", 1.6)]
    return [Group(arms, tip=f"{point[1]} at {axis} {point[0]:,.10g}")]


def named(ends: Mapping[str, tuple[float, str]], words: Mapping[str, str], right: float, y: Scale) -> list[Any]:
    """A word at the end of each curve, moved apart where they would lie on each other."""
    order = sorted(ends, key=lambda column: ends[column][0])
    places = np.array([ends[column][0] for column in order])
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + 14)
    for i in reversed(range(len(places))):  # and back up, where they came to lie below the box
        places[i] = min(places[i], (places[i + 1] - 14) if i + 1 < len(places) else y.start - 4)
    return [Text(right + 8, at + 4, words[column], 11, ends[column][1]) for column, at in zip(order, places)]


def _best(point: tuple[int, float] | None, x: Scale, y: Scale) -> list[Any]:
    """A ring around the best validation, and what it is above the box."""
    if point is None:
        return []
    word = f"best {point[1]:.4g} at step {point[0]:,}"
    return [
        Ellipse(float(x(point[0])), float(y(point[1])), 9, 9, fill=None, stroke="ink", thick=1.4),
        Ellipse(x.end - text_width(word, 11) - 10, y.end - 15, 9, 9, fill=None, stroke="ink", thick=1.4),
        Text(x.end, y.end - 11, word, 11, "ink", "end"),
    ]
