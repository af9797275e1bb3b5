"""Reductions along axes: sums, means, products, extremes, norms."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from ...engine.op import op
from ...errors import ArgumentError, DtypeError, axes_of, axis_problem
from ...tracer import is_compiling
from ..composite import composite
from ..creation import as_dtype, astype
from ..elementwise.arithmetic import abs_, power, sign, where
from ..elementwise.unary import elementwise, exp, narrowed, widened
from ..layout.shape import broadcast_to, moveaxis, reshape


def kept_shape(shape: tuple[int, ...], axis: Any) -> tuple[int, ...]:
    """`shape` with the reduced axes as 1."""
    if axis is None or not shape:
        return (1,) * len(shape)
    reduced = {a % len(shape) for a in axes_of(axis)}
    return tuple([1 if i in reduced else n for i, n in enumerate(shape)])


def count_reduced(shape: tuple[int, ...], axis: Any) -> int:
    """How many elements each result is made from."""
    return math.prod(shape if axis is None else [shape[a] for a in axes_of(axis)])


def _keep(reduced: Any, shape: tuple[int, ...], axis: Any) -> Any:
    """A reduced value with its reduced axes back, as 1."""
    kept = kept_shape(shape, axis)
    return reduced if reduced.shape == kept else reshape(reduced, shape=kept)


def _spread(g: Any, shape: tuple[int, ...], axis: Any) -> Any:
    """The gradient of a reduced value, repeated at each element it was made from."""
    if axis is not None or g.ndim:
        g = _keep(g, shape, axis)
    if not isinstance(g, (np.ndarray, np.generic)):
        return broadcast_to(g, shape=shape)
    out = np.empty(shape, g.dtype)  # quicker to make, for small arrays, than a view that repeats
    out[...] = g
    return out


@op(formulas={"a": "g, given to every number that was added"}, lowering="out + a")
def sum(xp, a, *, axis=None, keepdims=False, dtype=None):
    """The sum along axes, in `dtype` if that is given, as NumPy's."""
    return _total(xp, a, axis, keepdims, dtype)


def _total(xp, a, axis, keepdims, dtype=None):
    dtype = dtype if dtype is None else as_dtype(dtype)
    if xp is np:
        return np.add.reduce(a, axis=axis, dtype=dtype, keepdims=keepdims)
    return a.sum(axis=axis, dtype=dtype, keepdims=keepdims)


sum.vjp(a=lambda g, a_shape, axis: _spread(g, a_shape, axis))


@op(formulas={"a": "g / n, given to every number"})
def mean(xp, a, *, axis=None, keepdims=False, dtype=None):
    """The mean along axes, in `dtype` if that is given, as NumPy's; float16 is added up in float32."""
    if dtype is not None or a.dtype.kind != "f" or a.dtype.itemsize < 4:
        return a.mean(axis=axis, dtype=dtype and as_dtype(dtype), keepdims=keepdims)
    return _total(xp, a, axis, keepdims) / count_reduced(a.shape, axis)


def _mean_parts(ops, a, axis=None, keepdims=False, dtype=None):
    if dtype is not None or a.dtype.kind != "f":
        a = ops.astype(a, dtype=dtype or "float64")
    return ops.divide(ops.sum(a, axis=axis, keepdims=keepdims), count_reduced(a.shape, axis))


mean.lowering = _mean_parts


def _mean_rule(g, a_shape, axis):
    count = count_reduced(a_shape, axis) or 1
    return _spread(g * (1 / count) if g.dtype == np.float16 else g / count, a_shape, axis)  # float16 ends at 65504


mean.vjp(a=_mean_rule)


