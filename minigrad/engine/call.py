"""How an op is called: choose what computes it, compute forward, record.

`call` is the one way for every op, whatever its inputs. `unary` and `binary` are fast paths for one or two Tensors on
the CPU, an op without attributes and nobody watching: `python -m benchmarks.overhead` says what they buy. Whatever is
unusual they leave to `call`, and what they record is the same `Node`.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import tree
from ..errors import DeviceError, DtypeError, GradientError, MinigradError, describe, explain, no_array, no_derivative
from ..foreign_arrays import as_numpy
from ..signature import missing_rule
from .backend import DTYPES, Array, backend_of, device_of, duplicate, is_array, on_device_of, owner_of
from .graph import Node
from .modes import Arrays, Attrs, local, reported
from .tensor import Tensor, wrap
from .writes import writes

if TYPE_CHECKING:
    from .op import Op

ndarray = np.ndarray
PYTHON_NUMBERS = (float, int, complex, type(None))  # with bool, which is an int
SCALARS = (*PYTHON_NUMBERS, np.generic)
# What an array library raises on input that does not fit.
EXPLAINED = (ValueError, TypeError, IndexError, OverflowError, AttributeError)
_new = object.__new__
_NUMBERS = frozenset((float, int))
_NO_ATTRS: dict[str, Any] = {}  # shared by all nodes without attributes, and never written to


def call(op: Any, args: Arrays, attrs: Attrs, kernels: bool = True) -> Any:
    """Compute; record if some input needs a gradient. Arrays give an array, any Tensor gives a Tensor.

    Without `kernels`, an op computes itself, and a function made of ops runs its ops.
    """
    incomplete = op.kernels is not None and len(attrs) != op.count  # kernels get all attributes
    if len(args) != op.arity or incomplete or attrs and not attrs.keys() <= op.attributes:
        args, attrs = op.bind(args, attrs)
    mode = local.mode
    began = perf_counter() if mode.tracers else 0.0
    arrays: list[Any] = []
    parents: list[Node | None] = []
    mask, bit, tensors, foreign = 0, 1, False, False
    xp: Any = np
    for arg in args:
        if isinstance(arg, Tensor):
            tensors = True
            data, node = arg.data, arg.node
            arrays.append(data)
            parents.append(node)
            if type(data) is not ndarray:
                xp = None
            if node is not None:
                mask |= bit
        else:
            arrays.append(arg)
            parents.append(None)
            if isinstance(arg, np.generic) or not isinstance(arg, PYTHON_NUMBERS):
                if hasattr(arg, "dtype") and getattr(arg.dtype, "name", None) not in DTYPES:
                    as_operand(arg, op.name)
                if not isinstance(arg, np.generic):
                    foreign, xp = True, xp if type(arg) is ndarray else None
                elif any(isinstance(x, Tensor) for x in args):  # beside a Tensor it is a number without a dtype
                    return call(op, [x.item() if isinstance(x, np.generic) else x for x in args], attrs, kernels)
        bit += bit
    here: Any = None
    try:
        if xp is None:
            xp, here = settle(op.name, arrays)
        if writes.since and mode.record:
            check_fresh(op.name, arrays, parents)
        kernel, forward = None, mode.tracers[-1].forward(op) if mode.tracers else op.forward
        if kernels and op.kernels is not None:
            for tracer in mode.tracers:
                if (instead := tracer.instead(op)) is not None:
                    return instead(args, attrs)
            kernel = op.kernels.choose(arrays, attrs)
        if kernel is None and op.forward is None:
            return op.define(args, attrs)
        needs, kept = mask if mode.record else 0, None
        mask = needs & op.mask
        if mask and foreign:  # somebody else's arrays may change before the backward
            arrays = [a if isinstance(x, Tensor) or not is_array(a) else duplicate(a) for a, x in zip(arrays, args)]
        try:
            if kernel is not None:
                result = kernel.forward(*arrays, **attrs)
                if type(result) is not tuple or len(result) != 2:
                    raise op.kernels.wrong_forward(op.name, kernel, result)
                out, kept = result
            elif here is None:
                out = forward(xp, *arrays, **attrs)
            else:
                with here:
                    out = forward(xp, *arrays, **attrs)
        except MinigradError:
            raise
        except EXPLAINED as error:
            raise explain(op, arrays, attrs, mode.scope, error) from (None if op.own else error)
        if mode.record and not op.own:
            _check_users(op, needs, attrs)
        if not tensors:
            return out
        result = record(op, out, arrays, parents, mask, attrs, kernel, kept)
        for tracer in mode.tracers:
            tracer.called(op, args, attrs, result, perf_counter() - began)
        return result
    except Exception as error:
        reported(op, args, attrs, error)
        raise


def record(
    op: Any, out: Any, arrays: Arrays, parents: Arrays, mask: int, attrs: Attrs, kernel: Any = None, kept: Any = None
) -> Any:
    """The Tensor of an output just computed, or a tuple of them; with a node if `mask`, the inputs that need a gradient, has a bit set."""
    if mask and not op.own:  # whatever a user gave may change before the backward, also a default
        attrs = tree.map(copied, {**op.signature.defaults, **attrs})
    elif mask and attrs:  # our own ops copy what lies deeper themselves
        attrs = {k: tuple(v) if type(v) is list else v for k, v in attrs.items()}
    if op.several:
        outs = tuple([np.asarray(o) if isinstance(o, SCALARS) else o for o in out])
        if not mask:
            return tuple([wrap(o) for o in outs])
        outs = outs if op.own else tuple([_apart(op, o, arrays) for o in outs])
        plan = op.plan_for(mask, len(arrays))
        shapes, dtypes = tuple([o.shape for o in outs]), tuple([o.dtype for o in outs])
        node = Node(plan, parents, plan.save(arrays, outs, attrs), attrs, shapes, dtypes, local.mode.scope)
        return tuple([op.output(o, node, i) for i, o in enumerate(outs)])
    if type(out) is not ndarray and not is_array(out):
        out = scalar_array(op, out)
    t = _new(Tensor)
    t.data, t.node = out, None
    if mask:
        if not op.own or kernel is not None and op.kernels.foreign:
            t.data = out = _apart(op, out, arrays)
        if out.dtype.kind == "f":
            by_kernel = kernel is not None and (kernel.backward is not None or op.forward is None)
            plan = op.plans.get(~mask if by_kernel else mask) or op.plan_for(mask, len(arrays), by_kernel)
            saved = plan.save(arrays, out, attrs, kernel, kept)
            t.node = Node(plan, parents, saved, attrs, out.shape, out.dtype, local.mode.scope)
        elif out.dtype.kind == "c":
            raise no_derivative(op.name, out.dtype)
    return t


def _check_users(op: Any, needs: int, attrs: Attrs) -> None:
    """Refuse to cut the graph silently, as an input without a rule and an attribute with a graph would."""
    if needs & ~op.mask:
        raise missing_rule(op.name, op.signature, op.rules, needs)
    for part in tree.leaves(attrs):
        if isinstance(part, Tensor) and (part.node is not None or writes.is_stale(part.data, None)):
            raise GradientError(
                f"{op.name}: an attribute requires a gradient, which only inputs can have",
                got=describe(part),
                fix="declare it before the *, with a rule, or pass x.detach()",
            )


def _apart(op: Any, out: Array, arrays: Arrays) -> Array:
    """What a user's op or a kernel gave; where it shares memory with an input, a copy, or a view if the op is one."""
    owner = owner_of(out)
    shared = [a is owner or getattr(a, "base", None) is not None and owner_of(a) is owner for a in arrays]
    return out if not any(shared) else out[...] if op.view and shared[0] else duplicate(out)


