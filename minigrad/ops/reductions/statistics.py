"""Quantiles, weighted means and covariance."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...engine.backend import device_of, to_numpy
from ...engine.tensor import Tensor
from ...errors import ArgumentError, DtypeError, ShapeError, axes_of, axis_problem, describe
from ..composite import composite
from ..creation import astype, constant, full_like, tensor
from ..elementwise.arithmetic import clip, isnan, where
from ..elementwise.unary import sqrt
from ..layout.diagonals import diagonal
from ..layout.joining import concatenate
from ..layout.shape import broadcast_to, moveaxis, reshape
from ..linalg.products import matmul
from .reduction import any as any_
from .reduction import count_reduced, kept_shape, mean
from .reduction import sum as sum_
from .sorting import sort

# Where a quantile lies among n sorted numbers, counted from 0: n q + α + q (1 - α - β) - 1 (Hyndman and Fan 1996).
_INTERPOLATED: dict[str, tuple[float, float]] = {
    "linear": (1, 1),
    "hazen": (1 / 2, 1 / 2),
    "weibull": (0, 0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
    "interpolated_inverted_cdf": (0, 1),
}
_CHOSEN: dict[str, Callable[[int, np.ndarray], np.ndarray]] = {  # one of the numbers
    "lower": lambda n, q: np.floor((n - 1) * q),
    "higher": lambda n, q: np.ceil((n - 1) * q),
    "nearest": lambda n, q: np.around((n - 1) * q),
    "inverted_cdf": lambda n, q: np.ceil(n * q - 1),
    "closest_observation": lambda n, q: _half_to_odd(n * q - 1),
}
# The place, and the share of the upper neighbour where that is one of the numbers, and where it is not.
_AVERAGED: dict[str, tuple[Callable[[int, np.ndarray], np.ndarray], float, float]] = {
    "midpoint": (lambda n, q: (n - 1) * q, 0.0, 0.5),
    "averaged_inverted_cdf": (lambda n, q: n * q - 1, 0.5, 1.0),
}
METHODS = (*_INTERPOLATED, *_CHOSEN, *_AVERAGED)


def _half_to_odd(place: np.ndarray) -> np.ndarray:
    """The nearest whole number, and of two the odd one."""
    return np.around(place + 1) - 1


def _places(method: str, n: int, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Between which two of n sorted numbers the quantiles lie, and how far from the first to the second."""
    if method in _CHOSEN:
        below = _CHOSEN[method](n, q)
        share = np.zeros_like(q)
    elif method in _AVERAGED:
        find, at, between = _AVERAGED[method]
        place = find(n, q)
        below = np.floor(place)
        share = np.where(place == below, at, between)
    else:
        alpha, beta = _INTERPOLATED[method]
        place = (n - 1) * q if method == "linear" else n * q + alpha + q * (1 - alpha - beta) - 1
        below = np.floor(place)
        share = place - below
    first, second = [np.clip(i, 0, n - 1).astype(np.intp) for i in (below, below + 1)]
    return first, second, share


def _levels(name: str, q: Any, largest: int) -> np.ndarray:
    """The asked quantiles as an array of float64 from 0 to 1."""
    levels = np.asarray(to_numpy(constant(q, name)) if isinstance(q, Tensor) else q, dtype=np.float64)
    if not ((levels >= 0) & (levels <= largest)).all():
        raise ArgumentError(f"{name}: q is out of range", f"numbers from 0 to {largest}", repr(q))
    return levels / largest


def _quantile(name: str, a: Any, levels: np.ndarray, axis: Any, method: str, keepdims: bool) -> Any:
    if method not in METHODS:
        raise ArgumentError(f"{name}: unknown method {method!r}", ", ".join(METHODS))
    if a.dtype.kind not in "iuf":
        raise DtypeError(f"{name}: these have no order", "real numbers", a.dtype)
    if axis is not None and (problem := axis_problem(name, axis, a.ndim, a.shape)):
        raise problem
    reduced = tuple(range(a.ndim)) if axis is None else tuple(i % a.ndim for i in axes_of(axis))
    count, rest = count_reduced(a.shape, reduced), [n for i, n in enumerate(a.shape) if i not in reduced]
    if count == 0:
        raise ShapeError(f"{name}: nothing to choose from", "at least one element", f"shape {tuple(a.shape)}")
    if method not in _CHOSEN and a.dtype.kind != "f":
        a = astype(a, dtype="float64")
    lines = reshape(moveaxis(a, source=reduced, destination=tuple(range(len(reduced)))), shape=(count, *rest))
    ordered = sort(lines, axis=0)
    first, second, share = _places(method, count, levels)
    result = ordered[first]  # (*q, *rest)
    if share.any():
        weight = tensor(share, a.dtype, device_of(a.data if isinstance(a, Tensor) else a))
        result = result + (ordered[second] - result) * reshape(weight, shape=(*share.shape, *(1,) * len(rest)))
    if a.dtype.kind == "f":
        result = where(any_(isnan(lines), axis=0), math.nan, result)
    return reshape(result, shape=(*levels.shape, *(kept_shape(a.shape, reduced) if keepdims else rest)))


