"""Position encodings: sinusoidal and learned ones are added to the embeddings, relative ones to the scores of attention.

Rotary ones (RoPE), which rotate queries and keys, are in rotary.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...engine.modes import notify
from ...engine.tensor import Tensor
from ...errors import ArgumentError, IndexingError, ShapeError
from ...ops.composite import host_constant
from ...ops.creation import arange, tensor
from ...ops.elementwise.arithmetic import clip
from ...tracer import is_exporting
from .. import functional as F
from .. import init
from ..functional.declaration import as_tensor
from ..layers.linear import check_sizes, new_parameter
from ..module import Module
from .masks import restricted

__all__ = ["LearnedPositions", "RelativePositions", "SinusoidalPositions"]

KEPT = 2**16  # tables up to so many positions are kept; further ones are computed as they are needed


class Angles(Module):
    """The angles `position / base^(2i / dim)` of positions and pairs i, and functions of them, kept in a table that grows.

    The table is made anew for another dtype or device, so it is neither a parameter nor a buffer.
    """

    def __init__(self, dim: int, base: float = 10000.0):
        check_sizes(self, dim=dim)
        if not base > 0:
            raise ArgumentError(f"{type(self).__name__}: base is a positive number", "such as 10000.0", base)
        self.dim, self.base = dim, base
        self._table: Tensor | None = None

    def periods(self) -> np.ndarray:
        """What a position is divided by to give its angles: (pairs,)."""
        return self.base ** (2 * np.arange((self.dim + 1) // 2) / self.dim)

    def _columns(self, angles: np.ndarray) -> np.ndarray:
        """What the table holds: (length, pairs) -> (length, columns)."""
        raise NotImplementedError

    def rows(self, start: int, length: int, positions: Any, like: Tensor) -> Tensor:
        """The rows of the positions `start` to `start + length`, or of those given, (B, length), in the dtype and on the device of `like`."""
        if positions is not None:
            places = checked_positions(self, positions, like)
            top = int(places.max()) + 1 if places.size else 0
            return self._computed(places.numpy(), like) if top > KEPT else self._table_of(top, like)[places]
        if isinstance(start, bool) or not hasattr(start, "__index__") or start < 0:
            raise IndexingError(f"{type(self).__name__}: start is a whole number from 0 up", "such as 0", repr(start))
        stop = start + length
        if stop > KEPT:
            return self._computed(np.arange(start, stop), like)
        return self._table_of(stop, like)[start:stop]

    def _table_of(self, stop: int, like: Tensor) -> Tensor:
        """The table, of `stop` rows or more."""
        table = self._table
        if table is None or len(table) < stop or table.dtype != like.dtype or table.device != like.device:
            known = 0 if table is None else len(table)
            size = stop if stop <= known else min(max(stop, 2 * known, 64), KEPT)
            self._table = table = self._computed(np.arange(size), like)
        notify("created", table.data)
        return table

    def _computed(self, places: np.ndarray, like: Tensor) -> Tensor:
        columns = self._columns(places[..., None] / self.periods()).astype(like.dtype)
        notify("created", columns)
        return tensor(columns, device=like.device)

    def extra_repr(self) -> str:
        return f"{self.dim}, base={self.base}"


def sequence(layer: Module, x: Any, dim: int) -> Tensor:
    """The input as a Tensor (…, T, dim), floating."""
    x = as_tensor(x)
    if x.ndim < 2 or x.shape[-1] != dim or x.dtype.kind != "f":
        raise ShapeError(
            f"{type(layer).__name__}: the input does not fit", f"floating (…, T, {dim})", f"{x.shape} {x.dtype}"
        )
    return x


def checked_positions(layer: Module, positions: Any, like: Tensor) -> Tensor:
    """Positions as a Tensor (B, T) of whole numbers from 0 up; (T,) are the same for every row."""
    places = as_tensor(positions)
    places = places[None] if places.ndim == 1 else places
    expected = f"whole numbers ({like.shape[0]} or 1, {like.shape[-2]})"
    if places.dtype.kind not in "iu" or places.ndim != 2 or places.shape[1] != like.shape[-2]:
        got = f"{places.shape} {places.dtype}"
        raise ShapeError(f"{type(layer).__name__}: these are no positions of the rows", expected, got)
    if not is_exporting() and (places < 0).any():
        raise IndexingError(f"{type(layer).__name__}: positions are numbered from 0 up", expected, int(places.min()))
    return places


class SinusoidalPositions(Angles):
    """Adds the encoding of "Attention is all you need": (…, T, dim) -> the same.

    Columns 2i and 2i + 1 of position p are `sin(p / base^(2i / dim))` and `cos(p / base^(2i / dim))`; with `halves`, as in
    Marian, all sines come first, and then all cosines.

    >>> import minigrad as mg
    >>> [f"{x:.5f}" for x in mg.nn.SinusoidalPositions(4)(mg.zeros(2, 4))[1]]
    ['0.84147', '0.54030', '0.01000', '0.99995']
    """

    def __init__(self, dim: int, base: float = 10000.0, halves: bool = False):
        super().__init__(dim, base)
        self.halves = halves

    def _columns(self, angles: np.ndarray) -> np.ndarray:
        axis = -2 if self.halves else -1
        both = np.stack([np.sin(angles), np.cos(angles)], axis=axis)  # (…, pairs) -> (…, 2, pairs) or (…, pairs, 2)
        return both.reshape(*angles.shape[:-1], 2 * angles.shape[-1])[..., : self.dim]

    def forward(self, input: Any, start: int = 0, positions: Any = None) -> Tensor:
        """The input, whose first token stands at position `start`, or whose tokens stand at `positions` (B, T), plus these."""
        x = sequence(self, input, self.dim)
        return x + self.rows(start, x.shape[-2], positions, x)


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

    def forward(self, input: Any, start: int = 0, positions: Any = None) -> Tensor:
        """The input, whose first token stands at position `start`, or whose tokens stand at `positions` (B, T), plus these."""
        x = sequence(self, input, self.dim)
        if positions is not None:
            return x + F.embedding(checked_positions(self, positions, x), self.weight)
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


class RelativePositions(Module):
    """T5's: a learned number for each head and each distance, added to the scores of attention.

    Short distances have a bucket each; longer ones share buckets that grow with their logarithm, and from `distance` on
    there is one. If attention is not `bidirectional`, all keys after the query share the bucket of distance 0. All blocks of a stack
    share one table, `weight` (buckets, heads).

    >>> import minigrad as mg
    >>> mg.nn.RelativePositions(heads=2)(3, 5).shape
    (1, 2, 3, 5)
    """

    def __init__(
        self,
        heads: int,
        buckets: int = 32,
        distance: int = 128,
        bidirectional: bool = True,
        dtype: Any = None,
        device: str | None = None,
    ):
        check_sizes(self, heads=heads, buckets=buckets, distance=distance)
        self.heads, self.buckets, self.distance, self.bidirectional = heads, buckets, distance, bidirectional
        exact = buckets // (4 if bidirectional else 2)
        if exact < 1 or distance <= exact:
            got = f"buckets={buckets}, distance={distance}"
            raise ArgumentError(
                "RelativePositions: there is nothing to share", "4 or more buckets, fewer than distance", got
            )
        self.weight = new_parameter((buckets, heads), dtype, device)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the numbers anew."""
        init.gpt2_(self.weight)

    def forward(self, queries: int, keys: int, start: int = 0) -> Tensor:
        """What is added to the scores of so many queries, the first of which stands at position `start`: (1, h, L, S)."""
        most, device = self.distance, self.weight.device  # all that are further share a bucket
        buckets = host_constant(self._bucket(np.arange(-most, most + 1)))
        of_distance = F.embedding(tensor(buckets, device=device), self.weight)  # (2 · most + 1, h)
        away = arange(keys, device=device) - (start + arange(queries, device=device))[:, None]  # (L, S)
        picked = F.embedding(clip(away, -most, most) + most, of_distance)  # (L, S, h)
        return picked.transpose(2, 0, 1)[None]

    def added(self, mask: Any, length: int, past: int) -> Tensor:
        """The same for self-attention of `length` positions after `past` ones, together with a mask, if there is one."""
        bias, mask = self(length, past + length, past), as_tensor(mask)
        if mask is None:
            return bias
        return restricted(bias, mask) if mask.dtype.kind == "b" else bias + mask

    def _bucket(self, away: np.ndarray) -> np.ndarray:
        """The number of the bucket of each distance; in float32, as T5 does, since a logarithm decides at the edges."""
        count, ahead = (
            (self.buckets // 2, away > 0) if self.bidirectional else (self.buckets, np.zeros(away.shape, bool))
        )
        far = np.abs(away) if self.bidirectional else np.maximum(-away, 0)
        exact = count // 2
        share = np.log(np.maximum(far, 1).astype(np.float32) / np.float32(exact)) / np.float32(
            np.log(self.distance / exact)
        )
        grown = exact + (share * np.float32(count - exact)).astype(np.int64)
        return np.where(far < exact, far, np.minimum(grown, count - 1)) + count * ahead

    def extra_repr(self) -> str:
        sizes = f"{self.heads}, buckets={self.buckets}, distance={self.distance}"
        return sizes + ("" if self.bidirectional else ", bidirectional=False")