def copied(value: Any) -> Any:
    """A copy of a Tensor, an array or a set; anything else as it is."""
    if isinstance(value, (Tensor, set)):
        return value.clone() if isinstance(value, Tensor) else set(value)
    return duplicate(value) if is_array(value) else value


def settle(name: str, arrays: list[Any]) -> tuple[Any, Any]:
    """Turn lists into arrays, find the one device all arrays are on; its module, and the context to compute in there."""
    for i, value in enumerate(arrays):
        if not isinstance(value, SCALARS) and (not is_array(value) or isinstance(value, ndarray)):
            arrays[i] = as_operand(value, name)  # also np.matrix, whose * is another
    there = {device_of(a): a for a in arrays if not isinstance(a, SCALARS)}
    if len(there) > 1:
        raise DeviceError(
            f"{name}: arrays on different devices cannot be mixed",
            "every input on one device",
            " and ".join(sorted(there)),
            "move one with x.to(device)",
        )
    if not there or "cpu" in there:
        return np, None
    (array,) = there.values()
    return backend_of(array).xp, on_device_of(array)


def as_operand(value: Any, where: str) -> np.ndarray:
    """A list of numbers, or another library's array, beside a Tensor becomes an array; anything else is refused by name."""
    array = as_numpy(value, where)
    if array.dtype.name not in DTYPES:
        got = type(value).__name__ + (f" of dtype {value.dtype}" if hasattr(value, "dtype") else "")
        raise DtypeError(f"{where}: an operand is not a number or an array", "a Tensor, an array or a number", got)
    return array


