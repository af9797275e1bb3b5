"""Writing into a tensor: `x[index] = value`, `x += y` and the like."""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import nullcontext
from time import perf_counter
from typing import Any

import numpy as np

from ...engine.backend import duplicate, is_array, on_device_of
from ...engine.call import EXPLAINED, as_operand, check_fresh, record, settle
from ...engine.graph import Node
from ...engine.modes import local, notify, reported
from ...engine.op import Op
from ...engine.tensor import Tensor, wrap
from ...engine.writes import writes
from ...errors import DtypeError, GradientError, MinigradError, ShapeError, explain
from .getitem import clean_index, is_basic, setitem, write

SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
}  # fmt: skip


def assign(t: Tensor, index: Any, value: Any) -> None:
    """`t[index] = value`: written in place, and recorded if a gradient flows through either side."""
    before, began = wrap(t.data, t.node), perf_counter()
    try:
        _assign(t, index, value)
        for tracer in local.mode.tracers:
            made = wrap(t.data, None if t.node is before.node else t.node)  # a write need not be recorded
            tracer.called(setitem, (before, value), {"index": index}, made, perf_counter() - began)
    except Exception as error:
        reported(setitem, (before, value), {"index": index}, error)
        raise


def _assign(t: Tensor, index: Any, value: Any) -> None:
    index = clean_index(index, "setitem")
    given = value.data if isinstance(value, Tensor) else value
    if not isinstance(given, (bool, int, float, complex, np.generic)) and not is_array(given):
        given = as_operand(given, "setitem")
    value_node = value.node if isinstance(value, Tensor) else None
    recorded = local.mode.record and (t.node is not None or value_node is not None)
    is_end = recorded and _is_augmented_assignment(t, index, given, value_node)
    check_writable(t, recorded, "setitem", is_stale=not is_end and writes.is_stale(t.data, t.node))
    if local.mode.record:
        check_fresh("setitem", [given], [value_node])
    if value_node is not None and t.dtype.kind != "f":
        raise DtypeError(
            "setitem: a value that requires a gradient cannot be written into whole numbers",
            "a floating tensor",
            t.dtype,
        )
    xp, here = settle("setitem", [t.data, given])
    try:
        with here or nullcontext():
            write(xp, t.data, index, given)
    except EXPLAINED as error:
        raise explain(setitem, [t.data, given], {"index": index}, local.mode.scope, error) from None
    if recorded:
        mask = (t.node is not None) + 2 * (value_node is not None)
        made = record(setitem, t.data, [t.data, given], [t.node, value_node], mask, {"index": index}).node
        t.node = _retaining(made, t.node)
    writes.mark(t.data, t.node if recorded else None)


def _is_augmented_assignment(t: Tensor, index: Any, given: Any, node: Any) -> bool:
    """Whether this ends `t[index] += …`: the very view of `t` that was just written to is assigned to its place."""
    if not is_array(given) or not is_basic(index) or not writes.wrote_last(t.data, node, t.node):
        return False
    parts = index if isinstance(index, tuple) else (index,)
    place = t.data[parts if ... in parts else (*parts, ...)]  # with `...` also one element is a view
    return place.strides == given.strides and place.shape == given.shape and address_of(place) == address_of(given)


def address_of(array: Any) -> int:
    """Where the first element lies."""
    return array.__array_interface__["data"][0] if isinstance(array, np.ndarray) else array.data.ptr


def shows_a_leaf(t: Tensor) -> bool:
    """Whether `t` is a leaf that requires a gradient, or a view of one."""
    node = t.node if t.data.base is not None or t.is_leaf else None
    while node is not None and node.plan is not None and node.plan.op.view:
        if node.name == "getitem" and not is_basic(node.attrs["index"]):
            return False  # what arrays pick is a copy, which NumPy may lay out as a view of a copy
        node = node.parents[0]
    return node is not None and node.plan is None


def check_writable(t: Tensor, recorded: bool, name: str, is_stale: bool) -> None:
    """Refuse, before anything is written, a write that would make gradients wrong."""
    if recorded and shows_a_leaf(t):
        raise GradientError(
            f"{name}: a leaf that requires a gradient, or a view of one, cannot be written to in place while operations are recorded",
            got=f"{t.shape} {t.dtype}",
            fix="do it inside mg.no_grad(), or write into x.clone()",
        )
    if local.mode.record and is_stale:
        raise GradientError(
            f"{name}: this tensor's memory was already written through another tensor",
            fix="write through one tensor only, or clone() first",
        )
    if _is_read_only(t.data):
        raise GradientError(
            f"{name}: this tensor is a read-only view, such as broadcast_to makes", fix="write into x.clone()"
        )
    notify("writing", t.data)


def _is_read_only(array: Any) -> bool:
    """Whether elements share memory with each other. NumPy has a flag for it; CuPy shows it by a stride of 0."""
    if hasattr(array.flags, "writeable"):
        return not array.flags.writeable
    return any(n > 1 and step == 0 for n, step in zip(array.shape, array.strides))


def in_place(name: str, op: Op) -> Callable[[Tensor, Any], Tensor]:
    """The method behind `x += y` and the like: the op's result, written to where `x` was."""
    change: Callable[[Any, Any], Any] = getattr(operator, f"i{name}")

    def method(self: Tensor, other: Any) -> Tensor:
        recorded = local.mode.record and (self.node is not None or isinstance(other, Tensor) and other.node is not None)
        data = self.data
        is_watched = local.mode.tracers or writes.since and local.mode.record
        if (
            not recorded and type(data) is np.ndarray and not is_watched and name != "pow"
        ):  # whose cubes are not NumPy's
            try:
                change(data, other.data if isinstance(other, Tensor) else other)
                writes.mark(data)
                return self
            except (ValueError, TypeError, OverflowError):
                pass  # the general path below raises the error
        try:
            check_writable(self, recorded, f"in-place {op.name}", writes.is_stale(data, self.node))
            before = wrap(duplicate(data), self.node) if recorded else self  # the rules need what is replaced
            result = _fitted(op.name, SYMBOLS[name], op(before, before if other is self else other), self)
        except MinigradError as error:
            reported(op, (self, other), {}, error)
            raise
        with on_device_of(data):
            data[...] = result.data
        notify("wrote", data, result.data)
        if recorded:
            made = result.node
            if made is None and self.node is not None:  # without a derivative, as of //=: a constant was written
                made = record(setitem, data, [data, result.data], [self.node, None], 1, {"index": ...}).node
            self.node = _retaining(made, self.node)
        writes.mark(data, self.node if recorded else None)
        return self

    return method


def _retaining(node: Node | None, before: Node | None) -> Node | None:
    """The node of a tensor after a write. What `retain_grad` asked for is the tensor's, so it goes along."""
    if node is not None and before is not None and before.retain:
        node.retain, before.retain = before.retain, None
        node.grad, before.grad = before.grad, None
    return node


def _fitted(name: str, symbol: str, result: Tensor, target: Tensor) -> Tensor:
    """The result of an op in the dtype of the tensor that it is to be stored in; refused if it does not fit there."""
    if result.shape != target.shape:
        raise ShapeError(
            f"in-place {name}: the result does not fit into the tensor",
            target.shape,
            result.shape,
            f"write x = x {symbol} y",
        )
    if result.dtype == target.dtype:
        return result
    if not np.can_cast(result.dtype, target.dtype, "same_kind"):
        raise DtypeError(
            f"in-place {name}: the result cannot be stored in the tensor",
            target.dtype,
            result.dtype,
            "convert with x.astype first",
        )
    return result.astype(target.dtype)
