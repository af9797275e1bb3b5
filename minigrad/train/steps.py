"""One step of training and one validation. A step that is not finite is computed again to find out where that began."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from ..engine.backend import random_state, restore_random_state
from ..engine.errors import ArgumentError, CallError, NonFiniteError
from ..engine.modes import debug, no_grad
from ..engine.tensor import Tensor
from ..kernels.memory import keep_memory
from ..optim import MixedPrecision, Optimizer, clip_grad_norm_
from ..optim.clipping import clip_factor, grad_norm
from .gradients import Totals, add_up_ranks, backward_all, checked_terms, scale_gradients
from .world import World, world

__all__ = ["StepOutcome", "Stepper", "evaluate", "undisturbed"]

SMALLEST_SCALE = 2.0**-24  # of a mixed-precision loss: what overflows even so is not finite at all


@dataclasses.dataclass(frozen=True)
class StepOutcome:
    """What a step came to: the terms of its loss, the norm of its gradient, and whether the weights were changed."""

    totals: Totals
    grad_norm: float
    taken: bool


class Stepper:
    """Changes the weights once, given the batches of a step; with mixed precision through its scaler."""

    def __init__(
        self,
        model: Any,
        loss: Callable[[Any, Any], Any],
        optimizer: Optimizer,
        scaler: MixedPrecision | None,
        clip_norm: float | None,
        threads: int | None = None,
    ):
        keep_memory()
        self.called = scaler or model
        self.loss, self.optimizer, self.scaler = loss, optimizer, scaler
        self.max_norm = math.inf if clip_norm is None else clip_norm
        self.threads = threads if scaler is None else 1
        self.world = world()

    def _params(self) -> list[Tensor]:
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    def step(self, batches: Sequence[Any], number: int) -> StepOutcome:
        """Take one step, or raise NonFiniteError before the weights are changed."""
        before = random_state()
        totals, norm, scale = self._gradients(batches)
        if not (math.isfinite(totals.means()["loss"]) and math.isfinite(norm)) and not self._may_skip(norm):
            restore_random_state(before)
            raise self._explained(batches, number)
        if self.scaler is not None:
            return StepOutcome(totals, norm, self.scaler.step())
        self.optimizer.step(scale)
        return StepOutcome(totals, norm, True)

    def _may_skip(self, norm: float) -> bool:
        """Whether gradients overflowed and may not with a smaller scale, which a loss does not depend on."""
        return self.scaler is not None and not math.isfinite(norm) and self.scaler.scaler.scale > SMALLEST_SCALE

    def _gradients(self, batches: Sequence[Any]) -> tuple[Totals, float, float]:
        """The totals, the norm of the gradients, and what they are still to be multiplied by."""
        keeper = self.scaler or self.optimizer
        keeper.zero_grad()
        backward = self.scaler.backward if self.scaler is not None else Tensor.backward
        quiet = np.errstate(all="ignore") if self.scaler else nullcontext()  # a scaler deals with overflow itself
        with quiet:
            totals, divisors = backward_all(self.loss, self.called, batches, backward, self.threads, self.world)
        if self.scaler is not None:
            self.scaler.unscale()
        add_up_ranks(self.world, self._params(), totals)
        totals.check_units()
        factor = divisors.remaining(totals)
        if self.scaler is not None:
            scale_gradients(self._params(), factor)
            return totals, clip_grad_norm_(self._params(), self.max_norm), 1.0
        norm = grad_norm(self._params()) * factor
        return totals, norm, factor * clip_factor(norm, self.max_norm)

    def _explained(self, batches: Sequence[Any], number: int) -> NonFiniteError:
        """The error that names the first op whose result was NaN or infinite, found by computing the step again.

        Every rank computes all of it: one that finds the op does not wait for the others.
        """
        self.world = World()
        where = "no single op: only their sum, or the norm of the gradients, is too large"
        try:
            with debug():
                self._gradients(batches)  # not divided among threads, which would not be debugged
        except NonFiniteError as found:
            where = str(found)
        return NonFiniteError(
            f"step {number}: the loss or its gradient is not finite; the weights were not changed",
            got=where,
            fix="lower the learning rate, clip gradients, or look at this batch",
        )


@contextmanager
def undisturbed(model: Any) -> Iterator[None]:
    """Inside, the model is in evaluation mode; afterwards every module and every random number is as if nothing had been."""
    modes = {module: module.training for module in model.modules()}
    state, python, legacy = random_state(), random.getstate(), np.random.get_state()  # noqa: NPY002
    model.eval()
    try:
        with no_grad():
            yield
    finally:
        restore_random_state(state)
        random.setstate(python)
        np.random.set_state(legacy)  # noqa: NPY002
        for module, training in modes.items():
            module.training = training


def evaluate(called: Any, loss: Callable[[Any, Any], Any], valid: Any, metrics: Iterable[str] = ()) -> dict[str, float]:
    """The mean loss over one epoch of a sampler, which is then where it was; or what a function of the model says.

    Nothing is recorded here, so it must be told which terms of the loss are `metrics`. The ranks take turns with the
    batches of a sampler. A function is called by the first rank alone.
    """
    ranks = world()
    if not hasattr(valid, "state_dict"):
        return dict(ranks.from_first(_named_numbers(valid(called)) if ranks.rank == 0 else None))
    place = valid.state_dict()
    totals = Totals()
    try:
        if hasattr(valid, "restart"):  # it may be the training data itself, and in the middle of an epoch
            valid.restart()
        for number, batch in enumerate(valid):
            if number % ranks.size == ranks.rank:
                totals.add(checked_terms(loss(called, batch)))
    finally:
        valid.load_state_dict(place)
    everyones, totals = ranks.gather(totals.values), Totals(metrics=metrics)
    for values in everyones:
        totals.add(values)
    if not totals.values:
        raise ArgumentError("Trainer: the validation data gives no batches", "at least one batch in each epoch")
    totals.check_units()
    return totals.means()


def _named_numbers(values: Any) -> dict[str, float]:
    try:
        return {str(name): float(value) for name, value in dict(values).items()}
    except (TypeError, ValueError):
        kind = "a dict" if isinstance(values, Mapping) else type(values).__name__
        raise CallError("valid(model) must return named numbers", '{"loss": 0.5, …}', kind) from None
