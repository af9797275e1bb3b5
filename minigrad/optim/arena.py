"""Parameters side by side in memory, so that a whole group takes its step in one go.

The weights of a group become windows of one flat array, and so do the optimiser's buffers; gradients are copied into a
third. A step is then a few passes over long arrays instead of a few hundred calls on short ones. A parameter or a buffer
whose memory somebody else holds too (a detached alias, a view, another process) stays where it is: moving it would part the two.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ..engine.backend import Array, backend_of, device_of
from ..engine.tensor import Tensor

__all__ = ["Arena", "can_move"]


def can_move(params: Sequence[Tensor], states: Sequence[dict[str, Any]], buffers: Sequence[str]) -> bool:
    """Whether these parameters can be put side by side: one dtype, one device, and memory that nobody else holds."""
    kinds = {(p.dtype, device_of(p.data)) for p in params}
    return (
        len(kinds) == 1
        and all(_holders(p.data) <= _ALONE and _is_whole(p.data) for p in params)
        and all(_holders(state[name]) <= _ALONE and _is_whole(state[name]) for state in states for name in buffers)
    )


def _holders(array: Array) -> int:
    return sys.getrefcount(array)


def _is_whole(array: Array) -> bool:
    """Whether it is all there is of its memory: memory of its own, or a window of an earlier arena."""
    if array.base is None:
        return True
    window = getattr(array.base, "base", None)
    is_ours = type(window) is memoryview and _flats.get(id(window.obj)) is window.obj
    return is_ours and _holders(array.base) <= _ALONE


_flats: WeakValueDictionary[int, Any] = WeakValueDictionary()  # the flat arrays of all arenas, by their ids
_lonely = Tensor(0)
_ALONE = _holders(_lonely.data)  # what is counted while only the Tensor holds its array


class Arena:
    """One group's parameters, gradients and buffers, each kind in one flat array."""

    def __init__(self, params: Sequence[Tensor], states: Sequence[dict[str, Any]], buffers: Sequence[str]):
        first = params[0].data
        xp = backend_of(first).xp
        total = sum(p.size for p in params)
        self.params, self.states = list(params), list(states)
        self.p, self.g = xp.empty(total, first.dtype), xp.zeros(total, first.dtype)
        self.state = {name: xp.empty(total, first.dtype) for name in buffers}
        self.weights, self.gradients = self._windows(self.p), self._windows(self.g)
        for p, weight in zip(params, self.weights):
            weight[...] = p.data
            p.data = weight
        self.buffers = {name: self._windows(flat) for name, flat in self.state.items()}
        for name, windows in self.buffers.items():
            for state, window in zip(states, windows):
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

    def holds(self, params: Sequence[Tensor], states: Mapping[Tensor, dict[str, Any]], buffers: Sequence[str]) -> bool:
        """Whether it is made of just these parameters and buffers, and none was moved, counted apart or replaced since."""
        if len(params) != len(self.params) or self.buffers.keys() != set(buffers):
            return False
        first = self.states[0]["step"]
        for p, mine, window, state in zip(params, self.params, self.weights, self.states):
            if p is not mine or p.data is not window or states.get(p) is not state or state["step"] != first:
                return False
        return all(s[name] is window for name in buffers for s, window in zip(self.states, self.buffers[name]))

    def gather(self) -> None:
        """Copy the gradients; those that the parameters have stay where they are, since who looks at one may keep it."""
        for p, window in zip(self.params, self.gradients):
            node: Any = p.node
            window[...] = node.grad


def _window(flat: Array, start: int, stop: int) -> Array:
    """A part of a flat array. Of NumPy's it is made from bare memory, so that a write into one part is not taken for a write into all."""
    if type(flat) is np.ndarray and stop > start:
        _flats[id(flat)] = flat
        return np.frombuffer(flat.data[start:stop], flat.dtype)
    return flat[start:stop]
