"""Position encodings: sinusoidal and learned ones are added to the embeddings, rotary ones (RoPE) rotate queries and keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..engine.modes import notify
from ..engine.tensor import Tensor
from ..errors import ArgumentError, IndexingError, ShapeError
from ..ops import FUNCTIONS
from ..ops.creation import tensor
from . import init
from .declaration import as_tensor
from .layers import check_sizes, new_parameter
from .module import Module

__all__ = ["LearnedPositions", "RotaryPositions", "SinusoidalPositions"]

KEPT = 2**16  # tables up to so many positions are kept; further ones are computed as they are needed


class _Angles(Module):
    """The angles `position / base^(2i / dim)` of positions and pairs i, and functions of them, kept in a table that grows.

    The table is made anew for another dtype or device, so it is neither a parameter nor a buffer.
    """

    def __init__(self, dim: int, base: float = 10000.0):
        check_sizes(self, dim=dim)
        if not base > 0:
            raise ArgumentError(f"{type(self).__name__}: base is a positive number", "such as 10000.0", base)
        self.dim, self.base = dim, base
        self._table: Tensor | None = None

    def _columns(self, angles: np.ndarray) -> np.ndarray:
        """What the table holds: (length, pairs) -> (length, columns)."""
        raise NotImplementedError

    def _rows(self, start: int, length: int, like: Tensor) -> Tensor:
        """The rows of the positions `start` to `start + length`, in the dtype and on the device of `like`."""
        if isinstance(start, bool) or not hasattr(start, "__index__") or start < 0:
            raise IndexingError(f"{type(self).__name__}: start is a whole number from 0 up", "such as 0", repr(start))
        stop = start + length
        if stop > KEPT:
            return self._computed(start, stop, like)
        table = self._table
        if table is None or len(table) < stop or table.dtype != like.dtype or table.device != like.device:
            known = 0 if table is None else len(table)
            table = self._computed(0, stop if stop <= known else min(max(stop, 2 * known, 64), KEPT), like)
            self._table = table
        notify("created", table.data)
        return table[start:stop]

    def _computed(self, start: int, stop: int, like: Tensor) -> Tensor:
        pairs = np.arange((self.dim + 1) // 2)
        angles = np.arange(start, stop)[:, None] / self.base ** (2 * pairs / self.dim)
        columns = self._columns(angles).astype(like.dtype)
        notify("created", columns)
        return tensor(columns, device=like.device)

    def extra_repr(self) -> str:
        return f"{self.dim}, base={self.base}"


def _sequence(layer: Module, x: Any, dim: int) -> Tensor:
    """The input as a Tensor (…, T, dim), floating."""
    x = as_tensor(x)
    if x.ndim < 2 or x.shape[-1] != dim or x.dtype.kind != "f":
        raise ShapeError(
            f"{type(layer).__name__}: the input does not fit", f"floating (…, T, {dim})", f"{x.shape} {x.dtype}"
        )
    return x


class SinusoidalPositions(_Angles):
    """Adds the encoding of "Attention is all you need": (…, T, dim) -> the same.

    Columns 2i and 2i + 1 of position p are `sin(p / base^(2i / dim))` and `cos(p / base^(2i / dim))`.

    >>> import minigrad as mg
    >>> [f"{x:.5f}" for x in mg.nn.SinusoidalPositions(4)(mg.zeros(2, 4))[1]]
    ['0.84147', '0.54030', '0.01000', '0.99995']
    """

    def _columns(self, angles: np.ndarray) -> np.ndarray:
        both = np.stack([np.sin(angles), np.cos(angles)], axis=-1)  # (T, pairs) -> (T, pairs, 2)
        return both.reshape(len(angles), 2 * angles.shape[1])[:, : self.dim]

    def forward(self, input: Any, start: int = 0) -> Tensor:
        """The input, whose first token stands at position `start`, plus its positions."""
        x = _sequence(self, input, self.dim)
        return x + self._rows(start, x.shape[-2], x)


class LearnedPositions(Module):
    """Adds a learned vector for each of `max_length` positions: (…, T, dim) -> the same. They start as GPT-2's do, with deviation 0.02."""

    def __init__(self, max_length: int, dim: int, dtype: Any = None, device: str | None = None):
        check_sizes(self, max_length=max_length, dim=dim)
        self.max_length, self.dim = max_length, dim
        self.weight = new_parameter((max_length, dim), dtype, device)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the vectors anew."""
        init.gpt2_(self.weight)

    def forward(self, input: Any, start: int = 0) -> Tensor:
        """The input, whose first token stands at position `start`, plus its positions."""
        x = _sequence(self, input, self.dim)
        stop = start + x.shape[-2]
        if not 0 <= start <= stop <= self.max_length:
            raise IndexingError(
                "LearnedPositions: the sequence goes beyond the positions there are",
                f"0 to {self.max_length - 1}",
                f"{start} to {stop - 1}",
                "shorten the sequence, or build the model with a larger max_length",
            )
        return x + self.weight[start:stop]

    def extra_repr(self) -> str:
        return f"{self.max_length}, {self.dim}"


class RotaryPositions(_Angles):
    """Rotary position embeddings: rotates each pair of columns (2i, 2i + 1) of queries and keys by the angle `position / base^(2i / dim)`.

    The product of a rotated query and a rotated key depends only on how far apart they stand. Shapes: (…, T, dim) -> the same.
    """

    def __init__(self, dim: int, base: float = 10000.0):
        super().__init__(dim, base)
        if dim % 2:
            raise ArgumentError("RotaryPositions: columns are rotated in pairs", "an even dim", dim)

    def _columns(self, angles: np.ndarray) -> np.ndarray:
        return np.concatenate([np.cos(angles), np.sin(angles)], axis=-1)  # (T, pairs) -> (T, 2 pairs)

    def forward(self, query: Any, key: Any, start: int = 0) -> tuple[Tensor, Tensor]:
        """Query and key, whose first tokens stand at position `start`, both rotated."""
        return self._rotated(query, start), self._rotated(key, start)

    def _rotated(self, input: Any, start: int) -> Tensor:
        x = _sequence(self, input, self.dim)
        rows, half = self._rows(start, x.shape[-2], x), self.dim // 2
        cos, sin = rows[:, :half], rows[:, half:]  # each (T, dim / 2)
        pairs = x.reshape(*x.shape[:-1], half, 2)  # (…, T, dim) -> (…, T, dim / 2, 2)
        a, b = pairs[..., 0], pairs[..., 1]
        rotated: Tensor = FUNCTIONS["stack"]([a * cos - b * sin, a * sin + b * cos], axis=-1)
        return rotated.reshape(*x.shape)
