"""Ops that join tensors, cut them into pieces, or repeat them."""

from __future__ import annotations

import math

import numpy as np

from ...engine.op import op
from ...errors import ArgumentError, ShapeError, axis_problem, is_whole
from ..composite import composite
from ..creation import clone
from .shape import atleast_1d, atleast_2d, atleast_3d, broadcast_to, one_axis, ravel, reshape, swapaxes


@op(method=False, cost=0)
def concatenate(xp, *arrays, axis=0):
    """Tensors joined along an axis they have, as NumPy's."""
    return xp.concatenate(arrays, axis=axis)


def _explain_concatenate(*arrays, axis=0):
    first = np.shape(arrays[0])
    if not first and axis is not None:
        return ShapeError(
            "concatenate: tensors without axes cannot be joined",
            "at least 1 axis",
            "shape ()",
            "use mg.stack, or give each an axis: x.reshape(1)",
        )
    if problem := axis_problem("concatenate", axis, len(first), first) if axis is not None else None:
        return problem
    return (
        f"equal shapes but for axis {axis}, the joined one",
        "reshape or cut those that differ; mg.stack joins along a new axis",
    )


concatenate.explain = _explain_concatenate


@concatenate.vjp
def _concatenate_rule(g, needs, arrays_shape, axis):
    if axis is None:
        g, axis, sizes = ravel(g), 0, [math.prod(s) for s in arrays_shape]
    else:
        sizes = [s[axis] for s in arrays_shape]
    lead = (slice(None),) * (axis % g.ndim)
    starts = [0, *np.cumsum(sizes).tolist()]
    parts = [g[(*lead, slice(starts[i], starts[i + 1]))] if needed else None for i, needed in enumerate(needs)]
    return [p if p is None or p.shape == s else reshape(p, shape=s) for p, s in zip(parts, arrays_shape)]


@op(method=False, cost=0)
def stack(xp, *arrays, axis=0):
    """Tensors of one shape joined along a new axis, as NumPy's."""
    return xp.stack(arrays, axis=axis)


def _explain_stack(*arrays, axis=0):
    first, shapes = np.shape(arrays[0]), " and ".join(str(np.shape(x)) for x in arrays)
    fix = "make the shapes equal, or join along an axis they have with mg.concatenate"
    return axis_problem("stack", axis, len(first) + 1, first) or ShapeError(
        "the shapes differ", "tensors of one shape", shapes, fix
    )


stack.explain = _explain_stack


@stack.vjp
def _stack_rule(g, needs, axis):
    lead = (slice(None),) * (axis % g.ndim)
    return [g[(*lead, i)] if needed else None for i, needed in enumerate(needs)]


@composite(method=False)
def append(a, values, *, axis=None):
    """`values` joined to the end of a tensor along an axis, or of both raveled, as NumPy's."""
    return concatenate([ravel(a), ravel(values)] if axis is None else [a, values], axis=axis or 0)


@composite(listed=True, method=False)
def hstack(*arrays):
    """Tensors side by side, as NumPy's: joined along axis 1, vectors along axis 0."""
    arrays = [atleast_1d(x) for x in arrays]
    return concatenate(arrays, axis=0 if arrays[0].ndim == 1 else 1)


@composite(listed=True, method=False)
def vstack(*arrays):
    """Tensors below each other, as NumPy's: joined along axis 0, a vector being a row."""
    return concatenate([atleast_2d(x) for x in arrays], axis=0)


@composite(listed=True, method=False)
def dstack(*arrays):
    """Tensors behind each other, as NumPy's: joined along axis 2, a matrix being a plane."""
    return concatenate([atleast_3d(x) for x in arrays], axis=2)


@composite(listed=True, method=False)
def column_stack(*arrays):
    """Vectors, and matrices, as the columns of one matrix, as NumPy's."""
    return concatenate([reshape(x, shape=(-1, 1)) if x.ndim < 2 else x for x in arrays], axis=1)


@op(several=True, view=True)
def _split(xp, a, *, cuts, axis):
    """The pieces between the cuts."""
    return xp.split(a, cuts, axis=axis)


_split.vjp(a=lambda g, axis: concatenate(g, axis=axis))


@composite(several=True)
def split(a, *, indices_or_sections, axis=0):
    """Pieces along an axis, as NumPy's: so many equal ones, or cut before the given places."""
    axis = one_axis("split", axis, a.ndim, a.shape)
    size = a.shape[axis]
    if is_whole(indices_or_sections):
        if indices_or_sections < 1 or size % indices_or_sections:
            raise ShapeError(
                "split: the axis does not divide into equal pieces",
                f"a divisor of {size}, the size of axis {axis} of {a.shape}",
                indices_or_sections,
                "give the places of the cuts as a list",
            )
        step = size // indices_or_sections
        cuts = list(range(step, size, step)) if step else [0] * (indices_or_sections - 1)
    else:
        cuts = [i.__index__() for i in indices_or_sections]
        edges = [slice(cut).indices(size)[1] for cut in cuts]
        if edges != sorted(edges):  # pieces that overlap, which their gradients, joined, would not fit
            lead = (slice(None),) * axis
            return tuple([a[(*lead, slice(start, stop))] for start, stop in zip([0, *cuts], [*cuts, None])])
    return _split(a, cuts=cuts, axis=axis)


