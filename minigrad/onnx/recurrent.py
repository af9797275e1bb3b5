"""Recurrent layers as nodes of ONNX, which has its gates in another order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir import Step, Value
from .writer import Writer, maps

# The gates of ONNX, by their place among ours.
GATES = {"rnn": (0,), "gru": (1, 0, 2), "lstm": (0, 3, 1, 2)}
KINDS = {"rnn": "RNN", "gru": "GRU", "lstm": "LSTM"}


@maps(*KINDS)
def recurrent(w: Writer, step: Step) -> Any:
    """States (T, B, H); behind those of an LSTM is the last cell."""
    name = step.op.name
    x, weight_ih, weight_hh, bias_ih, bias_hh, hidden, *rest = step.inputs
    *cell, lengths = rest
    first, size = w.constant([0], "int64"), int(weight_hh.shape[1])
    rows = np.concatenate([np.arange(gate * size, (gate + 1) * size) for gate in GATES[name]])
    order = w.constant(rows, "int64")

    def apart(value: Value | str) -> str:
        return str(w.node("Unsqueeze", value if isinstance(value, str) else w.get(value), first))

    def ordered(value: Value | None) -> str:
        zeros = np.zeros(len(rows), x.dtype)
        return str(w.constant(zeros) if value is None else w.node("Gather", w.get(value), order, axis=0))

    bias = w.node("Concat", ordered(bias_ih), ordered(bias_hh), axis=0)
    given = [w.get(x), *(apart(ordered(one)) for one in (weight_ih, weight_hh)), apart(bias)]
    given += ["" if lengths is None else w.get(lengths, "int32"), apart(hidden)]
    options = {"direction": "reverse" if step.attrs["reverse"] else "forward", "hidden_size": size}
    if name == "gru":
        options["linear_before_reset"] = 1
    more = [apart(cell[0])] if name == "lstm" else []
    states, ended, *cells = w.node(KINDS[name], *given, *more, count=2 + len(more), **options)
    states = w.node("Squeeze", states, w.constant([1], "int64"))  # (T, 1, B, H) -> (T, B, H)
    if lengths is not None:
        states = kept(w, states, apart(hidden) if step.attrs["reverse"] else ended, lengths, x.shape[0])
    return w.node("Concat", states, *cells, axis=0) if cells else states


def kept(w: Writer, states: str, outside: str, lengths: Any, count: Any) -> str:
    """The states (T, B, H), and where a row has ended, where ONNX gives zeros, the one that it keeps: (1, B, H)."""
    most = w.get(count, "int64")
    places = w.node("Range", w.constant(0, "int64"), most, w.constant(1, "int64"))  # (T,)
    column = w.node("Unsqueeze", places, w.constant([1, 2], "int64"))  # (T, 1, 1)
    rows = w.node("Unsqueeze", w.get(lengths, "int64"), w.constant([1], "int64"))  # (B, 1)
    return str(w.node("Where", w.node("Less", column, rows), states, outside))
