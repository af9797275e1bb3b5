"""`left.T @ right` of two matrices with many rows, as gradients of weights are: blocks of both stay in the caches of a core.

By hand: BLAS takes twice the time on the shapes of recurrent layers, for which it moves both matrices first.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from .compiling import kernel
from .thread_pool import FUNCTION, JOB_WORDS, OWN, PARTS, address_of, pool_for, run_jobs, word
from .tiles import COLUMNS, ITEM, PANEL_ROW
from .vectors import load, store
from .wide_tiles import HEIGHT, PANEL, tile

F = np.float32
DEPTH = 256  # rows of both that are worked on at a time
WIDTH, NARROW = 128, 64  # columns of the left factor that are a part, of wide ones and of others

# The words of a job: addresses, distances in bytes, and sizes.
LEFT, LEFT_ROW, ROWS, FIRST, COUNT, PART, PANELS, INNER, OUT = range(OWN, OWN + 9)


@kernel
def _pack_left(source, row, rows, columns, room):
    """Some rows and columns, 16 columns next to each other: (rows, columns) -> (columns / 16, rows, 16)."""
    for j in range(0, columns, COLUMNS):
        target = room + j * rows * ITEM
        for i in range(rows):
            store(load(source + i * row + j * ITEM), target + i * PANEL_ROW)


@kernel
def _product_part(job, part, room):
    rows, inner, width = word(job, ROWS), word(job, INNER), word(job, PART)
    begin = part * width
    columns = min(width, word(job, COUNT) - begin)
    left, out = word(job, LEFT) + (word(job, FIRST) + begin) * ITEM, word(job, OUT) + begin * inner * ITEM
    for k in range(0, rows, DEPTH):
        depth = min(DEPTH, rows - k)
        _pack_left(left + k * word(job, LEFT_ROW), word(job, LEFT_ROW), depth, columns, room)
        for j in range(0, inner, PANEL):
            panel = word(job, PANELS) + (j * rows + k * PANEL) * ITEM
            for i in range(0, columns, HEIGHT):
                source = room + (i // COLUMNS * depth * COLUMNS + i % COLUMNS) * ITEM
                target = out + (i * inner + j) * ITEM
                tile(source, ITEM, PANEL_ROW, panel, target, inner * ITEM, columns - i, depth, k > 0)


@cache
def _function() -> int:
    return address_of(_product_part)


def transposed_products(left: np.ndarray, jobs: list[tuple[int, int, np.ndarray, np.ndarray]]) -> None:
    """Fill `out = left[:, first : first + count].T @ right` for each job (first, count, panels of right, out).

    `left` (N, W) has no gaps; `first` and `count` are multiples of 16, and panels are (columns / PANEL, N, PANEL).
    """
    table = np.zeros((len(jobs), JOB_WORDS), np.int64)
    for job, (first, count, panels, out) in zip(table, jobs):
        part = WIDTH if count >= 4 * WIDTH else NARROW
        job[[FUNCTION, PARTS]] = _function(), -(-count // part)
        job[LEFT : OUT + 1] = (
            left.ctypes.data, left.strides[0], len(left), first, count, part, panels.ctypes.data, out.shape[1],
            out.ctypes.data,
        )  # fmt: skip
    run_jobs(table.ctypes.data, len(table), pool_for(True), True)
