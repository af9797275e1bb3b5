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
from ..numpy_recurrent import Layer, accepts_layer, kernel_of_layer
from ..recurrent import gru, lstm, rnn
from .compiling import kernel
from .thread_pool import FUNCTION, JOB_WORDS, OWN, PARTS, address_of, pool_for, run_jobs, word
from .tiles import ITEM
from .transposed_products import transposed_product
from .vectors import BYTES, load, sigmoid, splat, store, tanh
from .whole_panels import in_whole_panels
from .wide_tiles import HEIGHT, PANEL, packing, panels_of, tile, whole

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
            columns = (inputs + PANEL - 1) // PANEL * PANEL
            depth, target = width - size * is_gru, word(job, TO_X) + place * columns * ITEM
            _product(slopes, row, word(job, X_PANELS), depth, columns, target, columns * ITEM, rows, False)


@cache
def _function(is_backward: bool) -> int:
    return address_of(_backward_part if is_backward else _forward_part)


def _packed(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Panels for a right factor, and the job that fills them."""
    panels = panels_of(*matrix.shape)
    return panels, packing(matrix, panels)


def _run(kind: int, layer: Layer, packings: list[np.ndarray], arrays: dict[int, Any], is_backward: bool) -> None:
    """Pack the weights, and go through all steps with the rows of the batch divided among the cores."""
    steps, batch, width = layer.gates.shape
    size, inputs = layer.hidden.shape[1], layer.x.shape[2]
    pool = pool_for(batch * size * width >= SHARED)
    rows = min(-(-batch // (thread_count() if pool else 1)), MOST)
    rows = -(-rows // HEIGHT) * HEIGHT
    lengths = None if layer.lengths is None else np.ascontiguousarray(layer.lengths, I64)
    given = {
        X: layer.x, GATES: layer.gates, BIAS: layer.bias, HIDDEN: layer.hidden, CELL: layer.cell, LENGTHS: lengths,
        STATES: layer.states, CELLS: layer.cells, **arrays,
    }  # fmt: skip
    kept = {place: None if a is None else np.ascontiguousarray(a) for place, a in given.items()}
    job = np.zeros(JOB_WORDS, np.int64)
    for place, array in kept.items():
        job[place] = 0 if array is None else array.ctypes.data
    job[[FUNCTION, PARTS]] = _function(is_backward), -(-batch // rows)
    job[KIND : INPUTS + 1] = kind, layer.reverse, steps, batch, rows, size, width, inputs
    _run_all([*packings, job], pool)


def _run_all(jobs: list[np.ndarray], pool: int) -> None:
    table = np.stack(jobs)
    run_jobs(table.ctypes.data, len(table), pool, True)


def _fill(kind: int, layer: Layer) -> None:
    (x_panels, x_packing), (panels, packing) = _packed(layer.weight_ih.T), _packed(layer.weight.T)
    _run(kind, layer, [x_packing, packing], {X_PANELS: x_panels, PANELS: panels}, False)


def _fill_back(kind: int, layer: Layer, g: Any, slopes: Any, to_x: Any, to_hidden: Any, to_cell: Any) -> None:
    if to_cell is not None:
        to_cell += g[-1]
    size, inputs = layer.hidden.shape[1], layer.x.shape[2]
    # Of a GRU, n stands apart.
    parts = [layer.weight] if kind != GRU else [layer.weight[: 2 * size], layer.weight[2 * size :]]
    panels = np.empty(layer.weight.size, F)
    pieces = np.split(panels, [parts[0].size])
    packings = [packing(part, piece.reshape(size // PANEL, len(part), PANEL)) for part, piece in zip(parts, pieces)]
    arrays = {PANELS: panels, G: g, SLOPES: slopes, TO_HIDDEN: to_hidden, TO_CELL: to_cell}
    if to_x is not None:
        is_whole = whole(inputs) == inputs
        arrays[TO_X] = to_x if is_whole else np.empty((*to_x.shape[:2], whole(inputs)), F)
        arrays[X_PANELS], x_packing = _packed(layer.weight_ih)
        packings.append(x_packing)
    _run(kind, layer, packings, arrays, True)
    if to_x is not None and not is_whole:
        to_x[...] = arrays[TO_X][..., :inputs]


def _to_weights(layer: Layer, slopes: np.ndarray, needs: Sequence[bool]) -> list[Any]:
    """The gradients of both weights and of both biases."""
    if not any(needs):
        return [None] * 4
    (steps, batch, width), size, inputs = slopes.shape, layer.hidden.shape[1], layer.x.shape[2]
    count, coming, rows = steps * batch, len(layer.weight_ih), slopes.reshape(-1, width)
    to_ih, to_hh = np.empty((coming, whole(inputs)), F), np.empty(layer.weight.shape, F)
    x, (first, others), sums = np.ascontiguousarray(layer.x), layer.before(), np.zeros(width, F)
    x_panels, x_packing = _packed(x.reshape(count, -1))
    panels, (begin, rest) = panels_of(count, size), (count - batch, 0) if layer.reverse else (0, batch)
    jobs = [x_packing, packing(first, panels, begin), packing(others, panels, rest)]

    def add(columns: slice, *, ih: slice | None = None, hh: slice | None = None) -> None:
        factors = [(x_panels, to_ih[ih])] if ih and needs[0] else []
        factors += [(panels, to_hh[hh])] if hh and needs[1] else []
        jobs.append(transposed_product(rows[:, columns], sums[columns], factors))

    cut = 2 * size if coming < width else width
    add(slice(cut), ih=slice(cut), hh=slice(cut))
    if cut < width:  # a GRU's n has slopes of its own for the state
        add(slice(cut, coming), ih=slice(cut, None))
        add(slice(coming, None), hh=slice(cut, None))
    _run_all(jobs, pool_for(True))
    to_ih = to_ih if whole(inputs) == inputs else to_ih[:, :inputs].copy()
    of_states = sums.copy() if cut == width else np.concatenate([sums[:cut], sums[coming:]])
    return [a if needed else None for a, needed in zip((to_ih, to_hh, sums[:coming].copy(), of_states), needs)]


def accepts(x: Any, *arrays: Any, reverse: bool) -> bool:
    """In float32."""
    return x.dtype == F and accepts_layer(x, *arrays, reverse=reverse)


for _op, _kind in KINDS.items():
    _inner = kernel_of_layer(_op, partial(_fill, _kind), partial(_fill_back, _kind), accepts, _to_weights)
    _op.kernels["numba"] = in_whole_panels(_inner, _op is lstm)
