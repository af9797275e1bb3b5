"""Reading and writing some of the elements. `getitem` and `place` are each other's derivative."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...engine.backend import device_of, duplicate, is_array
from ...engine.modes import notify
from ...engine.op import op
from ...engine.tensor import Tensor
from ...errors import (
    DeviceError,
    DtypeError,
    IndexingError,
    MinigradError,
    axis_problem,
    broadcast_problem,
    describe,
)
from ..composite import composite
from ..elementwise.arithmetic import where

_BASIC_INDEX = (int, slice, type(None), type(Ellipsis))


def clean_index(index: Any, where: str = "getitem") -> Any:
    """An index as the array library takes it: Tensors and lists become arrays, copied, since the user may change them later."""
    if isinstance(index, tuple):
        return tuple(
            [i if isinstance(i, _BASIC_INDEX) and not isinstance(i, bool) else _clean_one(i, where) for i in index]
        )
    return index if isinstance(index, _BASIC_INDEX) and not isinstance(index, bool) else _clean_one(index, where)


def _clean_one(i: Any, where: str) -> Any:
    if isinstance(i, Tensor):
        i = i.data
    if isinstance(i, (bool, np.bool_)):
        return np.asarray(i)
    if isinstance(i, np.integer):
        return int(i)
    empty = isinstance(i, (list, range)) and not len(i)  # which NumPy would take for floating
    try:
        array = duplicate(i) if is_array(i) else np.asarray(i, dtype=np.intp if empty else None)
    except ValueError:
        raise IndexingError(
            f"{where}: the lists in an index have different lengths",
            "a rectangular nest of whole numbers",
            type(i).__name__,
        ) from None
    if array.dtype.kind not in "iub":
        raise IndexingError(
            f"{where}: an index must be made of whole numbers or booleans",
            "int, slice, None, …, or an integer or boolean array",
            f"{describe(i)} ({array.dtype})",
            "convert it first, as in x[int(i)] or x[i.astype('int64')]",
        )
    if not is_array(i):
        notify("created", array)
    return array


def check_range(name: str, indices: Any, size: int) -> Any:
    """Indices that all lie in -size … size - 1, or an error that shows one that does not."""
    if indices.size and (int(indices.max()) >= size or int(indices.min()) < -size):
        bad = indices.max() if int(indices.max()) >= size else indices.min()
        raise IndexingError(f"{name}: an index is out of range", f"{-size} to {size - 1}", int(bad))
    return indices


def is_basic(index: Any) -> bool:
    """Whether the index picks each element at most once, as slices and single numbers do."""
    return all(isinstance(i, _BASIC_INDEX) for i in (index if isinstance(index, tuple) else (index,)))


def _span(i: Any) -> int:
    """How many axes one part of an index uses up."""
    return 0 if i is None or i is Ellipsis else i.ndim if is_array(i) and i.dtype.kind == "b" else 1


def _on_device(xp: Any, index: Any, shape: tuple[int, ...]) -> Any:
    """An index beside the array it indexes. CuPy would wrap what is out of range, and takes one boolean array at most."""
    if xp is np:
        return index
    parts = [np.asarray(i) if isinstance(i, list) else i for i in (index if isinstance(index, tuple) else (index,))]
    if sum([is_array(i) for i in parts]) > 1:
        masks = [is_array(i) and i.dtype.kind == "b" and i.ndim > 0 for i in parts]
        pieces = [xp.nonzero(xp.asarray(i)) if mask else (i,) for i, mask in zip(parts, masks)]
        parts = [piece for several in pieces for piece in several]
    spans = [_span(i) for i in parts]
    axis = 0
    for i, span in zip(parts, spans):
        if is_array(i) and i.dtype.kind != "b" and axis < len(shape):
            check_range("an index array", i, shape[axis])
        axis += len(shape) - sum(spans) if i is Ellipsis else span
    return tuple([xp.asarray(i) if is_array(i) else i for i in parts])


@op(view=True, public=False, formulas={"a": "g, put where it was taken from; 0 elsewhere"})
def getitem(xp, a, *, index):
    """`a[index]`, as NumPy's, for every kind of index."""
    return a[_on_device(xp, index, a.shape)]


