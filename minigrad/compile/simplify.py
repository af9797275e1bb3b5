"""The same graph with fewer steps, and the same results to the last bit, but for products.

A product that is only used transposed becomes the product of the transposed, which needs no copy; BLAS may add up its terms in
another order. Unused steps go; what depends on constants alone is computed now; equal steps become one; functions made of
other ops (softmax, mean) become those ops. What else an op may become is in a table, `_RULES`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..engine.op import OPS
from ..errors import axes_of
from ..ir.graph import Graph, Size, Step, Value, broadcast, replaced, run_step, without_unused
from ..ir.lowering import DTYPES, PLACES, formula_of, loop_kind, result_of
from .views import is_view

FOLDED = 1 << 16  # elements: larger constants are computed when the graph runs
# Ops with a number that NumPy computes as other ops, or that change nothing; but not `x + 0`, which turns -0 into 0.
_WITH_NUMBER: dict[str, dict[float, str]] = {
    "multiply": {1: "positive"},
    "divide": {1: "positive"},
    "subtract": {0: "positive"},
    "power": {1: "positive", 2: "square", 0.5: "sqrt", -1: "reciprocal"},
}


class Simple(Graph):
    """A graph that has been simplified."""


def simplify(graph: Graph) -> Graph:
    """A graph that computes the same in fewer steps."""
    if isinstance(graph, Simple):
        return graph
    work = _Simplifier(graph)
    for step in graph.steps:
        for part in parts_as_views(step):
            work.take(part)
    outputs = [work.now(v) for v in graph.outputs]
    made = without_unused(Graph(graph.inputs, work.steps, outputs, work.constants), outputs, keep_inputs=True)
    return Simple(made.inputs, made.steps, made.outputs, made.constants)


def parts_as_views(step: Step) -> list[Step]:
    """A split or an unstacking as one view for each part; any other step as it is."""
    if step.op not in (OPS["_split"], OPS["_unstack"]):
        return [step]
    parts: Iterable[Any] = range(len(step.outputs))
    if step.op is OPS["_split"]:
        parts = map(slice, [0, *step.attrs["cuts"]], [*step.attrs["cuts"], None])
    lead = (slice(None),) * (step.attrs["axis"] % step.inputs[0].ndim)
    indices = [{"index": (*lead, part)} for part in parts]
    return [Step(OPS["getitem"], step.inputs, index, (out,)) for index, out in zip(indices, step.outputs)]


class _Simplifier:
    def __init__(self, graph: Graph):
        self.steps: list[Step] = []
        self.makers: dict[Value, Step] = {}
        self.constants: dict[Value, Any] = {}
        self.spread: dict[Value, Value] = {}  # values that repeat one constant element: that element
        self.seen: dict[Any, tuple[Value, ...]] = {}
        self.instead: dict[Value, Value] = {}
        uses = Counter([v for step in graph.steps for v in step.values] + graph.outputs)
        self.used_once = {v for v, count in uses.items() if count == 1}
        for value, array in graph.constants.items():
            self.instead[value] = self.constant(array, value)

    def now(self, x: Any) -> Any:
        """What stands for a value of the original graph."""
        return self.instead.get(x, x)

    def constant(self, array: Any, value: Value | None = None) -> Value:
        """The value of an array that is known now; one that repeats an element is that element, spread out."""
        if isinstance(array, np.ndarray) and array.ndim and array.size:
            first = array[(0,) * array.ndim]
            if not any(array.strides) or array.tobytes() == first.tobytes() * array.size:
                return self.repeat(self.constant(np.asarray(first)), array.shape)
        value = value or Value(array.shape, array.dtype)
        self.constants[value] = array
        return value

    def repeat(self, scalar: Value, shape: tuple[int, ...]) -> Value:
        """A value that repeats one element."""
        if scalar.shape == shape:
            return scalar
        out = self.add(Step(OPS["broadcast_to"], (scalar,), {"shape": shape}, (Value(shape, scalar.dtype),)))
        self.spread[out] = scalar
        return out

    def add(self, step: Step) -> Value:
        self.steps.append(step)
        self.makers.update(dict.fromkeys(step.outputs, step))
        return step.outputs[0]

    def call(self, name: str, *inputs: Any, **attrs: Any) -> Value:
        """The simplest form of an op of these inputs, from which its shape and dtype follow."""
        return self.like(Value(*result_of(OPS[name], inputs, attrs)), name, *inputs, **attrs)

    def like(self, value: Value, name: str, *inputs: Any, **attrs: Any) -> Value:
        """The simplest form of an op whose result has the shape and dtype of this value."""
        out = Value(value.shape, value.dtype)
        self.take(Step(OPS[name], inputs, attrs, (out,)))
        return self.now(out)

    def take(self, step: Step) -> None:
        """Add a step in its simplest form."""
        step = step.rewritten(self.now)
        if len(step.outputs) == 1:
            simple = self.folded(step) or self.by_rule(step) or self.expanded(step)
            if simple is not None:
                if step.out not in self.used_once:
                    self.used_once.discard(simple)
                self.instead[step.out] = self.fitted(simple, step.out)
                return
            step = self.unspread(step)
        key = _key(step)
        if key in self.seen:
            self.used_once.difference_update(self.seen[key])
            self.instead.update(zip(step.outputs, self.seen[key]))
            return
        self.add(step)
        if key is not None:
            self.seen[key] = step.outputs

    def fitted(self, value: Value, like: Value) -> Value:
        """The value in the shape and dtype of the one that it replaces."""
        if value.dtype != like.dtype:
            value = self.call("astype", value, dtype=like.dtype)
        if value.shape != like.shape:
            value = self.call("reshape" if value.size == like.size else "broadcast_to", value, shape=like.shape)
        return value

    def made(self, x: Any, name: str) -> Step | None:
        """The step that makes a value, if it is of this op."""
        step = self.makers.get(x)
        return step if step is not None and step.op is OPS[name] else None

    def scalar(self, x: Any) -> Any:
        """The number that an input is everywhere, or None."""
        if isinstance(x, Value):
            array = self.constants.get(self.spread.get(x, x))
            return array[()] if isinstance(array, np.ndarray) and not array.ndim else None
        return x if isinstance(x, (int, float, np.generic)) else None

    def folded(self, step: Step) -> Value | None:
        """A step that depends on constants alone, computed now."""
        text, values, out = step.op.lowering, step.values, step.out
        if isinstance(text, str) and text.isdigit():  # whatever its input is
            return self.repeat(self.constant(np.asarray(int(text), out.dtype)), out.shape)
        known: dict[Value, Any] = {v: self.constants.get(self.spread.get(v, v)) for v in values}
        is_known = values and all(isinstance(array, np.ndarray) for array in known.values())
        if not is_known or step.op.random or step.numbers:
            return None
        if is_view(step) and values[0] in self.spread:
            return self.repeat(self.spread[values[0]], out.shape)
        is_uniform = loop_kind(step.op) == "elementwise" and formula_of(text).names.isdisjoint(PLACES)
        if not is_uniform or any(array.ndim for array in known.values()):
            largest = max(v.size for v in (out, *values) if v not in self.spread)
            if largest > FOLDED or step.op is OPS["broadcast_to"]:
                return None
            known = {v: np.broadcast_to(array, v.shape) for v, array in known.items()}
        with np.errstate(all="ignore"):
            made = self.constant(np.array(run_step(step, known)[0], order="C"))
        return made if made.ndim else self.repeat(made, out.shape)

    def expanded(self, step: Step) -> Value | None:
        """A function made of ops, as those ops."""
        lowering = step.op.lowering
        plain = all(v.dtype.name in DTYPES and v.size for v in (*step.values, step.out))
        if lowering is None or isinstance(lowering, str) or not plain:
            return None
        ops = SimpleNamespace(constant=self.constant, **{name: partial(self.call, name) for name in OPS})
        return lowering(ops, *step.inputs, **step.attrs)

    def unspread(self, step: Step) -> Step:
        """Element by element, a small array does as well as one that repeats it."""
        for i, x in enumerate(step.inputs if step.op.elementwise else ()):
            before = self.made(x, "broadcast_to")
            if before is not None:
                inputs = (*step.inputs[:i], *before.inputs, *step.inputs[i + 1 :])
                if broadcast([v.shape for v in inputs if isinstance(v, Value)]) == step.out.shape:
                    step = replace(step, inputs=inputs)
        return step

    def by_rule(self, step: Step) -> Value | None:
        """The input, or a simpler step, that a step is equal to."""
        if loop_kind(step.op) == "reduction" and step.inputs[0].size == step.out.size > 0:
            return step.inputs[0]  # over axes of size 1
        rule = _RULES.get(step.op.name)
        return rule(self, step, *step.inputs) if rule is not None and step.values else None

    def copied(self, step: Step, x: Any) -> Value | None:
        """A copy, a cast to the same dtype, a shape that is there already."""
        return x if (x.shape, x.dtype) == (step.out.shape, step.out.dtype) else None

    def reshaped(self, step: Step, x: Value) -> Value | None:
        """A reshape of a reshape as one."""
        before = self.made(x, "reshape")
        return self.copied(step, x) if before is None else self.like(step.out, "reshape", *before.inputs, **step.attrs)

    def transposed(self, step: Step, x: Value) -> Value | None:
        """A transpose of a transpose as one, or none; (A B)ᵀ as Bᵀ Aᵀ."""
        axes, before = _axes(step), self.made(x, "transpose")
        if before is not None:
            return self.like(step.out, "transpose", *before.inputs, axes=tuple([_axes(before)[a] for a in axes]))
        if axes == tuple(range(len(axes))):
            return x
        product = self.made(x, "matmul") if x.ndim == 2 and x in self.used_once else None
        if product is None:
            return None
        left, right = [self.like(Value(f.shape[::-1], f.dtype), "transpose", f, axes=None) for f in product.inputs]
        return self.like(step.out, "matmul", right, left)

    def flat_product(self, step: Step, left: Any, right: Any) -> Value | None:
        """A stack times a matrix, as one product of two matrices, which is how it is computed."""
        rows = math.prod(left.shape[:-1])
        varies = not isinstance(rows, Size) and any(isinstance(n, Size) for n in left.shape[:-1])
        if left.ndim < 3 or right.ndim != 2 or not step.out.size or varies:
            return None
        flat = self.call("reshape", left, shape=(rows, left.shape[-1]))
        return self.like(Value((rows, right.shape[1]), step.out.dtype), "matmul", flat, right)

    def negated(self, step: Step, x: Value) -> Value | None:
        """The negative of a negative."""
        before = self.made(x, "negative")
        return None if before is None else before.inputs[0]

    def chosen(self, step: Step, condition: Any, x: Any, other: Any) -> Value | None:
        """A choice that is made already."""
        known = self.scalar(condition)
        chosen = None if known is None else x if known else other
        if chosen is None or isinstance(chosen, Value):
            return chosen
        return self.repeat(self.constant(np.asarray(chosen, step.out.dtype)), step.out.shape)

    def without_number(self, step: Step, x: Any, other: Any) -> Value | None:
        """`x * 1`, `1 * x`, `x / 1`, `x - 0`, and powers that have a name."""
        if step.op is OPS["multiply"] and self.scalar(other) is None:
            x, other = other, x
        number = self.scalar(other)
        name = _WITH_NUMBER[step.op.name].get(number)
        is_minus_zero = number == 0 and np.signbit(np.real(number))
        if name is None or is_minus_zero or not isinstance(x, Value) or x.dtype != step.out.dtype:
            return None
        return x if name == "positive" else self.call(name, x)

    def summed(self, step: Step, x: Value) -> Value | None:
        """A sum of zeros and one element."""
        before = self.made(x, "_add_along")
        if before is None or self.scalar(before.inputs[0]) != 0:
            return None
        axis, values = before.attrs["axis"] % x.ndim, before.inputs[1]
        is_one = getattr(values, "shape", None) == before.attrs["indices"].shape and values.shape[axis] == 1
        along = [a if a is None else a % x.ndim for a in axes_of(step.attrs.get("axis"))]
        return values if is_one and along == [axis] else None


_RULES: dict[str, Callable[..., Value | None]] = {
    **dict.fromkeys(("positive", "clone", "_output", "astype", "broadcast_to"), _Simplifier.copied),
    "reshape": _Simplifier.reshaped,
    "transpose": _Simplifier.transposed,
    "matmul": _Simplifier.flat_product,
    "negative": _Simplifier.negated,
    "where": _Simplifier.chosen,
    **dict.fromkeys(_WITH_NUMBER, _Simplifier.without_number),
    "sum": _Simplifier.summed,
}


def _axes(step: Step) -> tuple[int, ...]:
    """Of a transpose: the axis of its input that each axis of its output is."""
    return tuple([a % step.out.ndim for a in step.attrs.get("axes") or range(step.out.ndim)[::-1]])


def _key(step: Step) -> Any:
    """Equal for two steps that compute the same; None for one that may not be merged with another.

    As text, 0 differs from -0, 1 from 1.0 and from np.float64(1); but of a large array it does not show all.
    """
    text = repr(replaced((step.inputs, sorted(step.attrs.items())), lambda x: f"@{id(x)}"))
    return None if step.op.random or "array(" in text else (step.op, text)
