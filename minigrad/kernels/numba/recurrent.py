"""Layers of recurrent networks: a part of the batch goes through all steps at once, in one loop, forward and backward.

By hand: the compiler fuses loops, not products with what lies between them. The weights are packed once for all steps, and
no core waits for another, since a row of the batch depends on none of the others. Gradients of the weights are one product
each, at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from ...maths.addresses import at
from ...runtime.threads import thread_count
from ..numpy_recurrent import Layer, accepts_layer, kernel_of_layer, to_weights
from ..recurrent import gru, lstm, rnn
from .compiling import kernel
from .thread_pool import FUNCTION, JOB_WORDS, OWN, PARTS, address_of, pool_for, run_jobs, word
from .tiles import ITEM
from .transposed_products import transposed_products
from .vectors import BYTES, load, sigmoid, splat, store, tanh
from .whole_panels import in_whole_panels
from .wide_tiles import HEIGHT, PANEL, pack, pack_transposed, tile

F, I64 = np.float32, np.int64
DEPTH = 256  # rows of a panel that stay in the first cache
SHARED = 200_000  # multiplications of a step from which others are woken up
MOST = 1 << 20  # rows of a part
RNN, GRU, LSTM = range(3)
KINDS = {rnn: RNN, gru: GRU, lstm: LSTM}

# The words of a job: what is computed, sizes, and addresses. An address of 0 stands for what is not there.
KIND, REVERSE, STEPS, BATCH, ROWS, SIZE, WIDTH, INPUTS = range(OWN, OWN + 8)
X, X_PANELS, PANELS, GATES, BIAS, HIDDEN, CELL, LENGTHS, STATES, CELLS = range(OWN + 8, OWN + 18)
G, SLOPES, TO_X, TO_HIDDEN, TO_CELL = range(OWN + 18, OWN + 23)


@kernel
def _product(left, left_row, panels, depth, columns, out, out_row, rows, add):
    """`out = left @ panels`, or `+=`: (rows, depth) @ (columns / PANEL, depth, PANEL) -> (rows, columns)."""
    for k in range(0, depth, DEPTH):
        size = min(DEPTH, depth - k)
        for j in range(0, columns, PANEL):
            panel = panels + (j * depth + k * PANEL) * ITEM
            for i in range(0, rows, HEIGHT):
                source, target = left + i * left_row + k * ITEM, out + i * out_row + j * ITEM
                tile(source, left_row, ITEM, panel, target, out_row, rows - i, size, add or k > 0)


@kernel
def _copy(source, target, count):
    for i in range(count):
        at(target, F)[i] = at(source, F)[i]


@kernel
def _rnn_row(gates, bias, out, row):
    for j in range(0, row, BYTES):
        new = tanh(load(gates + j) + load(bias + j))
        store(new, gates + j)
        store(new, out + j)


@kernel
def _gru_row(gates, bias, before, out, row):
    for j in range(gates, gates + row, BYTES):
        b = bias + j - gates
        r = sigmoid(load(j) + load(b))
        z = sigmoid(load(j + row) + load(b + row))
        old = load(j + 3 * row) + load(b + 3 * row)
        n = tanh(load(j + 2 * row) + load(b + 2 * row) + r * old)
        store(r, j)
        store(z, j + row)
        store(n, j + 2 * row)
        store(old, j + 3 * row)
        store(n + z * (load(before + j - gates) - n), out + j - gates)


@kernel
def _lstm_row(gates, bias, before, cell, out, row):
    for j in range(gates, gates + row, BYTES):
        b = bias + j - gates
        i = sigmoid(load(j) + load(b))
        f = sigmoid(load(j + row) + load(b + row))
        g = tanh(load(j + 2 * row) + load(b + 2 * row))
        o = sigmoid(load(j + 3 * row) + load(b + 3 * row))
        c = f * load(before + j - gates) + i * g
        store(i, j)
        store(f, j + row)
        store(g, j + 2 * row)
        store(o, j + 3 * row)
        store(c, cell + j - gates)
        store(o * tanh(c), out + j - gates)


@kernel
def _before(job, step, first, start, states):
    """Where the state or cell before a step is: at the beginning, or among those computed."""
    row = word(job, SIZE) * ITEM
    previous = step + 1 if word(job, REVERSE) else step - 1
    if previous < 0 or previous == word(job, STEPS):
        return word(job, start) + first * row
    return word(job, states) + (previous * word(job, BATCH) + first) * row


@kernel
def _has_ended(job, row, step):
    lengths = word(job, LENGTHS)
    return lengths != 0 and at(lengths, I64)[row] <= step


@kernel
def _gates(job, place, rows, before, gates):
    """What comes in at a step, and what the state adds to it, before the bias and what follows."""
    size, width, inputs = word(job, SIZE), word(job, WIDTH), word(job, INPUTS)
    gates_row, state_row, panels = width * ITEM, size * ITEM, word(job, PANELS)
    is_gru = word(job, KIND) == GRU
    source, coming = word(job, X) + place * inputs * ITEM, width - size * is_gru
    _product(source, inputs * ITEM, word(job, X_PANELS), inputs, coming, gates, gates_row, rows, False)
    adding = 2 * size if is_gru else width
    _product(before, state_row, panels, size, adding, gates, gates_row, rows, True)
    if is_gru:
        panels += 2 * size * size * ITEM
        _product(before, state_row, panels, size, size, gates + 3 * state_row, gates_row, rows, False)


@kernel
def _forward_part(job, part, room):
    kind, steps, row = word(job, KIND), word(job, STEPS), word(job, SIZE) * ITEM
    first = part * word(job, ROWS)
    rows = min(word(job, ROWS), word(job, BATCH) - first)
    for number in range(steps):
        step = steps - 1 - number if word(job, REVERSE) else number
        place = step * word(job, BATCH) + first
        gates, out = word(job, GATES) + place * word(job, WIDTH) * ITEM, word(job, STATES) + place * row
        before = _before(job, step, first, HIDDEN, STATES)
        _gates(job, place, rows, before, gates)
        cell, cell_before = word(job, CELLS) + place * row, _before(job, step, first, CELL, CELLS)
        for b in range(rows):
            at_gates, shift = gates + b * word(job, WIDTH) * ITEM, b * row
            if kind == RNN:
                _rnn_row(at_gates, word(job, BIAS), out + shift, row)
            elif kind == GRU:
                _gru_row(at_gates, word(job, BIAS), before + shift, out + shift, row)
            else:
                _lstm_row(at_gates, word(job, BIAS), cell_before + shift, cell + shift, out + shift, row)
            if _has_ended(job, first + b, step):
                _copy(before + shift, out + shift, word(job, SIZE))
                if kind == LSTM:
                    _copy(cell_before + shift, cell + shift, word(job, SIZE))


@kernel
def _rnn_row_back(gates, g, slopes, to_hidden, row):
    one, none = splat(F(1)), splat(F(0))
    for j in range(0, row, BYTES):
        state = load(gates + j)
        store((load(to_hidden + j) + load(g + j)) * (one - state * state), slopes + j)
        store(none, to_hidden + j)


@kernel
def _gru_row_back(gates, before, g, slopes, to_hidden, row):
    one = splat(F(1))
    for j in range(0, row, BYTES):
        r, z = load(gates + j), load(gates + row + j)
        n, old = load(gates + 2 * row + j), load(gates + 3 * row + j)
        slope = load(to_hidden + j) + load(g + j)
        to_n = slope * (one - z) * (one - n * n)
        store(to_n * old * r * (one - r), slopes + j)
        store(slope * (load(before + j) - n) * z * (one - z), slopes + row + j)
        store(to_n, slopes + 2 * row + j)
        store(to_n * r, slopes + 3 * row + j)
        store(slope * z, to_hidden + j)


@kernel
def _lstm_row_back(gates, before, cell, g, slopes, to_hidden, to_cell, row):
    one, none = splat(F(1)), splat(F(0))
    for j in range(0, row, BYTES):
        i, f = load(gates + j), load(gates + row + j)
        c, o = load(gates + 2 * row + j), load(gates + 3 * row + j)
        now, slope = tanh(load(cell + j)), load(to_hidden + j) + load(g + j)
        to_now = load(to_cell + j) + slope * o * (one - now * now)
        store(to_now * c * i * (one - i), slopes + j)
        store(to_now * load(before + j) * f * (one - f), slopes + row + j)
        store(to_now * i * (one - c * c), slopes + 2 * row + j)
        store(slope * now * o * (one - o), slopes + 3 * row + j)
        store(to_now * f, to_cell + j)
        store(none, to_hidden + j)


@kernel
def _ended_row_back(g, slopes, to_hidden, size, width):
    """A row that has ended hands on the gradient of its state."""
    for i in range(size):
        at(to_hidden, F)[i] += at(g, F)[i]
    for i in range(width):
        at(slopes, F)[i] = F(0)


@kernel
def _slopes(job, step, first, rows, gates, slopes):
    """The gradients of the gates of a step, and what goes to the state before without passing them."""
    kind, size, width = word(job, KIND), word(job, SIZE), word(job, WIDTH)
    row, place = size * ITEM, step * word(job, BATCH) + first
    before, cell_before = _before(job, step, first, HIDDEN, STATES), _before(job, step, first, CELL, CELLS)
    for b in range(rows):
        at_gates, at_slopes, shift = gates + b * width * ITEM, slopes + b * width * ITEM, b * row
        g, to_hidden = word(job, G) + place * row + shift, word(job, TO_HIDDEN) + first * row + shift
        if _has_ended(job, first + b, step):
            _ended_row_back(g, at_slopes, to_hidden, size, width)
        elif kind == RNN:
            _rnn_row_back(at_gates, g, at_slopes, to_hidden, row)
        elif kind == GRU:
            _gru_row_back(at_gates, before + shift, g, at_slopes, to_hidden, row)
        else:
            cell, to_cell = word(job, CELLS) + place * row + shift, word(job, TO_CELL) + first * row + shift
            _lstm_row_back(at_gates, cell_before + shift, cell, g, at_slopes, to_hidden, to_cell, row)


@kernel
def _backward_part(job, part, room):
    steps, size, width, inputs = word(job, STEPS), word(job, SIZE), word(job, WIDTH), word(job, INPUTS)
    first, is_gru = part * word(job, ROWS), word(job, KIND) == GRU
    rows, row = min(word(job, ROWS), word(job, BATCH) - first), width * ITEM
    to_hidden, panels = word(job, TO_HIDDEN) + first * size * ITEM, word(job, PANELS)
    for number in range(steps):
        step = number if word(job, REVERSE) else steps - 1 - number
        place = step * word(job, BATCH) + first
        slopes = word(job, SLOPES) + place * row
        _slopes(job, step, first, rows, word(job, GATES) + place * row, slopes)
        if is_gru:  # the part of n that comes from the state lies behind n
            _product(slopes, row, panels, 2 * size, size, to_hidden, size * ITEM, rows, True)
            last, slopes_n = panels + 2 * size * size * ITEM, slopes + 3 * size * ITEM
            _product(slopes_n, row, last, size, size, to_hidden, size * ITEM, rows, True)
        else:
            _product(slopes, row, panels, width, size, to_hidden, size * ITEM, rows, True)
        if word(job, TO_X):
            depth, target = width - size * is_gru, word(job, TO_X) + place * inputs * ITEM
            _product(slopes, row, word(job, X_PANELS), depth, inputs, target, inputs * ITEM, rows, False)


@cache
def _function(is_backward: bool) -> int:
    return address_of(_backward_part if is_backward else _forward_part)


def _panels(weight: np.ndarray, transposed: bool = False) -> np.ndarray:
    """A right factor in panels, or the transpose of a matrix."""
    depth, columns = weight.shape[::-1] if transposed else weight.shape
    panels, weight = np.empty((columns // PANEL, depth, PANEL), F), np.ascontiguousarray(weight)
    if transposed:
        pack_transposed(weight, panels)
    else:
        pack(weight, panels, 0)
    return panels


def _state_panels(kind: int, weight: np.ndarray) -> np.ndarray:
    """The panels of the state's weight for the backward; of a GRU n stands apart."""
    if kind != GRU:
        return _panels(weight)
    cut = 2 * weight.shape[1]
    return np.concatenate([_panels(part).reshape(-1) for part in (weight[:cut], weight[cut:])])


