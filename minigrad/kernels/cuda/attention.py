"""Attention on CuPy's arrays: cuBLAS multiplies, a kernel does what lies between the products.

Scores exist for a few heads at a time and are not kept. For the backward only the logarithm of each row's sum is kept,
(B·h, L); the weights are computed again from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ...engine.backend import Array, backend_of
from .. import definitions as d
from ..numpy_attention import accepts_attention, accepts_packed, heads_of, joined
from .launching import dropout_arguments, each_row, register

Gradients = Sequence[Array | None]
SCORES = 2**25  # that are worked on at a time: 128 MB of float32


class Work(NamedTuple):
    """One call: the mask, (B·h, L, S) or None, and the numbers that the kernels want."""

    mask: Array | None
    causal: bool
    scale: float
    dropout_p: float
    dropout_key: int
    start: int

    def settings(self, first: int, scores: Array) -> tuple[Any, ...]:
        """Behind the arrays, for scores (n, L, S) that begin with head number `first`."""
        length, size = scores.shape[1:]
        begin = self.start + first * length * size
        dropout = dropout_arguments(self.dropout_p, self.dropout_key, begin)
        return float(self.scale), bool(self.causal), self.dropout_p > 0, *dropout, length

    def part(self, b: slice) -> Array | None:
        return None if self.mask is None else self.mask[b]


def _flat(x: Array) -> Array:
    """(B, h, L, E) -> (B·h, L, E), contiguous"""
    return backend_of(x).xp.ascontiguousarray(x).reshape(-1, *x.shape[2:])


def _flat_mask(mask: Array | None, query: Array, key: Array) -> Array | None:
    if mask is None:
        return None
    xp, shape = backend_of(mask).xp, (*query.shape[:3], key.shape[2])
    return _flat(xp.broadcast_to(mask, shape))


def _chunks(query: Array, key: Array) -> Iterator[slice]:
    """As many heads at a time as have few enough scores: query (B·h, L, E), key (B·h, S, E)."""
    count = len(query)
    step = max(SCORES // (query.shape[1] * key.shape[1]), 1)
    return (slice(i, min(i + step, count)) for i in range(0, count, step))


def _scores(query: Array, key: Array) -> Array:
    """(n, L, E) @ (n, E, S) -> (n, L, S)"""
    return backend_of(query).xp.ascontiguousarray(query @ key.swapaxes(-1, -2))


def _rows(scores: Array) -> tuple[int, int]:
    return scores.shape[0] * scores.shape[1], scores.shape[2]


def attend(query: Array, key: Array, value: Array, work: Work) -> tuple[Array, Array]:
    """(n, L, E), (n, S, E), (n, S, V) -> (n, L, V), and the logarithms of the rows' sums."""
    xp = backend_of(query).xp
    out = xp.empty((*query.shape[:2], value.shape[2]), query.dtype)
    logs = xp.empty(query.shape[:2], query.dtype)
    for b in _chunks(query, key):
        scores = _scores(query[b], key[b])
        each_row("attention_forward", _rows(scores), scores, work.part(b), logs[b], *work.settings(b.start, scores))
        out[b] = scores @ value[b]  # (n, L, S) @ (n, S, V)
    return out, logs


def attend_backward(g: Array, logs: Array, query: Array, key: Array, value: Array, work: Work) -> list[Array]:
    """The gradients of query, key and value, each as the array itself."""
    xp = backend_of(query).xp
    grads = [xp.empty(x.shape, x.dtype) for x in (query, key, value)]
    for b in _chunks(query, key):
        weights = _scores(query[b], key[b])
        slopes = _scores(g[b], value[b])  # (n, L, V) @ (n, V, S) -> (n, L, S)
        settings = work.settings(b.start, weights)
        each_row("attention_backward", _rows(weights), weights, slopes, work.part(b), logs[b], *settings)
        grads[0][b] = slopes @ key[b]  # (n, L, S) @ (n, S, E)
        grads[1][b] = slopes.swapaxes(-1, -2) @ query[b]  # (n, S, L) @ (n, L, E)
        grads[2][b] = weights.swapaxes(-1, -2) @ g[b]  # (n, S, L) @ (n, L, V)
    return grads


def attention_forward(query: Array, key: Array, value: Array, mask: Array, **attributes: Any) -> tuple[Array, Array]:
    work = Work(_flat_mask(mask, query, key), **attributes)
    out, logs = attend(_flat(query), _flat(key), _flat(value), work)
    return out.reshape(*query.shape[:3], value.shape[3]), logs


def attention_backward(
    g: Array, logs: Array, needs: Sequence[bool], query: Array, key: Array, value: Array, mask: Array, **attributes: Any
) -> Gradients:
    work = Work(_flat_mask(mask, query, key), **attributes)
    grads = attend_backward(_flat(g), logs, _flat(query), _flat(key), _flat(value), work)
    return *[x.reshape(like.shape) for x, like in zip(grads, (query, key, value))], None


def packed_forward(packed: Array, mask: Array, *, heads: int, **attributes: Any) -> tuple[Array, Array]:
    out = backend_of(packed).xp.empty((*packed.shape[:2], packed.shape[2] // 3), packed.dtype)
    query, key, value = heads_of(packed, heads)
    apart, logs = attention_forward(query, key, value, mask, **attributes)
    joined(out, heads)[...] = apart  # (B, h, L, C/h) -> (B, L, C)
    return out, logs


def packed_backward(
    g: Array, logs: Array, needs: Sequence[bool], packed: Array, mask: Array, *, heads: int, **attributes: Any
) -> Gradients:
    out = backend_of(packed).xp.empty(packed.shape, packed.dtype)
    query, key, value = heads_of(packed, heads)
    grads = attention_backward(joined(g, heads), logs, needs, query, key, value, mask, **attributes)
    for part, grad in zip(heads_of(out, heads), grads):
        part[...] = grad
    return out, None


register(d.attention, attention_forward, attention_backward, accepts_attention)
register(d.packed_attention, packed_forward, packed_backward, accepts_packed)
