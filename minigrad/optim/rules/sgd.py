"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...engine.backend import Array
from ...errors import ArgumentError
from ..optimizer import Group, Optimizer, State
from .decay import decayed

__all__ = ["SGD"]


class SGD(Optimizer):
    """Gradient descent, p ← p - lr · v with v ← momentum · v + (1 - dampening) · (g + weight_decay · p), as PyTorch's.

    The first v is the first gradient, undampened. With `nesterov` the step is along g + momentum · v.

    >>> import minigrad as mg
    >>> x = mg.tensor(2.0, requires_grad=True)
    >>> optimizer = mg.optim.SGD([x], lr=0.25)
    >>> (x * x).backward()
    >>> optimizer.step()
    >>> x.item()
    1.0
    """

    compiled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        **unknown: Any,
    ):
        options = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
        }
        super().__init__(params, options, unknown)

    def check_group(self, group: Group) -> None:
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ArgumentError(
                "SGD: nesterov needs a momentum and no dampening",
                "momentum above 0, dampening 0",
                f"momentum={group['momentum']}, dampening={group['dampening']}",
            )

    def buffers(self, group: Group) -> tuple[str, ...]:
        return ("momentum_buffer",) if group["momentum"] else ()

    def update(self, xp: Any, p: Array, g: Array, state: State, group: Group) -> None:
        momentum = group["momentum"]
        g = decayed(p, g, group)
        if momentum:
            velocity = state["momentum_buffer"]
            if state["step"] == 1:
                velocity[...] = g
            else:
                velocity *= momentum
                velocity += (1 - group["dampening"]) * g if group["dampening"] else g
            g = g + momentum * velocity if group["nesterov"] else velocity
        p -= group["lr"] * g
