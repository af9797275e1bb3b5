"""The pretrained run to begin from: its tokenizer, its sizes and its weights."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from minigrad import zoo
from minigrad.data import Tokenizer
from minigrad.errors import ArgumentError, MinigradError

# What a model has in common with the run that it begins from.
SHARED = ("vocab", "context", "dim", "layers", "heads", "hidden", "norm", "positions", "pool")


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


def begin_from(model: Any, config: Any) -> None:
    """Copy the weights of a run; of its head only the pooling, unless it was trained for the same task and classes."""
    loaded, own = opened(config.init), model.state_dict()
    is_same = (loaded.config.task, loaded.config.classes) == (config.task, config.classes)
    parts = ("",) if is_same else ("tokens.", "segments.", "places.", "norm.", "encoder.", "head.pool.")
    there = loaded.model.state_dict().items()
    model.load_state_dict({**own, **{name: weight for name, weight in there if name in own and name.startswith(parts)}})