def _explain_index(a: Any, index: Any) -> tuple[str, str] | MinigradError:
    """What is wrong with an index, part by part from the left."""
    parts = index if isinstance(index, tuple) else (index,)
    if strangers := [device_of(i) for i in parts if is_array(i) and device_of(i) not in ("cpu", device_of(a))]:
        return DeviceError(
            "an index array is on another device than its tensor",
            device_of(a),
            strangers[0],
            "move it with i.to(device)",
        )
    used = sum(_span(i) for i in parts)
    if used > a.ndim:
        return f"at most {a.ndim} indices, for shape {a.shape}", f"{used} were given: drop some, or add axes with None"
    axis = 0
    for i in parts:
        size = a.shape[axis] if axis < a.ndim else 0
        if is_array(i) and i.dtype.kind == "b" and i.shape != a.shape[axis : axis + i.ndim]:
            return (
                f"a boolean array of shape {a.shape[axis : axis + i.ndim]} at axis {axis}",
                f"{i.shape} does not match it",
            )
        numbers = isinstance(i, int) or is_array(i) and i.dtype.kind != "b" and i.size
        if numbers and not -size <= np.min(i) <= np.max(i) < size:
            bad = np.max(i) if np.max(i) >= size else np.min(i)
            return (
                f"{-size} to {size - 1} on axis {axis}, which has size {size}",
                f"{bad} is out of range; indices start at 0",
            )
        axis += a.ndim - used if i is Ellipsis else _span(i)
    return (
        f"an index into shape {a.shape}: one … at most, whole numbers in slices, index arrays that broadcast",
        "mend the part that is not so",
    )


getitem.explain = _explain_index
getitem.vjp(a=lambda g, a_shape, index: place(g, index=index, shape=a_shape))


@op(public=False, cost=0)
def place(xp, a, *, index, shape):
    """Zeros of `shape`, with the elements of `a` added at `index`: what carries the gradient of `x[index]` back."""
    out = xp.zeros(shape, a.dtype)
    index = _on_device(xp, index, shape)
    if is_basic(index) or _is_mask(index):
        out[index] = a
    elif xp is np and _picks_rows(index):
        _add_rows(out, index if is_array(index) else index[0], a)
    else:
        add_at(xp, out, index, a)
    return out


def add_at(xp: Any, out: Any, index: Any, values: Any) -> None:
    """`out[index] += values`, repeated places added up. CUDA adds only some dtypes without a race, uint64 among them."""
    if xp is np or out.dtype.kind not in "iub":
        xp.add.at(out, index, values)
        return
    wide = out.astype(np.uint64)
    xp.add.at(wide, index, values.astype(np.uint64))
    out[...] = wide.astype(out.dtype)


place.vjp(a=lambda g, index: getitem(g, index=index))


def _picks_rows(index: Any) -> bool:
    one = index[0] if isinstance(index, tuple) and len(index) == 1 else index
    return is_array(one) and one.dtype.kind in "iu"


def _is_mask(index: Any) -> bool:
    one = index[0] if isinstance(index, tuple) and len(index) == 1 else index
    return is_array(one) and one.dtype.kind == "b"


def _add_rows(out: np.ndarray, rows: np.ndarray, values: np.ndarray) -> None:
    """`out[rows] += values` with repeated rows added up: sorted, then summed run by run, which is far faster than np.add.at."""
    rows = rows.ravel().astype(np.intp) % out.shape[0] if rows.size else rows.ravel()
    if not rows.size:
        return
    order = np.argsort(rows, kind="stable")
    rows = rows[order]
    starts = np.flatnonzero(np.r_[True, rows[1:] != rows[:-1]])
    out[rows[starts]] = np.add.reduceat(values.reshape(len(order), *out.shape[1:])[order], starts, axis=0)


