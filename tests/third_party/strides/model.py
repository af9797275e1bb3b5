"""The model: digits and their places become vectors, which a causal transformer reads."""

from __future__ import annotations

from typing import Any

import minigrad as mg
from minigrad import nn


class Counter(nn.Module):
    """(B, L) -> (B, L, 10)."""

    def __init__(self, width: int, depth: int, length: int):
        self.digits, self.places = nn.Embedding(10, width), nn.Embedding(length, width)
        self.encoder = nn.Encoder(depth, width, heads=2, causal=True)
        self.head = nn.Linear(width, 10)

    def new_cache(self) -> Any:
        return self.encoder.new_cache()

    def forward(self, x: Any, cache: Any = None) -> mg.Tensor:
        seen = 0 if cache is None else cache.length
        places = mg.arange(seen, seen + x.shape[1])
        return self.head(self.encoder(self.digits(x) + self.places(places), cache=cache))
