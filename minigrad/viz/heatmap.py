"""A matrix as coloured cells: names beside the rows and turned above the columns, numbers where there is room for them."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..engine.errors import ShapeError
from .colors import diverging, sequential
from .scene import MONO_WIDTH, Image, Rect, Scene, Text, clean

__all__ = ["brief", "colored", "heatmap", "legend", "token_text", "wide"]

LARGEST, SMALLEST, SIDE = 40.0, 1.5, 620.0  # points: of a cell, and of the longer side of a matrix between them
ROOM = 30.0  # a cell so large has room for its number
SPACE = 12.0  # that a name needs beside the next
LONGEST = 18  # letters of a name
FORBIDDEN = (212, 216, 221)  # where a query may not look
DARK_INK, LIGHT_INK = "#1c2530", "#ffffff"


def token_text(token: Any, longest: int = LONGEST) -> str:
    """A token as it is shown: spaces can be seen, and so can nothing.

    >>> token_text(" you"), token_text("")
    ('␣you', '∅')
    """
    return clean(clean(token, longest).replace(" ", "␣") or "∅", longest)


def wide(text: str, size: float) -> float:
    """How wide a text is where some letters, such as 好, take two places."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text) * size * MONO_WIDTH


def brief(number: float) -> str:
    """A number in at most five letters.

    >>> [brief(x) for x in (0.1234, -12.34, 123456, float("-inf"), float("nan"), 0)]
    ['0.12', '-12.3', '1e5', '−∞', 'NaN', '0']
    """
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else ("∞" if number > 0 else "−∞")
    size = abs(number)
    if size >= 1000:
        return f"{number:.0e}".replace("e+0", "e").replace("e+", "e")
    return "0" if number == 0 else f"{number:.{2 if size < 9.995 else 1 if size < 99.95 else 0}f}"


def heatmap(
    values: Any,
    rows: Sequence[Any],
    columns: Sequence[Any],
    *,
    title: str = "",
    note: str = "",
    signed: bool = False,
    most: float | None = None,
    by_row: bool = False,
    stretched: bool = False,
    hidden: np.ndarray | None = None,
) -> Scene:
    """A picture of values (rows, columns): white to blue from 0 to `most`, or blue over white to orange where they are `signed`.

    `most` is the largest number unless given; with `by_row`, the largest of each row. Cells are square unless they are
    `stretched`. Names that have no room are left out; NaN is grey, and -inf, which attention forbids by, light grey. So
    are cells that are `hidden`, booleans (rows, columns), which have a dash for a number.

    >>> heatmap([[0.9, 0.1], [0.5, 0.5]], ["a", "b"], ["c", "d"]).title
    ''
    """
    numbers = np.asarray(values, float)
    if numbers.shape != (len(rows), len(columns)):
        raise ShapeError(
            "heatmap: there is not one name for each row and column", (len(rows), len(columns)), numbers.shape
        )
    down, across = _cells(*numbers.shape, stretched)
    left_names, top_names = [token_text(name) for name in rows], [token_text(name) for name in columns]
    size = 11.0 if min(down, across) >= SPACE else 9.0
    left = 16 + max([wide(name, size) for name in left_names], default=0)
    longest = max([wide(name, size) for name in top_names], default=0)
    turned = longest > 0.8 * across  # names with room to spare stand upright above their columns
    top = 16 + (longest if turned else size) + 20 * bool(title) + 16 * bool(note)
    most = _largest(numbers) if most is None else most
    pixels = colored(numbers, signed, most, by_row)
    hidden = np.zeros(numbers.shape, bool) if hidden is None else hidden
    pixels[hidden] = FORBIDDEN
    width, height = across * len(columns), down * len(rows)
    shapes: list[Any] = [Text(12, 22, clean(title, 90), 13, bold=True)] if title else []
    shapes += [Text(12, 22 + 17 * bool(title), clean(note, 110), 10, "faint")] if note else []
    if numbers.size:
        shapes += [Image(left, top, width, height, pixels), Rect(left, top, width, height, None, "line")]
    shapes += _names(left_names, top_names, (down, across), left, top, size, turned)
    shapes += _numbers(numbers, hidden, pixels, (down, across), left, top) if min(down, across) >= ROOM else []
    shapes += legend(left, top + height + 14, signed, most, "the largest of its row" if by_row else "")
    texts = [24 + wide(text, size) for text, size in ((clean(title, 90), 13.5), (clean(note, 110), 10))]
    return Scene(max(left + width + 14, left + 190, *texts), top + height + 40, shapes, title)


def _cells(rows: int, columns: int, stretched: bool) -> tuple[float, float]:
    """How high and how wide a cell is."""
    if stretched:
        return min(LARGEST, SIDE / max(rows, 1)), min(LARGEST, SIDE / max(columns, 1))
    cell = min(LARGEST, max(SMALLEST, SIDE / max(rows, columns, 1)))
    return cell, cell


def _largest(numbers: np.ndarray) -> float:
    return float(np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0)) or 1.0


def colored(numbers: np.ndarray, signed: bool = False, most: float = 1.0, by_row: bool = False) -> np.ndarray:
    """The pixels of a matrix: (rows, columns) -> (rows, columns, 3) of uint8."""
    if by_row:
        sizes = np.where(np.isfinite(numbers), np.abs(numbers), 0).max(axis=-1, keepdims=True, initial=0.0)
        numbers, most = numbers / np.where(sizes > 0, sizes, 1), 1.0
    pixels = diverging(numbers, most) if signed else sequential(numbers, most)
    pixels[numbers == -np.inf] = FORBIDDEN
    return pixels


def _names(
    rows: list[str],
    columns: list[str],
    cell: tuple[float, float],
    left: float,
    top: float,
    size: float,
    turned: bool,
) -> list[Any]:
    high, width = cell
    drop = size * 0.35  # from the middle of a letter to its baseline
    down = [
        Text(left - 6, top + (i + 0.5) * high + drop, rows[i], size, anchor="end")
        for i in range(0, len(rows), math.ceil(SPACE / high))
    ]
    across = [
        Text(left + (j + 0.5) * width + drop, top - 6, columns[j], size, turned=True)
        if turned
        else Text(left + (j + 0.5) * width, top - 6, columns[j], size, anchor="middle")
        for j in range(0, len(columns), math.ceil(SPACE / width))
    ]
    return down + across


def _numbers(
    numbers: np.ndarray, hidden: np.ndarray, pixels: np.ndarray, cell: tuple[float, float], left: float, top: float
) -> list[Any]:
    light = pixels @ np.array([0.299, 0.587, 0.114]) > 140
    shapes = []
    for i, j in np.ndindex(numbers.shape):
        x, y = left + (j + 0.5) * cell[1], top + (i + 0.5) * cell[0] + 3.5
        ink = DARK_INK if light[i, j] else LIGHT_INK
        word = "–" if hidden[i, j] else brief(float(numbers[i, j]))
        shapes.append(Text(x, y, word, min(10.0, 0.29 * min(cell)), ink, "middle"))
    return shapes


def legend(x: float, y: float, signed: bool, most: float, end: str = "") -> list[Any]:
    """What the colours mean: a bar, and the numbers at its ends, or a word at the `end`."""
    bar = np.linspace(-most if signed else 0, most, 41)[None]
    low, high = brief(-most if signed else 0), end or brief(most)
    start = x + wide(low, 10) + 6
    image = Image(start, y, 82, 9, colored(bar, signed, most))
    return [
        Text(x, y + 8, low, 10, "faint"),
        image,
        Rect(start, y, 82, 9, None, "line"),
        Text(start + 88, y + 8, high, 10, "faint"),
    ]
