"""Losses that are negative log-likelihoods: of Bernoulli, Gaussian and Poisson distributions. Formulas and defaults are PyTorch's."""

from __future__ import annotations

import math
from typing import Any

from ...engine.tensor import Tensor
from ...errors import ArgumentError, ShapeError
from ...ops.elementwise.arithmetic import where
from ...ops.elementwise.unary import exp, log, square
from ...ops.layout.shape import expand_dims
from ...ops.neural.softmax import _bernoulli_loss
from ...tracer import is_compiling
from .declaration import TensorLike, as_constant, function
from .losses import check_pair, check_reduction, reduce

__all__ = ["binary_cross_entropy", "gaussian_nll_loss", "poisson_nll_loss"]


@function
def binary_cross_entropy(
    input: TensorLike, target: TensorLike, weight: TensorLike | None = None, *, reduction: str = "mean"
) -> Tensor:
    """`-target log(input) - (1 - target) log(1 - input)` of probabilities, each logarithm at least -100.

    `binary_cross_entropy_with_logits` is exact where a probability is almost 0 or 1.

    >>> import minigrad as mg
    >>> round(mg.nn.functional.binary_cross_entropy(mg.tensor([0.5]), mg.tensor([1.0])).item(), 4)
    0.6931
    """
    name = "binary_cross_entropy"
    check_reduction(name, reduction)
    target = check_pair(name, input, target)
    if not is_compiling() and (wrong := (input < 0) | (input > 1)).any():
        fix = "use binary_cross_entropy_with_logits, or apply sigmoid"
        raise ArgumentError(f"{name}: the input holds no probabilities", "0 to 1", float(input[wrong][0]), fix)
    losses = _bernoulli_loss(input, target)
    return reduce(losses if weight is None else losses * weight, reduction)


@function
def gaussian_nll_loss(
    input: TensorLike,
    target: TensorLike,
    var: TensorLike,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """`(log(var) + (input - target)² / var) / 2`, and `log(2π) / 2` more if `full`.

    `var` has the shape of the input, or one variance for its last axis. A variance below `eps` counts as `eps`; its
    gradient is the one at `eps`, so that it can leave the range.
    """
    name = "gaussian_nll_loss"
    check_reduction(name, reduction)
    target = check_pair(name, input, target)
    var = _checked_variance(name, input, var)
    var = where(var < eps, eps + (var - as_constant(var)), var)
    losses = (log(var) + square(input - target) / var) / 2
    return reduce(losses + math.log(2 * math.pi) / 2 if full else losses, reduction)


def _checked_variance(name: str, input: Any, var: Any) -> Any:
    """The variance, in a shape that broadcasts to the input's by its last axis alone."""
    if input.ndim and var.shape == input.shape[:-1]:
        var = expand_dims(var, axis=-1)
    if var.ndim and var.shape not in (input.shape, (*input.shape[:-1], 1)):
        expected = f"{input.shape}, or one for the last axis, {input.shape[:-1]}"
        raise ShapeError(f"{name}: the variance does not fit", expected, var.shape)
    if not is_compiling() and (var < 0).any():
        raise ArgumentError(f"{name}: a variance is negative", "0 or more", fix="let the model predict its logarithm")
    return var


@function
def poisson_nll_loss(
    input: TensorLike,
    target: TensorLike,
    log_input: bool = True,
    full: bool = False,
    *,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """`exp(input) - target · input` of a logarithm of the rate, or of the rate itself `input - target · log(input + eps)`.

    With `full`, Stirling's formula for `log(target!)` is added where the target is above 1.
    """
    name = "poisson_nll_loss"
    check_reduction(name, reduction)
    target = check_pair(name, input, target)
    losses = exp(input) - target * input if log_input else input - target * log(input + eps)
    if full:
        many = where(target > 1, target, 1)
        stirling = many * log(many) - many + log(2 * math.pi * many) / 2
        losses = losses + where(target > 1, stirling, 0)
    return reduce(losses, reduction)
