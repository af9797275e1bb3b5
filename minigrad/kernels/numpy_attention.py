"""Attention on NumPy's arrays: a few heads, or queries of one head, at a time, whose scores fit into the cache and are not kept.

For the backward only the logarithm of each row's sum is kept, (B, h, L, 1); the weights are computed again from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import GradientError
from ..random import Strided
from . import definitions as d
from .numpy import are_floating
from .numpy_rows import is_mask, softmax_in_place
from .registry import Kernel

SCORES = 131_072  # elements that are worked on at a time
Place = tuple[slice, slice, slice]


def _chunks(query: np.ndarray, key: np.ndarray, causal: bool) -> Iterator[tuple[Place, int]]:
    """Which examples, heads and queries to work on at a time, so that there are few enough scores, and how many keys these see.

    They are parts of the batch, of the heads of one example, or of the queries of one head: neighbours in any case. Heads are
    all that share a key, or one of them.
    """
    batch, heads, length, _ = query.shape
    size, group = key.shape[2], heads // key.shape[1]
    some = max(SCORES // size, 1)
    step = some // length
    for b in _slices(batch, some // (length * heads)):
        for h in _slices(heads, step - step % group if step >= group else 1):
            for q in _slices(length, some):
                yield (b, h, q), min(q.stop, size) if causal else size


def _slices(count: int, step: int) -> list[slice]:
    step = max(step, 1)
    return [slice(i, min(i + step, count)) for i in range(0, count, step)]


def _keys_of(here: Place, seen: int, query: np.ndarray, key: np.ndarray) -> Place:
    """Which keys the queries of a chunk see; several heads of the query may share one of the key."""
    b, h, _ = here
    group = query.shape[1] // key.shape[1]
    return b, slice(h.start // group, (h.stop - 1) // group + 1), slice(seen)


def _together(x: np.ndarray, heads: int) -> np.ndarray:
    """The rows of all heads that share a key: (b, H, L, E) -> (b, h, H / h · L, E)."""
    return x if x.shape[1] == heads else x.reshape(x.shape[0], heads, -1, x.shape[-1])


def _scores(query: np.ndarray, key: np.ndarray, scale: float, softcap: float | None) -> np.ndarray:
    scores = _together(query, key.shape[1]) @ key.swapaxes(-1, -2)  # (b, h, L, E) @ (b, h, E, S) -> (b, h, L, S)
    scores *= scale if softcap is None else scale / softcap
    if softcap is not None:
        np.tanh(scores, out=scores)
        scores *= softcap
    return scores.reshape(*query.shape[:3], -1)


def _forbid(scores: np.ndarray, mask: Any, causal: bool, first: int) -> None:
    """Let the scores of queries from number `first` on be -inf where they may not attend."""
    if mask is not None:
        np.copyto(scores, -math.inf, where=~mask if mask.dtype == bool else mask == -math.inf)
        scores += 0 if mask.dtype == bool else mask.astype(scores.dtype, copy=False)
    if causal:
        np.copyto(scores, -math.inf, where=~np.tri(scores.shape[-2], scores.shape[-1], first, dtype=bool))


def _factors(here: Place, seen: int, shape: tuple[int, ...], dropout: tuple[float, int, Any], dtype: Any) -> np.ndarray:
    """The factors of dropout for a chunk; `shape` is that of all scores, which are numbered through."""
    (b, h, q), (_, heads, length, size) = here, shape
    p, key, start = dropout
    skip = ((b.start * heads + h.start) * length + q.start) * size
    begin = start._replace(skip=skip) if isinstance(start, Strided) else start + skip
    chunk = np.empty((*[part.stop - part.start for part in here], size), dtype)
    return d._dropout_factors.forward(np, chunk, p=p, key=key, start=begin)[..., :seen]


@np.errstate(all="ignore")
def attend(
    query: Any, key: Any, value: Any, mask: Any, out: Any, causal: bool, scale: float, softcap: Any, dropout: Any
) -> Any:
    """Fill `out` (B, h, L, V), which may be a view; returns the logarithms of the rows' sums."""
    shape = (*query.shape[:3], key.shape[2])
    logs, mask = np.empty((*shape[:3], 1), query.dtype), None if mask is None else np.broadcast_to(mask, shape)
    for here, seen in _chunks(query, key, causal):
        there = _keys_of(here, seen, query, key)
        weights = _scores(query[here], key[there], scale, softcap)
        _forbid(weights, None if mask is None else mask[here][..., :seen], causal, here[2].start)
        logs[here] = softmax_in_place(weights, masked=causal or mask is not None)
        if dropout[0]:
            weights *= _factors(here, seen, shape, dropout, query.dtype)
        _multiply(weights, value[there], out[here])
    return logs