def _run(kind: int, layer: Layer, x_panels: Any, panels: np.ndarray, arrays: dict[int, Any], is_backward: bool) -> None:
    """Go through all steps, with the rows of the batch divided among the cores."""
    steps, batch, width = layer.gates.shape
    size, inputs = layer.hidden.shape[1], layer.x.shape[2]
    pool = pool_for(batch * size * width >= SHARED)
    rows = min(-(-batch // (thread_count() if pool else 1)), MOST)
    rows = -(-rows // HEIGHT) * HEIGHT
    lengths = None if layer.lengths is None else np.ascontiguousarray(layer.lengths, I64)
    given = {
        X: layer.x, X_PANELS: x_panels, PANELS: panels, GATES: layer.gates, BIAS: layer.bias, HIDDEN: layer.hidden,
        CELL: layer.cell, LENGTHS: lengths, STATES: layer.states, CELLS: layer.cells, **arrays,
    }  # fmt: skip
    kept = {place: None if a is None else np.ascontiguousarray(a) for place, a in given.items()}
    job = np.zeros(JOB_WORDS, np.int64)
    for place, array in kept.items():
        job[place] = 0 if array is None else array.ctypes.data
    job[[FUNCTION, PARTS]] = _function(is_backward), -(-batch // rows)
    job[KIND : INPUTS + 1] = kind, layer.reverse, steps, batch, rows, size, width, inputs
    run_jobs(job.ctypes.data, 1, pool, True)


def _fill(kind: int, layer: Layer) -> None:
    _run(kind, layer, _panels(layer.weight_ih, True), _panels(layer.weight, True), {}, False)


def _fill_back(kind: int, layer: Layer, g: Any, slopes: Any, to_x: Any, to_hidden: Any, to_cell: Any) -> None:
    is_whole = to_x is not None and to_x.shape[2] % PANEL == 0
    if to_cell is not None:
        to_cell += g[-1]
    arrays = {G: g, SLOPES: slopes, TO_X: to_x if is_whole else None, TO_HIDDEN: to_hidden, TO_CELL: to_cell}
    x_panels = _panels(layer.weight_ih) if is_whole else None
    _run(kind, layer, x_panels, _state_panels(kind, layer.weight), arrays, True)
    if to_x is not None and not is_whole:
        rows = slopes.reshape(-1, slopes.shape[2])[:, : len(layer.weight_ih)]
        np.matmul(rows, layer.weight_ih, out=to_x.reshape(-1, to_x.shape[2]))


def _to_weights(layer: Layer, slopes: np.ndarray, needs: Sequence[bool]) -> tuple[Any, Any]:
    """The gradients of both weights."""
    (_, batch, width), size = slopes.shape, layer.hidden.shape[1]
    is_gru = len(layer.weight) < width
    coming, rows = len(layer.weight_ih), slopes.reshape(-1, width)
    if layer.x.shape[2] % PANEL:
        return to_weights(layer, slopes, needs)
    to_ih, to_hh = (np.empty(weight.shape, F) for weight in (layer.weight_ih, layer.weight))
    jobs = []
    if needs[0]:
        jobs.append((0, coming, _panels(layer.x.reshape(len(rows), -1)), to_ih))
    if needs[1]:
        before, (first, others) = np.empty((size // PANEL, len(rows), PANEL), F), layer.before()
        begin, rest = (len(rows) - batch, 0) if layer.reverse else (0, batch)
        pack(np.ascontiguousarray(first), before, begin)
        pack(others, before, rest)
        cut = 2 * size if is_gru else width
        jobs.append((0, cut, before, to_hh[:cut]))
        jobs += [(3 * size, size, before, to_hh[cut:])] if is_gru else []
    transposed_products(rows, jobs)
    return to_ih if needs[0] else None, to_hh if needs[1] else None


def accepts(x: Any, *arrays: Any, reverse: bool) -> bool:
    """In float32."""
    return x.dtype == F and accepts_layer(x, *arrays, reverse=reverse)


for _op, _kind in KINDS.items():
    _inner = kernel_of_layer(_op, partial(_fill, _kind), partial(_fill_back, _kind), accepts, _to_weights)
    _op.kernels["numba"] = in_whole_panels(_inner, _op is lstm)
