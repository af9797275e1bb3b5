"""Adafactor, whose state is small."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...engine.backend import Array
from ..optimizer import Group, Optimizer, State
from ..traced_state import at_step

__all__ = ["Adafactor"]


class Adafactor(Optimizer):
    """Adam's step without its memory (Shazeer and Stern 2018), as PyTorch's: g² is kept as means of rows and of columns.

    v = R C / mean(R) with running means R of the rows of g² and C of its columns, of weight t^beta2_decay at step t;
    a vector keeps v whole. u = g / √v, divided by its root mean square over `d` where that is above 1. Then
    p ← p - α · u with α = max(eps[1], rms(p)) · min(lr, 1 / √t). eps[0] bounds v; None: the precision of the dtype.
    """

    elementwise = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **unknown: Any,
    ):
        options = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, options, unknown)

    def buffer_shapes(self, p: Any, group: Group) -> dict[str, tuple[int, ...]]:
        if p.ndim < 2:
            return {"variance": p.shape}
        return {"row_var": (*p.shape[:-1], 1), "col_var": (*p.shape[:-2], 1, p.shape[-1])}

    def update(self, xp: Any, p: Array, g: Array, state: State, group: Group) -> None:
        lr, (least, least_size) = group["lr"], group["eps"]
        least = float(np.finfo(np.dtype(p.dtype)).eps) if least is None else least
        weight = at_step(state, _power, group["beta2_decay"])
        size = xp.maximum(_root_mean_square(xp, p), least_size)
        if group["weight_decay"]:
            p *= 1 - lr * group["weight_decay"]
        if g.ndim < 2:
            variance = state["variance"]
            variance += weight * (g * g - variance)
        else:
            rows, columns = state["row_var"], state["col_var"]
            rows += weight * ((g * g).mean(axis=-1, keepdims=True) - rows)
            columns += weight * ((g * g).mean(axis=-2, keepdims=True) - columns)
            variance = rows * columns / xp.maximum(rows.mean(axis=-2, keepdims=True), least)
        step = g / xp.sqrt(xp.maximum(variance, least * least))
        clip = xp.maximum(_root_mean_square(xp, step) / group["d"], 1.0)
        rate = xp.minimum(size * lr, size * at_step(state, _power, -0.5))
        p -= (rate / clip).astype(p.dtype) * step


def _power(step: float, exponent: float) -> float:
    return float(step**exponent)


def _root_mean_square(xp: Any, a: Array) -> Array:
    return xp.sqrt((a * a).mean())
