"""`left.T @ right` of two matrices with many rows, as gradients of weights are: blocks of both stay in the caches of a core.

By hand: BLAS takes twice the time on the shapes of recurrent layers, for which it moves both matrices first.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from .compiling import kernel
from .thread_pool import FUNCTION, JOB_WORDS, OWN, PARTS, address_of, word
from .tiles import COLUMNS, ITEM, PANEL_ROW
from .vectors import load, splat, store
from .wide_tiles import HEIGHT, PANEL, tile

F = np.float32
DEPTH = 128  # rows of both that are worked on at a time: a panel of them and 16 columns stay in the first cache
WIDTH, NARROW = 128, 64  # columns of the left factor that are a part, of wide ones and of others

# The words of a job: addresses, distances in bytes, and sizes; of both right factors and results; 0 stands for what is not there.
LEFT, LEFT_ROW, ROWS, COUNT, PART, SUMS = range(OWN, OWN + 6)
PANELS, INNER, OUT = range(3)
FACTORS = (OWN + 6, OWN + 9)


@kernel
def _pack_left(source, row, rows, columns, room, sums):
    """Some rows and columns, 16 columns next to each other, and their sums: (rows, columns) -> (columns / 16, rows, 16)."""
    for j in range(0, columns * ITEM, PANEL_ROW):
        target, total = room + j * rows, splat(F(0))
        for i in range(rows):
            line = load(source + i * row + j)
            total = total + line
            store(line, target + i * PANEL_ROW)
        store(load(sums + j) + total, sums + j)


@kernel
def _add_block(room, depth, columns, panels, panel_step, inner, out, add):
    """`out = room.T @ panels`, or `+=`, of some rows of both."""
    for j in range(0, inner, PANEL):
        panel = panels + j // PANEL * panel_step
        for i in range(0, columns, HEIGHT):
            source = room + (i // COLUMNS * depth * COLUMNS + i % COLUMNS) * ITEM
            tile(source, ITEM, PANEL_ROW, panel, out + (i * inner + j) * ITEM, inner * ITEM, columns - i, depth, add)


@kernel
def _product_part(job, part, room):
    rows, width = word(job, ROWS), word(job, PART)
    begin = part * width
    columns = min(width, word(job, COUNT) - begin)
    left, sums = word(job, LEFT) + begin * ITEM, word(job, SUMS) + begin * ITEM
    for k in range(0, rows, DEPTH):
        depth = min(DEPTH, rows - k)
        _pack_left(left + k * word(job, LEFT_ROW), word(job, LEFT_ROW), depth, columns, room, sums)
        for factor in FACTORS:
            inner = word(job, factor + INNER)
            panels, out = word(job, factor + PANELS) + k * PANEL * ITEM, word(job, factor + OUT) + begin * inner * ITEM
            _add_block(room, depth, columns, panels, rows * PANEL * ITEM, inner, out, k > 0)


@cache
def _function() -> int:
    return address_of(_product_part)


def transposed_product(left: np.ndarray, sums: np.ndarray, factors: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """The job that fills `out = left.T @ right` for at most two pairs (panels of right, out), and adds the sums of left's columns to `sums`.

    `left` (N, W) has rows without gaps, W is a multiple of 16, panels are (columns / PANEL, N, PANEL), and `out` is as wide as they are.
    """
    (rows, count), job = left.shape, np.zeros(JOB_WORDS, np.int64)
    part = WIDTH if count >= 4 * WIDTH else NARROW
    job[[FUNCTION, PARTS]] = _function(), -(-count // part)
    job[LEFT : SUMS + 1] = left.ctypes.data, left.strides[0], rows, count, part, sums.ctypes.data
    for place, (panels, out) in zip(FACTORS, factors):
        job[place : place + 3] = panels.ctypes.data, out.shape[1], out.ctypes.data
    return job
