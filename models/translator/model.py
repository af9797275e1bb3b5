"""The encoder-decoder of "Attention is all you need": what it is made of, and how it goes on with a translation token by token.

B is the batch, S the length of the sources, T that of the targets, C the width, V the size of the vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import nn
from minigrad.decode import SpecialIds
from minigrad.nn import functional as F

from .shortlist import Shortlist


class TranslatorCache:
    """What decoding has computed: the memory of the sources, made once, and the decoder's keys and values."""

    def __init__(self, stack: nn.StackCache) -> None:
        self.stack = stack
        self.memory: mg.Tensor | None = None  # (N, S, C), of all sources, in their order
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
        if not is_same:  # the memory itself is not asked for any more: the keys and values of it are in the caches
            self.mask = self.mask[rows]


class Translator(nn.Module):
    """Token numbers of sources (B, S) and of targets so far (B, T) -> logits of the next target tokens (B, T, V).

    Tied, one matrix embeds the sources, embeds the targets, and turns what the decoder made into logits; `separate` says
    which of them has a matrix of its own all the same: the "head", or the "source". If it is `scaled`, vectors of tokens are
    multiplied by √C, so that they are as large as their positions. These are "sinusoidal" or "learned" and added to them, or
    "rotary" or "relative": then self-attention knows how far tokens are apart, and nothing knows where they are. Their
    `position_options` are those of the module. Padding is found by its number, one of the `special` tokens.

    `block` has further options of `nn.TransformerBlock`, and `decoder` those that are others in the decoder.
    """

    def __init__(
        self,
        vocab: int,
        dim: int,
        heads: int,
        hidden: int,
        depth: int,
        *,
        decoder_depth: int | None = None,
        target_vocab: int | None = None,
        dropout: float = 0.1,
        inner_dropout: float | None = None,
        norm_first: bool = True,
        activation: str = "relu",
        tied: bool = True,
        separate: str = "",
        scaled: bool = True,
        smoothing: float = 0.0,
        sampling: float = 0.0,
        positions: str = "sinusoidal",
        position_options: Mapping[str, Any] | None = None,
        embedding_norm: bool = False,
        head_bias: bool = False,
        logit_scale: float = 1.0,
        special: Mapping[str, Any] | None = None,
        block: Mapping[str, Any] | None = None,
        decoder: Mapping[str, Any] | None = None,
        shortlist: Mapping[str, int] | None = None,
    ):
        options: dict[str, Any] = {
            "dim": dim, "heads": heads, "hidden": hidden, "dropout": dropout, "inner_dropout": inner_dropout,
            "norm_first": norm_first, "activation": activation, **(block or {}),
        }  # fmt: skip
        unlike = {**options, "depth": depth if decoder_depth is None else decoder_depth, **(decoder or {})}
        targets = vocab if target_vocab is None else target_vocab
        self.vocab, self.dim, self.depth = targets, dim, depth
        self.smoothing, self.sampling = smoothing, sampling
        self.scale, self.logit_scale = math.sqrt(dim) if scaled else 1.0, logit_scale
        self.special = SpecialIds(**(special or {}))
        self.embedding = nn.Embedding(vocab, dim)
        own = not tied or separate == "source"
        self.target_embedding = nn.Embedding(targets, dim) if own else self.embedding
        own = not tied or separate == "head"
        self.head = nn.Linear(dim, targets, bias=False) if own else self.target_embedding
        self.head_bias = nn.Parameter(mg.zeros(targets)) if head_bias else None
        given = dict(position_options or {})
        self.positions, self.target_positions = _added_positions(positions, dim, given)
        self.dropout = nn.Dropout(dropout)
        self.encoder = nn.Encoder(depth=depth, **options, **_inner_positions(positions, options, given, True))
        self.decoder = nn.Decoder(**unlike, **_inner_positions(positions, unlike, given, False))
        self.source_norm = self.encoder.blocks[0].new_norm() if embedding_norm else None
        self.target_norm = self.encoder.blocks[0].new_norm() if embedding_norm else None
        self.vocabulary = nn.VocabularyHead("embedding.weight", "target_embedding.weight", "head.weight", "head_bias")
        self.shortlist = Shortlist(**shortlist) if shortlist else None
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
        return TranslatorCache(self.decoder.new_cache())

    @property
    def longest(self) -> int | None:
        """How long a target may become; None for any length."""
        return self.target_positions.max_length if isinstance(self.target_positions, nn.LearnedPositions) else None

    def encode(self, source: Any) -> tuple[mg.Tensor, mg.Tensor]:
        """The memory of the sources, and where in it there are tokens: (B, S) -> (B, S, C), (B, 1, 1, S)."""
        mask = nn.padding_mask(source, pad=self.special.pad)
        return self.encoder(
            self._embedded(self.embedding, self.positions, self.source_norm, source, 0), mask=mask
        ), mask

    def head_of(self, words: np.ndarray) -> tuple[Any, Any]:
        """Weight and bias of the logits of some words only, as `forward` takes them."""
        return self.head.weight[words], None if self.head_bias is None else self.head_bias[words]

    def decode(
        self,
        target: Any,
        memory: Any,
        mask: Any,
        cache: nn.StackCache | None = None,
        head: tuple[Any, Any] | None = None,
        wanted: Any = None,
    ) -> mg.Tensor:
        """The logits after each token of the targets, or after those that the cache has not seen: (B, T) -> (B, T, V).

        If it is said what is `wanted` there, (B, T), the summed cross-entropy of that, smoothed in training.
        """
        start = 0 if cache is None else cache.length
        x = self._embedded(self.target_embedding, self.target_positions, self.target_norm, target, start)
        # Padding of targets needs no mask: it comes after the tokens, where none of them can look.
        x = self.decoder(x, memory, memory_mask=mask, cache=cache)  # (B, T, C)
        x = x if self.logit_scale == 1 else x * self.logit_scale
        if head is not None:
            return F.linear(x, *head)  # (B, T, C) -> (B, T, some words)
        words, own = self.vocabulary, (x, self.head.weight, self.head_bias)
        if wanted is None:
            return words(*own)  # type: ignore[no-any-return]  # (B, T, C) -> (B, T, V)
        smoothing = self.smoothing if self.training else 0.0
        options = {"ignore_index": self.special.pad, "label_smoothing": smoothing}
        return words.cross_entropy(words.scores(*own), wanted, **options)

    def forward(
        self,
        source: Any,
        target: Any,
        cache: TranslatorCache | None = None,
        head: tuple[Any, Any] | None = None,
        wanted: Any = None,
    ) -> mg.Tensor:
        """With a cache, the targets are only those tokens that it has not seen; a `head` is what `head_of` made.

        If it is said what is `wanted` after each token, the result is the summed cross-entropy.
        """
        if cache is None:
            return self.decode(target, *self.encode(source), head=head, wanted=wanted)
        if cache.memory is None:
            cache.fill(*self.encode(source))
        return self.decode(target, cache.memory, cache.mask, cache.stack, head)

    def _embedded(self, embedding: Any, positions: Any, norm: Any, tokens: Any, start: int) -> mg.Tensor:
        x = embedding(tokens)  # (B, T) -> (B, T, C)
        x = x if self.scale == 1 else x * self.scale
        x = x if positions is None else positions(x, start)
        return self.dropout(x if norm is None else norm(x))


