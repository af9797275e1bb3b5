"""Attention that was written in plain ops, found in a traced graph and given to the kernels of the fused op.

What is looked for is `softmax(scale · q @ kᵀ) @ v`, with nothing in between that is used elsewhere. The scale may be on q, on k or on the
scores; the softmax may be the op, or exp(x - max) divided by its sum; a mask may be a `where` or be added, with -inf or a number so
low that nothing of it is left beside a score. The mask must be known now, and leave a key to every query: one without keys
gets zeros from the fused op, but NaN or the mean of all values from a softmax.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from ..engine.op import OPS
from ..ir.graph import Graph, Step, Value, run_step, without_unused
from ..ir.whole import with_kept
from ..kernels.definitions import attention, packed_attention
from .group import Layout
from .simplify import parts_as_views
from .views import c_strides

__all__ = ["recognize"]

LOW = -1e7  # a score from here down is taken for -inf
_TURNED = {2: (1, 0), 3: (0, 2, 1), 4: (0, 1, 3, 2)}  # the axes of a stack of matrices, each transposed


class _Otherwise(Exception):
    """It is no attention after all."""


def _need(*conditions: Any) -> None:
    if not all(conditions):
        raise _Otherwise


def recognize(graph: Graph) -> tuple[Graph, list[str]]:
    """The graph with each attention as one step, and a line for each that says so."""
    search, steps, notes = _Search(graph), list[Step](), list[str]()
    for step in graph.steps:
        try:
            steps += search.fused(step)
            notes.append(f"recognised as attention: what leads to the product at {step.line or 'the end'}")
        except _Otherwise:
            steps.append(step)
    made = Graph(graph.inputs, steps, graph.outputs, {**graph.constants, **search.masks})
    return without_unused(made, graph.outputs, keep_inputs=True) if notes else graph, notes


class _Search:
    def __init__(self, graph: Graph):
        self.makers, self.masks = graph.producers(), dict[Value, Any]()
        self.outputs: dict[Any, list[Any]] = {}  # shapes and dtypes of what a kernel returns
        self.uses = Counter([v for step in graph.steps for v in step.values] + graph.outputs)
        self.known = {v: a for v, a in graph.constants.items() if isinstance(a, np.ndarray)}
        for step in graph.steps:
            if step.values and self.known.keys() >= {*step.values} and not step.op.random and not step.numbers:
                self.known.update(zip(step.outputs, run_step(step, self.known)))
        self.layout = Layout(Graph([], [view for step in graph.steps for view in parts_as_views(step)], []))

    def fused(self, product: Step) -> list[Step]:
        """The steps of a fused attention that gives what this product gives."""
        _need(product.op is OPS["matmul"], not product.constant)
        weights, v = product.inputs
        (q, k), scale, allowed = self.unmasked(self.softmax_input(weights))
        _need(q.dtype == k.dtype == v.dtype, 2 <= q.ndim == k.ndim == v.ndim <= 4)
        _need(q.shape[:-2] == k.shape[:-2] == v.shape[:-2])
        new: list[Step] = []
        (q, scale), (k, scale_of_k) = self.unscaled(q, scale), self.unscaled(k, 1.0)
        step = self.makers.get(k)
        if step and step.op is OPS["transpose"] and tuple(step.attrs.get("axes") or (1, 0)) == _TURNED[k.ndim]:
            k, scale_of_k = self.unscaled(step.inputs[0], scale_of_k)
        else:
            k = _add(new, "transpose", k, axes=_TURNED[k.ndim])
        attrs = {"causal": False, "scale": scale * scale_of_k, "dropout_p": 0.0, "dropout_key": 0, "start": 0}
        _need(attrs["scale"] > 0)
        mask = None
        if allowed is not None:
            ahead = np.tri(q.shape[-2], k.shape[-2], dtype=bool)
            attrs["causal"] = allowed.size == ahead.size and bool((allowed == ahead).all())
            if not attrs["causal"]:
                mask = Value(allowed.shape, bool)
                self.masks[mask] = allowed
        seen = self.packed(new, q, k, v, mask, attrs)
        if seen is None:
            wide = [_add(new, "reshape", x, shape=(1,) * (4 - x.ndim) + x.shape) for x in (q, k, v)]
            seen = self.kernel(new, attention, [*wide, mask], attrs)
        return [*new, Step(OPS["reshape"], (seen,), {"shape": product.out.shape}, product.outputs)]

    def softmax_input(self, weights: Any) -> Value:
        """What these are the softmax of, along the last axis."""
        maker = self.makers.get(weights)
        if maker and maker.op is OPS["softmax"]:
            _need(self.uses[weights] == 1 == self.uses[maker.inputs[0]], _is_last(maker))
            return maker.inputs[0]
        power, total = self.made(weights, "divide").inputs
        scores, top = self.made(self.made(power, "exp", uses=2).inputs[0], "subtract").inputs
        for row, op, source in ((total, "sum", power), (top, "max", scores)):
            maker, inner = self.makers.get(row), row
            if maker and (maker.op is OPS["reshape"] or maker.attrs.get("index") == (..., None)):
                inner = maker.inputs[0]  # whose last axis was put back
            step = self.made(inner, op, may_be_detached=op == "max")
            _need(step.inputs[0] is source, _is_last(step), self.uses[row] == 1)
            _need(row.shape == (*source.shape[:-1], 1))
        _need(self.uses[scores] == 2)
        return scores

    def unmasked(self, scores: Value) -> tuple[tuple[Any, ...], float, np.ndarray | None]:
        """The factors of the product that the scores are made of, the scale, and where they are not masked."""
        inner, scale = self.unscaled(scores, 1.0)
        chain, allowed, step = [inner], None, self.makers.get(inner)
        if step and step.op in (OPS["where"], OPS["add"]):
            *mask, x, other = step.inputs
            swapped = self.array(x) is not None
            x, low = (other, self.array(x)) if swapped else (x, self.array(other))
            _need(low is not None, isinstance(x, Value), not step.constant, scale > 0, *[m in self.known for m in mask])
            allowed = self.known[mask[0]] != swapped if mask else low == 0
            _need((low[() if mask else ~allowed] * scale <= LOW).all())
            _need(np.broadcast_to(allowed, scores.shape).any(axis=-1).all())
            inner, scale = self.unscaled(x, scale)
            chain += [x, inner]
        _need(all(v is scores or self.uses[v] == 1 and v.shape == scores.shape for v in chain))
        return self.made(inner, "matmul", uses=self.uses[inner]).inputs, scale, allowed

    def unscaled(self, value: Value, scale: float) -> tuple[Value, float]:
        """What a value is a multiple of, and the factor times `scale`."""
        step = self.makers.get(value)
        if step and step.op in (OPS["multiply"], OPS["divide"]) and not step.constant:
            divides = step.op is OPS["divide"]
            for x, other in (step.inputs,) if divides else (step.inputs, step.inputs[::-1]):
                number = self.array(other)
                alike = isinstance(x, Value) and (x.shape, x.dtype) == (value.shape, value.dtype)
                if alike and number is not None and number.size == 1 and number.all():
                    return x, scale / number.item() if divides else scale * number.item()
        return value, scale

    def packed(self, new: list[Step], q: Value, k: Value, v: Value, mask: Value | None, attrs: Any) -> Value | None:
        """Attention, if q, k and v lie side by side in one array, which the kernel then takes as it is."""
        if q.ndim != 4 or not q.shape == k.shape == v.shape:
            return None
        (batch, heads, length, width), (root, _, _) = q.shape, self.layout.place(q)
        strides = c_strides((batch, length, 3, heads, width))
        places = [(root, i * heads * width, tuple([strides[a] for a in (0, 3, 1, 4)])) for i in range(3)]
        if [self.layout.place(x) for x in (q, k, v)] != places or root.size != 3 * q.size:
            return None
        joined = _add(new, "reshape", root, shape=(batch, length, 3 * heads * width))
        seen = self.kernel(new, packed_attention, [joined, mask], {"heads": heads, **attrs})
        apart = _add(new, "reshape", seen, shape=(batch, length, heads, width))
        return _add(new, "transpose", apart, axes=(0, 2, 1, 3))

    def kernel(self, new: list[Step], op: Any, inputs: list[Value | None], attrs: dict[str, Any]) -> Value:
        """A step of the op kept whole, which runs once on zeros to show what it keeps."""
        kinds = tuple([None if x is None else (x.shape, x.dtype) for x in inputs])
        key = (op, kinds, *attrs.items())
        if key not in self.outputs:
            arrays = [None if kind is None else np.zeros(*kind) for kind in kinds]
            _need(op.kernels.choose(arrays, attrs))
            self.outputs[key] = [(a.shape, a.dtype) for a in with_kept(op).forward(np, *arrays, **attrs)]
        outputs = tuple([Value(*kind) for kind in self.outputs[key]])
        new.append(Step(with_kept(op), tuple(inputs), attrs, outputs))
        return outputs[0]

    def made(self, value: Any, op: str, uses: int = 1, may_be_detached: bool = False) -> Step:
        """The step of this op that makes a value, which is used so many times."""
        step = self.makers.get(value)
        if step is None or step.op is not OPS[op] or self.uses[value] != uses or step.constant and not may_be_detached:
            raise _Otherwise
        return step

    def array(self, x: Any) -> Any:
        """A number, or what a value is that depends on constants alone; None for others."""
        return np.asarray(x) if isinstance(x, (int, float)) else self.known.get(x)


def _add(new: list[Step], op: str, x: Value, **attrs: Any) -> Value:
    """One more step, of an op that changes the shape."""
    made = OPS[op].forward(np, np.broadcast_to(np.zeros((), x.dtype), x.shape), **attrs)
    new.append(Step(OPS[op], (x,), attrs, (Value(made.shape, x.dtype),)))
    return new[-1].out


def _is_last(step: Step) -> bool:
    return step.attrs.get("axis", -1 if step.op is OPS["softmax"] else None) in (-1, step.inputs[0].ndim - 1)
