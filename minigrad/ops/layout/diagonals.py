"""Diagonals: read from matrices, summed, and made into matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...engine.tensor import Tensor
from ...errors import ArgumentError, AxisError, ShapeError, is_whole
from ..composite import composite
from ..creation import tensor
from ..indexing.getitem import place
from ..reductions.reduction import sum as sum_
from .joining import concatenate
from .padding import pad
from .shape import atleast_2d, moveaxis, one_axis, ravel


@composite
def diagonal(a, *, offset=0, axis1=0, axis2=1):
    """A diagonal of two axes, as the last axis, as NumPy's."""
    if a.ndim < 2:
        raise ShapeError("diagonal: two axes are needed", "at least 2 axes", f"shape {a.shape}")
    planes = moveaxis(a, source=(axis1, axis2), destination=(-2, -1))
    rows, columns = planes.shape[-2:]
    length = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    start = np.arange(length)
    return planes[..., start + max(-offset, 0), start + max(offset, 0)]


@composite
def trace(a, *, offset=0, axis1=0, axis2=1):
    """The sum of a diagonal, as NumPy's."""
    return sum_(diagonal(a, offset=offset, axis1=axis1, axis2=axis2), axis=-1)


@composite
def diag_embed(a, *, offset=0, axis1=-2, axis2=-1):
    """The last axis as a diagonal of two new axes, zeros elsewhere, as PyTorch's: (…, n) -> (…, n, n)."""
    if a.ndim == 0:
        raise ShapeError("diag_embed: an axis is needed", "at least 1 axis", "shape ()", "use x.reshape(1)")
    first, second = [one_axis("diag_embed", axis, a.ndim + 1) for axis in (axis1, axis2)]
    if first == second:
        raise AxisError("diag_embed: an axis is named twice", "two new axes", f"axis1={axis1}, axis2={axis2}")
    start, side = np.arange(a.shape[-1]), a.shape[-1] + abs(offset)
    index = (..., start + max(-offset, 0), start + max(offset, 0))
    planes = place(a, index=index, shape=(*a.shape[:-1], side, side))
    return moveaxis(planes, source=(-2, -1), destination=(first, second))


@composite
def diag(a, *, k=0):
    """A vector as the diagonal of a matrix, or the diagonal of a matrix as a vector, as NumPy's."""
    if a.ndim == 2:
        return diagonal(a, offset=k)
    if a.ndim != 1:
        raise ShapeError("diag: a vector or a matrix is needed", "1 or 2 axes", f"shape {a.shape}")
    return diag_embed(a, offset=k)


@composite
def diagflat(a, *, k=0):
    """All elements as the diagonal of a matrix, as NumPy's."""
    return diag_embed(ravel(a), offset=k)


@composite(method=False)
def block_diag(*arrays):
    """Matrices along the diagonal of a larger one, zeros elsewhere, as PyTorch's; a vector is a row: `block_diag(a, b)`."""
    blocks = [atleast_2d(x) for x in arrays]
    if wide := [x.shape for x in blocks if x.ndim > 2]:
        raise ShapeError("block_diag: a block is no matrix", "at most 2 axes", f"shape {wide[0]}")
    starts = np.cumsum([0, *[x.shape[1] for x in blocks]]).tolist()
    rows = [pad(x, pad_width=((0, 0), (start, starts[-1] - start - x.shape[1]))) for x, start in zip(blocks, starts)]
    return concatenate(rows, axis=0)


def tril_indices(n: int, k: int = 0, m: int | None = None, device: str | None = None) -> tuple[Tensor, Tensor]:
    """The rows and columns of the lower triangle of an n × m matrix, as NumPy's: `x[mg.tril_indices(3)]`."""
    return _places(np.tri(*_sides("tril_indices", n, m), k=k, dtype=bool), device)


def triu_indices(n: int, k: int = 0, m: int | None = None, device: str | None = None) -> tuple[Tensor, Tensor]:
    """The rows and columns of the upper triangle of an n × m matrix, as NumPy's: `x[mg.triu_indices(3)]`."""
    return _places(~np.tri(*_sides("triu_indices", n, m), k=k - 1, dtype=bool), device)


def _sides(name: str, n: Any, m: Any) -> tuple[int, int]:
    sides = (n, n if m is None else m)
    if not all(is_whole(side) and side >= 0 for side in sides):
        raise ArgumentError(f"{name}: the sides of a matrix are whole numbers from 0 up", "n and m", f"{n!r} and {m!r}")
    return sides


def _places(mask: np.ndarray, device: str | None) -> tuple[Tensor, Tensor]:
    rows, columns = np.nonzero(mask)
    return tensor(rows, device=device), tensor(columns, device=device)
