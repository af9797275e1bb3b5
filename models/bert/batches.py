"""From texts to batches: two texts in one row of tokens, words hidden for the model to guess, and labels.

Of the words that are to be guessed most are behind `<mask>`, some behind another word, some not hidden at all. If all were
behind `<mask>`, the model would learn nothing about words that it can see, and fine-tuning shows it nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from minigrad.data import Batch, BatchReport, Padded, SequenceBatches

from .tokens import OWN, Frame, Specials, joined

IGNORED = -100  # the label of what is not to be guessed
USUAL = (0.8, 0.1)  # the shares of chosen words that become <mask>, and that become any word; the rest stays
BLANKS = (1.0, 0.0)
MASKED, PAIRED = ("pretrain", "fill"), ("similar", "embed")  # tasks that guess words, and that compare two texts


def words_of(vocab: int, specials: Specials) -> np.ndarray:
    """The numbers of all tokens that are not special."""
    return np.setdiff1d(np.arange(vocab), specials)


def mask_tokens(
    ids: np.ndarray,
    vocab: int,
    share: float,
    draw: np.random.Generator,
    ways: tuple[float, float] = USUAL,
    specials: Specials = OWN,
) -> tuple[np.ndarray, np.ndarray]:
    """Hide a share of the words of each text, at least one: (B, T) -> the texts with words hidden, and which they were.

    Targets are IGNORED wherever nothing is to be guessed. Special tokens, `<unk>` too, are never chosen.
    """
    is_word = ~np.isin(ids, specials)  # (B, T)
    there = is_word.sum(axis=1, keepdims=True)
    counts = np.minimum(np.maximum(np.round(share * there), 1), there)
    order = np.where(is_word, draw.random(ids.shape), 2.0).argsort(axis=1)  # at random, words first
    chosen = order.argsort(axis=1) < counts
    words = words_of(vocab, specials)
    way, others = draw.random(ids.shape), words[draw.integers(0, len(words), ids.shape)]
    changed = np.where(way < ways[0], specials.mask, np.where(way < sum(ways), others, ids))
    return np.where(chosen, changed, ids), np.where(chosen, ids, IGNORED)


@dataclass(frozen=True)
class MaskedBatch(Batch):
    """Texts with words hidden, what these are, and whether the second text follows the first: 1, 0, or IGNORED."""

    ids: Any  # (B, T)
    targets: Any  # (B, T)
    follows: Any  # (B,)


@dataclass(frozen=True)
class LabelledBatch(Batch):
    """Texts with one label, with one for each token, or with where the answer begins and ends."""

    ids: Any  # (B, T)
    labels: Any  # (B, 1), (B, T) or (B, 2)


@dataclass(frozen=True)
class TwoTexts(Batch):
    """Pairs of texts that are read each for itself, and whether they say the same."""

    ids: Any  # (B, T)
    others: Any  # (B, T')
    labels: Any  # (B, 1)


class Labelled(SequenceBatches):
    """Batches of `(ids, labels)`, or of `(ids, other ids, labels)`."""

    _expected = "ids and labels"

    def _columns(self, example: Any) -> tuple[Sequence[int], ...]:
        return tuple(example)

    def _made(self, columns: list[Padded]) -> Batch:
        *texts, labels = columns
        filled = np.where(labels.mask, labels.ids, IGNORED)
        kind: Any = LabelledBatch if len(texts) == 1 else TwoTexts
        return kind(*(text.ids for text in texts), filled)

    def _reported(self, *counts: int) -> BatchReport:
        report = super()._reported(*counts)
        return replace(report, unknown=report.unknown[:-1])  # labels are no words


class MaskedPairs(Labelled):
    """Batches of pairs `(ids, [follows])` with words hidden, in every epoch others.

    Which are hidden follows from seed, epoch and batch. With `blanks` all are behind `<mask>`, always the same ones.
    """

    def __init__(
        self,
        examples: Any,
        max_tokens: int,
        vocab: int,
        share: float,
        seed: int = 0,
        blanks: bool = False,
        specials: Specials = OWN,
    ):
        self.vocab, self.share, self.blanks, self.specials = vocab, share, blanks, specials
        super().__init__(examples, max_tokens, seed=seed, shuffle=not blanks, pad=specials.pad, unk=specials.unk)

    def batch(self, epoch: int, index: int) -> MaskedBatch:
        made = super().batch(epoch, index)
        draw = np.random.default_rng([self.seed, 0 if self.blanks else epoch, index, 1])
        ways = BLANKS if self.blanks else USUAL
        hidden = mask_tokens(made.ids, self.vocab, self.share, draw, ways, self.specials)
        return MaskedBatch(*hidden, made.labels[:, 0])

    def _identity(self) -> dict[str, Any]:
        return {**super()._identity(), "vocab": self.vocab, "share": self.share, "blanks": self.blanks}


def tiny_batch(config: Any) -> Any:
    """Two pairs of texts of random words, one shorter than the other."""
    draw, specials = np.random.default_rng(0), Specials(*config.specials)
    known, frame = words_of(config.vocab, specials), Frame((specials.cls,), (specials.sep,), (specials.sep,))
    words = [known[draw.integers(0, len(known), size)].tolist() for size in (4, 3, 3, 1)]
    rows = [joined(words[i], words[i + 1], config.context, frame) for i in (0, 2)]
    ids = Padded.of(rows, specials.pad).ids  # (2, 10)
    one = np.array([[1], [0]])
    if config.task in MASKED:
        return MaskedBatch(*mask_tokens(ids, config.vocab, config.mask, draw, USUAL, specials), one[:, 0])
    if config.task in PAIRED:
        return TwoTexts(ids, ids[::-1].copy(), one)
    labels = {
        "classify": one, "tag": np.where(ids == specials.pad, IGNORED, ids % 2), "answer": np.array([[6, 7], [5, 5]]),
    }  # fmt: skip
    return LabelledBatch(ids, labels[config.task])
