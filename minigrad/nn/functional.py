"""The functions of neural networks, with PyTorch's signatures, defaults and results (`axis` instead of `dim`)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import kernels
from ..engine.tensor import Tensor
from ..errors import (
    DtypeError,
    ShapeError,
    broadcast_problem,
    public,
)
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
from ..kernels import Packed
from ..ops.einsum import einsum
from ..random import next_key
from . import (
    activation_functions,
    conv_functions,
    ctc,
    dropout_functions,
    embedding_functions,
    grid_sampling,
    image_functions,
    likelihood_losses,
    margin_losses,
    norm_functions,
    pool_functions,
)
from .activation_functions import *  # noqa: F403
from .conv_functions import *  # noqa: F403
from .ctc import *  # noqa: F403
from .declaration import TensorLike, function
from .dropout_functions import *  # noqa: F403
from .dropout_functions import check_probability
from .embedding_functions import *  # noqa: F403
from .grid_sampling import *  # noqa: F403
from .image_functions import *  # noqa: F403
from .likelihood_losses import *  # noqa: F403
from .losses import (
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    nll_loss,
    smooth_l1_loss,
)
from .low_rank import LowRank
from .margin_losses import *  # noqa: F403
from .norm_functions import *  # noqa: F403
from .pool_functions import *  # noqa: F403

__all__ = [
    "bilinear",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "elu",
    "gelu",
    "hardsigmoid",
    "hardtanh",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "leaky_relu",
    "linear",
    "linear_gelu",
    "log_softmax",
    "logsigmoid",
    "mish",
    "mse_loss",
    "nll_loss",
    "one_hot",
    "relu",
    "scaled_dot_product_attention",
    "selu",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "softmax",
    "softplus",
    "softsign",
    "tanh",
]
__all__ += activation_functions.__all__
__all__ += conv_functions.__all__
__all__ += ctc.__all__
__all__ += dropout_functions.__all__
__all__ += embedding_functions.__all__
__all__ += grid_sampling.__all__
__all__ += image_functions.__all__
__all__ += likelihood_losses.__all__
__all__ += margin_losses.__all__
__all__ += norm_functions.__all__
__all__ += pool_functions.__all__


@function
def linear(input: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
    """`input @ weight.T + bias`: (…, in), (out, in), (out,) -> (…, out). The weight may be packed.

    >>> import minigrad as mg
    >>> mg.nn.functional.linear(mg.tensor([1.0, 2.0]), mg.tensor([[3.0, 4.0]]), mg.tensor([0.5]))
    tensor([11.5])
    """
    _check_linear(input, weight, bias)
    if isinstance(weight, Packed):
        return kernels.packed_linear(input, weight.tensor, bias, format=weight.format)
    if isinstance(weight, LowRank):
        return weight.linear(input, bias)
    return kernels.linear(input, weight, bias)


@function
def linear_gelu(
    input: TensorLike, weight: TensorLike, bias: TensorLike | None = None, approximate: str = "none"
) -> Tensor:
    """`gelu(input @ weight.T + bias)` with one kernel: (…, in), (out, in), (out,) -> (…, out).

    >>> import minigrad as mg
    >>> mg.nn.functional.linear_gelu(mg.tensor([1.0, 2.0]), mg.tensor([[3.0, 4.0]]), mg.tensor([0.5]))
    tensor([11.5])
    """
    _check_linear(input, weight, bias)
    if isinstance(weight, Packed):
        return gelu(kernels.packed_linear(input, weight.tensor, bias, format=weight.format), approximate=approximate)
    if isinstance(weight, LowRank):
        return gelu(weight.linear(input, bias), approximate=approximate)
    return kernels.linear_gelu(input, weight, bias, approximate=approximate)


def _check_linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    inner, outer = input.shape, weight.shape
    if len(outer) not in (1, 2) or not inner or inner[-1] != outer[-1]:
        fix = (
            f"make the input's last axis {outer[-1]}, or the layer for {inner[-1]} inputs" if inner and outer else None
        )
        if weight.ndim == 2 and inner and inner[-1] == outer[0]:
            fix = f"{fix}; a weight of (in, out) must be transposed"
        got = f"{input.shape} and {weight.shape}"
        raise ShapeError("linear: input and weight do not fit", "input (…, in) and weight (out, in)", got, fix)
    if bias is not None and bias.shape != outer[:-1]:
        raise ShapeError("linear: the bias does not fit the weight", weight.shape[:-1], bias.shape)


@function
def bilinear(input1: TensorLike, input2: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
    """`input1ᵀ · weight[o] · input2 + bias[o]` for each output o: (…, in1), (…, in2), (out, in1, in2), (out,) -> (…, out)."""
    shapes = input1.shape, input2.shape, weight.shape
    if (
        shapes[0][:-1] != shapes[1][:-1]
        or weight.ndim != 3
        or weight.shape[1:] != input1.shape[-1:] + input2.shape[-1:]
    ):
        got = " and ".join(map(str, shapes))
        raise ShapeError("bilinear: inputs and weight do not fit", "(…, in1), (…, in2) and (out, in1, in2)", got)
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ShapeError("bilinear: the bias does not fit the weight", weight.shape[:1], bias.shape)
    product = einsum("...i,oij,...j->...o", input1, weight, input2)
    return product if bias is None else product + bias


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
    enable_gqa: bool = False,
    softcap: float | None = None,
) -> Tensor:
    """`softmax(scale · query @ keyᵀ) @ value`: (…, L, E), (…, S, E), (…, S, V) -> (…, L, V); scale is `1 / sqrt(E)` unless given.

    A boolean mask (…, L, S) is True where a query may attend; a floating one is added to the scores, and -inf forbids.
    `is_causal` lets query i attend to keys 0 … i, together with the mask if both are given. A query that may attend to
    nothing gets zeros, and finite gradients. `dropout_p` drops attention weights whenever it is not 0.

    With `enable_gqa`, key and value (B, h, S, …) may have fewer heads than the query (B, H, L, E): each of them serves H / h
    neighbouring ones, and is not repeated in memory. A `softcap` c turns a score x into `c · tanh(x / c)` before the mask.
    """
    name = "scaled_dot_product_attention"
    check_probability(name, dropout_p)
    shape = _check_attention(name, query, key, value, mask, enable_gqa)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    draw, start = next_key(math.prod(shape)) if dropout_p else (0, 0)
    options = {"causal": is_causal, "scale": scale, "softcap": softcap}
    options |= {"dropout_p": dropout_p, "dropout_key": draw, "start": start}
    if getattr(mask, "requires_grad", False):  # which the kernels do not give
        return kernels.attention.define((query, key, value, mask), options)
    return kernels.attention(query, key, value, mask, **options)


def _check_attention(name: str, query: Any, key: Any, value: Any, mask: Any, grouped: bool) -> tuple[int, ...]:
    """Refuse what does not fit; returns the shape of the scores: (…, L, E), (…, S, E) -> (…, L, S)."""
    q, k, v = query.shape, key.shape, value.shape
    if grouped and 2 < len(q) == len(k) == len(v) and k[-3] == v[-3] and k[-3] > 0 and q[-3] % k[-3] == 0:
        k, v = ((*s[:-3], q[-3], *s[-2:]) for s in (k, v))
    alike = 1 < len(q) == len(k) == len(v) and q[:-2] == k[:-2] == v[:-2]
    if not alike or q[-1] != k[-1] or k[-2] != v[-2]:
        _check_shapes(name, q, k, v)
    scores = (*(q[:-2] if alike else np.broadcast_shapes(q[:-2], k[:-2])), q[-2], k[-2])
    if mask is not None:
        check_mask(name, mask, scores)
    return scores


def _check_shapes(name: str, *shapes: tuple[int, ...]) -> None:
    """Refuse those of a query, key and value that do not fit; axes before the last two may be broadcast."""
    query, key, value = shapes
    got = f"query {query}, key {key}, value {value}"
    if min(map(len, shapes)) < 2:
        raise ShapeError(f"{name}: each input needs two axes", "query (…, L, E), key (…, S, E), value (…, S, V)", got)
    if query[-1] != key[-1]:
        raise ShapeError(f"{name}: query and key differ in their last size", "query (…, L, E) and key (…, S, E)", got)
    if key[-2] != value[-2]:
        raise ShapeError(f"{name}: there is not one value for each key", "key (…, S, E) and value (…, S, V)", got)
    if problem := broadcast_problem(f"{name} (the axes before the last two)", [s[:-2] for s in shapes]):
        if min(map(len, shapes)) > 2 and key[-3] == value[-3] and key[-3] and query[-3] % key[-3] == 0:
            fix = "give enable_gqa=True if several heads of the query are to share one of key and value"
            raise ShapeError(f"{name}: there are more heads of the query", "as many heads of all three", got, fix)
        raise problem


def check_mask(name: str, mask: Any, scores: tuple[int, ...]) -> None:
    """Refuse a mask that is none, or does not broadcast to the shape of the scores."""
    if mask.dtype.kind not in "bf":
        raise DtypeError(
            f"{name}: a mask is boolean (True: may attend) or floating (added to the scores)",
            "bool or float",
            mask.dtype,
            "mask.astype('bool')",
        )
    if len(mask.shape) > len(scores) or any(m not in (1, n) for m, n in zip(mask.shape[::-1], scores[::-1])):
        raise ShapeError(
            f"{name}: the mask does not fit the scores", f"a shape that broadcasts to {scores}", mask.shape
        )


if not TYPE_CHECKING:  # a type checker knows what is here
    __getattr__, __dir__ = public(__name__, __all__, "functions")
