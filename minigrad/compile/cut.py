"""Cut a graph with its gradients in two: forward, which also returns what is kept, and backward.

What backward needs of forward is kept, unless it can be computed again from inputs and kept values by ops that cost less
than memory does: arithmetic, one element at a time. Small results, such as the sums of rows, are kept for that.
"""

from __future__ import annotations

from typing import NamedTuple

from ..ir.graph import Graph, Step, Value, without_unused
from .simplify import Simple, loop_kind, simplify

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
    late, reached = set[Step](), set(given)  # what depends on the gradients of the outputs
    for step in joint.steps:
        if not reached.isdisjoint(step.values):
            late.add(step)
            reached.update(step.outputs)
    kept = _kept(joint, inputs, outs, late, wanted)
    steps, read = list[Step](), set(wanted)  # of backward: all that leads to the gradients from what it is given
    for step in reversed(joint.steps):
        needed = [v for v in step.outputs if v in read and v not in kept]
        if needed and step not in late and not _is_cheap(step):  # a small result on which something rests
            kept.update(dict.fromkeys(needed))
        elif needed:
            steps.append(step)
            read.update(step.values)
    made = [*outs, *[v for v in kept if v not in outs]]
    held = [i for i, v in enumerate(inputs) if v in read]
    forward = without_unused(Graph(inputs, joint.steps, made, joint.constants), made, keep_inputs=True)
    constants = {v: array for v, array in joint.constants.items() if v in read}
    return Cut(
        Simple(inputs, forward.steps, made, forward.constants),
        Simple([*given, *[inputs[i] for i in held], *kept], steps[::-1], wanted, constants),
        held,
        [made.index(v) for v in kept],
    )


def _kept(
    joint: Graph, inputs: list[Value], outs: list[Value], late: set[Step], wanted: list[Value]
) -> dict[Value, None]:
    """The results of forward that backward reads, and that cheap ops do not lead to from what it has or may have."""
    producers = joint.producers()
    crossing = {_source(v, outs, producers) for step in late for v in step.values}
    crossing |= {_source(v, outs, producers) for v in wanted}
    largest = max((v.size for v in (*inputs, *producers)), default=0)
    has = {*inputs, *joint.constants}
    kept: dict[Value, None] = {}
    for step in joint.steps:
        if step in late:
            continue
        is_cheap = _is_cheap(step)
        again = is_cheap and has.issuperset(step.values)
        for v in step.outputs:
            if v in crossing and (v in outs or not again):
                kept[v] = None
            if v in kept or again or not is_cheap and v.size * SMALL <= largest:
                has.add(v)
    return kept


def _source(v: Value, outs: list[Value], producers: dict[Value, Step]) -> Value:
    """What a value is a view of: the view is made again, not copied."""
    while v not in outs and v in producers and producers[v].op.view:
        v = producers[v].values[0]
    return v


def _is_cheap(step: Step) -> bool:
    return step.op.view or step.op.name == "astype" or loop_kind(step.op) == "elementwise"
