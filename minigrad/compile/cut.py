"""Cut a graph with its gradients in two: forward, which also returns what is kept, and backward.

What backward needs of forward is kept, unless it can be computed again from inputs and kept values by ops that cost less
than memory does: arithmetic, one element at a time. Small results, such as the sums of rows, are kept for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..ir.graph import Graph, Step, Value
from .lowering import formula_of
from .simplify import simplify

__all__ = ["Cut", "cut"]

SMALL = 8  # a value that is so many times smaller than the largest is kept rather than computed again


class Cut(NamedTuple):
    """Forward returns the outputs, and what is kept. Backward takes the gradients of the outputs, inputs, and what was kept."""

    forward: Graph
    backward: Graph
    held: list[int]  # the numbers of the inputs that backward reads
    kept: list[int]  # the numbers of what forward returns that backward reads


def cut(joint: Graph, outputs: int, seeds: int) -> Cut:
    """Cut a graph whose last inputs are the gradients of its first outputs, and whose other outputs are those of inputs."""
    joint = simplify(joint)
    inputs, given = joint.inputs[: len(joint.inputs) - seeds], joint.inputs[len(joint.inputs) - seeds :]
    outs, wanted = joint.outputs[:outputs], joint.outputs[outputs:]
    producers = joint.producers()
    late = _after(joint, given)
    known = {*inputs, *joint.constants}
    largest = max((v.size for v in (*inputs, *producers)), default=0)
    needed = _needed(wanted, producers)
    read_late = {v for step in late & needed for v in step.values} | {*wanted}
    crossing = [v for step in joint.steps if step not in late for v in step.outputs if v in read_late]
    kept: dict[Value, None] = {}
    for v in crossing:
        if v not in outs and _can_recompute(v, producers, known, kept, largest):
            continue
        while v not in outs and v in producers and producers[v].op.view:  # which is made again, not copied
            v = producers[v].values[0]
        if v not in known:
            kept[v] = None
    # What is computed again may rest on small results of forward.
    backward = _back_to(wanted, producers, late, {*known, *given}, kept)
    read = {v for step in backward for v in step.values} | {*wanted}
    held = [i for i, v in enumerate(inputs) if v in read]
    constants = {v: a for v, a in joint.constants.items() if v in read}
    made = [*outs, *[v for v in kept if v not in outs]]
    forward_steps = _needed(made, producers)
    forward = Graph(inputs, [s for s in joint.steps if s in forward_steps], made, dict(joint.constants))
    taken = [*given, *[inputs[i] for i in held], *kept]
    return Cut(
        forward,
        Graph(taken, [s for s in joint.steps if s in backward], wanted, constants),
        held,
        [made.index(v) for v in kept],
    )


def _after(joint: Graph, seeds: Sequence[Value]) -> set[Step]:
    """The steps that depend on the gradients of the outputs."""
    reached, late = set(seeds), set()
    for step in joint.steps:
        if any(v in reached for v in step.values):
            late.add(step)
            reached.update(step.outputs)
    return late


def _needed(outputs: Iterable[Value], producers: dict[Value, Step]) -> set[Step]:
    """The steps that lead to these values."""
    found: set[Step] = set()
    stack = list(outputs)
    while stack:
        step = producers.get(stack.pop())
        if step is not None and step not in found:
            found.add(step)
            stack.extend(step.values)
    return found


def _can_recompute(
    v: Value, producers: dict[Value, Step], known: set[Value], kept: dict[Value, None], largest: int
) -> bool:
    """Whether cheap ops lead to a value from what is known, kept, or small enough to be kept."""
    stack, seen = [v], set()
    while stack:
        value = stack.pop()
        if value in known or value in kept or value in seen:
            continue
        seen.add(value)
        step = producers[value]
        if not _is_cheap(step):
            if value is v or value.size * SMALL > largest:
                return False
            continue
        stack.extend(step.values)
    return True


def _back_to(
    wanted: Iterable[Value], producers: dict[Value, Step], late: set[Step], ends: set[Value], kept: dict[Value, None]
) -> set[Step]:
    """The steps of backward: all that lead to the gradients from what is known; small results on the way are kept."""
    found: set[Step] = set()
    stack = list(wanted)
    while stack:
        value = stack.pop()
        if value in ends or value in kept:
            continue
        step = producers[value]
        if step not in late and not _is_cheap(step):
            kept[value] = None
        elif step not in found:
            found.add(step)
            stack.extend(step.values)
    return found


def _is_cheap(step: Step) -> bool:
    text = step.op.lowering
    return step.op.view or step.op.name == "astype" or isinstance(text, str) and formula_of(text).kind == "elementwise"
