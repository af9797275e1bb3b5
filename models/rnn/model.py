"""A recurrent language model: a state that is all it remembers, changed by one token after the other."""

from __future__ import annotations

from typing import Any

import minigrad as mg
from minigrad import nn

from ..gpt.model import IGNORED

LAYERS = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


class StateCache:
    """The states after the tokens so far, each (layers, B, H); a token costs the same however many came before it."""

    def __init__(self) -> None:
        self.state: Any = None
        self.length = 0

    def select(self, rows: Any) -> None:
        """Go on with these rows, in this order."""
        if isinstance(self.state, tuple):
            self.state = tuple(part[:, rows] for part in self.state)
        elif self.state is not None:
            self.state = self.state[:, rows]

    def join(self, other: StateCache) -> None:
        """Add the rows of another cache behind these."""
        if self.state is None:
            self.state = other.state
        elif isinstance(self.state, tuple):
            self.state = tuple(mg.concatenate([own, new], axis=1) for own, new in zip(self.state, other.state))
        else:
            self.state = mg.concatenate([self.state, other.state], axis=1)
        self.length = max(self.length, other.length)

    def trim(self, positions: int) -> None:
        """Count so many positions less."""
        self.length -= positions


class RNNLanguageModel(nn.Module):
    """Tokens (B, T) -> logits of the token after each, (B, T, vocab). It learns from `context` tokens at once, and reads any number.

    >>> model = RNNLanguageModel("gru", vocab=10, dim=4, hidden=6, layers=1, context=8)
    >>> model([[1, 2, 3]]).shape
    (1, 3, 10)
    """

    def __init__(self, cell: str, vocab: int, dim: int, hidden: int, layers: int, context: int, dropout: float = 0.0):
        self.context = context
        self.tokens = nn.Embedding(vocab, dim)
        self.dropout = nn.Dropout(dropout)
        self.recurrence = LAYERS[cell](dim, hidden, layers, batch_first=True, dropout=dropout)
        self.head = nn.Linear(hidden, vocab)
        self.vocabulary = nn.VocabularyHead()

    def new_cache(self) -> StateCache:
        """An empty cache for generating token by token."""
        return StateCache()

    def forward(self, tokens: Any, cache: StateCache | None = None, targets: Any = None) -> mg.Tensor:
        """With a cache, `tokens` are only those that it has not seen; with `targets` (B, T), their summed cross-entropy."""
        x = self.dropout(self.tokens(tokens))  # (B, T) -> (B, T, C)
        x, state = self.recurrence(x, None if cache is None else cache.state)  # (B, T, C) -> (B, T, H)
        if cache is not None:
            cache.state, cache.length = state, cache.length + x.shape[1]
        logits: mg.Tensor = self.head(self.dropout(x))  # (B, T, H) -> (B, T, vocab)
        return logits if targets is None else self.vocabulary.cross_entropy(logits, targets, ignore_index=IGNORED)
