"""Sorting, the largest few, medians, and places in sorted tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...engine.op import op
from ...errors import ArgumentError, DtypeError, ShapeError, axes_of, axis_problem, is_whole
from ..composite import composite
from ..elementwise.arithmetic import isnan, where
from ..indexing.along import take_along_axis
from ..layout.shape import flip, moveaxis, ravel, reshape
from .reduction import any, count_reduced, kept_shape, mean
from .reduction import sum as sum_

SMALL = 1024  # so few elements are sorted faster than bounded


@op
def argsort(xp, a, *, axis=-1, descending=False, stable=True):
    """The positions that would sort along an axis; equal elements keep their order, whatever `stable` says."""
    for name, value in (("descending", descending), ("stable", stable)):
        if not isinstance(value, (bool, np.bool_, type(None))):
            raise ArgumentError(f"argsort: {name} must be True or False", "a bool", repr(value))
    if not descending:
        return xp.argsort(a, axis=axis, kind="stable")
    if axis is None:
        a, axis = a.reshape(-1), 0
    backwards = xp.argsort(xp.flip(a, axis=axis), axis=axis, kind="stable")
    return xp.flip(a.shape[axis] - 1 - backwards, axis=axis)


@composite
def sort(a, *, axis=-1, descending=False, stable=True):
    """The elements in rising (or falling) order along an axis, as NumPy's; equal elements keep their order."""
    if axis is None:
        a, axis = ravel(a), 0
    order = argsort(a, axis=axis, descending=descending, stable=stable)
    return take_along_axis(a, indices=order, axis=axis)


@composite(several=True)
def topk(a, *, k, axis=-1, largest=True, sorted=True):
    """The `k` largest (or smallest) elements along an axis, and their positions, as PyTorch's; always in order."""
    if problem := axis_problem("topk", axis, a.ndim, a.shape):
        raise problem
    size = a.shape[axis]
    if not is_whole(k) or not 0 <= k <= size:
        raise ArgumentError(
            "topk: k is out of range",
            f"a whole number from 0 to {size}, the size of axis {axis} of {a.shape}",
            f"k={k!r}",
            "take a smaller k, or another axis",
        )
    positions = _top_positions(a, k=int(k), axis=axis % a.ndim, largest=bool(largest))
    return take_along_axis(a, indices=positions, axis=axis), positions


@op
def _top_positions(xp, a, *, k, axis, largest):
    """Where the `k` largest, or smallest, are along an axis, in order; of equal elements the first ones."""
    lines = xp.moveaxis(a, axis, -1)
    if xp is np and k and a.size > SMALL:
        return np.moveaxis(_top_of_lines(lines, k, largest), -1, axis)
    return xp.moveaxis(argsort.forward(xp, lines, descending=largest)[..., :k], -1, axis)


