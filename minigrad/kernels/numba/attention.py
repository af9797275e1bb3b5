"""Attention, head by head and a few queries at a time, whose scores stay in the cache and are not kept.

For the backward only the logarithm of each row's sum is kept, (B, h, L, 1); the weights are computed again from it. With
`causal`, the half of every product that lies in the future is left out. By hand: the compiler fuses loops, not products with
what lies between them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...maths.addresses import at
from ...maths.float32 import hashed, log
from ...random import Strided
from ..numpy_attention import register_attention
from .compiling import kernel
from .tiles import COLUMNS, ITEM, PANEL_ROW, ROWS, pack, pack_transposed, tile
from .vectors import LANES, exp, larger, largest, load, masked, splat, store, total, up_to

F = np.float32
SCORES = 32_768  # elements that are worked on at a time


def _dropout(p: float, key: int, start: int) -> tuple[Any, ...]:
    """Whether there is any, the first element's number, the halves of the key, the least hash that is kept, and the factor then."""
    threshold = min(int(p * 2**32), 2**32 - 1)
    words = [np.uint32(word & 0xFFFFFFFF) for word in (start, key, key >> 32, threshold)]
    return p > 0, *words, np.float32(1 / (1 - p) if p < 1 else 0)


INF = F(np.inf)
NOTHING = (0, 0, 0, 0, 0, 0)  # the place of a mask that was left out


