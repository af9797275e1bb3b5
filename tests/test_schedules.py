"""Schedules give the rates of their formulas, and PyTorch's where PyTorch has them; each group keeps its own."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim

STEPS = 60
RATES = (0.5, 0.002)
METRICS = [3.0, 2.0, 2.0, 1.9999, math.nan, 1.5, 1.6, 1.7, 1.5, math.inf, 1.5, 1.49, 1.4, *[1.4] * 12, 0.1, *[0.2] * 9]
SCHEDULES: dict[str, Callable[[optim.Optimizer], Any]] = {
    "Constant": lambda o: optim.Constant(o),
    "Step": lambda o: optim.Step(o, size=7, gamma=0.5),
    "Cosine": lambda o: optim.Cosine(o, total=STEPS),
    "Cosine, warm-up": lambda o: optim.Cosine(o, total=STEPS, warmup=10, min_lr=0.001),
    "Noam": lambda o: optim.Noam(o, dim=64, warmup=12),
    "InverseSqrt": lambda o: optim.InverseSqrt(o, warmup=12),
    "OneCycle": lambda o: optim.OneCycle(o, max_lr=[0.7, 0.1], total=STEPS),
    "Plateau": lambda o: optim.Plateau(o, factor=0.5, patience=2, min_lr=0.001),
}
# Under PyTorch's names: made in the same way from both modules.
NAMED: dict[str, Callable[[Any, Any], Any]] = {
    "StepLR": lambda m, o: m.StepLR(o, 7, 0.5),
    "MultiStepLR": lambda m, o: m.MultiStepLR(o, [30, 5, 12, 12], gamma=0.5),
    "ExponentialLR": lambda m, o: m.ExponentialLR(o, 0.9),
    "ConstantLR": lambda m, o: m.ConstantLR(o, factor=0.4, total_iters=8),
    "LinearLR": lambda m, o: m.LinearLR(o, 0.2, 0.7, total_iters=11),
    "PolynomialLR": lambda m, o: m.PolynomialLR(o, 40, power=2.5),
    "LambdaLR": lambda m, o: m.LambdaLR(o, [lambda t: 0.9**t, lambda t: 1 / (1 + t)]),
    "MultiplicativeLR": lambda m, o: m.MultiplicativeLR(o, lambda t: 1 - 1 / (t + 2)),
    "CosineAnnealingLR": lambda m, o: m.CosineAnnealingLR(o, T_max=13, eta_min=0.001),
    "Warm restarts": lambda m, o: m.CosineAnnealingWarmRestarts(o, 7, eta_min=0.001),
    "Warm restarts, longer": lambda m, o: m.CosineAnnealingWarmRestarts(o, T_0=5, T_mult=2),
    "CyclicLR": lambda m, o: m.CyclicLR(o, 0.01, [0.1, 0.3], step_size_up=6),
    "CyclicLR, halved": lambda m, o: m.CyclicLR(o, [0.01, 0.02], 0.1, 6, 9, mode="triangular2", cycle_momentum=False),
    "CyclicLR, range": lambda m, o: m.CyclicLR(o, 0.01, 0.1, 7, mode="exp_range", gamma=0.95, base_momentum=0.5),
    "CyclicLR, own": lambda m, o: m.CyclicLR(o, 0.01, 0.1, 7, scale_fn=lambda x: 1 / (1 + x), scale_mode="iterations"),
    "OneCycleLR": lambda m, o: m.OneCycleLR(o, [0.7, 0.1], total_steps=STEPS),
    "OneCycleLR, all": lambda m, o: m.OneCycleLR(
        o, 0.7, epochs=6, steps_per_epoch=10, pct_start=0.4, anneal_strategy="linear", three_phase=True, div_factor=9
    ),
    "SequentialLR": lambda m, o: m.SequentialLR(
        o, [m.LinearLR(o, 0.1, total_iters=6), m.ExponentialLR(o, 0.9), m.CosineAnnealingLR(o, 20)], milestones=[6, 20]
    ),
    "ChainedScheduler": lambda m, o: m.ChainedScheduler(
        [m.ConstantLR(o, 0.1, 5), m.ExponentialLR(o, 0.95), m.LinearLR(o, 0.5, total_iters=9), m.MultiStepLR(o, [30])]
    ),
}
SCHEDULES |= {name: lambda o, make=make: make(optim.lr_scheduler, o) for name, make in NAMED.items()}  # type: ignore[misc]
PURE = [name for name in SCHEDULES if name != "Plateau"]


def optimizer(device: str = "cpu") -> optim.Optimizer:
    """Two groups, each with a rate of its own."""
    return optim.SGD([{"params": [mg.ones(2, device=device, requires_grad=True)], "lr": lr} for lr in RATES])


def rates(o: Any) -> list[float]:
    return [group["lr"] for group in o.param_groups]


def advance(schedule: Any, steps: range) -> list[list[float]]:
    """The rates of all groups, as each step uses them."""
    history = []
    for step in steps:
        history.append(rates(schedule.optimizer))
        schedule.step(*([METRICS[step % len(METRICS)]] if isinstance(schedule, optim.Plateau) else []))
    return history


def torch_schedule(name: str, o: Any) -> Any:
    from torch.optim import lr_scheduler as torch_schedules

    if name == "Step":
        return torch_schedules.StepLR(o, step_size=7, gamma=0.5)
    if name == "Cosine":
        return torch_schedules.CosineAnnealingLR(o, T_max=STEPS)
    if name == "Cosine, warm-up":
        up = torch_schedules.LinearLR(o, start_factor=1 / 11, total_iters=10)
        down = torch_schedules.CosineAnnealingLR(o, T_max=STEPS - 10, eta_min=0.001)
        return torch_schedules.SequentialLR(o, [up, down], milestones=[10])
    return torch_schedules.OneCycleLR(o, max_lr=[0.7, 0.1], total_steps=STEPS, cycle_momentum=False)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:Detected call of")
@pytest.mark.parametrize("name", ["Step", "Cosine", "Cosine, warm-up", "OneCycle"])
def test_the_rates_are_pytorchs(name: str) -> None:
    import torch

    theirs = torch.optim.SGD([{"params": [torch.ones(2, requires_grad=True)], "lr": lr} for lr in RATES])
    schedule = torch_schedule(name, theirs)
    expected = []
    for step in range(STEPS):
        expected.append([float(group["lr"]) for group in theirs.param_groups])
        if step < STEPS - 1:  # PyTorch's OneCycleLR refuses to go on
            theirs.step()
            schedule.step()
    np.testing.assert_allclose(advance(SCHEDULES[name](optimizer()), range(STEPS)), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.torch
@pytest.mark.filterwarnings(
    "ignore:Detected call of", "ignore:To get the last learning rate", "ignore:The epoch parameter"
)
@pytest.mark.parametrize("name", NAMED)
def test_rates_and_momenta_under_pytorchs_names_are_pytorchs(name: str) -> None:
    import torch

    kind = "AdamW" if name == "OneCycleLR, all" else "SGD"
    options: dict[str, Any] = {"momentum": 0.5} if kind == "SGD" else {}
    theirs = getattr(torch.optim, kind)(
        [{"params": [torch.ones(2, requires_grad=True)], "lr": lr} for lr in RATES], **options
    )
    ours = getattr(optim, kind)([{"params": [mg.ones(2, requires_grad=True)], "lr": lr} for lr in RATES], **options)
    other, schedule = NAMED[name](torch.optim.lr_scheduler, theirs), NAMED[name](optim.lr_scheduler, ours)
    for step in range(STEPS):
        assert schedule.get_last_lr() == rates(ours) and schedule.last_epoch == step
        for key in ("lr", "momentum", "betas"):
            if key in ours.param_groups[0]:
                got, expected = ([g[key] for g in o.param_groups] for o in (ours, theirs))
                np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-14, err_msg=f"{key} at step {step}")
        if step < STEPS - 1:
            theirs.step()
            other.step()
            schedule.step()


@pytest.mark.torch
def test_reduce_lr_on_plateau_has_pytorchs_arguments_and_numbers() -> None:
    import torch

    options: dict[str, Any] = {"patience": 1, "threshold_mode": "abs", "min_lr": [0.01, 1e-6], "eps": 1e-4}
    ours = optimizer()
    schedule = optim.ReduceLROnPlateau(ours, "min", 0.3, **options)
    theirs = torch.optim.SGD([{"params": [torch.ones(2, requires_grad=True)], "lr": lr} for lr in RATES])
    other = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, "min", 0.3, **options)
    for metric in METRICS:
        schedule.step(metric)
        other.step(metric)
        np.testing.assert_allclose(rates(ours), [float(g["lr"]) for g in theirs.param_groups], rtol=1e-12)
    assert isinstance(schedule, optim.Plateau) and rates(ours)[0] == 0.01


def test_a_schedule_goes_on_from_the_last_epoch_that_is_given() -> None:
    schedule = optim.StepLR(optimizer(), 2, 0.5)
    advance(schedule, range(5))
    resumed = optim.StepLR(schedule.optimizer, 2, 0.5, last_epoch=schedule.last_epoch - 1)
    assert resumed.steps == schedule.steps and resumed.lr() == schedule.lr() == RATES[0] / 4


def test_what_a_schedule_was_made_with_can_be_read_and_repeated() -> None:
    o = optimizer()
    made = [optim.SequentialLR(o, [optim.LambdaLR(o, lambda t: 1.0), optim.StepLR(o, 3)], [2]) for _ in range(2)]
    assert repr(made[0]) == repr(made[1])
    assert repr(made[0]) == "SequentialLR(schedulers=[LambdaLR(), StepLR(size=3, gamma=0.1)], milestones=[2])"


@pytest.mark.torch
@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("cooldown", [0, 3])
def test_a_plateau_cuts_the_rates_when_pytorchs_does(mode: str, absolute: bool, cooldown: int) -> None:
    import torch

    options: dict[str, Any] = {"factor": 0.5, "patience": 2, "threshold": 0.01, "cooldown": cooldown, "min_lr": 1e-3}
    ours = optimizer()
    schedule = optim.Plateau(ours, mode=mode, absolute=absolute, **options)
    theirs = torch.optim.SGD([{"params": [torch.ones(2, requires_grad=True)], "lr": lr} for lr in RATES])
    threshold_mode = "abs" if absolute else "rel"
    other = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, mode=mode, threshold_mode=threshold_mode, **options)
    for metric in METRICS:
        value = metric if mode == "min" else -metric if math.isinf(metric) else 5 - metric
        schedule.step(value)
        other.step(value)
        np.testing.assert_allclose(rates(ours), [float(g["lr"]) for g in theirs.param_groups], rtol=1e-12)
    assert rates(ours) != list(RATES)


def test_a_constant_rate_stays() -> None:
    assert advance(optim.Constant(optimizer()), range(5)) == [list(RATES)] * 5


def test_noam_follows_its_paper() -> None:
    o = optim.SGD([mg.ones(1, requires_grad=True)], lr=1.0)
    got = [one[0] for one in advance(optim.Noam(o, dim=512, warmup=4000), range(9000))]
    expected = [512**-0.5 * min(n**-0.5, n * 4000**-1.5) for n in range(1, 9001)]
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    assert int(np.argmax(got)) == 3999


def test_inverse_sqrt_rises_to_the_given_rate_and_falls_with_the_root() -> None:
    schedule = optim.InverseSqrt(optimizer(), warmup=100)
    assert schedule.lr(49) == pytest.approx(RATES[0] / 2)
    assert schedule.lr(99) == RATES[0]
    assert schedule.lr(399) == pytest.approx(RATES[0] / 2)
    assert schedule.lr(399, group=1) == pytest.approx(RATES[1] / 2)


def test_a_cosine_stays_at_its_end() -> None:
    schedule = optim.Cosine(optimizer(), total=10, warmup=3, min_lr=0.001)
    assert schedule.lr(3) == RATES[0]
    assert [schedule.lr(step) for step in (10, 11, 1000)] == [0.001] * 3


def test_one_cycle_takes_the_groups_own_rates_as_maxima_and_stays_at_its_end() -> None:
    schedule = optim.OneCycle(optimizer(), total=30)
    assert max(schedule.lr(step) for step in range(30)) == pytest.approx(RATES[0])
    assert max(schedule.lr(step, group=1) for step in range(30)) == pytest.approx(RATES[1])
    assert schedule.lr(0) == pytest.approx(RATES[0] / 25)
    assert schedule.lr(29) == schedule.lr(500) == pytest.approx(RATES[0] / 25e4)


@pytest.mark.parametrize("total", [2, 3, 10])
def test_short_cycles_have_finite_rates(total: int) -> None:
    schedule = optim.OneCycle(optimizer(), 1.0, total=total, rise=0.5)
    assert all(0 < rate <= 1 for rate in (schedule.lr(step) for step in range(total + 2)))


@pytest.mark.parametrize("name", PURE)
def test_the_rate_is_a_function_of_the_step_alone(name: str) -> None:
    schedule = SCHEDULES[name](optimizer())
    foretold = [[schedule.lr(step, group=0), schedule.lr(step, group=1)] for step in range(STEPS)]
    assert advance(schedule, range(STEPS)) == foretold
    assert all(type(rate) is float for pair in foretold for rate in pair)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("when", [0, 1, 11, 37])
def test_a_resumed_schedule_goes_on_with_the_same_bits(name: str, when: int) -> None:
    schedule = SCHEDULES[name](optimizer())
    advance(schedule, range(when))
    text = json.dumps([schedule.optimizer.state_dict()["values"], schedule.state_dict()], allow_nan=False)
    straight = advance(schedule, range(when, STEPS))
    values, state = json.loads(text)
    resumed = SCHEDULES[name](optimizer())
    resumed.optimizer.load_state_dict({"arrays": {}, "values": values})
    resumed.load_state_dict(state)
    assert advance(resumed, range(when, STEPS)) == straight


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_made_after_its_optimiser_was_loaded_goes_on_as_well(name: str) -> None:
    schedule = SCHEDULES[name](optimizer())
    advance(schedule, range(20))
    values, state = schedule.optimizer.state_dict()["values"], schedule.state_dict()
    loaded = optimizer()
    loaded.load_state_dict({"arrays": {}, "values": values})
    resumed = SCHEDULES[name](loaded)
    resumed.load_state_dict(state)
    assert advance(resumed, range(20, 40)) == advance(schedule, range(20, 40))


def test_a_rate_loaded_without_a_schedule_is_what_the_next_schedule_starts_from() -> None:
    plain, scheduled = optimizer(), optimizer()
    optim.Noam(scheduled, dim=64, warmup=10)
    plain.param_groups[0]["lr"] = 0.25
    scheduled.load_state_dict(plain.state_dict())
    assert rates(scheduled) == [0.25, RATES[1]]
    assert optim.Step(scheduled, size=1, gamma=0.5).lr(1) == 0.125


def test_a_group_that_is_added_late_joins_with_a_rate_of_its_own() -> None:
    schedule = optim.Cosine(optimizer(), total=10)
    advance(schedule, range(5))
    schedule.optimizer.add_param_group({"params": [mg.ones(1, requires_grad=True)], "lr": 8.0})
    schedule.step()
    assert schedule.optimizer.param_groups[2]["lr"] == pytest.approx(8.0 * (1 + math.cos(math.pi * 0.6)) / 2)


def test_the_rate_is_the_one_the_step_uses(device: str) -> None:
    o = optimizer(device)
    schedule = optim.Step(o, size=1, gamma=0.5)
    p = o.param_groups[0]["params"][0]
    for expected in (0.5, 0.25):
        p.grad = mg.ones(2, device=device)
        o.step()
        schedule.step()
        assert p.tolist() == [expected, expected]


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"kind": "Cosine", "steps": 3}, "another schedule"),
        (None, "another schedule"),
        ({"kind": "Step"}, "other values"),
        ({"kind": "Step", "steps": 3, "more": 1}, "other values"),
        ({"kind": "Step", "steps": -1}, "steps is impossible"),
        ({"kind": "Step", "steps": 2.5}, "steps is impossible"),
    ],
)
def test_a_state_that_does_not_fit_is_refused(state: Any, message: str) -> None:
    schedule = optim.Step(optimizer(), size=7)
    with pytest.raises(nn.StateError, match=message):
        schedule.load_state_dict(state)
    assert schedule.steps == 0


def test_a_plateau_refuses_an_impossible_best_and_changes_nothing() -> None:
    schedule = optim.Plateau(optimizer())
    with pytest.raises(nn.StateError, match="best is impossible"):
        schedule.load_state_dict({**schedule.state_dict(), "steps": 4, "best": math.nan})
    assert schedule.steps == 0


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda o: optim.Step(o, size=0), "size"),
        (lambda o: optim.Cosine(o, total=5, warmup=5), "total"),
        (lambda o: optim.Cosine(o, total=5, warmup=-1), "warmup"),
        (lambda o: optim.Noam(o, dim=0, warmup=5), "dim"),
        (lambda o: optim.InverseSqrt(o, warmup=0), "warmup"),
        (lambda o: optim.OneCycle(o, 1.0, total=1), "total"),
        (lambda o: optim.OneCycle(o, [1.0], total=9), "one for each of 2 groups"),
        (lambda o: optim.OneCycle(o, 1.0, total=9, rise=1.0), "rise"),
        (lambda o: optim.Plateau(o, factor=1.0), "factor"),
        (lambda o: optim.Plateau(o, mode="low"), "mode"),
        (lambda o: optim.Constant(o.param_groups), "an Optimizer"),
        (lambda o: optim.StepLR(o, 0), "step_size"),
        (lambda o: optim.StepLR(o, 2, last_epoch=-2), "last_epoch"),
        (lambda o: optim.LinearLR(o, start_factor=0), "start_factor"),
        (lambda o: optim.LambdaLR(o, [lambda t: 1.0]), "one for each of 2 groups"),
        (lambda o: optim.LambdaLR(o, 0.5), "functions of the step"),
        (lambda o: optim.CosineAnnealingWarmRestarts(o, 0), "T_0"),
        (lambda o: optim.CyclicLR(o, 0.1, 1.0, mode="square"), "mode"),
        (lambda o: optim.CyclicLR(optim.Adagrad([mg.ones(1)]), 0.1, 1.0), "no momentum"),
        (lambda o: optim.OneCycleLR(o, 1.0), "total_steps"),
        (lambda o: optim.SequentialLR(o, [optim.Step(o, 2)], [3]), "milestones do not fit"),
        (lambda o: optim.SequentialLR(o, [optim.Plateau(o)], []), "Plateau cannot be a part"),
        (lambda o: optim.ChainedScheduler([]), "no schedules"),
        (lambda o: optim.ChainedScheduler([optim.Step(o, 2), optim.Step(optimizer(), 2)]), "another optimiser"),
    ],
)
def test_settings_that_cannot_work_are_refused(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(optimizer())
