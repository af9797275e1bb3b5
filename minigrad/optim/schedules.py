"""Learning-rate schedules.

A schedule sets the learning rate of every parameter group: that of step 0 when it is made, the next one at each `step()`. The
rate is a function of the step and of the group's initial rate, so only the number of steps is saved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from ..errors import ArgumentError
from ..signature import Constructed
from .optimizer import Group, Optimizer
from .saved_state import misfit

__all__ = [
    "Constant",
    "Cosine",
    "InverseSqrt",
    "Noam",
    "OneCycle",
    "Plateau",
    "Schedule",
    "Step",
    "between",
    "each_group",
    "line",
    "require",
    "swing",
]


class Schedule(Constructed):
    """The base of every schedule: a subclass gives `at(step, base)`, or `rate(step, index, base)` if groups differ.

    `last_epoch` goes on after that many steps more than one, with the initial rates in the groups of a loaded optimiser.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.ones(2, requires_grad=True)], lr=1.0)
    >>> schedule = mg.optim.Step(optimizer, size=2, gamma=0.5)
    >>> [schedule.lr(step) for step in range(5)]
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    remembered: ClassVar[tuple[str, ...]] = ("steps",)  # the attributes that are saved

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(
                f"{type(self).__name__}: a schedule needs the optimiser whose rate it sets",
                "an Optimizer",
                type(optimizer),
            )
        require(type(self).__name__, last_epoch >= -1, "last_epoch", "a whole number from -1", last_epoch)
        self.optimizer = optimizer
        self.steps = last_epoch + 1
        self._apply()

    def at(self, step: int, base: float) -> float:
        """The rate at `step`, counted from 0, of a group with the initial rate `base`."""
        raise NotImplementedError

    def rate(self, step: int, index: int, base: float) -> float:
        """The rate at `step` of the group number `index`, as `at` says unless groups have settings of their own."""
        return self.at(step, base)

    def lr(self, step: int | None = None, group: int = 0) -> float:
        """The learning rate of a group at a step, by default the current one."""
        base = _base(self.optimizer.param_groups[group])
        return float(self.rate(self.steps if step is None else step, group, base))

    @property
    def last_epoch(self) -> int:
        """The number of steps so far, by PyTorch's name."""
        return self.steps

    def get_last_lr(self) -> list[float]:
        """The current learning rate of every group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def step(self) -> None:
        """Advance by one step; call it after each `optimizer.step()`."""
        self.steps += 1
        self._apply()

    def _apply(self) -> None:
        for index, group in enumerate(self.optimizer.param_groups):
            group["lr"] = self.lr(group=index)

    def state_dict(self) -> dict[str, Any]:
        """The state, in JSON values. The initial rates of the groups are in the state of the optimiser."""
        return {"kind": type(self).__name__, **{key: getattr(self, key) for key in self.remembered}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state; load the optimiser's first. If anything does not fit, nothing is changed."""
        name = type(self).__name__
        if not isinstance(state, Mapping) or state.get("kind") != name:
            got = state.get("kind") if isinstance(state, Mapping) else type(state).__name__
            raise misfit(name, "it belongs to another schedule", name, got)
        if state.keys() != {"kind", *self.remembered}:
            raise misfit(name, "it holds other values", ", ".join(self.remembered), ", ".join(map(str, state)))
        for key in self.remembered:
            if not _possible(key, state[key]):
                raise misfit(name, f"{key} is impossible", "a whole number from 0", repr(state[key]))
        for key in self.remembered:
            setattr(self, key, state[key])
        self._apply()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self.settings().items())})"

    def settings(self) -> dict[str, Any]:
        """What it was made with, besides the optimiser and functions."""
        hidden = ("optimizer", *self.remembered)
        return {key: value for key, value in vars(self).items() if key not in hidden and not key.startswith("_")}


def _base(group: Group) -> float:
    """The initial rate of a group, which is stored in it before a schedule changes its rate."""
    if "initial_lr" not in group:
        group["initial_lr"] = group["lr"]
    return group["initial_lr"]


