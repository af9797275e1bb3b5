"""Skip-gram with negative sampling: a word's vector must tell the words around it from words drawn at random."""

from __future__ import annotations

from typing import Any

import minigrad as mg
from minigrad import nn


class SkipGram(nn.Module):
    """Two tables, (vocab, size) each: one for a word in the middle, one for a word beside it."""

    def __init__(self, vocab: int, size: int):
        self.words, self.contexts = nn.Embedding(vocab, size), nn.Embedding(vocab, size)
        for table in (self.words, self.contexts):
            nn.init.uniform_(table.weight, -0.5 / size, 0.5 / size)

    def forward(self, middle: Any, others: Any) -> mg.Tensor:
        """The logit of each other word to stand beside the one in the middle: (B,), (B, K) -> (B, K)."""
        return (self.words(middle)[:, None] * self.contexts(others)).sum(-1)  # (B, 1, size) * (B, K, size) -> (B, K)
