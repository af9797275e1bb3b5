"""Which steps become one loop.

A group has a domain: sizes of axes, such as (2048, 512), of which the first are looped over outside and the rest is a row. A step
belongs to a group if it runs over the whole domain, or once for each row. Sums along rows are complete when the row ends, so
what follows may be in the same group; sums over other axes are complete when the loop ends, so what follows may not.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..engine.op import OPS
from ..errors import axes_of
from ..ir.graph import Graph, Step, Value
from ..ir.lowering import PLACES, Formula, NoLoweringError, formula, operands
from .views import Strides, c_strides, is_view, strided, whole_axes

LARGEST = 256  # steps in one loop
LONGEST_ROW = 1 << 16  # elements: a row that is gone over again should still be in the cache
Axes = tuple[int | None, ...]  # for each axis of a value the axis of the domain, None for size 1


class UnfitError(Exception):
    """A step that cannot be in a group; the text says why."""


class Layout:
    """Where every value of a graph lies in memory: views share that of their source."""

    def __init__(self, graph: Graph):
        self.views: dict[Value, tuple[Value, Axes | None]] = {}  # their source, and which of its axes theirs are
        self.places: dict[Value, tuple[Value, int, Strides]] = {}
        for step in graph.steps:
            if is_view(step):
                (source,) = step.values
                root, offset, strides = self.place(source)
                found = strided(step, source.shape, strides)
                if found is not None:
                    self.places[step.out] = root, offset + found[0], found[1]
                    self.views[step.out] = root, whole_axes(root.shape, step.out.shape, offset + found[0], found[1])

    def join(self, step: Step) -> None:
        """Let the inputs of a concatenation lie in its result."""
        axis, offset, strides = step.attrs.get("axis", 0) % step.out.ndim, 0, c_strides(step.out.shape)
        for x in step.inputs:
            self.places[x] = step.out, offset, tuple([0 if n == 1 else s for n, s in zip(x.shape, strides)])
            offset += x.shape[axis] * strides[axis]

    def place(self, value: Value) -> tuple[Value, int, Strides]:
        """The value whose memory it lies in, the offset there, and the strides."""
        if value not in self.places:
            self.places[value] = value, 0, c_strides(value.shape)
        return self.places[value]

    def source(self, value: Value) -> Value:
        """What a value is a view of, or itself."""
        return self.views[value][0] if value in self.views else value


@dataclass(eq=False)
class Member:
    """A step in a group, and how it lies in the domain: axes are numbers of the domain's axes, strides are over these axes."""

    step: Step
    formula: Formula
    given: dict[str, Any]  # what the names in the formula stand for
    inside: dict[str, Value]  # those of them that are made in the group: a value, or the one that they are views of
    over: frozenset[int]  # the axes that it runs over: those of its output, or of what it reduces or gathers from
    own: Axes  # of its output
    reduced: frozenset[int]  # the axes that its output does not have
    strides: dict[str, Strides]  # of what it reads from outside, and of its output "out"


@dataclass(frozen=True)
class Domain:
    """What a group loops over, and what decides which of its axes can be the rows."""

    sizes: tuple[int, ...] = ()
    split: int = 0  # the axes from here on are a row
    over: frozenset[frozenset[int]] = frozenset()  # what members run over
    special: tuple[Member, ...] = ()  # members that are not element by element
    complete: frozenset[Value] = frozenset()  # results of `special` that must be there when the row ends
    patterns: frozenset[Strides] = frozenset()  # strides of all that is in memory

    def including(self, member: Member, sizes: tuple[int, ...]) -> Domain:
        """The domain with one more member, and rows as long as all members allow; UnfitError says why there is none."""
        special = self.special if member.formula.kind == "elementwise" else (*self.special, member)
        used = {*member.inside.values(), *([member.step.out] if member.formula.kind == "gather" else [])}
        complete = self.complete.union([m.step.out for m in special if m.step.out in used])
        patterns = frozenset([padded(s, sizes) for s in self.patterns.union(member.strides.values())])
        reason = ""
        for split in range(self.split, max(len(sizes), 1)):
            made = Domain(sizes, split, self.over | {member.over}, special, complete, patterns)
            reason = made.problem()
            if not reason:
                return made
        raise UnfitError(reason)

    def problem(self) -> str:
        """What keeps the axes from `split` on from being the rows; empty if nothing does."""
        every, outer = frozenset(range(len(self.sizes))), frozenset(range(self.split))
        row = every - outer
        if not self.over <= {every, outer, frozenset()}:
            return f"it runs over some axes only of the loop over {text_of(self.sizes)}"
        for member in self.special:
            if member.over == every and frozenset() < member.reduced & row < row:
                return "it reduces some axes of the rows only"
            if member.step.out in self.complete and (member.reduced != row or not row):
                return f"it needs a {member.formula.kind} that is complete only after the loop"
            if member.step.out in self.complete and math.prod(self.sizes[self.split :]) > LONGEST_ROW:
                return "it needs rows that are too long to go over twice"
        in_order = all(map(self.is_joined, range(self.split, len(self.sizes) - 1)))
        return "" if in_order else "its arrays are not in the order of the loop"

    def is_joined(self, k: int) -> bool:
        """Whether the axes `k` and `k + 1` are as one axis in memory, for every array."""
        return all(strides[k] == strides[k + 1] * self.sizes[k + 1] for strides in self.patterns)


