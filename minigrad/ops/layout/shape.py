"""Ops that move, repeat, join or cut elements and change none of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...engine.op import op
from ...errors import ArgumentError, ShapeError, axes_of, axis_problem, broadcast_problem, is_whole
from ..composite import composite


def one_axis(where: str, axis: Any, ndim: int, shape: Any = None) -> int:
    """A single axis counted from 0, or an error that names the function."""
    if problem := axis_problem(where, axis, ndim, shape if shape is not None else ("?",) * ndim):
        raise problem
    return axis % ndim


@op(view=True, method=False, formulas={"a": "g, reshaped back"})
def reshape(xp, a, *, shape):
    """The same elements in another shape, as NumPy's; one size may be -1."""
    return a.reshape(shape)


def _explain_reshape(a, shape):
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if not all(is_whole(n) for n in sizes):
        return "a shape made of whole numbers, such as (2, 3)", "give the sizes as ints"
    known = math.prod(n for n in sizes if n >= 0)
    if any(n < 0 for n in sizes):
        return (
            f"at most one -1, and other sizes whose product divides {a.size}",
            f"the other sizes of {sizes} make {known}",
        )
    return (
        f"a shape with {a.size} elements, as many as {a.shape} has",
        f"{sizes} has {known}: change a size, or let one be -1",
    )


reshape.explain = _explain_reshape
reshape.vjp(a=lambda g, a_shape: reshape(g, shape=a_shape))


@composite
def ravel(a):
    """All elements on one axis, as NumPy's."""
    return reshape(a, shape=(-1,))


@composite
def flatten(a, *, start_axis=0, end_axis=-1):
    """The axes from `start_axis` to `end_axis` joined into one."""
    if a.ndim == 0:
        return reshape(a, shape=(1,))
    start, end = one_axis("flatten", start_axis, a.ndim, a.shape), one_axis("flatten", end_axis, a.ndim, a.shape)
    if start > end:
        raise ArgumentError(
            "flatten: start_axis comes after end_axis", "start_axis <= end_axis", f"{start_axis} and {end_axis}"
        )
    return reshape(a, shape=(*a.shape[:start], math.prod(a.shape[start : end + 1]), *a.shape[end + 1 :]))


@op(view=True, method=False, formulas={"a": "g, transposed back"})
def transpose(xp, a, *, axes=None):
    """The axes in another order, reversed unless given, as NumPy's."""
    return a.transpose(axes)


def _explain_transpose(a, axes=None):
    once = f"each axis of {a.shape} once, as in {tuple(range(a.ndim))[::-1]}"
    return axis_problem("transpose", axes, a.ndim, a.shape) or (once, "x.transpose() alone reverses them")


transpose.explain = _explain_transpose
transpose.vjp(
    a=lambda g, axes, a_ndim: transpose(
        g, axes=None if axes is None else tuple(np.argsort([i % a_ndim for i in axes]).tolist())
    )
)


@composite
def permute_dims(a, *, axes):
    """The axes in another order, as NumPy's."""
    return transpose(a, axes=axes)


@composite
def swapaxes(a, *, axis1, axis2):
    """Two axes exchanged, as NumPy's."""
    order = list(range(a.ndim))
    i, j = one_axis("swapaxes", axis1, a.ndim, a.shape), one_axis("swapaxes", axis2, a.ndim, a.shape)
    order[i], order[j] = j, i
    return transpose(a, axes=tuple(order))


@composite
def moveaxis(a, *, source, destination):
    """Some axes moved to other places, as NumPy's; the others keep their order."""
    sources, destinations = axes_of(source), axes_of(destination)
    for axes in (sources, destinations):
        if problem := axis_problem("moveaxis", axes, a.ndim, a.shape):
            raise problem
    if len(sources) != len(destinations):
        raise ArgumentError(
            "moveaxis: as many places as axes are needed",
            f"{len(sources)} destinations",
            len(destinations),
            "give one destination for each source",
        )
    moved = {d % a.ndim: s % a.ndim for s, d in zip(sources, destinations)}
    rest = iter([i for i in range(a.ndim) if i not in moved.values()])
    return transpose(a, axes=tuple([moved[i] if i in moved else next(rest) for i in range(a.ndim)]))


@composite
def expand_dims(a, *, axis):
    """A new axis of size 1 at each of the given places, as NumPy's."""
    axes = axes_of(axis)
    ndim = a.ndim + len(axes)
    if problem := axis_problem("expand_dims", axes, ndim, a.shape):
        raise problem
    places = {i % ndim for i in axes}
    sizes = iter(a.shape)
    return reshape(a, shape=tuple([1 if i in places else next(sizes) for i in range(ndim)]))


@composite
def squeeze(a, *, axis=None):
    """The axes of size 1 taken away, all of them or the given ones, as NumPy's."""
    if axis is None:
        return reshape(a, shape=tuple([n for n in a.shape if n != 1]))
    axes = axes_of(axis)
    if problem := axis_problem("squeeze", axes, a.ndim, a.shape):
        raise problem
    gone = {i % a.ndim for i in axes}
    if wide := [i for i in gone if a.shape[i] != 1]:
        raise ShapeError(
            "squeeze: only axes of size 1 can be taken away",
            f"axis {wide[0]} of size 1",
            f"shape {a.shape}",
            f"pick one element with an index, or reduce the axis with x.sum(axis={wide[0]})",
        )
    return reshape(a, shape=tuple([n for i, n in enumerate(a.shape) if i not in gone]))


