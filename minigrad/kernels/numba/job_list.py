"""A sequence of jobs for a few rows of input, put together once and run again and again with other numbers in its memory.

A `JobList` owns the memory that its jobs read and write. What a job is told about a row of the batch, such as how many
there are, stands in words that can be changed between runs.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ..packed import Packed
from . import decode_kernels as parts
from .dequantize import STEP
from .packed import (
    ADDS,
    BIAS,
    BLOCKS,
    COLUMNS,
    COUNT,
    OUT,
    OUT_ROW,
    PART,
    ROWS,
    WEIGHT,
    WEIGHT_ROW,
    X_ROW,
    X,
    blocks_in,
    part_function,
    rows_of_a_part,
)
from .thread_pool import FUNCTION, JOB_WORDS, PARTS, ROOM, TAKEN, address_of, pool_for, run_jobs

__all__ = ["ROOM", "JobList"]

F = np.float32
TAKES = 16  # times that threads take some of the parts, if these are small


@cache
def _function(name: str) -> int:
    return address_of(getattr(parts, name))


def _address(array: np.ndarray | None) -> int:
    return 0 if array is None else int(array.__array_interface__["data"][0])


def _bits(number: float) -> int:
    """A float64 as the whole number that has its bits."""
    return int(np.float64(number).view(np.int64))


class JobList:
    """Jobs for up to so many rows of a batch, the memory they work on, and the arrays whose addresses they know, which are kept alive."""

    def __init__(self, rows: int) -> None:
        self.most_rows = rows
        # rows of the batch, positions before the new one, positions with it, and positions of a memory
        self.words = np.zeros(4, np.int64)
        self.rows_at, self.past_at, self.seen_at, self.memory_at = (_address(self.words) + 8 * i for i in range(4))
        self._jobs: list[dict[int, int]] = []
        self._per_row: list[int] = []  # parts for each row of the batch, or 0
        self._rooms: dict[tuple[str, int], np.ndarray] = {}
        self._kept: list[Any] = []
        self.table = np.zeros((0, JOB_WORDS), np.int64)
        self._size = 0  # bytes of all weights

    def room(self, name: str, columns: int) -> np.ndarray:
        """Memory for rows of so many numbers, with zeros to a multiple of 32 behind each; the same whenever it is asked for."""
        if (name, columns) not in self._rooms:
            self._rooms[name, columns] = np.zeros((self.most_rows, -(-columns // STEP) * STEP), F)
        return self._rooms[name, columns]

    def _add(self, function: int, words: dict[int, int], per_row: int = 0, count: int = 1) -> int:
        self._jobs.append({FUNCTION: function, PARTS: count, **words})
        self._per_row.append(per_row)
        return len(self._jobs) - 1

    def _at(self, array: np.ndarray | None) -> int:
        self._kept.append(array)
        return _address(array)

    def linear(self, x: np.ndarray, weight: Any, bias: np.ndarray | None, out: np.ndarray, adds: bool = False) -> None:
        """`out = x @ weight.T + bias`, or `+=`; the weight is an array of float32 or packed."""
        data, format = (weight.data, weight.format) if isinstance(weight, Packed) else (weight, "f32")
        columns, row = weight.shape[1], data.strides[0]
        part = rows_of_a_part(len(data), row, self.most_rows)
        words = {
            WEIGHT: self._at(data), WEIGHT_ROW: row, X: _address(x), X_ROW: x.strides[0], OUT: _address(out),
            OUT_ROW: out.strides[0], BIAS: self._at(bias), COUNT: self.rows_at, ROWS: len(data), COLUMNS: columns,
            BLOCKS: blocks_in(format, columns), PART: part, ADDS: int(adds),
        }  # fmt: skip
        self._add(part_function(format), words, count=-(-len(data) // part))
        self._size += data.nbytes

    def norm(
        self,
        x: np.ndarray,
        size: int,
        weight: Any,
        bias: Any,
        eps: float,
        is_rms: bool,
        out: np.ndarray,
        adds: bool = False,
    ) -> None:
        """`out = norm(x)`, or `+=`, over the first `size` columns."""
        words = {
            parts.N_X: _address(x), parts.N_X_ROW: x.strides[0], parts.N_OUT: _address(out), parts.N_SIZE: size,
            parts.N_OUT_ROW: out.strides[0], parts.N_WEIGHT: self._at(weight), parts.N_BIAS: self._at(bias),
            parts.N_IS_RMS: int(is_rms), parts.N_EPS: _bits(eps), parts.N_ADDS: int(adds),
        }  # fmt: skip
        self._add(_function("norm_part"), words, per_row=1)

    def activation(self, name: str, gated: bool, x: np.ndarray, size: int, out: np.ndarray) -> None:
        """`out = activation(x)`, or `activation(x[:size]) * x[size:]`."""
        words = {
            parts.A_X: _address(x), parts.A_X_ROW: x.strides[0], parts.A_OUT: _address(out),
            parts.A_OUT_ROW: out.strides[0], parts.A_SIZE: size,
        }  # fmt: skip
        self._add(parts.activation_function(name, gated), words, per_row=1)

    def positions(
        self,
        x: np.ndarray,
        heads: int,
        shared: int,
        width: int,
        turns: np.ndarray | None,
        turned: int,
        is_half: bool,
        norms: Any,
    ) -> int:
        """Norms and rotations of queries and keys, and the new row of the cache; the number of the job, for `see`."""
        (q_norm, q_eps), (k_norm, k_eps) = norms
        words = {
            parts.P_X: _address(x), parts.P_X_ROW: x.strides[0], parts.P_HEADS: heads, parts.P_SHARED: shared,
            parts.P_WIDTH: width, parts.P_PAST: self.past_at, parts.P_TURNS: _address(turns), parts.P_TURNED: turned,
            parts.P_TURNS_ROW: 0 if turns is None else turns.strides[0], parts.P_IS_HALF: int(is_half),
            parts.P_Q_NORM: self._at(q_norm), parts.P_K_NORM: self._at(k_norm),
            parts.P_Q_EPS: _bits(q_eps), parts.P_K_EPS: _bits(k_eps),
        }  # fmt: skip
        return self._add(_function("position_part"), words, per_row=1)

    def attention(
        self,
        x: np.ndarray,
        heads: int,
        shared: int,
        width: int,
        scale: float,
        window: int,
        count_at: int,
        out: np.ndarray,
    ) -> int:
        """Attention of new queries to a cache; the number of the job, for `see` and `mask`."""
        words = {
            parts.Q_X: _address(x), parts.Q_X_ROW: x.strides[0], parts.Q_OUT: _address(out),
            parts.Q_OUT_ROW: out.strides[0], parts.Q_HEADS: heads, parts.Q_SHARED: shared, parts.Q_WIDTH: width,
            parts.Q_COUNT: count_at, parts.Q_SCALE: _bits(scale), parts.Q_WINDOW: window,
        }  # fmt: skip
        return self._add(_function("attention_part"), words, per_row=shared)

    def most_positions(self, group: int, width: int) -> int:
        """How many positions the heads that share keys, so many of them, can look at."""
        return (ROOM - parts.attention_room(0, group, width)) // (group + 3)

    def state(self, x: np.ndarray, gates: np.ndarray, size: int, out: np.ndarray, adds: bool) -> int:
        """One step of a recurrence, written or added to `out`; the number of the job, for `remember`."""
        words = {
            parts.S_X: _address(x), parts.S_X_ROW: x.strides[0], parts.S_GATES: _address(gates),
            parts.S_GATES_ROW: gates.strides[0], parts.S_OUT: _address(out), parts.S_OUT_ROW: out.strides[0],
            parts.S_SIZE: size, parts.S_ADDS: int(adds),
        }  # fmt: skip
        return self._add(_function("state_part"), words, per_row=1)

    def finish(self) -> None:
        """No more jobs come."""
        self.table = np.array([[job.get(place, 0) for place in range(JOB_WORDS)] for job in self._jobs], np.int64)
        self._multiples = np.array(self._per_row)

    def see(self, job: int, keys: np.ndarray, values: np.ndarray, slots: np.ndarray | None) -> None:
        """Let a job look at, or write to, these keys and values, (n, h, positions, E), of which slots (B, positions or 1) say the rows."""
        self.table[job, parts.KEYS : parts.KEYS + 4] = _address(keys), *keys.strides[:3]
        self.table[job, parts.VALUES : parts.VALUES + 4] = _address(values), *values.strides[:3]
        row, step = (0, 0) if slots is None else (slots.strides[0], slots.strides[1] if slots.shape[1] > 1 else 0)
        self.table[job, parts.SLOTS : parts.SLOTS + 3] = _address(slots), row, step

    def mask(self, jobs: list[int], mask: np.ndarray | None) -> None:
        """Let attentions look only where a mask (B or 1, 1, 1, S) is True."""
        batch, key = (0, 0) if mask is None else (mask.strides[0] if len(mask) > 1 else 0, mask.strides[3])
        self.table[jobs, parts.Q_MASK : parts.Q_MASK + 3] = _address(mask), batch, key

    def remember(self, job: int, state: np.ndarray) -> None:
        """Let a recurrence read and write this state, (B, C)."""
        self.table[job, parts.S_STATE : parts.S_STATE + 2] = _address(state), state.strides[0]

    def run(self, rows: int, past: int, memory: int = 0) -> None:
        """Run all jobs for so many rows of the batch, each with so many positions before the new one."""
        if rows != self.words[0]:
            parts = np.where(self._multiples > 0, self._multiples * rows, self.table[:, PARTS])
            self.table[:, PARTS] = parts
            self.table[:, TAKEN] = np.where(self._multiples > 0, parts // TAKES, 1)
        self.words[:] = rows, past, past + 1, memory
        run_jobs(_address(self.table), len(self.table), pool_for(True), self._size > 1 << 18)
