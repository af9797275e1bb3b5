"""Windows that slide over the last axes, which convolution, pooling and `nn.functional.unfold` are made of.

`_unfold` lays the windows out, `_fold` adds them up again; each is the other's derivative, so every order works.
Windows are laid out so that a convolution is one matrix product: their axes stand right after the first axis.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from ...engine.op import op
from ...errors import ArgumentError, ShapeError, is_whole
from .padding import pad

Sizes = tuple[int, ...]
AXES = {1: "length", 2: "height, width", 3: "depth, height, width"}


def _positions(kernel: Sizes, stride: Sizes, dilation: Sizes, out: Sizes) -> Iterator[tuple[Sizes, tuple[slice, ...]]]:
    """Each place in the kernel, with the slices of the input that it meets as the window slides."""
    for place in itertools.product(*map(range, kernel)):
        starts = [k * d for k, d in zip(place, dilation)]
        yield place, tuple([slice(i, i + (n - 1) * s + 1, s) for i, n, s in zip(starts, out, stride)])


def reach_of(kernel: Sizes, dilation: Sizes) -> Sizes:
    """How many elements a window spans, those between its own included."""
    return tuple([d * (k - 1) + 1 for k, d in zip(kernel, dilation)])


def out_sizes(sizes: Sizes, kernel: Sizes, stride: Sizes, dilation: Sizes) -> Sizes:
    """How many windows fit on each axis."""
    return tuple([(n - r) // s + 1 for n, r, s in zip(sizes, reach_of(kernel, dilation), stride)])


@op(cost=0)
def _unfold(xp, a, *, kernel, stride, dilation):
    """The windows that slide over the last axes: (A, …, *sizes) -> (A, *kernel, …, *out)."""
    split = a.ndim - len(kernel)
    out = out_sizes(a.shape[split:], kernel, stride, dilation)
    windows = xp.empty((a.shape[0], *kernel, *a.shape[1:split], *out), a.dtype)
    for place, slices in _positions(kernel, stride, dilation, out):
        windows[(slice(None), *place)] = a[(..., *slices)]
    return windows


@op
def _fold(xp, a, *, sizes, stride, dilation):
    """The windows added up where they came from: (A, *kernel, …, *out) -> (A, …, *sizes)."""
    count = len(sizes)
    kernel, out = a.shape[1 : 1 + count], a.shape[a.ndim - count :]
    total = xp.zeros((a.shape[0], *a.shape[1 + count : a.ndim - count], *sizes), a.dtype)
    for place, slices in _positions(kernel, stride, dilation, out):
        total[(..., *slices)] += a[(slice(None), *place)]
    return total


def _fold_back(g, a_shape, sizes, stride, dilation):
    """The windows of `g`, as many as there were: it may be larger than what they reach."""
    count = len(sizes)
    kernel, out = tuple(a_shape[1 : 1 + count]), a_shape[len(a_shape) - count :]
    reached = [(n - 1) * s + r for n, s, r in zip(out, stride, reach_of(kernel, dilation))]
    if tuple(sizes) != tuple(reached):
        g = g[(..., *[slice(n) for n in reached])]
    return _unfold(g, kernel=kernel, stride=stride, dilation=dilation)


_unfold.vjp(
    a=lambda g, a_shape, kernel, stride, dilation: _fold(
        g, sizes=tuple(a_shape[-len(kernel) :]), stride=stride, dilation=dilation
    )
)
_fold.vjp(a=_fold_back)


def as_sizes(name: str, what: str, value: Any, count: int, least: int = 1) -> Sizes:
    """One whole number for each sliding axis, from a number or a sequence of them."""
    sizes = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,) * count
    if len(sizes) == 1:
        sizes *= count
    if len(sizes) != count or any(not is_whole(n) or n < least for n in sizes):
        raise ArgumentError(
            f"{name}: {what} does not fit", f"a whole number from {least} up, or {count} of them", repr(value)
        )
    return tuple([n.__index__() for n in sizes])


def framed(a: Any, widths: Sequence[tuple[int, int]]) -> Any:
    """Zeros around the last axes, so many before and after on each."""
    if not any(itertools.chain(*widths)):
        return a
    return pad(a, pad_width=[(0, 0)] * (a.ndim - len(widths)) + list(widths))


def check_axes(name: str, a: Any, count: int) -> None:
    """Refuse an input that has not `count` axes behind its channels, with or without a batch before them."""
    if a.ndim not in (count + 1, count + 2):
        sizes = AXES[count]
        raise ShapeError(
            f"{name}: the input has a wrong number of axes",
            f"(batch, channels, {sizes}) or (channels, {sizes})",
            a.shape,
        )


def check_room(name: str, sizes: Sizes, kernel: Sizes, dilation: Sizes) -> None:
    """Refuse a window that is larger than the axes it slides over."""
    reach = reach_of(kernel, dilation)
    if any(r > n for r, n in zip(reach, sizes)):
        raise ShapeError(
            f"{name}: the kernel is larger than the input",
            f"at least {reach} (kernel {kernel}, dilation {dilation})",
            f"{sizes}, padding included",
            "use a smaller kernel or more padding",
        )
