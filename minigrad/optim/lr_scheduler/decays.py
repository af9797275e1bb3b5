"""Schedules that multiply the rate: at some steps, at every step, or when a metric no longer improves."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...errors import ArgumentError
from ..optimizer import Optimizer
from ..schedules import Plateau, Schedule, Step, each_group, require

__all__ = [
    "ConstantLR",
    "ExponentialLR",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "StepLR",
]


class StepLR(Step):
    """`Step` with PyTorch's arguments: the rate times `gamma` after every `step_size` steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        self.size, self.gamma = step_size, gamma
        require("StepLR", step_size >= 1, "step_size", "at least 1", step_size)
        Schedule.__init__(self, optimizer, last_epoch)


class MultiStepLR(Schedule):
    """The rate times `gamma` at each of the `milestones`; one that is given twice counts twice."""

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1):
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def at(self, step: int, base: float) -> float:
        return float(base * self.gamma ** bisect_right(self.milestones, step))


class ExponentialLR(Schedule):
    """The rate times `gamma` at every step: base · gammaᵗ."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def at(self, step: int, base: float) -> float:
        return float(base * self.gamma**step)


class ConstantLR(Schedule):
    """The rate times `factor` for the first `total_iters` steps, then the initial rate."""

    def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1):
        require("ConstantLR", 0 <= factor <= 1, "factor", "from 0 to 1", factor)
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def at(self, step: int, base: float) -> float:
        return base * self.factor if step < self.total_iters else base


class LinearLR(Schedule):
    """The rate times a factor that goes in a line from `start_factor` to `end_factor` within `total_iters` steps.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.ones(2, requires_grad=True)], lr=1.0)
    >>> schedule = mg.optim.LinearLR(optimizer, start_factor=0.5, total_iters=4)
    >>> [schedule.lr(step) for step in range(6)]
    [0.5, 0.625, 0.75, 0.875, 1.0, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ):
        require("LinearLR", 0 < start_factor <= 1, "start_factor", "above 0, at most 1", start_factor)
        require("LinearLR", 0 <= end_factor <= 1, "end_factor", "from 0 to 1", end_factor)
        require("LinearLR", total_iters >= 1, "total_iters", "at least 1", total_iters)
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def at(self, step: int, base: float) -> float:
        done = min(step, self.total_iters) / self.total_iters
        return base * (self.start_factor + (self.end_factor - self.start_factor) * done)


class PolynomialLR(Schedule):
    """base · (1 - t / total_iters)^power, and 0 from step `total_iters` on."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1):
        require("PolynomialLR", total_iters >= 1, "total_iters", "at least 1", total_iters)
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def at(self, step: int, base: float) -> float:
        return float(base * (1 - min(step, self.total_iters) / self.total_iters) ** self.power)


Factor = Callable[[int], float]


class LambdaLR(Schedule):
    """base · lr_lambda(t), with one function for all groups, or one for each.

    A function cannot be saved: a run is resumed with the same one.
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Factor | Sequence[Factor], last_epoch: int = -1):
        self._factors = each_group(type(self).__name__, "lr_lambda", lr_lambda, optimizer)
        if not all(map(callable, self._factors)):
            raise ArgumentError(f"{type(self).__name__}: lr_lambda cannot be used", "functions of the step", lr_lambda)
        super().__init__(optimizer, last_epoch)

    def rate(self, step: int, index: int, base: float) -> float:
        return float(base * self._factors[index](step))


class MultiplicativeLR(LambdaLR):
    """The rate times lr_lambda(t) at each step t: base · lr_lambda(1) · … · lr_lambda(t)."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Factor | Sequence[Factor], last_epoch: int = -1):
        self._products: dict[int, list[float]] = {}
        super().__init__(optimizer, lr_lambda, last_epoch)

    def rate(self, step: int, index: int, base: float) -> float:
        products = self._products.setdefault(index, [1.0])  # up to each step, which saves doing it again
        while len(products) <= step:
            products.append(products[-1] * float(self._factors[index](len(products))))
        return base * products[step]


class ReduceLROnPlateau(Plateau):
    """`Plateau` with PyTorch's arguments: `step(metric)` cuts the rate when the metric has not improved for a while.

    A cut that would lower the rate by no more than `eps` is not made.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0.0,
        eps: float = 1e-8,
    ):
        name = "ReduceLROnPlateau"
        require(name, threshold_mode in ("rel", "abs"), "threshold_mode", "'rel' or 'abs'", threshold_mode)
        self.eps = eps
        self.floors: list[Any] = each_group(name, "min_lr", min_lr, optimizer)
        super().__init__(optimizer, factor, patience, mode, threshold, threshold_mode == "abs", cooldown)

    def rate(self, step: int, index: int, base: float) -> float:
        rate = base
        for _ in range(self.cuts):
            lower = max(rate * self.factor, self.floors[index])
            if rate - lower <= self.eps:
                break
            rate = lower
        return rate
