"""LAMB, for large batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...engine.backend import Array
from ..optimizer import Group, Optimizer, State
from .adam import moments, ratio

__all__ = ["LAMB"]


class LAMB(Optimizer):
    """Layer-wise adaptive moments (You et al. 2020, algorithm 2): Adam's step, scaled by the norm of the weights.

    u = m̂ / (√v̂ + eps) + weight_decay · p, then p ← p - lr · (‖p‖ / ‖u‖) · u, one ratio for each parameter; the
    ratio is 1 where either norm is 0. Put biases and gains into a group with `weight_decay=0`, as the paper does.
    """

    elementwise = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 1e-2,
        *,
        maximize: bool = False,
        **unknown: Any,
    ):
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, options, unknown)

    def buffers(self, group: Group) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")

    def update(self, xp: Any, p: Array, g: Array, state: State, group: Group) -> None:
        mean, square, correction1, correction2 = moments(g, state, group)
        step = ratio(xp, mean, square, correction2, group["eps"])
        step /= correction1
        if group["weight_decay"]:
            step += group["weight_decay"] * p
        weight_norm, step_norm = xp.sqrt((p * p).sum()), xp.sqrt((step * step).sum())
        trust = xp.where((weight_norm > 0) & (step_norm > 0), weight_norm / step_norm, 1.0)
        step *= (group["lr"] * trust).astype(p.dtype)
        p -= step
