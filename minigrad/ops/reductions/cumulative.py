"""Running sums, products and extremes along an axis, and their opposite: differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...engine.backend import to_numpy
from ...engine.op import op
from ...engine.tensor import Tensor
from ...errors import ArgumentError, is_whole
from ...tracer import is_compiling
from ..composite import composite
from ..creation import astype, full, tensor
from ..elementwise.arithmetic import logaddexp, not_equal, where
from ..elementwise.unary import floating
from ..indexing.along import take_along_axis
from ..layout.joining import concatenate
from ..layout.shape import broadcast_to, flip, moveaxis, one_axis, ravel, reshape, triu
from .reduction import sum, without_diagonal


@op
def _cumsum(xp, a, *, axis):
    """The running sum along one axis."""
    return xp.cumsum(a, axis=axis)


_cumsum.vjp(a=lambda g, axis: flip(_cumsum(flip(g, axis=axis), axis=axis), axis=axis))


@op
def _cumprod(xp, a, *, axis):
    """The running product along one axis."""
    return xp.cumprod(a, axis=axis)


def _cumprod_rule(g, a, out, axis):
    if not is_compiling() and not (a == 0).any():
        return flip(_cumsum(flip(g * out, axis=axis), axis=axis), axis=axis) / a
    lines, g = moveaxis(a, source=axis, destination=-1), moveaxis(g, source=axis, destination=-1)
    later = _cumprod(without_diagonal(lines), axis=-1)  # (…, n, n): at [i, k] the product up to k, without i
    weighted = reshape(g, shape=(*g.shape[:-1], 1, g.shape[-1])) * triu(later)
    return moveaxis(sum(weighted, axis=-1), source=-1, destination=axis)


_cumprod.vjp(a=_cumprod_rule)


@composite
def cumsum(a, *, axis=None, dtype=None):
    """The running sum along an axis, or of the raveled tensor, as NumPy's."""
    return _along(_cumsum, ravel(a) if axis is None else a, axis or 0, dtype)


@composite
def cumprod(a, *, axis=None, dtype=None):
    """The running product along an axis, or of the raveled tensor, as NumPy's; its gradient is finite also at zeros."""
    return _along(_cumprod, ravel(a) if axis is None else a, axis or 0, dtype)


def _along(run: Any, a: Any, axis: int, dtype: Any) -> Any:
    """The running sum or product in `dtype`; without one, whole numbers of few bits become wider, as NumPy's."""
    if dtype is None:
        return run(a, axis=axis)
    out = run(astype(a, dtype=dtype), axis=axis)
    return out if out.dtype == dtype else astype(out, dtype=dtype)


@composite
def cumulative_sum(a, *, axis=None, dtype=None, include_initial=False):
    """The running sum along an axis, which only a vector may leave out, with a 0 in front if asked for, as NumPy's."""
    return _cumulative(_cumsum, a, axis, dtype, include_initial, 0)


@composite
def cumulative_prod(a, *, axis=None, dtype=None, include_initial=False):
    """The running product along an axis, which only a vector may leave out, with a 1 in front if asked for, as NumPy's."""
    return _cumulative(_cumprod, a, axis, dtype, include_initial, 1)


def _cumulative(run: Any, a: Any, axis: Any, dtype: Any, include_initial: bool, initial: int) -> Any:
    if axis is None and a.ndim != 1:
        raise ArgumentError("which axis?", "an axis, or a tensor with one", f"shape {a.shape}")
    axis = 0 if axis is None else one_axis(f"cumulative_{run.name[4:]}", axis, a.ndim, a.shape)
    out = _along(run, a, axis, dtype)
    if not include_initial:
        return out
    start = full((*a.shape[:axis], 1, *a.shape[axis + 1 :]), initial, dtype=out.dtype, device=out.device)
    return concatenate([start, out], axis=axis)


@composite
def logcumsumexp(a, *, axis):
    """`log(cumsum(exp(a)))` along an axis, without overflow, as PyTorch's; where all so far is -inf, the gradient is 0."""
    axis = one_axis("logcumsumexp", axis, a.ndim, a.shape)
    a, lead, step = floating(a), (slice(None),) * axis, 1
    while step < a.shape[axis]:  # after each round, an element has the sum of the 2 * step before it
        later, earlier = a[(*lead, slice(step, None))], a[(*lead, slice(0, -step))]
        nothing = (later == -np.inf) & (earlier == -np.inf)
        both = logaddexp(where(nothing, 0, later), where(nothing, 0, earlier))
        a = concatenate([a[(*lead, slice(0, step))], where(nothing, -np.inf, both)], axis=axis)
        step *= 2
    return a


@composite(several=True)
def cummax(a, *, axis):
    """The largest so far along an axis, and its position, the last of equal ones, as PyTorch's; NaN counts as the largest."""
    return _running(a, axis, largest=True)


@composite(several=True)
def cummin(a, *, axis):
    """The smallest so far along an axis, and its position, the last of equal ones, as PyTorch's; NaN counts as the smallest."""
    return _running(a, axis, largest=False)


def _running(a: Any, axis: Any, largest: bool) -> Any:
    axis = one_axis("cummax" if largest else "cummin", axis, a.ndim, a.shape)
    winners = _winners_so_far(a, axis=axis, largest=largest)
    return take_along_axis(a, indices=winners, axis=axis), winners


@op
def _winners_so_far(xp, a, *, axis, largest):
    """The position of the largest, or smallest, so far along an axis."""
    host = to_numpy(a)  # CuPy has no running maximum
    top = (np.maximum if largest else np.minimum).accumulate(host, axis=axis)
    places = np.arange(a.shape[axis]).reshape([-1 if i == axis else 1 for i in range(a.ndim)])
    new = (host == top) | (host != host)
    return xp.asarray(np.maximum.accumulate(np.where(new, places, 0), axis=axis))


@composite
def diff(a, *, n=1, axis=-1, prepend=None, append=None):
    """The differences between neighbours along an axis, `n` times over, as NumPy's."""
    if not is_whole(n) or n < 0:
        raise ArgumentError("diff: n counts how often differences are taken", "a whole number from 0 up", repr(n))
    axis = one_axis("diff", axis, a.ndim, a.shape)
    lead = (slice(None),) * axis
    edge = (*a.shape[:axis], 1, *a.shape[axis + 1 :])
    ends = [_edge(a, end, edge) for end in (prepend, append)]
    if any(end is not None for end in ends):
        a = concatenate([x for x in (ends[0], a, ends[1]) if x is not None], axis=axis)
    for _ in range(n):
        later, earlier = a[(*lead, slice(1, None))], a[(*lead, slice(0, -1))]
        a = not_equal(later, earlier) if a.dtype.kind == "b" else later - earlier
    return a


def _edge(a: Any, end: Any, shape: tuple[int, ...]) -> Any:
    """What `diff` is to put before or behind: an array as it is, a number as a line of it."""
    if end is None or hasattr(end, "shape") and end.shape:
        return end
    if not hasattr(end, "dtype"):
        end = tensor(end, dtype=np.result_type(a.dtype, end), device=a.device)
    return broadcast_to(end, shape=shape)


@composite
def ediff1d(a, *, to_end=None, to_begin=None):
    """The differences between neighbours of the raveled tensor, between what is given for its ends, as NumPy's."""
    parts = [to_begin, diff(ravel(a)), to_end]
    lines = [x if isinstance(x, Tensor) else tensor(x, dtype=a.dtype, device=a.device) for x in parts if x is not None]
    return concatenate([ravel(x) for x in lines], axis=0)
