"""Layers of recurrent networks on NumPy's arrays: one product for the inputs of all steps, one for each gradient of a weight.

What lies between them goes step by step, here with NumPy. `gates` (T, B, W) are first what comes in, then what the gates
are, and backward wants them: W is H for an RNN, 4H for an LSTM (i, f, g, o), and 4H for a GRU: r, z, n, and the part
of n that comes from the state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .numpy import are_floating, register
from .recurrent import gru, lstm, rnn
from .registry import Kernel


class Layer(NamedTuple):
    """What one direction of a layer reads and writes from step to step; forward and backward fill what is theirs."""

    x: np.ndarray  # (T, B, I)
    weight_ih: np.ndarray  # (W or, of a GRU, 3H, I)
    gates: np.ndarray  # (T, B, W)
    weight: np.ndarray  # of the state: (W or, of a GRU, 3H, H)
    bias: np.ndarray  # of both kinds, as wide as the gates
    hidden: np.ndarray  # the state at the beginning, (B, H)
    cell: np.ndarray | None  # that of an LSTM, (B, H)
    lengths: np.ndarray | None  # (B,)
    states: np.ndarray  # (T, B, H)
    cells: np.ndarray | None  # (T, B, H)
    reverse: bool

    def steps(self, reverse: bool) -> Any:
        """The steps in order, each with the state and the cell before it."""
        count = len(self.gates)
        for t in range(count)[:: -1 if self.reverse != reverse else 1]:
            before = t + 1 if self.reverse else t - 1
            if 0 <= before < count:
                yield t, self.states[before], None if self.cells is None else self.cells[before]
            else:
                yield t, self.hidden, self.cell

    def before(self) -> tuple[np.ndarray, np.ndarray]:
        """The states before all steps: the one at the beginning (B, H), and the others (T·B - B, H)."""
        computed = self.states[1:] if self.reverse else self.states[:-1]
        return self.hidden, computed.reshape(-1, self.hidden.shape[1])

    def ended(self, t: int) -> np.ndarray | None:
        """The rows that have no step t."""
        return None if self.lengths is None else self.lengths <= t


def _sigmoid(x: np.ndarray) -> None:
    """In place, without overflow."""
    x *= 0.5
    np.tanh(x, out=x)
    x += 1
    x *= 0.5


def _split(gates: np.ndarray, size: int) -> list[np.ndarray]:
    return [gates[:, i : i + size] for i in range(0, gates.shape[1], size)]


def _project(layer: Layer) -> None:
    """What comes in at all steps, by one product."""
    rows = layer.gates.reshape(-1, layer.gates.shape[2])[:, : len(layer.weight_ih)]
    np.matmul(layer.x.reshape(len(rows), -1), layer.weight_ih.T, out=rows)  # (T·B, I) @ (I, W)


def _rnn_forward(layer: Layer) -> None:
    _project(layer)
    for t, before, _ in layer.steps(False):
        gates = layer.gates[t]
        gates += before @ layer.weight.T  # (B, H) @ (H, H)
        gates += layer.bias
        np.tanh(gates, out=gates)
        layer.states[t] = gates
        _keep(layer.states[t], before, layer.ended(t))


def _gru_forward(layer: Layer) -> None:
    _project(layer)
    size = layer.hidden.shape[1]
    for t, before, _ in layer.steps(False):
        gates, product = layer.gates[t], before @ layer.weight.T  # (B, H) @ (H, 3H)
        gates[:, : 2 * size] += product[:, : 2 * size]
        gates[:, 3 * size :] = product[:, 2 * size :]
        gates += layer.bias
        _sigmoid(gates[:, : 2 * size])
        r, z, n, old = _split(gates, size)
        n += r * old
        np.tanh(n, out=n)
        layer.states[t] = n + z * (before - n)
        _keep(layer.states[t], before, layer.ended(t))


def _lstm_forward(layer: Layer) -> None:
    _project(layer)
    size = layer.hidden.shape[1]
    assert layer.cells is not None
    for t, before, cell in layer.steps(False):
        gates = layer.gates[t]
        gates += before @ layer.weight.T  # (B, H) @ (H, 4H)
        gates += layer.bias
        i, f, g, o = _split(gates, size)
        _sigmoid(gates[:, : 2 * size])
        _sigmoid(o)
        np.tanh(g, out=g)
        layer.cells[t] = f * cell + i * g
        layer.states[t] = o * np.tanh(layer.cells[t])
        _keep(layer.states[t], before, layer.ended(t))
        _keep(layer.cells[t], cell, layer.ended(t))


def _keep(new: np.ndarray, old: np.ndarray, ended: np.ndarray | None) -> None:
    if ended is not None:
        new[ended] = old[ended]


def _rnn_backward(layer: Layer, g: Any, slopes: Any, to_x: Any, to_hidden: Any, _: Any) -> None:
    for t, _before, _cell in layer.steps(True):
        to_hidden += g[t]
        state, ended = layer.gates[t], layer.ended(t)
        slopes[t] = to_hidden * (1 - state * state)
        _go_back(slopes[t], layer.weight, to_hidden, 0, ended)
    _project_back(layer, slopes, to_x)


def _gru_backward(layer: Layer, g: Any, slopes: Any, to_x: Any, to_hidden: Any, _: Any) -> None:
    size = layer.hidden.shape[1]
    for t, before, _cell in layer.steps(True):
        to_hidden += g[t]
        r, z, n, old = _split(layer.gates[t], size)
        to_r, to_z, to_n, to_old = _split(slopes[t], size)
        np.multiply(to_hidden * (1 - z), 1 - n * n, out=to_n)
        np.multiply(to_n, r, out=to_old)
        to_z[...] = to_hidden * (before - n) * z * (1 - z)
        to_r[...] = to_n * old * r * (1 - r)
        used = np.concatenate([to_r, to_z, to_old], axis=1)  # (B, 3H)
        ended = layer.ended(t)
        if ended is not None:
            slopes[t][ended] = 0
        _go_back(used, layer.weight, to_hidden, to_hidden * z, ended)
    _project_back(layer, slopes, to_x)


def _lstm_backward(layer: Layer, g: Any, slopes: Any, to_x: Any, to_hidden: Any, to_cell: Any) -> None:
    size = layer.hidden.shape[1]
    assert layer.cells is not None
    to_cell += g[-1]
    for t, _before, cell in layer.steps(True):
        to_hidden += g[t]
        i, f, candidate, o = _split(layer.gates[t], size)
        to_i, to_f, to_g, to_o = _split(slopes[t], size)
        now, ended = np.tanh(layer.cells[t]), layer.ended(t)
        to_now = to_cell + to_hidden * o * (1 - now * now)
        to_o[...] = to_hidden * now * o * (1 - o)
        to_i[...] = to_now * candidate * i * (1 - i)
        to_f[...] = to_now * cell * f * (1 - f)
        to_g[...] = to_now * i * (1 - candidate * candidate)
        to_now *= f
        _keep(to_now, to_cell, ended)
        to_cell[...] = to_now
        _go_back(slopes[t], layer.weight, to_hidden, 0, ended)
    _project_back(layer, slopes, to_x)


def _project_back(layer: Layer, slopes: np.ndarray, to_x: np.ndarray | None) -> None:
    """The gradient of what comes in, by one product."""
    if to_x is not None:
        inner = slopes.reshape(-1, slopes.shape[2])[:, : len(layer.weight_ih)]
        np.matmul(inner, layer.weight_ih, out=to_x.reshape(len(inner), -1))  # (T·B, W) @ (W, I)


def _go_back(slopes: np.ndarray, weight: np.ndarray, to_hidden: np.ndarray, direct: Any, ended: Any) -> None:
    """The gradient of the state before: through the gates, and directly; rows that have ended just hand it on."""
    if ended is not None:
        slopes[ended] = 0
    before = slopes @ weight + direct  # (B, W) @ (W, H)
    _keep(before, to_hidden, ended)
    to_hidden[...] = before


def _bias(is_gru: bool, width: int, bias_ih: Any, bias_hh: Any, like: np.ndarray) -> np.ndarray:
    """Both biases as wide as the gates: their sum, but for a GRU's n, where they stand apart."""
    made = np.zeros(width, like.dtype)
    if bias_ih is not None:
        size = width // 4 if is_gru else width
        made[: len(bias_ih)] += bias_ih
        made[: 2 * size if is_gru else width] += bias_hh[: 2 * size]
        if is_gru:
            made[3 * size :] += bias_hh[2 * size :]
    return made


