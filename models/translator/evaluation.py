"""Evaluation of a translator: loss and accuracy with teacher forcing, and scores of its own translations."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import minigrad as mg
from minigrad.data import PairBatches
from minigrad.decode import greedy_all
from minigrad.decode.encoder_decoder import special_ids
from minigrad.errors import ArgumentError, MissingExtraError, install_hint
from minigrad.metrics import corpus_bleu, corpus_chrf, exact_match, perplexity, sentence_bleu
from minigrad.zoo.data import paths_of

from .corpus import Corpus, Pair, corpus_of, form_of
from .preparation import source_ids, target_ids
from .translation import translate

SHOWN = 5  # examples
QUICK = 100  # sentences that are translated at each validation, of each kind


def encoded_pairs(config: Any, tokenizer: Any, pairs: Sequence[Pair]) -> list[tuple[list[int], list[int]]]:
    """Pairs as tokens; those that are longer than what was trained on are left out, and it is refused to be left with none."""
    made = [(source_ids(config, tokenizer, source), target_ids(config, tokenizer, target)) for source, target in pairs]
    found = [pair for pair in made if max(map(len, pair)) <= config.max_length]
    if not found:
        raise ArgumentError(
            "translator: there is nothing to evaluate it on",
            f"a pair of at most {config.max_length} tokens on each side",
            f"{len(made):,} that are longer",
            "give shorter sentences, or train with a larger max_length",
        )
    return found


class Forced(NamedTuple):
    """Fed the true tokens: the summed loss, how many tokens there are, and for each position how many are right, of how many."""

    loss: float
    tokens: int
    right: np.ndarray
    count: np.ndarray


def forced(model: Any, examples: Sequence[tuple[list[int], list[int]]], batch: int) -> Forced:
    """What the model says to the true tokens, without smoothing."""
    longest = max(len(target) for _, target in examples) - 1
    loss, right, count = 0.0, np.zeros(longest, int), np.zeros(longest, int)
    width = max(max(map(len, pair)) for pair in examples)
    pad = special_ids(model).pad
    for part in PairBatches(examples, max(batch, width), shuffle=False, pad=pad):
        source, target = (
            mg.tensor(side.ids, device=model.embedding.weight.device) for side in (part.source, part.target)
        )
        wanted = part.target.ids[:, 1:]  # (B, T)
        with mg.no_grad():
            logits = model(source, target[:, :-1]).numpy()  # (B, T, V)
        top = logits.max(axis=-1, keepdims=True)
        surprise = np.log(np.exp(logits - top).sum(axis=-1)) + top[..., 0]
        surprise = surprise - np.take_along_axis(logits, wanted[..., None], axis=-1)[..., 0]  # (B, T)
        there = wanted != pad
        loss += float(surprise[there].sum(dtype=np.float64))
        right[: wanted.shape[1]] += ((logits.argmax(axis=-1) == wanted) & there).sum(axis=0)
        count[: wanted.shape[1]] += there.sum(axis=0)
    return Forced(loss, int(count.sum()), right, count)


class Validation:
    """A validation: the loss and accuracy fed the true tokens, and the share of translations that are exactly right."""

    def __init__(self, config: Any, tokenizer: Any, corpus: Corpus):
        self.config, self.tokenizer = config, tokenizer
        self.examples = encoded_pairs(config, tokenizer, corpus.valid)

    def __call__(self, model: Any) -> dict[str, float]:
        found = forced(model, self.examples, self.config.batch)
        quick = self.examples[:QUICK]
        said = greedy_all(model, [source for source, _ in quick])
        first = len(special_ids(model).prompt)
        exact = np.mean([tokens == target[first:-1] for tokens, (_, target) in zip(said, quick)])
        return {
            "loss": found.loss / found.tokens,
            "accuracy": float(found.right.sum() / found.tokens),
            "exact": float(exact),
        }


def tests_of(loaded: Any, path: str | None) -> dict[str, list[Pair]]:
    """The test pairs of a loaded model: the tests of its own data, or all pairs of another file, each once."""
    own = loaded.arguments["data"]
    named = own if path is None else ",".join(map(os.path.abspath, paths_of(path)))
    corpus = corpus_of(loaded.config, named)
    if named == own:
        return corpus.tests
    learned = [] if loaded.config.corpus == "denoise" else corpus.train  # these have no gaps to fill
    return {"test": list(dict.fromkeys([*learned, *corpus.valid, *corpus.test]))}


def _grouped(pairs: Sequence[Pair], most: int) -> dict[str, list[str]]:
    """Sources, each with all its translations."""
    found: dict[str, list[str]] = {}
    for source, target in pairs:
        found.setdefault(source, []).append(target)
    return dict(list(found.items())[:most])


def evaluate(loaded: Any, path: str | None) -> dict[str, Any]:
    """All scores, by name, shares in per cent; those of a second test after its own name."""
    found: dict[str, Any] = {}
    for number, (name, pairs) in enumerate(tests_of(loaded, path).items()):
        scores = _scores_of(loaded, pairs)
        if number:
            found |= {f"{name}_{key}": scores[key] for key in ("sentences", "bleu", "exact_match") if key in scores}
        else:
            found |= {"test": name, **scores}
    return found


def _scores_of(loaded: Any, pairs: Sequence[Pair]) -> dict[str, Any]:
    config, tokenizer = loaded.config, loaded.tokenizer
    groups = _grouped(pairs, config.evaluated)
    references = list(groups.values())
    said = [found.text for found in translate(loaded, list(groups))]
    firsts = [(source, texts[0]) for source, texts in groups.items()]
    scores, details = _compared(config, groups, said)
    fed = forced(loaded.model, encoded_pairs(config, tokenizer, firsts), config.batch)
    free = positions(loaded, firsts)
    return {
        "sentences": len(groups),
        **scores,
        "perplexity": perplexity(fed.loss / fed.tokens),
        "exact_match": exact_match(said, references),
        "teacher_forced_accuracy": 100 * float(fed.right.sum() / fed.tokens),
        "free_running_accuracy": 100 * sum(p.free_running * p.count for p in free) / max(sum(p.count for p in free), 1),
        **details,
    }


def _compared(config: Any, groups: dict[str, list[str]], said: list[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """BLEU and chrF; their signatures, and the worst examples by BLEU. Nothing where sacrebleu is not installed."""
    references = list(groups.values())
    try:
        bleu = corpus_bleu(said, references, tokenize=config.bleu, lowercase=form_of(config) == "lower")
    except MissingExtraError:
        _warn_once(f"BLEU and chrF are left out, since sacrebleu is not installed: {install_hint('metrics')}")
        return {}, {}
    chrf = corpus_chrf(said, references)
    signatures = {"bleu_signature": bleu.signature, "chrf_signature": chrf.signature}
    return {"bleu": bleu.score, "chrf": chrf.score}, {**signatures, **_worst(groups, said, config.bleu)}


@cache
def _warn_once(text: str) -> None:
    warnings.warn(text, stacklevel=3)


def _worst(groups: dict[str, list[str]], said: list[str], tokenize: str) -> dict[str, str]:
    """The translations that are farthest from what was wanted."""
    scored = [
        (sentence_bleu(text, wanted, tokenize=tokenize).score, source, text, wanted[0])
        for (source, wanted), text in zip(groups.items(), said)
        if text not in wanted
    ]
    scored.sort(key=lambda item: item[0])
    return {
        f"worst_{rank + 1}": f"{source} -> {text} (wanted: {wanted})"
        for rank, (_, source, text, wanted) in enumerate(scored[:SHOWN])
    }


class Position(NamedTuple):
    """One position of translations: how often it is right fed the true tokens before it, and fed the model's own, of how many."""

    position: int
    teacher_forced: float
    free_running: float
    count: int


