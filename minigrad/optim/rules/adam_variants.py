"""Variants of Adam: by the largest gradient (Adamax), with Nesterov's momentum (NAdam), rectified (RAdam)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...engine.backend import Array
from ..optimizer import Group, Optimizer, State
from ..traced_state import at_step
from .adam import moments
from .decay import decayed

__all__ = ["Adamax", "NAdam", "RAdam"]


class Adamax(Optimizer):
    """p ← p - lr · m̂ / u with u ← max(beta2 · u, |g| + eps), m̂ the bias-corrected running mean of g, as PyTorch's."""

    compiled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **unknown: Any,
    ):
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, options, unknown)

    def buffers(self, group: Group) -> tuple[str, ...]:
        return ("exp_avg", "exp_inf")

    def update(self, xp: Any, p: Array, g: Array, state: State, group: Group) -> None:
        g = decayed(p, g, group)
        (beta1, beta2), mean, largest = group["betas"], state["exp_avg"], state["exp_inf"]
        mean += (1 - beta1) * (g - mean)
        largest[...] = xp.maximum(beta2 * largest, xp.abs(g) + group["eps"])
        p -= group["lr"] / (1 - beta1 ** state["step"]) * (mean / largest)


class NAdam(Optimizer):
    """Adam with Nesterov's momentum (Dozat 2016): the step looks ahead by a part of the present gradient, as PyTorch's.

    The momentum of step t is μ = beta1 · (1 - 0.96^(t · momentum_decay) / 2). With `decoupled_weight_decay` the decay
    shrinks the weights themselves, as AdamW's.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **unknown: Any,
    ):
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, options, unknown)

    def buffers(self, group: Group) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")

    def update(self, xp: Any, p: Array, g: Array, state: State, group: Group) -> None:
        g = decayed(p, g, group)
        mean, square, _, correction = moments(g, state, group)
        settings = group["betas"][0], group["momentum_decay"]
        root = xp.sqrt(square)
        root /= correction**0.5
        root += group["eps"]
        ahead = at_step(state, _gradient_share, *settings) * g + at_step(state, _mean_share, *settings) * mean
        p -= group["lr"] * (ahead / root)


def _momentum(step: float, beta1: float, decay: float) -> float:
    return beta1 * (1 - 0.5 * 0.96 ** (step * decay))


def _momentum_product(step: float, beta1: float, decay: float) -> float:
    """The product of the momenta of all steps; from where it no longer changes 1 - product, 0."""
    product = 1.0
    for i in range(1, int(step) + 1):
        product *= _momentum(i, beta1, decay)
        if product < 1e-20:
            return 0.0
    return product


def _gradient_share(step: float, beta1: float, decay: float) -> float:
    return (1 - _momentum(step, beta1, decay)) / (1 - _momentum_product(step, beta1, decay))


def _mean_share(step: float, beta1: float, decay: float) -> float:
    return _momentum(step + 1, beta1, decay) / (1 - _momentum_product(step + 1, beta1, decay))


class RAdam(Optimizer):
    """Rectified Adam (Liu et al. 2020): plain momentum until v̂ can be trusted, then Adam's step times r, as PyTorch's.

    r = √((ρ - 4)(ρ - 2) ρ∞ / ((ρ∞ - 4)(ρ∞ - 2) ρ)), where ρ counts the gradients that v̂ is a mean of. With
    `decoupled_weight_decay` the decay shrinks the weights themselves, as AdamW's.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **unknown: Any,
    ):
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, options, unknown)

    def buffers(self, group: Group) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")

    def update(self, xp: Any, p: Array, g: Array, state: State, group: Group) -> None:
        g = decayed(p, g, group)
        mean, square, correction1, correction2 = moments(g, state, group)
        beta2 = group["betas"][1]
        step = xp.sqrt(square)
        step += group["eps"]
        step = at_step(state, _rectification, beta2) * correction2**0.5 / step
        step += at_step(state, _plain_share, beta2)
        step *= mean
        step *= group["lr"] / correction1
        p -= step


def _averaged(step: float, beta2: float) -> float:
    """The number ρ of gradients that the running mean is, in effect, a mean of."""
    return 2 / (1 - beta2) - 1 - 2 * step * beta2**step / (1 - beta2**step)


def _plain_share(step: float, beta2: float) -> float:
    """1 while there are too few gradients to divide by their size, then 0."""
    return 0.0 if _averaged(step, beta2) > 5 else 1.0


def _rectification(step: float, beta2: float) -> float:
    rho, limit = _averaged(step, beta2), 2 / (1 - beta2) - 1
    if rho <= 5:
        return 0.0
    return ((rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho)) ** 0.5
