"""Averaged stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...engine.backend import Array
from ..optimizer import Group, Optimizer, State
from ..traced_state import at_step
from .decay import decayed

__all__ = ["ASGD"]


class ASGD(Optimizer):
    """p ← (1 - lambd · η) · p - η · g with η = lr / (1 + lambd · lr · (t - 1))^alpha at step t, as PyTorch's.

    `state[p]["ax"]` is the average of the weights since step `t0`: copy it to the parameters when training is over.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **unknown: Any,
    ):
        options = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, options, unknown)

    def buffers(self, group: Group) -> tuple[str, ...]:
        return ("ax",)

    def update(self, xp: Any, p: Array, g: Array, state: State, group: Group) -> None:
        g = decayed(p, g, group)
        lr, lambd, average = group["lr"], group["lambd"], state["ax"]
        eta = lr / (1 + lambd * lr * (state["step"] - 1)) ** group["alpha"]
        p *= 1 - lambd * eta
        p -= eta * g
        average += at_step(state, _share, group["t0"]) * (p - average)


def _share(step: float, start: float) -> float:
    """How much the weights after this step count in their average."""
    return 1 / max(1.0, step - 1 - start)
