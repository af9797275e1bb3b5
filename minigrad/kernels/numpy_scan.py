"""The gated scan of a recurrence on NumPy's arrays, a position at a time: (B, L, C)."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import definitions as d
from .numpy import are_floating
from .registry import Kernel


def scan(x: Any, gate: Any, state: Any, before: Any, out: Any) -> None:
    """Fill the states before and after each position."""
    for t in range(x.shape[1]):
        before[:, t] = state
        state = out[:, t] = gate[:, t] * state + (1 - gate[:, t]) * x[:, t]


def scan_backward(g: Any, x: Any, gate: Any, before: Any, grads: Any) -> None:
    """Fill the gradients of x, the gates and the first state, from the last position to the first."""
    g_x, g_gate, g_state = grads
    g_state[...] = 0
    for t in reversed(range(x.shape[1])):
        slope = g_state + g[:, t]
        g_gate[:, t] = slope * (before[:, t] - x[:, t])
        g_x[:, t] = slope * (1 - gate[:, t])
        np.multiply(slope, gate[:, t], out=g_state)


def accepts_scan(x: Any, gate: Any, state: Any) -> bool:
    """Three arrays of one floating dtype that fit each other, none of them empty."""
    fits = x.ndim == 3 and x.shape == gate.shape and state.shape == (x.shape[0], x.shape[2])
    return fits and x.size > 0 and are_floating(x, gate, state)


def register_scan(name: str, scan: Any, scan_backward: Any, accepts: Any = accepts_scan) -> None:
    """A kernel of the scan from functions that fill arrays; the states before each position are kept."""

    def forward(x, gate, state):
        before, out = np.empty(x.shape, x.dtype), np.empty(x.shape, x.dtype)
        scan(x, gate, state, before, out)
        return out, before

    def backward(g, before, needs, x, gate, state):
        grads = [np.empty(a.shape, a.dtype) for a in (x, gate, state)]
        scan_backward(g, x, gate, before, grads)
        return grads

    d.gated_scan.kernels[name] = Kernel(forward, backward, accepts)


register_scan("numpy", scan, scan_backward)
