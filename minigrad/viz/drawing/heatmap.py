"""A matrix as coloured cells: names beside the rows and turned above the columns, numbers where there is room for them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ShapeError
from .arrays import as_numpy
from .colors import diverging, sequential
from .scene import Image, Rect, Scene, Text, clean, text_width, widest

__all__ = ["brief", "checked", "colored", "heatmap", "legend", "token_text"]

LARGEST, SMALLEST, SIDE = 40.0, 1.5, 620.0  # points: of a cell, and of the longer side of a matrix between them
ROOM = 30.0  # a cell so large has room for its number
SPACE = 12.0  # that a name needs beside the next
LONGEST = 18  # letters of a name
FORBIDDEN = (212, 216, 221)  # where a query may not look
DARK_INK, LIGHT_INK = "#1c2530", "#ffffff"


def checked(problem: str, values: Any, *shape: int | str) -> np.ndarray:
    """Numbers as floats of a shape, whose sizes are given, or words for any size; another one is refused."""
    array = as_numpy(values).astype(float)
    if array.ndim != len(shape) or any(want not in (size, str(want)) for want, size in zip(shape, array.shape)):
        raise ShapeError(problem, f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})", array.shape)
    return array


def token_text(token: Any, longest: int = LONGEST) -> str:
    """A token as it is shown: spaces at its ends can be seen, and so can nothing.

    >>> token_text(" you"), token_text("")
    ('␣you', '∅')
    """
    return clean(re.sub("^ | $|(?<= ) | (?= )", "␣", clean(token, longest)) or "∅", longest)


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
    values: Any, rows: Sequence[Any], columns: Sequence[Any], *, title: str = "", note: str = "", signed: bool = False,
    most: float | None = None, by_row: bool = False, stretched: bool = False, hidden: np.ndarray | None = None,
) -> Scene:  # fmt: skip
    """A picture of values (rows, columns): white to blue from 0 to `most`, or blue over white to orange where they are `signed`.

    `most` is the largest number unless given; with `by_row`, the largest of each row. Cells are square unless they are
    `stretched`. Names that have no room are left out; NaN is grey, and -inf, which attention forbids by, light grey. So
    are cells that are `hidden`, booleans (rows, columns), which have a dash for a number.

    >>> heatmap([[0.9, 0.1], [0.5, 0.5]], ["a", "b"], ["c", "d"]).title
    ''
    """
    sizes = (len(rows), len(columns))
    numbers = checked("heatmap: there is not one name for each row and column", values, *sizes)
    longer = (max(sizes),) * 2 if not stretched else sizes
    down, across = (min(LARGEST, max(SMALLEST * (not stretched), SIDE / max(n, 1))) for n in longer)  # of a cell
    left_names, top_names = [token_text(name) for name in rows], [token_text(name) for name in columns]
    size = 11.0 if min(down, across) >= SPACE else 9.0
    left, longest = 16 + widest(left_names, size), widest(top_names, size)
    turned = longest > 0.8 * across  # names with room to spare stand upright above their columns
    top = 16 + (longest if turned else size) + 20 * bool(title) + 16 * bool(note)
    largest = float(np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0)) or 1.0
    most = largest if most is None else most
    pixels = colored(numbers, signed, most, by_row)
    hidden = np.zeros(sizes, bool) if hidden is None else hidden
    pixels[hidden] = FORBIDDEN
    width, height = across * len(columns), down * len(rows)
    title, note = clean(title, 90), clean(note, 110)
    shapes: list[Any] = [Text(12, 22, title, 13, bold=True)] if title else []
    shapes += [Text(12, 22 + 17 * bool(title), note, 10, "faint")] if note else []
    if numbers.size:
        shapes += [Image(left, top, width, height, pixels), Rect(left, top, width, height, None, "line")]
    drop = size * 0.35  # from the middle of a letter to its baseline
    for i in range(0, len(rows), math.ceil(SPACE / down)):
        shapes.append(Text(left - 6, top + (i + 0.5) * down + drop, left_names[i], size, anchor="end"))
    for j in range(0, len(columns), math.ceil(SPACE / across)):
        x, anchor = left + (j + 0.5) * across + drop * turned, "start" if turned else "middle"
        shapes.append(Text(x, top - 6, top_names[j], size, anchor=anchor, turned=turned))
    if min(down, across) >= ROOM:
        light = pixels @ np.array([0.299, 0.587, 0.114]) > 140
        for i, j in np.ndindex(sizes):
            x, y, ink = left + (j + 0.5) * across, top + (i + 0.5) * down + 3.5, DARK_INK if light[i, j] else LIGHT_INK
            # A share that would be 0.00 is left to its colour, so that the others are seen.
            if not signed and not hidden[i, j] and abs(numbers[i, j]) < 0.005 <= most:
                continue
            word = "–" if hidden[i, j] else brief(float(numbers[i, j]))
            shapes.append(Text(x, y, word, min(10.0, 0.29 * min(down, across)), ink, "middle"))
    end = "the largest of its row" if by_row else f"{brief(most)} and more" if largest > most else ""
    shapes += legend(left, top + height + 14, signed, most, end)
    width = max(left + max(width + 14, 190), 24 + text_width(title, 13.5), 24 + text_width(note, 10))
    return Scene(width, top + height + 40, shapes, title)


def colored(numbers: np.ndarray, signed: bool = False, most: float = 1.0, by_row: bool = False) -> np.ndarray:
    """The pixels of a matrix: (rows, columns) -> (rows, columns, 3) of uint8."""
    if by_row:
        sizes = np.where(np.isfinite(numbers), np.abs(numbers), 0).max(axis=-1, keepdims=True, initial=0.0)
        numbers, most = numbers / np.where(sizes > 0, sizes, 1), 1.0
    pixels = diverging(numbers, most) if signed else sequential(numbers, most)
    pixels[numbers == -np.inf] = FORBIDDEN
    return pixels


def legend(x: float, y: float, signed: bool, most: float, end: str = "") -> list[Any]:
    """What the colours mean: a bar, and the numbers at its ends, or a word at the `end`."""
    least = -most if signed else 0
    start = x + text_width(brief(least), 10) + 6
    return [
        Text(x, y + 8, brief(least), 10, "faint"),
        Image(start, y, 82, 9, colored(np.linspace(least, most, 41)[None], signed, most)),
        Rect(start, y, 82, 9, None, "line"),
        Text(start + 88, y + 8, end or brief(most), 10, "faint"),
    ]
