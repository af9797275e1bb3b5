"""What is learned from: examples, their tokens and batches; and the pretrained run to begin from."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import zoo
from minigrad.data import EOS, PAD, SPECIALS, Padded, Tokenizer, WordTokenizer, read_pairs
from minigrad.engine.errors import ArgumentError, MinigradError

from .batches import IGNORED, Labelled, LabelledBatch, MaskedBatch, MaskedPairs, TwoTexts, encoded, joined, mask_tokens
from .tasks import TAGS, Example, examples
from .text import HELD_OUT, JUDGED, LEARNED, parted, pretraining_pairs

# What a model has in common with the run that it begins from.
SHARED = ("vocab", "context", "dim", "layers", "heads", "hidden", "norm", "positions", "pool")


def examples_of(config: Any, path: str | None) -> tuple[list[Example], list[Example]]:
    """Examples to learn from, and examples held out."""
    if config.task == "pretrain":
        return pretraining_pairs(config.examples, path)
    if path is None:
        judged = min(config.examples, JUDGED)
        return examples(config.task, config.examples, LEARNED), examples(config.task, judged, HELD_OUT)
    if config.task != "classify":
        raise ArgumentError(
            f"bert: task={config.task} makes its own examples", "no --data", repr(path),
            "leave out --data; of your own labels, bert:classify learns lines of text <tab> label",
        )  # fmt: skip
    return parted([Example(text, None, label) for text, label in read_pairs(path)[0]])


def classes_of(task: str, found: list[Example]) -> tuple[str, ...]:
    """The names of the classes or tags, none if the task has none."""
    if task != "classify":
        return TAGS if task == "tag" else ()
    names = tuple(sorted({example.label for example in found}))
    if len(names) < 2:
        raise ArgumentError(
            "bert: there is nothing to tell apart", "lines `text <tab> label` with two labels or more", f"only {names}"
        )
    return names


def columns_of(config: Any, tokenizer: Tokenizer, example: Example) -> tuple[list[int], ...] | None:
    """The tokens of an example, and its labels; None if it is cut so that nothing is left to learn."""
    first, *seconds = (encoded(tokenizer, text) for text in example[:2] if text is not None)
    if config.task == "similar":
        return joined(first, None, config.context), joined(seconds[0], None, config.context), [example.label]
    ids = joined(first, seconds[0] if seconds else None, config.context)
    if config.task == "pretrain":
        return (ids, [example.label]) if max(ids) >= len(SPECIALS) else None
    if config.task == "classify":
        return ids, [_class(config, example.label)]
    if config.task == "tag":
        names = example.label[: config.context - 2]
        return ids, [IGNORED, *(config.classes.index(name) for name in names), IGNORED]
    wanted = encoded(tokenizer, example.label)
    starts = range(ids.index(EOS) + 1, len(ids) - len(wanted))
    begin = next((start for start in starts if ids[start : start + len(wanted)] == wanted), None)
    return None if begin is None else (ids, [begin, begin + len(wanted) - 1])


def _class(config: Any, label: str) -> int:
    if label not in config.classes:
        raise ArgumentError(f"bert: the label {label!r} was not learned", ", ".join(config.classes), repr(label))
    return config.classes.index(label)


def batches_of(config: Any, tokenizer: Tokenizer, found: list[Example], seed: int = 0, judging: bool = False) -> Any:
    """A sampler of examples; to judge by, always the same batches."""
    rows = [columns for example in found if (columns := columns_of(config, tokenizer, example)) is not None]
    tokens = max(config.batch, config.context)
    if config.task == "pretrain":
        return MaskedPairs(rows, tokens, config.vocab, config.mask, seed, blanks=judging)
    return Labelled(rows, tokens, seed=seed, shuffle=not judging)


def data_of(config: Any, path: str | None) -> zoo.Data:
    """Batches to learn from and to be judged by, with the tokenizer and the config that belong to them."""
    learned, held = examples_of(config, path)
    texts = [text for example in learned for text in example[:2] if text]
    if config.init is not None:
        config, tokenizer = taken_over(config, texts)
    else:
        tokenizer = WordTokenizer.train(texts, config.vocab)
    if tokenizer.vocab_size < len(SPECIALS) + 2:
        raise ArgumentError("bert: there are too few words to learn from", "two or more different ones", texts[0][:60])
    classes = classes_of(config.task, learned + held)
    config = dataclasses.replace(config, vocab=tokenizer.vocab_size, classes=classes)
    return zoo.Data(
        batches_of(config, tokenizer, learned, seed=int(mg.randint(0, 2**31, (1,)).item())),
        valid=batches_of(config, tokenizer, held, judging=True) if held else None,
        config=config,
        tokenizer=tokenizer,
    )


def opened(run: str) -> Any:
    """A trained BERT to begin from."""
    try:
        loaded = zoo.load(run)
    except MinigradError as error:
        raise ArgumentError(
            f"bert: init={run!r} cannot be begun from: {str(error).splitlines()[0]}",
            "the directory of a trained bert",
            fix="pretrain one first: minigrad train bert --out runs/bert",
        ) from error
    if loaded.spec.name != "bert":
        raise ArgumentError(f"bert: init={run!r} holds another model", "a trained bert", loaded.spec.name)
    return loaded


def taken_over(config: Any, texts: list[str]) -> tuple[Any, Tokenizer]:
    """The config with the sizes of the pretrained run, and its tokenizer; a size that was asked for must be the same."""
    loaded = opened(config.init)
    defaults = {field.name: field.default for field in dataclasses.fields(config)}
    sizes = {name: getattr(loaded.config, name) for name in SHARED}
    for name, there in sizes.items():
        asked = getattr(config, name)
        if asked not in (defaults[name], there):
            raise ArgumentError(
                f"bert: {name}={asked} does not fit the run that it is to begin from",
                f"{name}={there}, as in {config.init!r}",
                asked,
                f"leave out {name}, or pretrain a run with it",
            )
    unknown = loaded.tokenizer.unknown_rate(texts)
    if unknown > 0.5:
        raise ArgumentError(
            f"bert: {config.init!r} was pretrained on other words than these",
            "at least half of the words known to it",
            f"{unknown:.0%} unknown",
            "pretrain on text like this: minigrad train bert --data FILE; or leave out init",
        )
    return dataclasses.replace(config, init=os.path.abspath(config.init), **sizes), loaded.tokenizer


def begin_from(model: Any, run: str, task: str) -> None:
    """Copy the weights of a run; of its head only the pooling, unless it was trained for the same task."""
    loaded, own = opened(run), model.state_dict()
    parts = (
        ("",) if loaded.config.task == task else ("tokens.", "segments.", "places.", "norm.", "encoder.", "head.pool.")
    )
    there = {name: weight for name, weight in loaded.model.state_dict().items() if name.startswith(parts)}
    fitting = {name: weight for name, weight in there.items() if name in own and weight.shape == own[name].shape}
    model.load_state_dict({**own, **fitting})


def tiny_batch(config: Any) -> Any:
    """Two pairs of texts of random words, one shorter than the other."""
    draw = np.random.default_rng(0)
    words = [draw.integers(len(SPECIALS), config.vocab, size).tolist() for size in (4, 3, 3, 1)]
    ids = Padded.of([joined(words[i], words[i + 1], config.context) for i in (0, 2)]).ids  # (2, 10)
    one = np.array([[1], [0]])
    if config.task == "pretrain":
        return MaskedBatch(*mask_tokens(ids, config.vocab, config.mask, draw), one[:, 0])
    if config.task == "similar":
        return TwoTexts(ids, ids[::-1].copy(), one)
    labels = {"classify": one, "tag": np.where(ids == PAD, IGNORED, ids % 2), "answer": np.array([[6, 7], [5, 5]])}
    return LabelledBatch(ids, labels[config.task])
