"""Vectors in the plane: embeddings by their two principal components, and positional encodings as a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..engine.errors import ArgumentError, ShapeError
from .heads import as_numpy
from .heatmap import heatmap, token_text, wide
from .scene import Ellipse, Group, Line, Rect, Scene, Text, clean

__all__ = ["embedding_map", "positional_map", "principal_components"]

WIDTH, HEIGHT, EDGE = 640.0, 520.0, 46.0  # points, of the field and around it
MOST_DOTS = 20_000
FEW = 300  # dots that names keep clear of
BLOCK = 512  # vectors whose neighbours are looked for at once


def principal_components(vectors: Any, count: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """The coordinates of vectors (n, d) along the directions in which they differ most, (n, count), and the share of variance of each.

    Signs are such that the largest part of each direction is positive, so that the same vectors give the same picture.

    >>> points, shares = principal_components([[0, 0, 1], [2, 0, 1], [4, 0, 1]])
    >>> points[:, 0].tolist(), shares.tolist()
    ([-2.0, 0.0, 2.0], [1.0, 0.0])
    """
    array = as_numpy(vectors).astype(float)
    if array.ndim != 2:
        raise ShapeError("principal_components: vectors are rows of a matrix", "(n, d)", array.shape)
    points, shares = np.zeros((len(array), count)), np.zeros(count)
    if not array.size:
        return points, shares
    centred = array - array.mean(axis=0)
    _, sizes, directions = np.linalg.svd(centred, full_matrices=False)  # (n, d) -> …, (r,), (r, d)
    directions = directions[:count]
    largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=1)[:, None], axis=1)
    directions = directions * np.where(largest < 0, -1, 1)
    known = len(directions)
    points[:, :known] = centred @ directions.T  # (n, d) x (d, count) -> (n, count)
    shares[:known] = sizes[:count] ** 2 / (float((sizes**2).sum()) or 1.0)
    return points, shares


def embedding_map(
    vectors: Any, names: Sequence[Any], neighbours: int = 0, title: str = "embeddings", mark: Sequence[Any] = ()
) -> Scene:
    """Dots of vectors (n, d) by their two principal components; each is joined to its nearest `neighbours` by cosine.

    Names that would cover others are left out, but shown where the mouse rests on their dot. Those to `mark` come first,
    and are told by colour and a larger dot.

    >>> import numpy as np
    >>> embedding_map(np.eye(3), ["a", "b", "c"], neighbours=1).title
    'embeddings'
    """
    array = as_numpy(vectors).astype(float)
    if array.ndim != 2 or len(array) != len(names):
        raise ShapeError("embedding_map: there is not one vector for each name", f"({len(names)}, d)", array.shape)
    if not 0 <= neighbours < max(len(array), 1):
        raise ArgumentError("embedding_map: there are not so many neighbours", f"0 to {len(array) - 1}", neighbours)
    whole = np.flatnonzero(np.isfinite(array).all(axis=1))
    shown = whole[:MOST_DOTS]
    points, shares = principal_components(array[shown])
    places = _places(points)
    texts = [token_text(names[index], 24) for index in shown]
    marked = {str(name) for name in mark}
    special = [str(names[index]) in marked for index in shown]
    shapes: list[Any] = [Text(12, 22, clean(title, 70), 13, bold=True)]
    shapes.append(Rect(EDGE, EDGE, WIDTH, HEIGHT, None, "grid"))
    shapes += [Line([tuple(places[a]), tuple(places[b])], "grid") for a, b in _pairs(array[shown], neighbours)]
    for place, text, is_marked in zip(places, texts, special):
        size, fill = (9, "series-2") if is_marked else (5, "series-1")
        shapes.append(Group([Ellipse(place[0], place[1], size, size, fill, None)], "dot", text))
    shapes += _labels(places, texts, special)
    notes = [f"→ first component, {shares[0]:.1%} of the variance", f"↑ second component, {shares[1]:.1%}"]
    notes += _left_out(len(array) - len(whole), len(whole) - len(shown))
    below = EDGE + HEIGHT + 20
    shapes += [Text(EDGE, below + 16 * line, note, 11, "faint") for line, note in enumerate(notes)]
    return Scene(WIDTH + 2 * EDGE, below + 16 * len(notes), shapes, title)


def _left_out(broken: int, many: int) -> list[str]:
    """What the picture does not show, as a line if there is any."""
    told = [f"{broken:,} that are not finite"] * bool(broken) + [f"{many:,} beyond {MOST_DOTS:,}"] * bool(many)
    return [f"left out: {' and '.join(told)}"] if told else []


def _places(points: np.ndarray) -> np.ndarray:
    """Where dots are in the field, with one scale for both directions: (n, 2) -> (n, 2)."""
    if not len(points):
        return points
    low, high = points.min(axis=0), points.max(axis=0)
    spans = np.where(high > low, high - low, 1.0)
    inner = np.array([WIDTH - 90, HEIGHT - 50])
    scale = float((inner / spans).min())
    middle = np.array([EDGE + WIDTH / 2, EDGE + HEIGHT / 2])
    return middle + (points - (low + high) / 2) * scale * np.array([1, -1])


def _pairs(vectors: np.ndarray, count: int) -> list[tuple[int, int]]:
    """Each vector with those nearest to it by cosine, every pair once."""
    if not count:
        return []
    sizes = np.linalg.norm(vectors, axis=1, keepdims=True)
    units = vectors / np.where(sizes > 0, sizes, 1)
    found = set()
    for start in range(0, len(units), BLOCK):
        near = units[start : start + BLOCK] @ units.T  # (b, d) x (d, n) -> (b, n)
        near[np.arange(len(near)), np.arange(start, start + len(near))] = -np.inf
        for row, others in enumerate(np.argsort(-near, axis=1, kind="stable")[:, :count]):
            found |= {(min(start + row, int(other)), max(start + row, int(other))) for other in others}
    return sorted(found)


def _labels(places: np.ndarray, texts: list[str], special: list[bool]) -> list[Any]:
    """Names beside their dots, on the first of four sides where they cover no other name, and no dot of a few; else none."""
    dots = places if len(places) <= FEW else places[:0]
    occupied, taken = np.hstack([dots - 2.5, dots + 2.5]), np.empty((0, 4))  # left, top, right, bottom
    shapes = []
    for index in sorted(range(len(texts)), key=lambda i: not special[i]):
        x, y = places[index]
        size = wide(texts[index], 10)
        for dx, dy in ((6, 3.5), (-6 - size, 3.5), (-size / 2, -6), (-size / 2, 14)):
            box = np.array([x + dx, y + dy - 9, x + dx + size, y + dy + 2])
            inside = box[0] >= 2 and box[2] <= WIDTH + 2 * EDGE - 2 and box[1] >= EDGE and box[3] <= EDGE + HEIGHT
            if inside and _is_free(box, taken) and (special[index] or _is_free(box, occupied)):
                taken = np.vstack([taken, box])
                color = "series-2" if special[index] else "ink"
                shapes.append(Text(x + dx, y + dy, texts[index], 10, color, bold=special[index]))
                break
    return shapes


def _is_free(box: np.ndarray, others: np.ndarray) -> bool:
    """Whether a box covers none of the others, (n, 4)."""
    left, top, right, bottom = others.T
    return bool(((box[2] < left) | (right < box[0]) | (box[3] < top) | (bottom < box[1])).all())


def positional_map(positions: Any, title: str = "positional encoding") -> Scene:
    """A map of encodings (positions, width): a row for each position, blue below 0 and orange above.

    >>> import minigrad as mg
    >>> encoding = mg.nn.SinusoidalPositions(16)(mg.zeros(20, 16))
    >>> positional_map(encoding).title
    'positional encoding'
    """
    array = as_numpy(positions).astype(float)
    if array.ndim != 2:
        raise ShapeError("positional_map: this is no table of positions", "(positions, width)", array.shape)
    rows, columns = range(array.shape[0]), range(array.shape[1])
    return heatmap(array, rows, columns, title=title, note="position down, column across", signed=True, stretched=True)