def _top_of_lines(lines: np.ndarray, k: int, largest: bool) -> np.ndarray:
    """The positions of the top `k`: (…, n) -> (…, k). Only what reaches a bound is sorted."""
    size = lines.shape[-1]
    flat = lines.reshape(-1, size)
    bound = _bound(flat, k, largest)
    candidates = np.flatnonzero(~(flat < bound) if largest else ~(flat > bound))
    counts = np.bincount(candidates // size, minlength=len(flat))[:, None]
    filled = np.arange(counts.max()) < counts  # a line's candidates come first, then the bound, which sorts behind them
    places = np.zeros(filled.shape, np.intp)
    places[filled] = candidates
    values = np.where(filled, flat.reshape(-1)[places], bound)
    order = argsort.forward(np, values, descending=largest)[:, :k]
    return (np.take_along_axis(places, order, -1) % size).reshape(*lines.shape[:-1], k)


def _bound(lines: np.ndarray, k: int, largest: bool) -> np.ndarray:
    """A value that each of the top `k` of a line reaches, and little else does: (m, n) -> (m, 1).

    It is the k-th best of the bests of groups, if there are many elements for each of the `k`. NaN, which counts as the
    largest, bounds nothing: no comparison with it holds.
    """
    rows, size = lines.shape
    groups = max(8 * k, size // 256, 64)
    if 2 * groups <= size:
        parts = lines[:, : size // groups * groups].reshape(rows, -1, groups)
        lines, size = (np.maximum if largest else np.fmin).reduce(parts, axis=1), groups
    place = size - k if largest else k - 1
    return np.partition(lines, place, axis=-1)[:, place, None]


@composite
def median(a, *, axis=None, keepdims=False):
    """The middle element along an axis, or the mean of the two middle ones, as NumPy's; NaN if there is one."""
    line, along, shape = _as_line("median", a, axis, keepdims)
    ordered = sort(line, axis=along)
    size = line.shape[along]
    middle = (slice(None),) * along + (slice((size - 1) // 2, size // 2 + 1),)
    result = mean(ordered[middle], axis=along, keepdims=True)
    return reshape(where(any(isnan(line), axis=along, keepdims=True), math.nan, result), shape=shape)


@composite
def nanmedian(a, *, axis=None, keepdims=False):
    """The median along an axis of what is not NaN, as NumPy's; NaN where there is nothing else."""
    line, along, shape = _as_line("nanmedian", a, axis, keepdims)
    ordered = sort(line, axis=along)  # NaN comes last
    count = sum_(~isnan(line), axis=along, keepdims=True)
    low, high = (
        take_along_axis(ordered, indices=middle, axis=along)
        for middle in (where(count > 0, count - 1, 0) // 2, count // 2)
    )
    return reshape(where(count % 2 == 1, low, low + (high - low) / 2), shape=shape)


def _as_line(name: str, a: Any, axis: Any, keepdims: bool) -> tuple[Any, int, tuple[int, ...]]:
    """The tensor with the reduced axes joined into one, which one that is, and the shape of the result."""
    if a.dtype.kind == "b":
        raise DtypeError(f"{name}: booleans have no median", "numbers", a.dtype, "use x.astype('float32')")
    if axis is not None and (problem := axis_problem(name, axis, a.ndim, a.shape)):
        raise problem
    reduced = tuple(range(a.ndim)) if axis is None else tuple(i % a.ndim for i in axes_of(axis))
    left = tuple(n for i, n in enumerate(a.shape) if i not in reduced)
    shape = kept_shape(a.shape, reduced) if keepdims else left
    if len(reduced) == 1:
        return a, reduced[0], shape
    moved = moveaxis(a, source=reduced, destination=tuple(range(-len(reduced), 0)))
    return reshape(moved, shape=(*left, count_reduced(a.shape, reduced))), len(left), shape


@op(method=False)
def _places(xp, a, v, *, side):
    """Where each of `v` belongs in the sorted `a`: a vector, or as many lines as `v` has."""
    if a.ndim == 1:
        return xp.searchsorted(a, v, side=side)
    lines = zip(a.reshape(-1, a.shape[-1]), v.reshape(-1, v.shape[-1]))
    return xp.stack([xp.searchsorted(line, values, side=side) for line, values in lines]).reshape(v.shape)


@composite(method=False)
def searchsorted(a, v, *, side="left", sorter=None):
    """Where each of `v` would have to be put into the sorted `a` to keep it sorted, as NumPy's; lines of `a`, as PyTorch's, too."""
    if side not in ("left", "right"):
        raise ArgumentError("searchsorted: unknown side", "'left' or 'right'", repr(side))
    if not a.ndim or a.ndim > 1 and getattr(v, "shape", ())[:-1] != a.shape[:-1]:
        raise ShapeError(
            "searchsorted: the sorted tensor and the values do not fit",
            "a vector, or as many sorted lines as there are lines of values",
            f"{a.shape} and {getattr(v, 'shape', ())}",
        )
    if sorter is not None:
        a = take_along_axis(a, indices=sorter, axis=-1)
    return _places(a, v, side=side)


@composite
def bucketize(a, boundaries, *, right=False):
    """The number of the bucket of each element, between rising boundaries, as PyTorch's; with `right`, a bucket begins at its boundary."""
    return searchsorted(boundaries, a, side="right" if right else "left")


@composite(method=False)
def digitize(a, bins, *, right=False):
    """The number of the bin of each element, between rising or falling boundaries, as NumPy's; with `right`, a bin ends with its boundary."""
    side = "left" if right else "right"
    if bins.shape[0] > 1 and bool(bins[0] > bins[-1]):
        return bins.shape[0] - searchsorted(flip(bins, axis=0), a, side=side)
    return searchsorted(bins, a, side=side)
