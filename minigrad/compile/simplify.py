"""The same graph with fewer steps, and the same results to the last bit, but for products.

A product that is only used transposed becomes the product of the transposed, which needs no copy; BLAS may add up its terms in
another order. Unused steps go; what depends on constants alone is computed now; equal steps become one; a copy, a cast to the same dtype, a
multiplication by 1 become their input. Functions made of other ops (softmax, mean) become those ops.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from ..engine.op import OPS
from ..errors import axes_of
from ..ir.graph import Graph, Number, Size, Step, Value, broadcast, run_step, without_unused
from ..ops.reduction import kept_shape
from .lowering import DTYPES, NoLoweringError, formula, formula_of, sample
from .views import is_view

FOLDED = 1 << 16  # elements: larger constants are computed when the graph runs


def simplify(graph: Graph) -> Graph:
    """A graph that computes the same in fewer steps."""
    work = _Simplifier(graph)
    for step in graph.steps:
        for part in parts_as_views(step):
            work.take(part)
    outputs = [work.now(v) for v in graph.outputs]
    return without_unused(Graph(graph.inputs, work.steps, outputs, work.constants), outputs, keep_inputs=True)


def parts_as_views(step: Step) -> list[Step]:
    """A split or an unstacking as one view for each part; any other step as it is."""
    if step.op is OPS["_split"]:
        cuts = [0, *step.attrs["cuts"], None]
        parts: list[Any] = [slice(*cuts[i : i + 2]) for i in range(len(cuts) - 1)]
    elif step.op is OPS["_unstack"]:
        parts = list(range(len(step.outputs)))
    else:
        return [step]
    lead = (slice(None),) * (step.attrs["axis"] % step.inputs[0].ndim)
    return [
        Step(OPS["getitem"], step.inputs, {"index": (*lead, part)}, (out,)) for part, out in zip(parts, step.outputs)
    ]


class _Ops:
    """The ops by name, as lowering functions call them: each call adds a step and returns its value."""

    def __init__(self, work: _Simplifier):
        self._work = work

    def __getattr__(self, name: str) -> Callable[..., Value]:
        return lambda *inputs, **attrs: self._work.call(OPS[name], inputs, attrs)

    def constant(self, array: np.ndarray) -> Value:
        """An array that is known now."""
        return self._work.constant(array)


class _Simplifier:
    def __init__(self, graph: Graph):
        self.steps: list[Step] = []
        self.constants: dict[Value, Any] = {}
        self.spread: dict[Value, Value] = {}  # values that repeat one element: that element
        self.sources: dict[Value, tuple[Step, Value]] = {}  # views: the step, and what it is a view of
        self.seen: dict[Any, tuple[Value, ...]] = {}
        self.instead: dict[Value, Value] = {}
        self.products: dict[Value, Step] = {}
        uses = [v for step in graph.steps for v in step.values] + graph.outputs
        self.used_once = {v for v, count in Counter(uses).items() if count == 1}
        for value, array in graph.constants.items():
            self.instead[value] = self.constant(array, value)

    def now(self, x: Any) -> Any:
        """What stands for a value of the original graph."""
        return self.instead.get(x, x) if isinstance(x, Value) else x

    def constant(self, array: Any, value: Value | None = None) -> Value:
        value = value or Value(array.shape, array.dtype)
        if not isinstance(array, np.ndarray) or not array.size:
            self.constants[value] = array
            return value
        first = array[(slice(0, 1),) * array.ndim].reshape(())
        uniform = array.ndim and (
            not any(array.strides) or bool((array == first).all() and not _has_mixed_zeros(array))
        )
        if not uniform:
            self.constants[value] = array
            return value
        return self.repeat(self.constant(first.copy()), array.shape)

    def repeat(self, scalar: Value, shape: tuple[int, ...]) -> Value:
        """A value that repeats one element."""
        if scalar.shape == tuple(shape):
            return scalar
        out = self.add(Step(OPS["broadcast_to"], (scalar,), {"shape": tuple(shape)}, (Value(shape, scalar.dtype),)))
        self.spread[out] = scalar
        return out

    def call(self, op: Any, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Value:
        """Add a step of an op; its shape and dtype follow from its inputs."""
        values = [x for x in inputs if isinstance(x, Value)]
        ones = [np.ones((1,) * x.ndim, x.dtype) if isinstance(x, Value) else sample(x) for x in inputs]
        if "shape" in attrs:
            shape, dtype = tuple(attrs["shape"]), values[0].dtype
        else:
            dtype = np.asarray(op.forward(np, *ones, **attrs)).dtype
            shape = broadcast([v.shape for v in values])
        if isinstance(op.lowering, str) and formula_of(op.lowering).kind == "reduction":
            axis, kept = attrs.get("axis"), kept_shape(shape, attrs.get("axis"))
            gone = set(range(len(shape))) if axis is None else {i % len(shape) for i in axes_of(axis)}
            shape = kept if attrs.get("keepdims") else tuple([n for i, n in enumerate(shape) if i not in gone])
        out = Value(shape, dtype)
        self.take(Step(op, inputs, attrs, (out,)))
        return self.now(out)

    def take(self, step: Step) -> None:
        """Add a step in its simplest form."""
        original = step
        step = self.with_plain_attrs(step.rewritten(self.now))
        if len(step.outputs) == 1:
            simple = self.folded(step) or self.identity(step) or self.expanded(step)
            if simple is None and step.op is OPS["transpose"] and original.inputs[0] in self.used_once:
                simple = self.transposed_product(step)
            if simple is not None:
                self.instead[step.out] = self.fitted(simple, step.out)
                return
            step = self.unspread(step)
        key = _key(step)
        if key is not None and key in self.seen:
            self.instead.update(zip(step.outputs, self.seen[key]))
            return
        self.add(step)
        if key is not None:
            self.seen[key] = step.outputs

    def transposed_product(self, step: Step) -> Value | None:
        """(A B)ᵀ as Bᵀ Aᵀ."""
        product = self.products.get(step.inputs[0])
        if product is None:
            return None
        left, right = (self.transposed(x) for x in product.inputs)
        return self.add(Step(OPS["matmul"], (right, left), {}, (Value(step.out.shape, step.out.dtype),)))

    def transposed(self, value: Value) -> Value:
        """A matrix transposed: what it is the transpose of, if it is one."""
        step, source = self.sources.get(value, (None, None))
        if step is not None and source is not None and step.op is OPS["transpose"]:
            return source
        return self.add(Step(OPS["transpose"], (value,), {"axes": None}, (Value(value.shape[::-1], value.dtype),)))

    def add(self, step: Step) -> Value:
        self.steps.append(step)
        if step.op is OPS["matmul"] and all(isinstance(x, Value) and x.ndim == 2 for x in step.inputs):
            self.products[step.out] = step
        if is_view(step):
            self.sources[step.out] = step, step.values[0]
        return step.outputs[0]

    def fitted(self, value: Value, like: Value) -> Value:
        """The value in the shape and dtype of the one that it replaces."""
        if value.dtype != like.dtype:
            value = self.call(OPS["astype"], (value,), {"dtype": like.dtype})
        if value.shape != like.shape and value.size == like.size:
            value = self.call(OPS["reshape"], (value,), {"shape": like.shape})
        if value.shape != like.shape:
            value = self.call(OPS["broadcast_to"], (value,), {"shape": like.shape})
        return value

    def with_plain_attrs(self, step: Step) -> Step:
        """Index arrays that are known become constants, as if they were inputs."""
        indices = step.attrs.get("indices")
        if not isinstance(indices, np.ndarray):
            return step
        return Step(
            step.op, step.inputs, {**step.attrs, "indices": self.constant(indices)}, step.outputs, step.scope, step.line
        )

    def folded(self, step: Step) -> Value | None:
        """A step that depends on constants alone, computed now."""
        if step.op.random or step.numbers:
            return None
        text, values = step.op.lowering, step.values
        if isinstance(text, str) and formula_of(text).kind == "elementwise" and "element" not in formula_of(text).names:
            scalars = [self.scalar(v) for v in values if v in self.spread or not v.ndim]
            ignored = "a" not in formula_of(text).names and len(values) == 1 and text.isdigit()
            if ignored:  # zeros
                return self.repeat(self.constant(np.asarray(int(text), step.out.dtype)), step.out.shape)
            if (
                values
                and len(scalars) == len(values)
                and all(s is not None for s in scalars)
                and "position" not in formula_of(text).names
            ):
                known = {v: self.constants[self.spread.get(v, v)] for v in values}
                with np.errstate(all="ignore"):
                    return self.repeat(self.constant(run_step(step, known)[0]), step.out.shape)
        sources = [self.spread.get(v, v) for v in values]
        if not values or not all(isinstance(self.constants.get(v), np.ndarray) for v in sources):
            return None
        if is_view(step) and all(v in self.spread for v in values):
            return self.repeat(sources[0], step.out.shape)
        if step.out.size > FOLDED or any(v.size > FOLDED and v not in self.spread for v in values):
            return None
        if is_view(step) and step.op is OPS["broadcast_to"]:
            return None
        known = {
            v: np.broadcast_to(self.constants[s], v.shape) if s is not v else self.constants[v]
            for v, s in zip(values, sources)
        }
        with np.errstate(all="ignore"):
            return self.constant(np.ascontiguousarray(run_step(step, known)[0]).reshape(step.out.shape))

    def scalar(self, x: Any) -> Any:
        """The number that an input is everywhere, or None."""
        if isinstance(x, Value):
            array = self.constants.get(self.spread.get(x, x))
            return array[()] if isinstance(array, np.ndarray) and not array.ndim else None
        return x if isinstance(x, (int, float, np.generic)) else None

    def identity(self, step: Step) -> Value | None:
        """The input, or a simpler step, that a step is equal to in every bit."""
        op, out = step.op, step.out
        name, inputs = op.name, step.inputs
        first: Any = inputs[0] if inputs else None
        if not isinstance(first, Value) and name not in ("multiply", "where"):
            return None
        same = isinstance(first, Value) and first.dtype == out.dtype
        if (
            name in ("positive", "clone", "_output")
            or name in ("astype", "reshape", "broadcast_to")
            and same
            and first.shape == out.shape
        ):
            return first if same else None
        if name == "transpose":
            return self.untwisted(step)
        if name == "matmul" and first.ndim > 2 and inputs[1].ndim == 2 and out.size:
            return self.flat_product(step)
        if name == "reshape" and first in self.sources and self.sources[first][0].op is op:
            return self.call(op, (self.sources[first][1],), {"shape": out.shape})
        if name == "negative" and (before := self.maker(first)) is not None and before.op is op:
            return before.inputs[0]
        if name == "where" and (condition := self.scalar(first)) is not None:
            chosen = inputs[1] if condition else inputs[2]
            return (
                chosen
                if isinstance(chosen, Value)
                else self.repeat(self.constant(np.asarray(chosen, out.dtype)), out.shape)
            )
        if name in ("multiply", "divide", "subtract"):
            return self.neutral(name, inputs, out)
        if name == "power" and same and out.dtype.kind == "f" and first.shape == out.shape:
            exponent = self.scalar(inputs[1])
            other = {2: "square", 0.5: "sqrt", -1: "reciprocal"}.get(exponent) if exponent is not None else None
            return first if exponent == 1 else None if other is None else self.call(OPS[other], (first,), {})
        if name == "sum" and (before := self.maker(first)) is not None and before.op is OPS["_add_along"]:
            axis = before.attrs["axis"] % first.ndim  # one element for each sum, and zeros
            if self.scalar(before.inputs[0]) == 0 and axes_of(step.attrs.get("axis")) in (
                (axis,),
                (axis - first.ndim,),
            ):
                return before.inputs[1]
        if (
            isinstance(op.lowering, str)
            and formula_of(op.lowering).kind == "reduction"
            and first.size == out.size
            and out.size
        ):
            return first  # over axes of size 1
        return None

    def untwisted(self, step: Step) -> Value | None:
        """The input where the axes stay as they are; a transpose of a transpose as one."""
        axes, source = _axes(step), step.inputs[0]
        before, inner = self.sources.get(source, (None, None))
        twice = before is not None and before.op is step.op
        if before is not None and inner is not None and twice:
            axes, source = tuple([_axes(before)[a] for a in axes]), inner
        if axes == tuple(range(len(axes))):
            return source
        if not twice:
            return None
        self.take(Step(step.op, (source,), {"axes": axes}, (out := Value(step.out.shape, step.out.dtype),)))
        return self.now(out)

    def flat_product(self, step: Step) -> Value | None:
        """A stack times a matrix, as one product of two matrices, which is how it is computed."""
        left, right = step.inputs
        rows = math.prod(left.shape[:-1])
        if not isinstance(rows, Size) and any(isinstance(n, Size) for n in left.shape[:-1]):
            return None
        flat = self.call(OPS["reshape"], (left,), {"shape": (rows, left.shape[-1])})
        self.take(Step(step.op, (flat, right), {}, (out := Value((rows, right.shape[1]), step.out.dtype),)))
        return self.call(OPS["reshape"], (self.now(out),), {"shape": step.out.shape})

    def neutral(self, name: str, inputs: tuple[Any, ...], out: Value) -> Value | None:
        """`x * 1`, `1 * x`, `x / 1` and `x - 0` (but not `x + 0`, which turns -0 into 0)."""
        neutral = 0 if name == "subtract" else 1
        pairs = [inputs] if name != "multiply" else [inputs, inputs[::-1]]
        for x, other in pairs:
            number = self.scalar(other)
            negative_zero = number == 0 and math.copysign(1, number) < 0 if number is not None else False
            if (
                number is not None
                and number == neutral
                and not negative_zero
                and isinstance(x, Value)
                and x.dtype == out.dtype
            ):
                return x
        return None

    def maker(self, value: Value) -> Step | None:
        return next((s for s in reversed(self.steps[-64:]) if value in s.outputs), None)

    def expanded(self, step: Step) -> Value | None:
        """A function made of ops, as those ops."""
        lowering = step.op.lowering
        plain = all(v.dtype.name in DTYPES and v.size for v in (*step.values, step.out))
        if lowering is None or isinstance(lowering, str) or not plain:
            return None
        return lowering(_Ops(self), *step.inputs, **step.attrs)

    def unspread(self, step: Step) -> Step:
        """Element by element, a small array does as well as one that repeats it."""
        try:
            if formula(step).kind != "elementwise":
                return step
        except NoLoweringError:
            return step
        inputs = list(step.inputs)
        for i, x in enumerate(inputs):
            if isinstance(x, Value) and x in self.sources and self.sources[x][0].op is OPS["broadcast_to"]:
                inputs[i] = self.sources[x][1]
                if broadcast([v.shape for v in inputs if isinstance(v, Value)]) != step.out.shape:
                    inputs[i] = x
        return Step(step.op, tuple(inputs), step.attrs, step.outputs, step.scope, step.line)


def _axes(step: Step) -> tuple[int, ...]:
    """Of a transpose: the axis of its input that each axis of its output is."""
    return tuple([a % step.out.ndim for a in step.attrs.get("axes") or range(step.out.ndim)[::-1]])


def _has_mixed_zeros(array: np.ndarray) -> bool:
    return array.dtype.kind == "f" and not array.flat[0] and bool(np.signbit(array).any())


def _key(step: Step) -> Any:
    """Equal for two steps that compute the same; None for one that may not be merged with another."""
    if step.op.random:
        return None

    def part(x: Any) -> Any:
        if isinstance(x, (Value, Number)):
            return id(x)
        if isinstance(x, (tuple, list)):
            return tuple([part(item) for item in x])
        if isinstance(x, slice):
            return "slice", x.start, x.stop, x.step
        if isinstance(x, (int, float, str, bool, type(None), np.dtype, np.generic, type(Ellipsis), type)):
            return type(x).__name__, repr(x)
        raise TypeError

    try:
        attrs = tuple(sorted((name, part(x)) for name, x in step.attrs.items()))
        return step.op, part(step.inputs), attrs, tuple([(v.shape, v.dtype) for v in step.outputs])
    except TypeError:
        return None
