"""Rprop and Lion, which use the signs of gradients alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...engine.backend import Array
from ..optimizer import Group, Optimizer, State

__all__ = ["Lion", "Rprop"]


class Rprop(Optimizer):
    """p ← p - sign(g) · s: each weight has a step size s of its own, as PyTorch's; for whole batches.

    s starts as `lr`. It grows by etas[1] while the gradient keeps its sign, and shrinks by etas[0] when the sign changes,
    when no step is taken; it stays within `step_sizes`.
    """

    compiled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        *,
        maximize: bool = False,
        **unknown: Any,
    ):
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize}, unknown)

    def buffers(self, group: Group) -> tuple[str, ...]:
        return ("prev", "step_size")

    def update(self, xp: Any, p: Array, g: Array, state: State, group: Group) -> None:
        previous, size, (shrink, grow) = state["prev"], state["step_size"], group["etas"]
        if state["step"] == 1:
            size += group["lr"]
        product = g * previous
        size[...] = xp.where(product > 0, size * grow, xp.where(product < 0, size * shrink, size))
        size[...] = xp.clip(size, *group["step_sizes"])
        previous[...] = xp.where(product < 0, 0, g)
        p -= xp.sign(previous) * size


class Lion(Optimizer):
    """Evolved sign momentum (Chen et al. 2023): p ← p - lr · (sign(beta1 · m + (1 - beta1) · g) + weight_decay · p).

    Then m ← beta2 · m + (1 - beta2) · g. Every weight moves by lr, so the rate is 3 to 10 times smaller than AdamW's, and
    the decay as many times larger.

    >>> import minigrad as mg
    >>> w = mg.ones(2, requires_grad=True)
    >>> optimizer = mg.optim.Lion([w], lr=0.25)
    >>> (w * mg.tensor([1.0, -100.0])).sum().backward()
    >>> optimizer.step()
    >>> w.tolist()
    [0.75, 1.25]
    """

    compiled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **unknown: Any,
    ):
        super().__init__(
            params, {"lr": lr, "betas": betas, "weight_decay": weight_decay, "maximize": maximize}, unknown
        )

    def buffers(self, group: Group) -> tuple[str, ...]:
        return ("exp_avg",)

    def update(self, xp: Any, p: Array, g: Array, state: State, group: Group) -> None:
        lr, (beta1, beta2), mean = group["lr"], group["betas"], state["exp_avg"]
        if group["weight_decay"]:
            p *= 1 - lr * group["weight_decay"]
        p -= lr * xp.sign(beta1 * mean + (1 - beta1) * g)
        mean *= beta2
        mean += (1 - beta2) * g
