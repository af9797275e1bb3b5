"""One example of every layer for sequences, pictures and volumes, beside PyTorch's."""

from __future__ import annotations

from typing import Any

import minigrad as mg
from minigrad import nn

from .layers import CASES, PICTURE, Case

MODES = ("reflect", "replicate", "circular")
FRAMES = ("ZeroPad", "ReflectionPad", "ReplicationPad", "CircularPad")
SHAPES = {1: (8, 4, 9), 2: PICTURE, 3: (8, 2, 3, 4, 5)}


class PoolAndBack(nn.Module):
    """A max pooling and its way back as a layer with one input."""

    def __init__(self, axes: int):
        self.pool = getattr(nn, f"MaxPool{axes}d")(2, return_indices=True)
        self.back = getattr(nn, f"MaxUnpool{axes}d")(2)

    def forward(self, x: mg.Tensor) -> mg.Tensor:
        return self.back(*self.pool(x), output_size=x.shape)


def same(name: str, axes: int, *args: Any, **options: Any) -> Case:
    """A layer with the same arguments in PyTorch."""
    return Case(
        lambda: getattr(nn, f"{name}{axes}d")(*args, **options),
        lambda torch_nn: getattr(torch_nn, f"{name}{axes}d")(*args, **options),
        SHAPES[axes],
    )


CASES.update(
    {
        **{f"Conv2d with {mode}": same("Conv", 2, 4, 3, (3, 2), padding=(2, 1), padding_mode=mode) for mode in MODES},
        "Conv1d with reflect, same": same("Conv", 1, 4, 6, 4, padding="same", padding_mode="reflect"),
        "Conv3d": same("Conv", 3, 2, 3, (1, 2, 3), padding=(0, 1, 1)),
        "ConvTranspose1d": same("ConvTranspose", 1, 4, 2, 3, 2, 1, 1, 2, False, 2),
        "ConvTranspose2d": same("ConvTranspose", 2, 4, 3, 2, stride=(2, 1)),
        "ConvTranspose3d": same("ConvTranspose", 3, 2, 2, (1, 2, 2), groups=2),
        "Unfold": Case(lambda: nn.Unfold(2, stride=2), lambda t: t.Unfold(2, stride=2), PICTURE),
        "Fold": Case(lambda: nn.Fold((3, 4), (2, 2)), lambda t: t.Fold((3, 4), (2, 2)), (8, 8, 6)),
        "MaxPool1d": same("MaxPool", 1, 3, 2, 1, 1, False, True),
        "MaxPool3d": same("MaxPool", 3, (1, 2, 2)),
        "AvgPool1d": same("AvgPool", 1, 3, 2, 1, True, False),
        "AvgPool3d": same("AvgPool", 3, (1, 2, 2), divisor_override=3),
        "AdaptiveAvgPool1d": same("AdaptiveAvgPool", 1, 5),
        "AdaptiveAvgPool2d": same("AdaptiveAvgPool", 2, (4, None)),
        "AdaptiveAvgPool3d": same("AdaptiveAvgPool", 3, (3, 2, 4)),
        "AdaptiveMaxPool1d": same("AdaptiveMaxPool", 1, 5),
        "AdaptiveMaxPool2d": same("AdaptiveMaxPool", 2, (4, None)),
        "AdaptiveMaxPool3d": same("AdaptiveMaxPool", 3, (3, 2, 4)),
        "LPPool1d": same("LPPool", 1, 2, 2),
        "LPPool2d": same("LPPool", 2, 2.0, 2),
        "LPPool3d": same("LPPool", 3, 2, (1, 2, 2)),
        "Upsample": Case(
            lambda: nn.Upsample(scale_factor=1.5, mode="bicubic"),
            lambda t: t.Upsample(scale_factor=1.5, mode="bicubic"),
            (8, 2, 3, 5),
        ),
        "UpsamplingNearest2d": same("UpsamplingNearest", 2, (7, 6)),
        "UpsamplingBilinear2d": same("UpsamplingBilinear", 2, scale_factor=1.5),
        "PixelShuffle": Case(lambda: nn.PixelShuffle(2), lambda t: t.PixelShuffle(2), PICTURE),
        "PixelUnshuffle": Case(lambda: nn.PixelUnshuffle(2), lambda t: t.PixelUnshuffle(2), (8, 2, 4, 6)),
        "ChannelShuffle": Case(lambda: nn.ChannelShuffle(2), lambda t: t.ChannelShuffle(2), PICTURE),
        **{f"ConstantPad{axes}d": same("ConstantPad", axes, 1, 0.5) for axes in (1, 2, 3)},
        **{f"{kind}{axes}d": same(kind, axes, (1, 0, 1, 1, 2, 0)[: 2 * axes]) for kind in FRAMES for axes in (1, 2, 3)},
        **{f"MaxUnpool{axes}d": Case(lambda axes=axes: PoolAndBack(axes), None, SHAPES[axes]) for axes in (1, 2, 3)},
    }
)
