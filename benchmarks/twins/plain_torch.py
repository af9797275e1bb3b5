"""The functions of `plain.py` in PyTorch, in plain ops, and one step of each: forward and backward."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from .plain import EPSILON, SMOOTHING, TEMPERATURE, Computed, cotangents, inputs


def layer_norm_gelu(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """GELU, by its formula with tanh, of the layer norm: (N, C), (C,), (C,) -> (N, C)."""
    mean = x.mean(dim=-1, keepdim=True)  # (N, C) -> (N, 1)
    var = x.var(dim=-1, keepdim=True, correction=0)
    h = (x - mean) / torch.sqrt(var + EPSILON) * weight + bias
    return 0.5 * h * (1 + torch.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h**3)))


def masked_softmax(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Over the last axis, of what the mask leaves: (N, C), (N, C) bool -> (N, C)."""
    scores = torch.where(mask, x / TEMPERATURE, -math.inf)
    e = torch.exp(scores - scores.detach().amax(dim=-1, keepdim=True))
    return e / e.sum(dim=-1, keepdim=True)


def focal_loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The mean of (1 - p)² times the cross-entropy with smoothed labels: (N, C), (N,) int -> ()."""
    z = logits - logits.detach().amax(dim=-1, keepdim=True)
    log_p = z - torch.log(torch.exp(z).sum(dim=-1, keepdim=True))
    picked = torch.gather(log_p, -1, labels.reshape(-1, 1)).reshape(-1)  # (N, C) -> (N,)
    entropy = -(1 - SMOOTHING) * picked - SMOOTHING * log_p.mean(dim=-1)
    return ((1 - torch.exp(picked)) ** 2 * entropy).mean()


def lotka_volterra(
    x: torch.Tensor, y: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """How fast prey and predators grow: (N, C), (N, C), a and c (C,), b and d () -> (N, C), (N, C)."""
    return x * (a - b * y), y * (c * x - d)


def rms_norm_gated(x: torch.Tensor, gate: torch.Tensor, weight: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
    """The RMS norm, through a gate, added to the residual: (N, C), (N, C), (C,), (N, C) -> (N, C)."""
    h = x / torch.sqrt((x * x).mean(dim=-1, keepdim=True) + EPSILON) * weight
    return h * torch.sigmoid(gate) + residual


FUNCTIONS: dict[str, Callable[..., Any]] = {
    f.__name__: f for f in (layer_norm_gelu, masked_softmax, focal_loss, lotka_volterra, rms_norm_gated)
}


def torch_step(function: str, threads: int | None, compiled: bool) -> Callable[[], Computed]:
    """Results and gradients of a function, compiled by `torch.compile` or not."""
    if threads is not None:
        torch.set_num_threads(threads)
    f = torch.compile(FUNCTIONS[function]) if compiled else FUNCTIONS[function]
    arguments = [torch.tensor(a) for a in inputs(function).values()]
    leaves = [t.requires_grad_() for t in arguments if t.is_floating_point()]
    weights = [torch.tensor(a) for a in cotangents(function)]

    def step() -> Computed:
        out = f(*arguments)
        results = out if isinstance(out, tuple) else (out,)
        return Computed([*(r.detach() for r in results), *torch.autograd.grad(results, leaves, weights)])

    return step
