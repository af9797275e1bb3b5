"""Convolutions and the windows they are made of, with PyTorch's arguments, defaults and start values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...engine.tensor import Tensor
from ...errors import ArgumentError, nearest
from ...ops.layout.windows import as_sizes
from ...ops.neural.convolution import padding_widths
from .. import functional as F
from .. import init
from ..module import Module
from .linear import check_sizes, new_parameter

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "Fold", "Unfold"]

Size = int | Sequence[int]
PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _Convolution(Module):
    """What all convolutions share; `axes` is the number of axes that the kernel moves along."""

    axes: int
    transposed = False
    usual: dict[str, Any]  # what need not be shown

    def make(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        groups: int,
        bias: bool,
        dtype: Any,
        device: str | None,
    ) -> None:
        """Check the sizes, and make the parameters."""
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
        self.in_channels, self.out_channels, self.kernel_size, self.groups = in_channels, out_channels, kernel, groups
        first, second = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        self.weight = new_parameter((first, second // groups, *kernel), dtype, device)
        self.bias = new_parameter((out_channels,), dtype, device) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias anew, evenly from ±1 / sqrt(size of weight[0])."""
        bound = 1 / math.sqrt(math.prod(self.weight.shape[1:]))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        shown = [
            f", {name}={getattr(self, name)!r}" for name, value in self.usual.items() if getattr(self, name) != value
        ]
        bias = ", bias=False" if self.bias is None else ""
        return f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}{''.join(shown)}{bias}"


class _Forward(_Convolution):
    """What Conv1d, Conv2d and Conv3d share."""

    usual = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1, "padding_mode": "zeros"}
    function: Callable[..., Tensor]

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
        padding_mode: str = "zeros",
        dtype: Any = None,
        device: str | None = None,
    ):
        name = type(self).__name__
        if padding_mode not in PADDING_MODES:
            hint = nearest(padding_mode, PADDING_MODES)
            raise ArgumentError(f"{name}: unknown padding_mode {padding_mode!r}", ", ".join(PADDING_MODES), fix=hint)
        self.stride, self.padding, self.dilation, self.padding_mode = stride, padding, dilation, padding_mode
        self.make(in_channels, out_channels, kernel_size, groups, bias, dtype, device)
        self._widths()  # which refuses options that do not fit

    def forward(self, input: Any) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = self._framed(input), 0
        return self.function(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def _framed(self, input: Any) -> Tensor:
        """The input in a frame that is not made of zeros."""
        return F.pad(input, [n for pair in reversed(self._widths()) for n in pair], mode=self.padding_mode)

    def _widths(self) -> list[tuple[int, int]]:
        name = type(self).__name__
        strides, dilations = (as_sizes(name, key, getattr(self, key), self.axes) for key in ("stride", "dilation"))
        return padding_widths(name, self.padding, self.kernel_size, strides, dilations)


class Conv1d(_Forward):
    """A convolution along one axis: (N, in_channels, L) -> (N, out_channels, L').

    >>> import minigrad as mg
    >>> mg.nn.Conv1d(4, 8, kernel_size=3, padding="same")(mg.ones(2, 4, 10)).shape
    (2, 8, 10)
    """

    axes, function = 1, staticmethod(F.conv1d)


class Conv2d(_Forward):
    """A convolution over two axes: (N, in_channels, H, W) -> (N, out_channels, H', W').

    >>> import minigrad as mg
    >>> mg.nn.Conv2d(1, 8, kernel_size=3, stride=2)(mg.ones(2, 1, 9, 9)).shape
    (2, 8, 4, 4)
    """

    axes, function = 2, staticmethod(F.conv2d)


class Conv3d(_Forward):
    """A convolution over three axes: (N, in_channels, D, H, W) -> (N, out_channels, D', H', W')."""

    axes, function = 3, staticmethod(F.conv3d)


class _Transposed(_Convolution):
    """What ConvTranspose1d, ConvTranspose2d and ConvTranspose3d share."""

    transposed = True
    usual = {"stride": 1, "padding": 0, "output_padding": 0, "dilation": 1, "groups": 1}
    function: Callable[..., Tensor]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        output_padding: Size = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Size = 1,
        dtype: Any = None,
        device: str | None = None,
    ):
        self.stride, self.padding, self.output_padding, self.dilation = stride, padding, output_padding, dilation
        self.make(in_channels, out_channels, kernel_size, groups, bias, dtype, device)

    def forward(self, input: Any, output_size: Sequence[int] | None = None) -> Tensor:
        further = self.output_padding if output_size is None else self._further(input, output_size)
        place = (self.stride, self.padding, further, self.groups, self.dilation)
        return self.function(input, self.weight, self.bias, *place)

    def _further(self, input: Any, output_size: Sequence[int]) -> tuple[int, ...]:
        """The output_padding that gives an output of the asked size."""
        name, sizes = type(self).__name__, tuple(output_size)[-self.axes :]
        options = [as_sizes(name, key, getattr(self, key), self.axes, 0) for key in ("stride", "padding", "dilation")]
        smallest = [
            (n - 1) * s - 2 * p + d * (k - 1) + 1
            for n, k, s, p, d in zip(input.shape[-self.axes :], self.kernel_size, *options)
        ]
        further = tuple([n - least for n, least in zip(sizes, smallest)])
        if len(further) != self.axes or any(not 0 <= f < s for f, s in zip(further, options[0])):
            largest = [least + s - 1 for least, s in zip(smallest, options[0])]
            raise ArgumentError(f"{name}: output_size does not fit", f"{smallest} to {largest}", list(sizes))
        return further


class ConvTranspose1d(_Transposed):
    """The adjoint of a convolution along one axis: (N, in_channels, L) -> (N, out_channels, L')."""

    axes, function = 1, staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_Transposed):
    """The adjoint of a convolution over two axes, which makes images larger: (N, in_channels, H, W) -> (N, out_channels, H', W').

    >>> import minigrad as mg
    >>> mg.nn.ConvTranspose2d(8, 1, kernel_size=2, stride=2)(mg.ones(2, 8, 4, 4)).shape
    (2, 1, 8, 8)
    """

    axes, function = 2, staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_Transposed):
    """The adjoint of a convolution over three axes: (N, in_channels, D, H, W) -> (N, out_channels, D', H', W')."""

    axes, function = 3, staticmethod(F.conv_transpose3d)


class Unfold(Module):
    """The windows of an image as columns: (N, C, H, W) -> (N, C·kh·kw, windows)."""

    def __init__(self, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1):
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Any) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"{self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Fold(Module):
    """The columns of `Unfold` added up where they came from: (N, C·kh·kw, windows) -> (N, C, *output_size)."""

    def __init__(self, output_size: Size, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1):
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, input: Any) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        window = f"dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
        return f"{self.output_size}, {self.kernel_size}, {window}"