def accepts_layer(x: Any, weight_ih: Any, weight_hh: Any, *rest: Any, reverse: bool) -> bool:
    """Arrays that fit each other, none of them empty, of one floating dtype; the lengths come last."""
    *arrays, lengths = rest
    if x.ndim != 3 or x.size == 0 or weight_hh.ndim != 2 or not are_floating(x, weight_ih, weight_hh, *arrays):
        return False
    (width, size), batch = weight_hh.shape, x.shape[1]
    shapes = [(width,), (width,), *[(batch, size)] * (len(arrays) - 2)]
    fits = all(a is None or a.shape == shape for a, shape in zip(arrays, shapes))
    return fits and weight_ih.shape == (width, x.shape[2]) and (lengths is None or lengths.shape == (batch,))


def to_weights(layer: Layer, slopes: np.ndarray, needs: Sequence[bool]) -> list[Any]:
    """The gradients of both weights, each by a product over all steps, and of both biases: (W, T·B) @ (T·B, I), (W, T·B) @ (T·B, H)."""
    rows, size = slopes.reshape(-1, slopes.shape[2]), layer.hidden.shape[1]
    coming = len(layer.weight_ih)
    to_ih = rows[:, :coming].T @ layer.x.reshape(len(rows), -1) if needs[0] else None
    # A GRU's n has slopes of its own for the state.
    parts = [rows] if rows.shape[1] == len(layer.weight) else [rows[:, : 2 * size], rows[:, 3 * size :]]
    to_hh = np.concatenate([_by_states(layer, part) for part in parts]) if needs[1] else None
    if not (needs[2] or needs[3]):
        return [to_ih, to_hh, None, None]
    sums = np.ones(len(rows), rows.dtype) @ rows
    of_states = sums if len(parts) == 1 else np.concatenate([sums[: 2 * size], sums[3 * size :]])
    return [to_ih, to_hh, sums[:coming].copy() if needs[2] else None, of_states if needs[3] else None]


