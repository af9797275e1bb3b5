"""Cut a graph with its gradients in two: forward, which also returns what is kept, and backward.

What backward needs of forward is kept, unless it can be computed again from inputs and kept values by ops that cost less
than memory does: arithmetic, one element at a time. Small results, such as the sums of rows, are kept for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .graph import Graph, Step, Value

__all__ = ["cut"]

SMALL = 8  # a value that is so many times smaller than the largest is kept rather than computed again
_CHEAP = {"astype", "broadcast_to", "reshape", "transpose"}


def cut(
    joint: Graph, outputs: Sequence[Value], seeds: Iterable[Value | None], grads: Iterable[Value | None]
) -> tuple[Graph, Graph, list[int]]:
    """Forward and backward, and the numbers of the inputs that backward reads.

    Forward returns the outputs, then what is kept. Backward takes the gradients of the outputs, the inputs it reads, and what
    was kept; it returns the gradients of the inputs.
    """
    given = [seed for seed in seeds if seed is not None]
    wanted = [grad for grad in grads if grad is not None]
    producers = joint.producers()
    late = _after(joint, given)
    known = {*joint.inputs, *joint.constants}
    largest = max((v.size for v in (*joint.inputs, *producers)), default=0)
    needed = _needed(joint, wanted, producers)
    crossing = [
        v
        for step in joint.steps
        if step not in late
        for v in step.outputs
        if v in wanted or any(v in other.values for other in late if other in needed)
    ]
    kept: dict[Value, None] = {}
    for v in crossing:
        if not _can_recompute(v, producers, known, kept, largest):
            kept[v] = None
    # What is computed again may rest on small results of forward.
    backward = _back_to(wanted, producers, late, {*known, *given}, kept)
    read = {v for step in backward for v in step.values} | {*wanted}
    held = [i for i, v in enumerate(joint.inputs) if v in read]
    constants = {v: a for v, a in joint.constants.items() if v in read}
    inputs = [*given, *[joint.inputs[i] for i in held], *kept]
    forward_outputs = [*outputs, *kept]
    forward_steps = _needed(joint, forward_outputs, producers)
    forward = Graph(
        list(joint.inputs), [s for s in joint.steps if s in forward_steps], forward_outputs, dict(joint.constants)
    )
    return forward, Graph(inputs, [s for s in joint.steps if s in backward], wanted, constants), held


def _after(joint: Graph, seeds: Sequence[Value]) -> set[Step]:
    """The steps that depend on the gradients of the outputs."""
    reached, late = set(seeds), set()
    for step in joint.steps:
        if any(v in reached for v in step.values):
            late.add(step)
            reached.update(step.outputs)
    return late


def _needed(joint: Graph, outputs: Iterable[Value], producers: dict[Value, Step]) -> set[Step]:
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
    return step.op.elementwise or step.op.name in _CHEAP
