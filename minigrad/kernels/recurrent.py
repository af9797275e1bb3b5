"""Layers of recurrent networks as fused operations: each is all steps of one layer in one direction, defined by ordinary ops.

T is the number of steps, B the batch, I the width of the inputs, H that of the state. The weights of the gates lie one below
the other, as PyTorch has them. A row of the batch that has fewer steps, by its `lengths`, keeps its state in those that it
has not, so that in either direction the last state that is computed is its last one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..ops.elementwise.arithmetic import where
from ..ops.elementwise.unary import sigmoid, tanh
from ..ops.layout.joining import _unstack, split, stack
from ..ops.layout.shape import expand_dims
from .definitions import linear
from .registry import fused

__all__ = ["gru", "lstm", "rnn"]


def _cost(inputs, out, attrs):
    x, weight_ih, weight_hh = inputs[:3]
    return 2 * x.shape[0] * x.shape[1] * (weight_ih.size + weight_hh.size)


def _steps(x: Any, weight: Any, bias: Any, lengths: Any, reverse: bool) -> Iterator[tuple[int, Any]]:
    """The steps in the order in which they are taken, with what comes in at each; what is padding counts as 0."""
    if lengths is not None:
        parts = enumerate(_unstack(x, axis=0))
        x = stack([where(expand_dims(lengths > step, axis=-1), part, 0) for step, part in parts], axis=0)
    coming = linear.function(x, weight, bias)  # (T, B, I) -> (T, B, W)
    numbered = list(enumerate(_unstack(coming, axis=0)))
    return iter(_in_order(numbered, reverse))


def _moved(new: Any, old: Any, step: int, lengths: Any) -> Any:
    """The new state, and the old one in rows that have ended."""
    return new if lengths is None else where(expand_dims(lengths > step, axis=-1), new, old)


def _in_order(states: list[Any], reverse: bool) -> list[Any]:
    return states[::-1] if reverse else states


@fused(cost=_cost, lowering="whole")
def rnn(x, weight_ih, weight_hh, bias_ih, bias_hh, hidden, lengths, *, reverse):
    """The states `h_t = tanh(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh)`: (T, B, I), (H, I), (H, H), (H,), (H,), (B, H), (B,) -> (T, B, H)."""
    states = []
    for step, new in _steps(x, weight_ih, bias_ih, lengths, reverse):
        hidden = _moved(tanh(new + linear.function(hidden, weight_hh, bias_hh)), hidden, step, lengths)
        states.append(hidden)
    return stack(_in_order(states, reverse), axis=0)


@fused(cost=_cost, lowering="whole")
def gru(x, weight_ih, weight_hh, bias_ih, bias_hh, hidden, lengths, *, reverse):
    """The states `h_t = (1 - z) n + z h_(t-1)`: (T, B, I), (3H, I), (3H, H), (3H,), (3H,), (B, H), (B,) -> (T, B, H).

    The gates are `r, z = sigmoid(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh)`, and the candidate is `n = tanh(W_in x_t + b_in + r (W_hn h_(t-1) + b_hn))`.
    """
    states = []
    for step, new in _steps(x, weight_ih, bias_ih, lengths, reverse):
        new_r, new_z, new_n = split(new, indices_or_sections=3, axis=-1)
        old_r, old_z, old_n = split(
            linear.function(hidden, weight_hh, bias_hh), indices_or_sections=3, axis=-1
        )  # (B, 3H) -> 3 × (B, H)
        n, z = tanh(new_n + sigmoid(new_r + old_r) * old_n), sigmoid(new_z + old_z)
        hidden = _moved(n + z * (hidden - n), hidden, step, lengths)
        states.append(hidden)
    return stack(_in_order(states, reverse), axis=0)


@fused(cost=_cost, lowering="whole")
def lstm(x, weight_ih, weight_hh, bias_ih, bias_hh, hidden, cell, lengths, *, reverse):
    """The states `h_t = o tanh(c_t)`, and behind them the last cell c, from inputs as those of `gru` and a first cell (B, H): -> (T + 1, B, H).

    The cell is `c_t = f c_(t-1) + i g`; the gates i, f, o are sigmoids and the candidate g is a tanh of
    `W_ih x_t + b_ih + W_hh h_(t-1) + b_hh`, in the order i, f, g, o.
    """
    states = []
    for step, new in _steps(x, weight_ih, bias_ih, lengths, reverse):
        gates = new + linear.function(hidden, weight_hh, bias_hh)
        i, f, g, o = split(gates, indices_or_sections=4, axis=-1)  # (B, 4H) -> 4 × (B, H)
        new_cell = sigmoid(f) * cell + sigmoid(i) * tanh(g)
        hidden = _moved(sigmoid(o) * tanh(new_cell), hidden, step, lengths)
        cell = _moved(new_cell, cell, step, lengths)
        states.append(hidden)
    return stack([*_in_order(states, reverse), cell], axis=0)
