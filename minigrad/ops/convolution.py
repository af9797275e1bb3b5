"""Convolution and pooling, on windows that slide over the last axes.

`_unfold` lays the windows out, `_fold` adds them up again; each is the other's derivative, so every order works.
Windows are laid out so that a convolution is one matrix product: their axes stand right after the first axis.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..engine.op import op
from ..errors import ArgumentError, ShapeError, is_whole, nearest
from .arithmetic import where
from .products import matmul
from .reduction import sum as sum_
from .shape import pad, reshape, swapaxes

Sizes = tuple[int, ...]


def _positions(kernel: Sizes, stride: Sizes, dilation: Sizes, out: Sizes) -> Iterator[tuple[Sizes, tuple[slice, ...]]]:
    """Each place in the kernel, with the slices of the input that it meets as the window slides."""
    for place in itertools.product(*map(range, kernel)):
        starts = [k * d for k, d in zip(place, dilation)]
        yield place, tuple([slice(i, i + (n - 1) * s + 1, s) for i, n, s in zip(starts, out, stride)])


def _out_sizes(sizes: Sizes, kernel: Sizes, stride: Sizes, dilation: Sizes) -> Sizes:
    return tuple([(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(sizes, kernel, stride, dilation)])


@op(cost=0)
def _unfold(xp, a, *, kernel, stride, dilation):
    """The windows that slide over the last axes: (A, …, *sizes) -> (A, *kernel, …, *out)."""
    split = a.ndim - len(kernel)
    out = _out_sizes(a.shape[split:], kernel, stride, dilation)
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


_unfold.vjp(
    a=lambda g, a_shape, kernel, stride, dilation: _fold(
        g, sizes=tuple(a_shape[-len(kernel) :]), stride=stride, dilation=dilation
    )
)
_fold.vjp(
    a=lambda g, a_shape, sizes, stride, dilation: _unfold(
        g, kernel=tuple(a_shape[1 : 1 + len(sizes)]), stride=stride, dilation=dilation
    )
)


@op
def _first_largest(xp, a, *, inside=None):
    """True at the first largest element of each window, False elsewhere: (A, k, …, *out) -> booleans of that shape.

    `inside` (k, *out) is True where an element is not padding; None if none is padding. A NaN counts as largest.
    """
    best = a[:, 0]
    winner = xp.zeros(best.shape, int)
    for k in range(1, a.shape[1]):
        rival = a[:, k]
        better = (rival > best) | (rival != rival)
        if inside is not None:
            unopposed = inside[k] & ~inside[:k].any(axis=0)
            better = better & xp.asarray(inside[k]) | xp.asarray(unopposed)
        best = xp.where(better, rival, best)
        winner = xp.where(better, k, winner)
    return winner[:, None] == xp.arange(a.shape[1]).reshape(-1, *[1] * (a.ndim - 2))


@op
def _counts(xp, a, *, values):
    """Numbers computed on the host, on the device and in the dtype of `a`."""
    return xp.asarray(values, dtype=a.dtype)


def _inside(sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> np.ndarray:
    """Which elements of the windows are not padding: (prod(kernel), *out)."""
    frame = np.pad(np.ones((1, *sizes), bool), [(0, 0), *[(p, p) for p in padding]])
    windows = _unfold(frame, kernel=kernel, stride=stride, dilation=dilation)
    return windows.reshape(-1, *windows.shape[1 + len(kernel) :])


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


def _frame(a: Any, widths: Sequence[tuple[int, int]]) -> Any:
    """Zeros around the last axes."""
    if not any(itertools.chain(*widths)):
        return a
    return pad(a, pad_width=[(0, 0)] * (a.ndim - len(widths)) + list(widths))


def _check_room(name: str, sizes: Sizes, kernel: Sizes, dilation: Sizes) -> None:
    reach = tuple([d * (k - 1) + 1 for k, d in zip(kernel, dilation)])
    if any(r > n for r, n in zip(reach, sizes)):
        raise ShapeError(
            f"{name}: the kernel is larger than the input",
            f"at least {reach} (kernel {kernel}, dilation {dilation})",
            f"{sizes}, padding included",
            "use a smaller kernel or more padding",
        )


def _widths(name: str, padding: Any, kernel: Sizes, stride: Sizes, dilation: Sizes) -> list[tuple[int, int]]:
    """How much to pad before and after on each axis; an odd total of "same" puts the extra one after, as PyTorch."""
    if not isinstance(padding, str):
        return [(p, p) for p in as_sizes(name, "padding", padding, len(kernel), least=0)]
    if padding == "valid":
        return [(0, 0)] * len(kernel)
    if padding != "same":
        expected = "a number, one for each axis, 'same' or 'valid'"
        raise ArgumentError(f"{name}: unknown padding", expected, repr(padding), nearest(padding, ["same", "valid"]))
    if any(s != 1 for s in stride):
        raise ArgumentError(
            f"{name}: padding='same' needs stride 1", "stride 1", f"stride {stride}", "give the padding as numbers"
        )
    totals = [d * (k - 1) for k, d in zip(kernel, dilation)]
    return [(t // 2, t - t // 2) for t in totals]


def convolve(
    name: str, a: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int, count: int
) -> Any:
    """The convolution over `count` axes: (N, C, *sizes), (O, C/groups, *kernel) -> (N, O, *out)."""
    _check_convolution(name, a, weight, bias, groups, count)
    if a.ndim == count + 1:
        single = convolve(name, reshape(a, shape=(1, *a.shape)), weight, bias, stride, padding, dilation, groups, count)
        return reshape(single, shape=single.shape[1:])
    kernel = weight.shape[2:]
    strides, dilations = as_sizes(name, "stride", stride, count), as_sizes(name, "dilation", dilation, count)
    a = _frame(a, _widths(name, padding, kernel, strides, dilations))
    _check_room(name, a.shape[2:], kernel, dilations)
    channels = swapaxes(a, axis1=0, axis2=1)  # (C, N, *sizes)
    windows = _unfold(channels, kernel=kernel, stride=strides, dilation=dilations)  # (C, *kernel, N, *out)
    out_channels, inner = weight.shape[0], math.prod(weight.shape[1:])
    columns = reshape(windows, shape=(groups, inner, math.prod(windows.shape[1 + count :])))  # (g, C/g * k, N * out)
    rows = reshape(weight, shape=(groups, out_channels // groups, inner))  # (g, O/g, C/g * k)
    out = reshape(matmul(rows, columns), shape=(out_channels, *windows.shape[1 + count :]))  # (O, N, *out)
    out = swapaxes(out, axis1=0, axis2=1)  # (N, O, *out)
    return out if bias is None else out + reshape(bias, shape=(-1, *[1] * count))


def _check_convolution(name: str, a: Any, weight: Any, bias: Any, groups: int, count: int) -> None:
    sizes = "height, width" if count == 2 else "length"
    if a.ndim not in (count + 1, count + 2):
        raise ShapeError(
            f"{name}: the input has a wrong number of axes",
            f"(batch, channels, {sizes}) or (channels, {sizes})",
            a.shape,
        )
    if weight.ndim != count + 2:
        raise ShapeError(
            f"{name}: the weight has a wrong number of axes",
            f"(out channels, in channels / groups, {sizes})",
            weight.shape,
        )
    channels, out_channels = a.shape[-count - 1], weight.shape[0]
    whole = isinstance(groups, int) and not isinstance(groups, bool) and groups >= 1
    if not whole or channels % groups or out_channels % groups:
        raise ArgumentError(
            f"{name}: the channels do not divide into groups",
            f"a divisor of {channels} (in) and of {out_channels} (out)",
            f"groups={groups!r}",
        )
    if weight.shape[1] * groups != channels:
        expected = f"{weight.shape[1] * groups} channels, for weight {weight.shape} and groups={groups}"
        raise ShapeError(
            f"{name}: the channels of input and weight differ",
            expected,
            f"{channels} in input {a.shape}",
            "the layout is (batch, channels, sizes); move the channels with moveaxis",
        )
    if bias is not None and bias.shape != (out_channels,):
        raise ShapeError(f"{name}: the bias does not fit", (out_channels,), bias.shape)


def _pool_windows(
    name: str, a: Any, kernel: Any, stride: Any, padding: Any, dilation: Any
) -> tuple[Any, np.ndarray | None]:
    """The windows (A, k, …, *out) of a pooling over the last two axes, and which of their elements are not padding."""
    if a.ndim not in (3, 4):
        expected = "(batch, channels, height, width) or (channels, height, width)"
        raise ShapeError(f"{name}: the input has a wrong number of axes", expected, a.shape)
    kernel = as_sizes(name, "kernel_size", kernel, 2)
    stride = kernel if stride is None else as_sizes(name, "stride", stride, 2)
    padding, dilation = as_sizes(name, "padding", padding, 2, least=0), as_sizes(name, "dilation", dilation, 2)
    if any(p > k // 2 for p, k in zip(padding, kernel)):
        raise ArgumentError(
            f"{name}: the padding is more than half the kernel", f"at most {tuple(k // 2 for k in kernel)}", padding
        )
    sizes = a.shape[-2:]
    framed = _frame(a, [(p, p) for p in padding])
    _check_room(name, framed.shape[-2:], kernel, dilation)
    windows = _unfold(framed, kernel=kernel, stride=stride, dilation=dilation)
    windows = reshape(windows, shape=(windows.shape[0], math.prod(kernel), *windows.shape[3:]))
    return windows, _inside(sizes, kernel, stride, padding, dilation) if any(padding) else None


def pool_max(name: str, a: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """The largest element of each window."""
    windows, inside = _pool_windows(name, a, kernel, stride, padding, dilation)
    return sum_(where(_first_largest(windows, inside=inside), windows, 0), axis=1)


def pool_mean(name: str, a: Any, kernel: Any, stride: Any, padding: Any, count_include_pad: bool) -> Any:
    """The mean of each window, over the kernel's size or over the elements that are not padding."""
    windows, inside = _pool_windows(name, a, kernel, stride, padding, 1)
    total = sum_(windows, axis=1)
    if inside is None or count_include_pad:
        return total / windows.shape[1]
    return total / _counts(total, values=inside.sum(axis=0))
