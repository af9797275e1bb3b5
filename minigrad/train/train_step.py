"""One step of training. A step that is not finite is computed again under `debug()`, to find the op where that began."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from ..debug import debug
from ..engine.tensor import Tensor
from ..errors import NonFiniteError
from ..nn.clipping import clip_factor, grad_norm, scale_gradients
from ..optim import MixedPrecision, Optimizer, clip_grad_norm_
from ..random import random_state, restore_random_state
from ..runtime.memory import keep_freed_memory
from ..runtime.process_group import ProcessGroup, process_group
from .accumulation import WholeBatchNeeded, accumulate_gradients, all_reduce_gradients
from .loss_terms import Totals

__all__ = ["StepResult", "TrainStep"]

SMALLEST_SCALE = 2.0**-24  # of a mixed-precision loss: a gradient that overflows even so is not finite


class StepResult(NamedTuple):
    """The terms of the loss of a step, the norm of its gradient, and whether the weights were changed."""

    totals: Totals
    grad_norm: float
    taken: bool


class TrainStep:
    """One step of the optimiser on the batches of a step; with mixed precision through its scaler.

    `compiled(batch)`, if given, computes the terms of the loss in the place of `loss(model, batch)`.
    """

    def __init__(
        self,
        model: Any,
        loss: Callable[[Any, Any], Any],
        optimizer: Optimizer,
        scaler: MixedPrecision | None,
        clip_norm: float | None,
        threads: int | None = None,
        compiled: Callable[[Any], Any] | None = None,
    ):
        keep_freed_memory()
        self.called = scaler or model
        self.loss, self.optimizer, self.scaler = loss, optimizer, scaler
        self.max_norm = math.inf if clip_norm is None else clip_norm
        self.threads = threads if scaler is None else 1
        self.group, self.compiled = process_group(), compiled

    def _params(self) -> list[Tensor]:
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    def step(self, batches: Sequence[Any], number: int) -> StepResult:
        """Take one step, or raise NonFiniteError before the weights are changed."""
        before = random_state()
        try:
            totals, norm, scale = self._gradients(batches)
        except WholeBatchNeeded:
            restore_random_state(before)
            self.threads = 1
            totals, norm, scale = self._gradients(batches)
        if not (math.isfinite(totals.means()["loss"]) and math.isfinite(norm)) and not self._may_skip(norm):
            restore_random_state(before)
            raise self._explained(batches, number)
        if self.scaler is not None:
            return StepResult(totals, norm, self.scaler.step())
        self.optimizer.step(scale=scale)
        return StepResult(totals, norm, True)

    def _may_skip(self, norm: float) -> bool:
        """Whether the gradients overflowed, and may not with a smaller scale."""
        return self.scaler is not None and not math.isfinite(norm) and self.scaler.scaler.scale > SMALLEST_SCALE

    def _gradients(self, batches: Sequence[Any]) -> tuple[Totals, float, float]:
        """The totals, the norm of the gradients, and the factor that they still need."""
        keeper = self.scaler or self.optimizer
        keeper.zero_grad()
        backward = self.scaler.backward if self.scaler is not None else Tensor.backward
        quiet = np.errstate(all="ignore") if self.scaler else nullcontext()  # a scaler deals with overflow itself
        with quiet:
            totals, divisors = accumulate_gradients(
                self.loss, self.called, batches, backward, self.threads, self.group, self.compiled
            )
        if self.scaler is not None:
            self.scaler.unscale()
        all_reduce_gradients(self.group, self._params(), totals)
        totals.check_units()
        factor = divisors.remaining(totals)
        if self.scaler is not None:
            scale_gradients(self._params(), factor)
            return totals, clip_grad_norm_(self._params(), self.max_norm), 1.0
        norm = grad_norm(self._params()) * factor
        return totals, norm, factor * clip_factor(norm, self.max_norm)

    def _explained(self, batches: Sequence[Any], number: int) -> NonFiniteError:
        """The error that names the first op whose result was NaN or infinite, found by computing the step again.

        Every rank computes the whole step: one that finds the op does not wait for the others.
        """
        self.group, self.compiled = ProcessGroup(), None
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
