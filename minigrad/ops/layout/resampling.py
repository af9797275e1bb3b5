"""Resampling along one axis: each element of the result is a weighted sum of a few elements, its taps.

Interpolation of every kind and adaptive pooling differ in their taps alone. The derivative of a resampling is the resampling
with its taps transposed, so every order follows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...engine.op import op
from ..composite import host_constant

Taps = tuple[np.ndarray, np.ndarray]  # which elements, and their weights: (out, taps) each


@op(cost=lambda inputs, output, attrs: 2 * output.size * attrs["places"].shape[1])
def _resample(xp, a, *, places, weights, axis):
    """`sum(a[places] * weights)` over the taps, along one axis: (…, n, …) -> (…, out, …)."""
    taken = xp.take(a, xp.asarray(places), axis=axis)  # (…, out, taps, …)
    factors = xp.asarray(weights, dtype=a.dtype).reshape(*weights.shape, *[1] * (a.ndim - axis - 1))
    return (taken * factors).sum(axis=axis + 1)


def _resample_back(g, a_shape, places, weights, axis):
    return resample(g, *transposed(places, weights, a_shape[axis]), axis=axis)


_resample.vjp(a=_resample_back)


def resample(a: Any, places: np.ndarray, weights: np.ndarray, axis: int) -> Any:
    """A tensor or an array resampled along one axis."""
    return _resample(a, places=host_constant(places), weights=host_constant(weights), axis=axis)


def transposed(places: np.ndarray, weights: np.ndarray, size: int) -> Taps:
    """The taps of the transposed map: for each of `size` elements, where it went and with which weight."""
    used = np.flatnonzero(weights)
    order = used[np.argsort(places.ravel()[used], kind="stable")]
    sources = places.ravel()[order]
    counts = np.bincount(sources, minlength=size)
    number = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)  # counted within each element
    shape = (size, max(int(counts.max(initial=0)), 1))
    back, factors = np.zeros(shape, np.int64), np.zeros(shape)
    back[sources, number] = order // places.shape[1]
    factors[sources, number] = weights.ravel()[order]
    return back, factors


def area_taps(size: int, out: int) -> Taps:
    """The means of `out` windows that cover `size` elements evenly; a shorter one names its last element again."""
    starts = np.arange(out) * size // out
    counts = -(-(np.arange(out) + 1) * size // out) - starts
    steps = np.arange(counts.max())
    places = starts[:, None] + np.minimum(steps, counts[:, None] - 1)
    return places, (steps < counts[:, None]) / counts[:, None]


def nearest_taps(size: int, out: int, scale: float, exact: bool) -> Taps:
    """The nearest element: that at the left edge of each new one or, if `exact`, at its middle."""
    edges = (np.arange(out) + (0.5 if exact else 0)) * scale
    places = np.floor(edges.astype(np.float32)).astype(
        np.int64
    )  # float32 takes what is just below an edge for the edge
    return np.clip(places, 0, size - 1)[:, None], np.ones((out, 1))


def source_positions(size: int, out: int, scale: float, align_corners: bool) -> np.ndarray:
    """Where the new elements lie among the old ones, (out,): corners on corners, or edges on edges."""
    if align_corners:
        return np.arange(out) * ((size - 1) / (out - 1) if out > 1 else 0.0)
    return (np.arange(out) + 0.5) * scale - 0.5


def linear_taps(size: int, positions: np.ndarray) -> Taps:
    """The two elements around each position."""
    positions = np.clip(positions, 0, size - 1)
    left = np.floor(positions).astype(np.int64)
    share = positions - left
    return np.stack([left, np.minimum(left + 1, size - 1)], axis=1), np.stack([1 - share, share], axis=1)


CUBIC = -0.75  # the free coefficient of cubic convolution, as in PyTorch and OpenCV


def cubic_taps(size: int, positions: np.ndarray) -> Taps:
    """The four elements around each position, those beyond an end being its last."""
    left = np.floor(positions).astype(np.int64)
    places = np.clip(left[:, None] + np.arange(-1, 3), 0, size - 1)
    return places, np.stack(cubic_weights(positions - left), axis=1)


def cubic_weights(share: Any) -> tuple[Any, Any, Any, Any]:
    """The weights of the four elements around a position, `share` of the way from the second to the third."""

    def near(x: Any) -> Any:  # up to a distance of 1
        return ((CUBIC + 2) * x - (CUBIC + 3)) * x * x + 1

    def far(x: Any) -> Any:  # from 1 to 2
        return ((CUBIC * x - 5 * CUBIC) * x + 8 * CUBIC) * x - 4 * CUBIC

    return far(share + 1), near(share), near(1 - share), far(2 - share)
