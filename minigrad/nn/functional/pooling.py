"""Pooling: what is left of each window. Arguments, defaults and results are PyTorch's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...engine.tensor import Tensor
from ...ops.neural.pooling import adaptive_max, adaptive_mean, pool_max, pool_mean, pool_norm, unpool
from .declaration import TensorLike, function

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]

Size = int | Sequence[int]
Sizes = int | Sequence[int | None] | None


@function
def max_pool1d(
    input: TensorLike,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window: (N, C, L) -> (N, C, L')."""
    return pool_max("max_pool1d", input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 1)


@function
def max_pool2d(
    input: TensorLike,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window: (N, C, H, W) -> (N, C, H', W'). Of equal ones, the first gets the gradient.

    `return_indices` also gives the position of each in its plane, all axes counted as one.
    """
    return pool_max("max_pool2d", input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 2)


@function
def max_pool3d(
    input: TensorLike,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window: (N, C, D, H, W) -> (N, C, D', H', W')."""
    return pool_max("max_pool3d", input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 3)


@function
def avg_pool1d(
    input: TensorLike,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window: (N, C, L) -> (N, C, L')."""
    name = "avg_pool1d"
    return pool_mean(name, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None, 1)


@function
def avg_pool2d(
    input: TensorLike,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window: (N, C, H, W) -> (N, C, H', W'). Padding counts as zeros, or not at all.

    `divisor_override` divides the sum instead of the number of elements.
    """
    name = "avg_pool2d"
    return pool_mean(name, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, 2)


@function
def avg_pool3d(
    input: TensorLike,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window: (N, C, D, H, W) -> (N, C, D', H', W')."""
    name = "avg_pool3d"
    return pool_mean(name, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, 3)


@function
def lp_pool1d(
    input: TensorLike, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False
) -> Tensor:
    """`(sum of x ** norm_type) ** (1 / norm_type)` of each window: (N, C, L) -> (N, C, L')."""
    return pool_norm("lp_pool1d", input, norm_type, kernel_size, stride, ceil_mode, 1)


@function
def lp_pool2d(
    input: TensorLike, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False
) -> Tensor:
    """`(sum of x ** norm_type) ** (1 / norm_type)` of each window: (N, C, H, W) -> (N, C, H', W')."""
    return pool_norm("lp_pool2d", input, norm_type, kernel_size, stride, ceil_mode, 2)


@function
def lp_pool3d(
    input: TensorLike, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False
) -> Tensor:
    """`(sum of x ** norm_type) ** (1 / norm_type)` of each window: (N, C, D, H, W) -> (N, C, D', H', W')."""
    return pool_norm("lp_pool3d", input, norm_type, kernel_size, stride, ceil_mode, 3)


@function
def adaptive_avg_pool1d(input: TensorLike, output_size: Sizes) -> Tensor:
    """The means of as many windows as `output_size` says, which cover the input evenly: (N, C, L) -> (N, C, L')."""
    return adaptive_mean("adaptive_avg_pool1d", input, output_size, 1)


@function
def adaptive_avg_pool2d(input: TensorLike, output_size: Sizes) -> Tensor:
    """The means of as many windows as `output_size` says, which cover the input evenly: (N, C, H, W) -> (N, C, H', W').

    An axis of None in `output_size` keeps its size.
    """
    return adaptive_mean("adaptive_avg_pool2d", input, output_size, 2)


@function
def adaptive_avg_pool3d(input: TensorLike, output_size: Sizes) -> Tensor:
    """The means of as many windows as `output_size` says, which cover the input evenly: (N, C, D, H, W) -> (N, C, D', H', W')."""
    return adaptive_mean("adaptive_avg_pool3d", input, output_size, 3)


@function
def adaptive_max_pool1d(input: TensorLike, output_size: Sizes, return_indices: bool = False) -> Any:
    """The largest elements of as many windows as `output_size` says, which cover the input evenly: (N, C, L) -> (N, C, L')."""
    return adaptive_max("adaptive_max_pool1d", input, output_size, return_indices, 1)


@function
def adaptive_max_pool2d(input: TensorLike, output_size: Sizes, return_indices: bool = False) -> Any:
    """The largest elements of as many windows as `output_size` says, which cover the input evenly: (N, C, H, W) -> (N, C, H', W')."""
    return adaptive_max("adaptive_max_pool2d", input, output_size, return_indices, 2)


@function
def adaptive_max_pool3d(input: TensorLike, output_size: Sizes, return_indices: bool = False) -> Any:
    """The largest elements of as many windows as `output_size` says, which cover the input evenly: (N, C, D, H, W) -> (N, C, D', H', W')."""
    return adaptive_max("adaptive_max_pool3d", input, output_size, return_indices, 3)


@function
def max_unpool1d(
    input: TensorLike,
    indices: TensorLike,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Zeros, and each element at the position that `max_pool1d` gave: (N, C, L) -> (N, C, L')."""
    return unpool("max_unpool1d", input, indices, kernel_size, stride, padding, output_size, 1)


@function
def max_unpool2d(
    input: TensorLike,
    indices: TensorLike,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Zeros, and each element at the position that `max_pool2d` gave: (N, C, H, W) -> (N, C, H', W').

    Of elements with one position the last stays, and it alone gets the gradient.
    """
    return unpool("max_unpool2d", input, indices, kernel_size, stride, padding, output_size, 2)


@function
def max_unpool3d(
    input: TensorLike,
    indices: TensorLike,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Zeros, and each element at the position that `max_pool3d` gave: (N, C, D, H, W) -> (N, C, D', H', W')."""
    return unpool("max_unpool3d", input, indices, kernel_size, stride, padding, output_size, 3)
