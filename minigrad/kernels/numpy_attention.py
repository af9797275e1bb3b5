"""Attention on NumPy's arrays: a few heads, or queries of one head, at a time, whose scores fit into the cache and are not kept.

For the backward only the logarithm of each row's sum is kept, (B, h, L, 1); the weights are computed again from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import GradientError
from . import definitions as d
from .numpy import are_floating
from .numpy_rows import is_mask, softmax_in_place
from .registry import Kernel

SCORES = 131_072  # elements that are worked on at a time
Place = tuple[slice, slice, slice]


def _chunks(query: np.ndarray, key: np.ndarray, causal: bool) -> Iterator[tuple[Place, int]]:
    """Which examples, heads and queries to work on at a time, so that there are few enough scores, and how many keys these see.

    They are parts of the batch, of the heads of one example, or of the queries of one head: neighbours in any case.
    """
    batch, heads, length, _ = query.shape
    size = key.shape[2]
    some = max(SCORES // size, 1)
    for b in _slices(batch, some // (length * heads)):
        for h in _slices(heads, some // length):
            for q in _slices(length, some):
                yield (b, h, q), min(q.stop, size) if causal else size


def _slices(count: int, step: int) -> list[slice]:
    step = max(step, 1)
    return [slice(i, min(i + step, count)) for i in range(0, count, step)]


def _scores(query: np.ndarray, key: np.ndarray, scale: float) -> np.ndarray:
    scores = query @ key.swapaxes(-1, -2)  # (b, h, L, E) @ (b, h, E, S) -> (b, h, L, S)
    scores *= scale
    return scores


def _forbid(scores: np.ndarray, mask: Any, causal: bool, first: int) -> None:
    """Let the scores of queries from number `first` on be -inf where they may not attend."""
    if mask is not None:
        np.copyto(scores, -math.inf, where=~mask if mask.dtype == bool else mask == -math.inf)
        scores += 0 if mask.dtype == bool else mask.astype(scores.dtype, copy=False)
    if causal:
        np.copyto(scores, -math.inf, where=~np.tri(scores.shape[-2], scores.shape[-1], first, dtype=bool))


def _factors(here: Place, seen: int, shape: tuple[int, ...], dropout: tuple[float, int, int], dtype: Any) -> np.ndarray:
    """The factors of dropout for a chunk; `shape` is that of all scores, which are numbered through."""
    (b, h, q), (_, heads, length, size) = here, shape
    p, key, start = dropout
    begin = start + ((b.start * heads + h.start) * length + q.start) * size
    chunk = np.empty((*[part.stop - part.start for part in here], size), dtype)
    return d._dropout_factors.forward(np, chunk, p=p, key=key, start=begin)[..., :seen]


@np.errstate(all="ignore")
def attend(query: Any, key: Any, value: Any, mask: Any, out: Any, causal: bool, scale: float, dropout: Any) -> Any:
    """Fill `out` (B, h, L, V), which may be a view; returns the logarithms of the rows' sums."""
    shape = (*query.shape[:3], key.shape[2])
    logs, mask = np.empty((*shape[:3], 1), query.dtype), None if mask is None else np.broadcast_to(mask, shape)
    for here, seen in _chunks(query, key, causal):
        there = (*here[:2], slice(seen))
        weights = _scores(query[here], key[there], scale)
        _forbid(weights, None if mask is None else mask[here][..., :seen], causal, here[2].start)
        logs[here] = softmax_in_place(weights, masked=causal or mask is not None)
        if dropout[0]:
            weights *= _factors(here, seen, shape, dropout, query.dtype)
        np.matmul(weights, value[there], out=out[here])  # (b, h, L, S) @ (b, h, S, V)
    return logs


@np.errstate(all="ignore")
def attend_backward(
    g: Any, logs: Any, query: Any, key: Any, value: Any, mask: Any, grads: Any, causal: bool, scale: float, dropout: Any
) -> None:
    """Fill the gradients of query, key and value, which may be views."""
    g_query, g_key, g_value = grads
    shape = (*query.shape[:3], key.shape[2])
    mask = None if mask is None else np.broadcast_to(mask, shape)
    for here, seen in _chunks(query, key, causal):
        there, first = (*here[:2], slice(seen)), here[2].start
        weights = _scores(query[here], key[there], scale)
        _forbid(weights, None if mask is None else mask[here][..., :seen], causal, first)
        weights -= logs[here]
        np.exp(weights, out=weights)
        slopes = g[here] @ value[there].swapaxes(-1, -2)  # (b, h, L, V) @ (b, h, V, S) -> (b, h, L, S)
        if dropout[0]:
            factors = _factors(here, seen, shape, dropout, query.dtype)
            slopes *= factors
            _gather(weights * factors, g[here], g_value[here[:2]], first)
        else:
            _gather(weights, g[here], g_value[here[:2]], first)
        slopes -= np.einsum("bhls,bhls->bhl", slopes, weights)[..., None]
        slopes *= weights
        slopes *= scale
        np.matmul(slopes, key[there], out=g_query[here])  # (b, h, L, S) @ (b, h, S, E)
        _gather(slopes, query[here], g_key[here[:2]], first)


