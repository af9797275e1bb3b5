"""What a model does on a plane: where it decides, what it fits, and in which directions it stores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..engine.errors import ShapeError
from .axes import Scale, frame, labels, round_ticks, span
from .colors import SERIES, diverging
from .scene import Ellipse, Group, Image, Line, Rect, Scene, Text, clean

__all__ = ["decision_surface", "directions", "fit"]

GRID = 64  # rows and columns of a surface that are computed
SIDE = 300  # of a square picture's box
LEFT, ABOVE, BELOW = 56, 34, 30
BAR = 70  # room for a scale of colours


def _square(width: float = SIDE, right: float = 16) -> tuple[float, float]:
    return LEFT + width + right, ABOVE + SIDE + BELOW


def _boxed(x: tuple[float, float], y: tuple[float, float], width: float = SIDE) -> tuple[Scale, Scale]:
    return Scale(*x, LEFT, LEFT + width), Scale(*y, ABOVE + SIDE, ABOVE)


def _titled(title: str) -> list[Any]:
    return [Text(LEFT, 20, clean(title, 60), 12.5, bold=True)] if title else []


def _checked(name: str, array: Any, columns: int | None) -> np.ndarray:
    array = np.asarray(array, float)
    if array.ndim != 2 or columns is not None and array.shape[1] != columns:
        raise ShapeError(f"{name}: these cannot be drawn", f"(rows, {columns or 'columns'})", tuple(array.shape))
    return array


def decision_surface(f: Callable[[np.ndarray], Any], rows: Any, targets: Any, title: str = "") -> Scene:
    """How probable the answer 1 is all over the plane, the line where it is even, and the examples that are learned.

    `f` takes points (N, 2) of float32 and returns N probabilities; `rows` (n, 2) are examples, `targets` their n answers.
    An example whose answer is 1 is a square, and one whose answer is 0 a circle.

    >>> decision_surface(lambda p: p[:, 0], [[0, 0], [1, 1]], [0, 1]).width
    442
    """
    rows, targets = _checked("decision_surface", rows, 2), np.asarray(targets, float).reshape(-1)
    x, y = _boxed(span(rows[:, 0], pad=0.5), span(rows[:, 1], pad=0.5))
    across, up = np.linspace(x.low, x.high, GRID), np.linspace(y.high, y.low, GRID)
    points = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2).astype(np.float32)  # (GRID * GRID, 2)
    values = np.asarray(f(points), float).reshape(GRID, GRID)
    width, height = _square(right=16 + BAR)
    shapes = [
        *_titled(title),
        *frame(x, y, (5, 5)),
        Image(LEFT, ABOVE, SIDE, SIDE, diverging(values - 0.5, 0.5)),
        Rect(LEFT, ABOVE, SIDE, SIDE, None, "line"),
        *[Line(list(zip(x(piece[0]), y(piece[1]))), "#1c2530", 1.6) for piece in _level(values - 0.5, across, up)],
        *[_example(float(x(a)), float(y(b)), target > 0.5) for (a, b), target in zip(rows, targets)],
        *_bar(LEFT + SIDE + 16, [0, 0.5, 1], "probability of 1"),
    ]
    return Scene(width, height, shapes, title or "decision surface")


def _example(x: float, y: float, is_one: bool) -> Group:
    """An orange square for 1, a blue circle for 0; both on white, to be seen on any colour."""
    if is_one:
        return Group(
            [Rect(x - 7, y - 7, 14, 14, "#ffffff", "#1c2530"), Rect(x - 4, y - 4, 8, 8, "#d55e00", None)], tip="1"
        )
    return Group([Ellipse(x, y, 16, 16, "#ffffff", "#1c2530"), Ellipse(x, y, 9, 9, "#0072b2", None)], tip="0")


def _bar(left: float, marks: Sequence[float], word: str) -> list[Any]:
    """A scale of colours from the first mark, below, to the last, above."""
    height = SIDE * 0.6
    top = ABOVE + (SIDE - height) / 2
    pixels = diverging(np.linspace(1, -1, 64)[:, None], 1.0)  # (64, 1) -> (64, 1, 3)
    shapes: list[Any] = [
        Image(left, top, 14, height, pixels),
        Rect(left, top, 14, height, None, "line"),
        Text(left + BAR - 6, top + height / 2, word, 10.5, "faint", "middle", turned=True),
    ]
    for share, text in zip(np.linspace(1, 0, len(marks)), labels(marks)):
        shapes.append(Text(left + 18, top + share * height + 4, text, 10.5, "faint"))
    return shapes


def _level(values: np.ndarray, across: np.ndarray, up: np.ndarray) -> list[np.ndarray]:
    """Pieces of the line on which values on a grid are zero, each ((x, x), (y, y)): through every cell whose corners differ."""
    pieces = []
    signs = values > 0
    differ = signs[:-1, :-1] != signs[:-1, 1:]
    differ |= (signs[:-1, :-1] != signs[1:, :-1]) | (signs[:-1, :-1] != signs[1:, 1:])
    for row, column in np.argwhere(differ):
        corners = [(row, column), (row, column + 1), (row + 1, column + 1), (row + 1, column)]
        found = []
        for (r, c), (s, d) in zip(corners, corners[1:] + corners[:1]):
            if signs[r, c] != signs[s, d] and np.isfinite(values[r, c] + values[s, d]):
                share = values[r, c] / (values[r, c] - values[s, d])
                found.append((across[c] + share * (across[d] - across[c]), up[r] + share * (up[s] - up[r])))
        pieces += [np.array(pair).T for pair in zip(found[::2], found[1::2])]
    return pieces


def fit(xs: Any, ys: Any, f: Callable[[np.ndarray], Any], title: str = "", beyond: float = 0.1) -> Scene:
    """Points that are learned, and the curve of a model through them and a little `beyond`, as a share of their width.

    `f` takes places (N,) of float32 and returns N values.

    >>> fit([0, 1, 2], [0, 1, 4], lambda x: x**2).title
    'fit'
    """
    xs, ys = np.asarray(xs, float).reshape(-1), np.asarray(ys, float).reshape(-1)
    width = SIDE * 1.8
    x, y = _boxed(span(xs, pad=beyond), span(ys, pad=0.25), width)
    places = np.linspace(x.low, x.high, 400, dtype=np.float32)
    values = np.asarray(f(places), float).reshape(-1)
    dots = [Ellipse(float(x(a)), float(y(b)), 5, 5, "line", None) for a, b in zip(xs, ys) if np.isfinite(b)]
    shapes = [*_titled(title), *frame(x, y), *dots, *_curve(x(places), y(values), values, y)]
    words = [("learned from", "faint"), ("the model", "series-2")]
    for place, (word, color) in enumerate(words):
        at = LEFT + width - 200 + 110 * place
        mark = Line([(at - 18, 16), (at - 4, 16)], color, 2.2) if place else Ellipse(at - 9, 16, 5, 5, "line", None)
        shapes += [mark, Text(at, 20, word, 11, color)]
    return Scene(*_square(width), shapes, title or "fit")


def _curve(across: np.ndarray, up: np.ndarray, values: np.ndarray, y: Scale) -> list[Any]:
    """Lines through places whose values are within the box."""
    inside = np.isfinite(values) & (values >= y.low) & (values <= y.high)
    pieces = np.split(np.arange(len(values)), np.flatnonzero(inside[1:] != inside[:-1]) + 1)
    return [
        Line(list(zip(across[piece].tolist(), up[piece].tolist())), "series-2", 2.2)
        for piece in pieces
        if inside[piece[0]] and len(piece) > 1
    ]


def directions(vectors: Any, title: str = "") -> Scene:
    """Directions of features, (features, 2), as arrows; of more dimensions, how much each is read where another is: W Wᵀ.

    >>> directions([[1.0, 0.0], [0.0, 1.0]], "two features").title
    'two features'
    """
    vectors = _checked("directions", vectors, None)
    return _arrows(vectors, title) if vectors.shape[1] == 2 else _products(vectors, title)


def _arrows(vectors: np.ndarray, title: str) -> Scene:
    reach = max(1.25, 1.2 * float(np.abs(vectors[np.isfinite(vectors)]).max(initial=0)))
    x, y = _boxed((-reach, reach), (-reach, reach))
    middle = float(x(0)), float(y(0))
    unit = 2 * (float(x(1)) - middle[0])
    shapes = [*_titled(title), *frame(x, y, (5, 5)), Ellipse(*middle, unit, unit, None, "line", dashed=True)]
    for number, (a, b) in enumerate(vectors):
        if not np.isfinite([a, b]).all():
            continue
        tip, length = (float(x(a)), float(y(b))), max(float(np.hypot(a, b)), 1e-9)
        color = SERIES[number % len(SERIES)]
        if np.hypot(tip[0] - middle[0], tip[1] - middle[1]) > 7:
            shapes.append(Line([middle, tip], color, 2, arrow=True))
        at = tip[0] + 11 * a / length, tip[1] - 11 * b / length + 4
        shapes.append(
            Group([Text(*at, str(number), 11, color, "middle", bold=True)], tip=f"feature {number}: {a:.3f}, {b:.3f}")
        )
    return Scene(*_square(), shapes, title or "directions")


def _products(vectors: np.ndarray, title: str) -> Scene:
    products = vectors @ vectors.T  # (features, features)
    n = max(len(products), 1)
    ticks = [tick for tick in round_ticks(0, n - 1, 8) if tick == int(tick)]
    cell = SIDE / n
    shapes: list[Any] = [*_titled(title), Rect(LEFT, ABOVE, SIDE, SIDE, "surface", None)]
    if products.size:
        shapes.append(Image(LEFT, ABOVE, SIDE, SIDE, diverging(products, 1.0)))
    shapes.append(Rect(LEFT, ABOVE, SIDE, SIDE, None, "line"))
    for tick in ticks:
        middle = (tick + 0.5) * cell
        shapes += [
            Text(LEFT + middle, ABOVE + SIDE + 14, f"{tick:.0f}", 10.5, "faint", "middle"),
            Text(LEFT - 6, ABOVE + middle + 4, f"{tick:.0f}", 10.5, "faint", "end"),
        ]
    shapes += _bar(LEFT + SIDE + 16, [-1, 0, 1], "product of directions")
    return Scene(*_square(right=16 + BAR), shapes, title or "products of directions")
