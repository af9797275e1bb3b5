"""How much training fits into so many minutes: a short training is timed and thrown away."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from time import perf_counter
from typing import Any

from ..errors import ArgumentError
from .config import configure
from .spec import ModelSpec
from .training import named, trainer_of

__all__ = ["Plan", "plan_for"]

PROBE = 3.0  # seconds that steps are timed for, after the first few, which also compile
WARM = 3
TRYING = 0.2  # of the time, at most, before no larger size is tried
SHARE = 0.95  # of the time that is planned with: a step may take longer later


@dataclasses.dataclass(frozen=True)
class Plan:
    """Settings that make training end in time, and what they come to."""

    settings: Mapping[str, Any]
    steps: int
    planned: int  # the steps that the model would have been trained for
    seconds: float  # of a step
    minutes: float  # that were left when the steps were counted
    size: str | None = None

    def __str__(self) -> str:
        chosen = "" if self.size is None else f"the size {self.size!r}: "
        return f"{chosen}{self.steps:,} steps of {1e3 * self.seconds:.3g} ms fit ({self.planned:,} would be usual)"


def plan_for(
    name: str, minutes: float, overrides: Mapping[str, Any], *, choose_size: bool = False, **given: Any
) -> Plan:
    """The settings with which training ends within `minutes`, its schedule with it.

    With `choose_size` the largest of the model's sizes whose usual number of steps fits, or else the smallest; small ones are
    tried first. `given` is what `train` gets besides: data, seed, device, compile.
    """
    spec, preset = named(name)
    if not choose_size:
        return _plan(spec, preset, overrides, minutes, given, None)
    if not spec.sizes:
        raise ArgumentError(f"{spec.name} has one size only", "a model with sizes", spec.name, "leave out --fit-model")
    began, best = perf_counter(), None
    for size in spec.sizes:
        spent = (perf_counter() - began) / 60
        if best is not None and spent > TRYING * minutes:
            break
        try:
            plan = _plan(spec, preset, {**spec.sizes[size], **overrides}, minutes - spent, given, size)
        except ArgumentError:
            if best is None:
                raise
            break
        if best is not None and plan.steps < plan.planned:
            break
        best = plan
    assert best is not None
    left = minutes - (perf_counter() - began) / 60
    steps = max(1, min(best.planned, int(best.steps * left / best.minutes)))
    return dataclasses.replace(best, settings={**best.settings, "steps": steps}, steps=steps)


def _plan(
    spec: ModelSpec, preset: str | None, overrides: Mapping[str, Any], minutes: float, given: Any, size: str | None
) -> Plan:
    began = perf_counter()
    step, validation, planned = _timed(spec, configure(spec, preset, overrides), given)
    minutes_left = minutes - (perf_counter() - began) / 60
    left = SHARE * 60 * minutes_left
    # Validations are as many as in the usual training, or come every so many steps: whichever costs more.
    usual = max(1, planned.steps // planned.valid_every)
    steps = int(min((left - usual * validation) / step, left / (step + validation / planned.valid_every)))
    if steps < 1:
        raise ArgumentError(
            f"{spec.name}: {minutes:.3g} minutes are too few: trying it took {perf_counter() - began:.0f} s, "
            f"a step takes {step:.2g} s, and validations {usual * validation:.2g} s",
            fix="give more minutes, or choose a smaller preset",
        )
    return Plan({**overrides, "steps": steps}, steps, planned.steps, step, minutes_left, size)


def _timed(spec: ModelSpec, config: Any, given: Mapping[str, Any]) -> tuple[float, float, Any]:
    """The seconds of a step and of a validation, and the config with all that follows from the data."""
    trainer = trainer_of(spec, config, None, progress=False, **given)
    planned = configure(spec, None, trainer.config["config"])
    trainer.valid_every, trainer.max_steps = 10**12, None
    ends: list[float] = []

    def note(trainer: Any, info: Mapping[str, Any]) -> None:
        ends.append(perf_counter())
        if len(ends) > WARM and (ends[-1] - ends[WARM - 1] > PROBE or len(ends) > planned.steps):
            trainer.stop()

    trainer.on("step", note)
    trainer.train()
    step = (ends[-1] - ends[WARM - 1]) / (len(ends) - WARM)
    if trainer.valid is None:
        return step, 0.0, planned
    trainer.valid_every, seconds = 1, []
    for _ in range(2):  # the first also compiles
        start = perf_counter()
        trainer.train()  # it stops after one step, and its validation
        seconds.append(perf_counter() - start - step)
    return step, max(min(seconds), 0.0), planned
