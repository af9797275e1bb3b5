"""Schedules made of schedules: one after the other, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from ...errors import ArgumentError
from ..optimizer import Optimizer
from ..schedules import Plateau, Schedule

__all__ = ["ChainedScheduler", "SequentialLR"]


def _checked(name: str, schedulers: Sequence[Schedule], optimizer: Optimizer | None = None) -> list[Schedule]:
    """The schedules, which must be of one optimiser and functions of the step."""
    found = list(schedulers)
    if not found:
        raise ArgumentError(f"{name}: there are no schedules", "at least one", "an empty list")
    for one in found:
        if not isinstance(one, Schedule) or isinstance(one, Plateau):
            raise ArgumentError(
                f"{name}: {type(one).__name__} cannot be a part of it", "schedules that depend on the step alone"
            )
        if one.optimizer is not (optimizer or found[0].optimizer):
            raise ArgumentError(f"{name}: {type(one).__name__} is of another optimiser", "schedules of one optimiser")
    return found


class SequentialLR(Schedule):
    """The first of `schedulers` up to the first of `milestones`, then the next, each counting from its own start.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.ones(2, requires_grad=True)], lr=1.0)
    >>> parts = [mg.optim.ConstantLR(optimizer, 0.25, total_iters=9), mg.optim.ExponentialLR(optimizer, gamma=0.5)]
    >>> schedule = mg.optim.SequentialLR(optimizer, parts, milestones=[2])
    >>> [schedule.lr(step) for step in range(5)]
    [0.25, 0.25, 1.0, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[Schedule], milestones: Sequence[int], last_epoch: int = -1
    ):
        self.schedulers, self.milestones = _checked("SequentialLR", schedulers, optimizer), list(milestones)
        if len(self.milestones) != len(self.schedulers) - 1 or self.milestones != sorted(self.milestones):
            raise ArgumentError(
                "SequentialLR: the milestones do not fit",
                f"{len(self.schedulers) - 1} steps in rising order, between {len(self.schedulers)} schedules",
                self.milestones,
            )
        super().__init__(optimizer, last_epoch)

    def rate(self, step: int, index: int, base: float) -> float:
        part = bisect_right(self.milestones, step)
        return self.schedulers[part].rate(step - (self.milestones[part - 1] if part else 0), index, base)


class ChainedScheduler(Schedule):
    """All `schedulers` at once: what one gives is the initial rate of the next, so that their factors multiply."""

    def __init__(self, schedulers: Sequence[Schedule], optimizer: Optimizer | None = None):
        self.schedulers = _checked("ChainedScheduler", schedulers, optimizer)
        super().__init__(self.schedulers[0].optimizer)

    def rate(self, step: int, index: int, base: float) -> float:
        for schedule in self.schedulers:
            base = schedule.rate(step, index, base)
        return base
