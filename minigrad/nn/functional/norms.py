"""The functions that normalize: layer, RMS, batch and group norm, and vectors by their length. The layers are in normalization.py."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import kernels
from ...engine.modes import no_grad
from ...engine.tensor import Tensor
from ...errors import ArgumentError, ShapeError, axis_problem, broadcast_problem
from ...ops.creation import astype
from ...ops.elementwise.arithmetic import clip
from ...ops.elementwise.unary import floating, rsqrt
from ...ops.layout.padding import pad
from ...ops.layout.shape import broadcast_to, reshape
from ...ops.reductions.reduction import mean, norm, var
from ...ops.reductions.reduction import sum as sum_
from .declaration import TensorLike, as_constant, function

__all__ = [
    "batch_norm",
    "cosine_similarity",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "local_response_norm",
    "normalize",
    "pairwise_distance",
    "rms_norm",
]


def _check_normalized(name: str, input: Any, normalized_shape: int | Sequence[int], **parameters: Any) -> int:
    """How many axes, the last ones, are to be normalized; parameters must have their shape."""
    sizes = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not sizes or input.shape[-len(sizes) :] != sizes:
        raise ShapeError(
            f"{name}: the input does not end in normalized_shape", f"(…, {', '.join(map(str, sizes))})", input.shape
        )
    for parameter, value in parameters.items():
        if value is not None and value.shape != sizes:
            raise ShapeError(f"{name}: the {parameter} does not fit", sizes, value.shape)
    return len(sizes)


def _scale_and_shift(x: Any, weight: Any, bias: Any) -> Any:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


@function
def layer_norm(
    input: TensorLike,
    normalized_shape: int | Sequence[int],
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """`(x - mean) / sqrt(var + eps) * weight + bias`, with mean and variance over the last axes, those of `normalized_shape`."""
    count = _check_normalized("layer_norm", input, normalized_shape, weight=weight, bias=bias)
    return _along_rows(kernels.layer_norm, count, input, weight, bias, eps=eps)


@function
def rms_norm(
    input: TensorLike, normalized_shape: int | Sequence[int], weight: TensorLike | None = None, eps: float | None = None
) -> Tensor:
    """`x / sqrt(mean(x²) + eps) * weight` over the last axes; eps is the rounding unit it is computed with unless given."""
    count = _check_normalized("rms_norm", input, normalized_shape, weight=weight)
    eps = float(np.finfo(_wide(input).dtype).eps) if eps is None else eps
    return _along_rows(kernels.rms_norm, count, input, weight, eps=eps)


def _along_rows(norm: Any, count: int, input: Any, *parameters: Any, eps: float) -> Any:
    """A norm of the last axes as one of rows; what is not computed in its own dtype is scaled and shifted afterwards."""
    wide = _wide(input)
    if wide is input and count == 1:
        return norm(input, *parameters, eps=eps)
    lead = input.shape[: input.ndim - count]
    rows = reshape(wide, shape=(*lead, math.prod(input.shape[len(lead) :])))
    if wide is not input:
        normal = _like(norm(rows, *[None for _ in parameters], eps=eps), input)
        return _scale_and_shift(reshape(normal, shape=input.shape), *parameters, *[None] * (2 - len(parameters)))
    flat = [p if p is None else reshape(p, shape=(-1,)) for p in parameters]
    return reshape(norm(rows, *flat, eps=eps), shape=input.shape)


def _wide(x: Any) -> Any:
    """float16 as float32, as PyTorch computes: the squares of a few hundreds overflow it. Whole numbers as float64."""
    return astype(x, dtype="float32") if x.dtype.char == "e" else floating(x)


def _like(x: Any, model: Any) -> Any:
    """float16 again where `_wide` made it float32."""
    return astype(x, dtype="float16") if model.dtype.char == "e" else x


@function
def batch_norm(
    input: TensorLike,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """`(x - mean) / sqrt(var + eps) * weight + bias` for each channel, on axis 1: (batch, channels, …), (channels,) -> the same.

    In training, mean and variance are the batch's own, and the running ones move towards them by `momentum`, in place
    (the variance unbiased, as PyTorch's). Otherwise the running ones are used, as constants.
    """
    channels = _check_batch_norm(
        input, training, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias
    )
    axes, shape = (0, *range(2, input.ndim)), (1, channels, *[1] * (input.ndim - 2))
    wide = _wide(input)
    if training:
        centre = mean(wide, axis=axes, keepdims=True)
        centred = wide - centre
        spread = mean(centred * centred, axis=axes, keepdims=True)
        count = input.size // channels
        with no_grad():
            _move(running_mean, centre, momentum)
            _move(running_var, spread * (count / (count - 1)), momentum)
    else:
        centred = wide - reshape(as_constant(running_mean), shape=shape)
        spread = reshape(as_constant(running_var), shape=shape)
    weight, bias = (v if v is None else reshape(v, shape=shape) for v in (weight, bias))
    return _scale_and_shift(_like(centred * rsqrt(spread + eps), input), weight, bias)


def _check_channels(name: str, input: Any, **parameters: Any) -> int:
    """How many channels there are, on axis 1; parameters must have one value for each."""
    if input.ndim < 2:
        raise ShapeError(f"{name}: the input has too few axes", "(batch, channels, …)", input.shape)
    channels: int = input.shape[1]
    for parameter, value in parameters.items():
        if value is not None and value.shape != (channels,):
            expected = f"{(channels,)}, one for each channel of input {input.shape}"
            raise ShapeError(f"{name}: the {parameter} does not fit", expected, value.shape)
    return channels


def _check_batch_norm(input: Any, training: bool, **parameters: Any) -> int:
    channels = _check_channels("batch_norm", input, **parameters)
    if training and input.size == channels:
        raise ShapeError(
            "batch_norm: in training each channel needs several values", got=input.shape, fix="use a larger batch"
        )
    if not training and (parameters["running_mean"] is None or parameters["running_var"] is None):
        raise ArgumentError(
            "batch_norm: outside training the running mean and variance are needed", fix="give both, or training=True"
        )
    return channels


def _move(running: Any, value: Any, momentum: float) -> None:
    """Move a running statistic towards a new value, in place."""
    if running is not None:
        running[...] = (1 - momentum) * running + momentum * reshape(value, shape=(-1,))


@function
def group_norm(
    input: TensorLike,
    num_groups: int,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """`(x - mean) / sqrt(var + eps) * weight + bias`, with mean and variance over each group of channels of one example.

    input (N, C, …), weight and bias (C,) -> the same; `num_groups` divides C.
    """
    channels = _check_channels("group_norm", input, weight=weight, bias=bias)
    if num_groups < 1 or channels % num_groups:
        raise ArgumentError(
            "group_norm: the channels do not divide into groups", f"a divisor of {channels}", num_groups
        )
    if input.size == num_groups:
        raise ShapeError("group_norm: each group needs several values", got=f"{input.shape} in {num_groups} groups")
    wide = reshape(_wide(input), shape=(input.shape[0], num_groups, math.prod(input.shape[1:]) // num_groups))
    normal = reshape(kernels.layer_norm(wide, None, None, eps=eps), shape=input.shape)
    return _scale_and_shift(_like(normal, input), *_by_channel(input, weight, bias))


@function
def instance_norm(
    input: TensorLike,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """`(x - mean) / sqrt(var + eps) * weight + bias` for each channel of each example: (N, C, …), (C,) -> the same.

    The running statistics, if given, move towards the mean of those of all examples, in place. Without
    `use_input_stats` they are used instead, as in `batch_norm`.
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    given = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    channels = _check_channels("instance_norm", input, **given)
    count = math.prod(input.shape[2:])
    if count <= 1:
        raise ShapeError("instance_norm: each channel of an example needs several values", "(N, C, …)", input.shape)
    with no_grad():
        flat = reshape(as_constant(_wide(input)), shape=(input.shape[0], channels, count))
        if running_mean is not None:
            _move(running_mean, mean(flat, axis=(0, 2)), momentum)
        if running_var is not None:
            _move(running_var, mean(var(flat, axis=2, ddof=1), axis=0), momentum)
    return group_norm(input, channels, weight, bias, eps)


def _by_channel(input: Any, *parameters: Any) -> list[Any]:
    """Parameters (C,) in a shape that broadcasts to the input's: (C, 1, …)."""
    shape = (-1, *[1] * (input.ndim - 2))
    return [p if p is None else reshape(p, shape=shape) for p in parameters]


@function
def local_response_norm(
    input: TensorLike, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """`x / (k + alpha · mean(x²))^beta`, with the mean over `size` channels around each: (N, C, …) -> the same."""
    channels = _check_channels("local_response_norm", input)
    if size < 1:
        raise ArgumentError("local_response_norm: size is a number of channels", "1 or more", size)
    widths = [(size // 2, (size - 1) // 2) if axis == 1 else (0, 0) for axis in range(input.ndim)]
    squares = pad(input * input, pad_width=widths)
    total = squares[:, :channels]
    for start in range(1, size):
        total = total + squares[:, start : start + channels]
    return input / (total * (alpha / size) + k) ** beta


@function
def normalize(input: TensorLike, p: float = 2.0, axis: int = 1, eps: float = 1e-12) -> Tensor:
    """`input / max(|input|, eps)` with the p-norm along an axis.

    >>> import minigrad as mg
    >>> mg.nn.functional.normalize(mg.tensor([[3.0, 4.0]]))
    tensor([[0.6, 0.8]])
    """
    if wrong := axis_problem("normalize", axis, input.ndim, input.shape):
        raise wrong
    wide = _wide(input)
    return _like(wide / clip(norm(wide, ord=p, axis=axis, keepdims=True), eps), input)


@function
def pairwise_distance(
    x1: TensorLike, x2: TensorLike, p: float = 2.0, eps: float = 1e-6, keepdims: bool = False
) -> Tensor:
    """`|x1 - x2 + eps|` with the p-norm along the last axis: (…, D), (…, D) -> (…); the two broadcast."""
    if problem := broadcast_problem("pairwise_distance", [x1.shape, x2.shape]):
        raise problem
    return norm(x1 - x2 + eps, ord=p, axis=-1, keepdims=keepdims)


@function
def cosine_similarity(x1: TensorLike, x2: TensorLike, axis: int = 1, eps: float = 1e-8) -> Tensor:
    """`x1 · x2 / (|x1| |x2|)` along an axis, each length at least `eps`; the two broadcast."""
    if problem := broadcast_problem("cosine_similarity", [x1.shape, x2.shape]):
        raise problem
    shape = np.broadcast_shapes(x1.shape, x2.shape)
    if wrong := axis_problem("cosine_similarity", axis, len(shape), shape):
        raise wrong
    wide = [broadcast_to(_wide(x), shape=shape) for x in (x1, x2)]
    first, second = (x / clip(norm(x, axis=axis, keepdims=True), eps) for x in wide)
    return _like(sum_(first * second, axis=axis), x1 if x1.dtype == x2.dtype else first)
