"""Small parameters side by side in memory, so that they take their step in one go.

A step on one flat array is a few passes instead of a few calls for each of many short arrays. Weights and gradients are
copied in, and weights out again: where they live is their owner's business. The optimiser's own buffers live here.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from ..engine.backend import Array, backend_of
from ..engine.tensor import Tensor

__all__ = ["SMALL", "Flat"]

SMALL = 4096  # elements: a larger parameter is not worth the copies


class Flat:
    """The small parameters of a group, their gradients and their buffers, each kind in one flat array."""

    def __init__(self, params: Sequence[Tensor], states: Sequence[dict[str, Any]], buffers: Sequence[str]):
        first = params[0].data
        xp = backend_of(first).xp
        total = sum(p.size for p in params)
        self.params, self.states = list(params), list(states)
        self.arrays = [weakref.ref(p.data) for p in params]  # to notice when a parameter gets other memory
        self.p, self.g = xp.empty(total, first.dtype), xp.empty(total, first.dtype)
        self.buffers = {name: xp.empty(total, first.dtype) for name in buffers}
        self.weights, self.gradients = self._views(self.p), self._views(self.g)
        self.views = {name: self._views(flat) for name, flat in self.buffers.items()}
        for name, views in self.views.items():
            for state, view in zip(states, views):
                view[...] = state[name]
                state[name] = view

    def _views(self, flat: Array) -> list[Array]:
        """A part of a flat array for each parameter, in its shape."""
        views, start = [], 0
        for p in self.params:
            views.append(flat[start : start + p.size].reshape(p.shape))
            start += p.size
        return views

    def holds(self, params: Sequence[Tensor], states: Mapping[Tensor, dict[str, Any]], buffers: Sequence[str]) -> bool:
        """Whether it is made of just these parameters and buffers, and none was counted apart or replaced since."""
        if len(params) != len(self.params) or self.views.keys() != set(buffers):
            return False
        count = self.states[0]["step"]
        for p, mine, array, state in zip(params, self.params, self.arrays, self.states):
            if p is not mine or array() is not p.data or states.get(p) is not state or state["step"] != count:
                return False
        for name, views in self.views.items():
            for state, view in zip(self.states, views):
                if state.get(name) is not view:
                    return False
        return True

    def gather(self) -> dict[str, Any]:
        """Copy weights and gradients in and count a step; the state that a rule gets."""
        for p, weight, gradient in zip(self.params, self.weights, self.gradients):
            node: Any = p.node
            weight[...] = p.data
            gradient[...] = node.grad
        for state in self.states:
            state["step"] += 1
        return {"step": self.states[0]["step"], **self.buffers}

    def scatter(self) -> None:
        """Copy the weights out."""
        for p, weight in zip(self.params, self.weights):
            p.data[...] = weight
