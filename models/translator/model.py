"""The encoder-decoder of "Attention is all you need": what it is made of, and how it goes on with a translation token by token.

B is the batch, S the length of the sources, T that of the targets, C the width, V the size of the vocabulary.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import nn
from minigrad.data import PAD
from minigrad.nn import functional as F
from minigrad.nn.transformer import StackCache


class TranslatorCache:
    """What decoding has computed: the memory of the sources, made once, and the decoder's keys and values."""

    def __init__(self, depth: int) -> None:
        self.stack = StackCache(depth)
        self.memory: mg.Tensor | None = None  # (B, S, C)
        self.mask: mg.Tensor | None = None  # (B, 1, 1, S), True where there is a token
        self._sources: np.ndarray | None = None  # which source each row translates

    @property
    def length(self) -> int:
        """How many tokens of the translations have been seen."""
        return self.stack.length

    def fill(self, memory: mg.Tensor, mask: mg.Tensor) -> None:
        """Keep what the encoder made of the sources."""
        self.memory, self.mask, self._sources = memory, mask, np.arange(len(memory))

    def select(self, rows: Any) -> None:
        """Go on with these rows, in this order; one may come more than once."""
        rows = np.asarray(rows.numpy() if isinstance(rows, mg.Tensor) else rows)
        if self.memory is None or self.mask is None or self._sources is None:
            return
        sources = self._sources[rows]
        # Most steps of a beam search change the order of a sentence's beams only, and all of these have one memory.
        is_same = np.array_equal(sources, self._sources)
        self._sources = sources
        for block in self.stack.blocks:
            block.own.select(rows)
            if not is_same:
                block.memory.select(rows)
        if not is_same:
            self.memory, self.mask = self.memory[rows], self.mask[rows]


class Translator(nn.Module):
    """Token numbers of sources (B, S) and of targets so far (B, T) -> logits of the next target tokens (B, T, V).

    Tied, one matrix embeds the sources, embeds the targets, and turns what the decoder made into logits. Vectors of
    tokens are multiplied by √C, so that they are as large as their positions, which are "sinusoidal" and added to them, or
    "rotary": then self-attention knows how far tokens are apart, and nothing knows where they are. Padding is found by its number.
    """

    def __init__(
        self,
        vocab: int,
        dim: int,
        heads: int,
        hidden: int,
        depth: int,
        *,
        dropout: float = 0.1,
        inner_dropout: float | None = None,
        norm_first: bool = True,
        activation: str = "relu",
        tied: bool = True,
        smoothing: float = 0.0,
        sampling: float = 0.0,
        positions: str = "sinusoidal",
    ):
        rotary = nn.RotaryPositions(dim // heads) if positions == "rotary" else None
        options: dict[str, Any] = {
            "dropout": dropout, "inner_dropout": inner_dropout, "norm_first": norm_first, "activation": activation
        }  # fmt: skip
        self.vocab, self.dim, self.depth = vocab, dim, depth
        self.smoothing, self.sampling = smoothing, sampling
        self.embedding = nn.Embedding(vocab, dim)
        self.target_embedding = self.embedding if tied else nn.Embedding(vocab, dim)
        self.head = self.embedding if tied else nn.Linear(dim, vocab, bias=False)
        self.positions = nn.SinusoidalPositions(dim) if rotary is None else None
        self.dropout = nn.Dropout(dropout)
        self.encoder = nn.Encoder(depth, dim, heads, hidden, rotary=rotary, **options)
        self.decoder = nn.Decoder(depth, dim, heads, hidden, rotary=rotary, **options)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier's weights, and vectors of tokens of deviation 1 / √C."""
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                nn.init.xavier_uniform_(parameter)
            if "embedding" in name:
                nn.init.normal_(parameter, std=self.dim**-0.5)

    def new_cache(self) -> TranslatorCache:
        """An empty cache, for translating token by token."""
        return TranslatorCache(self.depth)

    def encode(self, source: Any) -> tuple[mg.Tensor, mg.Tensor]:
        """The memory of the sources, and where in it there are tokens: (B, S) -> (B, S, C), (B, 1, 1, S)."""
        mask = nn.padding_mask(source, pad=PAD)
        return self.encoder(self._embedded(self.embedding, source, 0), mask=mask), mask

    def decode(self, target: Any, memory: Any, mask: Any, cache: StackCache | None = None) -> mg.Tensor:
        """The logits after each token of the targets, or after those that the cache has not seen: (B, T) -> (B, T, V)."""
        x = self._embedded(self.target_embedding, target, 0 if cache is None else cache.length)
        # Padding of targets needs no mask: it comes after the tokens, where none of them can look.
        x = self.decoder(x, memory, memory_mask=mask, cache=cache)  # (B, T, C)
        return F.linear(x, self.head.weight)  # (B, T, C) -> (B, T, V)

    def forward(self, source: Any, target: Any, cache: TranslatorCache | None = None) -> mg.Tensor:
        if cache is None:
            return self.decode(target, *self.encode(source))
        if cache.memory is None:
            cache.fill(*self.encode(source))
        return self.decode(target, cache.memory, cache.mask, cache.stack)

    def _embedded(self, embedding: Any, tokens: Any, start: int) -> mg.Tensor:
        x = embedding(tokens) * math.sqrt(self.dim)  # (B, T) -> (B, T, C)
        return self.dropout(x if self.positions is None else self.positions(x, start))


def fed(model: Translator, source: mg.Tensor, target: mg.Tensor) -> mg.Tensor:
    """What the decoder is fed in training: the targets (B, T), or, in scheduled sampling, now and then its own choice.

    A first pass sees the targets, and says what it would have chosen after each; each of these choices takes the place
    of the token after it with probability `sampling`. So all positions are still computed at once.
    """
    if not (model.sampling and model.training) or target.shape[1] < 2:
        return target
    with mg.no_grad():
        chosen = model(source, target).argmax(axis=-1)[:, :-1]  # (B, T - 1): what comes after each but the last
        keeps = F.dropout(mg.ones(*chosen.shape, device=target.device), model.sampling) > 0
        own = mg.where(keeps | (target[:, 1:] == PAD), target[:, 1:], chosen)
    return mg.concatenate([target[:, :1], own], axis=1)


def translation_loss(model: Translator, batch: Any) -> dict[str, Any]:
    """The cross-entropy of each next token, given those before it: targets `<s> a b </s>` are fed `<s> a b`, and are to give `a b </s>`."""
    device = model.embedding.weight.device
    source, target = (mg.tensor(part.ids, device=device) for part in (batch.source, batch.target))
    wanted = target[:, 1:]
    logits = model(source, fed(model, source, target[:, :-1]))
    smoothing = model.smoothing if model.training else 0.0
    flat = logits.reshape(-1, logits.shape[-1])  # (B, T, V) -> (B·T, V)
    loss = F.cross_entropy(flat, wanted.reshape(-1), ignore_index=PAD, reduction="sum", label_smoothing=smoothing)
    return {"loss": (loss, mg.tensor(batch.target.lengths).sum() - len(batch.target))}
