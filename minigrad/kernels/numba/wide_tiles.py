"""Tiles as large as the registers of this processor allow, and panels as wide as they are."""

from __future__ import annotations

from functools import cache

import numpy as np
from llvmlite.binding import get_host_cpu_features

from ...maths.addresses import at
from .compiling import kernel
from .thread_pool import FUNCTION, JOB_WORDS, OWN, PARTS, address_of, word
from .tiles import COLUMNS, ITEM, tile_of

F = np.float32
HEIGHT, VECTORS = (8, 2) if get_host_cpu_features().get("avx512f") else (4, 1)
PANEL = VECTORS * COLUMNS  # columns
tile = tile_of(HEIGHT, VECTORS)

# The words of a job that packs a matrix: addresses, distances in bytes, and sizes.
SOURCE, ROW, STEP, DEPTH, WIDTH, PANELS, PANEL_STEP = range(OWN, OWN + 7)


@kernel
def _pack_part(job, part, room):
    """One panel; zeros stand behind the last column."""
    step, columns = word(job, STEP), min(PANEL, word(job, WIDTH) - part * PANEL)
    source, target = word(job, SOURCE) + part * PANEL * step, word(job, PANELS) + part * word(job, PANEL_STEP)
    for _ in range(word(job, DEPTH)):
        if step == ITEM:
            for c in range(columns):
                at(target, F)[c] = at(source, F)[c]
        else:
            for c in range(columns):
                at(target, F)[c] = at(source + c * step, F)[0]
        for c in range(columns, PANEL):
            at(target, F)[c] = F(0)
        source += word(job, ROW)
        target += PANEL * ITEM


@cache
def _function() -> int:
    return address_of(_pack_part)


def whole(columns: int) -> int:
    """As many columns as whole panels have."""
    return -(-columns // PANEL) * PANEL


def panels_of(depth: int, columns: int) -> np.ndarray:
    """Memory for a right factor in panels, each row of which begins where a register does: (⌈columns / PANEL⌉, depth, PANEL)."""
    size = whole(columns) * depth
    memory = np.empty(size + COLUMNS, F)
    skipped = -memory.ctypes.data // ITEM % COLUMNS
    return memory[skipped : skipped + size].reshape(-1, depth, PANEL)


def packing(matrix: np.ndarray, panels: np.ndarray, first: int = 0) -> np.ndarray:
    """The job that writes a matrix, which may lie in any way, into panels from their row `first` on."""
    job = np.zeros(JOB_WORDS, np.int64)
    job[[FUNCTION, PARTS]] = _function(), len(panels)
    target = panels.ctypes.data + first * PANEL * ITEM
    job[SOURCE : PANEL_STEP + 1] = matrix.ctypes.data, *matrix.strides, *matrix.shape, target, panels.strides[0]
    return job
