"""The plugin `translator` with the sizes and weights of `translator.py`, and one step of its training."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from minigrad_models.translator.model import Translator, translation_loss

import minigrad as mg
from minigrad.data import Padded, PairBatch

from .gpt_minigrad import training_step
from .translator import PAD, Config, batches, weights


def new_model(config: Config) -> Translator:
    """The translator with the common weights."""
    sizes = config.vocabulary, config.dim, config.heads, config.hidden, config.depth
    model = Translator(*sizes, dropout=0.0, smoothing=config.smoothing).to(dtype=config.dtype)
    model.load_state_dict({name: mg.tensor(array) for name, array in weights(config).items()})
    return model


def pairs(config: Config) -> Iterator[PairBatch]:
    """The common batches, as the plugin takes them."""
    for both in batches(config):
        yield PairBatch(*(Padded(ids, ids != PAD, (ids != PAD).sum(axis=1)) for ids in both))


def minigrad_step(config: Config) -> Callable[[], Any]:
    """One step as the Trainer takes it; it returns the loss before the step."""
    return training_step(new_model(config), translation_loss, pairs(config))
