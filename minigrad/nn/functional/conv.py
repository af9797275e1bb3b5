"""Convolutions, transposed convolutions, and the windows they are made of. Arguments, defaults and results are PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...engine.tensor import Tensor
from ...errors import ShapeError
from ...ops.layout.shape import moveaxis, reshape
from ...ops.layout.windows import _fold, _unfold, as_sizes, check_axes, check_room, framed, out_sizes
from ...ops.neural.convolution import convolve, convolve_transposed
from .declaration import TensorLike, function

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "fold",
    "unfold",
]

Size = int | Sequence[int]


@function
def conv1d(
    input: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """The convolution (as PyTorch's: without flipping the kernel) along one axis: (N, C, L), (O, C/groups, k), (O,) -> (N, O, L')."""
    return convolve("conv1d", input, weight, bias, stride, padding, dilation, groups, 1)


@function
def conv2d(
    input: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """The convolution over two axes: (N, C, H, W), (O, C/groups, kh, kw), (O,) -> (N, O, H', W').

    `padding` is a number, a pair, "valid" (none) or "same" (the output is as large as the input; stride 1 only).

    >>> import minigrad as mg
    >>> mg.nn.functional.conv2d(mg.ones(1, 1, 4, 4), mg.ones(1, 1, 3, 3))
    tensor([[[[9., 9.],
              [9., 9.]]]])
    """
    return convolve("conv2d", input, weight, bias, stride, padding, dilation, groups, 2)


@function
def conv3d(
    input: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """The convolution over three axes: (N, C, D, H, W), (O, C/groups, kd, kh, kw), (O,) -> (N, O, D', H', W')."""
    return convolve("conv3d", input, weight, bias, stride, padding, dilation, groups, 3)


@function
def conv_transpose1d(
    input: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Size = 1,
    padding: Size = 0,
    output_padding: Size = 0,
    groups: int = 1,
    dilation: Size = 1,
) -> Tensor:
    """The adjoint of `conv1d`: (N, C, L), (C, O/groups, k), (O,) -> (N, O, L').

    L' = (L - 1)·stride - 2·padding + dilation·(k - 1) + output_padding + 1
    """
    name = "conv_transpose1d"
    return convolve_transposed(name, input, weight, bias, stride, padding, output_padding, groups, dilation, 1)


@function
def conv_transpose2d(
    input: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Size = 1,
    padding: Size = 0,
    output_padding: Size = 0,
    groups: int = 1,
    dilation: Size = 1,
) -> Tensor:
    """The adjoint of `conv2d`, which spreads each element over a window: (N, C, H, W), (C, O/groups, kh, kw), (O,) -> (N, O, H', W').

    >>> import minigrad as mg
    >>> mg.nn.functional.conv_transpose2d(mg.ones(1, 1, 1, 2), mg.ones(1, 1, 1, 3)).tolist()
    [[[[1.0, 2.0, 2.0, 1.0]]]]
    """
    name = "conv_transpose2d"
    return convolve_transposed(name, input, weight, bias, stride, padding, output_padding, groups, dilation, 2)


@function
def conv_transpose3d(
    input: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Size = 1,
    padding: Size = 0,
    output_padding: Size = 0,
    groups: int = 1,
    dilation: Size = 1,
) -> Tensor:
    """The adjoint of `conv3d`: (N, C, D, H, W), (C, O/groups, kd, kh, kw), (O,) -> (N, O, D', H', W')."""
    name = "conv_transpose3d"
    return convolve_transposed(name, input, weight, bias, stride, padding, output_padding, groups, dilation, 3)


@function
def unfold(input: TensorLike, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1) -> Tensor:
    """The windows of an image as columns: (N, C, H, W) -> (N, C·kh·kw, windows).

    >>> import minigrad as mg
    >>> mg.nn.functional.unfold(mg.ones(1, 2, 4, 5), (2, 3)).shape
    (1, 12, 9)
    """
    check_axes("unfold", input, 2)
    kernel, strides, paddings, dilations = _window_sizes("unfold", kernel_size, stride, padding, dilation)
    around = framed(input, [(p, p) for p in paddings])
    check_room("unfold", around.shape[-2:], kernel, dilations)
    channels = reshape(around, shape=(1, *around.shape))
    windows = _unfold(channels, kernel=kernel, stride=strides, dilation=dilations)[0]  # (kh, kw, …, C, H', W')
    windows = moveaxis(windows, source=(0, 1), destination=(-4, -3))  # (…, C, kh, kw, H', W')
    *before, channels, _, _, high, wide = windows.shape
    return reshape(windows, shape=(*before, channels * math.prod(kernel), high * wide))


@function
def fold(
    input: TensorLike, output_size: Size, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1
) -> Tensor:
    """The columns of `unfold` added up where they came from: (N, C·kh·kw, windows) -> (N, C, *output_size)."""
    sizes = as_sizes("fold", "output_size", output_size, 2)
    kernel, strides, paddings, dilations = _window_sizes("fold", kernel_size, stride, padding, dilation)
    full = tuple([n + 2 * p for n, p in zip(sizes, paddings)])
    check_room("fold", full, kernel, dilations)
    out = out_sizes(full, kernel, strides, dilations)
    area = math.prod(kernel)
    if input.ndim not in (2, 3) or input.shape[-2] % area or input.shape[-1] != math.prod(out):
        raise ShapeError(
            "fold: the columns do not fit the output",
            f"(batch, channels * {area}, {math.prod(out)}), for {out[0]} x {out[1]} windows of {kernel} in {sizes}",
            input.shape,
        )
    before, channels = input.shape[:-2], input.shape[-2] // area
    windows = reshape(input, shape=(1, *before, channels, *kernel, *out))
    windows = moveaxis(windows, source=(-4, -3), destination=(1, 2))  # (1, kh, kw, …, C, H', W')
    total = _fold(windows, sizes=full, stride=strides, dilation=dilations)[0]
    return total[(..., *[slice(p, p + n) for p, n in zip(paddings, sizes)])]


def _window_sizes(name: str, kernel: Any, stride: Any, padding: Any, dilation: Any) -> tuple[tuple[int, ...], ...]:
    return (
        as_sizes(name, "kernel_size", kernel, 2),
        as_sizes(name, "stride", stride, 2),
        as_sizes(name, "padding", padding, 2, least=0),
        as_sizes(name, "dilation", dilation, 2),
    )
