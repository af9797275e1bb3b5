"""The fused operations, and what each computes: its definition, made of ordinary ops.

A definition is the oracle that kernels are tested against, what runs where no kernel fits, and what is differentiated
for higher derivatives. The callers in minigrad.nn check the arguments.
"""

from __future__ import annotations

import math
from typing import Any

from ..engine.op import op
from ..ops.creation import astype
from ..ops.elementwise.activations import gelu, silu
from ..ops.elementwise.arithmetic import logical_and, where
from ..ops.elementwise.unary import exp, log, rsqrt, tanh
from ..ops.indexing.along import take_along_axis
from ..ops.layout.joining import _unstack, split, stack
from ..ops.layout.shape import expand_dims, reshape, squeeze, swapaxes, transpose
from ..ops.linalg.products import matmul
from ..ops.neural.convolution import convolution
from ..ops.neural.pooling import avg_pool, max_pool
from ..ops.neural.softmax import _causal_mask, softmax
from ..ops.neural.softmax import _masked_softmax as masked_softmax
from ..ops.reductions import reduction
from ..ops.reductions.reduction import mean
from ..random import Strided, hashed
from .registry import fuse, fused

__all__ = [
    "attention", "avg_pool", "convolution", "cross_entropy", "dropout", "embedding", "gated_scan", "gelu", "layer_norm", "linear", "linear_gelu",
    "masked_softmax", "max_pool", "packed_attention", "rms_norm", "silu", "softmax", "swiglu",
]  # fmt: skip

for _function in (gelu, silu, softmax):
    fuse(_function, rows=("a",))
fuse(masked_softmax, rows=())
for _windowed in (convolution, max_pool, avg_pool):
    fuse(_windowed)


def _linear_cost(inputs, out, attrs):
    return 2 * out.size * inputs[0].shape[-1] + out.size * (inputs[2] is not None)


@fused(
    formulas={"x": "g @ weight", "weight": "gᵀ @ x", "bias": "g summed over all rows"},
    cost=_linear_cost,
    rows=("x",),
)
def linear(x, weight, bias):
    """`x @ weight.T + bias`: (…, in), (out, in), (out,) or None -> (…, out)."""
    product = matmul(x, weight.T)
    return product if bias is None else product + bias


@fused(cost=lambda inputs, out, attrs: _linear_cost(inputs, out, attrs) + 8 * out.size, rows=("x",))
def linear_gelu(x, weight, bias, *, approximate):
    """`gelu(x @ weight.T + bias)`: (…, in), (out, in), (out,) or None -> (…, out)."""
    return gelu(linear.function(x, weight, bias), approximate=approximate)


@fused(cost=6, rows=("x",))
def swiglu(x):
    """`silu(gate) * up` of the two halves of the last axis, gate first: (…, 2h) -> (…, h)."""
    gate, up = split(x, indices_or_sections=2, axis=-1)
    return silu(gate) * up


@fused(cost=8, rows=("x",))
def layer_norm(x, weight, bias, *, eps):
    """`(x - mean) / sqrt(var + eps) * weight + bias` along the last axis: (…, C), (C,) or None, (C,) or None -> (…, C)."""
    centred = x - mean(x, axis=-1, keepdims=True)
    normal = centred * rsqrt(mean(centred * centred, axis=-1, keepdims=True) + eps)
    normal = normal if weight is None else normal * weight
    return normal if bias is None else normal + bias


@fused(cost=5, rows=("x",))
def rms_norm(x, weight, *, eps):
    """`x / sqrt(mean(x²) + eps) * weight` along the last axis: (…, C), (C,) or None -> (…, C)."""
    normal = x * rsqrt(mean(x * x, axis=-1, keepdims=True) + eps)
    return normal if weight is None else normal * weight


@fused(cost=5, rows=("logits", "labels"))
def cross_entropy(logits, labels, *, ignore_index, smoothing):
    """`-log(softmax(logits))` at the labels, mixed with its mean over all classes by `smoothing`: (N, V), (N,) -> (N,).

    Labels equal to `ignore_index` give 0; the others lie between 0 and V - 1.
    """
    valid = labels != ignore_index
    scores = where(expand_dims(valid, axis=-1), logits, 0)  # 0 · NaN would be a gradient
    top = _constant(reduction.max(scores, axis=-1, keepdims=True))
    scores = scores - top  # which changes neither the loss nor its gradients
    at_labels = take_along_axis(scores, indices=expand_dims(where(valid, labels, 0), axis=-1), axis=-1)
    wanted = squeeze(at_labels, axis=-1)
    if smoothing:
        wanted = (1 - smoothing) * wanted + smoothing * mean(scores, axis=-1)
    return where(valid, log(reduction.sum(exp(scores), axis=-1)) - wanted, 0)


def _constant(x: Any) -> Any:
    """The same, and no gradient goes to it."""
    return x.detach() if hasattr(x, "detach") else x


@fused(formulas={"weight": "rows of g, added to the rows that were looked up"}, cost=0)
def embedding(weight, index, *, padding_idx):
    """The rows of `weight` that `index` numbers, (rows, C), (…) -> (…, C); row `padding_idx` gets no gradient."""
    picked = weight[index]
    if padding_idx is None:
        return picked
    return where(index[..., None] == padding_idx, _constant(picked), picked)


