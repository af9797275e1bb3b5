"""Texts that are continued together though each began at another time: what a server of a language model computes."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..engine.modes import no_grad
from ..ops.creation import tensor
from .continuation import LanguageModel

__all__ = ["Rows"]

TRIMMED = 64  # positions that no row has any more are forgotten as soon as they are so many, and half of all


class Rows:
    """Continuations of a decoder-only model in one batch. A row joins when its beginning has been read, and leaves when it ends.

    All rows end at the same position of one key-value cache, so that a mask says where each begins. That takes a cache with
    `join(other)` and `trim(positions)`, and a model that takes a `mask` (B, S), unless its cache is a state that has no
    positions. Other models go on row by row.

    >>> from minigrad_models.gpt.model import GPT
    >>> model = GPT(vocab=10, context=8, layers=1, heads=2, dim=4).eval()
    >>> rows = Rows(model)
    >>> for prompt in ([1, 2, 3], [4]):
    ...     read = LanguageModel(model)
    ...     scores = read(np.array([prompt]))
    ...     rows.join(read)
    >>> rows.step([5, 6]).shape, rows.lengths.tolist()
    ((2, 10), [4, 2])
    """

    def __init__(self, model: Any):
        self.model = model
        self.lengths = np.zeros(0, np.int64)  # how many tokens of each row have been seen
        self._cache: Any = None
        self._alone: list[LanguageModel] = []
        self._has_mask = "mask" in inspect.signature(model.forward).parameters
        cache = model.new_cache()
        has_positions = hasattr(cache, "blocks")  # a StackCache
        self._is_joint = hasattr(cache, "join") and hasattr(cache, "trim") and (self._has_mask or not has_positions)

    def __len__(self) -> int:
        return len(self.lengths)

    def join(self, read: LanguageModel) -> None:
        """Add a row whose beginning was read by a continuation of its own, which is not used any more."""
        assert read.window is not None
        if not self._is_joint:
            self._alone.append(read)
        elif self._cache is None:
            self._cache = read.cache
        else:
            self._cache.join(read.cache)
        self.lengths = np.append(self.lengths, read.window.shape[1])

    def step(self, tokens: Sequence[int]) -> np.ndarray:
        """Take the next token of each row, and return the scores of what comes after it: (B, vocabulary)."""
        new = np.array(tokens)[:, None]  # (B, 1)
        self.lengths = self.lengths + 1
        if not self._is_joint:
            return np.concatenate([one(new[i : i + 1]) for i, one in enumerate(self._alone)])
        options: dict[str, Any] = {}
        size = self._cache.length + 1
        if self._has_mask and self.lengths.min() < size:
            options["mask"] = np.arange(size) >= size - self.lengths[:, None]  # (B, S)
        device = next((parameter.device for parameter in self.model.parameters()), None)
        with no_grad():
            given = tensor(new, device=device)
            if hasattr(self.model, "next_logits"):
                scores = self.model.next_logits(given, cache=self._cache, **options)
            else:
                scores = self.model(given, cache=self._cache, **options)[:, -1]  # (B, 1, V) -> (B, V)
        return np.asarray(scores.numpy(), np.float64)

    def select(self, rows: Sequence[int]) -> None:
        """Go on with these rows, in this order."""
        self.lengths = self.lengths[list(rows)]
        if not self._is_joint:
            self._alone = [self._alone[row] for row in rows]
        elif not len(self.lengths):
            self._cache = None
        else:
            self._cache.select(np.array(rows))
            spare = self._cache.length - int(self.lengths.max())
            if spare >= max(TRIMMED, self._cache.length // 2):
                self._cache.trim(spare)
