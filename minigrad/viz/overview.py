"""All heads of a model at a glance: a row of small matrices for each layer, and tokens beside them where they fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .heads import Heads, thumbnails
from .heatmap import colored, legend, token_text, wide
from .scene import Image, Rect, Scene, Text, clean

__all__ = ["RELATIVE", "overview"]

TILE, GAP = 56.0, 6.0  # points: of a small matrix, and between two
SMALL = 8.0  # the size of a token's name
FITTING = int(TILE // SMALL)  # tokens that have room along a matrix
NAME = 10  # letters of a token
RELATIVE = "each row of weights is relative to its largest"


def overview(layers: Sequence[Heads], title: str) -> Scene:
    """A row for each layer, a column for each head, and what the colours mean below."""
    paths = [f"{number} {clean(layer.path, 36)} ({layer.kind})" for number, layer in enumerate(layers)]
    beside = max([_longest(_fitting(layer.rows)) for layer in layers], default=0)
    left = 20 + max([wide(path, 10) for path in paths], default=0) + (beside + 8) * bool(beside)
    across = max([layer.count for layer in layers], default=0)
    shapes: list[Any] = [Text(12, 22, clean(title, 60), 13, bold=True)]
    shapes += [Text(left + (j + 0.5) * (TILE + GAP) - 3, 44, str(j), 10, "faint", "middle") for j in range(across)]
    y, before = 50.0, None
    for layer, path in zip(layers, paths):
        above = [] if layer.columns == before else _fitting(layer.columns)  # named once where they stay the same
        y, before = y + _longest(above) + GAP * bool(above), layer.columns
        shapes += [Text(12, y + TILE / 2 + 4, path, 10), *_layer(layer, above, left, y)]
        y += TILE + GAP
    shapes += [*legend(12, y + 6, False, 1.0, "the largest of its row"), Text(12, y + 34, RELATIVE, 10, "faint")]
    texts = [wide(clean(title, 60), 13.5), wide(RELATIVE, 10)]
    return Scene(max(left + across * (TILE + GAP) + 8, 24 + max(texts)), y + 46, shapes, title)


def _fitting(tokens: Sequence[str]) -> list[str]:
    """The names of tokens, if they have room."""
    return [token_text(token, NAME) for token in tokens] if 0 < len(tokens) <= FITTING else []


def _longest(names: Sequence[str]) -> float:
    return max([wide(name, SMALL) for name in names], default=0)


def _layer(layer: Heads, above: Sequence[str], left: float, y: float) -> list[Any]:
    """The heads of one layer, their queries named on the left, and their keys above where they are given."""
    rows = _fitting(layer.rows)
    shapes: list[Any] = [
        Text(left - 5, y + (i + 0.5) * TILE / len(rows) + 0.35 * SMALL, name, SMALL, "faint", "end")
        for i, name in enumerate(rows)
    ]
    for head, small in enumerate(thumbnails(layer)):
        x = left + head * (TILE + GAP)
        shapes += [Image(x, y, TILE, TILE, colored(small)), Rect(x, y, TILE, TILE, None, "line")]
        shapes += [
            Text(x + (j + 0.5) * TILE / len(above) + 0.35 * SMALL, y - 4, name, SMALL, "faint", turned=True)
            for j, name in enumerate(above)
        ]
    return shapes
