"""`grid_sample`: an image read at positions between its pixels, with derivatives by image and by position."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...engine.tensor import Tensor
from ...errors import ArgumentError, ShapeError, nearest
from ...ops.composite import host_constant
from ...ops.creation import _constant, astype
from ...ops.elementwise.arithmetic import floor, round_, where
from ...ops.layout.resampling import cubic_weights
from ...ops.layout.shape import moveaxis, reshape
from .declaration import TensorLike, function

__all__ = ["grid_sample"]

MODES = ("bilinear", "nearest", "bicubic")
PADDING_MODES = ("zeros", "border", "reflection")


@function
def grid_sample(
    input: TensorLike,
    grid: TensorLike,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """The image at the positions of a grid: (N, C, H, W), (N, H', W', 2) -> (N, C, H', W'), or with three axes each.

    A position is (x, y) or (x, y, z), from -1 at the left, upper and front edges (with `align_corners`, the middles of
    the pixels there) to 1 at the other ends.
    """
    axes = input.ndim - 2
    _check(input, grid, mode, padding_mode, axes)
    sizes = input.shape[2:]
    taps = []
    for i, n in enumerate(sizes):
        scaled = grid[..., axes - 1 - i] + 1  # x comes first, and the last axis is x
        position = scaled * ((n - 1) / 2) if align_corners else (scaled * n - 1) / 2
        taps.append(list(_taps(position, n, mode, padding_mode, bool(align_corners))))
    pixels = reshape(moveaxis(input, source=1, destination=-1), shape=(-1, input.shape[1]))  # (N·H·W, C)
    starts = np.arange(len(grid)).reshape(-1, *[1] * axes) * math.prod(sizes)
    first = _constant(taps[0][0][0], values=host_constant(starts))
    parts = [_read(pixels, first, corner, sizes) for corner in itertools.product(*taps)]
    return moveaxis(functools.reduce(operator.add, parts), source=-1, destination=1)


def _read(pixels: Any, first: Any, corner: Any, sizes: tuple[int, ...]) -> Any:
    """One element for each position, times its weights along all axes: (N·H·W, C) -> (N, *out, C)."""
    flat = 0
    for (place, _), n in zip(corner, sizes):
        flat = flat * n + place
    weight = functools.reduce(operator.mul, [share for _, share in corner])
    return pixels[first + flat] * reshape(weight, shape=(*weight.shape, 1))


def _taps(position: Any, n: int, mode: str, padding_mode: str, align_corners: bool) -> Iterator[tuple[Any, Any]]:
    """The elements of one axis that a position reads, each with its weight: whole numbers below n, (N, *out)."""
    if mode != "bicubic":
        position = _inside(position, n, padding_mode, align_corners)
    left = round_(position) if mode == "nearest" else floor(position)
    share = position - left
    if mode == "nearest":
        pairs = [(left, None)]
    elif mode == "bilinear":
        pairs = [(left, 1 - share), (left + 1, share)]
    else:
        pairs = [(left + i - 1, weight) for i, weight in enumerate(cubic_weights(share))]
    for place, weight in pairs:
        there = _inside(place, n, padding_mode, align_corners) if mode == "bicubic" else place
        weight = where((there < 0) | (there >= n), 0.0, 1.0 if weight is None else weight)
        place = where((there >= 0) & (there < n), there, 0)  # also for NaN, whose weight is NaN
        yield astype(place, dtype="int64"), astype(weight, dtype=position.dtype)


def _inside(position: Any, n: int, padding_mode: str, align_corners: bool) -> Any:
    """A position beyond the edges brought back, unless it is to read zeros."""
    if padding_mode == "zeros":
        return position
    if padding_mode == "reflection":
        low, span = (0.0, n - 1.0) if align_corners else (-0.5, float(n))
        if not span:
            return position * 0
        distance = where(position < low, low - position, position - low)
        flips = floor(distance / span)
        rest = distance - flips * span
        position = where(flips % 2 == 0, rest, span - rest) + low
    return where(position <= 0, 0.0, where(position >= n - 1, n - 1.0, position))  # as PyTorch: no slope at the edge


def _check(input: Any, grid: Any, mode: str, padding_mode: str, axes: int) -> None:
    if axes not in (2, 3) or grid.ndim != axes + 2 or grid.shape[-1] != axes or grid.shape[0] != input.shape[0]:
        raise ShapeError(
            "grid_sample: input and grid do not fit",
            "(N, C, H, W) and (N, H', W', 2), or (N, C, D, H, W) and (N, D', H', W', 3)",
            f"input {input.shape} and grid {grid.shape}",
        )
    for name, value, known in (("mode", mode, MODES), ("padding_mode", padding_mode, PADDING_MODES)):
        if value not in known:
            raise ArgumentError(f"grid_sample: unknown {name} {value!r}", ", ".join(known), fix=nearest(value, known))
    if mode == "bicubic" and axes != 2:
        raise ArgumentError("grid_sample: mode 'bicubic' is for two axes", "(N, C, H, W)", f"input {input.shape}")
    if not math.prod(input.shape[2:]):
        raise ShapeError("grid_sample: the input has no elements", "axes of at least 1", input.shape)
