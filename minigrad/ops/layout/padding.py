"""`pad`: a frame around a tensor, in the modes of NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...engine.op import op
from ...errors import ArgumentError, ShapeError, nearest
from ..composite import composite, host_constant
from ..creation import _constant, astype
from ..elementwise.arithmetic import floor, round_
from ..reductions.reduction import max as max_
from ..reductions.reduction import mean
from ..reductions.reduction import min as min_
from ..reductions.sorting import median
from .joining import concatenate
from .shape import broadcast_to

COPIED = ("edge", "reflect", "symmetric", "wrap")  # each element of the frame is one from inside
STATISTICS: dict[str, Callable[..., Any]] = {"maximum": max_, "minimum": min_, "mean": mean, "median": median}
MODES = ("constant", *COPIED, *STATISTICS, "linear_ramp", "empty")


@op(cost=0)
def _pad_constant(xp, a, *, widths, value):
    """A frame of one value around the tensor."""
    return xp.pad(a, widths, mode="constant", constant_values=value)


_pad_constant.vjp(
    a=lambda g, widths, a_shape: g[tuple([slice(before, before + n) for (before, _), n in zip(widths, a_shape)])]
)


@composite
def pad(a, *, pad_width, mode="constant", constant_values=0, stat_length=None, end_values=0):
    """A frame around the tensor, as NumPy's, in all of its modes (empty: zeros)."""
    widths = _pairs("pad_width", pad_width, a.ndim)
    if any(not isinstance(n, int) or n < 0 for w in widths for n in w):
        raise ArgumentError(
            "pad: widths are whole numbers from 0 up",
            f"a number, a pair, or {a.ndim} pairs",
            repr(pad_width),
            "to cut instead, use a slice",
        )
    if mode not in MODES:
        raise ArgumentError(f"pad: unknown mode {mode!r}", ", ".join(MODES), fix=nearest(str(mode), MODES))
    if mode in ("constant", "empty"):
        return _pad_constant(a, widths=widths, value=constant_values if mode == "constant" else 0)
    if mode in COPIED:
        for axis, width in enumerate(widths):
            if width != (0, 0):
                places = host_constant(np.pad(np.arange(a.shape[axis]), width, mode=mode))
                a = a[(slice(None),) * axis + (places,)]
        return a
    options = end_values if mode == "linear_ramp" else stat_length
    for axis, (width, option) in enumerate(zip(widths, _pairs("stat_length or end_values", options, a.ndim))):
        if width != (0, 0):
            before, after = (_side(a, mode, axis, n, value, end) for end, (n, value) in enumerate(zip(width, option)))
            a = concatenate([before, a, after], axis=axis)
    return a


def _pairs(what: str, value: Any, ndim: int) -> list[tuple[Any, Any]]:
    """(before, after) of each axis, from one value, one pair, or a pair for each axis."""
    try:
        return [tuple(pair) for pair in np.broadcast_to(np.asarray(value), (ndim, 2)).tolist()]
    except ValueError:
        raise ShapeError(f"pad: {what} does not fit", f"a number, a pair, or {ndim} pairs", repr(value)) from None


def _side(a: Any, mode: str, axis: int, width: int, option: Any, after: int) -> Any:
    """The frame before or after the elements of one axis: (…, n, …) -> (…, width, …)."""
    size = a.shape[axis]
    if not size or option is not None and mode != "linear_ramp" and option < 1:
        raise ArgumentError(
            f"pad: mode {mode!r} needs elements", "at least 1", f"shape {a.shape}, stat_length={option!r}"
        )
    count = 1 if mode == "linear_ramp" else size if option is None else min(option, size)
    part = a[(slice(None),) * axis + (slice(size - count, size) if after else slice(count),)]
    is_whole = a.dtype.kind in "iu"
    if mode != "linear_ramp":
        value = STATISTICS[mode](part, axis=axis, keepdims=True)
        shape = (*a.shape[:axis], width, *a.shape[axis + 1 :])
        return broadcast_to(astype(round_(value) if is_whole else value, dtype=a.dtype), shape=shape)
    edge = astype(part, dtype="float64") if is_whole else part
    share = (np.arange(width) / max(width, 1)).reshape(-1, *[1] * (a.ndim - axis - 1))  # of the edge, growing inwards
    share = share[::-1] if after else share
    of_edge, of_end = (_constant(edge, values=host_constant(part)) for part in (share, (1 - share) * option))
    ramp = edge * of_edge + of_end
    return astype(floor(ramp), dtype=a.dtype) if is_whole else ramp
