"""What of a schedule must be in memory, and for how long.

A value that is used only inside the loop that makes it never exists as an array. All others are allocated when they are made and
let go after their last use, so that the next array of that size takes their place. Each run has memory of its own, so that
several threads can run one plan.
"""

from __future__ import annotations

from ..engine.op import OPS
from .graph import Graph, Step, Value
from .group import Group, Layout, Schedule
from .lowering import DTYPES, operands
from .views import c_strides


def with_own_outputs(graph: Graph) -> Graph:
    """The graph with a copy for each output that is an input, a constant, part of another output, or not in C order."""
    layout = Layout(graph)
    made = {out for step in graph.steps for out in step.outputs if not step.op.view}
    taken: set[Value] = set()
    steps, outputs = list(graph.steps), []
    for value in graph.outputs:
        root, offset, strides = layout.place(value)
        own = root in made and root not in taken and value.size == root.size
        if (not own or offset or strides != c_strides(value.shape)) and value.dtype.name in DTYPES and value.size:
            steps.append(Step(OPS["clone"], (value,), {}, (Value(value.shape, value.dtype),)))
            value = steps[-1].out
        taken.add(root)
        outputs.append(value)
    return Graph(graph.inputs, steps, outputs, graph.constants)


def reads(entry: Group | Step, layout: Layout) -> list[Value]:
    """The values whose memory a loop or a step reads, each once; for a view that of its source."""
    if isinstance(entry, Step):
        found = list(entry.values)
    else:
        given = [x for m in entry.members for x in operands(m.step).values() if isinstance(x, Value)]
        found = [x for x in given if entry.find(x) is None]
    return list(dict.fromkeys(layout.place(v)[0] for v in found))


def stored(schedule: Schedule, layout: Layout, graph: Graph) -> list[set[Value]]:
    """For each loop of the schedule, those of its values that another entry, or the caller, needs."""
    readers: dict[Value, set[int]] = {}
    for k, entry in enumerate(schedule):
        for value in reads(entry, layout):
            readers.setdefault(value, set()).add(k)
    outputs = {layout.place(v)[0] for v in graph.outputs}
    made = [{m.step.out for m in entry.members} if isinstance(entry, Group) else set() for entry in schedule]
    return [{v for v in values if v in outputs or readers.get(v, set()) - {k}} for k, values in enumerate(made)]


def last_uses(schedule: Schedule, layout: Layout, graph: Graph) -> list[list[Value]]:
    """For each entry of the schedule, the values that nobody needs after it."""
    needed = {layout.place(v)[0] for v in graph.outputs} | {*graph.inputs, *graph.constants}
    found: list[list[Value]] = []
    for entry in reversed(schedule):
        here = [v for v in reads(entry, layout) if v not in needed]
        needed.update(here)
        found.append(here)
    return found[::-1]
