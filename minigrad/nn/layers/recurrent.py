"""Recurrent networks: RNN, GRU and LSTM as layers over all steps of a sequence, and their cells, single steps. As PyTorch's.

T is the number of steps, B the batch, I the width of the inputs, H that of the state, D 2 in a layer of both directions, else 1.
"""

from __future__ import annotations

import math
from typing import Any

from ... import kernels
from ...engine.tensor import Tensor
from ...errors import ArgumentError, CallError, IndexingError, ShapeError
from ...ops.creation import arange, zeros
from ...ops.elementwise.arithmetic import where
from ...ops.layout.joining import concatenate, stack
from ...tracer import is_exporting
from .. import functional as F
from .. import init
from ..functional.declaration import as_tensor
from ..functional.dropouts import check_probability
from ..module import Module
from .linear import check_sizes, new_parameter

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNCell"]

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


class _Recurrent(Module):
    """What RNN, GRU and LSTM have in common: parameters with PyTorch's names, and layers that follow each other."""

    kind: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: Any = None,
        device: str | None = None,
    ):
        check_sizes(self, input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        check_probability(self.kind, dropout)
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional = batch_first, dropout, bidirectional
        for layer in range(num_layers):
            width = hidden_size * self._directions if layer else input_size
            for ending in self._endings(layer):
                _add_parameters(self, ending, GATES[self.kind] * hidden_size, width, dtype, device)
        self.reset_parameters()

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _endings(self, layer: int) -> list[str]:
        return [f"_l{layer}", f"_l{layer}_reverse"][: self._directions]

    def reset_parameters(self) -> None:
        """Draw all parameters anew, evenly from ±1 / sqrt(hidden_size)."""
        _draw(self)

    def forward(self, input: Any, hx: Any = None, lengths: Any = None) -> tuple[Tensor, Any]:
        """Outputs (T, B, D·H) and the last states, from states `hx`, which are zeros unless given.

        With `lengths` (B,) each sequence ends after so many steps: later outputs are 0, the last state is that of its
        last step, and the other direction begins there.
        """
        x = as_tensor(input)
        if x.ndim not in (2, 3) or x.shape[-1] != self.input_size or not x.shape[0 if x.ndim == 2 else self._time]:
            batch = "batch, steps" if self.batch_first else "steps, batch"
            expected = f"({batch}, {self.input_size}), or (steps, {self.input_size}), and one step or more"
            raise ShapeError(f"{self.kind}: the input does not fit", expected, x.shape)
        is_single, x = x.ndim == 2, x[:, None] if x.ndim == 2 else x.swapaxes(0, 1) if self.batch_first else x
        steps = None if lengths is None else _checked_lengths(self.kind, lengths, x)
        states = self._start(hx, x, is_single)
        last: list[tuple[Tensor, ...]] = []
        for layer in range(self.num_layers):
            if layer and self.dropout and self.training:
                x = F.dropout(x.swapaxes(0, 1), self.dropout).swapaxes(0, 1)  # what is dropped is counted row by row
            outs = []
            for number, ending in enumerate(self._endings(layer)):
                out, ends = _through(self, ending, x, [state[len(last)] for state in states], steps, bool(number))
                outs.append(out)
                last.append(ends)
            x = outs[0] if len(outs) == 1 else concatenate(outs, axis=-1)  # (T, B, D·H)
        if steps is not None:
            there = arange(x.shape[0], device=x.device)[:, None, None] < steps[None, :, None]
            x = where(there, x, 0)
        ended = tuple(stack(parts, axis=0) for parts in zip(*last))  # each (layers · D, B, H)
        x, ended = (x[:, 0], tuple(e[:, 0] for e in ended)) if is_single else (x, ended)
        x = x.swapaxes(0, 1) if self.batch_first and not is_single else x
        return x, ended if self.kind == "LSTM" else ended[0]

    @property
    def _time(self) -> int:
        return 1 if self.batch_first else 0

    def _start(self, hx: Any, x: Tensor, is_single: bool) -> list[Tensor]:
        """The states before the first step, each (layers · D, B, H)."""
        count, shape = 1 + (self.kind == "LSTM"), (self.num_layers * self._directions, x.shape[1], self.hidden_size)
        if hx is None:
            return [zeros(*shape, dtype=x.dtype, device=x.device)] * count
        given = _as_states(self.kind, hx)
        given = [state[:, None] if is_single and state.ndim == 2 else state for state in given]
        for state in given:
            if state.shape != shape:
                raise ShapeError(f"{self.kind}: a first state does not fit", shape, state.shape)
        return given

    def extra_repr(self) -> str:
        names = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False}
        unusual = [f", {name}={getattr(self, name)}" for name, usual in names.items() if getattr(self, name) != usual]
        return f"{self.input_size}, {self.hidden_size}" + "".join(unusual)


