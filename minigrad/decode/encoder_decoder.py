"""Decoding with an encoder-decoder model: a batch of tokenized sources, decoded greedily or by beam search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..data import BOS, EOS, MASK, PAD, UNK, Padded
from ..engine.modes import no_grad
from ..ops.creation import tensor
from .beam import Hypothesis, beam_search
from .sampling import greedy

__all__ = ["EncoderDecoder", "greedy_all", "search_all"]

NEVER = [PAD, BOS, UNK, MASK]  # tokens that no target has
ROWS = 256  # sentences times beams that are decoded at once


def longest_of(sources: Sequence[Sequence[int]]) -> int:
    """How long a translation may become: some languages need twice the tokens, and short sentences a few more."""
    return 2 * max(map(len, sources), default=0) + 10


class EncoderDecoder:
    """The continuation of targets, one for each source, by a model called `model(sources, targets, cache=cache)`.

    The model has `new_cache()`; special tokens are never a continuation. With `cached=False` nothing is kept between tokens:
    slower, with the same result.
    """

    def __init__(self, model: Any, sources: Sequence[Sequence[int]], cached: bool = True):
        self.model, self.cached = model, cached
        self.source = tensor(Padded.of(sources).ids, device=next(model.parameters()).device)  # (B, S)
        self.cache = model.new_cache() if cached else None
        self.seen: np.ndarray | None = None  # (B, T)

    def __call__(self, tokens: np.ndarray) -> np.ndarray:
        self.seen = tokens if self.seen is None else np.concatenate([self.seen, tokens], axis=1)
        with no_grad():
            new = tensor(tokens if self.cached else self.seen, device=self.source.device)
            logits = self.model(self.source, new, cache=self.cache)[:, -1]  # (B, n, V) -> (B, V)
        scores = np.array(logits.numpy())
        scores[:, NEVER] = -np.inf
        return scores

    def select(self, rows: np.ndarray) -> None:
        assert self.seen is not None
        self.seen = self.seen[rows]
        if self.cache is None:
            self.source = self.source[rows]
        else:
            self.cache.select(rows)


def _in_batches(sources: Sequence[Sequence[int]], rows: int) -> list[np.ndarray]:
    """The indices of the sources in batches of `rows`, those of similar length together."""
    order = np.argsort([len(source) for source in sources], kind="stable")
    return [order[start : start + rows] for start in range(0, len(order), rows)]


def _prompt(count: int) -> np.ndarray:
    return np.full((count, 1), BOS)


def greedy_all(model: Any, sources: Sequence[Sequence[int]], cached: bool = True) -> list[list[int]]:
    """The translation of each source, token by token the best; in the order of the sources."""
    found: list[list[int]] = [[] for _ in sources]
    for places in _in_batches(sources, ROWS):
        chosen = [sources[place] for place in places]
        continuation = EncoderDecoder(model, chosen, cached)
        said = greedy(continuation, _prompt(len(chosen)), length=longest_of(chosen), end=EOS)
        for place, tokens in zip(places, said):
            found[place] = tokens[: longest_of([sources[place]])]  # as if it had been translated alone
    return found


def search_all(
    model: Any,
    sources: Sequence[Sequence[int]],
    beams: int = 5,
    alpha: float = 1.0,
    cached: bool = True,
) -> list[list[Hypothesis]]:
    """The best translations of each source by beam search, best first; in the order of the sources."""
    found: list[list[Hypothesis]] = [[] for _ in sources]
    for places in _in_batches(sources, ROWS // beams or 1):
        chosen = [sources[place] for place in places]
        continuation = EncoderDecoder(model, chosen, cached)
        lengths = [longest_of([source]) for source in chosen]
        prompt = _prompt(len(chosen))
        searched = beam_search(continuation, prompt, beams=beams, length=lengths, end=EOS, alpha=alpha)
        for place, hypotheses in zip(places, searched):
            found[place] = hypotheses
    return found
