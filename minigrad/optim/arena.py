"""Parameters side by side in memory, so that a whole group takes its step in one go.

The weights of a group become windows of one flat array, and so do their gradients and the optimiser's buffers. A step is
then a few passes over long arrays instead of a few hundred calls on short ones. A parameter whose memory somebody else
holds too (a detached alias, a view) stays where it is: moving it would part the two.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..engine.backend import Array, backend_of, device_of
from ..engine.tensor import Tensor

__all__ = ["Arena", "can_move"]


def can_move(params: Sequence[Tensor]) -> bool:
    """Whether these parameters can be put side by side: one dtype, one device, and memory that nobody else holds."""
    kinds = {(p.dtype, device_of(p.data)) for p in params}
    return len(kinds) == 1 and all(_holds_alone(p) for p in params)


def _holds_alone(p: Tensor) -> bool:
    """Whether nobody but the parameter itself refers to its memory, whether of its own or a window of an earlier arena."""
    owner = p.data.base
    if owner is None:
        return sys.getrefcount(p.data) <= _ALONE
    is_window = type(getattr(owner, "base", None)) is memoryview
    return is_window and sys.getrefcount(p.data) <= _ALONE and sys.getrefcount(owner) <= _ALONE + 1


_lonely = Tensor(0)
_ALONE = sys.getrefcount(_lonely.data)  # what is counted while only the Tensor holds its array


class Arena:
    """One group's parameters, gradients and buffers, each kind in one flat array."""

    def __init__(self, params: Sequence[Tensor], states: Sequence[dict[str, Any]], buffers: Sequence[str]):
        first = params[0].data
        xp = backend_of(first).xp
        total = sum(p.size for p in params)
        self.params, self.states, self.buffers = list(params), list(states), tuple(buffers)
        self.p, self.g = xp.empty(total, first.dtype), xp.zeros(total, first.dtype)
        self.state = {name: xp.empty(total, first.dtype) for name in buffers}
        self.weights, self.gradients = self._windows(self.p), self._windows(self.g)
        for p, weight in zip(params, self.weights):
            weight[...] = p.data
            p.data = weight
        for name, flat in self.state.items():
            for state, window in zip(states, self._windows(flat)):
                window[...] = state[name]
                state[name] = window

    def _windows(self, flat: Array) -> list[Array]:
        """A view for each parameter, of its shape."""
        windows, start = [], 0
        for p in self.params:
            stop = start + math.prod(p.shape)
            windows.append(_window(flat, start, stop).reshape(p.shape))
            start = stop
        return windows

    def holds(self, params: Sequence[Tensor], buffers: tuple[str, ...]) -> bool:
        """Whether it is made of just these parameters and buffers, and none was moved or given other memory since."""
        return (
            len(params) == len(self.params)
            and self.buffers == buffers
            and all(p is mine and p.data is window for p, mine, window in zip(params, self.params, self.weights))
        )

    def gather(self) -> None:
        """Bring in the gradients that lie elsewhere."""
        for p, window in zip(self.params, self.gradients):
            node: Any = p.node
            if node.grad is not window:
                window[...] = node.grad
                node.grad = window


def _window(flat: Array, start: int, stop: int) -> Array:
    """A part of a flat array. Of NumPy's it is made from bare memory, so that a write into one part is not taken for a write into all."""
    if type(flat) is np.ndarray and stop > start:
        return np.frombuffer(flat.data[start:stop], flat.dtype)
    return flat[start:stop]
