"""The gradient of an embedding. By hand: which row is written to depends on data, so no loop over rows can be written from a definition."""

from __future__ import annotations

import numpy as np

from .. import definitions as d
from ..numpy import accepts_embedding, embedding_forward, rows_of
from ..registry import Kernel
from .compiling import kernel


@kernel
def _embedding_backward(g, index, padding, out):
    for n in range(index.size):
        number = index[n]
        if number == padding:
            continue
        slope, to = g[n], out[number]
        for j in range(slope.size):
            to[j] += slope[j]


def embedding_backward(g, kept, needs, weight, index, *, padding_idx):
    out = np.zeros(weight.shape, weight.dtype)
    numbers = np.ascontiguousarray(index, np.int64).reshape(-1)
    rows = rows_of(g if g.flags.carray else g.copy())  # (N, C)
    _embedding_backward(rows, numbers, len(weight) if padding_idx is None else padding_idx, out)
    return out, None


def _accepts(weight, index, *, padding_idx):
    return weight.dtype == np.float32 and accepts_embedding(weight, index, padding_idx=padding_idx)


d.embedding.kernels["numba"] = Kernel(embedding_forward, embedding_backward, _accepts)