def check_fresh(name: str, arrays: Arrays, parents: Arrays) -> None:
    """Refuse an input whose node does not tell how its values were made: gradients would be silently wrong."""
    for array, node in zip(arrays, parents):
        if (node is None or node.fresh < writes.since) and writes.is_stale(array, node):
            raise GradientError(
                f"{name}: an input shares memory with a tensor that was written to in place, and its own graph does not know of that write",
                got=f"{array.shape} {array.dtype}",
                fix="write through the whole tensor (x[i] = …) rather than a view of it, or clone() the view first",
            )


def scalar_array(op: Any, out: Any) -> Array:
    """What NumPy computed without axes is a scalar; a Tensor holds an array. Anything else is a mistake in the forward."""
    if isinstance(out, (np.generic, bool, int, float, complex)):
        return np.asarray(out)
    raise no_array(op.name, out)


def unary(op: Op) -> Callable[[Any], Any]:
    """The fast path of an op with one input, with what it needs bound as locals."""
    forward, plans = op.forward, op.plans

    def fast_unary(a: Any) -> Any:
        mode = local.mode
        if not isinstance(a, Tensor) or type(x := a.data) is not ndarray or mode.tracers or op.kernels is not None:
            return call(op, (a,), {})
        p, since = a.node, writes.since
        if since and (p is None or p.fresh < since) and writes.is_stale(x, p):
            return call(op, (a,), {})
        try:
            out = forward(np, x)
        except Exception:
            return call(op, (a,), {})
        if type(out) is not ndarray:
            out = scalar_array(op, out)
        t = _new(Tensor)
        t.data, t.node = out, None
        if p is not None and op.mask and mode.record:
            dtype = out.dtype
            if dtype.kind == "f":
                plan = plans.get(1) or op.plan_for(1, 1)
                keep = plan.keep
                saved = keep((x, out)) if keep is not None else plan.save((x,), out, _NO_ATTRS)
                t.node = Node(plan, (p,), saved, _NO_ATTRS, out.shape, dtype, mode.scope)
            elif dtype.kind == "c":
                return call(op, (a,), {})
        return t

    return fast_unary


def binary(op: Op) -> Callable[[Any, Any], Any]:
    """The fast path of an op with two inputs: two Tensors, or a Tensor and a number."""
    forward, plans = op.forward, op.plans

    def fast_binary(a: Any, b: Any) -> Any:
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
        mode, since = local.mode, writes.since
        if not usual or mode.tracers:
            return call(op, (a, b), {})
        unknown = since and (p is None or q is None or p.fresh < since or q.fresh < since)
        if unknown and (writes.is_stale(x, p) or writes.is_stale(y, q)):
            return call(op, (a, b), {})
        if op.kernels is not None and (x is a or x.ndim >= op.kernels.min_ndim):
            return call(op, (a, b), {})
        try:
            out = forward(np, x, y)
        except Exception:
            return call(op, (a, b), {})
        if type(out) is not ndarray:
            out = scalar_array(op, out)
        t = _new(Tensor)
        t.data, t.node = out, None
        if mode.record:
            mask = op.mask & ((0 if q is None else 2) if p is None else (1 if q is None else 3))
            if mask:
                dtype = out.dtype
                if dtype.kind == "f":
                    plan = plans.get(mask) or op.plan_for(mask, 2)
                    keep = plan.keep
                    saved = keep((x, y, out)) if keep is not None else plan.save((x, y), out, _NO_ATTRS)
                    t.node = Node(plan, (p, q), saved, _NO_ATTRS, out.shape, dtype, mode.scope)
                elif dtype.kind == "c":
                    return call(op, (a, b), {})
        return t

    return fast_binary
