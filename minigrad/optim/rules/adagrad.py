"""Adagrad and Adadelta, which divide by the size of all gradients so far."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...engine.backend import Array
from ..optimizer import Group, Optimizer, State
from .decay import decayed

__all__ = ["Adadelta", "Adagrad"]


class Adagrad(Optimizer):
    """p ← p - lr · g / (√s + eps) with s the sum of all g² so far, as PyTorch's.

    The sum starts with `initial_accumulator_value`; at step t the rate is lr / (1 + (t - 1) · lr_decay);
    `weight_decay` adds weight_decay · p to the gradient.
    """

    compiled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
        **unknown: Any,
    ):
        options = {
            "lr": lr,
            "lr_decay": lr_decay,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "eps": eps,
            "maximize": maximize,
        }
        super().__init__(params, options, unknown)

    def buffers(self, group: Group) -> tuple[str, ...]:
        return ("sum",)

    def update(self, xp: Any, p: Array, g: Array, state: State, group: Group) -> None:
        g = decayed(p, g, group)
        total, rate = state["sum"], group["lr"]
        if group["initial_accumulator_value"] and state["step"] == 1:
            total += group["initial_accumulator_value"]
        if group["lr_decay"]:
            rate = rate / (1 + (state["step"] - 1) * group["lr_decay"])
        total += g * g
        root = xp.sqrt(total)
        root += group["eps"]
        p -= rate * (g / root)


class Adadelta(Optimizer):
    """p ← p - lr · u with u = g · √(d + eps) / √(s + eps), as PyTorch's.

    s and d are running means of g² and of u²: s ← rho · s + (1 - rho) · g². So the step has the size of earlier steps.
    """

    compiled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **unknown: Any,
    ):
        options = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, options, unknown)

    def buffers(self, group: Group) -> tuple[str, ...]:
        return ("square_avg", "acc_delta")

    def update(self, xp: Any, p: Array, g: Array, state: State, group: Group) -> None:
        g = decayed(p, g, group)
        square, steps, rho, eps = state["square_avg"], state["acc_delta"], group["rho"], group["eps"]
        square *= rho
        square += (1 - rho) * g * g
        step = xp.sqrt(steps + eps)
        step /= xp.sqrt(square + eps)
        step *= g
        steps *= rho
        steps += (1 - rho) * step * step
        p -= group["lr"] * step
