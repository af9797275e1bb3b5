"""BERT: embeddings of tokens, places and segments, blocks that look both ways, and a head for the task at hand.

B is the batch, T the length of the texts, C the width, V the vocabulary, N how many tokens are to be guessed.
"""

from __future__ import annotations

from typing import Any

import minigrad as mg
from minigrad import nn
from minigrad.data import EOS, PAD
from minigrad.nn import functional as F

from .batches import IGNORED

Terms = dict[str, tuple[Any, Any]]  # what the Trainer takes: sums, and over how many
SHARPNESS, THRESHOLD = 10.0, 0.5  # at first: how much a cosine counts, and from which one texts are called the same


class Bert(nn.Module):
    """Tokens (B, T) -> vectors (B, T, C), each of which has seen the whole text; `head` makes of them what the task wants.

    A text is `<s> first </s>` or `<s> first </s> second </s>`, filled up with `<pad>`, which is masked.
    """

    def __init__(self, config: Any):
        dim, heads = config.dim, config.heads
        rotary = nn.RotaryPositions(dim // heads) if config.positions == "rotary" else None
        self.tokens, self.segments = nn.Embedding(config.vocab, dim), nn.Embedding(2, dim)
        self.places = None if rotary else nn.LearnedPositions(config.context, dim)
        self.norm, self.dropout = nn.LayerNorm(dim), nn.Dropout(config.dropout)
        self.encoder = nn.Encoder(
            config.layers, dim, heads, config.hidden, dropout=config.dropout, norm_first=config.norm == "pre",
            rotary=rotary,
        )  # fmt: skip
        for table in (self.tokens, self.segments):
            nn.init.gpt2_(table.weight)  # small, since the head that names words uses the same table
        self.head = HEADS[config.task](config)

    def forward(self, ids: Any) -> mg.Tensor:
        ids = mg.tensor(ids, device=self.tokens.weight.device)
        x = self.tokens(ids) + self.segments(segments_of(ids))  # (B, T) -> (B, T, C)
        x = x if self.places is None else self.places(x)
        return self.encoder(self.dropout(self.norm(x)), mask=nn.padding_mask(ids, PAD))


def segments_of(ids: mg.Tensor) -> mg.Tensor:
    """0 up to the first `</s>`, which is the first text, and 1 after it: (B, T) -> (B, T)."""
    ends = (ids == EOS).astype("int64")
    return (ends.cumsum(axis=1) - ends).clip(0, 1)


def beside(hidden: mg.Tensor, given: Any) -> mg.Tensor:
    """Labels or tokens on the device of the vectors."""
    return mg.tensor(given, device=hidden.device)


def surprise(logits: mg.Tensor, labels: mg.Tensor) -> tuple[mg.Tensor, mg.Tensor]:
    """The summed cross-entropy of logits (N, classes) with labels (N,), and how many count."""
    wrong = F.cross_entropy(logits, labels, ignore_index=IGNORED, reduction="sum")
    return wrong, (labels != IGNORED).sum()


def scored(answer: str, logits: mg.Tensor, labels: mg.Tensor) -> Terms:
    """How surprising the labels are, and how many of them are the likeliest."""
    wrong, units = surprise(logits, labels)
    return {answer: (wrong, units), f"{answer}_right": ((logits.argmax(axis=1) == labels).sum(), units)}


class Pool(nn.Module):
    """The vector of a whole text, through a layer of its own: (B, T, C) -> (B, C).

    Either that of `<s>`, as in the first BERT, or in each column the greatest of all tokens: whether something does not
    fit is then said by the token that does not, and `<s>` need not learn to ask all of them.
    """

    def __init__(self, config: Any):
        self.dense, self.kind = nn.Linear(config.dim, config.dim), config.pool

    def forward(self, hidden: mg.Tensor, ids: Any) -> mg.Tensor:
        if self.kind == "first":
            return self.dense(hidden[:, 0]).tanh()
        there = (beside(hidden, ids) != PAD).reshape(*ids.shape, 1)
        return mg.where(there, self.dense(hidden).tanh(), -1.0).max(axis=1)


class PretrainingHead(nn.Module):
    """Which words are hidden, by the table that words are embedded with, and whether the second text follows the first."""

    answers = ("words", "follows")

    def __init__(self, config: Any):
        self.dense, self.norm = nn.Linear(config.dim, config.dim), nn.LayerNorm(config.dim)
        self.bias = nn.Parameter(mg.zeros(config.vocab))
        self.pool, self.classes = Pool(config), nn.Linear(config.dim, 2)

    def words(self, vectors: mg.Tensor, table: mg.Tensor) -> mg.Tensor:
        """The logits of all words: (N, C), (V, C) -> (N, V)."""
        return F.linear(self.norm(F.gelu(self.dense(vectors))), table, self.bias)

    def follows(self, hidden: mg.Tensor, ids: Any) -> mg.Tensor:
        """The logits of no and of yes: (B, T, C) -> (B, 2)."""
        return self.classes(self.pool(hidden, ids))

    def terms(self, model: Bert, batch: Any) -> Terms:
        hidden = model(batch.ids)
        targets, labels = beside(hidden, batch.targets), beside(hidden, batch.follows)
        is_hidden = targets != IGNORED
        words = self.words(hidden[is_hidden], model.tokens.weight)  # (B, T, C) -> (N, C) -> (N, V)
        follows = self.follows(hidden, batch.ids)
        return {**scored("words", words, targets[is_hidden]), **scored("follows", follows, labels)}


class ClassHead(nn.Module):
    """The class of a text, or of two together: (B, T, C) -> (B, classes)."""

    answers = ("class",)

    def __init__(self, config: Any):
        self.pool, self.dropout = Pool(config), nn.Dropout(config.dropout)
        self.classes = nn.Linear(config.dim, max(len(config.classes), 2))

    def forward(self, hidden: mg.Tensor, ids: Any) -> mg.Tensor:
        return self.classes(self.dropout(self.pool(hidden, ids)))

    def terms(self, model: Bert, batch: Any) -> Terms:
        logits = self(model(batch.ids), batch.ids)
        return scored("class", logits, beside(logits, batch.labels)[:, 0])


class TagHead(nn.Module):
    """A class for each token: (B, T, C) -> (B, T, classes)."""

    answers = ("tag",)

    def __init__(self, config: Any):
        self.dropout, self.classes = nn.Dropout(config.dropout), nn.Linear(config.dim, max(len(config.classes), 2))

    def forward(self, hidden: mg.Tensor, ids: Any) -> mg.Tensor:
        return self.classes(self.dropout(hidden))

    def terms(self, model: Bert, batch: Any) -> Terms:
        logits = self(model(batch.ids), batch.ids)
        return scored("tag", logits.reshape(-1, logits.shape[-1]), beside(logits, batch.labels).reshape(-1))


class AnswerHead(nn.Module):
    """Where an answer begins and ends: (B, T, C) -> (B, T, 2), hardly possible outside of the second text."""

    answers = ("answer",)

    def __init__(self, config: Any):
        self.ends = nn.Linear(config.dim, 2)

    def forward(self, hidden: mg.Tensor, ids: Any) -> mg.Tensor:
        ids = beside(hidden, ids)
        is_inside = (segments_of(ids) == 1) & (ids != EOS) & (ids != PAD)
        return mg.where(is_inside.reshape(*ids.shape, 1), self.ends(hidden), -1e9)

    def spans(self, logits: mg.Tensor) -> mg.Tensor:
        """The likeliest begin and end, which is not before it: (B, T, 2) -> (B, 2)."""
        length = logits.shape[1]
        place = mg.arange(length, device=logits.device)
        pairs = logits[:, :, 0].reshape(-1, length, 1) + logits[:, :, 1].reshape(-1, 1, length)  # (B, T, T)
        best = mg.where(place.reshape(-1, 1) <= place, pairs, -float("inf")).reshape(-1, length * length)
        chosen = best.argmax(axis=1)
        return mg.stack([chosen // length, chosen % length], axis=1)

    def terms(self, model: Bert, batch: Any) -> Terms:
        logits = self(model(batch.ids), batch.ids)
        labels = beside(logits, batch.labels)
        with mg.no_grad():
            is_right = (self.spans(logits) == labels).all(axis=1)
        return {
            "begin": surprise(logits[:, :, 0], labels[:, 0]),
            "end": surprise(logits[:, :, 1], labels[:, 1]),
            "answer_right": (is_right.sum(), len(batch)),
        }


class SimilarHead(nn.Module):
    """How alike two texts are: the cosine of the means of their vectors, and from it the logit of "they say the same"."""

    answers = ("same",)

    def __init__(self, config: Any):
        self.sharpness = nn.Parameter(mg.tensor([SHARPNESS]))
        self.bias = nn.Parameter(mg.tensor([-SHARPNESS * THRESHOLD]))

    def forward(self, hidden: mg.Tensor, ids: Any) -> mg.Tensor:
        """The mean over tokens, of length 1: (B, T, C) -> (B, C)."""
        there = (beside(hidden, ids) != PAD).astype(hidden.dtype)
        mean = (hidden * there.reshape(*ids.shape, 1)).sum(axis=1) / there.sum(axis=1, keepdims=True)
        return mean / (mean**2).sum(axis=1, keepdims=True).sqrt()

    def logits(self, cosines: mg.Tensor) -> mg.Tensor:
        return cosines * self.sharpness + self.bias

    def terms(self, model: Bert, batch: Any) -> Terms:
        first, second = (self(model(ids), ids) for ids in (batch.ids, batch.others))
        logits = self.logits((first * second).sum(axis=1))  # (B, C) -> (B,)
        labels = beside(logits, batch.labels)[:, 0]
        wrong = F.binary_cross_entropy_with_logits(logits, labels.astype(logits.dtype), reduction="sum")
        return {"same": (wrong, len(batch)), "same_right": (((logits > 0) == (labels > 0)).sum(), len(batch))}


HEADS: dict[str, Any] = {
    "pretrain": PretrainingHead, "classify": ClassHead, "tag": TagHead, "answer": AnswerHead, "similar": SimilarHead,
}  # fmt: skip
