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
        self.inside: list[Step] = []  # the steps of an attention
        self.new: list[Step] = []  # those that take their place
        self.uses = Counter([v for step in graph.steps for v in step.values] + graph.outputs)
        self.known = {v: a for v, a in graph.constants.items() if isinstance(a, np.ndarray)}
        for step in graph.steps:
            if step.values and self.known.keys() >= {*step.values} and not step.op.random and not step.numbers:
                self.known.update(zip(step.outputs, run_step(step, self.known)))
        self.layout = Layout(Graph([], [view for step in graph.steps for view in parts_as_views(step)], []))

    def fused(self, product: Step) -> list[Step]:
        """The steps of a fused attention that gives what this product gives."""
        _need(product.op is OPS["matmul"], not product.constant)
        self.inside, self.new = [product], []
        weights, v = product.inputs
        (q, k), scale, allowed = self.unmasked(self.softmax_input(weights))
        reads = Counter([x for step in self.inside for x in step.values])
        _need(all(self.uses[step.out] == reads[step.out] for step in self.inside[1:]))
        _need(q.dtype == k.dtype == v.dtype, 2 <= q.ndim == k.ndim == v.ndim <= 4)
        _need(q.shape[:-2] == k.shape[:-2] == v.shape[:-2])
        q, scale = self.unscaled(q, scale)
        k, scale = self.unscaled(k, scale)
        step = self.makers.get(k)
        if step and step.op is OPS["transpose"] and tuple(step.attrs.get("axes") or (1, 0)) == _TURNED[k.ndim]:
            k, scale = self.unscaled(step.inputs[0], scale)
        else:
            k = self.add(OPS["transpose"], k, axes=_TURNED[k.ndim])
        _need(scale > 0)
        mask, ahead = None, np.tri(q.shape[-2], k.shape[-2], dtype=bool)
        causal = allowed is not None and allowed.size == ahead.size and bool((allowed == ahead).all())
        if allowed is not None and not causal:
            mask = Value(allowed.shape, bool)
            self.masks[mask] = allowed
        attrs = {"causal": causal, "scale": scale, "softcap": None, "dropout_p": 0.0, "dropout_key": 0, "start": 0}
        seen = self.packed(q, k, v, mask, attrs)
        if seen is None:
            wide = [self.add(OPS["reshape"], x, shape=(1,) * (4 - x.ndim) + x.shape) for x in (q, k, v)]
            seen = self.add(attention, *wide, mask, **attrs)
        return [*self.new, Step(OPS["reshape"], (seen,), {"shape": product.out.shape}, product.outputs)]

    def softmax_input(self, weights: Any) -> Value:
        """What these are the softmax of, along the last axis."""
        step = self.made(weights, "softmax", "divide")
        if step.op is OPS["softmax"]:
            _need(_is_last(step))
            return step.inputs[0]
        power, total = step.inputs
        scores, top = self.made(self.made(power, "exp").inputs[0], "subtract").inputs
        for row, op, source in ((total, "sum", power), (top, "max", scores)):
            maker, inner = self.makers.get(row), row
            if maker and (maker.op is OPS["reshape"] or maker.attrs.get("index") == (..., None)):
                self.inside.append(maker)
                inner = maker.inputs[0]  # whose last axis was put back
            step = self.made(inner, op, may_be_detached=op == "max")
            _need(step.inputs[0] is source, _is_last(step), row.shape == (*step.inputs[0].shape[:-1], 1))
        return scores

    def unmasked(self, scores: Value) -> tuple[tuple[Any, ...], float, np.ndarray | None]:
        """The factors of the product that the scores are made of, the scale, and where they are not masked."""
        inner, scale = self.unscaled(scores, 1.0)
        allowed, step = None, self.made(inner, "matmul", "where", "add")
        if step.op is not OPS["matmul"]:
            *mask, x, other = step.inputs
            swapped = self.array(x) is not None
            x, low = (other, self.array(x)) if swapped else (x, self.array(other))
            _need(low is not None, isinstance(x, Value), scale > 0, *[m in self.known for m in mask])
            allowed = self.known[mask[0]] != swapped if mask else low == 0
            _need((low[() if mask else ~allowed] * scale <= LOW).all())
            _need(np.broadcast_to(allowed, scores.shape).any(axis=-1).all())
            inner, scale = self.unscaled(x, scale)
            step = self.made(inner, "matmul")
        _need(inner.shape == scores.shape)
        return step.inputs, scale, allowed

    def unscaled(self, value: Value, scale: float) -> tuple[Value, float]:
        """What a value is a multiple of, and the factor times `scale`."""
        step = self.makers.get(value)
        if step and step.op in (OPS["multiply"], OPS["divide"]) and not step.constant:
            divides = step.op is OPS["divide"]
            for x, other in (step.inputs,) if divides else (step.inputs, step.inputs[::-1]):
                number = self.array(other)
                alike = isinstance(x, Value) and (x.shape, x.dtype) == (value.shape, value.dtype)
                if alike and number is not None and number.size == 1 and number.all():
                    self.inside.append(step)
                    return x, scale / number.item() if divides else scale * number.item()
        return value, scale

    def packed(self, q: Value, k: Value, v: Value, mask: Value | None, attrs: Any) -> Value | None:
        """Attention, if q, k and v lie side by side in one array, which the kernel then takes as it is."""
        if q.ndim != 4 or not q.shape == k.shape == v.shape:
            return None
        (batch, heads, length, width), (root, _, _) = q.shape, self.layout.place(q)
        strides = c_strides((batch, length, 3, heads, width))
        places = [(root, i * heads * width, tuple([strides[a] for a in (0, 3, 1, 4)])) for i in range(3)]
        if [self.layout.place(x) for x in (q, k, v)] != places or root.size != 3 * q.size:
            return None
        joined = self.add(OPS["reshape"], root, shape=(batch, length, 3 * heads * width))
        seen = self.add(packed_attention, joined, mask, heads=heads, **attrs)
        apart = self.add(OPS["reshape"], seen, shape=(batch, length, heads, width))
        return self.add(OPS["transpose"], apart, axes=(0, 2, 1, 3))

    def add(self, op: Any, *inputs: Value | None, **attrs: Any) -> Value:
        """One more step, of an op that runs once on zeros to show what it returns, and if it is fused, what it keeps."""
        arrays = [None if x is None else np.zeros(x.shape, x.dtype) for x in inputs]
        if op.kernels is not None:
            _need(op.kernels.choose(arrays, attrs))
            op = with_kept(op)
        made = op.forward(np, *arrays, **attrs)
        outputs = tuple([Value(a.shape, a.dtype) for a in (made if op.several else (made,))])
        self.new.append(Step(op, inputs, attrs, outputs))
        return outputs[0]

    def made(self, value: Any, *ops: str, may_be_detached: bool = False) -> Step:
        """The step that makes a value, which must be of one of these ops, and is part of the attention."""
        step = self.makers.get(value)
        if step is None or step.op not in [OPS[op] for op in ops] or step.constant and not may_be_detached:
            raise _Otherwise
        self.inside.append(step)
        return step

    def array(self, x: Any) -> Any:
        """A number, or what a value is that depends on constants alone; None for others."""
        return np.asarray(x) if isinstance(x, (int, float)) else self.known.get(x)


def _is_last(step: Step) -> bool:
    return step.attrs.get("axis", -1 if step.op is OPS["softmax"] else None) in (-1, step.inputs[0].ndim - 1)
