"""What a GPT is trained for, and batches that are made up as they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from minigrad.data import BlockBatch, Sampler
from minigrad.errors import ArgumentError
from minigrad.zoo import Data


class Task(NamedTuple):
    """The data of a task, what a model trained on it does (evaluate, predict, sample, display), and a prompt."""

    data: Callable[[Any, str | None], Data]
    evaluate: Callable[[Any, str | None], dict[str, Any]]
    predict: Callable[[Any, str], Any]
    sample: Callable[..., Iterator[str]]
    show: Callable[[Any], str]
    prompt: Callable[[Any], str]  # of a config


def refuse_data(task: str, path: str | None) -> None:
    """Say that a task makes its own data, if somebody gives a file."""
    if path is not None:
        raise ArgumentError(f"gpt: task={task} makes its own data", "no data", repr(path), "leave out --data")


class MadeBatches(Sampler):
    """Batches that a function draws, `make(random) -> BlockBatch`; each place of each epoch always has the same one."""

    def __init__(self, make: Callable[[np.random.Generator], BlockBatch], count: int, seed: int, **identity: Any):
        super().__init__(seed)
        self.make, self.count, self.identity = make, count, identity

    def __len__(self) -> int:
        return self.count

    def batch(self, epoch: int, index: int) -> BlockBatch:
        return self.make(np.random.default_rng([self.seed, epoch, index]))

    def _identity(self) -> dict[str, Any]:
        return {"count": self.count, **self.identity}


def next_tokens(rows: np.ndarray, counts: np.ndarray, ignored: int) -> BlockBatch:
    """Rows (B, T + 1) as inputs and targets (B, T), of which only those count whose token has `counts` (T + 1,) set."""
    return BlockBatch(rows[:, :-1], np.where(counts[1:], rows[:, 1:], ignored))
