"""The functions of neural networks, with PyTorch's signatures, defaults and results (`axis` instead of `dim`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..engine.backend import backend_of, on_device_of
from ..engine.errors import (
    ArgumentError,
    DtypeError,
    IndexingError,
    ShapeError,
    axis_problem,
    broadcast_problem,
    describe,
)
from ..engine.modes import no_grad
from ..engine.tensor import Tensor, wrap
from ..functions import (
    elu,
    gelu,
    hardsigmoid,
    hardtanh,
    leaky_relu,
    log_softmax,
    logsigmoid,
    mish,
    one_hot,
    relu,
    selu,
    sigmoid,
    silu,
    softmax,
    softplus,
    softsign,
    tanh,
)
from ..ops.arithmetic import clip, logical_and, where
from ..ops.convolution import convolve, pool_max, pool_mean
from ..ops.creation import astype as _astype
from ..ops.elementwise import rsqrt
from ..ops.neural import _causal_mask, _masked_softmax
from ..ops.neural import softmax as _softmax
from ..ops.products import matmul
from ..ops.reduction import mean, norm
from ..ops.reduction import sum as sum_
from ..ops.shape import broadcast_to, reshape, swapaxes
from .declare import TensorLike, function
from .losses import binary_cross_entropy_with_logits, cross_entropy, huber_loss, kl_div, l1_loss, mse_loss, nll_loss

__all__ = [
    "avg_pool2d",
    "batch_norm",
    "binary_cross_entropy_with_logits",
    "conv1d",
    "conv2d",
    "cosine_similarity",
    "cross_entropy",
    "dropout",
    "elu",
    "embedding",
    "gelu",
    "hardsigmoid",
    "hardtanh",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_softmax",
    "logsigmoid",
    "max_pool2d",
    "mish",
    "mse_loss",
    "nll_loss",
    "one_hot",
    "relu",
    "rms_norm",
    "scaled_dot_product_attention",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "softsign",
    "tanh",
]


@function
def linear(input: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
    """`input @ weight.T + bias`: (…, in), (out, in), (out,) -> (…, out).

    >>> import minigrad as mg
    >>> mg.nn.functional.linear(mg.tensor([1.0, 2.0]), mg.tensor([[3.0, 4.0]]), mg.tensor([0.5]))
    tensor([11.5])
    """
    if weight.ndim not in (1, 2) or input.ndim == 0 or input.shape[-1] != weight.shape[-1]:
        fix = (
            "the weight's layout is (out, in): transpose it"
            if weight.ndim == 2 and input.ndim and input.shape[-1] == weight.shape[0]
            else None
        )
        got = f"{input.shape} and {weight.shape}"
        raise ShapeError("linear: input and weight do not fit", "input (…, in) and weight (out, in)", got, fix)
    if bias is not None and bias.shape != weight.shape[:-1]:
        raise ShapeError("linear: the bias does not fit the weight", weight.shape[:-1], bias.shape)
    product = matmul(input, weight.T)
    return product if bias is None else product + bias


@function
def embedding(input: TensorLike, weight: TensorLike, padding_idx: int | None = None) -> Tensor:
    """The rows of `weight` that `input` numbers: whole numbers (…), (rows, size) -> (…, size).

    The row `padding_idx` gets no gradient.
    """
    if input.dtype.kind not in "iu":
        raise DtypeError(
            "embedding: row numbers must be whole numbers", "an integer dtype", describe(input), "input.astype('int64')"
        )
    if weight.ndim != 2:
        raise ShapeError("embedding: the weight must be a table", "(rows, size)", weight.shape)
    rows = weight.shape[0]
    wrong = (input < 0) | (input >= rows)
    if wrong.any():
        expected = f"0 to {rows - 1}, for weight {weight.shape}"
        raise IndexingError("embedding: a row number is out of range", expected, int(input[wrong][0]))
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise IndexingError("embedding: padding_idx is out of range", f"{-rows} to {rows - 1}", padding_idx)
    picked = weight[input]
    return (
        picked if padding_idx is None else where(input[..., None] == padding_idx % rows, _as_constant(picked), picked)
    )


def _as_constant(x: Any) -> Any:
    return x.detach() if isinstance(x, Tensor) else x


@function
def dropout(input: TensorLike, p: float = 0.5, training: bool = True) -> Tensor:
    """Each element 0 with probability `p`, the others divided by `1 - p`; the input itself unless `training`."""
    _check_probability("dropout", p)
    if input.dtype.kind != "f":
        raise DtypeError(
            "dropout: only floating tensors can be scaled", "a floating dtype", input.dtype, "input.astype('float32')"
        )
    return _drop(input, p) if training and p else input


def _check_probability(name: str, p: float) -> None:
    if not 0 <= p <= 1:
        raise ArgumentError(f"{name}: what is dropped is a probability", "0 to 1", p)


def _drop(input: Any, p: float) -> Any:
    """The draws are always float32, so that they do not depend on the dtype of the model."""
    array = input.data if isinstance(input, Tensor) else input
    backend = backend_of(array)
    with on_device_of(array):
        kept = backend.random.uniform(array.shape, "float32") >= p
        factors = backend.xp.where(kept, 1 / (1 - p) if p < 1 else 0, 0).astype(array.dtype)
    return input * (wrap(factors) if isinstance(input, Tensor) else factors)


def _check_normalized(
    name: str, input: Any, normalized_shape: int | Sequence[int], **parameters: Any
) -> tuple[int, ...]:
    """The last axes, those to be normalized, counted from the end; parameters must have their shape."""
    sizes = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not sizes or input.shape[-len(sizes) :] != sizes:
        raise ShapeError(
            f"{name}: the input does not end in normalized_shape", f"(…, {', '.join(map(str, sizes))})", input.shape
        )
    for parameter, value in parameters.items():
        if value is not None and value.shape != sizes:
            raise ShapeError(f"{name}: the {parameter} does not fit", sizes, value.shape)
    return tuple(range(-len(sizes), 0))


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
    axes = _check_normalized("layer_norm", input, normalized_shape, weight=weight, bias=bias)
    wide = _wide(input)
    centred = wide - mean(wide, axis=axes, keepdims=True)
    spread = mean(centred * centred, axis=axes, keepdims=True)
    return _scale_and_shift(_like(centred * rsqrt(spread + eps), input), weight, bias)


@function
def rms_norm(
    input: TensorLike, normalized_shape: int | Sequence[int], weight: TensorLike | None = None, eps: float | None = None
) -> Tensor:
    """`x / sqrt(mean(x²) + eps) * weight` over the last axes; eps is the dtype's rounding unit unless given."""
    axes = _check_normalized("rms_norm", input, normalized_shape, weight=weight)
    eps = float(np.finfo(input.dtype).eps) if eps is None else eps
    wide = _wide(input)
    return _scale_and_shift(_like(wide * rsqrt(mean(wide * wide, axis=axes, keepdims=True) + eps), input), weight, None)


