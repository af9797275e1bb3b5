"""The pretrained run, or imported encoder, to begin from: its tokenizer, its sizes and its weights."""

from __future__ import annotations

from typing import Any

from minigrad.errors import ArgumentError
from minigrad.zoo import initial

from .batches import MASKED

# What a model has in common with the one that it begins from.
SHARED = (
    "vocab", "context", "dim", "layers", "heads", "hidden", "norm", "eps", "activation", "word_activation", "block",
    "positions", "counted", "types", "pool", "pool_activation", "normalize", "tokenizer", "specials",
)  # fmt: skip


def taken_over(config: Any, texts: list[str]) -> tuple[Any, Any]:
    """The config with the sizes of the pretrained run, and its tokenizer; a size that was asked for must be the same."""
    loaded = initial.opened("bert", config.init)
    unknown = loaded.tokenizer.unknown_rate(texts)
    if unknown > 0.5:
        raise ArgumentError(
            f"bert: {config.init!r} was pretrained on other words than these",
            "at least half of the words known to it",
            f"{unknown:.0%} unknown",
            "pretrain on text like this: minigrad train bert --data FILE; or leave out init",
        )
    return initial.taken_over("bert", config, loaded, SHARED), loaded.tokenizer


def begin_from(model: Any, config: Any) -> None:
    """Copy the weights of a run; of its head only the pooling, unless it was trained for the same task and classes."""
    loaded = initial.opened("bert", config.init)
    is_same = (loaded.config.task, loaded.config.classes) == (config.task, config.classes)
    is_same |= {loaded.config.task, config.task} == set(MASKED)  # both name words
    parts = ("tokens.", "segments.", "places.", "norm.", "encoder.", "head.pool.")
    initial.begin_from(model, loaded, ("",) if is_same else parts)
