"""The functions of `plain.py` in minigrad, in plain ops, and one step of each: forward and backward."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import minigrad as mg

from .plain import EPSILON, SMOOTHING, TEMPERATURE, Computed, cotangents, inputs


def layer_norm_gelu(x: mg.Tensor, weight: mg.Tensor, bias: mg.Tensor) -> mg.Tensor:
    """GELU, by its formula with tanh, of the layer norm: (N, C), (C,), (C,) -> (N, C)."""
    mean = x.mean(axis=-1, keepdims=True)  # (N, C) -> (N, 1)
    var = x.var(axis=-1, keepdims=True)
    h = (x - mean) / mg.sqrt(var + EPSILON) * weight + bias
    return 0.5 * h * (1 + mg.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h**3)))


def masked_softmax(x: mg.Tensor, mask: mg.Tensor) -> mg.Tensor:
    """Over the last axis, of what the mask leaves: (N, C), (N, C) bool -> (N, C)."""
    scores = mg.where(mask, x / TEMPERATURE, -math.inf)
    e = mg.exp(scores - scores.detach().max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def focal_loss(logits: mg.Tensor, labels: mg.Tensor) -> mg.Tensor:
    """The mean of (1 - p)² times the cross-entropy with smoothed labels: (N, C), (N,) int -> ()."""
    z = logits - logits.detach().max(axis=-1, keepdims=True)
    log_p = z - mg.log(mg.exp(z).sum(axis=-1, keepdims=True))
    picked = mg.take_along_axis(log_p, labels.reshape(-1, 1), axis=-1).reshape(-1)  # (N, C) -> (N,)
    entropy = -(1 - SMOOTHING) * picked - SMOOTHING * log_p.mean(axis=-1)
    return ((1 - mg.exp(picked)) ** 2 * entropy).mean()


def lotka_volterra(
    x: mg.Tensor, y: mg.Tensor, a: mg.Tensor, b: mg.Tensor, c: mg.Tensor, d: mg.Tensor
) -> tuple[mg.Tensor, mg.Tensor]:
    """How fast prey and predators grow: (N, C), (N, C), a and c (C,), b and d () -> (N, C), (N, C)."""
    return x * (a - b * y), y * (c * x - d)


def rms_norm_gated(x: mg.Tensor, gate: mg.Tensor, weight: mg.Tensor, residual: mg.Tensor) -> mg.Tensor:
    """The RMS norm, through a gate, added to the residual: (N, C), (N, C), (C,), (N, C) -> (N, C)."""
    h = x / mg.sqrt((x * x).mean(axis=-1, keepdims=True) + EPSILON) * weight
    return h * mg.sigmoid(gate) + residual


FUNCTIONS: dict[str, Callable[..., Any]] = {
    f.__name__: f for f in (layer_norm_gelu, masked_softmax, focal_loss, lotka_volterra, rms_norm_gated)
}


def minigrad_step(function: str, wrap: Callable[[Any], Any]) -> Callable[[], Computed]:
    """Results and gradients of a function; `wrap` is `mg.compile`, or leaves the function as it is."""
    f = wrap(FUNCTIONS[function])
    arguments = [mg.tensor(a, requires_grad=a.dtype == np.float32) for a in inputs(function).values()]
    leaves = [t for t in arguments if t.requires_grad]
    weights = [mg.tensor(a) for a in cotangents(function)]

    def step() -> Computed:
        out = f(*arguments)
        results = out if isinstance(out, tuple) else (out,)
        return Computed([*(r.detach() for r in results), *mg.autograd.grad(results, leaves, weights)])

    return step