def _by_states(layer: Layer, slopes: np.ndarray) -> np.ndarray:
    """The sum over all steps of slopes times the states before: (T·B, W) -> (W, H)."""
    first, others = layer.before()
    batch = len(first)
    at_first, at_others = (slice(-batch, None), slice(-batch)) if layer.reverse else (slice(batch), slice(batch, None))
    return slopes[at_first].T @ first + slopes[at_others].T @ others


Fill = Callable[[Layer], None]  # of the gates, states and cells
FillBack = Callable[..., None]  # (layer, g, slopes, to_x or None, to_hidden, to_cell or None)


def kernel_of_layer(
    op: Any, fill: Fill, fill_back: FillBack, accepts: Any = accepts_layer, to_all: Any = to_weights
) -> Kernel:
    """A kernel from functions that go through the steps of a layer, and one for the gradients of its weights."""
    is_lstm, is_gru = op is lstm, op is gru

    def forward(x, weight_ih, weight_hh, bias_ih, bias_hh, hidden, *rest, reverse):
        cell, lengths = rest if is_lstm else (None, *rest)
        (steps, batch, _), size = x.shape, hidden.shape[1]
        if lengths is not None:  # whatever padding holds, it counts as 0
            x = np.where((lengths > np.arange(steps)[:, None])[..., None], x, x.dtype.type(0))
        width = len(weight_ih) + size * is_gru
        out = np.empty((steps + is_lstm, batch, size), x.dtype)
        cells = np.empty((steps, batch, size), x.dtype) if is_lstm else None
        gates, bias = np.empty((steps, batch, width), x.dtype), _bias(is_gru, width, bias_ih, bias_hh, x)
        states = out[:steps]
        layer = Layer(x, weight_ih, gates, weight_hh, bias, hidden, cell, lengths, states, cells, reverse)
        fill(layer)
        if cells is not None:
            out[steps] = cells[0 if reverse else -1]
        return out, layer

    def backward(g, layer, needs, x, weight_ih, weight_hh, bias_ih, bias_hh, hidden, *rest, reverse):
        slopes, to_hidden = np.empty_like(layer.gates), np.zeros(hidden.shape, x.dtype)
        to_cell = np.zeros(hidden.shape, x.dtype) if is_lstm else None
        to_x = np.empty(x.shape, x.dtype) if needs[0] else None
        fill_back(layer, g, slopes, to_x, to_hidden, to_cell)
        return [
            to_x,
            *to_all(layer, slopes, needs[1:5]),
            to_hidden,
            *([to_cell, None] if is_lstm else [None]),
        ]

    return Kernel(forward, backward, accepts)


register(rnn, *kernel_of_layer(rnn, _rnn_forward, _rnn_backward))
register(gru, *kernel_of_layer(gru, _gru_forward, _gru_backward))
register(lstm, *kernel_of_layer(lstm, _lstm_forward, _lstm_backward))
