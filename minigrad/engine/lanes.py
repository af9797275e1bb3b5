"""The short ways through an op: one or two Tensors on a CPU, no attributes, nothing being debugged.

Most operations of most programs go this way, so it is written for speed: each op gets its own functions, with
what they need bound as locals. They are what hangs on Tensor as `__add__`, `tanh` and so on. Whatever is
unusual goes to `Op.general`, which knows everything, errors included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import ArgumentError, describe
from .graph import Node
from .modes import local
from .tensor import Tensor
from .writes import writes

if TYPE_CHECKING:
    from .op import Op

ndarray = np.ndarray
_new = object.__new__
_NUMBERS = frozenset((float, int))
_NO_ATTRS: dict[str, Any] = {}  # shared by all nodes without attributes, and never written to


def scalar_array(op: Op, out: Any) -> Any:
    """What NumPy computed without axes is a scalar; a Tensor holds an array. Anything else is a mistake in the forward."""
    if isinstance(out, (np.generic, bool, int, float, complex)):
        return np.asarray(out)
    raise ArgumentError(
        f"{op.name}: its forward returned {describe(out)}",
        "an array",
        fix="declare an op that returns several arrays with @mg.op(several=True)" if isinstance(out, tuple) else None,
    )


def unary_lane(op: Op) -> Callable[[Any], Any]:
    """The short way for an op with one input."""
    forward, plans = op.forward, op.plans

    def unary(a: Any) -> Any:
        if not isinstance(a, Tensor):
            return op.general((a,), {})
        x, p, mode = a.data, a.node, local.mode
        if type(x) is not ndarray or mode.debug or writes.recorded:
            return op.general((a,), {})
        try:
            out = forward(np, x)
        except Exception:
            return op.general((a,), {})
        if type(out) is not ndarray:
            out = scalar_array(op, out)
        t = _new(Tensor)
        t.data = out
        t.node = None
        if p is not None and op.mask and mode.record:
            dtype = out.dtype
            if dtype.kind == "f":
                plan = plans.get(1) or op.plan_for(1, 1)
                keep = plan.keep
                saved = keep((x, out)) if keep is not None else plan.save((x,), out, _NO_ATTRS)
                t.node = Node(plan, (p,), saved, _NO_ATTRS, out.shape, dtype, mode.scope)
            elif dtype.kind == "c":
                return op.general((a,), {})
        return t

    return unary


def binary_lane(op: Op) -> Callable[[Any, Any], Any]:
    """The short way for an op with two inputs: two Tensors, or a Tensor and a number."""
    forward, plans = op.forward, op.plans

    def binary(a: Any, b: Any) -> Any:
        if isinstance(a, Tensor):
            x, p = a.data, a.node
            if isinstance(b, Tensor):
                y, q = b.data, b.node
                usual = type(x) is ndarray and type(y) is ndarray
            else:
                y, q = b, None
                usual = type(x) is ndarray and type(b) in _NUMBERS
        elif isinstance(b, Tensor):
            x, p, y, q = a, None, b.data, b.node
            usual = type(y) is ndarray and type(a) in _NUMBERS
        else:
            usual = False
        mode = local.mode
        if not usual or mode.debug or writes.recorded:
            return op.general((a, b), {})
        try:
            out = forward(np, x, y)
        except Exception:
            return op.general((a, b), {})
        if type(out) is not ndarray:
            out = scalar_array(op, out)
        t = _new(Tensor)
        t.data = out
        t.node = None
        if mode.record:
            mask = ((p is not None) + 2 * (q is not None)) & op.mask
            if mask:
                dtype = out.dtype
                if dtype.kind == "f":
                    plan = plans.get(mask) or op.plan_for(mask, 2)
                    keep = plan.keep
                    saved = keep((x, y, out)) if keep is not None else plan.save((x, y), out, _NO_ATTRS)
                    t.node = Node(plan, (p, q), saved, _NO_ATTRS, out.shape, dtype, mode.scope)
                elif dtype.kind == "c":
                    return op.general((a, b), {})
        return t

    return binary
