"""Gradient clipping, in place, between `backward()` and `step()`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..debug import nonfinite
from ..engine.backend import Array, on_device_of
from ..engine.modes import no_grad
from ..engine.tensor import Tensor, wrap
from ..errors import ArgumentError, CallError, NonFiniteError, describe
from ..ops.elementwise.arithmetic import clip, minimum
from ..ops.layout.joining import stack
from ..ops.reductions import reduction
from ..tracer import is_compiling
from .module import Module

__all__ = ["clip_grad_norm_", "clip_grad_value_"]


def clip_grad_norm_(
    params: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> float:
    """Scale all gradients together so that their joint norm is at most `max_norm`; returns the norm they had.

    A norm that is NaN or infinite is returned as it is, or refused with `error_if_nonfinite`, before anything is
    changed. As PyTorch's, the factor is max_norm / (norm + 1e-6) where that is below 1. Inside `mg.compile` the norm is a Tensor.

    >>> import minigrad as mg
    >>> x = mg.tensor([3.0, 4.0], requires_grad=True)
    >>> (x * x / 2).sum().backward()
    >>> mg.optim.clip_grad_norm_([x], max_norm=1.0)
    5.0
    >>> x.grad.round(decimals=3)
    tensor([0.6, 0.8])
    """
    if not max_norm >= 0 or not norm_type > 0:
        raise ArgumentError(
            "clip_grad_norm_: a norm cannot be negative",
            "max_norm of at least 0, norm_type above 0",
            f"max_norm={max_norm}, norm_type={norm_type}",
        )
    grads = _gradients(params)
    if is_compiling() and grads:
        return _clip_compiled(grads, max_norm, norm_type, error_if_nonfinite)
    norm = _joint_norm(grads, norm_type)
    if error_if_nonfinite and not math.isfinite(norm):
        bad = sum(nonfinite(g.data) is not None for g in grads)
        raise NonFiniteError(
            f"clip_grad_norm_: the norm of the gradients is {norm}",
            got=f"NaN or infinity in the gradients of {bad} of {len(grads)} parameters",
            fix="run the step under minigrad.debug() to find the first bad op, or lower the learning rate",
        )
    factor = clip_factor(norm, max_norm)
    _scale(grads, factor)
    return norm


def scale_gradients(params: Tensor | Iterable[Tensor], factor: float) -> None:
    """Multiply all gradients in place."""
    _scale(_gradients(params), factor)


def _scale(grads: list[Tensor], factor: Any) -> None:
    if is_compiling() or factor != 1:
        with no_grad(), np.errstate(all="ignore"):
            for g in grads:
                g *= factor


def grad_norm(params: Tensor | Iterable[Tensor]) -> float:
    """The joint norm of all gradients, √(Σ g²)."""
    return _joint_norm(_gradients(params), 2)


def clip_factor(norm: float, max_norm: float) -> float:
    """The factor for gradients of this norm: 1 if it is at most `max_norm`, else `max_norm / (norm + 1e-6)`."""
    factor = max_norm / (norm + 1e-6)
    return 1.0 if factor >= 1 else factor  # NaN where the norm is NaN


def _joint_norm(grads: list[Tensor], norm_type: float) -> float:
    norms = [_norm(g.data, norm_type) for g in grads]
    if math.isinf(norm_type):
        return float(np.max(norms, initial=0.0))  # unlike Python's max, it gives NaN if there is one
    return sum(n**norm_type for n in norms) ** (1 / norm_type)


def _clip_compiled(grads: list[Tensor], max_norm: float, norm_type: float, error_if_nonfinite: bool) -> Any:
    """The same made of ops, which a compiled function repeats at each call."""
    with no_grad():
        sizes = [abs(g.astype("float32") if g.dtype == "float16" else g) for g in grads]
        if math.isinf(norm_type):
            norm = reduction.max(stack([reduction.max(size) for size in sizes]))
        else:
            norm = sum([reduction.sum(size**norm_type) for size in sizes]) ** (1 / norm_type)
        if error_if_nonfinite:
            norm.item()  # which a compiled function refuses, and says why
        factor = minimum(max_norm / (norm + 1e-6), 1)
        for g in grads:
            g *= factor.astype(g.dtype)
    return norm


def clip_grad_value_(params: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Bring every element of every gradient into [-clip_value, clip_value]; NaN stays."""
    if not clip_value >= 0:
        raise ArgumentError("clip_grad_value_: the bound cannot be negative", "at least 0", repr(clip_value))
    with no_grad():
        for g in _gradients(params):
            g[...] = clip(g, min=-clip_value, max=clip_value)


def _gradients(params: Tensor | Iterable[Tensor]) -> list[Tensor]:
    """The gradients of those parameters that have one, each once."""
    if isinstance(params, Module):
        raise CallError("clipping needs parameters", "Tensors", type(params).__name__, "pass model.parameters()")
    tensors = [params] if isinstance(params, Tensor) else list(params)
    for p in tensors:
        if not isinstance(p, Tensor):
            raise CallError("clipping needs parameters, whose gradients it changes", "Tensors", describe(p))
    nodes = {id(p.node): p.node for p in tensors if p.node is not None}
    return [wrap(node.grad) for node in nodes.values() if node.grad is not None]


def _norm(g: Array, norm_type: float) -> float:
    """The norm of one gradient; in float32 for float16, whose squares would overflow or become 0."""
    with on_device_of(g), np.errstate(all="ignore"):
        flat = g.ravel(order="K")
        flat = flat.astype("float32") if flat.dtype == "float16" else flat
        if norm_type == 2:
            return float(flat.dot(flat)) ** 0.5
        if not flat.size:
            return 0.0
        size = abs(flat)
        return float(size.max()) if math.isinf(norm_type) else float((size**norm_type).sum()) ** (1 / norm_type)