@composite
def quantile(a, *, q, axis=None, method="linear", keepdims=False):
    """The numbers below which a part `q` of the elements lies, as NumPy's with all its methods; NaN if there is one.

    `q`, from 0 to 1, is a number or an array, whose axes come first in the result: (*q, …).
    """
    return _quantile("quantile", a, _levels("quantile", q, 1), axis, method, keepdims)


@composite
def percentile(a, *, q, axis=None, method="linear", keepdims=False):
    """`quantile` with `q` from 0 to 100, as NumPy's."""
    return _quantile("percentile", a, _levels("percentile", q, 100), axis, method, keepdims)


@composite
def average(a, *, axis=None, weights=None, returned=False, keepdims=False):
    """The mean along axes, each element with its weight, as NumPy's; `returned` gives the sum of the weights as well.

    The weights have the shape of `a`, or one number for each element of `axis`. Where they sum to 0, the mean is not finite.
    """
    if weights is None:
        result = mean(a, axis=axis, keepdims=keepdims)
        return (result, full_like(result, count_reduced(a.shape, axis))) if returned else result
    weights = broadcast_to(_fitting_weights(a, weights, axis), shape=a.shape)
    total = sum_(weights, axis=axis, keepdims=keepdims)
    result = sum_(a * weights, axis=axis, keepdims=keepdims) / total
    return (result, total) if returned else result


def _fitting_weights(a: Any, weights: Any, axis: Any) -> Any:
    """Weights that broadcast to `a`."""
    weights = tensor(weights) if isinstance(weights, (list, tuple)) else weights
    if axis is not None and (problem := axis_problem("average", axis, a.ndim, a.shape)):
        raise problem
    if tuple(weights.shape) == tuple(a.shape):
        return weights
    axes = () if axis is None else tuple([i % a.ndim for i in axes_of(axis)])
    if axis is None or tuple(weights.shape) != tuple([a.shape[i] for i in axes]):
        raise ShapeError(
            "average: the weights do not fit",
            f"shape {tuple(a.shape)}, or the sizes of the axes that are averaged",
            f"weights of shape {tuple(weights.shape)}, axis={axis!r}",
        )
    wide = reshape(weights, shape=(*weights.shape, *(1,) * (a.ndim - len(axes))))
    return moveaxis(wide, source=tuple(range(len(axes))), destination=axes)


def _observations(name: str, x: Any, y: Any, rowvar: bool) -> Any:
    """The variables as rows: (variables, observations)."""
    rows = []
    for part in (x,) if y is None else (x, tensor(y) if isinstance(y, (list, tuple)) else y):
        if part.ndim > 2:
            raise ShapeError(
                f"{name}: a table of observations is needed", "at most 2 axes", f"shape {tuple(part.shape)}"
            )
        part = part if part.ndim == 2 else reshape(part, shape=(1, -1))
        rows.append(part if rowvar or part.shape[0] == 1 else part.swapaxes(0, 1))
    table = concatenate(rows, axis=0) if len(rows) > 1 else rows[0]
    return table if table.dtype.kind == "f" else astype(table, dtype="float64")


def _covariance(rows: Any, ddof: int, fweights: Any = None, aweights: Any = None) -> Any:
    """(n, m) -> (n, n): the mean products of deviations, divided by `m - ddof` or what the weights make of it."""
    given = [tensor(w) if isinstance(w, (list, tuple)) else w for w in (fweights, aweights) if w is not None]
    if any(tuple(w.shape) != tuple(rows.shape[1:]) for w in given):
        raise ShapeError(
            "cov: one weight for each observation is needed", f"shape {tuple(rows.shape[1:])}", describe(given)
        )
    if not given:
        deviation = rows - mean(rows, axis=1, keepdims=True)
        return matmul(deviation, deviation.swapaxes(0, 1)) / max(rows.shape[1] - ddof, 0)
    given = [w if w.dtype.kind == "f" else astype(w, dtype=rows.dtype) for w in given]
    weight = given[0] if len(given) == 1 else given[0] * given[1]
    total = sum_(weight)
    factor = total - ddof if aweights is None else total - ddof * sum_(weight * given[-1]) / total
    deviation = rows - sum_(rows * weight, axis=1, keepdims=True) / total
    return matmul(deviation * weight, deviation.swapaxes(0, 1)) / factor


@composite
def cov(a, *, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None):
    """The covariance of variables, one in each row of observations, as NumPy's: (n, m) -> (n, n).

    It is divided by `m - ddof`, and ddof is 1 unless given, or 0 with `bias`. `fweights` counts how often each observation was
    made, `aweights` says how much it matters.
    """
    rows = _observations("cov", a, y, rowvar)
    result = _covariance(rows, ddof if ddof is not None else 0 if bias else 1, fweights, aweights)
    return reshape(result, shape=() if result.shape == (1, 1) else result.shape)


@composite
def corrcoef(a, *, y=None, rowvar=True):
    """The correlation of variables, one in each row of observations, from -1 to 1, as NumPy's: (n, m) -> (n, n)."""
    covariance = _covariance(_observations("corrcoef", a, y, rowvar), 1)
    size = sqrt(diagonal(covariance))
    result = clip(covariance / size[:, None] / size, -1, 1)
    return reshape(result, shape=() if result.shape == (1, 1) else result.shape)
