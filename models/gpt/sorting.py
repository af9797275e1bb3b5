"""Sorting digits: the model reads some, then writes them in order. A quarter of all sequences is never learned from."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

import minigrad as mg
from minigrad.data import BlockBatch, CharTokenizer
from minigrad.decode import LanguageModel, Sampling, continue_text, generate
from minigrad.errors import ArgumentError
from minigrad.zoo import Data

from .model import IGNORED, mean_loss
from .task import MadeBatches, Task, next_tokens, refuse_data

EPOCH = 100  # batches that are called an epoch
EVALUATED = 500  # sequences in a validation
ASKED = 5000  # sequences in an evaluation
DIGITS = "0123456789"


def is_held_out(row: np.ndarray) -> bool:
    """Whether a sequence is held out: one in four, whichever seed is used."""
    return zlib.crc32(row.astype(np.uint8).tobytes()) % 4 == 0


def drawn(random: np.random.Generator, count: int, length: int, kinds: int, held_out: bool) -> np.ndarray:
    """Sequences of digits (count, length), only those held out or only the others."""
    rows: list[np.ndarray] = []
    while len(rows) < count:
        rows += [row for row in random.integers(0, kinds, (2 * count, length)) if is_held_out(row) == held_out]
    return np.array(rows[:count])


def tokenizer_of(config: Any) -> CharTokenizer:
    """Digits and the usual special tokens."""
    return CharTokenizer(DIGITS[: config.kinds])


def batch_of(digits: np.ndarray, tokenizer: CharTokenizer) -> BlockBatch:
    """Digits (B, n) and the same in order, one after the other; only what is in order counts."""
    rows = np.concatenate([digits, np.sort(digits, axis=1)], axis=1) + tokenizer.ids[DIGITS[0]]  # (B, 2 n)
    return next_tokens(rows, np.arange(rows.shape[1]) >= digits.shape[1], IGNORED)


def sort_data(config: Any, path: str | None) -> Data:
    """Sequences drawn as needed; validated on some that are never learned from."""
    refuse_data("sort", path)
    tokenizer = tokenizer_of(config)
    draw = partial(drawn, length=config.digits, kinds=config.kinds)
    seed = int(mg.randint(0, 2**31, (1,)).item())
    evaluated = draw(np.random.default_rng(0), EVALUATED, held_out=True)

    def make(random: np.random.Generator) -> BlockBatch:
        return batch_of(draw(random, config.batch, held_out=False), tokenizer)

    def valid(model: Any) -> dict[str, float]:
        right = (answers(model, tokenizer, evaluated) == np.sort(evaluated, axis=1)).all(axis=1)
        return {"loss": mean_loss(model, batch_of(evaluated, tokenizer)), "right": float(right.mean())}

    return Data(
        MadeBatches(make, EPOCH, seed, digits=config.digits, kinds=config.kinds, batch=config.batch),
        valid=valid,
        config=dataclasses.replace(config, vocab=tokenizer.vocab_size),
        tokenizer=tokenizer,
    )


def answers(model: Any, tokenizer: CharTokenizer, digits: np.ndarray, cached: bool = True) -> np.ndarray:
    """What the model writes after some digits: (B, n) -> (B, n)."""
    first = tokenizer.ids[DIGITS[0]]
    best = Sampling(temperature=0).without(range(first))
    tokens = generate(LanguageModel(model, cached), digits + first, length=digits.shape[1], sampling=best)
    return np.stack(list(tokens), axis=1) - first


def evaluate_sort(loaded: Any, path: str | None) -> dict[str, Any]:
    """How many sequences are written in order, without a single mistake, of those that were never learned from."""
    refuse_data("sort", path)
    config = loaded.config
    asked = drawn(np.random.default_rng(1), ASKED, config.digits, config.kinds, held_out=True)
    right = (answers(loaded.model, loaded.tokenizer, asked) == np.sort(asked, axis=1)).all(axis=1)
    return {"right": int(right.sum()), "asked": ASKED, "different": len(np.unique(asked, axis=0))}


def checked(config: Any, text: str) -> str:
    """Digits as they can be sorted: as many as were trained on, and no others."""
    known, digits = DIGITS[: config.kinds], "".join(text.split())
    if len(digits) != config.digits or set(digits) - set(known):
        raise ArgumentError(
            f"gpt: {text!r} cannot be sorted by this model",
            f"{config.digits} digits from {known[0]} to {known[-1]}",
            repr(text),
            f"for instance {prompt_sort(config)}",
        )
    return digits


def prompt_sort(config: Any) -> str:
    """Digits that are not in order: "210210"."""
    return (DIGITS[: config.kinds][::-1] * config.digits)[: config.digits]


def predict_sort(loaded: Any, text: str) -> dict[str, Any]:
    """The digits in order."""
    digits = checked(loaded.config, text)
    row = answers(loaded.model, loaded.tokenizer, np.array([[int(digit) for digit in digits]]))[0]
    return {"input": digits, "sorted": "".join(map(str, row))}


def sample_sort(loaded: Any, prompt: str, *, tokens: int = ASKED, **options: Any) -> Iterator[str]:
    """The digits in order, one after the other."""
    digits = checked(loaded.config, prompt)
    return continue_text(loaded.model, loaded.tokenizer, digits, tokens=min(tokens, len(digits)), **options)


def show_sort(loaded: Any) -> str:
    """Three sequences that were never learned from, and what the model makes of them."""
    config = loaded.config
    asked = drawn(np.random.default_rng(2), 3, config.digits, config.kinds, held_out=True)
    found = answers(loaded.model, loaded.tokenizer, asked)
    return "\n".join(f"{_text(row)} -> {_text(answer)}" for row, answer in zip(asked, found))


def _text(row: np.ndarray) -> str:
    return "".join(str(digit) if 0 <= digit < len(DIGITS) else "?" for digit in row)


TASK = Task(sort_data, evaluate_sort, predict_sort, sample_sort, show_sort, prompt_sort)
