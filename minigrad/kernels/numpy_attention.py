"""Attention on NumPy's arrays: a few heads at a time, whose scores fit into the cache and are not kept.

For the backward only the logarithm of each row's sum is kept, (B, h, L, 1); the weights are computed again from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import definitions as d
from .numpy import are_floating, register
from .numpy_rows import softmax_in_place

SCORES = 131_072  # elements that are worked on at a time


def _chunks(query: np.ndarray, key: np.ndarray) -> Iterator[slice]:
    """As many rows of the batch at a time as have few enough scores."""
    batch, heads, length, _ = query.shape
    step = max(SCORES // max(heads * length * key.shape[2], 1), 1)
    return (slice(i, min(i + step, batch)) for i in range(0, batch, step))


def _allowed(mask: Any, causal: bool, query: np.ndarray, key: np.ndarray) -> np.ndarray | None:
    """The mask and causality as one, broadcast to (B, h, L, S); None where everything is allowed."""
    batch, heads, length, _ = query.shape
    size = key.shape[2]
    if causal:
        ahead = np.tri(length, size, dtype=bool)
        mask = ahead if mask is None else mask & ahead
    return None if mask is None else np.broadcast_to(mask, (batch, heads, length, size))


def _scores(query: np.ndarray, key: np.ndarray, allowed: np.ndarray | None, scale: float) -> np.ndarray:
    scores = query @ key.swapaxes(-1, -2)  # (b, h, L, E) @ (b, h, E, S) -> (b, h, L, S)
    scores *= scale
    if allowed is not None:
        np.copyto(scores, -math.inf, where=~allowed)
    return scores


def _factors(weights: np.ndarray, first: int, dropout: tuple[float, int, int]) -> np.ndarray:
    """The factors of dropout for a chunk that begins with row `first` of the batch."""
    p, key, start = dropout
    begin = start + first * math.prod(weights.shape[1:])
    return d._dropout_factors.forward(np, weights, p=p, key=key, start=begin)


@np.errstate(all="ignore")
def attend(query: Any, key: Any, value: Any, mask: Any, out: Any, causal: bool, scale: float, dropout: Any) -> Any:
    """Fill `out` (B, h, L, V), which may be a view; returns the logarithms of the rows' sums."""
    logs = np.empty((*query.shape[:3], 1), query.dtype)
    allowed = _allowed(mask, causal, query, key)
    for b in _chunks(query, key):
        weights = _scores(query[b], key[b], None if allowed is None else allowed[b], scale)
        logs[b] = softmax_in_place(weights, masked=allowed is not None)
        if dropout[0]:
            weights *= _factors(weights, b.start, dropout)
        np.matmul(weights, value[b], out=out[b])  # (b, h, L, S) @ (b, h, S, V)
    return logs


@np.errstate(all="ignore")
def attend_backward(
    g: Any, logs: Any, query: Any, key: Any, value: Any, mask: Any, grads: Any, causal: bool, scale: float, dropout: Any
) -> None:
    """Fill the gradients of query, key and value, which may be views."""
    g_query, g_key, g_value = grads
    allowed = _allowed(mask, causal, query, key)
    for b in _chunks(query, key):
        weights = _scores(query[b], key[b], None if allowed is None else allowed[b], scale)
        weights -= logs[b]
        np.exp(weights, out=weights)
        slopes = g[b] @ value[b].swapaxes(-1, -2)  # (b, h, L, V) @ (b, h, V, S) -> (b, h, L, S)
        if dropout[0]:
            factors = _factors(weights, b.start, dropout)
            np.matmul((weights * factors).swapaxes(-1, -2), g[b], out=g_value[b])
            slopes *= factors
        else:
            np.matmul(weights.swapaxes(-1, -2), g[b], out=g_value[b])  # (b, h, S, L) @ (b, h, L, V)
        slopes -= np.einsum("bhls,bhls->bhl", slopes, weights)[..., None]
        slopes *= weights
        slopes *= scale
        np.matmul(slopes, key[b], out=g_query[b])  # (b, h, L, S) @ (b, h, S, E)
        np.matmul(slopes.swapaxes(-1, -2), query[b], out=g_key[b])  # (b, h, S, L) @ (b, h, L, E)


def attention_forward(query, key, value, mask, *, causal, scale, dropout_p, dropout_key, start):
    out = np.empty((*query.shape[:3], value.shape[3]), query.dtype)
    logs = attend(query, key, value, mask, out, causal, scale, (dropout_p, dropout_key, start))
    return out, logs


def attention_backward(g, logs, needs, query, key, value, mask, *, causal, scale, dropout_p, dropout_key, start):
    grads = [np.empty(x.shape, x.dtype) for x in (query, key, value)]
    attend_backward(g, logs, query, key, value, mask, grads, causal, scale, (dropout_p, dropout_key, start))
    return *grads, None


def accepts_attention(query, key, value, mask, **attributes):
    """Four axes each, nothing broadcast but the mask, and nothing empty."""
    alike = query.ndim == key.ndim == value.ndim == 4 and query.shape[:2] == key.shape[:2] == value.shape[:2]
    return alike and min(query.size, key.size, value.size) > 0 and are_floating(query, key, value) and is_mask(mask)


def is_mask(mask: Any) -> bool:
    return mask is None or mask.dtype == bool


register(d.attention, attention_forward, attention_backward, accepts_attention)


def heads_of(packed: np.ndarray, heads: int) -> np.ndarray:
    """Queries, keys and values as views: (B, L, 3·C) -> (3, B, h, L, C/h)."""
    batch, length, width = packed.shape
    return packed.reshape(batch, length, 3, heads, width // (3 * heads)).transpose(2, 0, 3, 1, 4)


def joined(x: np.ndarray, heads: int) -> np.ndarray:
    """One of them as a view: (B, L, C) -> (B, h, L, C/h)."""
    batch, length, width = x.shape
    return x.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)


def packed_forward(packed, mask, *, heads, causal, scale, dropout_p, dropout_key, start):
    batch, length, width = packed.shape
    out = np.empty((batch, length, width // 3), packed.dtype)
    dropout = (dropout_p, dropout_key, start)
    return out, attend(*heads_of(packed, heads), mask, joined(out, heads), causal, scale, dropout)


def packed_backward(g, logs, needs, packed, mask, *, heads, causal, scale, dropout_p, dropout_key, start):
    out = np.empty(packed.shape, packed.dtype)
    grads, dropout = heads_of(out, heads), (dropout_p, dropout_key, start)
    attend_backward(joined(g, heads), logs, *heads_of(packed, heads), mask, grads, causal, scale, dropout)
    return out, None


def accepts_packed(packed, mask, **attributes):
    return packed.size > 0 and are_floating(packed) and is_mask(mask)


register(d.packed_attention, packed_forward, packed_backward, accepts_packed)
