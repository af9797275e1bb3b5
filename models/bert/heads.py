"""What is made of the vectors of a text: words for blanks, classes, tags, answers, or one vector for the whole.

B is the batch, T the length of the texts, C the width, V the vocabulary, N how many tokens are to be guessed. Every head has
`terms(model, batch)`, what is learned from; `logits(model, hidden, ids, is_token)`; and `vectors(hidden, is_token)`.
"""

from __future__ import annotations

from typing import Any

import minigrad as mg
from minigrad import nn
from minigrad.errors import ArgumentError
from minigrad.nn import functional as F
from minigrad.nn.layers.mlp import UNGATED

from .batches import IGNORED
from .tokens import Specials, segments_of

Terms = dict[str, tuple[Any, Any]]  # what the Trainer takes: sums, and over how many
SHARPNESS, THRESHOLD = 10.0, 0.5  # at first: how much a cosine counts, and from which one texts are called the same


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


def pooled(kind: str, hidden: mg.Tensor, is_token: Any) -> mg.Tensor:
    """The first vector of a text, the greatest value of each column, or the mean: (B, T, C) -> (B, C)."""
    if kind == "first":
        return hidden[:, 0]
    if is_token is None:
        return hidden.max(axis=1) if kind == "max" else hidden.mean(axis=1)
    there = is_token.reshape(*is_token.shape, 1)  # (B, T, 1)
    if kind == "max":
        return mg.where(there, hidden, -mg.inf).max(axis=1)
    there = there.astype(hidden.dtype)
    return (hidden * there).sum(axis=1) / there.sum(axis=1)


class Head(nn.Module):
    """What all heads have in common: how a text becomes one vector, and which tokens are padding."""

    answers: tuple[str, ...] = ()

    def __init__(self, config: Any):
        self.kind, self.is_normalized, self.specials = config.pool, config.normalize, Specials(*config.specials)

    def vectors(self, hidden: mg.Tensor, is_token: Any) -> mg.Tensor:
        """One vector for each text: (B, T, C) -> (B, C)."""
        made = pooled(self.kind, hidden, is_token)
        return made / (made**2).sum(axis=1, keepdims=True).sqrt() if self.is_normalized else made

    def logits(self, model: Any, hidden: mg.Tensor, ids: mg.Tensor, is_token: Any) -> mg.Tensor:
        raise ArgumentError(
            "bert: this model has no head that gives logits", "a model of words, classes, tags or answers"
        )

    def _tokens(self, hidden: mg.Tensor, ids: Any) -> mg.Tensor:
        """Which tokens are no padding: (B, T) -> (B, T)."""
        return beside(hidden, ids) != self.specials.pad


class Pool(nn.Module):
    """The vector of a whole text, through a layer of its own: (B, T, C) -> (B, C).

    Either that of `<s>`, as in the first BERT, or the mean, or in each column the greatest of all tokens: whether something
    does not fit is then said by the token that does not, and `<s>` need not learn to ask all of them.
    """

    def __init__(self, config: Any):
        self.dense, self.kind, self.activation = nn.Linear(config.dim, config.dim), config.pool, config.pool_activation

    def forward(self, hidden: mg.Tensor, is_token: Any) -> mg.Tensor:
        activation = UNGATED[self.activation]
        if self.kind == "max":
            return pooled("max", activation(self.dense(hidden)), is_token)
        return activation(self.dense(pooled(self.kind, hidden, is_token)))


