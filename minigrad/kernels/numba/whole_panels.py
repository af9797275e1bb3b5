"""Recurrent layers whose state is as wide as no whole number of panels: zeros behind it stay zeros, and are cut off."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..registry import Kernel
from .wide_tiles import PANEL


def _wider(array: Any, size: int, axes: tuple[int, ...]) -> Any:
    """An array whose axes of `size`, or of several times as many, have zeros behind each such part, up to whole panels."""
    if array is None:
        return None
    for axis in axes:
        shape = array.shape
        apart = array.reshape(*shape[:axis], -1, size, *shape[axis + 1 :])
        gap = [(0, 0)] * apart.ndim
        gap[axis + 1] = (0, -size % PANEL)
        padded = np.pad(apart, gap)
        array = padded.reshape(*shape[:axis], -1, *shape[axis + 1 :])
    return array


def _narrower(array: Any, size: int, axes: tuple[int, ...]) -> Any:
    """The opposite of `_wider`."""
    if array is None:
        return None
    for axis in axes:
        shape = array.shape
        apart = array.reshape(*shape[:axis], -1, size + -size % PANEL, *shape[axis + 1 :])
        cut = apart[(slice(None),) * (axis + 1) + (slice(size),)]
        array = cut.reshape(*shape[:axis], -1, *shape[axis + 1 :])
    return array


AXES: tuple[tuple[int, ...], ...] = (
    (),
    (0,),
    (0, 1),
    (0,),
    (0,),
    (1,),
    (1,),
)  # of each input, those as wide as the state


def in_whole_panels(inner: Kernel, is_lstm: bool) -> Kernel:
    """The kernel for states of any width; zeros behind a state stay zeros."""

    def widened(inputs: Any) -> list[Any]:
        size = inputs[5].shape[1]
        arrays = inputs if size % PANEL == 0 else [_wider(x, size, axes) for x, axes in zip(inputs[:-1], AXES)]
        return [*arrays[: 6 + is_lstm], inputs[-1]]

    def forward(*inputs, reverse):
        size = inputs[5].shape[1]
        out, layer = inner.forward(*widened(inputs), reverse=reverse)
        return _narrower(out, size, (2,)) if size % PANEL else out, layer

    def backward(g, layer, needs, *inputs, reverse):
        size = inputs[5].shape[1]
        if size % PANEL == 0:
            return inner.backward(g, layer, needs, *inputs, reverse=reverse)
        grads = inner.backward(_wider(g, size, (2,)), layer, needs, *widened(inputs), reverse=reverse)
        return [*[_narrower(x, size, axes) for x, axes in zip(grads[:-1], AXES)], None]

    return Kernel(forward, backward, inner.accepts)
