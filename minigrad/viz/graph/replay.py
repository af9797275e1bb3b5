"""The backward pass once more, step by step: what arrives, what each rule makes of it, and where it is added up.

The engine's own `pull` runs the rules, and tells a tracer about them. Nothing is changed: no gradient is stored, nothing is freed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ... import kernels
from ...engine.backend import as_array, backend_of, on_device_of
from ...engine.graph import Node, pull
from ...engine.modes import Mode, local
from ...errors import ShapeError, describe
from ...ops.creation import tensor
from ...tracer import Tracer
from ..drawing.arrays import SOME, Digest, as_numpy, number
from .boxes import Box
from .values import input_names, saved_values

__all__ = ["Contribution", "Step", "replay"]

KEPT = 1 << 13  # numbers of an array that is kept; of a larger gradient only what is shown


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
    total: Any = None  # and what has come with this one
    examples: dict[str, Any] = field(default_factory=dict)  # one number of large arrays, with what it was made from

    @property
    def is_summed(self) -> bool:
        return bool(self.raw.shape != self.part.shape)


@dataclass
class Step:
    """One op of the backward pass."""

    box: Box
    upstream: Any
    contributions: list[Contribution]


class _Parts(Tracer):
    """Keeps what the rules of the last node gave: for each input its number, the rule's result, and that after un-broadcasting."""

    parts: Any = ()

    def pulled(self, node: Node, gradient: Any, parts: Sequence[tuple[int, Any, Any]]) -> None:
        self.parts = parts


def replay(boxes: Sequence[Box], seed: Any = None) -> list[Step]:
    """Carry gradients back from the outputs, store them in the boxes, and tell what every op did, in order.

    The seed is ones. Where what a rule needs is no longer there, or the rule fails, nothing is carried further, and all
    that it comes from has no gradient, rather than a part of it. Hooks are not run: they may do anything.
    """
    by_node = {box.node: box for box in boxes if box.node is not None}
    gradients = {box.node: _seed(box, seed) for box in by_node.values() if box.is_output and box.node.plan is not None}
    lost: set[Node | None] = set()  # whose gradient cannot be told
    steps = []
    outer, tracer = local.mode, _Parts()
    local.mode = Mode(False, (tracer,), outer.scope)
    try:
        with np.errstate(all="ignore"), kernels.use("definitions"):  # which need no compiler
            for box in reversed(boxes):  # so that all who use a value come before it
                node = box.node
                g = None if node is None or node in lost else gradients.pop(node, None)
                made: list[Contribution] | None = []
                upstream = None if g is None or isinstance(g, list) else as_numpy(g)
                if g is not None and node.plan is not None:
                    made = _contributions(tracer, box, g, gradients, by_node)
                    if node.plan.output_index is None:
                        steps.append(Step(box, upstream, [_digested(part, upstream) for part in made or ()]))
                if node in lost or made is None:
                    lost.update(node.parents)
                if upstream is not None:
                    box.gradient_digest = Digest(upstream)
                    if upstream.size > KEPT:
                        box.gradient_digest.let_go()
                        steps[-1].upstream = box.gradient_digest if steps[-1].box is box else steps[-1].upstream
    finally:
        local.mode = outer
    return steps


def _seed(box: Box, seed: Any) -> Any:
    value = 1 if seed is None else as_numpy(seed)
    try:
        whole = np.broadcast_to(value, box.shape).astype(box.dtype)
    except ValueError:
        problem, expected = f"graph: the seed does not fit the output {box.label!r}", f"what broadcasts to {box.shape}"
        raise ShapeError(problem, expected, describe(value)) from None
    return tensor(whole, device=box.device).data


def _contributions(
    tracer: _Parts, box: Box, g: Any, gradients: dict[Any, Any], by_node: dict[Any, Box]
) -> list[Contribution] | None:
    """What one op adds to the gradients of what it was made from; None where that cannot be told."""
    node: Any = box.node
    saved, plan = saved_values(node), node.plan
    if saved is None:
        return None
    sums = {p: as_numpy(gradients.get(p)) for p in node.parents if p is not None and plan.output_index is None}
    tracer.parts = ()
    try:
        with on_device_of(as_array(next(part for part in g if part is not None) if isinstance(g, list) else g)):
            pull(gradients, node, g, saved, None, local.mode.tracers)
            parts, slopes = tracer.parts, {}
            if plan.op.elementwise and plan.op.joint is None:
                pull({}, node, backend_of(as_array(g)).xp.ones_like(g), saved, None, local.mode.tracers)
                slopes = {place: as_numpy(raw) for place, raw, _ in tracer.parts}
    except Exception as error:  # of a user's rule, or one that this very picture is to explain
        box.failed, box.error = True, box.error or str(error)
        return None
    made = []
    last = {node.parents[place]: place for place, _, _ in parts}
    for place, raw, part in parts:
        name, parent = input_names(plan.op, len(node.parents))[place], node.parents[place]
        raw, part, before = as_numpy(raw), as_numpy(part), sums[parent]
        is_last = place == last[parent]
        sums[parent] = as_numpy(gradients[parent]) if is_last else part if before is None else before + part
        formula = plan.op.formulas.get(name, "")
        made.append(Contribution(name, by_node[parent], raw, part, slopes.get(place), formula, before, sums[parent]))
    return made


def _digested(made: Contribution, upstream: Any) -> Contribution:
    """The same, with examples of large arrays, which are let go if they are too large to be kept."""
    if made.before is not None and made.part.size > SOME:
        made.examples["sum_at"] = _at_largest(made.total, before=made.before, part=made.part)
    if made.local is not None and made.raw.size > SOME:
        made.examples["product_at"] = _at_largest(made.raw, upstream=upstream, local=made.local)
    is_summed, made.total = made.is_summed, made.total if made.before is not None else None
    for name in ("part", "local", "before", "total", *(["raw"] if is_summed else [])):
        array = getattr(made, name)
        if array is not None and array.size > KEPT:
            setattr(made, name, Digest(array).let_go())
    made.raw = made.raw if is_summed else made.part
    return made


def _at_largest(result: np.ndarray, **terms: np.ndarray) -> dict[str, str]:
    """One element of a large array, the largest in size, with the numbers that it was made from."""
    ends = [np.unravel_index(end, result.shape) for end in (result.argmax(), result.argmin())]
    index = tuple([int(place) for place in max(ends, key=lambda end: abs(result[end]))])
    shown = {"result": result} | {name: np.broadcast_to(array, result.shape) for name, array in terms.items()}
    return {"index": str(list(index))} | {name: number(array[index]) for name, array in shown.items()}
