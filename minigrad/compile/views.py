"""Views: how the axes of an array and of a view of it correspond, without an array."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..ir.graph import Size, Step
from ..ops.indexing.getitem import is_basic
from ..ops.layout.shape import reshape

Shape = tuple[int, ...]
Strides = tuple[int, ...]  # in elements


def c_strides(shape: Shape) -> Strides:
    """The strides of an array in C order, 0 on axes of size 1."""
    return tuple([0 if n == 1 else math.prod(shape[i + 1 :]) for i, n in enumerate(shape)])


def is_view(step: Step) -> bool:
    """Whether a step only looks at its input in another way."""
    if not step.op.view or step.op.several or not step.out.size or len(step.values) != 1:
        return False
    return "index" not in step.attrs or is_basic(step.attrs["index"])


def strided(step: Step, shape: Shape, strides: Strides) -> tuple[int, Strides] | None:
    """The offset and strides of a view of memory with these strides; None if its elements would have to be copied."""
    if step.op is reshape:
        return _reshaped(shape, strides, step.out.shape)
    if any(isinstance(s, Size) for s in strides):  # NumPy would take it for a number
        return None
    one = np.empty(1, np.int8)  # never read: only its shape and strides are looked at
    array = np.lib.stride_tricks.as_strided(one, shape, strides, writeable=False)
    view: Any = step.op.forward(np, array, **step.attrs)
    if isinstance(view, np.generic):  # one element by itself is a copy; with `...` it is a view
        index = step.attrs["index"]
        view = array[(*(index if isinstance(index, tuple) else (index,)), ...)]
    offset = view.__array_interface__["data"][0] - one.__array_interface__["data"][0]
    return offset, tuple([0 if n == 1 else s for n, s in zip(view.shape, view.strides)])


def _reshaped(shape: Shape, strides: Strides, new: Shape) -> tuple[int, Strides] | None:
    runs: list[tuple[int, int]] = []  # axes that lie in memory as one: how long it is, and its stride
    for n, s in zip(shape, strides):
        if n != 1:
            runs.append((runs.pop()[0] * n, s) if runs and runs[-1][1] == s * n else (n, s))
    found, left, stride = [], 1, 0
    for n in reversed(new):
        if n != 1 and left == 1:
            left, stride = runs.pop()
        if left % n:
            return None
        found.append(0 if n == 1 else stride)
        left, stride = left // n, stride * n
    return 0, tuple(reversed(found))


def whole_axes(source: Shape, shape: Shape, offset: int, strides: Strides) -> tuple[int | None, ...] | None:
    """For each axis of a view the axis of its source, None where it repeats one element; None if it is not made of whole axes."""
    axes = {(s, n): i for i, (s, n) in enumerate(zip(c_strides(source), source)) if s}
    found = [*zip(strides, shape)]
    is_whole = not offset and {(s, n) for s, n in found if s} == axes.keys()
    return tuple([axes.get(x) for x in found]) if is_whole else None