@composite(several=True)
def array_split(a, *, indices_or_sections, axis=0):
    """Pieces along an axis as `split` gives them, but so many need not be equal: the first ones get one more, as NumPy's."""
    if not is_whole(indices_or_sections):
        return split(a, indices_or_sections=indices_or_sections, axis=axis)
    size, count = a.shape[one_axis("array_split", axis, a.ndim, a.shape)], indices_or_sections
    if count < 1:
        raise ArgumentError("array_split: the number of pieces is a whole number from 1 up", "1 or more", count)
    cuts = [i * (size // count) + min(i, size % count) for i in range(1, count)]
    return split(a, indices_or_sections=cuts, axis=axis)


@composite(several=True)
def hsplit(a, *, indices_or_sections):
    """Pieces side by side, as NumPy's: along axis 1, a vector along axis 0."""
    return split(a, indices_or_sections=indices_or_sections, axis=1 if a.ndim > 1 else 0)


@composite(several=True)
def vsplit(a, *, indices_or_sections):
    """Pieces below each other, as NumPy's: along axis 0 of at least 2."""
    return split(_with_axes("vsplit", a, 2), indices_or_sections=indices_or_sections, axis=0)


@composite(several=True)
def dsplit(a, *, indices_or_sections):
    """Pieces behind each other, as NumPy's: along axis 2."""
    return split(_with_axes("dsplit", a, 3), indices_or_sections=indices_or_sections, axis=2)


def _with_axes(name, a, count):
    if a.ndim < count:
        raise ShapeError(f"{name}: too few axes", f"at least {count} axes", f"shape {tuple(a.shape)}")
    return a


@op(several=True, view=True)
def _unstack(xp, a, *, axis):
    """The slices along an axis."""
    return tuple(a if axis == 0 else xp.moveaxis(a, axis, 0))


_unstack.vjp(a=lambda g, axis: stack(g, axis=axis))
split.expects = "how many equal pieces, or a list of the places to cut at"


@composite(several=True)
def unstack(a, *, axis=0):
    """The slices along an axis, each without it, as NumPy's."""
    return _unstack(a, axis=one_axis("unstack", axis, a.ndim, a.shape))


@composite
def tile(a, *, reps):
    """The whole tensor repeated along each axis, as NumPy's."""
    reps = (reps,) if is_whole(reps) else tuple(reps)
    if any(not is_whole(r) or r < 0 for r in reps):
        raise ArgumentError("tile: repetitions are whole numbers from 0 up", "an int, or a tuple of ints", repr(reps))
    shape = (1,) * (len(reps) - a.ndim) + tuple(a.shape)
    reps = (1,) * (len(shape) - len(reps)) + reps
    apart = reshape(a, shape=tuple([m for n in shape for m in (1, n)]))
    spread = broadcast_to(apart, shape=tuple([m for r, n in zip(reps, shape) for m in (r, n)]))
    return reshape(clone(spread), shape=tuple([r * n for r, n in zip(reps, shape)]))


@composite
def repeat(a, *, repeats, axis=None):
    """Each element repeated along an axis, as NumPy's; `repeats` may differ from element to element."""
    if axis is None:
        a, axis = ravel(a), 0
    axis = one_axis("repeat", axis, a.ndim, a.shape)
    if is_whole(repeats) and repeats >= 0:
        shape = tuple(a.shape)
        apart = reshape(a, shape=(*shape[: axis + 1], 1, *shape[axis + 1 :]))
        spread = broadcast_to(apart, shape=(*shape[: axis + 1], repeats, *shape[axis + 1 :]))
        return reshape(clone(spread), shape=(*shape[:axis], shape[axis] * repeats, *shape[axis + 1 :]))
    counts = np.asarray(repeats)
    if counts.shape not in ((1,), (a.shape[axis],)) or counts.dtype.kind not in "iu" or counts.min(initial=0) < 0:
        raise ShapeError(
            "repeat: as many counts as elements are needed",
            f"one whole number, or {a.shape[axis]} of them for axis {axis}",
            repr(repeats),
        )
    places = np.repeat(np.arange(a.shape[axis]), counts)
    return a[(slice(None),) * axis + (places,)]


@composite(method=False, several=True)
def meshgrid(*arrays, indexing="xy"):
    """One grid for each of the given vectors, as NumPy's: `meshgrid(x, y)`."""
    if indexing not in ("xy", "ij"):
        raise ArgumentError("meshgrid: unknown indexing", "'xy' or 'ij'", repr(indexing))
    sizes = [math.prod(v.shape) for v in arrays]
    grids = []
    for i, vector in enumerate(arrays):
        line = reshape(vector, shape=tuple([-1 if j == i else 1 for j in range(len(sizes))]))
        grid = broadcast_to(line, shape=tuple(sizes))
        grids.append(swapaxes(grid, axis1=0, axis2=1) if indexing == "xy" and len(sizes) > 1 else grid)
    return tuple(grids)
