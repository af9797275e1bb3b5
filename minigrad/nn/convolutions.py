"""Convolutions and pooling, with PyTorch's arguments, defaults and start values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..engine.tensor import Tensor
from ..errors import ArgumentError
from . import functional as F
from . import init
from .layers import check_sizes, new_parameter
from .module import Module

__all__ = ["AvgPool2d", "Conv1d", "Conv2d", "MaxPool2d"]

Size = int | Sequence[int]


class _Convolution(Module):
    """What Conv1d and Conv2d share; `axes` is the number of axes that the kernel moves along."""

    axes: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size | str = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        dtype: Any = None,
        device: str | None = None,
    ):
        kernel = (kernel_size,) * self.axes if isinstance(kernel_size, int) else tuple(kernel_size)
        name = type(self).__name__
        if len(kernel) != self.axes:
            raise ArgumentError(f"{name}: kernel_size does not fit", f"a number, or {self.axes} of them", kernel_size)
        check_sizes(self, in_channels=in_channels, out_channels=out_channels, groups=groups)
        for size in kernel:
            check_sizes(self, kernel_size=size)
        if in_channels % groups or out_channels % groups:
            got = f"in_channels={in_channels}, out_channels={out_channels}, groups={groups}"
            raise ArgumentError(f"{name}: the channels cannot be split into groups", "multiples of groups", got)
        self.in_channels, self.out_channels, self.kernel_size = in_channels, out_channels, kernel
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        self.weight = new_parameter((out_channels, in_channels // groups, *kernel), dtype, device)
        self.bias = new_parameter((out_channels,), dtype, device) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias anew, evenly from ±1 / sqrt(inputs of each output)."""
        bound = 1 / math.sqrt(math.prod(self.weight.shape[1:]))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Any) -> Tensor:
        convolve = F.conv1d if self.axes == 1 else F.conv2d
        return convolve(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        usual = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}
        options = [f", {name}={getattr(self, name)!r}" for name, value in usual.items() if getattr(self, name) != value]
        bias = ", bias=False" if self.bias is None else ""
        return f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}{''.join(options)}{bias}"


class Conv1d(_Convolution):
    """A convolution along one axis: (N, in_channels, L) -> (N, out_channels, L').

    >>> import minigrad as mg
    >>> mg.nn.Conv1d(4, 8, kernel_size=3, padding="same")(mg.ones(2, 4, 10)).shape
    (2, 8, 10)
    """

    axes = 1


class Conv2d(_Convolution):
    """A convolution over two axes: (N, in_channels, H, W) -> (N, out_channels, H', W').

    >>> import minigrad as mg
    >>> mg.nn.Conv2d(1, 8, kernel_size=3, stride=2)(mg.ones(2, 1, 9, 9)).shape
    (2, 8, 4, 4)
    """

    axes = 2


class MaxPool2d(Module):
    """The largest element of each window: (N, C, H, W) -> (N, C, H', W'); the stride is the window's size unless given."""

    def __init__(self, kernel_size: Size, stride: Size | None = None, padding: Size = 0, dilation: Size = 1):
        self.kernel_size, self.stride, self.padding, self.dilation = kernel_size, stride, padding, dilation

    def forward(self, input: Any) -> Tensor:
        return F.max_pool2d(input, self.kernel_size, self.stride, self.padding, self.dilation)

    def extra_repr(self) -> str:
        return f"{self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(Module):
    """The mean of each window: (N, C, H, W) -> (N, C, H', W'); the stride is the window's size unless given."""

    def __init__(
        self, kernel_size: Size, stride: Size | None = None, padding: Size = 0, *, count_include_pad: bool = True
    ):
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.count_include_pad = count_include_pad

    def forward(self, input: Any) -> Tensor:
        return F.avg_pool2d(
            input, self.kernel_size, self.stride, self.padding, count_include_pad=self.count_include_pad
        )

    def extra_repr(self) -> str:
        return f"{self.kernel_size}, stride={self.stride}, padding={self.padding}"
