"""The gated scan of a recurrence: all positions of a few columns in one loop, whose state stays in registers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numpy_scan import accepts_scan, register_scan
from .compiling import kernel


@kernel
def _scan(x, gate, state, before, out):
    batch, length, width = x.shape
    for b in range(batch):
        last = state[b].copy()
        for t in range(length):
            for c in range(width):
                before[b, t, c] = last[c]
                last[c] = gate[b, t, c] * last[c] + (1 - gate[b, t, c]) * x[b, t, c]
                out[b, t, c] = last[c]


@kernel
def _scan_backward(g, x, gate, before, g_x, g_gate, g_state):
    batch, length, width = x.shape
    for b in range(batch):
        g_state[b] = 0
        for t in range(length - 1, -1, -1):
            for c in range(width):
                slope = g_state[b, c] + g[b, t, c]
                g_gate[b, t, c] = slope * (before[b, t, c] - x[b, t, c])
                g_x[b, t, c] = slope * (1 - gate[b, t, c])
                g_state[b, c] = slope * gate[b, t, c]


def _ready(*arrays: Any) -> list[np.ndarray]:
    return [np.ascontiguousarray(x) for x in arrays]


def scan(x: Any, gate: Any, state: Any, before: Any, out: Any) -> None:
    """Fill the states before and after each position."""
    _scan(*_ready(x, gate, state), before, out)


def scan_backward(g: Any, x: Any, gate: Any, before: Any, grads: Any) -> None:
    """Fill the gradients of x, the gates and the first state."""
    _scan_backward(*_ready(g, x, gate), before, *grads)


def accepts(x: Any, gate: Any, state: Any) -> bool:
    """In float32, and more than one position: of a single one, loading a kernel would be most of the work."""
    return x.dtype == np.float32 and accepts_scan(x, gate, state) and x.shape[1] > 1


register_scan("numba", scan, scan_backward, accepts)
