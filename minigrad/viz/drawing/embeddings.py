"""Vectors in the plane: embeddings by their two principal components, and positional encodings as a map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError, nearest
from .colors import SERIES
from .heatmap import checked, heatmap, token_text
from .scene import Ellipse, Group, Line, Polygon, Rect, Scene, Text, clean, text_width

__all__ = ["embedding_map", "positional_map", "principal_components"]

WIDTH, HEIGHT, EDGE = 640.0, 440.0, 24.0  # points, of the field and around it
TOP = 36.0  # of the field, below the title
MARGIN = 4.0  # between a name and the frame: fonts are not all equally wide
MOST_DOTS = 20_000
FEW = 300  # dots that may be large
BLOCK = 512  # vectors whose neighbours are looked for at once


def principal_components(vectors: Any, count: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """The coordinates of vectors (n, d) along the directions in which they differ most, (n, count), and the share of variance of each.

    The sign of a direction is such that the later rows lie on its positive side: vectors that change a little, as they
    do from step to step of training, hardly ever turn the picture over.

    >>> points, shares = principal_components([[0, 0, 1], [2, 0, 1], [4, 0, 1]])
    >>> points[:, 0].round(6).tolist(), shares.round(6).tolist()
    ([-2.0, 0.0, 2.0], [1.0, 0.0])
    """
    array = checked("principal_components: vectors are rows of a matrix", vectors, "n", "d")
    if not array.size:
        return np.zeros((len(array), count)), np.zeros(count)
    unit = float(np.abs(array).max()) or 1.0  # so that no square is too large for a float
    centred = array / unit - (array / unit).mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)  # (n, d) -> (n, r), (r,), …
    shares = np.pad(sizes**2 / (float((sizes**2).sum()) or 1.0), (0, count))[:count]
    points = np.pad(left * sizes, ((0, 0), (0, count)))[:, :count]  # zeros where there are fewer dimensions
    return points * unit * np.where(np.linspace(-1, 1, len(points)) @ points < 0, -1, 1), shares


def embedding_map(
    vectors: Any, names: Sequence[Any], kinds: Mapping[str, Sequence[Any]] | None = None, neighbours: int = 0,
    title: str = "embeddings", mark: Sequence[Any] = (),
) -> Scene:  # fmt: skip
    """Dots of vectors (n, d) by their two principal components; each is joined to its nearest `neighbours` by cosine.

    `kinds` names groups of names, each with a colour and a form of its own. Names that would cover others are left out,
    but shown where the mouse rests on their dot. Those to `mark` come first, and are bold, with a ring around the dot.

    >>> import numpy as np
    >>> embedding_map(np.eye(3), ["a", "b", "c"], {"vowels": "a"}, neighbours=1).title
    'embeddings'
    """
    array = checked("embedding_map: there is not one vector for each name", vectors, len(names), "d")
    if not 0 <= neighbours < max(len(array), 1):
        raise ArgumentError("embedding_map: there are not so many neighbours", f"0 to {len(array) - 1}", neighbours)
    words, marked = [str(name) for name in names], {str(name) for name in mark}
    for name in sorted(marked - set(words)):
        fix = clean(nearest(name, words), 200)
        raise ArgumentError(f"embedding_map: there is no {clean(name, 40)!r} to mark", fix=fix)
    whole = np.flatnonzero(np.isfinite(array).all(axis=1))
    shown = whole[:MOST_DOTS]
    points, shares = principal_components(array[shown])
    places, own = _places(points), [words[index] for index in shown]
    special = [name in marked for name in own]
    groups: dict[str, int] = {}  # the number of each name's kind, the first where it is of several
    for number, members in enumerate((kinds or {}).values()):
        groups = {str(name): number for name in members} | groups
    legend, below = _legend(list(kinds or {}), TOP + HEIGHT + 20)
    notes = [f"→ first component, {shares[0]:.1%} of the variance   ↑ second component, {shares[1]:.1%}"]
    if len(shown) > 1 and (array[shown] == array[shown[0]]).all():
        notes = ["all vectors are equal"]
    counts = {"that are not finite": len(array) - len(whole), f"beyond {MOST_DOTS:,}": len(whole) - len(shown)}
    left_out = " and ".join(f"{count:,} {why}" for why, count in counts.items() if count)
    notes += [f"left out: {left_out}"] if left_out else []
    shapes = [
        Text(EDGE, 23, clean(title, 70), 13, bold=True),
        Rect(EDGE, TOP, WIDTH, HEIGHT, None, "grid"),
        *[Line([tuple(places[a]), tuple(places[b])], "line") for a, b in _pairs(array[shown], neighbours)],
        *_dots(places, own, special, groups),
        *_labels(places, [token_text(name, 24) for name in own], special),
        *legend,
        *[Text(EDGE, below + 16 * line, note, 11, "faint") for line, note in enumerate(notes)],
    ]
    return Scene(WIDTH + 2 * EDGE, below + 16 * len(notes), shapes, title)


def _dots(places: np.ndarray, names: list[str], special: list[bool], groups: dict[str, int]) -> list[Any]:
    size = 7 if len(names) <= FEW else 4
    shapes = []
    for name, (x, y), is_marked in zip(names, places.tolist(), special):
        ring = [Ellipse(x, y, size + 6, size + 6, None, "ink", thick=1.4)] if is_marked else []
        dot = _dot(groups.get(name, -1 if groups else 0), x, y, size)
        shapes.append(Group([dot, *ring], "dot", token_text(name, 24)))
    return shapes


def _dot(kind: int, x: float, y: float, size: float) -> Any:
    """A form for each kind: circle, square, triangle, and these three again, hollow; a grey circle for none."""
    color, half = SERIES[kind % len(SERIES)] if kind >= 0 else "line", size / 2
    fill, stroke = (color, None) if kind % 6 < 3 or kind < 0 else ("paper", color)
    if kind >= 0 and kind % 3 == 1:
        return Rect(x - half, y - half, size, size, fill, stroke, thick=1.6)
    if kind >= 0 and kind % 3 == 2:
        corners = [(x, y - 1.3 * half), (x + 1.3 * half, y + half), (x - 1.3 * half, y + half)]
        return Polygon(corners, fill, stroke, thick=1.6)
    return Ellipse(x, y, size, size, fill, stroke, thick=1.6)


def _legend(kinds: Sequence[str], y: float) -> tuple[list[Any], float]:
    shapes, x = list[Any](), EDGE
    for number, kind in enumerate(kinds):
        word = clean(kind, 24)
        room = 14 + text_width(word, 11)
        if x > EDGE and x + room > EDGE + WIDTH:
            x, y = EDGE, y + 16
        shapes += [_dot(number, x + 4, y - 4, 7), Text(x + 14, y, word, 11, SERIES[number % len(SERIES)])]
        x += room + 18
    return shapes, y + 18 * bool(shapes)


def _places(points: np.ndarray) -> np.ndarray:
    """Where dots are in the field, with one scale for both directions: (n, 2) -> (n, 2)."""
    if not len(points):
        return points
    points = points / (np.abs(points).max() or 1.0)
    low, high = points.min(axis=0), points.max(axis=0)
    scale = float((np.array([WIDTH - 90, HEIGHT - 40]) / np.where(high > low, high - low, 1.0)).min())
    middle = np.array([EDGE + WIDTH / 2, TOP + HEIGHT / 2])
    return middle + (points - (low + high) / 2) * scale * np.array([1, -1])


def _pairs(vectors: np.ndarray, count: int) -> list[tuple[int, int]]:
    count = min(count, len(vectors) - 1)
    if count < 1:
        return []
    sizes = np.linalg.norm(vectors, axis=1, keepdims=True)
    units = vectors / np.where(sizes > 0, sizes, 1)
    found = set()
    for start in range(0, len(units), BLOCK):
        near = units[start : start + BLOCK] @ units.T  # (b, d) x (d, n) -> (b, n)
        near[np.arange(len(near)), np.arange(start, start + len(near))] = -np.inf
        for row, others in enumerate(np.argsort(-near, axis=1, kind="stable")[:, :count], start):
            found |= {(min(row, int(other)), max(row, int(other))) for other in others}
    return sorted(found)


def _labels(places: np.ndarray, texts: list[str], special: list[bool]) -> list[Any]:
    """Names beside their dots, on the first of four sides where they cover no name, and but for special ones no dot; else none."""
    named, dotted = np.zeros((2, int(TOP + HEIGHT), int(EDGE + WIDTH)), bool)  # which points of the picture are taken
    for x, y in places:
        dotted[_box(x - 4, y - 4, 8, 8)] = True
    shapes = []
    for index in sorted(range(len(texts)), key=lambda i: not special[i]):
        (x, y), size, away = places[index], text_width(texts[index], 10), 10 if special[index] else 7
        for dx, dy in ((away, 3.5), (-away - size, 3.5), (-size / 2, -away), (-size / 2, away + 8)):
            left, top = x + dx, y + dy - 9
            box = _box(left, top, size, 11)
            if min(left - EDGE, EDGE + WIDTH - left - size, top - TOP, TOP + HEIGHT - top - 11) < MARGIN:
                continue
            if not named[box].any() and (special[index] or not dotted[box].any()):
                named[box] = True
                shapes.append(Text(left, y + dy, texts[index], 10, bold=special[index]))
                break
    return shapes


def _box(left: float, top: float, width: float, height: float) -> tuple[slice, slice]:
    return slice(int(top), int(top + height) + 1), slice(int(left), int(left + width) + 1)


def positional_map(positions: Any, title: str = "positional encoding") -> Scene:
    """A map of encodings (positions, width): a row for each position, blue below 0 and orange above.

    >>> import minigrad as mg
    >>> encoding = mg.nn.SinusoidalPositions(16)(mg.zeros(20, 16))
    >>> positional_map(encoding).title
    'positional encoding'
    """
    array = checked("positional_map: this is no table of positions", positions, "positions", "width")
    rows, columns = range(array.shape[0]), range(array.shape[1])
    return heatmap(array, rows, columns, title=title, note="position down, column across", signed=True, stretched=True)
