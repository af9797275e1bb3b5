"""Pooling layers, with PyTorch's arguments and defaults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...engine.tensor import Tensor
from .. import functional as F
from ..module import Module

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]

Size = int | Sequence[int]
OutputSize = int | Sequence[int | None] | None


class _Configured(Module):
    """A layer without parameters that calls `function` with its `settings`."""

    function: Callable[..., Any]
    settings: tuple[str, ...]

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self.settings)


class _Pool(_Configured):
    def forward(self, input: Any) -> Any:
        return self.function(input, **{name: getattr(self, name) for name in self.settings})


class _MaxPool(_Pool):
    settings = ("kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode")

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ):
        self.kernel_size, self.stride, self.padding, self.dilation = kernel_size, stride, padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode


class MaxPool1d(_MaxPool):
    """The largest element of each window: (N, C, L) -> (N, C, L'); the stride is the window's size unless given."""

    function = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPool):
    """The largest element of each window: (N, C, H, W) -> (N, C, H', W'); the stride is the window's size unless given."""

    function = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPool):
    """The largest element of each window: (N, C, D, H, W) -> (N, C, D', H', W'); the stride is the window's size unless given."""

    function = staticmethod(F.max_pool3d)


class AvgPool1d(_Pool):
    """The mean of each window: (N, C, L) -> (N, C, L'); the stride is the window's size unless given."""

    settings = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad")
    function = staticmethod(F.avg_pool1d)

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ):
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad


class _AvgPool(_Pool):
    settings = (*AvgPool1d.settings, "divisor_override")

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ):
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override = divisor_override


class AvgPool2d(_AvgPool):
    """The mean of each window: (N, C, H, W) -> (N, C, H', W'); the stride is the window's size unless given."""

    function = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPool):
    """The mean of each window: (N, C, D, H, W) -> (N, C, D', H', W'); the stride is the window's size unless given."""

    function = staticmethod(F.avg_pool3d)


class _LPPool(_Pool):
    settings = ("norm_type", "kernel_size", "stride", "ceil_mode")

    def __init__(self, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False):
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode


class LPPool1d(_LPPool):
    """`(sum of x ** norm_type) ** (1 / norm_type)` of each window: (N, C, L) -> (N, C, L')."""

    function = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPool):
    """`(sum of x ** norm_type) ** (1 / norm_type)` of each window: (N, C, H, W) -> (N, C, H', W')."""

    function = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPool):
    """`(sum of x ** norm_type) ** (1 / norm_type)` of each window: (N, C, D, H, W) -> (N, C, D', H', W')."""

    function = staticmethod(F.lp_pool3d)


class _AdaptiveAvgPool(_Pool):
    settings = ("output_size",)

    def __init__(self, output_size: OutputSize):
        self.output_size = output_size


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The means of as many windows as asked for, which cover the input evenly: (N, C, L) -> (N, C, L')."""

    function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """The means of as many windows as asked for, which cover the input evenly: (N, C, H, W) -> (N, C, H', W')."""

    function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """The means of as many windows as asked for, which cover the input evenly: (N, C, D, H, W) -> (N, C, D', H', W')."""

    function = staticmethod(F.adaptive_avg_pool3d)


class _AdaptiveMaxPool(_Pool):
    settings = ("output_size", "return_indices")

    def __init__(self, output_size: OutputSize, return_indices: bool = False):
        self.output_size, self.return_indices = output_size, return_indices


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The largest elements of as many windows as asked for, which cover the input evenly: (N, C, L) -> (N, C, L')."""

    function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The largest elements of as many windows as asked for, which cover the input evenly: (N, C, H, W) -> (N, C, H', W')."""

    function = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The largest elements of as many windows as asked for, which cover the input evenly: (N, C, D, H, W) -> (N, C, D', H', W')."""

    function = staticmethod(F.adaptive_max_pool3d)


class _MaxUnpool(_Configured):
    settings = ("kernel_size", "stride", "padding")

    def __init__(self, kernel_size: Size, stride: Size | None = None, padding: Size = 0):
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def forward(self, input: Any, indices: Any, output_size: Sequence[int] | None = None) -> Tensor:
        return self.function(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpool):
    """Zeros, and each element at the position that a max pooling gave: (N, C, L) -> (N, C, L')."""

    function = staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """Zeros, and each element at the position that a max pooling gave: (N, C, H, W) -> (N, C, H', W')."""

    function = staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """Zeros, and each element at the position that a max pooling gave: (N, C, D, H, W) -> (N, C, D', H', W')."""

    function = staticmethod(F.max_unpool3d)
