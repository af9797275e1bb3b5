"""A lexical shortlist inside the model: which target words may come up for which source words."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

import minigrad as mg
from minigrad import nn
from minigrad.formats.shortlist import Shortlist as Lists


class Shortlist(nn.Module):
    """For each of `words` source words the target words that translate it, `count` in all, and the `first` words of the
    vocabulary, which are the most frequent. The targets of a word w are `targets[offsets[w] : offsets[w + 1]]`."""

    def __init__(self, words: int, count: int, first: int):
        self.first = first
        self.register_buffer("offsets", mg.zeros(words + 1, dtype="int64"))
        self.register_buffer("targets", mg.zeros(count, dtype="int32"))

    def for_source(self, ids: Iterable[int]) -> np.ndarray:
        """The numbers of the words that may come up in the translation of a source, sorted."""
        offsets, targets = self.offsets.numpy(), self.targets.numpy()
        return Lists(self.first, 0, len(offsets) - 1, offsets, targets).for_source(ids)
