"""Functions known at some points: interpolated and integrated."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError, ShapeError
from .composite import composite
from .creation import tensor
from .elementwise.arithmetic import clip, remainder, where
from .layout.joining import concatenate
from .layout.shape import one_axis, reshape
from .reductions.cumulative import _cumsum
from .reductions.reduction import sum as sum_
from .reductions.sorting import argsort, searchsorted


@composite(method=False)
def interp(x, xp, fp, *, left=None, right=None, period=None):
    """The values at `x` of the line through the points (xp, fp), `xp` rising, as NumPy's; differentiable in all three.

    Beyond the points it is `left`, or the first of `fp`, and `right`, or the last. With a `period` the points repeat.
    """
    if xp.ndim != 1 or tuple(xp.shape) != tuple(fp.shape) or not xp.size:
        raise ShapeError(
            "interp: the points are no two vectors", "xp and fp of one length, not empty", f"{xp.shape} and {fp.shape}"
        )
    if period is not None:
        if period == 0:
            raise ArgumentError("interp: the period cannot be 0", "a number", period)
        x, xp = remainder(x, abs(period)), remainder(xp, abs(period))
        order = argsort(xp)
        xp, fp = xp[order], fp[order]
        xp = concatenate([xp[-1:] - abs(period), xp, xp[:1] + abs(period)])
        fp = concatenate([fp[-1:], fp, fp[:1]])
        left = right = None
    first = clip(searchsorted(xp, x, side="right") - 1, 0, max(xp.size - 2, 0))
    second = first + 1 if xp.size > 1 else first
    start, gap, low = xp[first], xp[second] - xp[first], fp[first]
    inside = low + (fp[second] - low) * ((x - start) / where(gap == 0, 1, gap))
    inside = where(x < xp[0], fp[0] if left is None else left, inside)
    return where(x > xp[-1], fp[-1] if right is None else right, inside)


def _areas(name: str, y: Any, x: Any, dx: Any, axis: Any) -> tuple[Any, int]:
    """The area below each piece of a line through the points, and the axis counted from 0."""
    axis = one_axis(name, axis, y.ndim, y.shape)
    lead = (slice(None),) * axis
    later, earlier = (*lead, slice(1, None)), (*lead, slice(None, -1))
    if x is not None:
        x = tensor(x) if isinstance(x, (list, tuple)) else x
        if x.ndim == 1 and y.ndim > 1:
            x = reshape(x, shape=tuple([-1 if i == axis else 1 for i in range(y.ndim)]))
        if x.ndim != y.ndim or x.shape[axis] != y.shape[axis]:
            raise ShapeError(
                f"{name}: the points do not fit the values",
                f"{y.shape[axis]} points, or shape {tuple(y.shape)}",
                f"shape {tuple(x.shape)}",
            )
        dx = x[later] - x[earlier]
    return (y[later] + y[earlier]) * dx / 2, axis


@composite
def trapezoid(y, *, x=None, dx=1.0, axis=-1):
    """The area below the line through points `dx` apart, or at `x`, along an axis, as NumPy's."""
    pieces, axis = _areas("trapezoid", y, x, dx, axis)
    return sum_(pieces, axis=axis)


@composite
def cumulative_trapezoid(y, *, x=None, dx=1.0, axis=-1, initial=None):
    """The running area below the line through points, as SciPy's and PyTorch's; one shorter than `y` unless `initial` is 0."""
    if initial not in (None, 0):
        raise ArgumentError("cumulative_trapezoid: the area starts with nothing or with 0", "None or 0", initial)
    pieces, axis = _areas("cumulative_trapezoid", y, x, dx, axis)
    running = _cumsum(pieces, axis=axis)
    if initial is None:
        return running
    return concatenate([running[(slice(None),) * axis + (slice(0, 1),)] * 0, running], axis=axis)