@dataclass(eq=False)
class Group:
    """Steps that become one loop."""

    layout: Layout
    domain: Domain = field(default_factory=Domain)
    members: list[Member] = field(default_factory=list)
    makers: dict[Value, Member] = field(default_factory=dict)  # of the values that are made here

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of the domain."""
        return self.domain.sizes

    def find(self, value: Value) -> tuple[Value, Axes] | None:
        """The value made here that this one is, or is a view of, and its axes; None if it comes from outside."""
        source, axes = self.layout.views.get(value, (value, range(value.ndim)))
        if source not in self.makers:
            return None
        if axes is None:
            raise UnfitError("it looks at parts of an array that is made in the same loop")
        own = self.makers[source].own
        return source, tuple([None if a is None else own[a] for a in axes])

    def add(self, step: Step, found: Formula) -> None:
        """Take one more step, whose formula was found; UnfitError says why it cannot be in this group."""
        if len(self.members) >= LARGEST:
            raise UnfitError("the loop is long enough")
        given = operands(step)
        values = {name: x for name, x in given.items() if isinstance(x, Value)}
        inside = {name: at for name, x in values.items() if (at := self.find(x)) is not None}
        shape = step.out.shape if found.kind == "elementwise" else given["a"].shape
        axes, sizes = self.aligned(shape, [axes for _, axes in inside.values()])
        own = axes if found.kind == "elementwise" else _left(step, axes)
        strides = {"out": _over(sizes, own, self.layout.place(step.out)[2])}
        strides |= {k: _over(sizes, axes, self.layout.place(x)[2]) for k, x in values.items() if k not in inside}
        strides |= {name: _over(sizes, own, _counting(name, step)) for name in found.names & PLACES}
        sources = {name: value for name, (value, _) in inside.items()}
        over = frozenset([a for a in axes if a is not None])
        member = Member(step, found, given, sources, over, own, over.difference(own), strides)
        self.domain = self.domain.including(member, sizes)
        self.members.append(member)
        self.makers[step.out] = member

    def aligned(self, shape: tuple[int, ...], known: Iterable[Axes]) -> tuple[Axes, tuple[int, ...]]:
        """Which axis of the domain each axis of `shape` is, and the sizes of the domain, which may have grown.

        Inputs that are made here say it by their axes; otherwise the sizes do.
        """
        domain = self.sizes
        said = {(k, a) for found in known for k, a in enumerate(found, len(shape) - len(found)) if a is not None}
        wide = [k for k, n in enumerate(shape) if n > 1]
        if not {k for k, _ in said}.issuperset(wide):
            sizes = tuple([shape[k] for k in wide])
            grows = not self.members or math.prod(sizes[len(domain) :]) >= 16
            if sizes[: len(domain)] == domain and (len(sizes) == len(domain) or grows):
                domain = sizes  # what was in the group before now runs once for each row
            elif sizes != domain[: len(sizes)]:
                raise UnfitError(f"it runs over {text_of(sizes)} where the loop runs over {text_of(domain)}")
            said |= {(k, a) for a, k in enumerate(wide)}
        axes = dict(said)
        if len(axes) < len(said):
            raise UnfitError("its inputs run along different axes of the loop")
        if len({*axes.values()}) < len(axes):
            raise UnfitError("two of its axes would be the same axis of the loop")
        return tuple([axes.get(k) for k in range(len(shape))]), domain


def _left(step: Step, axes: Axes) -> Axes:
    """The axes of the domain that the output of a reduction or a gather has."""
    axis = step.attrs.get("axis")
    gone = set(range(len(axes))) if axis is None else {i % len(axes) for i in axes_of(axis)}
    kept = step.attrs.get("keepdims", step.out.ndim == len(axes))
    return tuple([None if i in gone else a for i, a in enumerate(axes) if i not in gone or kept])


def _counting(name: str, step: Step) -> Strides:
    """The strides of the numbers of elements in an array, or of their positions along the axis that a step names."""
    shape = step.out.shape
    if name == "element":
        return c_strides(shape)
    return tuple([int(i == step.attrs["axis"] % len(shape)) for i in range(len(shape))])


def _over(sizes: tuple[int, ...], axes: Axes, strides: Strides) -> Strides:
    """Strides over the axes of the domain, of an array that is aligned with the last of `axes`."""
    found = dict(zip(axes[len(axes) - len(strides) :], strides))
    return tuple([found.get(a, 0) for a in range(len(sizes))])


def padded(strides: Strides, sizes: tuple[int, ...]) -> Strides:
    """Strides from before the domain has grown."""
    return strides + (0,) * (len(sizes) - len(strides))


def text_of(sizes: tuple[int, ...]) -> str:
    return " × ".join(map(str, sizes)) or "one element"


Schedule = list[Group | Step]


def group(graph: Graph) -> tuple[Schedule, Layout, dict[Step, str]]:
    """The graph as loops and single steps, in an order in which they can run; and why steps are not in a loop that was near.

    A step that computes element by element from inputs alone could be in any loop. It waits for the first that uses it, since
    its result is in a register there; in an earlier loop it would be written to memory.
    """
    scheduler = _Scheduler(graph)
    for step in graph.steps:
        scheduler.take(step)
    scheduler.place([], [*scheduler.waiting])
    return scheduler.schedule, scheduler.layout, scheduler.reasons


class _Scheduler:
    def __init__(self, graph: Graph):
        self.layout = Layout(graph)
        self.order = {step: k for k, step in enumerate(graph.steps)}
        self.schedule: Schedule = []
        self.reasons: dict[Step, str] = {}
        self.formulas: dict[Step, Formula] = {}
        self.reads: dict[Step, list[Value]] = {}  # of what is not in its formula, a step may need the shape alone
        self.at: dict[Value, int] = {}  # where in the schedule a value is made
        self.waiting: dict[Value, Step] = {}
        for step in graph.steps:
            try:
                self.formulas[step] = formula(step)
            except NoLoweringError as error:
                self.reasons[step] = str(error)
        self.elementwise = {step for step, found in self.formulas.items() if found.kind == "elementwise"}
        # Nothing is to be done for a concatenation if loops make, for it alone, what is joined: they write it to its place.
        uses = Counter([v for step in graph.steps for v in step.values] + graph.outputs)
        once = {step.out for step in self.elementwise if uses[step.out] == 1}
        joins = [step for step in graph.steps if step.op is OPS["concatenate"] and once.issuperset(step.inputs)]
        self.joins = {step for step in joins if len(step.values) == len(step.inputs)}
        for step in self.joins:
            self.layout.join(step)

    def take(self, step: Step) -> None:
        """Put a step, and those that waited for it, into the schedule, or let it wait."""
        if step.outputs[0] in self.layout.views:
            return
        given = operands(step).values() if step in self.formulas else step.values
        reads = self.reads[step] = [self.layout.source(v) for v in given if isinstance(v, Value)]
        if step in self.elementwise and self.at.keys().isdisjoint(reads):
            self.waiting[step.out] = step
        elif step in self.joins:  # complete only after the last of the loops that write to it
            self.place([], reads)
            self.at[step.out] = max(self.at[x] for x in step.values) + 1
        else:
            self.place([step], reads)

    def place(self, steps: list[Step], reads: list[Value]) -> None:
        """Put steps into the schedule, with all that waited for somebody to read it."""
        first = self.after(reads)
        pending = [*reads]
        while pending:
            found = self.waiting.pop(pending.pop(), None)
            if found is not None:
                steps.append(found)
                pending += self.reads[found]
        for step in sorted(steps, key=self.order.__getitem__):
            place = self.join(step, max(first, self.after(self.reads[step])))
            self.at.update(dict.fromkeys(step.outputs, place))

    def after(self, values: list[Value]) -> int:
        """The first entry of the schedule after which all these values are there."""
        return max([self.at.get(v, 0) for v in values], default=0)

    def join(self, step: Step, first: int) -> int:
        """Put a step into the first group that takes it, or at the end; returns where."""
        groups = [(k, g) for k, g in enumerate(self.schedule[first:], first) if isinstance(g, Group)]
        for k, group in [*groups, (len(self.schedule), Group(self.layout))] if step in self.formulas else ():
            try:
                group.add(step, self.formulas[step])
            except UnfitError as error:
                self.reasons.setdefault(step, str(error))
            else:
                self.schedule[k : k + 1] = [group]
                return k
        self.schedule.append(step)
        return len(self.schedule) - 1