@op(lowering="(1 / (1 - p) if p < 1 else 0) if kept(element, p, key, start) else 0")
def _dropout_factors(xp, a, *, p, key, start):
    """0 with probability `p`, else `1 / (1 - p)`, for each element of `a`: a hash of the key and the element's number."""
    if isinstance(start, Strided):
        numbers = start.numbers(xp, a.size)
    else:
        numbers = xp.arange(a.size, dtype="uint32") + xp.uint32(start & 0xFFFFFFFF)
    is_kept = hashed(xp, numbers.reshape(a.shape), key) >= xp.uint32(min(int(p * 2**32), 2**32 - 1))
    return xp.where(is_kept, 1 / (1 - p) if p < 1 else 0, 0).astype(a.dtype)


@fused(rows=("x",), varying=("key", "start"))
def dropout(x, *, p, key, start):
    """`x`, each element 0 with probability `p` and else divided by `1 - p`; key and start say which (minigrad.random)."""
    return x * _dropout_factors(x, p=p, key=key, start=start)


def _attention_cost(inputs, out, attrs):
    query, key, value, _ = inputs
    return math.prod(query.shape[:-1]) * key.shape[-2] * (2 * query.shape[-1] + 2 * value.shape[-1] + 5)


def _product_of_heads(a, b):
    """`a @ b`, where each matrix of b serves as many neighbours of a as there are more of these: (…, H, L, E), (…, h, E, S) -> (…, H, L, S)."""
    if a.ndim != b.ndim or a.ndim < 3 or a.shape[-3] % b.shape[-3] or a.shape[-3] == b.shape[-3]:
        return matmul(a, b)
    *batch, heads, length, width = a.shape
    together = reshape(a, shape=(*batch, b.shape[-3], heads // b.shape[-3] * length, width))  # (…, h, H / h · L, E)
    product = matmul(together, b)
    return reshape(product, shape=(*product.shape[:-3], heads, length, b.shape[-1]))


@fused(cost=_attention_cost, lowering="whole")
def attention(query, key, value, mask, *, causal, scale, softcap, dropout_p, dropout_key, start):
    """`softmax(scale · query @ keyᵀ) @ value` where `mask` is True: (…, L, E), (…, S, E), (…, S, V), (…, L, S) or None -> (…, L, V).

    A floating mask is added to the scores, and -inf forbids; the kernels give it no gradient. `causal` also forbids key j > i
    to query i. A query that may attend to nothing gets zeros. Key and value may have fewer heads, the last axis but two, each
    of which then serves neighbouring heads of the query. With `softcap`, a score x is `softcap · tanh(x / softcap)` before the mask.
    """
    scores = _product_of_heads(query * scale, swapaxes(key, axis1=-1, axis2=-2))  # (…, L, E) @ (…, E, S) -> (…, L, S)
    if softcap is not None:
        scores = softcap * tanh(scores / softcap)
    if mask is not None and mask.dtype.kind == "f":
        mask = mask if mask.dtype == scores.dtype else astype(mask, dtype=scores.dtype)
        may = mask != -math.inf
        scores, mask = scores + where(may, mask, 0), may
    if causal:
        ahead = _causal_mask(scores)
        mask = ahead if mask is None else logical_and(mask, ahead)
    weights = softmax(scores) if mask is None else masked_softmax(scores, mask)
    if dropout_p:
        weights = weights * _dropout_factors(weights, p=dropout_p, key=dropout_key, start=start)
    return _product_of_heads(weights, value)  # (…, L, S) @ (…, S, V) -> (…, L, V)


def _packed_attention_cost(inputs, out, attrs):
    batch, length, width = inputs[0].shape
    return batch * length * length * (4 * (width // 3) + 5 * attrs["heads"])


@fused(cost=_packed_attention_cost, lowering="whole")
def packed_attention(packed, mask, *, heads, causal, scale, softcap, dropout_p, dropout_key, start):
    """Self-attention of queries, keys and values that lie side by side: (B, L, 3·C), mask (B, h, L, L) or None -> (B, L, C)."""
    batch, length, width = packed.shape
    apart = reshape(packed, shape=(batch, length, 3, heads, width // (3 * heads)))
    query, key, value = transpose(apart, axes=(2, 0, 3, 1, 4))  # each (B, h, L, C/h)
    options = {"softcap": softcap, "dropout_p": dropout_p, "dropout_key": dropout_key, "start": start}
    seen = attention.function(query, key, value, mask, causal=causal, scale=scale, **options)
    return reshape(transpose(seen, axes=(0, 2, 1, 3)), shape=(batch, length, width // 3))  # (B, h, L, C/h) -> (B, L, C)


@fused(cost=4, lowering="whole")
def gated_scan(x, gate, state):
    """The states `c_t = gate_t · c_(t-1) + (1 - gate_t) · x_t` that begin with `state`: (B, L, C), (B, L, C), (B, C) -> (B, L, C)."""
    states = []
    for new, kept in zip(_unstack(x, axis=1), _unstack(gate, axis=1)):
        state = kept * state + (1 - kept) * new
        states.append(state)
    return stack(states, axis=1)