class WordHead(Head):
    """Which words are hidden, by the table that words are embedded with."""

    answers = ("words",)

    def __init__(self, config: Any):
        super().__init__(config)
        self.dense, self.norm = nn.Linear(config.dim, config.dim), nn.LayerNorm(config.dim, config.eps)
        self.bias = nn.Parameter(mg.zeros(config.vocab))
        self.activation = config.word_activation or config.activation

    def words(self, vectors: mg.Tensor, model: Any) -> mg.Tensor:
        """The logits of all words: (…, C) -> (…, V)."""
        return model.vocabulary(self._ready(vectors), model.tokens.weight, self.bias)

    def _ready(self, vectors: mg.Tensor) -> mg.Tensor:
        return self.norm(UNGATED[self.activation](self.dense(vectors)))

    def logits(self, model: Any, hidden: mg.Tensor, ids: mg.Tensor, is_token: Any) -> mg.Tensor:
        return self.words(hidden, model)

    def terms(self, model: Any, batch: Any) -> Terms:
        return self._word_terms(model, model(batch.ids), batch)

    def _word_terms(self, model: Any, hidden: mg.Tensor, batch: Any) -> Terms:
        targets = beside(hidden, batch.targets)
        is_hidden = targets != IGNORED
        head, wanted = model.vocabulary, targets[is_hidden]  # (B, T) -> (N,)
        scores = head.scores(self._ready(hidden[is_hidden]), model.tokens.weight, self.bias)  # (N, C) -> (N, V)
        return {
            "words": (head.cross_entropy(scores, wanted), wanted.size),
            "words_right": (head.right(scores, wanted), wanted.size),
        }


class PretrainingHead(WordHead):
    """Which words are hidden, and whether the second text follows the first."""

    answers = ("words", "follows")

    def __init__(self, config: Any):
        super().__init__(config)
        self.pool, self.classes = Pool(config), nn.Linear(config.dim, 2)

    def follows(self, hidden: mg.Tensor, ids: Any) -> mg.Tensor:
        """The logits of no and of yes: (B, T, C) -> (B, 2)."""
        return self.classes(self.pool(hidden, self._tokens(hidden, ids)))

    def terms(self, model: Any, batch: Any) -> Terms:
        hidden = model(batch.ids)
        follows = self.follows(hidden, batch.ids)
        return {
            **self._word_terms(model, hidden, batch),
            **scored("follows", follows, beside(hidden, batch.follows)),
        }


class ClassHead(Head):
    """The class of a text, or of two together: (B, T, C) -> (B, classes)."""

    answers = ("class",)

    def __init__(self, config: Any):
        super().__init__(config)
        self.pool, self.dropout = Pool(config), nn.Dropout(config.dropout)
        self.classes = nn.Linear(config.dim, max(len(config.classes), 2))

    def forward(self, hidden: mg.Tensor, ids: Any) -> mg.Tensor:
        return self.logits(None, hidden, ids, self._tokens(hidden, ids))

    def logits(self, model: Any, hidden: mg.Tensor, ids: mg.Tensor, is_token: Any) -> mg.Tensor:
        return self.classes(self.dropout(self.pool(hidden, is_token)))

    def terms(self, model: Any, batch: Any) -> Terms:
        logits = self(model(batch.ids), batch.ids)
        return scored("class", logits, beside(logits, batch.labels)[:, 0])


class TagHead(Head):
    """A class for each token: (B, T, C) -> (B, T, classes)."""

    answers = ("tag",)

    def __init__(self, config: Any):
        super().__init__(config)
        self.dropout, self.classes = nn.Dropout(config.dropout), nn.Linear(config.dim, max(len(config.classes), 2))

    def forward(self, hidden: mg.Tensor, ids: Any) -> mg.Tensor:
        return self.classes(self.dropout(hidden))

    def logits(self, model: Any, hidden: mg.Tensor, ids: mg.Tensor, is_token: Any) -> mg.Tensor:
        return self(hidden, ids)

    def terms(self, model: Any, batch: Any) -> Terms:
        logits = self(model(batch.ids), batch.ids)
        return scored("tag", logits.reshape(-1, logits.shape[-1]), beside(logits, batch.labels).reshape(-1))


