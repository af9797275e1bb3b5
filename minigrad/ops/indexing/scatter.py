"""Reading and writing by an index as PyTorch does it: `gather`, `scatter` and their like. Each returns a new tensor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...engine.op import op
from ...engine.tensor import Tensor
from ...errors import ArgumentError, DtypeError, IndexingError, ShapeError, axis_problem
from ..composite import composite
from ..creation import astype, tensor
from ..elementwise.arithmetic import where
from ..layout.shape import broadcast_to, one_axis, reshape
from .along import _add_along, _along, _put_along, _raw, _take_along
from .getitem import add_at, check_range, clean_index, getitem, place, setitem

REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def _fitted(name: str, a: Any, index: Any, axis: Any) -> tuple[Any, tuple[slice, ...]]:
    """The index as an array, and the corner of `a` that it runs over: all of `axis`, of the other axes its own sizes."""
    index = _raw(index)
    if problem := axis_problem(name, axis, a.ndim, a.shape):
        raise problem
    if index.dtype.kind not in "iu":
        raise IndexingError(
            f"{name}: the index must be made of whole numbers",
            "an integer dtype",
            index.dtype,
            "x[mask] picks by booleans",
        )
    along = axis % a.ndim
    if index.ndim != a.ndim or any(n > m for i, (n, m) in enumerate(zip(index.shape, a.shape)) if i != along):
        raise ShapeError(
            f"{name}: the index does not fit the tensor",
            f"{a.ndim} axes, none larger than in {tuple(a.shape)}, axis {axis} apart",
            f"an index of shape {index.shape}",
        )
    check_range(name, index, a.shape[axis])
    return index, tuple([slice(None) if i == along else slice(n) for i, n in enumerate(index.shape)])


def _source(name: str, src: Any, index: Any) -> Any:
    """The part of `src` that belongs to the index; a number stands for itself."""
    src = tensor(src) if isinstance(src, (list, tuple)) else src
    shape = tuple(getattr(src, "shape", ()))
    if not shape:
        return src
    if len(shape) != index.ndim or any(n < m for n, m in zip(shape, index.shape)):
        raise ShapeError(f"{name}: src is smaller than the index", f"at least {index.shape}", f"shape {shape}")
    return src if shape == index.shape else src[tuple([slice(n) for n in index.shape])]


def _put_back(a: Any, part: Any, corner: tuple[slice, ...]) -> Any:
    return part if part.shape == a.shape else setitem(a, part, index=corner)


@composite
def gather(a, *, axis, index):
    """The elements that `index` names along an axis, as PyTorch's: (…) and an index of any smaller shape -> that shape.

    `take_along_axis` is NumPy's form, in which the index broadcasts.
    """
    index, corner = _fitted("gather", a, index, axis)
    return _take_along(a[corner], indices=index, axis=axis)


@composite
def scatter(a, *, axis, index, src, reduce=None):
    """A copy of `a` with the elements of `src` where `index` names along an axis, as PyTorch's; `reduce` may be "add" or "multiply"."""
    if reduce is not None:
        names = {"add": "sum", "multiply": "prod"}
        if reduce not in names:
            raise ArgumentError(
                f"scatter: unknown reduce {reduce!r}", "None, 'add' or 'multiply'", fix="scatter_reduce has the others"
            )
        return scatter_reduce(a, axis=axis, index=index, src=src, reduce=names[reduce])
    index, corner = _fitted("scatter", a, index, axis)
    return _put_back(a, _put_along(a[corner], _source("scatter", src, index), indices=index, axis=axis), corner)


