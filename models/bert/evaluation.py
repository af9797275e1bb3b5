"""How good a model is on texts that it has never seen, beside bags of words that learned from the same.

A bag of words says which words there are, but not in which order. The baseline is logistic regression on that, trained
by minigrad on the same examples, with a rate that falls to nothing.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import nn
from minigrad.data import EOS, SPECIALS, Padded
from minigrad.metrics import perplexity
from minigrad.nn import functional as F
from minigrad.optim import AdamW, Cosine
from minigrad.train import ListBatches
from minigrad.train.evaluation import evaluate as mean_loss

from ..corpora import stories
from .batches import IGNORED, MASKED, MaskedBatch
from .examples import batches_of, examples_of
from .text import HELD_OUT
from .tokens import Frame, Specials, encoded, is_pretrained, joined

STORIES, ROWS = 500, 50  # whose last word is predicted, so many at once
LARGEST = 10_000_000  # weights of a bag of words; beyond, there is none
STEPS, TOKENS, LR = 1500, 8192, 0.02


def bags(ids: np.ndarray, vocab: int) -> np.ndarray:
    """How often each word is in a text, special tokens left out: (B, T) -> (B, V)."""
    places = np.arange(len(ids))[:, None] * vocab + ids
    counts = np.bincount(places.reshape(-1), minlength=len(ids) * vocab).reshape(len(ids), vocab)
    counts[:, : len(SPECIALS)] = 0
    return counts.astype(np.float32)


def pair_bags(ids: np.ndarray, vocab: int) -> np.ndarray:
    """The bags of the first text, of the second, and of the words that both have: (B, T) -> (B, 3V)."""
    is_second = np.cumsum(ids == EOS, axis=1) > 0
    first, second = bags(np.where(is_second, 0, ids), vocab), bags(np.where(is_second, ids, 0), vocab)
    return np.concatenate([first, second, np.minimum(first, second)], axis=1)


def seen_as_bags(answer: str, batch: Any, vocab: int) -> tuple[np.ndarray, np.ndarray]:
    """What a bag of words has to answer from, and the answers: (N, features), (N, M), IGNORED where there is none."""
    ids = batch.ids
    if answer == "words":
        return bags(ids, vocab), batch.targets
    if answer == "tag":  # from the word alone
        is_word = batch.labels != IGNORED
        return bags(ids[is_word][:, None], vocab), batch.labels[is_word][:, None]
    if answer == "follows":
        return pair_bags(ids, vocab), batch.follows[:, None]
    if answer == "answer":  # the first word of it
        return pair_bags(ids, vocab), np.take_along_axis(ids, batch.labels[:, :1], axis=1)
    texts = np.concatenate([ids, batch.others], axis=1) if answer == "same" else ids
    return pair_bags(texts, vocab), batch.labels


class Bag:
    """Logistic regression on bags of words, for one of the answers that a head gives."""

    def __init__(self, answer: str, config: Any):
        self.answer, self.vocab = answer, config.vocab
        self.layer = nn.Linear(*sizes_of(answer, config))
        for parameter in self.layer.parameters():
            nn.init.zeros_(parameter)

    def _logits(self, batch: Any) -> tuple[mg.Tensor, mg.Tensor]:
        """(N, classes), and which of them are right, (N,)."""
        x, wanted = seen_as_bags(self.answer, batch, self.vocab)
        rows, columns = np.nonzero(wanted != IGNORED)
        return self.layer(mg.tensor(x))[mg.tensor(rows)], mg.tensor(wanted[rows, columns])

    def fit(self, batches: Any) -> Bag:
        """Learn from a sampler."""
        optimizer = AdamW(self.layer.parameters(), lr=LR, weight_decay=0.01)
        schedule = Cosine(optimizer, STEPS)
        for batch in islice(batches.forever(), STEPS):
            optimizer.zero_grad()
            with mg.enable_grad():
                F.cross_entropy(*self._logits(batch)).backward()
            optimizer.step()
            schedule.step()
        return self

    def right(self, batches: Iterable[Any]) -> float:
        """The share of answers that are right."""
        hits: list[bool] = []
        with mg.no_grad():
            for batch in batches:
                logits, wanted = self._logits(batch)
                hits += (logits.argmax(axis=1) == wanted).tolist()
        return float(np.mean(hits))


def sizes_of(answer: str, config: Any) -> tuple[int, int]:
    """How many features a bag of words has for an answer, and among how many classes it chooses."""
    features = config.vocab if answer in ("words", "tag") else 3 * config.vocab
    return features, {"words": config.vocab, "answer": config.vocab}.get(answer) or max(len(config.classes), 2)


def evaluate(loaded: Any, path: str | None) -> dict[str, Any]:
    """All numbers on texts held out, or on all of another file: of the model, of the bags of words, and the margins."""
    config, tokenizer, own = loaded.config, loaded.tokenizer, loaded.arguments["data"]
    learned, held, _ = examples_of(config, own)
    evaluated, by = (held, "texts held out") if held else (learned, "what it learned from: nothing is held out")
    if path is not None and os.path.abspath(path) != own:
        other = examples_of(config, path)
        evaluated, by = other.learned + other.held, "another file"
    large = dataclasses.replace(config, batch=TOKENS)
    taught = {
        answer: Bag(answer, config).fit(batches_of(large, tokenizer, learned))
        for answer in loaded.model.head.answers
        if math.prod(sizes_of(answer, config)) <= LARGEST and not is_pretrained(tokenizer)
    }
    batches = batches_of(config, tokenizer, evaluated, evaluating=True)
    found = {"evaluated_on": by, "texts": len(batches.examples), **compared(loaded, batches, taught)}
    if config.task in MASKED:
        found["perplexity"] = perplexity(found.get("loss_words", found["loss"]))
    if config.task in MASKED and path is None and not is_pretrained(tokenizer):
        last = compared(loaded, last_words(config, tokenizer), {k: taught[k] for k in taught if k == "words"})
        found |= {name.replace("words", "last_word"): last[name] for name in last if name.startswith("words")}
    return found


def compared(loaded: Any, batches: Any, taught: dict[str, Bag]) -> dict[str, Any]:
    """The losses of a model, and what share of each answer is right: its own, that of a bag of words, and the margin."""
    names = [f"{answer}_right" for answer in loaded.model.head.answers]
    means = mean_loss(loaded.model, lambda model, batch: model.head.terms(model, batch), batches, names)
    found: dict[str, Any] = {name: value for name, value in means.items() if name not in names}
    for name in names:
        found[name] = means[name]
        if bag := taught.get(name.removesuffix("_right")):
            found[f"{name}_by_bag"] = bag.right(batches)
            found[f"{name}_margin"] = found[name] - found[f"{name}_by_bag"]
    return found


def last_words(config: Any, tokenizer: Any) -> ListBatches:
    """Held-out stories with their last word hidden, which follows from the rest."""
    texts, frame, specials = [], Frame.of(tokenizer), Specials(*config.specials)
    for story in stories(STORIES, HELD_OUT):
        *before, last = (encoded(tokenizer, sentence) for sentence in story.sentences)
        texts.append(joined([token for sentence in before for token in sentence], last, config.context, frame))
    batches = []
    for start in range(0, len(texts), ROWS):
        ids = Padded.of(texts[start : start + ROWS], specials.pad).ids
        places = (ids != specials.pad).sum(axis=1)[:, None] - len(frame.after) - 2  # before the full stop and </s>
        targets = np.full_like(ids, IGNORED)
        np.put_along_axis(targets, places, np.take_along_axis(ids, places, axis=1), axis=1)
        hidden = np.where(targets != IGNORED, specials.mask, ids)
        batches.append(MaskedBatch(hidden, targets, np.full(len(ids), IGNORED)))
    return ListBatches(batches, shuffle=False)
