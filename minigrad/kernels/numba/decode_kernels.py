"""What a transformer does with one new position between its products: norms, activations, and attention to a cache.

Each is a job of thread_pool.py with a part for every row of the batch, attention with one for every row and key-value head. By
hand: a position has too few numbers for a call of its own, so that jobs follow each other without Python.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ...maths.addresses import at
from ...maths.float32 import normal_cdf, sigmoid, tanh
from .atomics import WORD, look
from .attention import _exponentials, _highest, _scale
from .compiling import kernel
from .dequantize import CODES, ITEM, STEP
from .packed import HEIGHT, LINE
from .packed_tiles import tile
from .thread_pool import OWN, address_of, number, word
from .vectors import LANES, load, prefetch, splat, store

F = np.float32
INF = F(np.inf)
FLOATS = CODES.index("f32")
AT_ONCE = 64  # keys whose scores are computed for all heads that share them, while they are near

# The words of each job. Addresses of 0 stand for what is not there; a distance is in bytes.
(N_X, N_X_ROW, N_OUT, N_OUT_ROW, N_WEIGHT, N_BIAS, N_SIZE, N_IS_RMS, N_EPS, N_ADDS) = range(OWN, OWN + 10)
(A_X, A_X_ROW, A_OUT, A_OUT_ROW, A_SIZE) = range(OWN, OWN + 5)
(S_X, S_X_ROW, S_GATES, S_GATES_ROW, S_STATE, S_STATE_ROW, S_OUT, S_OUT_ROW, S_SIZE, S_ADDS) = range(OWN, OWN + 10)
KEYS, VALUES = OWN + 8, OWN + 12  # of each the address, and distances of batch rows, of heads and of positions
(P_X, P_X_ROW, P_HEADS, P_SHARED, P_WIDTH, P_PAST, P_TURNS, P_TURNS_ROW) = range(OWN, OWN + 8)
(P_TURNED, P_IS_HALF, P_Q_NORM, P_K_NORM, P_Q_EPS, P_K_EPS) = range(OWN + 16, OWN + 22)
(Q_X, Q_X_ROW, Q_OUT, Q_OUT_ROW, Q_HEADS, Q_SHARED, Q_WIDTH, Q_COUNT) = range(OWN, OWN + 8)
(Q_SCALE, Q_WINDOW, Q_MASK, Q_MASK_BATCH, Q_MASK_KEY) = range(OWN + 16, OWN + 21)
SLOTS = OWN + 22  # the address, and the distances of batch rows and of positions, which is 0 where all have one slot

ACTIVATIONS = ("gelu", "gelu_tanh", "silu", "tanh", "relu")
_SLOPE = F(2 * np.sqrt(2 / np.pi))
_CUBE = F(0.044715)


@kernel
def _normalized(x, size, weight, bias, is_rms, eps, out, adds):
    """A layer or RMS norm of one row, written or added to `out`, which may be the row itself."""
    mean, squares = F(0), F(0)
    if not is_rms:
        for i in range(size):
            mean += at(x, F)[i]
        mean /= F(size)
    for i in range(size):
        squares += (at(x, F)[i] - mean) * (at(x, F)[i] - mean)
    factor = F(1) / np.sqrt(squares / F(size) + eps)
    for i in range(size):
        value = (at(x, F)[i] - mean) * factor
        if weight:
            value *= at(weight, F)[i]
        if bias:
            value += at(bias, F)[i]
        at(out, F)[i] = value + (at(out, F)[i] if adds else F(0))


@kernel
def norm_part(job, part, room):
    """Normalise one row."""
    x, out = word(job, N_X) + part * word(job, N_X_ROW), word(job, N_OUT) + part * word(job, N_OUT_ROW)
    weight, bias, is_rms = word(job, N_WEIGHT), word(job, N_BIAS), word(job, N_IS_RMS)
    _normalized(x, word(job, N_SIZE), weight, bias, is_rms, number(job, N_EPS), out, word(job, N_ADDS))


@kernel
def _activated(x, kind):
    """The activation of a number; `kind` is its place in `ACTIVATIONS`."""
    if kind == 0:
        return x * normal_cdf(x)
    if kind == 1:
        return x * sigmoid(_SLOPE * (x + _CUBE * x * x * x))
    if kind == 2:
        return x * sigmoid(x)
    if kind == 3:
        return tanh(x)
    return x if x > 0 else (F(0) if x == x else x)


@cache
def activation_function(name: str, gated: bool) -> int:
    """The address of the function for `activation(x)`, or `activation(x[:size]) * x[size:]`, of one row."""
    kind = ACTIVATIONS.index(name)

    @kernel
    def activation_part(job, part, room):
        x, out = word(job, A_X) + part * word(job, A_X_ROW), word(job, A_OUT) + part * word(job, A_OUT_ROW)
        size = word(job, A_SIZE)
        for i in range(size):
            value = _activated(at(x, F)[i], kind)
            at(out, F)[i] = value * at(x, F)[size + i] if gated else value

    return address_of(activation_part)


@kernel
def state_part(job, part, room):
    """One step of a recurrence for one row: `state = f · state + (1 - f) · x` with `f = sigmoid(gate)`; `out` gets its ReLU."""
    adds = word(job, S_ADDS)
    x, gates = word(job, S_X) + part * word(job, S_X_ROW), word(job, S_GATES) + part * word(job, S_GATES_ROW)
    state, out = word(job, S_STATE) + part * word(job, S_STATE_ROW), word(job, S_OUT) + part * word(job, S_OUT_ROW)
    for i in range(word(job, S_SIZE)):
        f = sigmoid(at(gates, F)[i])
        value = f * at(state, F)[i] + (F(1) - f) * at(x, F)[i]
        at(state, F)[i] = value
        at(out, F)[i] = (at(out, F)[i] if adds else F(0)) + _activated(value, 4)


@kernel
def _turn(x, turns, size, is_half):
    """Rotate the first `size` numbers of a head by cosines and sines, which are those of both columns of each pair."""
    step = size // 2 if is_half else 1
    for i in range(size // 2):
        first = i if is_half else 2 * i
        a, b = at(x, F)[first], at(x, F)[first + step]
        at(x, F)[first] = a * at(turns, F)[first] + b * at(turns, F)[size + first]
        at(x, F)[first + step] = b * at(turns, F)[first + step] + a * at(turns, F)[size + first + step]


@kernel
def _copied(source, target, size):
    for i in range(size):
        at(target, F)[i] = at(source, F)[i]


@kernel
def position_part(job, part, room):
    """Normalise and rotate the queries and keys of one row, and write its keys and values behind those in the cache."""
    heads, shared, width = word(job, P_HEADS), word(job, P_SHARED), word(job, P_WIDTH)
    x, past = word(job, P_X) + part * word(job, P_X_ROW), look(word(job, P_PAST))
    turns = word(job, P_TURNS) + part * word(job, P_TURNS_ROW)
    for h in range(heads + shared):
        head = x + h * width * ITEM
        weight = word(job, P_Q_NORM) if h < heads else word(job, P_K_NORM)
        if weight:
            eps = number(job, P_Q_EPS) if h < heads else number(job, P_K_EPS)
            _normalized(head, width, weight, 0, True, eps, head, False)
        if turns:
            _turn(head, turns, word(job, P_TURNED), word(job, P_IS_HALF))
    for h in range(shared):
        source = x + (heads + h) * width * ITEM
        _copied(source, _place(job, KEYS, part, h, past), width)
        _copied(source + shared * width * ITEM, _place(job, VALUES, part, h, past), width)


@kernel
def _place(job, first, row, head, position):
    """Where the cache has a row of keys or values."""
    return word(job, first) + row * word(job, first + 1) + head * word(job, first + 2) + position * word(job, first + 3)


@kernel
def _weighed(weights, values, row, count, width, out):
    """`out = weights @ values`: (count,), (count, width) -> (width,)"""
    for c in range(0, width, LANES):
        column, a, b = values + c * ITEM, splat(F(0)), splat(F(0))
        for j in range(0, count - 1, 2):
            a = a + splat(at(weights, F)[j]) * load(column + j * row)
            b = b + splat(at(weights, F)[j + 1]) * load(column + (j + 1) * row)
        if count % 2:
            a = a + splat(at(weights, F)[count - 1]) * load(column + (count - 1) * row)
        store(a + b, out + c * ITEM)


@kernel
def _weighed_apart(weights, places, count, width, out):
    """The same for rows of values that lie at these addresses."""
    for c in range(0, width, LANES):
        total = splat(F(0))
        for j in range(count):
            total = total + splat(at(weights, F)[j]) * load(at(places, np.int64)[j] + c * ITEM)
        store(total, out + c * ITEM)


@kernel
def _slot(job, row, position):
    """In which row of the cache's memory a row of the batch has a position."""
    place = word(job, SLOTS) + row * word(job, SLOTS + 1) + position * word(job, SLOTS + 2)
    return at(place, np.int64)[0]


