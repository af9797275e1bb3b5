"""Weights that stay packed: `Packed`, a matrix in fewer bits than float32, and the product with one.

What is multiplied is made of the bytes anew each time, a panel of rows that fits the cache at a time; there is never a
whole matrix of floats. Bytes have no gradient: they are for models that are done with training.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..engine.backend import Array, device_of, is_array, on_device_of, to_numpy
from ..engine.op import op
from ..engine.tensor import Tensor, wrap
from ..errors import ArgumentError, DtypeError, ShapeError, describe, nearest
from ..maths.packing import FORMATS, decoded, encoded, row_bytes
from ..ops.layout.joining import concatenate
from .definitions import _linear_cost, linear
from .numpy import register, rows_of
from .registry import fused

__all__ = ["Packed", "packed_linear"]

PANEL = 1 << 17  # numbers that are floats at a time


class Packed:
    """A matrix (out, in) kept as bytes in one of the formats of `FORMATS`; what stands in a module's place of a weight.

    `data` are its bytes, (out, bytes of a row), as a file has them, and may be a part of that file in memory. It is never
    written to or trained; `F.linear` and `F.embedding` take it for a weight, and compute in float32.

    >>> import minigrad as mg
    >>> packed = mg.nn.Packed.from_floats(mg.tensor([[0.5, -1.0, 0.25]]), "q8_0")
    >>> packed.shape, packed.data.shape, mg.nn.functional.linear(mg.tensor([[4.0, 1.0, 0.0]]), packed).shape
    ((1, 3), (1, 34), (1, 1))
    """

    __slots__ = ("format", "shape", "tensor")
    dtype = np.dtype("float32")  # of what its numbers are computed in
    ndim = 2
    requires_grad = False

    def __init__(self, data: Any, format: str, shape: Sequence[int]):
        data = data.data if isinstance(data, Tensor) else data
        if format not in FORMATS:
            raise ArgumentError(f"Packed: unknown format {format!r}", ", ".join(FORMATS), fix=nearest(format, FORMATS))
        if not is_array(data) or data.dtype != "uint8":
            raise DtypeError("Packed: the data are not bytes", "an array of uint8", describe(data))
        self.format, self.shape = format, _checked_shape(shape)
        expected = self.shape[0], row_bytes(format, self.shape[1])
        if data.shape != expected:
            raise ShapeError(f"Packed: these are not the bytes of {self.shape} in {format}", expected, data.shape)
        is_mapped = isinstance(data, np.ndarray) and type(data) is not np.ndarray
        self.tensor = wrap(data.view(np.ndarray) if is_mapped else data)

    @classmethod
    def from_floats(cls, weight: Any, format: str) -> Packed:
        """A matrix of floats, rounded to what the format can hold, on the same device."""
        if format not in FORMATS:
            raise ArgumentError(f"Packed: unknown format {format!r}", ", ".join(FORMATS), fix=nearest(format, FORMATS))
        array = weight.data if isinstance(weight, Tensor) else np.asarray(weight)
        if array.ndim != 2 or array.dtype.kind != "f":
            raise ShapeError("Packed: only a matrix can be packed", "floating (out, in)", describe(weight))
        data = wrap(encoded(to_numpy(array), format))
        return cls(data.to(device=device_of(array)), format, array.shape)

    @classmethod
    def concatenate(cls, parts: Sequence[Packed]) -> Packed:
        """The rows of several, one below the other; they have one format and one number of columns."""
        kinds = {(part.format, part.shape[1]) for part in parts}
        if len(kinds) != 1:
            raise ShapeError("Packed: these cannot be one matrix", "one format and width", ", ".join(map(repr, parts)))
        rows = sum(part.shape[0] for part in parts)
        return cls(concatenate([part.tensor for part in parts]), parts[0].format, (rows, parts[0].shape[1]))

    @property
    def data(self) -> Array:
        """The bytes, (out, bytes of a row)."""
        return self.tensor.data

    @property
    def device(self) -> str:
        """Where the bytes are."""
        return self.tensor.device

    @property
    def size(self) -> int:
        """How many numbers it stands for."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """How many bytes it takes."""
        return int(self.data.nbytes)

    def __getitem__(self, rows: Any) -> Packed:
        """Some of its rows, in the same memory where these are a slice."""
        picked = self.tensor[rows]
        if picked.ndim != 2:
            raise ArgumentError("Packed: only rows can be taken out, several at once", "packed[2:5]", repr(rows))
        return Packed(picked, self.format, (len(picked), self.shape[1]))

    def __len__(self) -> int:
        return self.shape[0]

    def dequantized(self) -> Array:
        """What it stands for: float32 (out, in)."""
        with on_device_of(self.data):
            return _dequantized(self.data, format=self.format, columns=self.shape[1])

    def rows(self, numbers: Tensor) -> Tensor:
        """The rows of these numbers as floats, as an embedding: whole numbers (…) -> float32 (…, in)."""
        picked = self.tensor[numbers.reshape(-1)]
        floats = _dequantized(picked, format=self.format, columns=self.shape[1])
        return floats.reshape(*numbers.shape, self.shape[1])

    def to(self, device: str) -> Packed:
        """The same on another device."""
        moved = self.tensor.to(device=device)
        return self if moved.data is self.data else Packed(moved, self.format, self.shape)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise DtypeError(
            "a packed weight is no array",
            "F.linear or F.embedding, which compute with it",
            repr(self),
            "packed.dequantized() gives floats",
        )

    def __copy__(self) -> Packed:
        return self  # nothing of it ever changes

    def __deepcopy__(self, memo: Any) -> Packed:
        return self

    def __repr__(self) -> str:
        return f"Packed({self.format}, {self.shape})"


def _checked_shape(shape: Any) -> tuple[int, int]:
    sizes = tuple(shape) if isinstance(shape, (list, tuple)) else ()
    if len(sizes) != 2 or not all(type(n) is int and n > 0 for n in sizes):
        raise ShapeError("Packed: it is a matrix", "(out, in), whole numbers from 1 up", repr(shape))
    return sizes


@op(cost=2)
def _dequantized(xp, data, *, format, columns):
    """Packed rows as floats: uint8 (n, bytes of a row) -> float32 (n, columns)."""
    return decoded(xp, data, format, columns)


@fused(
    formulas={"x": "g @ the weight that the bytes stand for", "bias": "g summed over all rows"},
    cost=_linear_cost,
    lowering="whole",
)
def packed_linear(x, data, bias, *, format):
    """`x @ weight.T + bias` with a packed weight: (…, in), bytes (out, bytes of a row), (out,) or None -> (…, out)."""
    return linear.function(x, _dequantized(data, format=format, columns=x.shape[-1]), bias)


def panels(data: np.ndarray, format: str, columns: int) -> Iterator[tuple[slice, np.ndarray]]:
    """Some rows at a time, and what they stand for, (rows, columns); it is gone when the next ones come."""
    step = max(PANEL // columns, 1)
    for first in range(0, len(data), step):
        rows = slice(first, first + step)
        yield rows, decoded(np, data[rows], format, columns)


def packed_linear_forward(x, data, bias, *, format, panels=panels):
    rows, out = rows_of(x), np.empty((x.size // x.shape[-1], len(data)), x.dtype)
    for some, weight in panels(data, format, x.shape[-1]):
        np.matmul(rows, weight.T, out=out[:, some])  # (N, in) @ (in, some) -> (N, some)
    if bias is not None:
        out += bias
    return out.reshape(*x.shape[:-1], len(data)), None


def packed_linear_backward(g, kept, needs, x, data, bias, *, format, panels=panels):
    rows, to_x = rows_of(g), None  # (N, out)
    if needs[0]:
        to_x = np.zeros((len(rows), x.shape[-1]), x.dtype)
        for some, weight in panels(data, format, x.shape[-1]):
            to_x += rows[:, some] @ weight  # (N, some) @ (some, in) -> (N, in)
        to_x = to_x.reshape(x.shape)
    return to_x, None, rows.sum(axis=0) if needs[2] else None


def accepts_packed(x, data, bias, *, format):
    if x.dtype != np.float32 or x.size == 0 or data.shape[1:] != (row_bytes(format, x.shape[-1]),):
        return False
    return bias is None or bias.dtype == x.dtype and bias.shape == data.shape[:1]


register(packed_linear, packed_linear_forward, packed_linear_backward, accepts_packed)