def _possible(key: str, value: Any) -> bool:
    """Whether a saved value is valid: the best metric so far, rates, or a count."""
    if key == "starts":
        return isinstance(value, list) and all(type(rate) in (int, float) and math.isfinite(rate) for rate in value)
    if key == "best":
        return value is None or type(value) in (int, float) and math.isfinite(value)
    return type(value) is int and value >= 0


def require(name: str, holds: bool, argument: str, expected: str, got: Any) -> None:
    if not holds:
        raise ArgumentError(f"{name}: {argument} cannot be used", expected, repr(got))


def each_group(name: str, argument: str, value: Any, optimizer: Optimizer) -> list[Any]:
    """One value for each group of the optimiser, of one for all or a list of them."""
    count = len(optimizer.param_groups)
    values = list(value) if isinstance(value, Sequence) else [value] * count
    require(name, len(values) == count, argument, f"one for each of {count} groups", value)
    return values


class Constant(Schedule):
    """The initial rate at every step."""

    def at(self, step: int, base: float) -> float:
        return base


class Step(Schedule):
    """The rate times `gamma` after every `size` steps."""

    def __init__(self, optimizer: Optimizer, size: int, gamma: float = 0.1):
        require("Step", size >= 1, "size", "at least 1", size)
        require("Step", gamma >= 0, "gamma", "at least 0", gamma)
        self.size, self.gamma = size, gamma
        super().__init__(optimizer)

    def at(self, step: int, base: float) -> float:
        return base * self.gamma ** (step // self.size)


class Cosine(Schedule):
    """Linear warmup over `warmup` steps, then half a cosine down to `min_lr` at step `total`."""

    def __init__(self, optimizer: Optimizer, total: int, warmup: int = 0, min_lr: float = 0.0):
        require("Cosine", warmup >= 0, "warmup", "at least 0", warmup)
        require("Cosine", total > warmup, "total", f"more steps than the warm-up, {warmup}", total)
        require("Cosine", min_lr >= 0, "min_lr", "at least 0", min_lr)
        self.total, self.warmup, self.min_lr = total, warmup, min_lr
        super().__init__(optimizer)

    def at(self, step: int, base: float) -> float:
        if step < self.warmup:
            return base * (step + 1) / (self.warmup + 1)
        done = min((step - self.warmup) / (self.total - self.warmup), 1.0)
        return self.min_lr + (base - self.min_lr) * (1 + math.cos(math.pi * done)) / 2


class InverseSqrt(Schedule):
    """Linear warmup to the initial rate over `warmup` steps, then decay with the inverse square root of the step."""

    def __init__(self, optimizer: Optimizer, warmup: int):
        require("InverseSqrt", warmup >= 1, "warmup", "at least 1", warmup)
        self.warmup = warmup
        super().__init__(optimizer)

    def at(self, step: int, base: float) -> float:
        return base * min((step + 1) / self.warmup, (self.warmup / (step + 1)) ** 0.5)


class Noam(Schedule):
    """The schedule of "Attention is all you need": dim^-½ · min(n^-½, n · warmup^-3/2) with n = step + 1.

    The rate that a group was given is a factor in front of it, usually 1 or 2.
    """

    def __init__(self, optimizer: Optimizer, dim: int, warmup: int):
        require("Noam", dim >= 1, "dim", "at least 1", dim)
        require("Noam", warmup >= 1, "warmup", "at least 1", warmup)
        self.dim, self.warmup = dim, warmup
        super().__init__(optimizer)

    def at(self, step: int, base: float) -> float:
        n = step + 1
        return base * self.dim**-0.5 * min(n**-0.5, n * self.warmup**-1.5)


class OneCycle(Schedule):
    """From max_lr / div up to `max_lr` in the first share `rise` of `total` steps, then down to almost nothing, as PyTorch's.

    Both ways in half a cosine. `max_lr` is one number or one for each group; without it each group's own rate is its
    maximum. After `total` steps the rate stays where it is.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float] | None = None,
        *,
        total: int,
        rise: float = 0.3,
        div: float = 25.0,
        final_div: float = 1e4,
    ):
        groups = optimizer.param_groups
        given = [_base(group) for group in groups] if max_lr is None else max_lr
        rates = each_group("OneCycle", "max_lr", given, optimizer)
        require("OneCycle", min(rates) >= 0, "max_lr", "at least 0", max_lr)
        require("OneCycle", total >= 2, "total", "at least 2 steps", total)
        require("OneCycle", 0 < rise < 1, "rise", "between 0 and 1", rise)
        require("OneCycle", div >= 1 and final_div >= 1, "div or final_div", "at least 1", (div, final_div))
        self.total, self.rise, self.div, self.final_div = total, rise, div, final_div
        for group, rate in zip(groups, rates):
            group["initial_lr"] = float(rate)
        super().__init__(optimizer)

    def at(self, step: int, base: float) -> float:
        first, top = base / self.div, self.rise * self.total - 1
        return between(step, [0, top, self.total - 1], [first, base, first / self.final_div])


def swing(start: float, end: float, done: float) -> float:
    """From start to end in half a cosine."""
    return end + (start - end) * (1 + math.cos(math.pi * done)) / 2


def line(start: float, end: float, done: float) -> float:
    """From start to end in a line."""
    return start + (end - start) * done


def between(
    step: float, ends: Sequence[float], values: Sequence[float], way: Callable[[float, float, float], float] = swing
) -> float:
    """The value at a step, on the way from one of `values` to the next, each reached at one of `ends`."""
    phase = next((i for i, end in enumerate(ends[1:]) if step < end), len(ends) - 2)
    done = (step - ends[phase]) / (ends[phase + 1] - ends[phase])
    return way(values[phase], values[phase + 1], min(done, 1.0))


class Plateau(Schedule):
    """The rate times `factor` when a metric has not improved for more than `patience` calls of `step(metric)`, as PyTorch's.

    Better means lower by the share `threshold` of the best so far, or higher with `mode="max"`; with `absolute`, by
    `threshold` itself. After a cut, `cooldown` calls are not counted; the rate does not fall below `min_lr`.
    """

    remembered = ("steps", "best", "bad", "resting", "cuts")

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 0.1,
        patience: int = 10,
        mode: str = "min",
        threshold: float = 1e-4,
        absolute: bool = False,
        cooldown: int = 0,
        min_lr: float = 0.0,
    ):
        require("Plateau", 0 <= factor < 1, "factor", "from 0 to below 1", factor)
        require("Plateau", patience >= 0 and cooldown >= 0, "patience or cooldown", "at least 0", (patience, cooldown))
        require("Plateau", mode in ("min", "max"), "mode", "'min' or 'max'", mode)
        self.factor, self.patience, self.mode, self.threshold = factor, patience, mode, threshold
        self.absolute, self.cooldown, self.min_lr = absolute, cooldown, min_lr
        self.best: float | None = None
        self.bad = self.resting = self.cuts = 0
        super().__init__(optimizer)

    def at(self, step: int, base: float) -> float:
        """The current rate, whatever the step: later cuts are not known."""
        return max(base * self.factor**self.cuts, min(self.min_lr, base))

    def step(self, metric: float) -> None:  # type: ignore[override]  # other schedules need no metric
        """Give the metric of one more epoch."""
        value = float(metric)
        if self._better(value):
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        if self.resting:
            self.resting -= 1
            self.bad = 0
        if self.bad > self.patience:
            self.cuts, self.bad, self.resting = self.cuts + 1, 0, self.cooldown
        super().step()

    def _better(self, value: float) -> bool:
        """NaN and infinity are never better."""
        if not math.isfinite(value) or self.best is None:
            return math.isfinite(value)
        sign = 1 if self.mode == "min" else -1
        margin = self.threshold * (1 if self.absolute else self.best)
        return sign * value < sign * self.best - margin
