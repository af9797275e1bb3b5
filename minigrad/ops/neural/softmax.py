"""Softmax and its relatives: the ops that neural networks need and NumPy does not have."""

from __future__ import annotations

import math

import numpy as np

from ...engine.op import op
from ..elementwise.arithmetic import clip
from ..elementwise.unary import elementwise, exp, floating, log, log1p, narrowed, sigmoid, widened
from ..reductions.reduction import kept_shape
from ..reductions.reduction import sum as sum_


def _top(xp, a, axis):
    """The largest along an axis; 0 where there is nothing to be the largest of."""
    return a.max(axis=axis, keepdims=True) if a.size else xp.zeros(kept_shape(a.shape, axis), a.dtype)


def _softmax_rule(g, out, axis):
    return out * (g - sum_(g * out, axis=axis, keepdims=True))


@op(formulas={"a": "out · (g − Σ g·out)"}, cost=5)
def softmax(xp, a, *, axis=-1):
    """`exp(a) / sum(exp(a))` along an axis, without overflow: positive numbers that add up to 1.

    >>> import minigrad as mg
    >>> mg.nn.functional.softmax(mg.tensor([0.0, 0.0, 0.0, 0.0]))
    tensor([0.25, 0.25, 0.25, 0.25])
    """
    wide = widened(a)
    e = xp.exp(wide - _top(xp, wide, axis))
    e /= e.sum(axis=axis, keepdims=True)
    return narrowed(e, a)


def _softmax_parts(ops, a, axis=-1):
    a = a if a.dtype.kind == "f" else ops.astype(a, dtype="float64")
    e = ops.exp(ops.subtract(a, ops.max(a, axis=axis, keepdims=True)))
    return ops.multiply(e, ops.reciprocal(ops.sum(e, axis=axis, keepdims=True)))


softmax.lowering = _softmax_parts
softmax.vjp(a=_softmax_rule)


@op
def log_softmax(xp, a, *, axis=-1):
    """`log(softmax(a))` along an axis, `a - log(sum(exp(a)))`, exact also where the softmax underflows."""
    wide = widened(a)
    low = wide - _top(xp, wide, axis)
    with np.errstate(divide="ignore"):  # the logarithm of 0, where there are no elements
        return narrowed(low - xp.log(xp.exp(low).sum(axis=axis, keepdims=True)), a)


def _log_softmax_parts(ops, a, axis=-1):
    a = a if a.dtype.kind == "f" else ops.astype(a, dtype="float64")
    low = ops.subtract(a, ops.max(a, axis=axis, keepdims=True))
    return ops.subtract(low, ops.log(ops.sum(ops.exp(low), axis=axis, keepdims=True)))


log_softmax.lowering = _log_softmax_parts
log_softmax.vjp(a=lambda g, out, axis: g - exp(out) * sum_(g, axis=axis, keepdims=True))


@op(cost=5)
def _masked_softmax(xp, a, allowed, *, axis=-1):
    """The softmax over the allowed elements, 0 at the others; a line without an allowed element is all 0.

    Outside the allowed elements `out` is 0, and so, by the very rule of the softmax, are the derivatives of any order.
    """
    wide = xp.where(allowed, widened(a), -math.inf)
    top = _top(xp, wide, axis)
    e = xp.exp(wide - xp.where(top == -math.inf, 0, top))
    total = e.sum(axis=axis, keepdims=True)
    e /= xp.where(total == 0, 1, total)
    return narrowed(e, a)


def _masked_softmax_parts(ops, a, allowed, axis=-1):
    a = a if a.dtype.kind == "f" else ops.astype(a, dtype="float64")
    wide = ops.where(allowed, a, -math.inf)
    top = ops.max(wide, axis=axis, keepdims=True)
    e = ops.exp(ops.subtract(wide, ops.where(ops.equal(top, -math.inf), 0, top)))
    total = ops.sum(e, axis=axis, keepdims=True)
    return ops.multiply(e, ops.reciprocal(ops.where(ops.equal(total, 0), 1, total)))


_masked_softmax.lowering = _masked_softmax_parts
_masked_softmax.vjp(a=_softmax_rule)


@op
def _causal_mask(xp, a):
    """True on and below the diagonal of the last two axes: position i may look at 0 … i."""
    return xp.tri(a.shape[-2], a.shape[-1], dtype=bool)


_causal_mask.lowering = lambda ops, a: ops.constant(np.tri(a.shape[-2], a.shape[-1], dtype=bool))


@elementwise(lowering="(maximum(a, 0) - a * target) + log1p(exp(-abs(a)))")
def _logistic_loss(xp, a, target):
    """`-log(sigmoid(a))` for target 1, `-log(1 - sigmoid(a))` for 0, linear in between, exact for large `a` of either sign."""
    a = floating(a)
    return (xp.maximum(a, 0) - a * target) + xp.log1p(xp.exp(-xp.abs(a)))


_logistic_loss.vjp(a=lambda g, a, target: g * (sigmoid(a) - target), target=lambda g, a: -g * a)


@elementwise
def _bernoulli_loss(xp, a, target):
    """`-target log(a) - (1 - target) log(1 - a)` of probabilities, each logarithm at least -100, as PyTorch's."""
    a = floating(a)
    with np.errstate(divide="ignore"):
        return -target * xp.maximum(xp.log(a), -100) - (1 - target) * xp.maximum(xp.log1p(-a), -100)


_bernoulli_loss.vjp(
    a=lambda g, a, target: g * ((a - target) / clip(a * (1 - a), 1e-12)),
    target=lambda g, a: g * (clip(log1p(-a), -100.0) - clip(log(a), -100.0)),
)