def _gather(weights: np.ndarray, rows: np.ndarray, out: np.ndarray, first: int) -> None:
    """`out = weightsᵀ @ rows` for the keys that are seen, `+=` after the first queries: (b, h, S, L) @ (b, h, L, E)."""
    seen, turned = weights.shape[-1], weights.swapaxes(-1, -2)
    if first:
        out[..., :seen, :] += turned @ rows
    else:
        np.matmul(turned, rows, out=out[..., :seen, :])
        out[..., seen:, :] = 0


def accepts_attention(query, key, value, mask, **attributes):
    """Four axes each, nothing broadcast but the mask, and nothing empty."""
    alike = query.ndim == key.ndim == value.ndim == 4 and query.shape[:2] == key.shape[:2] == value.shape[:2]
    whole = alike and min(query.size, key.size, value.size) > 0 and are_floating(query, key, value)
    return whole and (mask is None or is_mask(mask, (*query.shape[:3], key.shape[2])))


def accepts_packed(packed, mask, *, heads, **attributes):
    batch, length, _ = packed.shape
    fits = mask is None or is_mask(mask, (batch, heads, length, length))
    return fits and packed.size > 0 and are_floating(packed)


def heads_of(packed: np.ndarray, heads: int) -> np.ndarray:
    """Queries, keys and values as views: (B, L, 3·C) -> (3, B, h, L, C/h)."""
    batch, length, width = packed.shape
    return packed.reshape(batch, length, 3, heads, width // (3 * heads)).transpose(2, 0, 3, 1, 4)


def joined(x: np.ndarray, heads: int) -> np.ndarray:
    """One of them as a view: (B, L, C) -> (B, h, L, C/h)."""
    batch, length, width = x.shape
    return x.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)


def check_constant(needs_gradient: bool) -> None:
    if needs_gradient:
        raise GradientError("attention: its kernels give a mask no gradient", fix="use scaled_dot_product_attention")


def register_attention(name: str, attend: Any, attend_backward: Any, accepts: Any = lambda x: True) -> None:
    """Kernels of both attentions from functions that fill views; `accepts` says more of the first array, if there is more to say."""

    def forward(query, key, value, mask, *, causal, scale, dropout_p, dropout_key, start):
        out = np.empty((*query.shape[:3], value.shape[3]), query.dtype)
        return out, attend(query, key, value, mask, out, causal, scale, (dropout_p, dropout_key, start))

    def backward(g, logs, needs, query, key, value, mask, *, causal, scale, dropout_p, dropout_key, start):
        check_constant(needs[3])
        grads = [np.empty(x.shape, x.dtype) for x in (query, key, value)]
        attend_backward(g, logs, query, key, value, mask, grads, causal, scale, (dropout_p, dropout_key, start))
        return *grads, None

    def packed_forward(packed, mask, *, heads, causal, scale, dropout_p, dropout_key, start):
        batch, length, width = packed.shape
        out = np.empty((batch, length, width // 3), packed.dtype)
        dropout = (dropout_p, dropout_key, start)
        return out, attend(*heads_of(packed, heads), mask, joined(out, heads), causal, scale, dropout)

    def packed_backward(g, logs, needs, packed, mask, *, heads, causal, scale, dropout_p, dropout_key, start):
        check_constant(needs[1])
        out = np.empty(packed.shape, packed.dtype)
        grads, dropout = heads_of(out, heads), (dropout_p, dropout_key, start)
        attend_backward(joined(g, heads), logs, *heads_of(packed, heads), mask, grads, causal, scale, dropout)
        return out, None

    def also(otherwise: Any) -> Any:
        return lambda x, *rest, **attrs: accepts(x) and otherwise(x, *rest, **attrs)

    d.attention.kernels[name] = Kernel(forward, backward, also(accepts_attention))
    d.packed_attention.kernels[name] = Kernel(packed_forward, packed_backward, also(accepts_packed))


register_attention("numpy", attend, attend_backward)
