"""Adam, and Adam with decoupled weight decay."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...engine.backend import Array
from ..optimizer import Group, Optimizer, State
from .decay import decayed

__all__ = ["Adam", "AdamW", "moments", "ratio"]


def moments(g: Array, state: State, group: Group) -> tuple[Array, Array, float, float]:
    """The updated running means of g and g², and the bias correction that each must be divided by."""
    (beta1, beta2), step = group["betas"], state["step"]
    mean, square = state["exp_avg"], state["exp_avg_sq"]
    mean += (1 - beta1) * (g - mean)
    square *= beta2
    square += (1 - beta2) * g * g
    return mean, square, 1 - beta1**step, 1 - beta2**step


def ratio(xp: Any, mean: Array, square: Array, correction: float, eps: float) -> Array:
    """mean / (√(square / correction) + eps): the mean gradient over the usual size of gradients."""
    root = xp.sqrt(square)
    root /= correction**0.5
    root += eps
    return mean / root


class Adam(Optimizer):
    """p ← p - lr · m̂ / (√v̂ + eps), with the bias-corrected running means m̂ of g and v̂ of g², as PyTorch's.

    `weight_decay` adds weight_decay · p to the gradient; with `decoupled_weight_decay` it is kept out of m and v, as in AdamW.
    With `amsgrad` the largest v so far is used.
    """

    compiled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        decoupled_weight_decay: bool = False,
        **unknown: Any,
    ):
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, options, unknown)

    def buffers(self, group: Group) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq", *(("max_exp_avg_sq",) if group["amsgrad"] else ()))

    def update(self, xp: Any, p: Array, g: Array, state: State, group: Group) -> None:
        g = decayed(p, g, group)
        mean, square, correction1, correction2 = moments(g, state, group)
        if group["amsgrad"]:
            largest = state["max_exp_avg_sq"]
            largest[...] = xp.maximum(largest, square)
            square = largest
        step = ratio(xp, mean, square, correction2, group["eps"])
        step *= group["lr"] / correction1
        p -= step


class AdamW(Adam):
    """Adam whose weight decay shrinks the weights themselves, p ← (1 - lr · weight_decay) · p, before each step.

    >>> import minigrad as mg
    >>> w = mg.ones(2, requires_grad=True)
    >>> optimizer = mg.optim.AdamW([w], lr=0.1, weight_decay=0.0)
    >>> (w * mg.tensor([1.0, -100.0])).sum().backward()
    >>> optimizer.step()
    >>> w.detach().round(decimals=3)  # as far for a small gradient as for a large one
    tensor([0.9, 1.1])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **unknown: Any,
    ):
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, decoupled_weight_decay=True, **unknown
        )