def halves_in_float32(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function on float16 as on float32, rounded at the end: squares, and sums of many, are more than float16 can hold."""

    @wraps(function)
    def wide(a: Any, **attrs: Any) -> Any:
        if a.dtype != np.float16:
            return function(a, **attrs)
        return astype(function(astype(a, dtype="float32"), **attrs), dtype="float16")

    return wide


@composite
@halves_in_float32
def var(a, *, axis=None, ddof=0, keepdims=False):
    """The variance along axes, as NumPy's: divided by `n - ddof`, and ddof is 0 unless given."""
    if a.dtype.kind == "c":
        raise DtypeError("var: complex tensors are not supported", "real numbers", a.dtype)
    distance = a - mean(a, axis=axis, keepdims=True)
    count = count_reduced(a.shape, axis) - ddof
    return sum(distance * distance, axis=axis, keepdims=keepdims) / (count if count > 0 else 0)


@composite
@halves_in_float32
def std(a, *, axis=None, ddof=0, keepdims=False):
    """The standard deviation along axes, as NumPy's; where it is 0, so is its gradient."""
    return _safe_sqrt(var(a, axis=axis, ddof=ddof, keepdims=keepdims))


@elementwise(lowering="sqrt(a)")
def _safe_sqrt(xp, a):
    """The square root, with gradient 0 at 0 instead of infinity."""
    return xp.sqrt(a)


_safe_sqrt.vjp(a=lambda g, out: where(out == 0, 0, g / (2 * where(out == 0, 1, out))))


@op(lowering="out * a")
def prod(xp, a, *, axis=None, keepdims=False, dtype=None):
    """The product along axes, in `dtype` if that is given, as NumPy's; its gradient is finite also at zeros."""
    return a.prod(axis=axis, dtype=dtype and as_dtype(dtype), keepdims=keepdims)


@prod.vjp
def _prod_rule(g, a, out, axis):
    g, out = _keep(g, a.shape, axis), _keep(out, a.shape, axis)
    if not is_compiling() and not (a == 0).any():
        return [g * out / a]
    return [g * _product_of_others(a, axis)]


def _product_of_others(a, axis):
    """At each element, the product of all the others along the axes: quadratic, but exact at zeros."""
    axes = tuple(range(a.ndim)) if axis is None else tuple(i % a.ndim for i in axes_of(axis))
    last = tuple(range(-len(axes), 0))
    lines = moveaxis(a, source=axes, destination=last)
    moved = lines.shape
    lines = reshape(lines, shape=(*moved[: a.ndim - len(axes)], -1))
    others = prod(without_diagonal(lines), axis=-1)  # (…, n, n) -> (…, n)
    return moveaxis(reshape(others, shape=moved), source=last, destination=axes)


def without_diagonal(lines: Any) -> Any:
    """(…, n) -> (…, n, n): each row is the line, with 1 in place of its own element."""
    n = lines.shape[-1]
    rows = broadcast_to(reshape(lines, shape=(*lines.shape[:-1], 1, n)), shape=(*lines.shape[:-1], n, n))
    return where(_eye(lines, n=n), 1, rows)


@op
def _eye(xp, a, *, n):
    """The n × n identity as booleans, on the device of `a`."""
    return xp.eye(n, dtype=bool)


@op(formulas={"a": "g, given to the greatest"}, lowering="maximum(out, a)")
def max(xp, a, *, axis=None, keepdims=False):
    """The largest along axes, as NumPy's; equal ones share the gradient."""
    return a.max(axis=axis, keepdims=keepdims)


@op(lowering="minimum(out, a)")
def min(xp, a, *, axis=None, keepdims=False):
    """The smallest along axes, as NumPy's; equal ones share the gradient."""
    return a.min(axis=axis, keepdims=keepdims)


def _extreme_rule(g, a, out, axis):
    winners = a == _keep(out, a.shape, axis)
    return where(winners, _keep(g, a.shape, axis), 0) / sum(winners, axis=axis, keepdims=True)


def _explain_empty(a, axis=None, keepdims=False):
    if 0 in a.shape:
        return "at least one element to choose from", "an empty tensor has none: look at the sizes of 0"
    return None


max.vjp(a=_extreme_rule)
min.vjp(a=_extreme_rule)
max.explain = min.explain = _explain_empty


@op
def argmax(xp, a, *, axis=None, keepdims=False):
    """The position of the largest, as NumPy's: the first, if there are several."""
    return a.argmax(axis=axis) if not keepdims else xp.argmax(a, axis=axis, keepdims=True)


@op
def argmin(xp, a, *, axis=None, keepdims=False):
    """The position of the smallest, as NumPy's: the first, if there are several."""
    return a.argmin(axis=axis) if not keepdims else xp.argmin(a, axis=axis, keepdims=True)


@op(lowering="out or a")
def any(xp, a, *, axis=None, keepdims=False):
    """Whether any element is true, as NumPy's."""
    return a.any(axis=axis, keepdims=keepdims)


@op(lowering="out and a")
def all(xp, a, *, axis=None, keepdims=False):
    """Whether every element is true, as NumPy's."""
    return a.all(axis=axis, keepdims=keepdims)


@op
def logsumexp(xp, a, *, axis=None, keepdims=False):
    """`log(sum(exp(a)))` along axes, without overflow; where every element is -inf, the gradient is 0."""
    wide = widened(a)
    top = wide.max(axis=axis, keepdims=True) if a.size else xp.zeros(kept_shape(a.shape, axis), wide.dtype)
    top = xp.where(xp.isfinite(top), top, 0)
    with np.errstate(divide="ignore"):  # the logarithm of 0, where every element is -inf
        total = narrowed(xp.log(xp.exp(wide - top).sum(axis=axis, keepdims=True)) + top, a)
    return total if keepdims else xp.squeeze(total, axis=axis)


def _logsumexp_rule(g, a, out, axis):
    out = _keep(out, a.shape, axis)
    return _keep(g, a.shape, axis) * exp(a - where(out == -math.inf, 0, out))


def _logsumexp_parts(ops, a, axis=None, keepdims=False):
    if a.dtype.kind != "f":
        a = ops.astype(a, dtype="float64")
    top = ops.max(a, axis=axis, keepdims=True)
    top = ops.where(ops.isfinite(top), top, 0)
    total = ops.add(ops.log(ops.sum(ops.exp(ops.subtract(a, top)), axis=axis, keepdims=True)), top)
    kept = axes_of(axis) if axis is not None else range(len(a.shape))
    gone = {i % len(a.shape) for i in kept}
    return total if keepdims else ops.reshape(total, shape=[n for i, n in enumerate(a.shape) if i not in gone])


logsumexp.lowering = _logsumexp_parts
argmax.explain = argmin.explain = logsumexp.explain = _explain_empty
logsumexp.vjp(a=_logsumexp_rule)


@composite
@halves_in_float32
def norm(a, *, ord=None, axis=None, keepdims=False):
    """The length of vectors (`axis` an int) or of the whole tensor (no axis, no ord), as `numpy.linalg.norm`.

    `ord` is 2 unless given: any number, or ±inf. A matrix norm ("fro", "nuc", 1, 2, inf …) needs a pair of axes or a 2-D tensor.
    """
    if isinstance(axis, (tuple, list)) and len(axis) == 2 or axis is None and ord is not None and a.ndim == 2:
        return _matrix_norm(a, ord, axis or (0, 1), keepdims)
    if isinstance(ord, str):
        raise ArgumentError(f"norm: ord={ord!r} is a matrix norm", "two axes", f"axis={axis!r} for shape {a.shape}")
    if axis is None and ord is not None and a.ndim != 1:
        raise ArgumentError("norm: which axis?", "an axis, or no ord", f"ord={ord!r} for shape {a.shape}")
    if a.dtype.kind == "c":
        raise DtypeError("norm: complex tensors are not supported", "real numbers", a.dtype)
    if a.dtype.kind != "f":
        a = astype(a, dtype="float64")
    size = abs_(a)
    if ord is None or ord == 2:
        return _safe_sqrt(sum(a * a, axis=axis, keepdims=keepdims))
    if ord == math.inf:
        return max(size, axis=axis, keepdims=keepdims)
    if ord == -math.inf:
        return min(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return sum(abs_(sign(a)), axis=axis, keepdims=keepdims)
    if ord == 1:
        return sum(size, axis=axis, keepdims=keepdims)
    if ord < 0:
        return power(sum(power(size, ord), axis=axis, keepdims=keepdims), 1 / ord)
    total = sum(power(where(size == 0, 1, size), ord) * (size != 0), axis=axis, keepdims=keepdims)
    return where(total == 0, 0, power(where(total == 0, 1, total), 1 / ord))


def _matrix_norm(a, ord, axis, keepdims):
    from ..linalg.decompositions import svdvals

    if problem := axis_problem("norm", tuple(axis), a.ndim, a.shape):
        raise problem
    rows, columns = (i % a.ndim for i in axis)
    if ord in (None, "fro"):
        return _safe_sqrt(sum(a * a, axis=tuple(axis), keepdims=keepdims))
    if ord in (1, -1, math.inf, -math.inf):
        inner, outer = (rows, columns) if abs(ord) == 1 else (columns, rows)
        totals = sum(abs_(a), axis=inner, keepdims=True)
        result = (max if ord > 0 else min)(totals, axis=outer, keepdims=True)
    elif ord in (2, -2, "nuc"):
        values = svdvals(moveaxis(a, source=(rows, columns), destination=(-2, -1)))
        result = sum(values, axis=-1) if ord == "nuc" else (max if ord == 2 else min)(values, axis=-1)
        result = reshape(result, shape=kept_shape(a.shape, (rows, columns)))
    else:
        raise ArgumentError(f"norm: unknown ord {ord!r}", "'fro', 'nuc', 1, -1, 2, -2, inf or -inf for a matrix")
    kept = tuple(n for i, n in enumerate(a.shape) if i not in (rows, columns))
    return result if keepdims else reshape(result, shape=kept)
