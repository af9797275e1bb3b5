"""An encoder-decoder of recurrent layers, with and without Bahdanau's attention.

B is the batch, S the length of the sources, T that of the targets, C the width of the vectors of tokens, H that of the
state, L the number of layers, V the size of the vocabulary.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import nn
from minigrad.decode import SpecialIds
from minigrad.nn import functional as F

from ..rnn.model import LAYERS


class Attention(nn.Module):
    """Bahdanau's additive attention: place j of a memory has the score `v · tanh(W s + U h_j)` for a state s.

    A state (B, H), a memory (B, S, H), its keys `U h` (B, S, H), and where there are tokens (B, S) -> the mean of the
    memory by the softmax of the scores, (B, H), and these weights, (B, S).
    """

    def __init__(self, size: int):
        self.query = nn.Linear(size, size)
        self.key = nn.Linear(size, size, bias=False)
        self.score = nn.Linear(size, 1, bias=False)

    def forward(self, state: Any, memory: Any, keys: Any, there: Any) -> tuple[mg.Tensor, mg.Tensor]:
        scores = self.score(mg.tanh(self.query(state)[:, None] + keys))[:, :, 0]  # (B, S, H) -> (B, S)
        weights = F.softmax(mg.where(there, scores, -np.inf), axis=-1)
        return (weights[:, None] @ memory)[:, 0], weights  # (B, 1, S) @ (B, S, H) -> (B, H)


class DecoderState:
    """What the decoder goes on from: the state, and for attention the memory of the sources. It is the cache of decoding, too."""

    def __init__(self) -> None:
        self.state: Any = None  # (L, B, H), for an LSTM a pair with the cells
        self.memory: tuple[mg.Tensor, ...] = ()  # the outputs of the encoder, their keys, and where there are tokens
        self.weights: list[mg.Tensor] | None = None  # of each step so far, (B, S), if somebody wants to see them

    @property
    def top(self) -> mg.Tensor:
        """The state of the last layer, (B, H)."""
        hidden = self.state[0] if isinstance(self.state, tuple) else self.state
        return hidden[-1]  # type: ignore[no-any-return]

    def select(self, rows: Any) -> None:
        """Go on with these rows, in this order; one may come more than once."""
        if self.state is None:
            return
        is_pair = isinstance(self.state, tuple)
        self.state = tuple(part[:, rows] for part in self.state) if is_pair else self.state[:, rows]
        self.memory = tuple(part[rows] for part in self.memory)


class Seq2Seq(nn.Module):
    """Token numbers of sources (B, S) and of targets so far (B, T) -> logits of the next target tokens (B, T, V).

    The encoder reads in both directions, H / 2 numbers each, and where it ends the decoder begins: with no `attention` its
    state is all that the decoder ever learns of the source. With attention, each step of the decoder also gets what its
    state looks for in the outputs of the encoder. One matrix embeds both languages, and gives the logits.

    `teacher_forcing` is how often, in training, the decoder is fed the true token, and not its own choice.
    """

    def __init__(
        self,
        cell: str,
        vocab: int,
        dim: int,
        hidden: int,
        layers: int = 1,
        *,
        attention: bool = False,
        teacher_forcing: float = 1.0,
        dropout: float = 0.0,
        smoothing: float = 0.0,
    ):
        self.vocab, self.teacher_forcing, self.smoothing = vocab, teacher_forcing, smoothing
        self.special, self.scale = SpecialIds(), math.sqrt(dim)
        self.embedding = nn.Embedding(vocab, dim)
        nn.init.normal_(self.embedding.weight, std=dim**-0.5)
        self.dropout = nn.Dropout(dropout)
        options: dict[str, Any] = {"batch_first": True, "dropout": dropout}
        self.encoder = LAYERS[cell](dim, hidden // 2, layers, bidirectional=True, **options)
        self.attention = Attention(hidden) if attention else None
        context = hidden if attention else 0
        self.decoder = LAYERS[cell](dim + context, hidden, layers, **options)
        self.out = nn.Linear(hidden + context, dim)
        self.head_bias = nn.Parameter(mg.zeros(vocab))
        self.vocabulary = nn.VocabularyHead()

    def new_cache(self) -> DecoderState:
        """Where decoding token by token begins."""
        return DecoderState()

    def encode(self, source: Any, begin: DecoderState) -> None:
        """Read the sources (B, S), and have the decoder begin where that ends."""
        there = source != self.special.pad
        out, state = self.encoder(self._embedded(source), lengths=there.sum(axis=1))  # (B, S, H), (2L, B, H / 2)
        begin.state = tuple(map(_joined, state)) if isinstance(state, tuple) else _joined(state)
        if self.attention is not None:
            begin.memory = out, self.attention.key(out), there

    def decode(self, target: Any, state: DecoderState) -> mg.Tensor:
        """Feed the decoder some tokens, and move its state: (B, n) -> vectors (B, n, C), whose products with those of words are logits."""
        x = self._embedded(target)
        if self.attention is None:
            x, state.state = self.decoder(x, state.state)  # (B, n, C) -> (B, n, H), by one call for all steps
            return self._out(x)
        made = []
        for step in range(x.shape[1]):  # what is looked for depends on the state before
            context, weights = self.attention(state.top, *state.memory)
            fed = mg.concatenate([x[:, step], context], axis=-1)[:, None]
            out, state.state = self.decoder(fed, state.state)  # (B, 1, C + H) -> (B, 1, H)
            made.append(mg.concatenate([out[:, 0], context], axis=-1))
            if state.weights is not None:
                state.weights.append(weights)
        return self._out(mg.stack(made, axis=1))

    def forward(self, source: Any, target: Any, cache: DecoderState | None = None, wanted: Any = None) -> mg.Tensor:
        """With a cache, the targets are only those tokens that it has not seen.

        If it is said what is `wanted` after each token, the result is the summed cross-entropy, smoothed in training.
        """
        state = DecoderState() if cache is None else cache
        if state.state is None:
            self.encode(source, state)
        is_forced = wanted is None or not self.training or self.teacher_forcing == 1
        x = self.decode(target, state) if is_forced else self._partly_forced(target, state)
        own = x, self.embedding.weight, self.head_bias
        if wanted is None:
            return self.vocabulary(*own)  # type: ignore[no-any-return]  # (B, T, C) -> (B, T, V)
        smoothing = self.smoothing if self.training else 0.0
        options = {"ignore_index": self.special.pad, "label_smoothing": smoothing}
        return self.vocabulary.cross_entropy(self.vocabulary.scores(*own), wanted, **options)

    def _partly_forced(self, target: mg.Tensor, state: DecoderState) -> mg.Tensor:
        """As `decode`, where after the first a token is now and then what the decoder itself chose after the one before."""
        with mg.no_grad():  # drawn as dropout is: by the step and the place, so that a resumed run draws the same
            is_true = F.dropout(mg.ones(*target.shape, device=target.device), 1 - self.teacher_forcing) > 0
        fed, made = target[:, :1], []
        for step in range(target.shape[1]):
            made.append(self.decode(fed, state))
            if step + 1 < target.shape[1]:
                with mg.no_grad():
                    chosen = self.vocabulary(made[-1], self.embedding.weight, self.head_bias).argmax(axis=-1)  # (B, 1)
                    after = slice(step + 1, step + 2)
                    fed = mg.where(is_true[:, after], target[:, after], chosen)
        return mg.concatenate(made, axis=1)

    def _embedded(self, tokens: Any) -> mg.Tensor:
        return self.dropout(self.embedding(tokens) * self.scale)  # type: ignore[no-any-return]

    def _out(self, x: mg.Tensor) -> mg.Tensor:
        return self.out(self.dropout(x))  # type: ignore[no-any-return]


def _joined(state: mg.Tensor) -> mg.Tensor:
    """Both directions of each layer side by side: (2L, B, H / 2) -> (L, B, H)."""
    count, batch, size = state.shape
    return state.reshape(count // 2, 2, batch, size).swapaxes(1, 2).reshape(count // 2, batch, 2 * size)


def seq2seq_loss(model: Seq2Seq, batch: Any) -> dict[str, Any]:
    """The cross-entropy of each next token: targets `<s> a b </s>` are fed `<s> a b`, or what was chosen, and are to give `a b </s>`."""
    device = model.embedding.weight.device
    source, target = (mg.tensor(part.ids, device=device) for part in (batch.source, batch.target))
    loss = model(source, target[:, :-1], wanted=target[:, 1:])
    return {"loss": (loss, mg.tensor(batch.target.lengths).sum() - len(batch.target))}


def alignment(model: Seq2Seq, source: Any, target: Any) -> np.ndarray:
    """How much each step of the decoder takes from each place of the source, in evaluation mode: (B, S), (B, T) -> (B, T, S)."""
    state = model.new_cache()
    state.weights = []
    with mg.no_grad():
        model.eval()(mg.tensor(source), mg.tensor(target), cache=state)
    return np.stack([weights.numpy() for weights in state.weights], axis=1)