def exposure(loaded: Any, path: str | None = None) -> list[Position]:
    """How much worse a model is on its own: position by position, on the first test.

    In training it only ever sees true tokens before the next one. On its own, one mistake leads to others: that is
    exposure bias, which scheduled sampling (`sampling=0.2`) is meant to lessen.
    """
    pairs = next(iter(tests_of(loaded, path).values()))[: loaded.config.evaluated]
    loaded.model.eval()
    return positions(loaded, pairs)


def positions(loaded: Any, pairs: Sequence[Pair]) -> list[Position]:
    """Both accuracies for each position of some pairs."""
    examples = encoded_pairs(loaded.config, loaded.tokenizer, pairs)
    fed = forced(loaded.model, examples, loaded.config.batch)
    right = np.zeros_like(fed.right)
    for tokens, (_, target) in zip(greedy_all(loaded.model, [source for source, _ in examples]), examples):
        said = [*special_ids(loaded.model).prompt[1:], *tokens, target[-1]]  # its end, which greedy decoding leaves out
        for place, (mine, wanted) in enumerate(zip(said, target[1:])):
            right[place] += mine == wanted
    return [
        Position(place + 1, float(fed.right[place] / count), float(right[place] / count), int(count))
        for place, count in enumerate(fed.count)
        if count
    ]


def shown_pairs(loaded: Any) -> list[Pair]:
    """The pairs of its first test that are shown."""
    return next(iter(tests_of(loaded, None).values()))[:SHOWN]


def samples(loaded: Any) -> str:
    """Some of the test's sentences, how they are translated greedily, and what was wanted."""
    shown = shown_pairs(loaded)
    lines = []
    for found, (source, wanted) in zip(translate(loaded, [source for source, _ in shown], beams=1), shown):
        lines.append(f"  {source} -> {found.text}" + ("" if found.text == wanted else f" (wanted: {wanted})"))
    which = "some that it learns" if "trained" in tests_of(loaded, None) else "sentences it was not trained on"
    return "\n".join([f"translations of {which}:", *lines])
