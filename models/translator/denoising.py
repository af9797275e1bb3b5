"""Span corruption, as BART's text infilling: runs of tokens are hidden, each behind one `<mask>`, and the text is to be restored."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from minigrad.data import BOS, EOS, MASK, Padded, PairBatch, SequenceBatches

GAP = "<mask>"  # how a gap is typed


def spans(length: int, share: float, mean: float, draw: np.random.Generator) -> list[tuple[int, int]]:
    """Where `share` of so many tokens is hidden: runs (start, end) of `mean` tokens on average, that do not touch."""
    wanted = min(length, max(1, round(share * length)))
    hidden = np.zeros(length, bool)
    for _ in range(4 * length):
        left = wanted - int(hidden.sum())
        if left <= 0:
            break
        size = min(left, int(draw.geometric(1 / mean)))
        start = int(draw.integers(0, length - size + 1))
        if not hidden[max(start - 1, 0) : start + size + 1].any():
            hidden[start : start + size] = True
    edges = np.flatnonzero(np.diff(np.concatenate([[0], hidden.astype(np.int8), [0]]))).tolist()
    return list(zip(edges[::2], edges[1::2]))


def corrupted(tokens: Sequence[Any], gap: Any, config: Any, draw: np.random.Generator) -> list[Any]:
    """The tokens with each hidden run replaced by one gap."""
    found: list[Any] = []
    last = 0
    for start, end in spans(len(tokens), config.masked, config.span, draw):
        found += [*tokens[last:start], gap]
        last = end
    return [*found, *tokens[last:]]


def with_gaps(text: str, config: Any, draw: np.random.Generator) -> str:
    """A text in which some words are gaps."""
    return " ".join(corrupted(text.split(), GAP, config, draw))


def encoded(text: str, tokenizer: Any) -> list[int]:
    """The tokens of a text that may have gaps in it, and the end."""
    pieces = [tokenizer.encode(piece) for piece in re.split(f" ?{GAP}", text)]
    ids = list(pieces[0])
    for piece in pieces[1:]:
        ids += [MASK, *piece]
    return [*ids, EOS]


class DenoisingBatches(SequenceBatches):
    """Batches of texts, corrupted anew each time: which tokens are hidden depends on seed, epoch and number of the batch."""

    def __init__(self, texts: Sequence[Sequence[int]], config: Any, seed: int = 0):
        self.config = config
        super().__init__(texts, config.batch, config.max_length, seed=seed)

    def batch(self, epoch: int, index: int) -> PairBatch:
        chosen = [self.examples[i][0] for i in self._order(epoch)[index]]
        draw = np.random.default_rng([self.seed, epoch, index])
        sources = [[*corrupted(ids, MASK, self.config, draw), EOS] for ids in chosen]
        return PairBatch(Padded.of(sources), Padded.of([[BOS, *ids, EOS] for ids in chosen]))

    def _identity(self) -> dict[str, Any]:
        return {**super()._identity(), "masked": self.config.masked, "span": self.config.span}