@kernel
def _brought_near(job, b, h, first, count, width, near, places):
    """Copy some keys to where they lie side by side, and write down the addresses of their values, which are asked for."""
    slots, slot_step = word(job, SLOTS) + b * word(job, SLOTS + 1), word(job, SLOTS + 2)
    keys, key_row, key_step = word(job, KEYS) + h * word(job, KEYS + 2), word(job, KEYS + 1), word(job, KEYS + 3)
    values, row, step = word(job, VALUES) + h * word(job, VALUES + 2), word(job, VALUES + 1), word(job, VALUES + 3)
    for j in range(count):
        slot = at(slots + (first + j) * slot_step, np.int64)[0]
        key = keys + slot * key_row + (first + j) * key_step
        for c in range(0, width, LANES):
            store(load(key + c * ITEM), near + (j * width + c) * ITEM)
        place = values + slot * row + (first + j) * step
        for line in range(place, place + width * ITEM, LINE):
            prefetch(line)
        at(places, np.int64)[j] = place


@kernel
def attention_part(job, part, room):
    """The heads of one row that share a key-value head look at the cache: softmax(scale · q @ keysᵀ) @ values."""
    shared, width = word(job, Q_SHARED), word(job, Q_WIDTH)
    row, group, b, h = word(job, KEYS + 3), word(job, Q_HEADS) // shared, part // shared, part % shared
    last = look(word(job, Q_COUNT))
    first = max(last - word(job, Q_WINDOW), 0) if word(job, Q_WINDOW) else 0
    is_apart = word(job, SLOTS) != 0 and word(job, SLOTS + 2) != 0
    own = _slot(job, b, 0) if word(job, SLOTS) else b
    count, keys = last - first, _place(job, KEYS, own, h, first)
    space, wide = (count + LANES - 1) // LANES * LANES, (width + STEP - 1) // STEP * STEP
    queries, added = room, room + group * wide * ITEM
    scores = added + space * ITEM
    near = scores + group * space * ITEM
    places = near + AT_ONCE * width * ITEM
    for g in range(group):
        query = word(job, Q_X) + b * word(job, Q_X_ROW) + (h * group + g) * width * ITEM
        line = queries + g * wide * ITEM
        store(splat(F(0)), line + (wide - LANES) * ITEM)
        for c in range(0, width, LANES):
            store(load(query + c * ITEM) * splat(number(job, Q_SCALE)), line + c * ITEM)
    for begin in range(0, count, AT_ONCE):
        end = min(begin + AT_ONCE, count)
        some, some_row = keys + begin * row, row
        if is_apart:
            _brought_near(job, b, h, first + begin, end - begin, width, near, places + begin * WORD)
            some, some_row = near, width * ITEM
        for g in range(group):
            for j in range(begin, end, HEIGHT):
                tile(
                    FLOATS, HEIGHT, 1, some + (j - begin) * some_row, some_row, end - j, queries + g * wide * ITEM, 0, 1,
                    scores + (g * space + j) * ITEM, 0, width, width // STEP,
                )  # fmt: skip
    mask = word(job, Q_MASK)
    if mask:
        mask += b * word(job, Q_MASK_BATCH)
        for j in range(count):
            at(added, F)[j] = F(0) if at(mask + (first + j) * word(job, Q_MASK_KEY), np.uint8)[0] else -INF
    for g in range(group):
        line = scores + g * space * ITEM
        top = _highest(line, count, added if mask else 0)
        total = _exponentials(line, count, top)
        _scale(line, count, F(1) / total if total != 0 else F(0))
        out = word(job, Q_OUT) + b * word(job, Q_OUT_ROW) + (h * group + g) * width * ITEM
        if is_apart:
            _weighed_apart(line, places, count, width, out)
        else:
            _weighed(line, _place(job, VALUES, own, h, first), word(job, VALUES + 3), count, width, out)


def attention_room(positions: int, group: int, width: int) -> int:
    """How many numbers a part of attention to so many positions needs room for."""
    space = positions + LANES
    return group * (width + STEP) + (group + 1) * space + AT_ONCE * width + 2 * space
