"""Activation functions. Formulas and gradients at kinks are PyTorch's."""

from __future__ import annotations

import math

from ...errors import ArgumentError
from ..composite import composite
from .arithmetic import abs_, where
from .unary import elementwise, erf, exp, floating, sigmoid, tanh


@elementwise(lowering="maximum(a, 0)")
def relu(xp, a):
    """`max(a, 0)`; the gradient at 0 is 0."""
    return xp.maximum(a, 0)


relu.vjp(a=lambda g, out: where(out <= 0, 0, g))


@elementwise(method=False, lowering="a if a > 0 else negative_slope * a")
def leaky_relu(xp, a, *, negative_slope=0.01):
    """`a` if positive, else `negative_slope * a`."""
    return xp.where(a > 0, a, negative_slope * a)


leaky_relu.vjp(a=lambda g, a, negative_slope: where(a > 0, g, negative_slope * g))


@elementwise(method=False, lowering="a if a > 0 else alpha * expm1(minimum(a, 0))")
def elu(xp, a, *, alpha=1.0):
    """`a` if positive, else `alpha * (exp(a) - 1)`."""
    return xp.where(a > 0, a, alpha * xp.expm1(xp.minimum(a, 0)))


elu.vjp(a=lambda g, a, alpha: g * where(a > 0, 1, alpha * exp(-relu(-a))))


@composite(method=False)
def selu(a):
    """ELU with the two constants that keep mean 0 and variance 1 from layer to layer."""
    return 1.0507009873554805 * elu(a, alpha=1.6732632423543772)


@elementwise(public=False, cost=8, lowering="normal_cdf(a)")
def _normal_cdf(xp, a):
    """`Φ(a)`, the share of the normal distribution that lies below a."""
    return 0.5 * (1 + erf.forward(xp, floating(a) * math.sqrt(0.5)))


_normal_cdf.vjp(a=lambda g, a: g * (exp(a * a * -0.5) * (1 / math.sqrt(2 * math.pi))))
_SLOPE = 2 * math.sqrt(2 / math.pi)
_CUBIC = 0.044715 * _SLOPE


@elementwise(public=False, cost=8, lowering=f"a * sigmoid(a * (a * a * {_CUBIC!r} + {_SLOPE!r}))")
def _gelu_tanh(xp, a):
    """`0.5 · a · (1 + tanh(√(2/π) (a + 0.044715 a³)))`, by one exponential."""
    return a * sigmoid.forward(xp, a * (a * a * _CUBIC + _SLOPE))


@_gelu_tanh.vjp
def _gelu_tanh_rule(g, a):
    square = a * a * _CUBIC
    share = sigmoid(a * (square + _SLOPE))
    return (g * (share + a * (3 * square + _SLOPE) * (share * (1 - share))),)


@composite(method=False, cost=8)
def gelu(a, *, approximate="none"):
    """`a Φ(a)` with the normal distribution Φ, exactly ("none", by erf) or by the "tanh" formula of GPT-2."""
    if approximate == "none":
        return a * _normal_cdf(a)
    if approximate == "tanh":
        return _gelu_tanh(a)
    raise ArgumentError("gelu: unknown approximation", "'none' or 'tanh'", repr(approximate))


@elementwise(method=False, cost=5, lowering="a * sigmoid(a)")
def silu(xp, a):
    """`a * sigmoid(a)`, also called swish."""
    a = floating(a)
    return a * (xp.exp(xp.minimum(a, 0)) / (1 + xp.exp(-xp.abs(a))))


def _silu_rule(g, a):
    s = sigmoid(a)
    return g * s * (1 + a * (1 - s))


silu.vjp(a=_silu_rule)


@elementwise(public=False, lowering="maximum(a, 0) + log1p(exp(-abs(a)))")
def _softplus(xp, a):
    """`log(1 + exp(a))` without overflow."""
    a = floating(a)
    return xp.maximum(a, 0) + xp.log1p(xp.exp(-xp.abs(a)))


_softplus.vjp(a=lambda g, a: g * sigmoid(a))


@composite(method=False)
def softplus(a, *, beta=1.0, threshold=20.0):
    """`log(1 + exp(beta · a)) / beta` without overflow; `a` itself where `beta · a` is above another threshold than 20.

    PyTorch's needs the threshold against overflow; here the default changes nothing, so that the result is exact.
    """
    if not beta:
        raise ArgumentError("softplus: beta divides the result", "any number but 0", beta)
    result = _softplus(a) if beta == 1 else _softplus(beta * a) / beta
    return result if threshold == 20 else where(beta * a > threshold, a, result)


@composite(method=False)
def mish(a):
    """`a * tanh(softplus(a))`."""
    return a * tanh(_softplus(a))


@elementwise(method=False, lowering="minimum(maximum(a, min_val), max_val)")
def hardtanh(xp, a, *, min_val=-1.0, max_val=1.0):
    """`a` held between `min_val` and `max_val`; the gradient on the borders is 0."""
    return xp.clip(a, min_val, max_val)


hardtanh.vjp(a=lambda g, a, min_val, max_val: where((a > min_val) & (a < max_val), g, 0))


@composite(method=False)
def hardsigmoid(a):
    """A sigmoid made of three straight lines: `a / 6 + 1/2` held between 0 and 1."""
    return hardtanh(a, min_val=-3.0, max_val=3.0) / 6 + 0.5


@composite(method=False)
def logsigmoid(a):
    """`log(sigmoid(a))` without overflow."""
    return -_softplus(-floating(a))


@composite(method=False)
def softsign(a):
    """`a / (1 + |a|)`."""
    a = floating(a)
    return a / (1 + abs_(a))