@op(view=True, formulas={"a": "g, summed over the copies"})
def broadcast_to(xp, a, *, shape):
    """The elements repeated, without a copy, to fill a larger shape, as NumPy's."""
    return xp.broadcast_to(a, shape)


broadcast_to.explain = lambda a, shape: (
    f"a shape that {a.shape} broadcasts to",
    "sizes must agree from the right, or be 1 in the tensor",
)
broadcast_to.vjp(a=lambda g: g)


@op(view=True)
def flip(xp, a, *, axis=None):
    """The elements in reverse along axes, as NumPy's."""
    return xp.flip(a, axis=axis)


flip.vjp(a=lambda g, axis: flip(g, axis=axis))


@op(cost=0)
def roll(xp, a, *, shift, axis=None):
    """The elements moved along axes, those that fall off coming back at the other end, as NumPy's."""
    return xp.roll(a, shift, axis=axis)


def _back(shift):
    return -shift if is_whole(shift) else tuple(-s for s in shift)


roll.vjp(a=lambda g, shift, axis: roll(g, shift=_back(shift), axis=axis))


@op(cost=0)
def tril(xp, a, *, k=0):
    """The lower triangle of the last two axes, zeros above, as NumPy's."""
    return xp.tril(a, k)


tril.explain = lambda a, k=0: ("at least 1 axis, and a whole number k", "k=0 is the main diagonal, 1 the one above it")
tril.vjp(a=lambda g, k: tril(g, k=k))


@op(cost=0)
def triu(xp, a, *, k=0):
    """The upper triangle of the last two axes, zeros below, as NumPy's."""
    return xp.triu(a, k)


triu.explain = tril.explain
triu.vjp(a=lambda g, k: triu(g, k=k))


@composite
def unflatten(a, *, axis, sizes):
    """One axis divided into several, as PyTorch's; one size may be -1: the opposite of `flatten`."""
    axis = one_axis("unflatten", axis, a.ndim, a.shape)
    sizes = tuple(sizes) if isinstance(sizes, (tuple, list)) else (sizes,)
    known = math.prod([n for n in sizes if n != -1])
    unknown = sizes.count(-1)
    if unknown > 1 or (known == 0 or a.shape[axis] % known if unknown else known != a.shape[axis]):
        raise ShapeError(
            "unflatten: the sizes do not make up the axis",
            f"a product of {a.shape[axis]}, the size of axis {axis} of {a.shape}; one size may be -1",
            f"sizes={sizes}",
        )
    whole = [a.shape[axis] // known if n == -1 else n for n in sizes]
    return reshape(a, shape=(*a.shape[:axis], *whole, *a.shape[axis + 1 :]))


@composite
def rot90(a, *, k=1, axes=(0, 1)):
    """The plane of two axes turned by 90 degrees `k` times, from the first axis towards the second, as NumPy's."""
    if problem := axis_problem("rot90", axes, a.ndim, a.shape):
        raise problem
    if len(axes) != 2:
        raise ArgumentError("rot90: a plane has two axes", "a pair of axes", repr(axes))
    if k % 2 == 0:
        return flip(a, axis=tuple(axes)) if k % 4 else a[...]
    turned = swapaxes(a, axis1=axes[0], axis2=axes[1])
    return flip(turned, axis=axes[0] if k % 4 == 1 else axes[1])


@composite
def atleast_1d(a):
    """The tensor with at least 1 axis, as NumPy's: a number becomes a vector of one element."""
    return reshape(a, shape=(1,)) if a.ndim == 0 else a[...]


@composite
def atleast_2d(a):
    """The tensor with at least 2 axes, as NumPy's: a vector becomes a row, (n,) -> (1, n)."""
    return reshape(a, shape=(1,) * (2 - a.ndim) + tuple(a.shape)) if a.ndim < 2 else a[...]


@composite
def atleast_3d(a):
    """The tensor with at least 3 axes, as NumPy's: (n,) -> (1, n, 1), and (n, m) -> (n, m, 1)."""
    if a.ndim > 2:
        return a[...]
    shape = tuple(a.shape)
    return reshape(a, shape=(1,) * (a.ndim < 2) + shape + (1,) * (2 - a.ndim if a.ndim == 0 else 1))


@composite
def flipud(a):
    """The rows in reverse, as NumPy's: along axis 0."""
    return flip(a, axis=0)


@composite
def fliplr(a):
    """The columns in reverse, as NumPy's: along axis 1."""
    return flip(a, axis=1)


@composite(method=False, several=True)
def broadcast_arrays(*arrays):
    """Tensors repeated, without a copy, to the one shape that they all broadcast to, as NumPy's: `broadcast_arrays(a, b)`."""
    shapes = [tuple(x.shape) for x in arrays]
    if problem := broadcast_problem("broadcast_arrays", shapes):
        raise problem
    return tuple([broadcast_to(x, shape=np.broadcast_shapes(*shapes)) for x in arrays])