def _last_writer(xp: Any, shape: tuple[int, ...], index: Any) -> Any:
    """For each element written to `index`, the number of the one that stays: where a place is named again, the last."""
    places = xp.arange(math.prod(shape)).reshape(shape)[index]
    order = xp.arange(places.size).reshape(places.shape)
    board = xp.zeros(math.prod(shape), np.int64 if xp is np else np.uint64)  # CUDA has no atomic maximum of int64
    if xp is np:
        board[places] = order
    else:
        xp.maximum.at(board, places, order.astype(np.uint64))
    return board[places].astype(np.int64)


def last_wins(xp: Any, shape: tuple[int, ...], index: Any) -> Any:
    """Of the elements written to `index`, which are still there afterwards: all but those whose place is named again later."""
    last = _last_writer(xp, shape, index)
    return last == xp.arange(last.size).reshape(last.shape)


def write(xp: Any, out: Any, index: Any, value: Any) -> None:
    """`out[index] = value`. Where a place is named twice the last value wins, also on a GPU, which writes in any order."""
    index = _on_device(xp, index, out.shape)
    if xp is not np and is_array(value) and value.size > 1 and not is_basic(index) and not _is_mask(index):
        last = _last_writer(xp, out.shape, index)
        value = value.reshape(value.shape[max(value.ndim - last.ndim, 0) :])
        value = xp.broadcast_to(value, last.shape).reshape(-1)[last]
    out[index] = value


@op
def _not_overwritten(xp, a, *, index):
    """Which of the elements written to `a[index]` are not overwritten by a later one."""
    return last_wins(xp, a.shape, _on_device(xp, index, a.shape))


@op(public=False, cost=0)
def setitem(xp, a, value, *, index):
    """A copy of `a` in which `a[index]` is `value`. `x[index] = value` does the same in place."""
    out = xp.array(a)  # not a.copy(): a gradient without axes may be a NumPy scalar, which cannot be written to
    write(xp, out, index, value)
    return out


def _explain_setitem(a: Any, value: Any, index: Any) -> tuple[str, str] | MinigradError:
    try:
        target = a[index].shape
    except (IndexError, ValueError, TypeError):
        return _explain_index(a, index)
    if broadcast_problem("", [np.shape(value), target]) or np.broadcast_shapes(np.shape(value), target) != target:
        return (
            f"a value that broadcasts to {target}, the shape of x[index]",
            "reshape the value, or write to another part",
        )
    return DtypeError(
        "this value cannot be stored in the tensor",
        f"a value that fits {a.dtype}",
        describe(value),
        "convert one of them with astype",
    )


setitem.explain = _explain_setitem


def _setitem_wrt_value(g, index, value_shape):
    part = getitem(g, index=index)
    if not is_basic(index):
        part = where(_not_overwritten(g, index=index), part, 0)
    if part.ndim < len(value_shape):  # the engine sums surplus axes away
        part = part[(None,) * len(value_shape)]
    return part


setitem.vjp(a=lambda g, index: setitem(g, 0, index=index), value=_setitem_wrt_value)


@composite
def take(a, *, indices, axis=None):
    """Elements (or slices along an axis) by number, as NumPy's."""
    indices = clean_index(indices)
    if is_array(indices) and indices.dtype.kind == "b":
        indices = indices.astype(np.intp)  # True is number 1, as NumPy's; x[mask] is what picks by booleans
    if axis is None:
        return a.reshape(-1)[indices]
    if problem := axis_problem("take", axis, a.ndim, a.shape):
        raise problem
    return a[(slice(None),) * (axis % a.ndim) + (indices,)]


@composite
def masked_fill(a, mask, value):
    """A copy of `a` with `value` wherever the mask is true, as PyTorch's."""
    return where(mask, value, a)


@op(several=True)
def nonzero(xp, a):
    """The positions of the elements that are not 0, one vector for each axis, as NumPy's."""
    return xp.nonzero(a)


nonzero.expects = "at least 1 axis"
