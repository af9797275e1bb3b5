"""The GPT of `gpt.py` in minigrad, and one step of its training."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import minigrad as mg
from minigrad import kernels
from minigrad.nn import functional as F
from minigrad.train.train_step import TrainStep

from .gpt import ADAMW, MAX_NORM, Config, batches, weights


class GPT(mg.nn.Module):
    """Tokens (B, T) -> logits (B, T, vocabulary)."""

    def __init__(self, config: Config):
        dtype = config.dtype
        self.tokens = mg.nn.Embedding(config.vocabulary, config.dim, dtype=dtype)
        self.positions = mg.nn.LearnedPositions(config.length, config.dim, dtype=dtype)
        self.encoder = mg.nn.Encoder(
            config.layers, config.dim, config.heads, activation="gelu_tanh", causal=True, dtype=dtype
        )

    def forward(self, tokens: Any) -> mg.Tensor:
        x = self.encoder(self.positions(self.tokens(tokens)))  # (B, T) -> (B, T, C)
        return F.linear(x, self.tokens.weight)  # (B, T, C) -> (B, T, vocabulary)


def new_model(config: Config) -> GPT:
    """The GPT with the common weights."""
    model = GPT(config)
    model.load_state_dict({name: mg.tensor(array) for name, array in weights(config).items()})
    return model


def loss(model: GPT, batch: tuple[Any, Any]) -> dict[str, tuple[mg.Tensor, int]]:
    """The cross-entropy of one batch of tokens and targets, (B, T) each, summed, and over how many tokens."""
    tokens, targets = batch
    logits = model(mg.tensor(tokens))
    flat = logits.reshape(-1, logits.shape[-1])
    return {"loss": (F.cross_entropy(flat, mg.tensor(targets).reshape(-1), reduction="sum"), targets.size)}


def minigrad_step(config: Config, wrap: Callable[[Any], Any] = lambda f: f) -> Callable[[], mg.Tensor]:
    """One step as the Trainer takes it, which returns the loss before the step; `wrap` may be `mg.compile`."""
    return training_step(new_model(config), wrap(loss), batches(config))


def training_step(model: Any, loss: Callable[[Any, Any], Any], data: Iterator[Any]) -> Callable[[], mg.Tensor]:
    """A step: the next batch, backward, clipping, AdamW; it returns the loss before the step."""
    optimizer = mg.optim.AdamW(model.parameters(), **ADAMW)
    stepper, numbers = TrainStep(model, loss, optimizer, scaler=None, clip_norm=MAX_NORM), count(1)

    def step() -> mg.Tensor:
        outcome = stepper.step([next(data)], next(numbers))
        return mg.tensor(outcome.totals.means()["loss"], dtype="float64")

    return step


def loaded_kernels() -> str:
    """Load the kernels that the environment asks for, an ImportError if that is not possible; their name."""
    wanted, loaded = os.environ.get("MINIGRAD_KERNELS"), kernels.implementation()
    if wanted and wanted != loaded:
        raise ImportError(f"{wanted} does not work here")
    return loaded
