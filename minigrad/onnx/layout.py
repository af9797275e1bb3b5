"""Ops that change shapes, and that take elements by their number, as nodes of ONNX."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from ..ir import Size, Step, Value
from .writer import Writer, maps

END = 2**62  # behind the end of any axis


def whole(w: Writer, *numbers: int) -> str:
    return w.constant(np.array(numbers, "int64"))


@maps("reshape")
def reshape(w: Writer, step: Step) -> Any:
    return w.node("Reshape", w.get(step.inputs[0]), w.sizes(step.out.shape), allowzero=1)


@maps("transpose")
def transpose(w: Writer, step: Step) -> Any:
    count = step.out.ndim
    axes = step.attrs.get("axes") or range(count)[::-1]
    return w.node("Transpose", w.get(step.inputs[0]), perm=[i % count for i in axes])


@maps("broadcast_to", "_zeros")
def broadcast_to(w: Writer, step: Step) -> Any:
    zeros = step.op.name == "_zeros"
    x = w.constant(0, step.out.dtype) if zeros else w.get(step.inputs[0])
    return w.node("Expand", x, w.sizes(step.out.shape))


@maps("concatenate", "stack")
def joined(w: Writer, step: Step) -> Any:
    axis = step.attrs.get("axis", 0) % step.out.ndim
    given = [w.get(x, step.out.dtype) for x in step.inputs]
    if step.op.name == "stack":
        given = [w.node("Unsqueeze", x, whole(w, axis)) for x in given]
    return w.node("Concat", *given, axis=axis)


@maps("_unstack")
def unstack(w: Writer, step: Step) -> Any:
    (x,), axis = step.inputs, step.attrs["axis"]
    return [w.node("Gather", w.get(x), w.constant(i, "int64"), axis=axis % x.ndim) for i in range(len(step.outputs))]


@maps("_split")
def split(w: Writer, step: Step) -> Any:
    (x,), axis, cuts = step.inputs, step.attrs["axis"], tuple(step.attrs["cuts"])
    bounds = zip((0, *cuts), (*cuts, END))
    return [w.node("Slice", w.get(x), w.size(a), w.size(b), whole(w, axis % x.ndim)) for a, b in bounds]


@maps("flip")
def flip(w: Writer, step: Step) -> Any:
    (x,), axis = step.inputs, step.attrs.get("axis")
    axes = range(x.ndim) if axis is None else [i % x.ndim for i in (axis if isinstance(axis, tuple) else (axis,))]
    back, ends = whole(w, *[-1 for _ in axes]), whole(w, *[-END for _ in axes])
    return w.node("Slice", w.get(x), back, ends, whole(w, *axes), back)


@maps("tril", "triu")
def triangle(w: Writer, step: Step) -> Any:
    (x,), dtype = step.inputs, step.out.dtype
    given = w.get(x, "int64" if dtype == np.bool_ else dtype)
    made = w.node("Trilu", given, w.constant(step.attrs.get("k", 0), "int64"), upper=int(step.op.name == "triu"))
    return w.cast(made, "bool") if dtype == np.bool_ else made


@maps("_causal_mask")
def causal_mask(w: Writer, step: Step) -> Any:
    ones = w.node("Expand", w.constant(1, "int64"), w.sizes(step.out.shape))
    return w.cast(w.node("Trilu", ones, upper=0), "bool")


@maps("_pad_constant")
def pad(w: Writer, step: Step) -> Any:
    widths = step.attrs["widths"]
    ends = [w.size(pair[side]) for side in (0, 1) for pair in widths]
    return w.node(
        "Pad", w.get(step.inputs[0]), w.node("Concat", *ends, axis=0), w.constant(step.attrs["value"], step.out.dtype)
    )


@maps("_unfold")
def unfold(w: Writer, step: Step) -> Any:
    """The windows (A, …, *sizes) -> (A, *kernel, …, *out), as slices that are put side by side."""
    (x,), kernel, stride, dilation = step.inputs, *(step.attrs[k] for k in ("kernel", "stride", "dilation"))
    count = len(kernel)
    axes, out = whole(w, *range(x.ndim - count, x.ndim)), step.out.shape[-count:]
    if any(isinstance(n, Size) for n in out):
        return NotImplemented  # the windows of images of any size
    parts = []
    for place in product(*map(range, kernel)):
        starts = [p * d for p, d in zip(place, dilation)]
        ends = [start + (n - 1) * s + 1 for start, n, s in zip(starts, out, stride)]
        part = w.node("Slice", w.get(x), whole(w, *starts), whole(w, *ends), axes, whole(w, *stride))
        parts.append(w.node("Unsqueeze", part, whole(w, 1)))
    return w.node("Reshape", w.node("Concat", *parts, axis=1), w.sizes(step.out.shape), allowzero=1)


@maps("_largest")
def largest(w: Writer, step: Step) -> Any:
    """The largest of a window, (B, windows, …) -> (B, …), and its number."""
    if step.attrs.get("inside") is not None:
        return NotImplemented
    x = w.get(step.inputs[0])
    number = w.node("ArgMax", x, axis=1, keepdims=0)
    return [w.node("ReduceMax", x, whole(w, 1), keepdims=0), w.cast(number, step.outputs[1].dtype)]


@maps("embedding")
def embedding(w: Writer, step: Step) -> Any:
    weight, index = step.inputs
    return w.node("Gather", w.get(weight), w.get(index, "int64"), axis=0)


@maps("_take_along")
def take_along(w: Writer, step: Step) -> Any:
    (x,), axis, indices = step.inputs, step.attrs["axis"], step.attrs["indices"]
    axis %= x.ndim
    aside = [n if i != axis else x.shape[axis] for i, n in enumerate(step.out.shape)]
    spread = w.node("Expand", w.get(x), w.sizes(aside))
    return w.node(
        "GatherElements", spread, w.node("Expand", w.get(indices, "int64"), w.sizes(step.out.shape)), axis=axis
    )


@maps("_one_hot")
def one_hot(w: Writer, step: Step) -> Any:
    x, count = step.inputs[0], step.attrs["count"]
    column = w.node("Unsqueeze", w.get(x, "int64"), whole(w, x.ndim))
    return w.cast(w.node("Equal", column, w.constant(np.arange(count), "int64")), step.out.dtype)


@maps("getitem")
def getitem(w: Writer, step: Step) -> Any:
    """Slices, then one list of numbers, then single numbers and new axes."""
    (x,), index = step.inputs, step.attrs["index"]
    parts = list(index) if isinstance(index, tuple) else [index]
    taken = sum(part is not None and part is not Ellipsis for part in parts)
    rest: list[Any] = [slice(None)] * (x.ndim - taken)
    at = next((i for i, part in enumerate(parts) if part is Ellipsis), len(parts))
    parts = [*parts[:at], *rest, *parts[at + 1 :]]
    lists = [part for part in parts if isinstance(part, (Value, list, np.ndarray))]
    if (
        len(lists) > 1
        or lists
        and (None in [p for p in parts if not isinstance(p, Value)] or any(_is_number(p) for p in parts))
    ):
        return NotImplemented
    if lists and isinstance(lists[0], Value) and lists[0].dtype == np.bool_:
        return NotImplemented
    made, gone, new, axis, place = w.get(x), [], [], 0, 0
    picked: tuple[Any, int] | None = None
    for part in parts:
        if part is None:
            new.append(place)
            place += 1
            continue
        if _is_number(part):
            made = w.node("Slice", made, w.size(part), _after(w, part), whole(w, axis))
            gone.append(axis)
        elif isinstance(part, slice):
            made = _sliced(w, made, part, axis)
            place += 1
        else:
            picked, place = (part, axis), place + 1
        axis += 1
    if picked is not None:
        return w.node("Gather", made, w.get(picked[0], "int64"), axis=picked[1])
    made = w.node("Squeeze", made, whole(w, *gone)) if gone else made
    made = w.node("Unsqueeze", made, whole(w, *new)) if new else made
    return made if made != w.get(x) else w.node("Identity", made)


def _is_number(part: Any) -> bool:
    return isinstance(part, (int, np.integer)) and not isinstance(part, bool)


def _after(w: Writer, place: int) -> str:
    """The number behind that of an element, which may count from the end."""
    if isinstance(place, Size):
        return str(w.node("Add", w.size(place), whole(w, 1)))
    return w.size(END if place == -1 else place + 1)


def _sliced(w: Writer, x: str, part: slice, axis: int) -> str:
    if part == slice(None):
        return x
    step = 1 if part.step is None else int(part.step)
    start = (0 if step > 0 else END) if part.start is None else part.start
    stop = (END if step > 0 else -END) if part.stop is None else part.stop
    return str(w.node("Slice", x, w.size(start), w.size(stop), whole(w, axis), whole(w, step)))
