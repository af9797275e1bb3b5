"""Reading and writing elements that an array of indices names along one axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...engine.op import op
from ...errors import DtypeError, IndexingError, ShapeError, axis_problem, broadcast_problem
from ..composite import composite
from ..elementwise.arithmetic import where
from .getitem import add_at, check_range, clean_index, last_wins, write


def _along(xp: Any, shape: tuple[int, ...], indices: Any, axis: int) -> tuple[Any, ...]:
    """The full index that `indices`, running along one axis, stand for."""
    axis %= len(shape)
    grid = []
    for i, n in enumerate(shape):
        grid.append(indices if i == axis else xp.arange(n).reshape([-1 if j == i else 1 for j in range(indices.ndim)]))
    return tuple(grid)


def _raw(indices: Any) -> Any:
    return clean_index(indices) if not isinstance(indices, int) else np.asarray(indices)


@op(cost=0, lowering="a[indices]")
def _take_along(xp, a, *, indices, axis):
    """The elements that `indices` name along one axis."""
    return a[_along(xp, a.shape, xp.asarray(indices), axis)]


_take_along.vjp(a=lambda g, a_shape, indices, axis: _add_along(_zeros(g, shape=a_shape), g, indices=indices, axis=axis))


@op(lowering="0")
def _zeros(xp, a, *, shape):
    """Zeros like `a`, in another shape."""
    return xp.zeros(shape, a.dtype)


@op(lowering="a + values if position == indices else a")
def _add_along(xp, a, values, *, indices, axis):
    """A copy of `a` with `values` added where `indices` name along one axis."""
    out = a.copy()
    indices = xp.asarray(indices)
    where_ = _along(xp, a.shape, indices, axis)
    add_at(xp, out, where_, xp.broadcast_to(xp.asarray(values), np.broadcast_shapes(*[i.shape for i in where_])))
    return out


_add_along.vjp(a=lambda g: g, values=lambda g, indices, axis: _take_along(g, indices=indices, axis=axis))


@op
def _not_overwritten_along(xp, a, *, indices, axis):
    """Which of the elements written along one axis are not overwritten by a later one."""
    return last_wins(xp, a.shape, _along(xp, a.shape, xp.asarray(indices), axis))


@op(cost=0, lowering="values if position == indices else a")
def _put_along(xp, a, values, *, indices, axis):
    """A copy of `a` with `values` where `indices` name along one axis."""
    out = a.copy()
    write(xp, out, _along(xp, a.shape, xp.asarray(indices), axis), values)
    return out


_put_along.vjp(
    a=lambda g, indices, axis: _put_along(g, 0, indices=indices, axis=axis),
    values=lambda g, indices, axis: where(
        _not_overwritten_along(g, indices=indices, axis=axis), _take_along(g, indices=indices, axis=axis), 0
    ),
)


def _checked(name: str, a: Any, indices: Any, axis: int) -> Any:
    """Indices for a function that runs along one axis, refused if they do not fit."""
    indices = _raw(indices)
    if problem := axis_problem(name, axis, a.ndim, a.shape):
        raise problem
    if indices.ndim != a.ndim:
        raise ShapeError(
            f"{name}: the indices need as many axes as the tensor",
            f"{a.ndim} axes, for shape {tuple(a.shape)}",
            f"shape {indices.shape}",
        )
    if indices.dtype.kind not in "iu":
        raise IndexingError(
            f"{name}: the indices must be whole numbers", "an integer dtype", indices.dtype, "x[mask] picks by booleans"
        )
    if clash := broadcast_problem(name, [_others(a.shape, axis), _others(indices.shape, axis)]):
        raise clash
    return check_range(name, indices, a.shape[axis])


def _others(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """`shape` with 1 in place of one axis."""
    return tuple([1 if i == axis % len(shape) else n for i, n in enumerate(shape)])


def _check_values(name: str, values: Any, shape: tuple[int, ...], indices: Any, axis: int) -> None:
    """Refuse values that do not broadcast to the places that `indices` name."""
    places = np.broadcast_shapes(_others(shape, axis), indices.shape)
    given = tuple(getattr(values, "shape", ()))
    problem = broadcast_problem(f"{name}: the values", [given, places])
    if problem or np.broadcast_shapes(given, places) != places:
        raise problem or ShapeError(
            f"{name}: the values do not fit the places",
            f"a shape that broadcasts to {places}",
            given,
            "reduce or reshape the values",
        )


@composite
def take_along_axis(a, *, indices, axis=-1):
    """The elements that `indices` name along one axis, as NumPy's (PyTorch's `gather`)."""
    return _take_along(a, indices=_checked("take_along_axis", a, indices, axis), axis=axis)


@composite
def put_along_axis(a, *, indices, values, axis):
    """A copy of `a` with `values` where `indices` name along one axis (NumPy's writes in place)."""
    indices = _checked("put_along_axis", a, indices, axis)
    _check_values("put_along_axis", values, a.shape, indices, axis)
    return _put_along(a, values, indices=indices, axis=axis)


@composite
def scatter_add(a, *, indices, values, axis):
    """A copy of `a` with `values` added where `indices` name along one axis; repeated places add up."""
    indices = _checked("scatter_add", a, indices, axis)
    _check_values("scatter_add", values, a.shape, indices, axis)
    return _add_along(a, values, indices=indices, axis=axis)


@composite(method=False)
def one_hot(indices, *, num_classes=-1, dtype=None):
    """A 1 at each index on a new last axis, 0 elsewhere; as many classes as the largest index needs, unless given."""
    raw = _raw(indices)
    if raw.dtype.kind not in "iu":
        raise DtypeError("one_hot: class indices must be whole numbers", "an integer dtype", raw.dtype)
    count = num_classes if num_classes >= 0 else int(raw.max()) + 1 if raw.size else 0
    if raw.size and (int(raw.min()) < 0 or int(raw.max()) >= count):
        known = f"0 to {count - 1}" if count else "0 or more"
        raise IndexingError(
            "one_hot: an index is out of range",
            known,
            f"{int(raw.min())} to {int(raw.max())}",
            "raise num_classes, or mend the labels",
        )
    return _one_hot(indices, count=count, dtype=dtype or "int64")


@op
def _one_hot(xp, a, *, count, dtype):
    """A 1 at each index on a new last axis."""
    return (a[..., None] == xp.arange(count)).astype(dtype)


def _one_hot_parts(ops, a, count, dtype):
    return ops.astype(ops.equal(ops.reshape(a, shape=(*a.shape, 1)), ops.constant(np.arange(count))), dtype=dtype)


_one_hot.lowering = _one_hot_parts
