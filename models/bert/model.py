"""BERT: embeddings of tokens, places and segments, blocks that look both ways, and a head for the task at hand.

B is the batch, T the length of the texts, C the width, V the vocabulary.
"""

from __future__ import annotations

from typing import Any

import minigrad as mg
from minigrad import nn

from .heads import HEADS
from .tokens import Specials, segments_of


class Bert(nn.Module):
    """Tokens (B, T) -> vectors (B, T, C), each of which has seen the whole text; `head` makes of them what the task wants.

    A text is `<s> first </s>` or `<s> first </s> second </s>`, filled up with `<pad>`, which is masked.
    """

    def __init__(self, config: Any):
        dim, heads = config.dim, config.heads
        rotary = nn.RotaryPositions(dim // heads, **config.rotary) if config.positions == "rotary" else None
        self.context, self.counts_tokens, self.specials = config.context, config.counted, Specials(*config.specials)
        self.tokens = nn.Embedding(config.vocab, dim)
        self.segments = nn.Embedding(config.types, dim) if config.types else None
        # Where only tokens are counted, all padding is at one place, which is the first row.
        self.places = None if rotary else nn.LearnedPositions(config.context + config.counted, dim)
        self.norm, self.dropout = nn.LayerNorm(dim, config.eps), nn.Dropout(config.dropout)
        self.encoder = nn.Encoder(
            config.layers, dim, heads, config.hidden, activation=config.activation, dropout=config.dropout,
            norm_first=config.norm == "pre", eps=config.eps, rotary=rotary, **config.block,
        )  # fmt: skip
        for table in (self.tokens, self.segments):
            if table is not None:
                nn.init.gpt2_(table.weight)  # small, since the head that names words uses the same table
        self.vocabulary = nn.VocabularyHead("tokens.weight", "head.bias")
        self.head = HEADS[config.task](config)

    def forward(self, ids: Any, mask: Any = None, types: Any = None) -> mg.Tensor:
        """`mask` (B, T) is False for padding, and `types` (B, T) is 1 for the second text; special tokens say both."""
        ids = self._beside(ids)
        is_token = ids != self.specials.pad if mask is None else self._beside(mask)
        return self._encode(ids, is_token, segments_of(ids, self.specials.sep) if types is None else types)

    def logits(self, ids: Any, mask: Any = None, types: Any = None) -> mg.Tensor:
        """What the head says to tokens (B, T): of words, (B, T, V). Without a mask nothing is padding."""
        ids = self._beside(ids)
        is_token = None if mask is None else self._beside(mask)
        hidden = self._encode(ids, is_token, mg.zeros_like(ids) if types is None else types)
        return self.head.logits(self, hidden, ids, is_token)

    def embed(self, ids: Any, mask: Any = None) -> mg.Tensor:
        """One vector for each text: (B, T) -> (B, C). Without a mask nothing is padding."""
        ids = self._beside(ids)
        is_token = None if mask is None else self._beside(mask)
        return self.head.vectors(self._encode(ids, is_token, mg.zeros_like(ids)), is_token)

    def _beside(self, given: Any) -> mg.Tensor:
        return mg.tensor(given, device=self.norm.weight.device)

    def _encode(self, ids: mg.Tensor, is_token: Any, types: Any) -> mg.Tensor:
        x = self.tokens(ids)  # (B, T) -> (B, T, C)
        if self.segments is not None:
            x = x + self.segments(self._beside(types) if len(self.segments.weight) > 1 else mg.zeros_like(ids))
        if self.places is not None:
            x = self.places(x, positions=self._counted(ids) if self.counts_tokens else None)
        return self.encoder(
            self.dropout(self.norm(x)), mask=None if is_token is None else nn.padding_mask(is_token.astype("bool"))
        )

    def _counted(self, ids: mg.Tensor) -> mg.Tensor:
        """The place of each token among those that are not padding, from 1; padding is at 0: (B, T) -> (B, T)."""
        is_token = (ids != self.specials.pad).astype("int64")
        return is_token.cumsum(axis=1) * is_token
