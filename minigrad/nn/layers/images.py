"""Layers that enlarge, frame and rearrange images, with PyTorch's arguments and defaults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...engine.tensor import Tensor
from ...errors import ArgumentError, is_whole
from ...ops.layout.windows import check_axes
from .. import functional as F
from ..module import Module

__all__ = [
    "ChannelShuffle",
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "PixelShuffle",
    "PixelUnshuffle",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]

Size = int | Sequence[int] | None
Factor = float | Sequence[float] | None


class Upsample(Module):
    """The input enlarged to `size`, or by `scale_factor`: (N, C, *sizes) -> (N, C, *size); see `functional.interpolate`.

    >>> import minigrad as mg
    >>> mg.nn.Upsample(scale_factor=2, mode="bilinear")(mg.ones(1, 3, 4, 5)).shape
    (1, 3, 8, 10)
    """

    def __init__(
        self,
        size: Size = None,
        scale_factor: Factor = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ):
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def forward(self, input: Any) -> Tensor:
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        known = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{known}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """An image enlarged, each pixel taken from the nearest: (N, C, H, W) -> (N, C, H', W')."""

    def __init__(self, size: Size = None, scale_factor: Factor = None):
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """An image enlarged, corners on corners and straight lines between: (N, C, H, W) -> (N, C, H', W')."""

    def __init__(self, size: Size = None, scale_factor: Factor = None):
        super().__init__(size, scale_factor, "bilinear", align_corners=True)


class PixelShuffle(Module):
    """Channels become pixels: (…, C·r², H, W) -> (…, C, H·r, W·r), with r the `upscale_factor`."""

    def __init__(self, upscale_factor: int):
        self.upscale_factor = upscale_factor

    def forward(self, input: Any) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Pixels become channels: (…, C, H·r, W·r) -> (…, C·r², H, W), with r the `downscale_factor`."""

    def __init__(self, downscale_factor: int):
        self.downscale_factor = downscale_factor

    def forward(self, input: Any) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """The channels of all groups in turn: (N, C, …) -> (N, C, …)."""

    def __init__(self, groups: int):
        self.groups = groups

    def forward(self, input: Any) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"


class _Pad(Module):
    """A frame around the last `axes` axes: `padding` is one width, or (before, after) of the last axis, then of the one before it …"""

    axes: int
    mode = "constant"
    value: float | None = None

    def __init__(self, padding: int | Sequence[int]):
        widths: tuple[int, ...] = (padding,) * (2 * self.axes) if isinstance(padding, int) else tuple(padding)
        if len(widths) != 2 * self.axes or not all(map(is_whole, widths)):
            expected = f"a whole number, or {2 * self.axes} of them"
            raise ArgumentError(f"{type(self).__name__}: padding does not fit", expected, repr(padding))
        self.padding = widths

    def forward(self, input: Any) -> Tensor:
        check_axes(type(self).__name__, input, self.axes)
        return F.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return f"{self.padding}" if self.value is None else f"{self.padding}, value={self.value}"


class _ConstantPad(_Pad):
    def __init__(self, padding: int | Sequence[int], value: float):
        super().__init__(padding)
        self.value = value


class ConstantPad1d(_ConstantPad):
    """A frame of one value: (N, C, L) -> (N, C, L')."""

    axes = 1


class ConstantPad2d(_ConstantPad):
    """A frame of one value: (N, C, H, W) -> (N, C, H', W')."""

    axes = 2


class ConstantPad3d(_ConstantPad):
    """A frame of one value: (N, C, D, H, W) -> (N, C, D', H', W')."""

    axes = 3


class ZeroPad1d(_Pad):
    """A frame of zeros: (N, C, L) -> (N, C, L')."""

    axes = 1


class ZeroPad2d(_Pad):
    """A frame of zeros: (N, C, H, W) -> (N, C, H', W')."""

    axes = 2


class ZeroPad3d(_Pad):
    """A frame of zeros: (N, C, D, H, W) -> (N, C, D', H', W')."""

    axes = 3


class ReflectionPad1d(_Pad):
    """A frame that mirrors what is inside, the edge left out: (N, C, L) -> (N, C, L')."""

    axes, mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """A frame that mirrors what is inside, the edge left out: (N, C, H, W) -> (N, C, H', W')."""

    axes, mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """A frame that mirrors what is inside, the edge left out: (N, C, D, H, W) -> (N, C, D', H', W')."""

    axes, mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """A frame that repeats the edge: (N, C, L) -> (N, C, L')."""

    axes, mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """A frame that repeats the edge: (N, C, H, W) -> (N, C, H', W')."""

    axes, mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """A frame that repeats the edge: (N, C, D, H, W) -> (N, C, D', H', W')."""

    axes, mode = 3, "replicate"


class CircularPad1d(_Pad):
    """A frame that continues from the opposite edge: (N, C, L) -> (N, C, L')."""

    axes, mode = 1, "circular"


class CircularPad2d(_Pad):
    """A frame that continues from the opposite edge: (N, C, H, W) -> (N, C, H', W')."""

    axes, mode = 2, "circular"


class CircularPad3d(_Pad):
    """A frame that continues from the opposite edge: (N, C, D, H, W) -> (N, C, D', H', W')."""

    axes, mode = 3, "circular"
