"""Muon, for the matrices of hidden layers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...engine.backend import Array
from ...errors import ArgumentError
from ..optimizer import Group, Optimizer, State

__all__ = ["Muon"]


class Muon(Optimizer):
    """Momentum whose step is made orthogonal (Jordan et al. 2024), p ← (1 - lr · weight_decay) · p - lr · r · O, as PyTorch's.

    m ← momentum · m + (1 - momentum) · g, and O is about U Vᵀ of its singular value decomposition U S Vᵀ, computed by
    `ns_steps` of Newton and Schulz's iteration; with `nesterov`, of (1 - momentum) · g + momentum · m. The factor r is
    √max(1, rows / columns), or 0.2 · √max(rows, columns) with adjust_lr_fn="match_rms_adamw", for rates as AdamW's.
    It is for matrices alone: train biases, embeddings and the last layer by AdamW.
    """

    elementwise = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
        **unknown: Any,
    ):
        options = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, options, unknown)

    def check_group(self, group: Group) -> None:
        for p in group.get("params", ()):
            if p.ndim != 2:
                raise ArgumentError(
                    "Muon: only matrices can be trained",
                    "parameters of two axes",
                    f"one of shape {p.shape}",
                    "train the others by an AdamW of their own",
                )

    def buffers(self, group: Group) -> tuple[str, ...]:
        return ("momentum_buffer",)

    def update(self, xp: Any, p: Array, g: Array, state: State, group: Group) -> None:
        lr, momentum, mean = group["lr"], group["momentum"], state["momentum_buffer"]
        mean += (1 - momentum) * (g - mean)
        ahead = g + momentum * (mean - g) if group["nesterov"] else mean
        step = orthogonal(xp, ahead, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rows, columns = p.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            factor = 0.2 * max(rows, columns) ** 0.5
        else:
            factor = max(1.0, rows / columns) ** 0.5
        p *= 1 - lr * group["weight_decay"]
        p -= lr * factor * step


def orthogonal(xp: Any, x: Array, coefficients: tuple[float, float, float], steps: int, eps: float) -> Array:
    """A matrix with the singular vectors of `x` whose singular values are all near 1: X ← a X + (b A + c A²) X, A = X Xᵀ."""
    a, b, c = coefficients
    is_tall = x.shape[0] > x.shape[1]
    x = x.T if is_tall else x  # the smaller side gives the smaller product
    x = x / xp.maximum(xp.sqrt((x * x).sum()), eps)
    for _ in range(steps):
        square = x @ x.T
        x = a * x + (b * square + c * (square @ square)) @ x
    return x.T if is_tall else x