def _wide(x: Any) -> Any:
    """float16 as float32, as PyTorch computes: the squares of a few hundreds overflow it."""
    return _astype(x, dtype="float32") if x.dtype == "float16" else x


def _like(x: Any, model: Any) -> Any:
    return x if x.dtype == model.dtype else _astype(x, dtype=model.dtype)


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
    if training:
        centre = mean(input, axis=axes, keepdims=True)
        centred = input - centre
        spread = mean(centred * centred, axis=axes, keepdims=True)
        count = input.size // channels
        with no_grad():
            _move(running_mean, centre, momentum)
            _move(running_var, spread * (count / (count - 1)), momentum)
    else:
        centred = input - reshape(_as_constant(running_mean), shape=shape)
        spread = reshape(_as_constant(running_var), shape=shape)
    weight, bias = (v if v is None else reshape(v, shape=shape) for v in (weight, bias))
    return _scale_and_shift(centred * rsqrt(spread + eps), weight, bias)


def _check_batch_norm(input: Any, training: bool, **parameters: Any) -> int:
    if input.ndim < 2:
        raise ShapeError("batch_norm: the input has too few axes", "(batch, channels, …)", input.shape)
    channels = input.shape[1]
    for name, value in parameters.items():
        if value is not None and value.shape != (channels,):
            expected = f"{(channels,)}, one for each channel of input {input.shape}"
            raise ShapeError(f"batch_norm: the {name} does not fit", expected, value.shape)
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
def conv1d(
    input: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """The convolution (as PyTorch's: without flipping the kernel) along one axis: (N, C, L), (O, C/groups, k), (O,) -> (N, O, L')."""
    return convolve("conv1d", input, weight, bias, stride, padding, dilation, groups, 1)


@function
def conv2d(
    input: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """The convolution over two axes: (N, C, H, W), (O, C/groups, kh, kw), (O,) -> (N, O, H', W').

    `padding` is a number, a pair, "valid" (none) or "same" (the output is as large as the input; stride 1 only).

    >>> import minigrad as mg
    >>> mg.nn.functional.conv2d(mg.ones(1, 1, 4, 4), mg.ones(1, 1, 3, 3))
    tensor([[[[9., 9.],
              [9., 9.]]]])
    """
    return convolve("conv2d", input, weight, bias, stride, padding, dilation, groups, 2)


@function
def max_pool2d(
    input: TensorLike,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
) -> Tensor:
    """The largest element of each window: (N, C, H, W) -> (N, C, H', W'). Of equal ones, the first gets the gradient."""
    return pool_max("max_pool2d", input, kernel_size, stride, padding, dilation)


@function
def avg_pool2d(
    input: TensorLike,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    *,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window: (N, C, H, W) -> (N, C, H', W'). Padding counts as zeros, or not at all."""
    return pool_mean("avg_pool2d", input, kernel_size, stride, padding, count_include_pad)


@function
def scaled_dot_product_attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    mask: TensorLike | None = None,
    *,
    is_causal: bool = False,
    dropout_p: float = 0.0,
    scale: float | None = None,
) -> Tensor:
    """`softmax(scale · query @ keyᵀ) @ value`: (…, L, E), (…, S, E), (…, S, V) -> (…, L, V); scale is `1 / sqrt(E)` unless given.

    A boolean mask (…, L, S) is True where a query may attend; a floating one is added to the scores, and -inf forbids.
    `is_causal` lets query i attend to keys 0 … i, together with the mask if both are given. A query that may attend to
    nothing gets zeros, and finite gradients. `dropout_p` drops attention weights whenever it is not 0.
    """
    name = "scaled_dot_product_attention"
    _check_probability(name, dropout_p)
    _check_attention(name, query, key, value, mask)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = matmul(query * scale, swapaxes(key, axis1=-1, axis2=-2))  # (…, L, E) @ (…, E, S) -> (…, L, S)
    allowed = _causal_mask(scores) if is_causal else None
    if mask is not None:
        if mask.dtype.kind == "b":
            may = mask
        else:
            may = mask != -math.inf
            scores = scores + where(may, mask, 0)
        allowed = may if allowed is None else logical_and(may, allowed)
    weights = _softmax(scores) if allowed is None else _masked_softmax(scores, allowed)
    if dropout_p:
        weights = _drop(weights, dropout_p)
    return matmul(weights, value)  # (…, L, S) @ (…, S, V) -> (…, L, V)


def _check_attention(name: str, query: Any, key: Any, value: Any, mask: Any) -> None:
    shapes = [x.shape for x in (query, key, value)]
    got = "query {}, key {}, value {}".format(*shapes)
    if min(map(len, shapes)) < 2:
        raise ShapeError(f"{name}: each input needs two axes", "query (…, L, E), key (…, S, E), value (…, S, V)", got)
    if query.shape[-1] != key.shape[-1]:
        raise ShapeError(f"{name}: query and key differ in their last size", "query (…, L, E) and key (…, S, E)", got)
    if key.shape[-2] != value.shape[-2]:
        raise ShapeError(f"{name}: there is not one value for each key", "key (…, S, E) and value (…, S, V)", got)
    if problem := broadcast_problem(f"{name} (the axes before the last two)", [s[:-2] for s in shapes]):
        raise problem
    if mask is None:
        return
    if mask.dtype.kind not in "bf":
        raise DtypeError(
            f"{name}: a mask is boolean (True: may attend) or floating (added to the scores)",
            "bool or float",
            mask.dtype,
            "mask.astype('bool')",
        )
    scores = (*np.broadcast_shapes(shapes[0][:-2], shapes[1][:-2]), query.shape[-2], key.shape[-2])
    if len(mask.shape) > len(scores) or any(m not in (1, n) for m, n in zip(mask.shape[::-1], scores[::-1])):
        raise ShapeError(
            f"{name}: the mask does not fit the scores", f"a shape that broadcasts to {scores}", mask.shape
        )


@function
def cosine_similarity(x1: TensorLike, x2: TensorLike, axis: int = 1, eps: float = 1e-8) -> Tensor:
    """`x1 · x2 / (|x1| |x2|)` along an axis, each length at least `eps`; the two broadcast."""
    if problem := broadcast_problem("cosine_similarity", [x1.shape, x2.shape]):
        raise problem
    shape = np.broadcast_shapes(x1.shape, x2.shape)
    if wrong := axis_problem("cosine_similarity", axis, len(shape), shape):
        raise wrong
    x1, x2 = (x if x.shape == shape else broadcast_to(x, shape=shape) for x in (x1, x2))
    lengths = [clip(norm(x, axis=axis, keepdims=True), eps) for x in (x1, x2)]
    return sum_((x1 / lengths[0]) * (x2 / lengths[1]), axis=axis)
