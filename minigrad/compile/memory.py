"""What of a schedule must be in memory, and for how long.

A value that is used only inside the loop that makes it never exists as an array. All others are allocated when they are made and
let go after their last use, so that the next array of that size takes their place. Each run has memory of its own, so that
several threads can run one plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from ..engine.op import OPS
from ..ir.graph import Graph, Step, Value
from .group import Group, Layout, Schedule
from .loops import ELEMENT, Load, Loop, Store
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
        if not own or offset or strides != c_strides(value.shape):
            steps.append(Step(OPS["clone"], (value,), {}, (Value(value.shape, value.dtype),)))
            value = steps[-1].out
        taken.add(root)
        outputs.append(value)
    return Graph(graph.inputs, steps, outputs, graph.constants)


def reads(entry: Group | Step, layout: Layout) -> list[Value]:
    """The values whose memory a loop or a step reads, each once; for a view that of its source."""
    if isinstance(entry, Step):
        found = entry.values
    else:
        given = [(x, name in m.inside) for m in entry.members for name, x in m.given.items()]
        found = [x for x, is_inside in given if isinstance(x, Value) and not is_inside]
    return list(dict.fromkeys(layout.place(v)[0] for v in found))


def stored(schedule: Schedule, layout: Layout, graph: Graph) -> list[set[Value]]:
    """For each loop of the schedule, those of its values that another entry, or the caller, needs."""
    needed = {layout.place(v)[0] for v in graph.outputs}.union(*[reads(entry, layout) for entry in schedule])
    made = [[m.step.out for m in entry.members] if isinstance(entry, Group) else [] for entry in schedule]
    return [{v for v in values if layout.place(v)[0] in needed} for values in made]


def last_uses(schedule: Schedule, layout: Layout, graph: Graph) -> list[list[Value]]:
    """For each entry of the schedule, the values that nobody needs after it."""
    needed = {layout.place(v)[0] for v in graph.outputs} | {*graph.inputs, *graph.constants}
    found: list[list[Value]] = []
    for entry in reversed(schedule):
        here = [v for v in reads(entry, layout) if v not in needed]
        needed.update(here)
        found.append(here)
    return found[::-1]


def in_place(
    schedule: Schedule, loops: Mapping[Group, Loop], layout: Layout, graph: Graph, into: Mapping[int, int]
) -> dict[Group, dict[Value, Value]]:
    """For each loop, those of its outputs that can take the memory of an array that is read there for the last time.

    `into` names the outputs, by number, that belong into an input.
    """
    targets = {layout.place(graph.outputs[i])[0]: graph.inputs[to] for i, to in into.items()}
    writers = Counter(v for loop in loops.values() for v in loop.writes)  # several, where arrays are joined
    later: set[Value] = set()
    found: dict[Group, dict[Value, Value]] = {}
    for entry, gone in reversed(list(zip(schedule, last_uses(schedule, layout, graph)))):
        if isinstance(entry, Group):
            loop, shared = loops[entry], found.setdefault(entry, {})
            for out in [v for v in loop.writes if writers[v] == 1]:
                sources = [targets[out]] if out in targets else gone
                alike = [v for v in sources if (v.shape, v.dtype) == (out.shape, out.dtype)]
                free = [v for v in alike if v not in later and v not in shared.values()]
                shared.update([(out, v) for v in free if _reads_first(loop, v, out)][:1])
        later.update(reads(entry, layout))
    return found


def _reads_first(loop: Loop, source: Value, out: Value) -> bool:
    """Whether a loop reads each element of `source` before it stores the one of `out` that would take its place."""
    every = [(level, s) for (_, level), part in loop.parts.items() for s in part if isinstance(s, (Load, Store))]
    if any(s.access.root in (source, out) and level != ELEMENT for level, s in every):
        return False
    *loads, last = [s for _, s in every if s.access.root is (out if isinstance(s, Store) else source)]
    same = all(isinstance(s, Load) and s.at is None and replace(s.access, root=out) == last.access for s in loads)
    return same and isinstance(last, Store)
