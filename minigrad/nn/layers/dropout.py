"""The layers that drop at random while they are trained: elements, or whole channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ...engine.tensor import Tensor
from ...errors import ArgumentError
from .. import functional as F
from ..module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class Dropout(Module):
    """In training, each element becomes 0 with probability `p` and the others are divided by `1 - p`; else nothing happens."""

    function: ClassVar[Callable[..., Tensor]] = staticmethod(F.dropout)

    def __init__(self, p: float = 0.5):
        if not 0 <= p <= 1:
            raise ArgumentError(f"{type(self).__name__}: p is a probability", "0 to 1", p)
        self.p = p

    def forward(self, input: Any) -> Tensor:
        return type(self).function(input, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class Dropout1d(Dropout):
    """The same for whole channels of sequences: (N, C, L) or (C, L) -> the same."""

    function = staticmethod(F.dropout1d)


class Dropout2d(Dropout):
    """The same for whole channels of pictures: (N, C, H, W) -> the same."""

    function = staticmethod(F.dropout2d)


class Dropout3d(Dropout):
    """The same for whole channels of volumes: (N, C, D, H, W) or (C, D, H, W) -> the same."""

    function = staticmethod(F.dropout3d)


class AlphaDropout(Dropout):
    """Dropout for SELU: what is dropped takes the value that SELU saturates at, and mean and variance stay."""

    function = staticmethod(F.alpha_dropout)


class FeatureAlphaDropout(Dropout):
    """AlphaDropout of whole channels: (N, C, …) -> the same."""

    function = staticmethod(F.feature_alpha_dropout)