class AnswerHead(Head):
    """Where an answer begins and ends: (B, T, C) -> (B, T, 2), hardly possible outside of the second text."""

    answers = ("answer",)

    def __init__(self, config: Any):
        super().__init__(config)
        self.ends = nn.Linear(config.dim, 2)

    def forward(self, hidden: mg.Tensor, ids: Any) -> mg.Tensor:
        ids = beside(hidden, ids)
        is_inside = (segments_of(ids, self.specials.sep) == 1) & (ids != self.specials.sep) & (ids != self.specials.pad)
        return mg.where(is_inside.reshape(*ids.shape, 1), self.ends(hidden), -1e9)

    def logits(self, model: Any, hidden: mg.Tensor, ids: mg.Tensor, is_token: Any) -> mg.Tensor:
        return self.ends(hidden)

    def spans(self, logits: mg.Tensor) -> mg.Tensor:
        """The likeliest begin and end, which is not before it: (B, T, 2) -> (B, 2)."""
        length = logits.shape[1]
        place = mg.arange(length, device=logits.device)
        pairs = logits[:, :, 0].reshape(-1, length, 1) + logits[:, :, 1].reshape(-1, 1, length)  # (B, T, T)
        best = mg.where(place.reshape(-1, 1) <= place, pairs, -float("inf")).reshape(-1, length * length)
        chosen = best.argmax(axis=1)
        return mg.stack([chosen // length, chosen % length], axis=1)

    def terms(self, model: Any, batch: Any) -> Terms:
        logits = self(model(batch.ids), batch.ids)
        labels = beside(logits, batch.labels)
        with mg.no_grad():
            is_right = (self.spans(logits) == labels).all(axis=1)
        return {
            "begin": surprise(logits[:, :, 0], labels[:, 0]),
            "end": surprise(logits[:, :, 1], labels[:, 1]),
            "answer_right": (is_right.sum(), len(batch)),
        }


class EmbedHead(Head):
    """No more than the vectors of texts; two that say the same are to have the cosine 1, others 0."""

    answers = ("same",)

    def forward(self, hidden: mg.Tensor, ids: Any) -> mg.Tensor:
        """One vector for each text, of length 1: (B, T, C) -> (B, C)."""
        made = pooled(self.kind, hidden, self._tokens(hidden, ids))
        return made / (made**2).sum(axis=1, keepdims=True).sqrt()

    def cosines(self, model: Any, batch: Any) -> tuple[mg.Tensor, mg.Tensor]:
        """Those of the pairs of a batch, and whether they say the same: both (B,)."""
        first, second = (self(model(ids), ids) for ids in (batch.ids, batch.others))
        cosines = (first * second).sum(axis=1)  # (B, C) -> (B,)
        return cosines, beside(cosines, batch.labels)[:, 0]

    def terms(self, model: Any, batch: Any) -> Terms:
        cosines, labels = self.cosines(model, batch)
        wrong = ((cosines - labels.astype(cosines.dtype)) ** 2).sum()
        return {"same": (wrong, len(batch)), "same_right": (((cosines > THRESHOLD) == (labels > 0)).sum(), len(batch))}


class SimilarHead(EmbedHead):
    """How alike two texts are: the cosine of the means of their vectors, and from it the logit of "they say the same"."""

    def __init__(self, config: Any):
        super().__init__(config)
        self.kind, self.is_normalized = "mean", True
        self.sharpness = nn.Parameter(mg.tensor([SHARPNESS]))
        self.bias = nn.Parameter(mg.tensor([-SHARPNESS * THRESHOLD]))

    def same(self, cosines: mg.Tensor) -> mg.Tensor:
        """The logit of "they say the same"."""
        return cosines * self.sharpness + self.bias

    def terms(self, model: Any, batch: Any) -> Terms:
        cosines, labels = self.cosines(model, batch)
        logits = self.same(cosines)
        wrong = F.binary_cross_entropy_with_logits(logits, labels.astype(logits.dtype), reduction="sum")
        return {"same": (wrong, len(batch)), "same_right": (((logits > 0) == (labels > 0)).sum(), len(batch))}


HEADS: dict[str, Any] = {
    "pretrain": PretrainingHead, "fill": WordHead, "embed": EmbedHead, "classify": ClassHead, "tag": TagHead,
    "answer": AnswerHead, "similar": SimilarHead,
}  # fmt: skip
