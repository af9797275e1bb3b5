"""A vision transformer: a picture is cut into patches, and these are read as a text is."""

from __future__ import annotations

from typing import Any

import minigrad as mg
from minigrad import nn


def patches_of(images: mg.Tensor, patch: int) -> mg.Tensor:
    """Squares of pixels, row by row: (N, C, H, W) -> (N, H/p · W/p, C · p²)"""
    count, channels, high, wide = images.shape
    cut = images.reshape(count, channels, high // patch, patch, wide // patch, patch)
    return cut.transpose(0, 2, 4, 1, 3, 5).reshape(count, -1, channels * patch * patch)


class PatchEncoder(nn.Module):
    """Pictures (N, C, S, S) -> a vector for each patch, (N, P, D): linear, plus a learned one for its place.

    With `whole`, the first of 1 + P vectors stands for the whole picture.
    """

    def __init__(self, size: int, channels: int, patch: int, dim: int, whole: bool = False):
        self.patch = patch
        self.embedding = nn.Linear(channels * patch * patch, dim)
        self.places = nn.LearnedPositions((size // patch) ** 2 + whole, dim)
        self.whole = nn.Parameter(mg.zeros(1, 1, dim)) if whole else None

    def forward(self, images: Any) -> mg.Tensor:
        images = images if isinstance(images, mg.Tensor) else mg.tensor(images)  # which would cut a graph
        x = self.embedding(patches_of(images, self.patch))  # (N, P, D)
        if self.whole is not None:
            x = mg.concatenate([mg.broadcast_to(self.whole, (len(x), 1, x.shape[2])), x], axis=1)  # (N, 1 + P, D)
        return self.places(x)


class VisionTransformer(nn.Module):
    """Pictures (N, C, S, S) -> logits (N, classes), from the vector that stands for the whole picture."""

    def __init__(self, config: Any):
        self.patches = PatchEncoder(config.size, 1, config.patch, config.dim, whole=True)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = nn.Encoder(config.layers, config.dim, config.heads, 2 * config.dim, dropout=config.dropout)
        self.head = nn.Linear(config.dim, config.outputs)

    def forward(self, images: Any) -> mg.Tensor:
        x = self.encoder(self.dropout(self.patches(images)))  # (N, 1 + P, D)
        return self.head(x[:, 0])