def _added_positions(kind: str, dim: int, options: dict[str, Any]) -> tuple[Any, Any]:
    """What is added to the vectors of the sources, and to those of the targets: tables of their own if they are learned."""
    if kind == "learned":
        return nn.LearnedPositions(dim=dim, **options), nn.LearnedPositions(dim=dim, **options)
    sines = nn.SinusoidalPositions(dim, **options) if kind == "sinusoidal" else None
    return sines, sines


def _inner_positions(
    kind: str, stack: Mapping[str, Any], options: dict[str, Any], bidirectional: bool
) -> dict[str, Any]:
    """What self-attention knows of positions, as an option of the stack."""
    if kind == "rotary":
        return {"rotary": nn.RotaryPositions(stack.get("head_dim") or stack["dim"] // stack["heads"], **options)}
    if kind == "relative":
        return {"relative": nn.RelativePositions(stack["heads"], bidirectional=bidirectional, **options)}
    return {}


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
        own = mg.where(keeps | (target[:, 1:] == model.special.pad), target[:, 1:], chosen)
    return mg.concatenate([target[:, :1], own], axis=1)


def translation_loss(model: Translator, batch: Any) -> dict[str, Any]:
    """The cross-entropy of each next token, given those before it: targets `<s> a b </s>` are fed `<s> a b`, and are to give `a b </s>`."""
    device = model.embedding.weight.device
    source, target = (mg.tensor(part.ids, device=device) for part in (batch.source, batch.target))
    wanted = target[:, 1:]
    loss = model(source, fed(model, source, target[:, :-1]), wanted=wanted)
    return {"loss": (loss, mg.tensor(batch.target.lengths).sum() - len(batch.target))}