@composite
def scatter_reduce(a, *, axis, index, src, reduce, include_self=True):
    """A copy of `a` in which each element that `index` names along an axis is reduced with what `src` has for it, as PyTorch's.

    `reduce` is sum, prod, mean, amax or amin; without `include_self` the elements of `a` that are named do not count.
    Where several are the largest, they share the gradient. `prod` makes a pass for each time that a place is named again.
    """
    if reduce not in REDUCTIONS:
        raise ArgumentError(f"scatter_reduce: unknown reduce {reduce!r}", ", ".join(REDUCTIONS))
    index, corner = _fitted("scatter_reduce", a, index, axis)
    src, part, along = _source("scatter_reduce", src, index), a[corner], {"indices": index, "axis": axis}
    if not include_self:
        part = _put_along(part, _neutral(reduce, a.dtype), **along)
    if reduce == "prod":
        part = _multiplied(part, src, along)
    elif reduce in ("amax", "amin"):
        part = _extreme_along(part, src, **along, largest=reduce == "amax")
    else:
        part = _add_along(part, src, **along)
    if reduce == "mean":
        count = _count_along(part, **along)
        count = count + 1 if include_self else where(count == 0, 1, count)
        part = part // count if part.dtype.kind in "iu" else part / count
    return _put_back(a, part, corner)


def _neutral(reduce: str, dtype: np.dtype) -> Any:
    """What a reduction starts with, if it does not start with an element."""
    if reduce in ("amax", "amin"):
        if dtype.kind == "f":
            return -math.inf if reduce == "amax" else math.inf
        limits = np.iinfo(dtype)
        return limits.min if reduce == "amax" else limits.max
    return 1 if reduce == "prod" else 0


def _multiplied(a: Any, values: Any, along: dict[str, Any]) -> Any:
    """`a` times the values of each place, those that come first, second … one round after the other: exact also at zeros."""
    turn, count = _turn_along(a, **along), _count_along(a, **along)
    for i in range(int(turn.max()) + 1 if turn.size else 0):
        factor = _add_along(a * 0, where(turn == i, values, 0), **along)
        a = where(count > i, a * factor, a)
    return a


@op
def _count_along(xp, a, *, indices, axis):
    """How often the indices along one axis name each element of `a`, in its dtype."""
    out = xp.zeros(a.shape, np.int64)
    indices = xp.asarray(indices)
    add_at(xp, out, _along(xp, a.shape, indices, axis), xp.ones(indices.shape, np.int64))
    return out.astype(a.dtype)


@op
def _turn_along(xp, a, *, indices, axis):
    """For each index along one axis, how many before it name the same element of `a`."""
    indices = xp.asarray(indices)
    places = xp.arange(a.size).reshape(a.shape)[_along(xp, a.shape, indices, axis)].reshape(-1)
    order = xp.argsort(places, kind="stable")
    ranked = places[order]
    turn = xp.zeros(places.shape, np.int64)
    turn[order] = xp.arange(places.size) - xp.searchsorted(ranked, ranked)
    return turn.reshape(indices.shape)


@op
def _extreme_along(xp, a, values, *, indices, axis, largest):
    """A copy of `a` in which each element is the largest, or smallest, of itself and the values whose indices name it."""
    indices = xp.asarray(indices)
    values = xp.broadcast_to(xp.asarray(values, dtype=a.dtype), indices.shape)
    out = a.copy() if xp is np else _atomic(a)
    extreme = xp.maximum if largest else xp.minimum
    extreme.at(out, _along(xp, a.shape, indices, axis), values if xp is np else _atomic(values))
    return out if xp is np else _from_atomic(out, a.dtype)


_SIGN = np.uint64(1 << 63)


def _atomic(a: Any) -> Any:
    """The same order in float64 or uint64, of which CUDA has an atomic maximum; always a copy."""
    return a.astype(np.float64) if a.dtype.kind == "f" else a.astype(np.uint64) + _SIGN  # a negative one wraps around


def _from_atomic(a: Any, dtype: np.dtype) -> Any:
    return (a if dtype.kind == "f" else a - _SIGN).astype(dtype)


@_extreme_along.vjp
def _extreme_rule(g, a, values, out, indices, axis):
    own = a == out
    won = _take_along(out, indices=indices, axis=axis) == values
    winners = _add_along(astype(own, dtype=g.dtype), astype(won, dtype=g.dtype), indices=indices, axis=axis)
    share = g / where(winners == 0, 1, winners)  # none where the result is NaN
    return where(own, share, 0), where(won, _take_along(share, indices=indices, axis=axis), 0)


