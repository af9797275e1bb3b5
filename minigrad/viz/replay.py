"""The backward pass once more, step by step: what arrives, what each rule makes of it, and where it is added up.

It runs the very rules that `backward()` runs, in its order, and changes nothing: no gradient is stored, nothing is freed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from ..engine.backend import as_array, backend_of, on_device_of
from ..engine.convert import tensor
from ..engine.errors import ShapeError, describe
from ..engine.graph import Node, unbroadcast
from ..engine.modes import no_grad
from .tracing import Box, input_names
from .values import is_overwritten, plain

__all__ = ["Contribution", "Step", "is_freed", "replay"]

# What the rule of an op that is not elementwise does with the gradient g that arrives.
FORMULAS = {
    ("matmul", "a"): "g @ bᵀ",
    ("matmul", "b"): "aᵀ @ g",
    ("linear", "x"): "g @ weight",
    ("linear", "weight"): "gᵀ @ x",
    ("linear", "bias"): "g summed over all rows",
    ("sum", "a"): "g, given to every number that was added",
    ("mean", "a"): "g / n, given to every number",
    ("reshape", "a"): "g, reshaped back",
    ("transpose", "a"): "g, transposed back",
    ("broadcast_to", "a"): "g, summed over the copies",
    ("getitem", "a"): "g, put where it was taken from; 0 elsewhere",
    ("softmax", "a"): "out · (g − Σ g·out)",
    ("max", "a"): "g, given to the greatest",
    ("embedding", "weight"): "rows of g, added to the rows that were looked up",
}


@dataclass
class Contribution:
    """What one input of an op gets: `raw` as the rule made it, `part` after un-broadcasting, `local` where they are factors."""

    input: str
    target: Box
    raw: Any
    part: Any
    local: Any = None  # the derivative of the result with respect to this input, for elementwise ops
    formula: str = ""
    before: Any = None  # what had come to the target by other ways

    @property
    def is_summed(self) -> bool:
        return bool(self.raw.shape != self.part.shape)


@dataclass
class Step:
    """One op of the backward pass."""

    box: Box
    upstream: Any
    contributions: list[Contribution]
    seconds: float


def replay(boxes: Sequence[Box], seed: Any = None) -> list[Step]:
    """Carry gradients back from the outputs, store them in the boxes, and tell what every op did, in order.

    The seed is ones. Where what a rule needs is no longer there, or the rule fails, nothing is carried further, and all
    that it comes from has no gradient, rather than a part of it. Hooks are not run: they may do anything.
    """
    by_node = {box.node: box for box in boxes if box.node is not None}
    gradients: dict[Node, Any] = {}
    lost: set[Node] = set()  # whose gradient cannot be told
    steps = []
    for box in boxes:
        if box.is_output and box.node is not None and box.node.plan is not None:
            gradients[box.node] = _seed(box, seed)
    with no_grad(), np.errstate(all="ignore"):
        for box in reversed(boxes):
            node = box.node
            if node in lost:
                lost.update(node.parents)
            if node is None or node.plan is None or node not in gradients or node in lost:
                continue
            began = perf_counter()
            made = _contributions(node, box, gradients[node], gradients, by_node)
            if made is None:
                lost.update(node.parents)
                made = []
            if node.plan.picks is None:
                g = gradients[node]
                steps.append(Step(box, None if isinstance(g, list) else plain(g), made, perf_counter() - began))
    for node, g in gradients.items():
        if node in by_node and node not in lost and not isinstance(g, list):
            by_node[node].gradient = plain(g)
    return steps


def is_freed(box: Box) -> bool:
    """Whether a `backward()` has freed what the rules of an op need, and nobody watched it."""
    node = box.node
    if node is None or node.plan is None or node.plan.picks is not None or node.saved is not None:
        return False
    return node.seen is None or bool(node.plan.fused)


def _seed(box: Box, seed: Any) -> Any:
    """The gradient of an output, where the output is."""
    value = 1 if seed is None else plain(getattr(seed, "data", seed) if hasattr(seed, "node") else seed)
    try:
        whole = np.broadcast_to(value, box.shape).astype(box.dtype)
    except ValueError:
        raise ShapeError(
            f"graph: the seed does not fit the output {box.label!r}",
            f"a shape that broadcasts to {box.shape}",
            describe(value),
        ) from None
    return tensor(whole, device=box.device).data


def _contributions(
    node: Node, box: Box, g: Any, gradients: dict[Node, Any], by_node: dict[Node, Box]
) -> list[Contribution] | None:
    """What one op adds to the gradients of what it was made from; None where that cannot be told."""
    plan = node.plan
    if plan.picks is not None:
        parts = gradients.setdefault(node.parents[0], [None] * len(node.parents[0].shape))
        parts[plan.picks] = g if parts[plan.picks] is None else parts[plan.picks] + g
        return []
    saved = _saved(node)
    if saved is None:
        return None
    if plan.op.several:
        g = _filled(g, node)
    done: list[Contribution] = []
    names = input_names(node)
    try:
        for place, raw, local in _results(node, g, saved):
            parent = node.parents[place]
            with on_device_of(as_array(raw)):
                part = unbroadcast(raw, parent.shape).astype(parent.dtype, copy=False)
                before = gradients.get(parent)
                gradients[parent] = part if before is None else before + part
            made = Contribution(names[place], by_node[parent], plain(raw), plain(part), plain(local))
            made.before, made.formula = plain(before), FORMULAS.get((plan.op.name, names[place]), "")
            done.append(made)
    except Exception as error:  # of a user's rule, or one that this very picture is to explain
        box.failed, box.error = True, box.error or str(error)
        return None
    return done


def _results(node: Node, g: Any, saved: Any) -> Iterator[tuple[int, Any, Any]]:
    """What the rules give to each parent: which one, its gradient, and for an elementwise op the derivative alone."""
    plan = node.plan
    with on_device_of(as_array(next(x for x in g if x is not None) if plan.op.several else g)):
        for i, rule, pick in plan.rules:
            result = rule(g, *pick(saved))
            for place, raw in enumerate(result) if i < 0 else [(i, result)]:
                if node.parents[place] is None or raw is None:
                    continue
                local = None
                if plan.op.elementwise and i >= 0:
                    local = _array(rule(backend_of(as_array(g)).xp.ones_like(g), *pick(saved)))
                yield place, _array(raw), local


def _array(value: Any) -> Any:
    """A rule may use public functions, which give Tensors also for arrays."""
    return as_array(value.data if hasattr(value, "node") else value)


def _filled(parts: Any, node: Node) -> tuple[Any, ...]:
    """Zeros stand in for the outputs that nobody used; outputs that are not floating have no gradient."""
    some = next(part for part in parts if part is not None)
    with on_device_of(as_array(some)):
        zeros = backend_of(as_array(some)).xp.zeros
        filled = [
            zeros(shape, dtype) if part is None and dtype.kind == "f" else part
            for part, shape, dtype in zip(parts, node.shape, node.dtype)
        ]
    return tuple(filled)


def _saved(node: Node) -> Any:
    """What the rules need; after a backward that freed it, from what was seen; None if it is gone or was overwritten."""
    saved = node.saved
    if saved is None and node.seen is not None and not node.plan.fused:
        saved = node.plan.save(node.seen.inputs, node.seen.out, node.attrs)
    if saved is None:
        return None
    arrays = [array for value in saved for array in (value if isinstance(value, tuple) else (value,))]
    return None if any(is_overwritten(array, node) for array in arrays) else saved
