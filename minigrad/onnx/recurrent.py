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
    if lengths is not None:
        return NotImplemented  # after the end of a row ONNX gives zeros, and we the last state
    first, size = w.constant([0], "int64"), int(weight_hh.shape[1])
    rows = np.concatenate([np.arange(gate * size, (gate + 1) * size) for gate in GATES[name]])
    order = w.constant(rows, "int64")

    def apart(value: Value | str) -> str:
        return str(w.node("Unsqueeze", value if isinstance(value, str) else w.get(value), first))

    def ordered(value: Value | None) -> str:
        zeros = np.zeros(len(rows), x.dtype)
        return str(w.constant(zeros) if value is None else w.node("Gather", w.get(value), order, axis=0))

    bias = w.node("Concat", ordered(bias_ih), ordered(bias_hh), axis=0)
    given = [w.get(x), *(apart(ordered(one)) for one in (weight_ih, weight_hh)), apart(bias), "", apart(hidden)]
    options = {"direction": "reverse" if step.attrs["reverse"] else "forward", "hidden_size": size}
    if name == "gru":
        options["linear_before_reset"] = 1
    if name != "lstm":
        states, _ = w.node(KINDS[name], *given, count=2, **options)
        return w.node("Squeeze", states, w.constant([1], "int64"))  # (T, 1, B, H) -> (T, B, H)
    states, _, last = w.node("LSTM", *given, apart(cell[0]), count=3, **options)
    return w.node("Concat", w.node("Squeeze", states, w.constant([1], "int64")), last, axis=0)
