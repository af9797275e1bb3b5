"""How many: elements that are not 0, whole numbers, numbers between the edges of bins."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...engine.op import op
from ...engine.tensor import Tensor
from ...errors import ArgumentError, DtypeError, ShapeError, is_whole
from ..composite import composite
from ..creation import constant, linspace, tensor, zeros
from ..elementwise.arithmetic import not_equal, where
from ..indexing.along import scatter_add
from ..layout.shape import ravel
from .cumulative import diff
from .reduction import sum
from .sorting import searchsorted


@composite
def count_nonzero(a, *, axis=None, keepdims=False):
    """How many elements along axes are not 0, as NumPy's."""
    return sum(not_equal(a, 0), axis=axis, keepdims=keepdims)


@composite
def bincount(a, weights=None, *, minlength=0):
    """How often each whole number from 0 up is among the elements of a vector, or the sum of their weights, as NumPy's."""
    if a.ndim != 1:
        raise ShapeError("bincount: the whole numbers come as a vector", "1 axis", f"shape {a.shape}", "use x.ravel()")
    if a.dtype.kind not in "iub":
        raise DtypeError("bincount: only whole numbers can be counted", "an integer dtype", a.dtype)
    if not is_whole(minlength) or minlength < 0:
        raise ArgumentError("bincount: minlength is a length", "a whole number from 0 up", repr(minlength))
    numbers = constant(a, "bincount")
    if numbers.size and int(numbers.min()) < 0:
        raise ArgumentError("bincount: negative numbers cannot be counted", "numbers from 0 up", int(numbers.min()))
    count = max(minlength, int(numbers.max()) + 1 if numbers.size else 0)
    if weights is None:
        return _bincount(a, count=count)
    if weights.shape != a.shape:
        raise ShapeError("bincount: each number has a weight", f"weights of shape {a.shape}", weights.shape)
    return scatter_add(zeros(count, dtype=weights.dtype, device=a.device), indices=a, values=weights, axis=0)


@op
def _bincount(xp, a, *, count):
    """How often each of the numbers from 0 to `count - 1` comes."""
    return xp.bincount(a, minlength=count)


@composite(several=True)
def histogram(a, *, bins=10, range=None, density=None, weights=None):
    """How many elements lie in each bin, or the sum of their weights, and the edges of the bins, as NumPy's.

    `bins` is how many bins of one width, or their rising edges. A bin has its left edge, the last one both. Weights get
    a gradient, the elements none.
    """
    edges = _edges(a, bins, range)
    last, line = edges.shape[0] - 1, ravel(a)
    place = searchsorted(edges, line, side="right") - 1
    place = where(line == edges[-1], last - 1, place)
    place = where((place >= 0) & (place < last), place, last)  # what lies outside is counted, and cut off
    weights = weights if weights is None else ravel(weights)
    counts = bincount(place, weights, minlength=last + 1)[:last]
    return counts / (diff(edges) * sum(counts)) if density else counts, edges


def _edges(a: Any, bins: Any, range: Any) -> Any:
    """The edges of bins: those that are given, or so many of one width, from the smallest to the largest element."""
    if not is_whole(bins):
        return _given_edges(a, bins)
    if bins < 1:
        raise ArgumentError("histogram: there must be a bin", "bins from 1 up", repr(bins))
    values = constant(a.detach(), "histogram")
    low, high = range if range is not None else (values.min(), values.max()) if values.size else (0, 1)
    low, high = float(low), float(high)
    if not (np.isfinite(low) and np.isfinite(high) and low <= high):
        raise ArgumentError("histogram: the bins need a range", "finite numbers, the smaller one first", (low, high))
    if low == high:
        low, high = low - 0.5, high + 0.5
    dtype = a.dtype if a.dtype.kind == "f" else "float64"
    return linspace(low, high, int(bins) + 1, dtype=dtype, device=a.device)


def _given_edges(a: Any, bins: Any) -> Any:
    if isinstance(bins, str):
        raise ArgumentError(f"histogram: bins={bins!r} is not offered", "a number of bins, or their edges")
    dtype = a.dtype if a.dtype.kind == "f" and isinstance(bins, (list, tuple)) else None
    edges = bins if isinstance(bins, Tensor) else tensor(bins, dtype=dtype, device=a.device)
    if edges.ndim != 1 or edges.shape[0] < 2 or bool((edges[1:] < edges[:-1]).any()):
        raise ArgumentError("histogram: the edges do not rise", "a vector of at least 2 rising numbers", repr(bins))
    return edges
