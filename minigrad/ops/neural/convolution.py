"""Convolution and its adjoint, the transposed convolution, over any number of axes.

Both are one matrix product and the windows of windows.py: a convolution multiplies windows that were laid out, a transposed
one adds up windows that were multiplied. So each is the derivative of the other, and derivatives of any order follow.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from ...errors import ArgumentError, ShapeError, nearest
from ..composite import Composite
from ..layout.shape import reshape, swapaxes
from ..layout.windows import AXES, Sizes, _fold, _unfold, as_sizes, check_axes, check_room, framed, reach_of
from ..linalg.products import matmul


def convolve(
    name: str, a: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int, count: int
) -> Any:
    """The convolution over `count` axes: (N, C, *sizes), (O, C/groups, *kernel) -> (N, O, *out)."""
    check_axes(name, a, count)
    _check_channels(name, a, weight, bias, groups, count, transposed=False)
    strides, dilations = as_sizes(name, "stride", stride, count), as_sizes(name, "dilation", dilation, count)
    widths = padding_widths(name, padding, weight.shape[2:], strides, dilations)
    check_room(name, tuple([n + sum(w) for n, w in zip(a.shape[-count:], widths)]), weight.shape[2:], dilations)
    batch = a if a.ndim == count + 2 else reshape(a, shape=(1, *a.shape))
    out = convolution(batch, weight, bias, stride=strides, padding=tuple(widths), dilation=dilations, groups=groups)
    return out if batch is a else reshape(out, shape=out.shape[1:])


def _convolution_cost(inputs, out, attrs):
    return 2 * out.size * math.prod(inputs[1].shape[1:]) + out.size * (inputs[2] is not None)


@partial(Composite, public=False, cost=_convolution_cost, lowering="whole")
def convolution(a, weight, bias, *, stride, padding, dilation, groups) -> Any:
    """The sum of each window times the weights: (N, C, *sizes), (O, C/groups, *kernel), (O,) or None -> (N, O, *out).

    `padding` has the zeros before and after on each axis.
    """
    count = a.ndim - 2
    around = framed(a, padding)
    windows = _unfold(
        swapaxes(around, axis1=0, axis2=1), kernel=tuple(weight.shape[2:]), stride=stride, dilation=dilation
    )
    outputs, inner = weight.shape[0], math.prod(weight.shape[1:])
    columns = reshape(windows, shape=(groups, inner, math.prod(windows.shape[1 + count :])))  # (g, C/g * k, N * out)
    rows = reshape(weight, shape=(groups, outputs // groups, inner))  # (g, O/g, C/g * k)
    out = reshape(matmul(rows, columns), shape=(outputs, *windows.shape[1 + count :]))  # (O, N, *out)
    out = swapaxes(out, axis1=0, axis2=1)  # (N, O, *out)
    return out if bias is None else out + reshape(bias, shape=(-1, *[1] * count))


def convolve_transposed(
    name: str,
    a: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
    count: int,
) -> Any:
    """The adjoint of a convolution over `count` axes: (N, C, *sizes), (C, O/groups, *kernel) -> (N, O, *out)."""
    check_axes(name, a, count)
    _check_channels(name, a, weight, bias, groups, count, transposed=True)
    strides, dilations = as_sizes(name, "stride", stride, count), as_sizes(name, "dilation", dilation, count)
    paddings = as_sizes(name, "padding", padding, count, least=0)
    further = as_sizes(name, "output_padding", output_padding, count, least=0)
    kernel = weight.shape[2:]
    full = _transposed_sizes(name, a.shape[-count:], kernel, strides, paddings, further, dilations)
    channels = _channels_first(a, count)  # (C, N, *sizes)
    inner, outer = weight.shape[0] // groups, math.prod(weight.shape[1:])
    columns = reshape(channels, shape=(groups, inner, math.prod(channels.shape[1:])))  # (g, C/g, N * sizes)
    rows = swapaxes(reshape(weight, shape=(groups, inner, outer)), axis1=1, axis2=2)  # (g, O/g * k, C/g)
    shape = (weight.shape[1] * groups, *kernel, *channels.shape[1:])
    windows = reshape(matmul(rows, columns), shape=shape)  # (O, *kernel, N, *sizes)
    out = _fold(windows, sizes=full, stride=strides, dilation=dilations)  # (O, N, *full)
    if any(paddings):
        out = out[(..., *[slice(p, n - p) for p, n in zip(paddings, full)])]
    return _finished(out, bias, a.ndim, count)


def _channels_first(a: Any, count: int) -> Any:
    """(N, C, *sizes) or (C, *sizes) -> (C, N, *sizes), N being 1 where there is no batch"""
    if a.ndim == count + 1:
        return reshape(a, shape=(a.shape[0], 1, *a.shape[1:]))
    return swapaxes(a, axis1=0, axis2=1)


def _finished(out: Any, bias: Any, ndim: int, count: int) -> Any:
    """(O, N, *out) -> (N, O, *out), or (O, *out) if the input had no batch; with the bias added"""
    if ndim == count + 1:
        out = reshape(out, shape=(out.shape[0], *out.shape[2:]))
    else:
        out = swapaxes(out, axis1=0, axis2=1)
    return out if bias is None else out + reshape(bias, shape=(-1, *[1] * count))


def padding_widths(name: str, padding: Any, kernel: Sizes, stride: Sizes, dilation: Sizes) -> list[tuple[int, int]]:
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


def _transposed_sizes(
    name: str, sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, further: Sizes, dilation: Sizes
) -> Sizes:
    """The sizes that the windows add up to, before `padding` is cut off on both sides; refused if nothing would be left."""
    if any(f >= max(s, d) for f, s, d in zip(further, stride, dilation)):
        raise ArgumentError(
            f"{name}: output_padding is too large",
            f"less than the stride {stride} or the dilation {dilation}",
            further,
        )
    reach = reach_of(kernel, dilation)
    full = tuple([(n - 1) * s + r + f for n, s, r, f in zip(sizes, stride, reach, further)])
    if any(n <= 2 * p for n, p in zip(full, padding)):
        raise ShapeError(
            f"{name}: the padding leaves nothing of the output",
            f"less than half of {full} cut off on each side",
            f"padding {padding}",
            "use a smaller padding or a larger input",
        )
    return full


def _check_channels(name: str, a: Any, weight: Any, bias: Any, groups: int, count: int, transposed: bool) -> None:
    """Refuse a weight or a bias that does not fit the input and the groups."""
    layout = "in channels, out channels / groups" if transposed else "out channels, in channels / groups"
    if weight.ndim != count + 2:
        expected = f"({layout}, {AXES[count]})"
        raise ShapeError(f"{name}: the weight has a wrong number of axes", expected, weight.shape)
    channels, whole = a.shape[-count - 1], isinstance(groups, int) and not isinstance(groups, bool) and groups >= 1
    out_channels = weight.shape[1] * groups if transposed and whole else weight.shape[0]
    if not whole or channels % groups or out_channels % groups:
        raise ArgumentError(
            f"{name}: the channels do not divide into groups",
            f"a divisor of {channels} (in) and of {out_channels} (out)",
            f"groups={groups!r}",
        )
    wanted = weight.shape[0] if transposed else weight.shape[1] * groups
    if wanted != channels:
        raise ShapeError(
            f"{name}: the channels of input and weight differ",
            f"{wanted} channels, for weight {weight.shape} and groups={groups}",
            f"{channels} in input {a.shape}",
            "the layout is (batch, channels, sizes); move the channels with moveaxis",
        )
    if bias is not None and bias.shape != (out_channels,):
        raise ShapeError(f"{name}: the bias does not fit", (out_channels,), bias.shape)
