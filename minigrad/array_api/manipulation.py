"""Arrays in other shapes, joined, repeated, and picked from by number."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import functions as f
from ..engine.backend import owner_of
from ..engine.tensor import Tensor
from ..errors import ArgumentError, broadcast_problem

__all__ = [
    "broadcast_arrays",
    "broadcast_to",
    "concat",
    "expand_dims",
    "flip",
    "matrix_transpose",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "take",
    "take_along_axis",
    "tile",
    "unstack",
]


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """The arrays, each repeated to fill the shape they broadcast to."""
    shapes = [x.shape for x in arrays]
    if problem := broadcast_problem("broadcast_arrays", shapes):
        raise problem
    shape = np.broadcast_shapes(*shapes)
    return [f.broadcast_to(x, shape) for x in arrays]


def broadcast_to(x: Tensor, /, shape: Any) -> Tensor:
    """The elements repeated to fill a larger shape."""
    return f.broadcast_to(x, shape)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Tensor:
    """Arrays joined along an axis they have, or flattened with `axis=None`."""
    return f.concatenate(arrays, axis=axis)


def expand_dims(x: Tensor, /, axis: int) -> Tensor:
    """A new axis of size 1."""
    return f.expand_dims(x, axis)


def flip(x: Tensor, /, *, axis: Any = None) -> Tensor:
    """The elements in reverse along axes."""
    return f.flip(x, axis)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two axes exchanged."""
    return x.mT


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """Some axes moved to other places."""
    return f.moveaxis(x, source, destination)


def permute_dims(x: Tensor, /, axes: Any) -> Tensor:
    """The axes in another order."""
    return f.permute_dims(x, axes)


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Each element repeated along an axis."""
    return f.repeat(x, repeats, axis)


def reshape(x: Tensor, /, shape: Any, *, copy: bool | None = None) -> Tensor:
    """The same elements in another shape: a view where that is possible, unless `copy`."""
    result = f.reshape(x, shape)
    shares = owner_of(result.data) is owner_of(x.data)
    if copy is False and not shares:
        raise ArgumentError("reshape: this needs a copy", "copy=None or copy=True", f"{x.shape} to {shape}, copy=False")
    return result.clone() if copy and shares else result


def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    """The elements moved along axes, those that fall off coming back at the other end."""
    return f.roll(x, shift, axis)


def squeeze(x: Tensor, /, axis: Any) -> Tensor:
    """Axes of size 1 taken away."""
    return f.squeeze(x, axis)


def stack(arrays: Any, /, *, axis: int = 0) -> Tensor:
    """Arrays of one shape joined along a new axis."""
    return f.stack(arrays, axis=axis)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Slices along an axis by number."""
    return f.take(x, indices, axis)


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements that `indices` name along one axis."""
    return f.take_along_axis(x, indices, axis)


def tile(x: Tensor, repetitions: Any, /) -> Tensor:
    """The whole array repeated along each axis."""
    return f.tile(x, repetitions)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, each without it."""
    return tuple(f.unstack(x, axis))
