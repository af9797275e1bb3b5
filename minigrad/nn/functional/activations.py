"""Activation functions that are made of others, and random ones. Formulas and gradients at kinks are PyTorch's."""

from __future__ import annotations

from typing import Any

from ...engine.backend import device_of
from ...engine.tensor import Tensor
from ...errors import ArgumentError, ShapeError
from ...ops.creation import astype
from ...ops.elementwise.activations import hardtanh, leaky_relu
from ...ops.elementwise.arithmetic import abs_, clip, where
from ...ops.elementwise.unary import expm1, floating, log, sigmoid, tanh
from ...ops.indexing.along import one_hot
from ...ops.layout.joining import split
from ...ops.layout.shape import moveaxis, one_axis, reshape
from ...ops.neural.softmax import softmax
from ...ops.random import rand
from ...ops.reductions.reduction import argmax
from .declaration import TensorLike, as_constant, function

__all__ = [
    "celu",
    "glu",
    "gumbel_softmax",
    "hardshrink",
    "hardswish",
    "prelu",
    "relu6",
    "rrelu",
    "softmin",
    "softshrink",
    "tanhshrink",
    "threshold",
]


@function
def relu6(input: TensorLike) -> Tensor:
    """`min(max(input, 0), 6)`."""
    return hardtanh(input, min_val=0.0, max_val=6.0)


@function
def hardswish(input: TensorLike) -> Tensor:
    """`input · (input + 3) / 6` between -3 and 3, below it 0, above it `input`."""
    return input * (hardtanh(input, min_val=-3.0, max_val=3.0) + 3) / 6


@function
def celu(input: TensorLike, alpha: float = 1.0) -> Tensor:
    """`input` where it is positive, else `alpha · (exp(input / alpha) - 1)`, which has slope 1 at 0."""
    if not alpha:
        raise ArgumentError("celu: alpha divides the input", "any number but 0", alpha)
    return where(input > 0, input, alpha * expm1(clip(input, None, 0) / alpha))


@function
def threshold(input: TensorLike, threshold: float, value: float) -> Tensor:
    """`input` where it is above the threshold, else `value`."""
    return where(input > threshold, input, value)


@function
def prelu(input: TensorLike, weight: TensorLike) -> Tensor:
    """`input` where it is positive, else `weight · input`: (N, C, …), with one slope (1,) or one for each channel (C,)."""
    if weight.ndim > 1 or weight.size != 1 and (input.ndim < 2 or weight.size != input.shape[1]):
        expected = f"(1,) or one for each channel on axis 1 of input {input.shape}"
        raise ShapeError("prelu: the weight does not fit", expected, weight.shape)
    slope = reshape(weight, shape=(-1, *[1] * (input.ndim - 2))) if weight.size > 1 else reshape(weight, shape=())
    return where(input > 0, input, slope * clip(input, None, 0))


@function
def rrelu(input: TensorLike, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    """`input` where it is positive, else `slope · input`: a random slope for each element in training, else their mean."""
    if not lower <= upper:
        raise ArgumentError("rrelu: there is no slope in this range", "lower <= upper", f"{lower} and {upper}")
    if not training:
        return leaky_relu(input, negative_slope=(lower + upper) / 2)
    return where(input > 0, input, (lower + (upper - lower) * _uniform_like(input)) * clip(input, None, 0))


@function
def glu(input: TensorLike, axis: int = -1) -> Tensor:
    """`a · sigmoid(b)`, where a and b are the two halves of the input along an axis: (…, 2·n, …) -> (…, n, …)."""
    axis = one_axis("glu", axis, input.ndim, input.shape)
    if input.shape[axis] % 2:
        raise ShapeError("glu: the axis has no two halves", "an even size", f"axis {axis} of {input.shape}")
    values, gates = split(input, indices_or_sections=2, axis=axis)
    return values * sigmoid(gates)


@function
def softmin(input: TensorLike, axis: int = -1) -> Tensor:
    """`softmax(-input)` along an axis."""
    return softmax(-input, axis=one_axis("softmin", axis, input.ndim, input.shape))


@function
def gumbel_softmax(logits: TensorLike, tau: float = 1, hard: bool = False, *, axis: int = -1) -> Tensor:
    """A random sample of the classes along an axis, `softmax((logits + Gumbel noise) / tau)`, that can be differentiated.

    With `hard` the result is one-hot, and its gradient is that of the soft sample.
    """
    axis = one_axis("gumbel_softmax", axis, logits.ndim, logits.shape)
    if not tau > 0:
        raise ArgumentError("gumbel_softmax: tau is a temperature", "a number above 0", tau)
    noise = -log(-log(clip(_uniform_like(logits), 1e-7, 1 - 1e-7)))
    soft = softmax((logits + noise) / tau, axis=axis)
    if not hard:
        return soft
    chosen = astype(one_hot(argmax(soft, axis=axis), num_classes=soft.shape[axis]), dtype=soft.dtype)
    return moveaxis(chosen, source=-1, destination=axis) - as_constant(soft) + soft


@function
def tanhshrink(input: TensorLike) -> Tensor:
    """`input - tanh(input)`."""
    return floating(input) - tanh(input)


@function
def softshrink(input: TensorLike, lambd: float = 0.5) -> Tensor:
    """`input` moved towards 0 by `lambd`, and 0 where it is nearer than that."""
    if not lambd >= 0:
        raise ArgumentError("softshrink: lambd is a distance", "0 or more", lambd)
    return input - clip(input, -lambd, lambd)


@function
def hardshrink(input: TensorLike, lambd: float = 0.5) -> Tensor:
    """`input`, but 0 where it is at most `lambd` away from 0."""
    return where(abs_(input) <= lambd, 0, input)


def _uniform_like(x: Any) -> Any:
    """Random numbers from [0, 1) of the shape, dtype and device of `x`; an array for an array."""
    is_tensor = isinstance(x, Tensor)
    drawn = rand(x.shape, dtype=x.dtype, device=device_of(x.data if is_tensor else x))
    return drawn if is_tensor else drawn.data
