"""Tiles as large as the registers of this processor allow, and panels as wide as they are."""

from __future__ import annotations

from llvmlite.binding import get_host_cpu_features

from .compiling import kernel
from .tiles import COLUMNS, tile_of

HEIGHT, VECTORS = (8, 2) if get_host_cpu_features().get("avx512f") else (4, 1)
PANEL = VECTORS * COLUMNS  # columns
tile = tile_of(HEIGHT, VECTORS)


@kernel
def pack(matrix, panels, first):
    """A right factor into panels, from their row `first` on: (rows, columns) -> (columns / PANEL, at least rows, PANEL)."""
    for j in range(panels.shape[0]):
        for k in range(matrix.shape[0]):
            for c in range(PANEL):
                panels[j, first + k, c] = matrix[k, j * PANEL + c]


@kernel
def pack_transposed(matrix, panels):
    """The transpose of a matrix into panels: (columns, rows) -> (columns / PANEL, rows, PANEL)."""
    for j in range(panels.shape[0]):
        for k in range(matrix.shape[1]):
            for c in range(PANEL):
                panels[j, k, c] = matrix[j * PANEL + c, k]