@np.errstate(all="ignore")
def attend_backward(
    g: Any, logs: Any, query: Any, key: Any, value: Any, mask: Any, grads: Any, causal: bool, scale: float,
    softcap: Any, dropout: Any,
) -> None:  # fmt: skip
    """Fill the gradients of query, key and value, which may be views."""
    g_query, g_key, g_value = grads
    shape, group = (*query.shape[:3], key.shape[2]), query.shape[1] // key.shape[1]
    mask = None if mask is None else np.broadcast_to(mask, shape)
    for here, seen in _chunks(query, key, causal):
        there, first = _keys_of(here, seen, query, key), here[2].start
        adds = first > 0 or here[1].start % group > 0  # to what other queries have given to these keys
        weights = _scores(query[here], key[there], scale, softcap)
        bent = None if softcap is None else 1 - (weights / softcap) ** 2
        _forbid(weights, None if mask is None else mask[here][..., :seen], causal, first)
        weights -= logs[here]
        np.exp(weights, out=weights)
        slopes = _together(g[here], there[1].stop - there[1].start) @ value[there].swapaxes(-1, -2)
        slopes = slopes.reshape(weights.shape)  # (b, h, L, V) @ (b, h, V, S) -> (b, h, L, S)
        factors = _factors(here, seen, shape, dropout, query.dtype) if dropout[0] else None
        if factors is not None:
            slopes *= factors
        _gather(weights if factors is None else weights * factors, g[here], g_value[there[:2]], adds)
        slopes -= np.einsum("bhls,bhls->bhl", slopes, weights)[..., None]
        slopes *= weights
        slopes *= scale if bent is None else scale * bent
        _multiply(slopes, key[there], g_query[here])
        _gather(slopes, query[here], g_key[there[:2]], adds)


def _multiply(weights: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    """`out = weights @ rows`: (b, H, L, S) @ (b, h, S, E) -> (b, H, L, E)."""
    if weights.shape[1] == rows.shape[1]:
        np.matmul(weights, rows, out=out)
    else:
        out[...] = (_together(weights, rows.shape[1]) @ rows).reshape(out.shape)


def _gather(weights: np.ndarray, rows: np.ndarray, out: np.ndarray, adds: bool) -> None:
    """`out = weightsᵀ @ rows`, or `+=`, for the keys that are seen: (b, H, S, L) @ (b, H, L, E) -> (b, h, S, E)."""
    seen, turned = weights.shape[-1], _together(weights, out.shape[1]).swapaxes(-1, -2)
    rows = _together(rows, out.shape[1])
    if adds:
        out[..., :seen, :] += turned @ rows
    else:
        np.matmul(turned, rows, out=out[..., :seen, :])
        out[..., seen:, :] = 0


def accepts_attention(query, key, value, mask, **attributes):
    """Four axes each, nothing broadcast but the mask, a whole number of query heads for each of key and value, and nothing empty."""
    alike = (
        query.ndim == key.ndim == value.ndim == 4
        and query.shape[0] == key.shape[0]
        and key.shape[:2] == value.shape[:2]
    )
    whole = alike and min(query.size, key.size, value.size) > 0 and query.shape[1] % key.shape[1] == 0
    whole = whole and are_floating(query, key, value)
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


def _drawn(dropout_p: float, dropout_key: int, start: Any) -> tuple[float, int, Any]:
    """What decides which weights are dropped."""
    return dropout_p, dropout_key, start


def register_attention(
    name: str, attend: Any, attend_backward: Any, accepts: Any = lambda x, softcap, start: True
) -> None:
    """Kernels of both attentions from functions that fill views; `accepts` says more of the first array, if there is more to say."""

    def forward(query, key, value, mask, *, causal, scale, softcap, **dropout):
        out = np.empty((*query.shape[:3], value.shape[3]), query.dtype)
        return out, attend(query, key, value, mask, out, causal, scale, softcap, _drawn(**dropout))

    def backward(g, logs, needs, query, key, value, mask, *, causal, scale, softcap, **dropout):
        check_constant(needs[3])
        grads = [np.empty(x.shape, x.dtype) for x in (query, key, value)]
        attend_backward(g, logs, query, key, value, mask, grads, causal, scale, softcap, _drawn(**dropout))
        return *grads, None

    def packed_forward(packed, mask, *, heads, causal, scale, softcap, **dropout):
        batch, length, width = packed.shape
        out = np.empty((batch, length, width // 3), packed.dtype)
        parts = heads_of(packed, heads)
        return out, attend(*parts, mask, joined(out, heads), causal, scale, softcap, _drawn(**dropout))

    def packed_backward(g, logs, needs, packed, mask, *, heads, causal, scale, softcap, **dropout):
        check_constant(needs[1])
        out = np.empty(packed.shape, packed.dtype)
        grads, parts = heads_of(out, heads), heads_of(packed, heads)
        attend_backward(joined(g, heads), logs, *parts, mask, grads, causal, scale, softcap, _drawn(**dropout))
        return out, None

    def also(otherwise: Any) -> Any:
        return lambda x, *rest, softcap, start, **attrs: (
            accepts(x, softcap, start) and otherwise(x, *rest, start=start, **attrs)
        )

    d.attention.kernels[name] = Kernel(forward, backward, also(accepts_attention))
    d.packed_attention.kernels[name] = Kernel(packed_forward, packed_backward, also(accepts_packed))


register_attention("numpy", attend, attend_backward)
