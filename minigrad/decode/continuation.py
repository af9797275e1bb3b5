"""Continuations: models as functions from new tokens to the scores of the next, with a key-value cache."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ..engine.modes import no_grad
from ..ops.creation import tensor

__all__ = ["Continuation", "LanguageModel"]


class Continuation(Protocol):
    """Sequences that are being continued, B of them at once."""

    def __call__(self, tokens: np.ndarray) -> np.ndarray:
        """Take the new tokens of each sequence, (B, n), and return the scores of what comes next, (B, vocabulary)."""

    def select(self, rows: np.ndarray) -> None:
        """Go on with these sequences, in this order; one may come more than once."""


class LanguageModel:
    """The continuation of text by a decoder-only model, called `model(tokens, cache=cache)`, with `new_cache()` and `context`.

    A model that has `next_logits(tokens, cache=cache)`, (B, n) -> (B, vocabulary), is asked for the last position alone.
    With `cached=False` no key-value cache is used: slower, with the same result. When the context is full, the
    later half of it is kept, of a prompt as much as fits: what the model sees slides on, by the same steps with a cache and without.
    """

    def __init__(self, model: Any, cached: bool = True):
        self.model, self.cached = model, cached
        self.device = next((parameter.device for parameter in model.parameters()), None)
        self.cache = model.new_cache() if cached else None
        self.window: np.ndarray | None = None  # what the model sees, (B, at most context)

    def __call__(self, tokens: np.ndarray) -> np.ndarray:
        seen = tokens if self.window is None else np.concatenate([self.window, tokens], axis=1)
        if seen.shape[1] > self.model.context:
            kept = self.model.context if self.window is None else max(self.model.context // 2, 1)
            seen = tokens = seen[:, -kept:]
            self.cache = self.model.new_cache() if self.cached else None
        self.window = seen
        with no_grad():
            given = tensor(tokens if self.cached else seen, device=self.device)
            scores = self._next_logits(given)  # (B, n) -> (B, V)
        return np.asarray(scores.numpy(), np.float64)

    def _next_logits(self, tokens: Any) -> Any:
        if hasattr(self.model, "next_logits"):
            return self.model.next_logits(tokens, cache=self.cache)
        return self.model(tokens, cache=self.cache)[:, -1]  # (B, n, V) -> (B, V)

    def select(self, rows: np.ndarray) -> None:
        if self.window is not None:
            self.window = self.window[rows]
        if self.cache is not None:
            self.cache.select(tensor(rows, device=self.device))
