"""Tables that say how a convolution is computed: where planes begin in an image, and where in them each weight meets the result."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .convolution_tiles import ITEM, ROWS, TILE

# The words of a table; PLANE, ROW, COLUMN and FIRST say how the result lies: elements between its planes, rows and columns.
CHANNELS, HEIGHT, WIDTH, GROUPS, OUTPUTS, ROWS_OUT, COLUMNS_OUT, STEP_Y, STEP_X = range(9)
TOPS, LEFTS, PLANE_ROWS, DEPTH, PLANE, ROW, COLUMN, FIRST, WORDS = range(9, 18)


class Plan(NamedTuple):
    """How one source becomes one result."""

    table: np.ndarray
    planes: int  # elements of the planes of an image
    work: int  # multiplications for an image
    rows: int  # elements that a result which does not lie side by side is made in
    taps: tuple[tuple[int, ...], ...]  # the places in the kernel that take part, on each axis


class Axis(NamedTuple):
    """How one axis of the result meets the source: result i takes source[step · i + starts[which] + step · shift] for each tap."""

    taps: tuple[int, ...]
    starts: tuple[int, ...]
    which: tuple[int, ...]
    shifts: tuple[int, ...]


def _plan(
    source: Any, groups: int, outputs: int, out: Any, steps: Any, y: Axis, lefts: Any, x_taps: Any, placed: Any
) -> Plan:
    """The table for a source (C, H, W) and results (groups, outputs, *out) that are `placed`: plane, row, column, first."""
    channels, depth = source[0], source[0] // groups * len(y.taps) * len(lefts)
    rows = out[0] + max(y.shifts)
    channel, top, left = np.ogrid[: channels // groups, : len(y.taps), : len(lefts)]
    plane = (channel * len(y.starts) + np.array(y.which)[top]) * len(lefts) + left
    offsets = (plane * rows + np.array(y.shifts)[top]) * out[1] * ITEM
    head = [*source, groups, outputs, *out, *steps, len(y.starts), len(lefts), rows, depth, *placed]
    table = np.concatenate([head, y.starts, lefts, offsets.reshape(-1)]).astype(np.int64)
    size = out[0] * out[1]
    length = 0 if placed[0] == size and placed[2] == 1 and size >= TILE else ROWS * -(-size // TILE) * TILE
    planes = channels * len(y.starts) * len(lefts) * rows * out[1]
    return Plan(table, planes, groups * outputs * depth * size, length, (y.taps, x_taps))


@lru_cache(maxsize=256)
def forward_plan(image: Any, weight: Any, out: Any, stride: Any, before: Any, dilation: Any, groups: int) -> Plan:
    """Of a convolution of images (C, H, W) with weights (O, C/groups, kh, kw)."""
    (high, wide), step = weight[2:], stride[0]
    places = [i * dilation[0] for i in range(high)]
    residues = sorted({i % step for i in places})
    which = [residues.index(i % step) for i in places]
    y = Axis((*range(high),), tuple(r - before[0] for r in residues), tuple(which), tuple(i // step for i in places))
    lefts = [j * dilation[1] - before[1] for j in range(wide)]
    size = out[0] * out[1]
    return _plan(image, groups, weight[0] // groups, out, stride, y, lefts, (*range(wide),), (size, out[1], 1, 0))


def _met(first: int, stride: int, before: int, taps: int, dilation: int) -> tuple[list[int], list[int]]:
    """The taps whose windows reach every `stride`-th position from `first` on, and how far from each position the window is."""
    met = [i for i in range(taps) if (first + before - i * dilation) % stride == 0]
    return met, [(first + before - i * dilation) // stride for i in met]


@lru_cache(maxsize=256)
def backward_plans(
    image: Any, weight: Any, out: Any, stride: Any, before: Any, dilation: Any, groups: int
) -> list[Plan]:
    """For each residue of the strides: how its positions of the input's gradient are made of the gradient (O, *out)."""
    (_, high, wide), (outputs, inner, *kernel) = image, weight
    plans = []
    for first in range(min(stride[0], high)):
        taps, shifts = _met(first, stride[0], before[0], kernel[0], dilation[0])
        for first_x in range(min(stride[1], wide)):
            x_taps, lefts = _met(first_x, stride[1], before[1], kernel[1], dilation[1])
            if not taps or not x_taps:
                continue
            y = Axis(tuple(taps), (min(shifts),), (0,) * len(taps), tuple(s - min(shifts) for s in shifts))
            sizes = -(-(high - first) // stride[0]), -(-(wide - first_x) // stride[1])
            placed = (high * wide, stride[0] * wide, stride[1], first * wide + first_x)
            plans.append(_plan((outputs, *out), groups, inner, sizes, (1, 1), y, lefts, tuple(x_taps), placed))
    return plans
