"""Running text to learn from: a file, or the shipped stories; its beginning is learned, its end is held out."""

from __future__ import annotations

import dataclasses
import math
import os
import warnings
from collections.abc import Iterator
from typing import Any

import minigrad as mg
from minigrad.data import (
    BlockBatches,
    BPETokenizer,
    CharTokenizer,
    Tokenizer,
    WordTokenizer,
    read_text,
    split_text,
)
from minigrad.data.errors import DataError
from minigrad.decode import Sampling, continue_text
from minigrad.metrics import perplexity
from minigrad.tokenizers import PretrainedTokenizer
from minigrad.train.evaluation import evaluate as mean_loss
from minigrad.zoo import Data
from minigrad.zoo.initial import opened, taken_over

from ..corpora import story_text
from .model import loss
from .task import Task

EVALUATED = 64  # blocks of a batch when only the loss is wanted, at most
LOGITS = 2**26  # numbers that may then be computed at once
PREDICTED = 100  # tokens with which `predict` continues an input
SHOWN = 200  # tokens of a sample at a validation
TUNED = 256  # tokens of a text that a pretrained model learns from
# What a model has in common with the one that it begins from.
SHARED = (
    "vocab", "context", "layers", "heads", "dim", "hidden", "positions", "norm", "activation", "bias", "eps", "tied", "rotary",
    "block", "tokenizer",
)  # fmt: skip


def text_of(config: Any, path: str | None) -> str:
    """The text of a file, or of the stories; a message names lines of a file that cannot be read."""
    if path is None:
        return story_text(config.characters)
    text, report = read_text(path)
    if report.bad:
        warnings.warn(f"some lines were left out of {report}", stacklevel=2)
    return text


def tokenizer_for(config: Any, text: str) -> Tokenizer:
    """A tokenizer of the kind that the config names, with at most as many tokens."""
    if config.tokenizer == "char":
        return CharTokenizer.train(text, config.vocab)
    if config.tokenizer == "word":
        return WordTokenizer.train(text, config.vocab)
    made = BPETokenizer.train(text, config.vocab)
    # Asked for exactly what it could find, it finds the same again, as it must when a run is resumed.
    return made if made.vocab_size == config.vocab else BPETokenizer.train(text, made.vocab_size)


def text_data(config: Any, path: str | None) -> Data:
    """Blocks from anywhere in the first nine tenths; validated on the rest, in blocks that do not overlap."""
    split = split_text(text_of(config, path), valid=0.1)
    if config.init is None:
        tokenizer = tokenizer_for(config, split.train)
        config = dataclasses.replace(config, vocab=tokenizer.vocab_size)
    else:
        begun = opened("gpt", config.init)
        config, tokenizer = taken_over("gpt", config, begun, SHARED), begun.tokenizer
    learned, length = plain_ids(tokenizer, split.train), length_of(config)
    if len(learned) <= length:
        setting = "context" if config.init is None and config.length is None else "length"
        shorter = f", or {setting}={len(learned) // 2}" if len(learned) > 1 else ""
        raise DataError(
            f"gpt: the text is too short to learn from: {len(learned)} tokens in its first nine tenths",
            f"more than {setting}={length}",
            f"{len(split.train) + len(split.valid)} characters in all",
            f"give more text{shorter}",
        )
    seed = int(mg.randint(0, 2**31, (1,)).item())
    return Data(
        BlockBatches(learned, length, config.batch, seed=seed),
        valid=whole(config, plain_ids(tokenizer, split.valid)),
        config=config,
        tokenizer=tokenizer,
    )


def length_of(config: Any) -> int:
    """How many tokens the model learns from at once: its whole context, unless that is a pretrained model's."""
    return config.length or (config.context if config.init is None else min(config.context, TUNED))


def plain_ids(tokenizer: Any, text: str) -> list[int]:
    """The tokens of a text without those that a pretrained tokenizer puts around each."""
    return (
        tokenizer.encode(text, special=False) if isinstance(tokenizer, PretrainedTokenizer) else tokenizer.encode(text)
    )


def whole(config: Any, ids: list[int]) -> BlockBatches | None:
    """Every token after the first as a target exactly once; None where there is none."""
    if len(ids) < 2:
        return None
    length = min(config.context, max(length_of(config), TUNED))
    rows = min(max(LOGITS // (length * config.vocab), 1), EVALUATED)
    return BlockBatches(ids, length, rows, order="sequential")


def evaluate_text(loaded: Any, path: str | None) -> dict[str, Any]:
    """The mean loss over the whole of the text that was held out, or over the whole of another file."""
    config, text = loaded.config, text_of(loaded.config, path)
    is_own = loaded.arguments["data"] == (None if path is None else os.path.abspath(path))
    evaluated = split_text(text, valid=0.1).valid if is_own else text
    batches = whole(config, plain_ids(loaded.tokenizer, evaluated))
    if batches is None:
        raise DataError(
            "gpt: too little text is held out for an evaluation",
            "2 tokens or more",
            repr(evaluated),
            "give another --data",
        )
    mean = mean_loss(loaded.model, loss, batches)["loss"]
    targets = len(batches.ids) - 1
    return {
        "whole_validation_loss" if is_own else "whole_text_loss": mean,
        "perplexity": perplexity(mean),
        "bits_per_character": mean * targets / max(len(evaluated), 1) / math.log(2),
        "tokens": targets,
        "unknown": loaded.tokenizer.unknown_rate(evaluated),
    }


def predict_text(loaded: Any, text: str) -> dict[str, Any]:
    """The continuation of a text, drawn with temperature 0.8, always the same; and what of the text was left out."""
    notes: list[str] = []
    pieces = sample_text(loaded, text, tokens=PREDICTED, sampling=Sampling(0.8), notice=notes.append)
    return {"input": text, "continuation": "".join(pieces), **({"note": "; ".join(notes)} if notes else {})}


def sample_text(loaded: Any, prompt: str, **options: Any) -> Iterator[str]:
    """The continuation of any text, in pieces as they come."""
    return continue_text(loaded.model, loaded.tokenizer, prompt, **options)


def show_text(loaded: Any) -> str:
    """What it writes when nothing is given."""
    return "".join(sample_text(loaded, "", tokens=SHOWN, sampling=Sampling(0.8)))


TASK = Task(text_data, evaluate_text, predict_text, sample_text, show_text, lambda config: "")
