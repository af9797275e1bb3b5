"""Cut a graph with its gradients in two: forward, which also returns what is kept, and backward.

What backward needs of forward is kept, unless it can be computed again from inputs and kept values by ops that cost less
than memory does: arithmetic, one element at a time. Small results, such as the sums of rows, are kept for that.
"""

from __future__ import annotations

from typing import NamedTuple

from ..ir.graph import Graph, Step, Value, without_unused
from ..ir.lowering import loop_kind
from .simplify import Simple, simplify

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
    again = _again(joint, inputs, outs, late, wanted)
    steps = [step for step in joint.steps if step in late or step in again]
    backward = without_unused(Graph([], steps, wanted, joint.constants), wanted)
    read = {v for step in backward.steps for v in step.values}.union(wanted)
    repeated = backward.producers()
    kept = [v for v in joint.producers() if v in read and v not in repeated]
    held = [i for i, v in enumerate(inputs) if v in read]
    made = [*outs, *[v for v in kept if v not in outs]]
    forward = without_unused(Graph(inputs, joint.steps, made, joint.constants), made, keep_inputs=True)
    return Cut(
        Simple(inputs, forward.steps, made, forward.constants),
        Simple([*given, *[inputs[i] for i in held], *kept], backward.steps, wanted, backward.constants),
        held,
        [made.index(v) for v in kept],
    )


def _again(joint: Graph, inputs: list[Value], outs: list[Value], late: set[Step], wanted: list[Value]) -> set[Step]:
    """The cheap steps of forward that backward repeats, from what it has or may have."""
    producers = joint.producers()
    crossing = {_source(v, outs, producers) for v in [*wanted, *[v for step in late for v in step.values]]}
    largest = max((v.size for v in (*inputs, *producers)), default=0)
    has, again = {*inputs, *joint.constants}, set[Step]()
    for step in joint.steps:
        if step not in late:
            is_cheap = step.op.view or step.op.name == "astype" or loop_kind(step.op) == "elementwise"
            repeats = is_cheap and has.issuperset(step.values) and not _finds_extremes(step, producers)
            if repeats and not any(v in crossing and v in outs for v in step.outputs):
                again.add(step)
            has.update([v for v in step.outputs if repeats or v in crossing or v.size * SMALL <= largest])
    return again


def _finds_extremes(step: Step, producers: dict[Value, Step]) -> bool:
    """Whether a step finds the elements that are the greatest: computed again, they may differ from it in the last bit."""
    makers = [producers.get(_source(v, [], producers)) for v in step.values]
    return step.op.name == "equal" and any(made is not None and loop_kind(made.op) == "reduction" for made in makers)


def _source(v: Value, outs: list[Value], producers: dict[Value, Step]) -> Value:
    """What a value is a view of: the view is made again, not copied."""
    while v not in outs and v in producers and producers[v].op.view:
        v = producers[v].values[0]
    return v