def _lines(name: str, a: Any, index: Any, axis: Any) -> tuple[Any, ...]:
    """The index of whole lines of `a` across an axis, from a vector of numbers."""
    along, index = one_axis(name, axis, a.ndim, a.shape), _raw(index)
    if index.ndim > 1 or index.dtype.kind not in "iu":
        raise IndexingError(
            f"{name}: the index is no vector of whole numbers", "1 axis", f"{index.shape} {index.dtype}"
        )
    index = index if index.ndim else index.reshape(1)
    return (slice(None),) * along + (check_range(name, index, a.shape[along]),)


def _fit(name: str, source: Any, shape: tuple[int, ...]) -> Any:
    """Values of exactly this shape; a number, or a tensor without axes, is repeated."""
    source = tensor(source) if not hasattr(source, "shape") else source
    if source.ndim and tuple(source.shape) != shape:
        raise ShapeError(f"{name}: the source does not fit the index", f"shape {shape}", f"shape {tuple(source.shape)}")
    return broadcast_to(source, shape=shape)


@composite
def index_add(a, *, axis, index, source, alpha=1):
    """A copy of `a` with the lines of `source`, times `alpha`, added to those that `index` names along an axis, as PyTorch's."""
    index = _lines("index_add", a, index, axis)
    source = _fit("index_add", source, a[index].shape)
    return a + astype(place(source if alpha == 1 else source * alpha, index=index, shape=a.shape), dtype=a.dtype)


@composite
def index_copy(a, *, axis, index, source):
    """A copy of `a` with the lines of `source` in the place of those that `index` names along an axis, as PyTorch's."""
    index = _lines("index_copy", a, index, axis)
    return setitem(a, _fit("index_copy", source, a[index].shape), index=index)


@composite
def index_fill(a, *, axis, index, value):
    """A copy of `a` with one value in all lines that `index` names along an axis, as PyTorch's."""
    return setitem(a, value, index=_lines("index_fill", a, index, axis))


@composite
def index_put(a, *, indices, values, accumulate=False):
    """A copy of `a` in which `a[indices]` is `values`, or grows by them where they `accumulate`, as PyTorch's; see `x[i] = v`."""
    index = clean_index(tuple(indices), "index_put")
    values = tensor(values, dtype=a.dtype) if isinstance(values, (list, tuple)) else values
    if not accumulate:
        return setitem(a, values, index=index)
    values = values if hasattr(values, "shape") else tensor(values, dtype=a.dtype, device=a.device)
    return a + astype(place(broadcast_to(values, shape=a[index].shape), index=index, shape=a.shape), dtype=a.dtype)


index_put.expects = "values that broadcast to a[indices]"


def _mask(name: str, mask: Any, shape: tuple[int, ...]) -> Any:
    mask = mask if isinstance(mask, Tensor) else np.asarray(mask)
    if mask.dtype.kind != "b":
        raise DtypeError(f"{name}: the mask is not made of booleans", "bool", mask.dtype, "compare first, as in x > 0")
    return clean_index(broadcast_to(mask, shape=shape))


@composite
def masked_select(a, *, mask):
    """The elements where the mask is true, as a vector, as PyTorch's; the mask broadcasts, unlike in `x[mask]`."""
    shape = np.broadcast_shapes(a.shape, np.shape(mask))
    return getitem(broadcast_to(a, shape=shape), index=_mask("masked_select", mask, shape))


masked_select.expects = "a mask that broadcasts with the tensor"


@composite
def masked_scatter(a, *, mask, source):
    """A copy of `a` with the elements of `source`, in their order, where the mask is true, as PyTorch's."""
    mask = _mask("masked_scatter", mask, tuple(a.shape))
    count, source = (
        int(mask.sum()),
        reshape(tensor(source) if isinstance(source, (list, tuple)) else source, shape=(-1,)),
    )
    if source.shape[0] < count:
        raise ShapeError("masked_scatter: the source is too short", f"{count} elements", f"{source.shape[0]}")
    return setitem(a, source[:count], index=mask)
