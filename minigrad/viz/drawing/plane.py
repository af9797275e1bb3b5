"""What a model does on a plane: where it decides, what it fits, and in which directions it stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .axes import Scale, frame, labels, span
from .colors import SERIES, diverging
from .heatmap import checked, heatmap
from .lines import pieces
from .scene import Ellipse, Group, Image, Line, Rect, Scene, Text, clean

__all__ = ["decision_surface", "directions", "fit"]

GRID = 150  # rows and columns of a surface that are computed
SIDE = 300  # of a square picture's box
LEFT, ABOVE, BELOW, RIGHT = 56, 34, 30, 16
BAR = 70  # room for a scale of colours


def _plot(
    x: tuple[float, float], y: tuple[float, float], title: str, width: float = SIDE, most: tuple[int, int] = (5, 5)
) -> tuple[Scale, Scale, list[Any]]:
    across, up = Scale(*x, LEFT, LEFT + width), Scale(*y, ABOVE + SIDE, ABOVE)
    heading = [Text(LEFT, 20, clean(title, 60), 12.5, bold=True)] if title else []
    return across, up, [*heading, *frame(across, up, most)]


def decision_surface(f: Callable[[np.ndarray], Any], rows: Any, targets: Any, title: str = "") -> Scene:
    """How probable the answer 1 is all over the plane, the line where it is even, and the examples that are learned.

    `f` takes points (N, 2) of float32 and returns N probabilities; `rows` (n, 2) are examples, `targets` their n answers.
    An example whose answer is 1 is a square, and one whose answer is 0 a circle.

    >>> decision_surface(lambda p: p[:, 0], [[0, 0], [1, 1]], [0, 1]).width
    442
    """
    rows = checked("decision_surface: these cannot be drawn", rows, "rows", 2)
    targets = np.asarray(targets, float).reshape(-1)
    x, y, shapes = _plot(span(rows[:, 0], pad=0.5), span(rows[:, 1], pad=0.5), title)
    across, up = np.linspace(x.low, x.high, GRID), np.linspace(y.high, y.low, GRID)
    points = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2).astype(np.float32)  # (GRID * GRID, 2)
    values = np.asarray(f(points), float).reshape(GRID, GRID) - 0.5
    shapes += [
        Image(LEFT, ABOVE, SIDE, SIDE, diverging(values, 0.5)),
        Rect(LEFT, ABOVE, SIDE, SIDE, None, "line"),
        *[Line(list(zip(x(piece[0]), y(piece[1]))), "#1c2530", 1.6) for piece in _zero_line(values, across, up)],
        *[_example(float(x(a)), float(y(b)), target > 0.5) for (a, b), target in zip(rows, targets)],
        *_color_bar(),
    ]
    return Scene(LEFT + SIDE + RIGHT + BAR, ABOVE + SIDE + BELOW, shapes, title or "decision surface")


def _example(x: float, y: float, is_one: bool) -> Group:
    """An orange square for 1, a blue circle for 0; both on white, to be seen on any colour."""
    square = [Rect(x - 7, y - 7, 14, 14, "#ffffff", "#1c2530"), Rect(x - 4, y - 4, 8, 8, "#d55e00", None)]
    circle = [Ellipse(x, y, 16, 16, "#ffffff", "#1c2530"), Ellipse(x, y, 9, 9, "#0072b2", None)]
    return Group(square if is_one else circle, tip=str(int(is_one)))


def _color_bar() -> list[Any]:
    left, height = LEFT + SIDE + RIGHT, SIDE * 0.6
    top = ABOVE + (SIDE - height) / 2
    marks = [0, 0.5, 1]
    return [
        Image(left, top, 14, height, diverging(np.linspace(1, -1, 64)[:, None], 1.0)),  # (64, 1) -> (64, 1, 3)
        Rect(left, top, 14, height, None, "line"),
        Text(left + BAR - 6, top + height / 2, "probability of 1", 10.5, "faint", "middle", turned=True),
        *[Text(left + 18, top + (1 - m) * height + 4, word, 10.5, "faint") for m, word in zip(marks, labels(marks))],
    ]


def _zero_line(values: np.ndarray, across: np.ndarray, up: np.ndarray) -> list[np.ndarray]:
    """Pieces of the line on which values on a grid are zero, each ((x, x), (y, y)): through every cell whose corners differ."""
    found = []
    signs = values > 0
    corners = [signs[:-1, 1:], signs[1:, :-1], signs[1:, 1:]]
    for row, column in np.argwhere(np.any([corner != signs[:-1, :-1] for corner in corners], axis=0)):
        ring = [(row, column), (row, column + 1), (row + 1, column + 1), (row + 1, column)]
        crossings = []
        for (r, c), (s, d) in zip(ring, ring[1:] + ring[:1]):
            if signs[r, c] != signs[s, d] and np.isfinite(values[r, c] + values[s, d]):
                share = values[r, c] / (values[r, c] - values[s, d])
                crossings.append((across[c] + share * (across[d] - across[c]), up[r] + share * (up[s] - up[r])))
        found += [np.array(pair).T for pair in zip(crossings[::2], crossings[1::2])]
    return found


def fit(xs: Any, ys: Any, f: Callable[[np.ndarray], Any], title: str = "", beyond: float = 0.1) -> Scene:
    """Points that are learned, and the curve of a model through them and a little `beyond`, as a share of their width.

    `f` takes places (N,) of float32 and returns N values.

    >>> fit([0, 1, 2], [0, 1, 4], lambda x: x**2).title
    'fit'
    """
    xs, ys = np.asarray(xs, float).reshape(-1), np.asarray(ys, float).reshape(-1)
    width = SIDE * 1.8
    x, y, shapes = _plot(span(xs, pad=beyond), span(ys, pad=0.25), title, width, (7, 5))
    places = np.linspace(x.low, x.high, 400, dtype=np.float32)
    values = np.asarray(f(places), float).reshape(-1)
    shapes += [Ellipse(float(x(a)), float(y(b)), 5, 5, "line", None) for a, b in zip(xs, ys) if np.isfinite(b)]
    points = np.stack([x(places), y(values)], axis=1)  # (N, 2)
    inside = np.isfinite(values) & (values >= y.low) & (values <= y.high)
    shapes += [Line(points[piece].tolist(), "series-2", 2.2) for piece in pieces(inside) if len(piece) > 1]
    left = LEFT + width - 200
    shapes += [Ellipse(left - 9, 16, 5, 5, "line", None), Text(left, 20, "learned from", 11, "faint")]
    sample = [(left + 92, 16), (left + 106, 16)]
    shapes += [Line(sample, "series-2", 2.2), Text(left + 110, 20, "the model", 11, "series-2")]
    return Scene(LEFT + width + RIGHT, ABOVE + SIDE + BELOW, shapes, title or "fit")


def directions(vectors: Any, title: str = "") -> Scene:
    """Directions of features, (features, 2), as arrows; of more dimensions, how much each is read where another is: W Wᵀ.

    >>> directions([[1.0, 0.0], [0.0, 1.0]], "two features").title
    'two features'
    """
    vectors = checked("directions: these cannot be drawn", vectors, "rows", "columns")
    if vectors.shape[1] == 2:
        return _arrows(vectors, title)
    names, title = range(len(vectors)), title or "products of directions"
    note = "product of the direction of each feature with that of each other"
    return heatmap(vectors @ vectors.T, names, names, title=title, note=note, signed=True, most=1.0)


def _arrows(vectors: np.ndarray, title: str) -> Scene:
    reach = max(1.25, 1.2 * float(np.abs(vectors[np.isfinite(vectors)]).max(initial=0)))
    x, y, shapes = _plot((-reach, reach), (-reach, reach), title)
    middle = float(x(0)), float(y(0))
    unit = 2 * (float(x(1)) - middle[0])
    shapes.append(Ellipse(*middle, unit, unit, None, "line", dashed=True))
    for number, (a, b) in enumerate(vectors):
        if not np.isfinite([a, b]).all():
            continue
        tip, length = (float(x(a)), float(y(b))), max(float(np.hypot(a, b)), 1e-9)
        color = SERIES[number % len(SERIES)]
        if np.hypot(tip[0] - middle[0], tip[1] - middle[1]) > 7:
            shapes.append(Line([middle, tip], color, 2, arrow=True))
        name = Text(tip[0] + 11 * a / length, tip[1] - 11 * b / length + 4, str(number), 11, color, "middle", bold=True)
        shapes.append(Group([name], tip=f"feature {number}: {a:.3f}, {b:.3f}"))
    return Scene(LEFT + SIDE + RIGHT, ABOVE + SIDE + BELOW, shapes, title or "directions")
