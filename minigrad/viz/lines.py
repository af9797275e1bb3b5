"""Several named lines in one box: whatever is measured or computed over whatever else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from ..engine.errors import ArgumentError, nearest
from .axes import Scale, frame
from .colors import SERIES
from .curves import NAME, drawable, drawn, named, reach
from .scene import Scene, Text, clean, text_width

__all__ = ["lines"]

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, ABOVE, BELOW = 80, 12, 32, 44  # around the box
APART = 14  # from one name to the next
LOGS = ("x", "y", "both")


def lines(
    lines: Mapping[str, tuple[Any, Any]],
    title: str = "",
    x: str = "",
    y: str = "",
    log: Literal[False, "x", "y", "both"] = False,
    points: bool = False,
) -> Scene:
    """Lines (xs, ys) by their names, through their points in the order given; `x` and `y` name the axes.

    An axis in `log` shows powers of ten. A y that is not finite, or not above zero on such an axis, is a gap with a cross;
    where x is so, there is only the gap. `points` marks each point.

    >>> lines({"twice": ([0, 1, 2], [0, 2, 4]), "square": ([0, 1, 2], [0, 1, 4])}, "grows", x="x", y="value").title
    'grows'
    """
    _check(lines, log)
    log_x, log_y = log in ("x", "both"), log in ("y", "both")
    arrays = {name: _points(name, pair) for name, pair in lines.items()}
    all_points = np.concatenate([np.empty((0, 2)), *arrays.values()])  # (N, 2)
    words = {name: clean(name, NAME) for name in arrays}
    right = WIDTH - RIGHT - 8 - max((text_width(word, 11) for word in words.values()), default=0)
    bottom = max(HEIGHT - BELOW, ABOVE + APART * len(words))
    across = _axis(all_points[:, 0], log_x, LEFT, right)
    up = Scale(*reach(_kept(all_points[:, 1], log_y), log_y), bottom, ABOVE, log_y)
    shapes: list[Any] = [*_titles(title, x, y, across, up), *frame(across, up)]
    ends = {}
    for number, (name, array) in enumerate(arrays.items()):
        color = SERIES[number % len(SERIES)]
        known = array[drawable(array[:, 0], log_x) & drawable(array[:, 1], log_y)]
        if len(array):
            shapes += drawn(array, across, up, color, points, clean(x, NAME) or "x")
        if len(known):
            ends[name] = (float(up(known[known[:, 0].argmax(), 1])), color)
    if not ends:
        shapes.append(Text((LEFT + right) / 2, (ABOVE + bottom) / 2, "no numbers", 12, "faint", "middle"))
    return Scene(WIDTH, bottom + BELOW, [*shapes, *named(ends, words, right, up)], title or "lines")


def _check(lines: Any, log: Any) -> None:
    if not isinstance(lines, Mapping):
        raise ArgumentError("lines: lines have names", "a dict, {name: (xs, ys)}", type(lines).__name__)
    if log is not False and not (isinstance(log, str) and log in LOGS):
        wanted = ", ".join(map(repr, LOGS))
        fix = nearest(log, LOGS) if isinstance(log, str) else 'log="both" for both axes'
        raise ArgumentError("lines: log says which axes show powers of ten", f"False, {wanted}", repr(log)[:80], fix)


def _points(name: str, pair: Any) -> np.ndarray:
    """The points of a line, (N, 2)."""
    what = f"lines: {clean(name, NAME)!r} cannot be drawn"
    try:
        xs, ys = (np.asarray(part) for part in pair)
    except (TypeError, ValueError) as error:
        raise ArgumentError(what, "a pair (xs, ys), each with one number a point", clean(repr(pair), 80)) from error
    if xs.ndim != 1 or xs.shape != ys.shape:
        raise ArgumentError(what, "xs and ys of one length", f"shapes {xs.shape} and {ys.shape}")
    for part in (xs, ys):
        if part.dtype.kind not in "biuf":
            raise ArgumentError(what, "real numbers", part.dtype)
    return np.stack([xs, ys], axis=1, dtype=float, casting="same_kind")


def _kept(values: np.ndarray, log: bool) -> np.ndarray:
    return values[drawable(values, log)]


def _axis(values: np.ndarray, log: bool, start: float, end: float) -> Scale:
    """The axis across, from the first to the last; of whole numbers, only those are written beside it."""
    kept = _kept(values, log)
    whole = bool(len(kept)) and not log and bool((kept == np.rint(kept)).all())
    return Scale(*reach(kept, log, pad=0), start, end, log, whole)


def _titles(title: str, x: str, y: str, across: Scale, up: Scale) -> list[Text]:
    return [
        Text(LEFT, 20, clean(title, 70), 12.5, bold=True),
        Text((across.start + across.end) / 2, up.start + 33, clean(x, 60), 11, "faint", "middle"),
        Text(16, (up.start + up.end) / 2, clean(y, 36), 11, "faint", "middle", turned=True),
    ]