@kernel
def _seen(row, size, causal):
    """How many keys, beginning with the first, the tile of queries that `row` is in can see."""
    return min(row // ROWS * ROWS + ROWS, size) if causal else size


@kernel
def _scores(left, left_row, first, last, panels, depth, size, causal, out):
    """`out = left[first:last] @ panels`, as far as seen: (L, depth) @ (⌈S / 16⌉, depth, 16) -> (last - first, S)."""
    result, result_row = out.ctypes.data, out.shape[1] * ITEM
    for j in range(0, _seen(last - 1, size, causal), COLUMNS):
        begin = max(first, j) if causal else first
        for i in range(begin, last, ROWS):
            target = result + (i - first) * result_row + j * ITEM
            right = panels + j * depth * ITEM
            tile(left + i * left_row, left_row, ITEM, right, target, result_row, last - i, depth, False)


@kernel
def _weigh(weights, first, last, panels, columns, size, causal, out, out_row):
    """`out[first:last] = weights @ panels`: (last - first, S) @ (columns / 16, S, 16) -> (L, columns)."""
    left, left_row = weights.ctypes.data, weights.shape[1] * ITEM
    for j in range(0, columns, COLUMNS):
        for i in range(first, last, ROWS):
            seen = _seen(i, size, causal)
            target = out + i * out_row + j * ITEM
            source = left + (i - first) * left_row
            tile(source, left_row, ITEM, panels + j * size * ITEM, target, out_row, last - i, seen, False)


@kernel
def _gather(weights, first, last, panels, columns, length, size, causal, out, out_row, adds):
    """`out = weights.T @ panels[:, first:last]`, or `+=`: (S, last - first) @ (columns / 16, L, 16) -> (S, columns)."""
    left, left_row = weights.ctypes.data, weights.shape[1] * ITEM
    for j in range(0, columns, COLUMNS):
        for i in range(0, size if first == 0 else _seen(last - 1, size, causal), ROWS):
            begin = max(first, i) if causal else first
            right = panels + j * length * ITEM + begin * PANEL_ROW
            source = left + (begin - first) * left_row + i * ITEM
            target = out + i * out_row + j * ITEM
            tile(source, ITEM, left_row, right, target, out_row, size - i, last - begin, adds)


@kernel
def _permitted(row, j, count, added):
    """16 scores from number `j` on, with the mask's row, if there is one; -inf where they are forbidden or beyond the end."""
    x = load(row + j * ITEM)
    if added:
        x = masked(x, load(added + j * ITEM))
    return up_to(np.int32(count - j), x, splat(-INF))


@kernel
def _highest(row, count, added):
    """The largest score that is not forbidden, or 0 if there is none; from now on the row has the mask in it."""
    top = splat(-INF)
    for j in range(0, count, LANES):
        x = _permitted(row, j, count, added)
        top = larger(x, top)
        if added:
            store(x, row + j * ITEM)
    highest = largest(top)
    return F(0) if highest == -INF else highest


@kernel
def _exponentials(row, count, top):
    """Turn the row into `exp(row - top)`; returns its sum."""
    tops, sums = splat(top), splat(F(0))
    for j in range(0, count, LANES):
        e = exp(_permitted(row, j, count, 0) - tops)
        store(e, row + j * ITEM)
        sums = sums + e
    return total(sums)


@kernel
def _scale(row, count, factor):
    factors = splat(factor)
    for j in range(0, count, LANES):
        store(load(row + j * ITEM) * factors, row + j * ITEM)


@kernel
def _weights(row, slopes, count, added, factors, logarithm):
    """Turn scores into weights; `factors` are dropout's, or 0. Returns the sum of the slopes, by weight."""
    logs, sums = splat(logarithm), splat(F(0))
    for j in range(0, count, LANES):
        weight = exp(_permitted(row, j, count, added) - logs)
        slope = up_to(np.int32(count - j), load(slopes + j * ITEM), splat(F(0)))
        if factors:
            slope = slope * load(factors + j * ITEM)
        store(weight, row + j * ITEM)
        store(slope, slopes + j * ITEM)
        sums = sums + weight * slope
    return total(sums)


@kernel
def _slopes(row, slopes, count, mean, scale):
    """Turn the gradients of weights into those of scores."""
    means, scales = splat(mean), splat(scale)
    for j in range(0, count, LANES):
        slope = load(row + j * ITEM) * (load(slopes + j * ITEM) - means) * scales
        store(slope, slopes + j * ITEM)


@kernel
def _fill_factors(factors, count, first, dropout):
    """What dropout multiplies the weights from number `first` on with; returns their address, or 0 without dropout."""
    is_on, start, low, high, least, factor = dropout
    if not is_on:
        return 0
    for j in range(count):
        number = np.uint32(start + np.uint32(first + j))
        factors[j] = factor if hashed(number, low, high) >= least else F(0)
    return factors.ctypes.data


@kernel
def _multiply(row, factors, count):
    for j in range(0, count if factors else 0, LANES):
        store(load(row + j * ITEM) * load(factors + j * ITEM), row + j * ITEM)


@kernel
def _head(x, b, h):
    return x[0] + b * x[1] + h * x[2]


@kernel
def _permit(mask, b, h, i, added, fetched):
    """The address of what is added to a query's scores, 0 or -inf for a boolean mask; 0 without one.

    Floating rows of whole vectors are read where they are, others are fetched, a row that comes again only once.
    """
    place = _head(mask, b, h) + i * mask[3]
    if mask[0] == 0 or mask[5] and mask[4] % LANES == 0:
        return place if mask[0] else 0
    if place != fetched[0]:
        fetched[0] = place
        for j in range(mask[4]):
            added[j] = at(place, F)[j] if mask[5] else F(0) if at(place, np.uint8)[j] else -INF
    return added.ctypes.data


@kernel
def _attend(query, key, value, mask, out, logs, sizes, causal, scale, dropout):
    """Fill `out` (B, h, L, V) and `logs` (B·h, L)."""
    batch, heads, group, length, size, width, value_width, step = sizes
    space = (size + COLUMNS - 1) // COLUMNS * COLUMNS  # rows of scratch end where a vector does
    keys, values = np.zeros(space * width, F), np.empty(size * value_width, F)
    weights = np.empty((step, space + COLUMNS), F)  # wider, so that rows do not fall into the same lines of the cache
    factors = np.ones(space, F)
    tops, sums = np.empty(step, F), np.empty(step, F)
    added, fetched = np.zeros(space, F), np.zeros(1, np.int64)
    for n in range(batch * heads):
        b, h = n // heads, n % heads
        if h % group == 0:  # the heads after it share these
            pack_transposed(_head(key, b, h // group), key[3], size, width, keys.ctypes.data, scale)
            pack(_head(value, b, h // group), value[3], size, value_width, values.ctypes.data)
        queries, outs = _head(query, b, h), _head(out, b, h)
        for first in range(0, length, step):
            last = min(first + step, length)
            _scores(queries, query[3], first, last, keys.ctypes.data, width, size, causal, weights)
            # Three loops and not one: a row waits for its maximum and its sum, and meanwhile the next can be computed.
            for i in range(first, last):
                row, count = weights[i - first].ctypes.data, min(i + 1, size) if causal else size
                tops[i - first] = _highest(row, count, _permit(mask, b, h, i, added, fetched))
            for i in range(first, last):
                row, count = weights[i - first].ctypes.data, min(i + 1, size) if causal else size
                sums[i - first] = _exponentials(row, count, tops[i - first])
            for i in range(first, last):
                row, count = weights[i - first].ctypes.data, min(i + 1, size) if causal else size
                _scale(row, count, F(1) / sums[i - first] if sums[i - first] != 0 else F(0))
                _multiply(row, _fill_factors(factors, count, (n * length + i) * size, dropout), count)
            for i in range(last - first):
                logs[n, first + i] = tops[i] + log(sums[i]) if sums[i] != 0 else INF
            _weigh(weights, first, last, values.ctypes.data, value_width, size, causal, outs, out[3])


@kernel
def _attend_backward(g, query, key, value, mask, grads, logs, sizes, causal, scale, dropout):
    """Fill the gradients of query, key and value."""
    batch, heads, group, length, size, width, value_width, step = sizes
    space = (size + COLUMNS - 1) // COLUMNS * COLUMNS
    turned_keys, turned_values = np.zeros(space * width, F), np.zeros(space * value_width, F)
    queries, keys, gs = np.empty(length * width, F), np.empty(size * width, F), np.empty(length * value_width, F)
    weights, slopes = np.empty((step, space + COLUMNS), F), np.empty((step, space + COLUMNS), F)
    factors, sums = np.ones(space, F), np.empty(step, F)
    added, fetched = np.zeros(space, F), np.zeros(1, np.int64)
    for n in range(batch * heads):
        b, h = n // heads, n % heads
        q, o, shared = _head(query, b, h), _head(g, b, h), h // group
        g_q, g_k, g_v = _head(grads[0], b, h), _head(grads[1], b, shared), _head(grads[2], b, shared)
        if h % group == 0:
            k = _head(key, b, shared)
            pack_transposed(k, key[3], size, width, turned_keys.ctypes.data, scale)
            pack_transposed(_head(value, b, shared), value[3], size, value_width, turned_values.ctypes.data, F(1))
            pack(k, key[3], size, width, keys.ctypes.data)
        pack(q, query[3], length, width, queries.ctypes.data)
        pack(o, g[3], length, value_width, gs.ctypes.data)
        for first in range(0, length, step):
            last = min(first + step, length)
            _scores(q, query[3], first, last, turned_keys.ctypes.data, width, size, causal, weights)
            _scores(o, g[3], first, last, turned_values.ctypes.data, value_width, size, causal, slopes)
            for i in range(first, last):
                row, slope = weights[i - first].ctypes.data, slopes[i - first].ctypes.data
                count = min(i + 1, size) if causal else size
                drops = _fill_factors(factors, count, (n * length + i) * size, dropout)
                permits = _permit(mask, b, h, i, added, fetched)
                sums[i - first] = _weights(row, slope, count, permits, drops, logs[n, i])
            for i in range(first, last):
                row, slope = weights[i - first].ctypes.data, slopes[i - first].ctypes.data
                count = min(i + 1, size) if causal else size
                _slopes(row, slope, count, sums[i - first], scale)
                _multiply(row, _fill_factors(factors, count, (n * length + i) * size, dropout), count)
            _weigh(slopes, first, last, keys.ctypes.data, width, size, causal, g_q, grads[0][3])
            adds = first > 0 or h % group > 0  # to what other queries have given to these keys
            _gather(slopes, first, last, queries.ctypes.data, width, length, size, causal, g_k, grads[1][3], adds)
            _gather(weights, first, last, gs.ctypes.data, value_width, length, size, causal, g_v, grads[2][3], adds)


def _ready(x: np.ndarray) -> np.ndarray:
    """`x`, or a copy whose rows are a whole number of vectors without gaps."""
    width = x.shape[-1]
    if width % COLUMNS == 0 and x.strides[-1] == ITEM and x.dtype == F and x.flags.aligned:
        return x
    copy = np.zeros((*x.shape[:-1], -(-width // COLUMNS) * COLUMNS), F)
    copy[..., :width] = x
    return copy


def _room(view: np.ndarray) -> np.ndarray:
    """Where results for `view` can be written: there, or in memory of their own with rows of whole vectors."""
    width = view.shape[-1]
    return view if width % COLUMNS == 0 else np.empty((*view.shape[:-1], -(-width // COLUMNS) * COLUMNS), view.dtype)


def _finish(view: np.ndarray, room: np.ndarray) -> None:
    if room is not view:
        view[...] = room[..., : view.shape[-1]]


def _place(x: np.ndarray) -> tuple[int, ...]:
    """The address of the first element, and the bytes between batches, heads and rows."""
    return x.ctypes.data, *x.strides[:3]


def _place_mask(mask: Any, shape: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
    """The mask with rows without gaps, and its place; distances are 0 along the axes that it is broadcast over."""
    if mask is None:
        return None, NOTHING
    dtype = np.dtype(bool if mask.dtype == bool else F)
    if mask.shape[-1:] != shape[-1:] or mask.strides[-1] != mask.dtype.itemsize or mask.dtype != dtype:
        mask = np.ascontiguousarray(np.broadcast_to(mask, (*mask.shape[:-1], shape[-1])), dtype)
    return mask, (*_place(np.broadcast_to(mask, shape)), shape[-1], int(dtype == F))


def _sizes(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> tuple[int, ...]:
    batch, heads, length, width = query.shape
    size = key.shape[2]
    step = max(SCORES // size, 16) // ROWS * ROWS
    return (
        batch,
        heads,
        heads // key.shape[1],
        length,
        size,
        width,
        value.shape[3],
        min(step, -(-length // ROWS) * ROWS),
    )


def attend(
    query: Any, key: Any, value: Any, mask: Any, out: Any, causal: bool, scale: float, softcap: None, dropout: Any
) -> Any:
    """Fill `out` (B, h, L, V), which may be a view; returns the logarithms of the rows' sums."""
    batch, heads, length, _ = query.shape
    mask, place = _place_mask(mask, (batch, heads, length, key.shape[2]))
    query, key, value, room = _ready(query), _ready(key), _ready(value), _room(out)
    logs = np.empty((batch * heads, length), F)
    places = _place(query), _place(key), _place(value), place, _place(room)
    _attend(*places, logs, _sizes(query, key, value), causal, F(scale), _dropout(*dropout))
    _finish(out, room)
    return logs


def attend_backward(g, logs, query, key, value, mask, grads, causal, scale, softcap, dropout):
    """Fill the gradients of query, key and value, which may be views."""
    mask, place = _place_mask(mask, (*query.shape[:3], key.shape[2]))
    g, query, key, value = _ready(g), _ready(query), _ready(key), _ready(value)
    rooms = [_room(grad) for grad in grads]
    places = _place(g), _place(query), _place(key), _place(value), place, tuple([_place(room) for room in rooms])
    _attend_backward(*places, logs, _sizes(query, key, value), causal, F(scale), _dropout(*dropout))
    for grad, room in zip(grads, rooms):
        _finish(grad, room)


# Enough queries to fill a tile: for fewer, as when text is generated, packing the keys does not pay.
register_attention(
    "numba",
    attend,
    attend_backward,
    lambda x, softcap, start: (
        x.shape[-2] >= ROWS and x.dtype == F and softcap is None and not isinstance(start, Strided)
    ),
)