class RNN(_Recurrent):
    """`h_t = tanh(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh)`: (T, B, I) -> (T, B, D·H), and the last states (layers · D, B, H).

    >>> import minigrad as mg
    >>> out, last = mg.nn.RNN(3, 4)(mg.ones(5, 2, 3))
    >>> out.shape, last.shape
    ((5, 2, 4), (1, 2, 4))
    """

    kind = "RNN"

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", *args: Any, **options: Any
    ):  # fmt: skip
        _only_tanh(self.kind, nonlinearity)
        super().__init__(input_size, hidden_size, num_layers, *args, **options)


class GRU(_Recurrent):
    """`h_t = (1 - z) n + z h_(t-1)`, where the gates r and z say what of the past counts: (T, B, I) -> (T, B, D·H), (layers · D, B, H).

    `r, z = sigmoid(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh)`, and `n = tanh(W_in x_t + b_in + r (W_hn h_(t-1) + b_hn))`. The
    rows of the weights are those of r, z and n.
    """

    kind = "GRU"


class LSTM(_Recurrent):
    """`h_t = o tanh(c_t)` with the cell `c_t = f c_(t-1) + i g`: (T, B, I) -> (T, B, D·H), and a pair of last states and cells.

    The gates i, f, o are sigmoids, and g is a tanh, of `W_ih x_t + b_ih + W_hh h_(t-1) + b_hh`, whose rows are those of i, f,
    g and o.

    >>> import minigrad as mg
    >>> out, (hidden, cell) = mg.nn.LSTM(3, 4, batch_first=True, bidirectional=True)(mg.ones(2, 5, 3), lengths=[5, 3])
    >>> out.shape, cell.shape, out[1, 3:].abs().sum().item()
    ((2, 5, 8), (2, 2, 4), 0.0)
    """

    kind = "LSTM"

    def __init__(self, input_size: int, hidden_size: int, *args: Any, proj_size: int = 0, **options: Any):
        if proj_size:
            raise ArgumentError(
                "LSTM: states cannot be projected", "proj_size=0", proj_size, "put an nn.Linear behind the layer"
            )
        super().__init__(input_size, hidden_size, *args, **options)


