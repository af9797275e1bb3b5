"""Training that begins from a trained or imported model: its settings, its tokenizer and its weights."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..errors import ArgumentError, MinigradError
from .checkpoints import load
from .export import description_of, is_exported
from .loaded import Loaded
from .run_arguments import arguments_of

__all__ = ["begin_from", "opened", "origin_of", "taken_over"]


def opened(name: str, folder: str) -> Loaded:
    """The model to begin from, which must be of the plugin `name`."""
    try:
        loaded = load(folder)
    except MinigradError as error:
        raise ArgumentError(
            f"{name}: init={folder!r} cannot be begun from: {str(error).splitlines()[0]}",
            f"the directory of a trained {name}, or a folder that `minigrad import` wrote",
            fix=f"train one first: minigrad train {name} --out runs/{name}",
        ) from error
    if loaded.spec.name != name:
        raise ArgumentError(f"{name}: init={folder!r} holds another model", f"a trained {name}", loaded.spec.name)
    return loaded


def origin_of(folder: str) -> Any:
    """Where the model in a folder came from, if it was imported, or trained from one that was; its licence is a part of it."""
    arguments = description_of(folder) if is_exported(folder) else arguments_of(folder)
    return arguments.get("origin")


def taken_over(name: str, config: Any, loaded: Loaded, shared: Sequence[str]) -> Any:
    """The config with the `shared` settings of the model that it begins from; one that was asked for must be the same."""
    usual = type(config)()
    there = {key: getattr(loaded.config, key) for key in shared}
    for key, value in there.items():
        asked = getattr(config, key)
        if asked not in (getattr(usual, key), value):
            raise ArgumentError(
                f"{name}: {key}={asked} does not fit the model that it is to begin from",
                f"{key}={value}, as in {config.init!r}",
                asked,
                f"leave out {key}",
            )
    return replace(config, init=os.path.abspath(config.init), **there)


def begin_from(model: Any, loaded: Loaded, parts: Sequence[str] = ("",)) -> None:
    """Copy the weights of a model into another: those whose names begin with one of `parts`, unpacked where they are packed."""
    own = model.state_dict()
    there = {name: value for name, value in loaded.model.state_dict().items() if name.startswith(tuple(parts))}
    given = {}
    for name, value in there.items():
        target = name if name in own else f"{name}.base"  # where low-rank adapters were put on a weight
        if target in own:
            given[target] = value.dequantized() if hasattr(value, "dequantized") else value
    model.load_state_dict({**own, **given})
