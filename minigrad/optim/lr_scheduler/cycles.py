"""Schedules that go up and down: cosines, with and without restarts, and cycles of rate and momentum."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...errors import ArgumentError
from ..optimizer import Optimizer
from ..schedules import Schedule, between, each_group, line, require, swing

__all__ = ["CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "OneCycleLR"]

Numbers = float | Sequence[float]  # one for all groups, or one for each


class CosineAnnealingLR(Schedule):
    """Half a cosine from the initial rate down to `eta_min` at step `T_max`, then up again, and so on.

    `Cosine` stays at its end instead, and has a warm-up.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):  # noqa: N803
        require("CosineAnnealingLR", T_max >= 1, "T_max", "at least 1", T_max)
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def at(self, step: int, base: float) -> float:
        return swing(base, self.eta_min, step / self.T_max)


class CosineAnnealingWarmRestarts(Schedule):
    """Half a cosine down to `eta_min` within `T_0` steps, then again from the top, each time `T_mult` times as long."""

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,  # noqa: N803
        T_mult: int = 1,  # noqa: N803
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ):
        name = "CosineAnnealingWarmRestarts"
        require(name, type(T_0) is int and T_0 >= 1, "T_0", "a whole number from 1", T_0)
        require(name, type(T_mult) is int and T_mult >= 1, "T_mult", "a whole number from 1", T_mult)
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def at(self, step: int, base: float) -> float:
        length = self.T_0
        if self.T_mult == 1:
            step %= length
        while step >= length:
            step, length = step - length, length * self.T_mult
        return swing(base, self.eta_min, step / length)


class _Cycle(Schedule):
    """A schedule that can move the momentum against the rate; of Adam's kind it is the first of `betas`."""

    cycle_momentum: bool
    base_momentum: Sequence[float]
    max_momentum: Sequence[float]

    def momentum(self, step: int, index: int) -> float:
        """The momentum of a group at a step."""
        raise NotImplementedError

    def _set_momenta(self, cycled: bool, base: Numbers, most: Numbers, optimizer: Optimizer) -> None:
        name = type(self).__name__
        self.cycle_momentum = cycled
        if cycled:
            if not {"momentum", "betas"} & optimizer.defaults.keys():
                raise ArgumentError(
                    f"{name}: {type(optimizer).__name__} has no momentum that could be cycled",
                    "an optimiser with momentum or betas",
                    type(optimizer).__name__,
                    "pass cycle_momentum=False",
                )
            self.base_momentum = each_group(name, "base_momentum", base, optimizer)
            self.max_momentum = each_group(name, "max_momentum", most, optimizer)

    def _apply(self) -> None:
        super()._apply()
        if self.cycle_momentum:
            for index, group in enumerate(self.optimizer.param_groups):
                momentum = self.momentum(self.steps, index)
                if "betas" in group:
                    group["betas"] = (momentum, *group["betas"][1:])
                else:
                    group["momentum"] = momentum


class CyclicLR(_Cycle):
    """From `base_lr` up to `max_lr` in `step_size_up` steps and down again in `step_size_down`, over and over.

    `mode` says what becomes of the height: "triangular" keeps it, "triangular2" halves it after each cycle, "exp_range"
    multiplies it by gammaᵗ. `scale_fn` of the cycle, or of the step with scale_mode="iterations", replaces these. With
    `cycle_momentum` the momentum goes from `max_momentum` down to `base_momentum` and up again meanwhile.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Numbers,
        max_lr: Numbers,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Numbers = 0.8,
        max_momentum: Numbers = 0.9,
        last_epoch: int = -1,
    ):
        modes, scale_modes = ("triangular", "triangular2", "exp_range"), ("cycle", "iterations")
        require("CyclicLR", mode in modes or scale_fn is not None, "mode", " or ".join(map(repr, modes)), mode)
        require("CyclicLR", scale_mode in scale_modes, "scale_mode", " or ".join(map(repr, scale_modes)), scale_mode)
        require("CyclicLR", step_size_up >= 1, "step_size_up", "at least 1", step_size_up)
        self.up, self.down = step_size_up, step_size_up if step_size_down is None else step_size_down
        self.mode, self.gamma, self._scale_fn = mode, gamma, scale_fn
        self.by_step = scale_mode == "iterations" if scale_fn else mode == "exp_range"
        self.max_lr = each_group("CyclicLR", "max_lr", max_lr, optimizer)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, each_group("CyclicLR", "base_lr", base_lr, optimizer)):
                group["initial_lr"] = float(rate)
        self._set_momenta(cycle_momentum, base_momentum, max_momentum, optimizer)
        super().__init__(optimizer, last_epoch)

    def _height(self, step: int) -> float:
        """How far up the cycle is, from 0 to 1, times the scale of the mode."""
        cycle, place = step // (self.up + self.down) + 1, step % (self.up + self.down)
        height = place / self.up if place <= self.up else (self.up + self.down - place) / self.down
        return height * self._scale(step if self.by_step else cycle)

    def _scale(self, x: int) -> float:
        if self._scale_fn is not None:
            return float(self._scale_fn(x))
        return {"triangular": 1.0, "triangular2": 0.5 ** (x - 1), "exp_range": self.gamma**x}[self.mode]

    def rate(self, step: int, index: int, base: float) -> float:
        return base + (self.max_lr[index] - base) * self._height(step)

    def momentum(self, step: int, index: int) -> float:
        most = self.max_momentum[index]
        return most - (most - self.base_momentum[index]) * self._height(step)


class OneCycleLR(_Cycle):
    """`OneCycle` with PyTorch's arguments, and its momentum: up to `max_lr`, then down to almost nothing.

    Give `total_steps`, or `epochs` and `steps_per_epoch`. With `three_phase` the rate goes down as it came up, and then to
    the end. With `cycle_momentum` the momentum goes from `max_momentum` to `base_momentum` and back.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Numbers,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Numbers = 0.85,
        max_momentum: Numbers = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ):
        if total_steps is None:
            given = epochs is not None and steps_per_epoch is not None
            require("OneCycleLR", given, "total_steps", "total_steps, or epochs and steps_per_epoch", None)
            total_steps = epochs * steps_per_epoch  # type: ignore[operator]
        require("OneCycleLR", total_steps >= 2, "total_steps", "at least 2 steps", total_steps)
        require("OneCycleLR", 0 <= pct_start <= 1, "pct_start", "from 0 to 1", pct_start)
        require(
            "OneCycleLR", anneal_strategy in ("cos", "linear"), "anneal_strategy", "'cos' or 'linear'", anneal_strategy
        )
        self.total_steps, self.anneal_strategy, self.final_div_factor = total_steps, anneal_strategy, final_div_factor
        top = pct_start * total_steps - 1
        self.ends = [0.0, top, *([2 * top] if three_phase else []), total_steps - 1.0]  # of the phases
        self.max_lr = each_group("OneCycleLR", "max_lr", max_lr, optimizer)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, self.max_lr):
                group["initial_lr"] = rate / div_factor
        self._set_momenta(cycle_momentum, base_momentum, max_momentum, optimizer)
        super().__init__(optimizer, last_epoch)

    def _between(self, step: int, *values: float) -> float:
        return between(step, self.ends, values, swing if self.anneal_strategy == "cos" else line)

    def rate(self, step: int, index: int, base: float) -> float:
        down = [base] if len(self.ends) == 4 else []
        return self._between(step, base, self.max_lr[index], *down, base / self.final_div_factor)

    def momentum(self, step: int, index: int) -> float:
        most, least = self.max_momentum[index], self.base_momentum[index]
        return self._between(step, most, least, most, most)
