"""The backward pass once more, step by step: what comes from above, what each rule makes of it, and where it is added up.

It runs the very rules that `backward()` runs, in its order, and changes nothing: no gradient is stored, nothing is freed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from ..engine.graph import Node, unbroadcast
from ..engine.modes import no_grad
from .tracing import Box

__all__ = ["Contribution", "Step", "replay"]

# What the rule of an op that is not elementwise does with the gradient g from above.
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

    The seed is ones. Where what a rule needs is no longer there, nothing is carried further.
    """
    by_node = {box.node: box for box in boxes if box.node is not None}
    gradients: dict[Node, Any] = {}
    steps = []
    for box in boxes:
        if box.is_output and box.node is not None and box.node.plan is not None:
            gradients[box.node] = np.ones(box.shape, box.dtype) if seed is None else np.asarray(seed)
    with no_grad(), np.errstate(all="ignore"):
        for box in reversed(boxes):
            node = box.node
            if node is None or node.plan is None or node not in gradients:
                continue
            g = gradients[node]
            began = perf_counter()
            contributions = _contributions(node, box, g, gradients, by_node)
            if node.plan.picks is None:
                steps.append(Step(box, None if isinstance(g, list) else g, contributions, perf_counter() - began))
    for node, g in gradients.items():
        if node in by_node and not isinstance(g, list):
            by_node[node].gradient = np.asarray(g)
    return steps


def _contributions(
    node: Node, box: Box, g: Any, gradients: dict[Node, Any], by_node: dict[Node, Box]
) -> list[Contribution]:
    plan = node.plan
    if plan.picks is not None:
        parts = gradients.setdefault(node.parents[0], [None] * len(node.parents[0].shape))
        parts[plan.picks] = g if parts[plan.picks] is None else parts[plan.picks] + g
        return []
    saved = _saved(node)
    if saved is None:
        return []
    if plan.op.several:
        g = tuple([np.zeros(s, d) if p is None else p for p, s, d in zip(g, node.shape, node.dtype)])
    done = []
    for i, rule, pick in plan.rules:
        results = zip(range(len(node.parents)), rule(g, *pick(saved))) if i < 0 else [(i, rule(g, *pick(saved)))]
        for place, raw in results:
            parent = node.parents[place]
            if parent is None or raw is None:
                continue
            raw = np.asarray(getattr(raw, "data", raw) if hasattr(raw, "node") else raw)
            part = unbroadcast(raw, parent.shape).astype(parent.dtype, copy=False)
            entry = box.inputs[place]
            made = Contribution(entry.name, by_node[parent], raw, part, before=gradients.get(parent))
            made.formula = FORMULAS.get((plan.op.name, entry.name), "")
            if plan.op.elementwise and i >= 0:
                made.local = np.asarray(rule(np.ones_like(g), *pick(saved)))
            gradients[parent] = part if made.before is None else made.before + part
            done.append(made)
    return done


def _saved(node: Node) -> Any:
    """What the rules need; after a backward that freed it, from what was seen."""
    if node.saved is not None or node.seen is None:
        return node.saved
    if node.plan.fused:
        return None
    return node.plan.save(node.seen.inputs, node.seen.out, node.attrs)
