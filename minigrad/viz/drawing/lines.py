"""Several named lines in one box: whatever is measured or computed over whatever else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from ...errors import ArgumentError, nearest
from .axes import Scale, frame, span
from .colors import SERIES
from .scene import Ellipse, Group, Line, Scene, Text, clean, widest

__all__ = ["lines", "pieces", "plot"]

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, ABOVE, BELOW = 80, 12, 32, 44  # around the box
APART = 14  # from one name to the next
NAME = 22  # letters of a name that are shown
LOGS = ("x", "y", "both")


def lines(
    lines: Mapping[str, tuple[Any, Any]], title: str = "", x: str = "", y: str = "",
    log: Literal[False, "x", "y", "both"] = False, points: bool = False,
) -> Scene:  # fmt: skip
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
    xs, ys = (column[drawable(column, is_log)] for column, is_log in zip(all_points.T, (log_x, log_y)))
    words = {name: clean(name, NAME) for name in arrays}
    right = WIDTH - RIGHT - 8 - widest(words.values(), 11)
    bottom = max(HEIGHT - BELOW, ABOVE + APART * len(words))
    whole = bool(len(xs)) and not log_x and bool((xs == np.rint(xs)).all())
    across = Scale(*span(xs, 0, log_x), LEFT, right, log_x, whole)
    up = Scale(*span(ys, log=log_y), bottom, ABOVE, log_y)
    shapes: list[Any] = [
        Text(LEFT, 20, clean(title, 70), 12.5, bold=True),
        Text((LEFT + right) / 2, bottom + 33, clean(x, 60), 11, "faint", "middle"),
        Text(16, (ABOVE + bottom) / 2, clean(y, 36), 11, "faint", "middle", turned=True),
        *plot(arrays, words, across, up, dots_below=np.inf if points else 0, axis=clean(x, NAME) or "x"),
    ]
    return Scene(WIDTH, bottom + BELOW, shapes, title or "lines")


def plot(
    curves: Mapping[str, np.ndarray], words: Mapping[str, str], x: Scale, y: Scale, dots_below: float, axis: str = "step",
) -> list[Any]:  # fmt: skip
    """A box with curves (N, 2), and the word of each at its end; a curve of fewer points than `dots_below` shows them."""
    shapes, ends = frame(x, y), []
    for number, (name, points) in enumerate(curves.items()):
        color = SERIES[number % len(SERIES)]
        shapes += _curve(points, x, y, color, len(points) < dots_below, axis)
        known = points[drawable(points[:, 0], x.log) & drawable(points[:, 1], y.log)][::-1]
        if len(known):
            ends.append((float(y(known[known[:, 0].argmax(), 1])), words[name], color))
    if not ends:
        shapes.append(Text((x.start + x.end) / 2, (y.start + y.end) / 2, "no numbers", 12, "faint", "middle"))
    return [*shapes, *_end_labels(sorted(ends), x.end + 8, y.start - 4)]


def _check(lines: Any, log: Any) -> None:
    if not isinstance(lines, Mapping):
        raise ArgumentError("lines: lines have names", "a dict, {name: (xs, ys)}", type(lines).__name__)
    if log is not False and not (isinstance(log, str) and log in LOGS):
        wanted = ", ".join(map(repr, LOGS))
        fix = nearest(log, LOGS) if isinstance(log, str) else 'log="both" for both axes'
        raise ArgumentError("lines: log says which axes show powers of ten", f"False, {wanted}", repr(log)[:80], fix)


def _points(name: str, pair: Any) -> np.ndarray:
    what = f"lines: {clean(name, NAME)!r} cannot be drawn"
    try:
        xs, ys = (np.asarray(part) for part in pair)
    except (TypeError, ValueError) as error:
        raise ArgumentError(what, "a pair (xs, ys), each with one number a point", clean(repr(pair), 80)) from error
    if xs.ndim != 1 or xs.shape != ys.shape:
        raise ArgumentError(what, "xs and ys of one length", f"shapes {xs.shape} and {ys.shape}")
    if odd := [part.dtype for part in (xs, ys) if part.dtype.kind not in "biuf"]:
        raise ArgumentError(what, "real numbers", odd[0])
    return np.stack([xs, ys], axis=1, dtype=float, casting="same_kind")


def drawable(values: np.ndarray, log: bool) -> np.ndarray:
    """Which numbers have a place on an axis."""
    return np.isfinite(values) & ((values > 0) | (not log))


def pieces(inside: np.ndarray) -> list[np.ndarray]:
    """The places of each run of True: booleans (N,) -> index arrays."""
    if not len(inside):
        return []
    runs = np.split(np.arange(len(inside)), np.flatnonzero(inside[1:] != inside[:-1]) + 1)
    return [run for run in runs if inside[run[0]]]


def _curve(points: np.ndarray, x: Scale, y: Scale, color: str, dots: bool, axis: str) -> list[Any]:
    """Lines between the gaps of a curve, its points with `dots`, and a cross for every value without a place."""
    placed = drawable(points[:, 0], x.log)
    finite = placed & drawable(points[:, 1], y.log)
    across, up = x(np.where(placed, points[:, 0], np.nan)), y(np.where(finite, points[:, 1], np.nan))
    shapes: list[Any] = []
    for piece in pieces(finite):
        line = _thinned(across[piece], up[piece])
        if len(line) > 1:
            shapes.append(Line(line, stroke=color, thick=1.7 if len(line) < 2 * WIDTH else 1.0))
        if dots or len(line) == 1:
            shapes += [Ellipse(px, py, 4, 4, fill=color, stroke=None) for px, py in line]
    columns = {round(across[place]): place for place in np.flatnonzero(placed & ~finite)[::-1]}
    for place in reversed(columns.values()):  # the first of those in one column of the picture
        a, b = float(across[place]), y.end + 7
        arms = [Line([(a - 3, b - s), (a + 3, b + s)], "error", 1.6) for s in (3, -3)]
        shapes.append(Group(arms, tip=f"{points[place, 1]} at {axis} {points[place, 0]:,.10g}"))
    return shapes


def _thinned(across: np.ndarray, up: np.ndarray) -> list[tuple[float, float]]:
    """Where several points share a column of the picture: the first, the highest, the lowest and the last of them."""
    columns = np.round(across).astype(int)
    starts = [*np.flatnonzero(np.diff(columns, prepend=columns[0] - 1)).tolist(), len(columns)]
    kept = set(range(len(columns)))
    if len(starts) * 2 <= len(columns) + 2:
        ends = [(up[a:b], a, b) for a, b in zip(starts, starts[1:])]
        kept = {i for part, a, b in ends for i in (a, a + int(part.argmin()), a + int(part.argmax()), b - 1)}
    return [(float(across[i]), float(up[i])) for i in sorted(kept)]


def _end_labels(ends: list[tuple[float, str, str]], left: float, lowest: float) -> list[Text]:
    """Words at their heights, moved apart where they would lie on each other."""
    places = [height for height, _, _ in ends]
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + APART)
    for i in reversed(range(len(places))):  # and back up, where they came to lie below the box
        places[i] = min(places[i], (places[i + 1] - APART) if i + 1 < len(places) else lowest)
    return [Text(left, at + 4, word, 11, color) for at, (_, word, color) in zip(places, ends)]
