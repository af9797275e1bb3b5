"""A network whose weights have two values or three, trained through them as if they were not rounded."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import minigrad as mg
from minigrad import nn
from minigrad.nn import functional as F


def levels(xp: Any, weight: Any, kind: str) -> tuple[Any, Any]:
    """The scale γ = mean |w| of a weight, and its levels: sign(w) if "binary", w / γ rounded into {-1, 0, 1} if "ternary"."""
    scale = xp.mean(xp.abs(weight))
    if kind == "binary":
        return scale, xp.where(weight < 0, -1, 1).astype(weight.dtype)
    smallest = xp.finfo(weight.dtype).tiny  # a weight of zeros has levels of zeros
    return scale, xp.clip(xp.rint(weight / xp.maximum(scale, smallest)), -1, 1)


@mg.op
def rounded(xp: Any, weight: Any, *, kind: str) -> Any:
    """`γ · levels`. An op, since w + (γ · levels - w).detach() is off by a rounding, and packed levels are not."""
    scale, values = levels(xp, weight, kind)
    return scale * values


rounded.vjp(weight=lambda g: g)  # straight through: its derivative is 0 almost everywhere, and nothing could be learned


class BitLinear(nn.Module):
    """`rms_norm(x) @ rounded(weight).T`: (N, in) -> (N, out); the weight that is trained keeps its fractions."""

    def __init__(self, inputs: int, outputs: int, kind: str):
        self.weight, self.kind = nn.Linear(inputs, outputs, bias=False).weight, kind

    def forward(self, x: mg.Tensor) -> mg.Tensor:
        weight = self.weight if self.kind == "float" else rounded(self.weight, kind=self.kind)
        return F.linear(F.rms_norm(x, x.shape[-1]), weight)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[1]}, {self.weight.shape[0]}, {self.kind}"


class BitMLP(nn.Module):
    """Images (N, 1, 16, 16) -> (N, 256) -> … -> (N, 10), with ReLU between the layers."""

    KINDS = ("binary", "ternary", "float")

    def __init__(self, sizes: tuple[int, ...], kind: str):
        self.sizes, self.kind = sizes, kind
        self.layers = nn.ModuleList([BitLinear(inputs, outputs, kind) for inputs, outputs in pairwise(sizes)])

    def forward(self, images: Any) -> mg.Tensor:
        x = nn.Flatten()(images)
        for index, layer in enumerate(self.layers):
            x = layer(F.relu(x) if index else x)
        return x
