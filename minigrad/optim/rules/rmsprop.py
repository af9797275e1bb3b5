"""RMSprop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...engine.backend import Array
from ..optimizer import Group, Optimizer, State
from .decay import decayed

__all__ = ["RMSprop"]


class RMSprop(Optimizer):
    """p ← p - lr · g / (√s + eps) with s ← alpha · s + (1 - alpha) · g², as PyTorch's.

    With `centered` s has the square of the mean gradient taken away; with `momentum` the steps add up as in SGD;
    `weight_decay` adds weight_decay · p to the gradient.
    """

    compiled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        maximize: bool = False,
        **unknown: Any,
    ):
        options = {
            "lr": lr,
            "alpha": alpha,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "centered": centered,
            "maximize": maximize,
        }
        super().__init__(params, options, unknown)

    def buffers(self, group: Group) -> tuple[str, ...]:
        momentum = ("momentum_buffer",) if group["momentum"] else ()
        return ("square_avg", *momentum, *(("grad_avg",) if group["centered"] else ()))

    def update(self, xp: Any, p: Array, g: Array, state: State, group: Group) -> None:
        alpha = group["alpha"]
        g = decayed(p, g, group)
        square = state["square_avg"]
        square *= alpha
        square += (1 - alpha) * g * g
        if group["centered"]:
            mean = state["grad_avg"]
            mean += (1 - alpha) * (g - mean)
            root = xp.sqrt(square - mean * mean)
        else:
            root = xp.sqrt(square)
        root += group["eps"]
        step = g / root
        if group["momentum"]:
            velocity = state["momentum_buffer"]
            velocity *= group["momentum"]
            velocity += step
            step = velocity
        p -= group["lr"] * step