class _Cell(Module):
    """What the cells have in common: one step, of a batch or of a single row."""

    kind: str

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, dtype: Any = None, device: str | None = None
    ):
        check_sizes(self, input_size=input_size, hidden_size=hidden_size)
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        _add_parameters(self, "", GATES[self.kind] * hidden_size, input_size, dtype, device)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters anew, evenly from ±1 / sqrt(hidden_size)."""
        _draw(self)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The next state, for an LSTM with the next cell, from the one before, which is zeros unless given."""
        x = as_tensor(input)
        name = f"{self.kind}Cell"
        if x.ndim not in (1, 2) or x.shape[-1] != self.input_size:
            expected = f"(batch, {self.input_size}), or ({self.input_size},)"
            raise ShapeError(f"{name}: the input does not fit", expected, x.shape)
        is_single, rows = x.ndim == 1, x[None] if x.ndim == 1 else x
        shape = (len(rows), self.hidden_size)
        if hx is None:
            states = [zeros(*shape, dtype=x.dtype, device=x.device)] * (1 + (self.kind == "LSTM"))
        else:
            states = [state[None] if is_single else state for state in _as_states(self.kind, hx)]
        for state in states:
            if state.shape != shape:
                raise ShapeError(f"{name}: a state does not fit", shape[is_single:], state.shape[is_single:])
        _, ends = _through(self, "", rows[None], states, None, False)
        ends = tuple(end[0] for end in ends) if is_single else ends
        return ends if self.kind == "LSTM" else ends[0]

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class RNNCell(_Cell):
    """One step of an RNN: inputs (B, I) and states (B, H) -> the next states (B, H).

    >>> import minigrad as mg
    >>> mg.nn.RNNCell(3, 4)(mg.ones(2, 3)).shape
    (2, 4)
    """

    kind = "RNN"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", **place: Any):
        _only_tanh("RNNCell", nonlinearity)
        super().__init__(input_size, hidden_size, bias, **place)


class GRUCell(_Cell):
    """One step of a GRU: inputs (B, I) and states (B, H) -> the next states (B, H)."""

    kind = "GRU"


class LSTMCell(_Cell):
    """One step of an LSTM: inputs (B, I) and a pair of states and cells, each (B, H) -> the next pair."""

    kind = "LSTM"


def _only_tanh(name: str, nonlinearity: str) -> None:
    if nonlinearity != "tanh":
        raise ArgumentError(f"{name}: the nonlinearity is always the same", "'tanh'", repr(nonlinearity))


def _add_parameters(layer: Any, ending: str, rows: int, width: int, dtype: Any, device: str | None) -> None:
    """Weights and biases by PyTorch's names."""
    shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, width), "weight_hh": (rows, layer.hidden_size)}
    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)} if layer.bias else {}
    for name, shape in shapes.items():
        setattr(layer, name + ending, new_parameter(shape, dtype, device))


def _draw(layer: Any) -> None:
    bound = 1 / math.sqrt(layer.hidden_size)
    for parameter in layer.parameters():
        init.uniform_(parameter, -bound, bound)


def _through(
    layer: Any, ending: str, x: Tensor, states: list[Tensor], lengths: Tensor | None, reverse: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """All steps in one direction: (T, B, I) -> (T, B, H), and the last state, for an LSTM the last cell as well."""
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    weights = [getattr(layer, name + ending, None) for name in names]
    op = {"RNN": kernels.rnn, "GRU": kernels.gru, "LSTM": kernels.lstm}[layer.kind]
    made = op(x, *weights, *states, lengths, reverse=reverse)
    last = 0 if reverse else x.shape[0] - 1
    if layer.kind != "LSTM":
        return made, (made[last],)
    return made[:-1], (made[last], made[-1])


def _as_states(kind: str, hx: Any) -> list[Tensor]:
    """A first state, or the pair of an LSTM."""
    if kind != "LSTM":
        return [as_tensor(hx)]
    if not isinstance(hx, (tuple, list)) or len(hx) != 2:
        raise CallError("LSTM: first states come in pairs", "(hidden, cell)", type(hx).__name__)
    return [as_tensor(state) for state in hx]


def _checked_lengths(kind: str, lengths: Any, x: Tensor) -> Tensor:
    """How many steps each row of the batch has: (B,), from 1 to T."""
    given = as_tensor(lengths)
    if given.shape != (x.shape[1],) or given.dtype.kind not in "iu":
        raise ShapeError(
            f"{kind}: the lengths do not fit", f"whole numbers ({x.shape[1]},)", f"{given.shape} {given.dtype}"
        )
    if not is_exporting() and len(given) and not 1 <= int(given.min()) <= int(given.max()) <= x.shape[0]:
        raise IndexingError(f"{kind}: a sequence cannot be so long", f"1 to {x.shape[0]} steps", given.tolist())
    return given.to(device=x.device).astype("int64")
