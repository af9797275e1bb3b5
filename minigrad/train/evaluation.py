"""Validation: the mean loss over data, or whatever a function of the model returns."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from ..engine.modes import no_grad
from ..errors import ArgumentError, CallError
from ..parallel.distributed_model import DistributedModel
from ..random import random_state, restore_random_state
from ..runtime.process_group import process_group
from .loss_terms import Totals, checked_terms

__all__ = ["evaluate", "evaluation_mode", "kept_random_states"]


@contextmanager
def evaluation_mode(model: Any) -> Iterator[None]:
    """Inside, the model is in evaluation mode and nothing is recorded; afterwards modes and random states are as before."""
    modes = {module: module.training for module in model.modules()}
    with kept_random_states():
        model.eval()
        try:
            with no_grad():
                yield
        finally:
            for module, training in modes.items():
                module.training = training


@contextmanager
def kept_random_states() -> Iterator[None]:
    """Inside, random numbers may be drawn; afterwards all generators are as before."""
    state, python, legacy = random_state(), random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        restore_random_state(state)
        random.setstate(python)
        np.random.set_state(legacy)  # noqa: NPY002


def evaluate(
    called: Any,
    loss: Callable[[Any, Any], Any],
    valid: Any,
    metrics: Iterable[str] = (),
    distributed: DistributedModel | None = None,
) -> dict[str, float]:
    """The mean loss over one epoch of a sampler, which keeps its position; or the named numbers that `valid(called)` returns.

    Without a graph it cannot be seen which terms of the loss are metrics, so `metrics` names them. The ranks divide the
    batches of a sampler among them. A function is called on rank 0 only; with the whole of a model that is divided.
    """
    group = process_group()
    if not hasattr(valid, "state_dict"):
        with nullcontext() if distributed is None else distributed.whole():
            values = _named_numbers(valid(called)) if group.rank == 0 else None
        return dict(group.broadcast(values))
    position = valid.state_dict()
    totals = Totals()
    try:
        if hasattr(valid, "restart"):  # it may be the training data itself, in the middle of an epoch
            valid.restart()
        if distributed is not None:
            _evaluate_together(called, loss, valid, distributed, totals)
        else:
            for number, batch in enumerate(valid):
                if number % group.size == group.rank:
                    totals.add(checked_terms(loss(called, batch), batch))
    finally:
        valid.load_state_dict(position)
    of_all_ranks, totals = group.all_gather(totals.values), Totals(metrics=metrics)
    for values in of_all_ranks:
        totals.add(values)
    if not totals.values:
        raise ArgumentError("Trainer: the validation data gives no batches", "at least one batch in each epoch")
    totals.check_units()
    return totals.means()


def _evaluate_together(called: Any, loss: Any, valid: Any, distributed: DistributedModel, totals: Totals) -> None:
    """Data-parallel ranks take a batch each, all at once: who has none left computes another's, and does not count it."""
    mesh, loss = distributed.mesh, distributed.loss(loss)
    size = mesh.data_group.size
    waiting: list[Any] = []

    def compute() -> None:
        here = mesh.data < len(waiting)
        batch = waiting[mesh.data if here else 0]
        terms = checked_terms(loss(called, batch), batch)
        totals.add(terms if here and mesh.counts_loss else dict.fromkeys(terms, (0.0, 0)))
        waiting.clear()

    with distributed.present():
        for batch in valid:
            waiting.append(batch)
            if len(waiting) == size:
                compute()
        if waiting:
            compute()


def _named_numbers(values: Any) -> dict[str, float]:
    try:
        return {str(name): float(value) for name, value in dict(values).items()}
    except (TypeError, ValueError):
        kind = "a dict" if isinstance(values, Mapping) else type(values).__name__
        raise CallError("valid(model) must return named numbers", '{"loss": 0.5, …}', kind) from None
