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

from ..engine.op import OPS
from ..errors import axes_of
from ..ir.graph import Graph, Step, Value
from .lowering import Formula, NoLoweringError, formula, operands
from .views import Strides, axis_map, c_strides, is_view, strided

LARGEST = 256  # steps in one loop
LONGEST_ROW = 1 << 16  # elements: a row that is gone over again should still be in the cache
Axes = tuple[int | None, ...]  # for each axis of a value the axis of the domain, None for size 1


class UnfitError(Exception):
    """A step that cannot be in a group; the text says why."""


class Layout:
    """Where every value of a graph lies in memory: views share that of their source."""

    def __init__(self, graph: Graph):
        self.views: dict[Value, tuple[Value, Axes | None]] = {}
        self.places: dict[Value, tuple[Value, int, Strides]] = {}
        for step in graph.steps:
            if is_view(step):
                (source,) = step.values
                root, offset, strides = self.place(source)
                found = strided(step, source.shape, strides)
                if found is not None:
                    self.places[step.out] = root, offset + found[0], found[1]
                    self.views[step.out] = source, axis_map(step, source)
        self.joins = self._find_joins(graph)

    def _find_joins(self, graph: Graph) -> set[Step]:
        """The concatenations for which nothing is to be done: loops write what is joined to its place in the result."""
        uses = Counter(v for step in graph.steps for v in step.values) + Counter(graph.outputs)
        makers = graph.producers()
        joins = set()
        for step in graph.steps:
            if step.op is not OPS["concatenate"] or not all(isinstance(x, Value) for x in step.inputs):
                continue
            made = [makers.get(x) for x in step.inputs]
            if not all(uses[x] == 1 and m is not None and _is_elementwise(m) for x, m in zip(step.inputs, made)):
                continue
            axis, offset, strides = step.attrs.get("axis", 0) % step.out.ndim, 0, c_strides(step.out.shape)
            for x in step.inputs:
                own = tuple([0 if n == 1 else s for n, s in zip(x.shape, strides)])
                self.places[x] = step.out, offset, own
                offset += x.shape[axis] * strides[axis]
            joins.add(step)
        return joins

    def place(self, value: Value) -> tuple[Value, int, Strides]:
        """The value whose memory it lies in, the offset there, and the strides."""
        return self.places.get(value) or (value, 0, c_strides(value.shape))

    def source(self, value: Value) -> Value:
        """What a value is a view of, or itself."""
        while value in self.views:
            value = self.views[value][0]
        return value


@dataclass(eq=False)
class Member:
    """A step in a group, and the axes of the domain that it runs over."""

    step: Step
    formula: Formula
    axes: Axes  # of what it runs over: its output, or the input of a reduction
    reduced: frozenset[int] = frozenset()

    @property
    def over(self) -> frozenset[int]:
        """The axes of the domain that it runs over."""
        return frozenset(a for a in self.axes if a is not None)


@dataclass(eq=False)
class Group:
    """Steps that become one loop."""

    layout: Layout
    members: list[Member] = field(default_factory=list)
    sizes: tuple[int, ...] = ()
    split: int = 0  # the axes from here on are a row
    axes: dict[Value, Axes] = field(default_factory=dict)  # of the values that are made here
    used: set[Value] = field(default_factory=set)  # values that are made and used here
    patterns: set[tuple[int, ...]] = field(default_factory=set)  # strides over the domain of all that is in memory
    over: set[frozenset[int]] = field(default_factory=set)  # what its members run over
    special: list[Member] = field(default_factory=list)  # members that are not element by element

    def find(self, value: Value) -> tuple[Value, Axes] | None:
        """The value made here that this one is, or is a view of, and its axes; None if it comes from outside."""
        if value in self.axes:
            return value, self.axes[value]
        if value not in self.layout.views:
            return None
        source, axes = self.layout.views[value]
        found = self.find(source)
        if found is None:
            return None
        if axes is None:
            raise UnfitError("it looks at parts of an array that is made in the same loop")
        return found[0], tuple([None if a is None else found[1][a] for a in axes])

    def strides(self, value: Value, axes: Axes) -> tuple[int, ...]:
        """How far apart in memory neighbours along each axis of the domain are; `axes` are those that `value` is aligned with."""
        _, _, strides = self.layout.place(value)
        found = [0] * len(self.sizes)
        for a, s in zip(axes[len(axes) - len(strides) :], strides):
            if a is not None:
                found[a] = s
        return tuple(found)

    def add(self, step: Step) -> Group:
        """A group with one more step; UnfitError says why there is none."""
        found = formula(step)
        given = [x for x in operands(step).values() if isinstance(x, Value)]
        shape = given[0].shape if found.kind == "reduction" else step.out.shape
        made = Group(self.layout, [*self.members], self.sizes, 0, {**self.axes}, {*self.used})
        made.patterns, made.over, made.special = {*self.patterns}, {*self.over}, [*self.special]
        if len(made.members) >= LARGEST:
            raise UnfitError("the loop is long enough")
        inside = [(v, at) for v in given if (at := made.find(v)) is not None]
        gathered = operands(step)["a"] if found.kind == "gather" else None
        axes = made.aligned(shape, [(at[1], step if v is gathered else None) for v, at in inside])
        made.used |= {at[0] for _, at in inside}
        reduced: frozenset[int] = frozenset()
        own = axes
        if found.kind == "reduction":
            axis = step.attrs.get("axis")
            gone = set(range(len(shape))) if axis is None else {i % len(shape) for i in axes_of(axis)}
            reduced = frozenset(a for i, a in enumerate(axes) if i in gone and a is not None)
            kept = step.attrs.get("keepdims")
            own = tuple([None if i in gone else a for i, a in enumerate(axes) if i not in gone or kept])
        member = Member(step, found, axes, reduced)
        made.members.append(member)
        made.axes[step.out] = own
        if made.sizes != self.sizes:  # the domain has grown
            made.patterns = {s for m in made.members for s in made.strides_of(m)}
        made.patterns.update(made.strides_of(member))
        made.over.add(member.over)
        if found.kind != "elementwise":
            made.special.append(member)
        made.split = made.best_split()
        return made

    def aligned(self, shape: tuple[int, ...], given: Iterable[tuple[Axes, Step | None]]) -> Axes:
        """Which axis of the domain each axis of `shape` is: as its inputs that are made here say, or else by the sizes."""
        axes: list[int | None] = [None] * len(shape)
        for found, gathers in given:
            skipped = None if gathers is None else gathers.attrs["axis"] % len(shape)
            for k, a in enumerate(found, len(shape) - len(found)):
                if a is None or k == skipped:
                    continue
                if axes[k] not in (None, a):
                    raise UnfitError("its inputs run along different axes of the loop")
                axes[k] = a
        wide = [k for k, n in enumerate(shape) if n > 1]
        if any(axes[k] is None for k in wide):
            sizes = tuple([shape[k] for k in wide])
            if sizes[: len(self.sizes)] == self.sizes and (len(sizes) == len(self.sizes) or _worthwhile(self, sizes)):
                self.sizes = sizes  # what was in the group before now runs once for each row
            elif sizes != self.sizes[: len(sizes)]:
                raise UnfitError(f"it runs over {_text(sizes)} where the loop runs over {_text(self.sizes)}")
            for a, k in enumerate(wide):
                if axes[k] not in (None, a):
                    raise UnfitError("its inputs run along different axes of the loop")
                axes[k] = a
        if len({a for a in axes if a is not None}) < len(wide):
            raise UnfitError("two of its axes would be the same axis of the loop")
        return tuple(axes)

    def best_split(self) -> int:
        """The first axis of the rows: rows as long as all steps allow."""
        reason = ""
        for split in range(max(len(self.sizes), 1)):
            reason = self.problem(split)
            if not reason:
                return split
        raise UnfitError(reason)

    def problem(self, split: int) -> str:
        """What keeps the axes from `split` on from being the rows; empty if nothing does."""
        every, outer = frozenset(range(len(self.sizes))), frozenset(range(split))
        row = every - outer
        if not self.over <= {every, outer, frozenset()}:
            return f"it runs over some axes only of the loop over {_text(self.sizes)}"
        for member in self.special:
            cut = member.reduced & row
            if member.over == every and cut and cut != row:
                return "it reduces some axes of the rows only"
            if member.reduced and member.step.out in self.used:
                if member.reduced != row:
                    return "it needs a reduction that is complete only after the loop"
                if math.prod(self.sizes[split:]) > LONGEST_ROW:
                    return "it needs a reduction over rows that are too long to go over twice"
            if member.formula.kind == "gather" and not self.gathers_along(member, row):
                return "it gathers along an axis that is not the row"
        in_order = all(_is_one_axis(strides, self.sizes, split) for strides in self.patterns)
        return "" if in_order else "its arrays are not in the order of the loop"

    def gathers_along(self, member: Member, row: frozenset[int]) -> bool:
        """Whether a gather takes one element of each row."""
        source = operands(member.step)["a"]
        at = self.find(source)
        axis = member.step.attrs["axis"] % source.ndim
        if len(row) != 1 or source.shape[axis] == 1:
            return False
        if at is not None:
            return at[1][axis] in row
        (a,) = row
        return (
            self.sizes[a] == source.shape[axis]
            and member.over == frozenset(range(a))
            and a == len(self.sizes) - 1 == axis
        )

    def axes_of_operand(self, member: Member, x: Value) -> Axes:
        """The axes that an input of a member is aligned with: those it runs over, or, for what a gather takes from, with the row."""
        if member.formula.kind != "gather" or x is not operands(member.step)["a"]:
            return member.axes
        axis = member.step.attrs["axis"] % len(member.axes)
        return tuple([len(self.sizes) - 1 if i == axis else a for i, a in enumerate(member.axes)])

    def strides_of(self, member: Member) -> Iterable[tuple[int, ...]]:
        """The strides, over the axes of the domain, of what a member reads and of its output."""
        for x in operands(member.step).values():
            if isinstance(x, Value) and self.find(x) is None:
                yield self.strides(x, self.axes_of_operand(member, x))
        yield self.strides(member.step.out, self.axes[member.step.out])
        if "position" in member.formula.names:
            axis = member.axes[member.step.attrs["axis"]]
            yield tuple([int(a == axis) for a in range(len(self.sizes))])


def _worthwhile(group: Group, sizes: tuple[int, ...]) -> bool:
    return not group.members or math.prod(sizes[len(group.sizes) :]) >= 16


def _text(sizes: tuple[int, ...]) -> str:
    return " × ".join(map(str, sizes)) or "one element"


def _is_one_axis(strides: tuple[int, ...], sizes: tuple[int, ...], split: int) -> bool:
    """Whether the axes from `split` on are as one axis in memory."""
    return all(strides[k] == strides[k + 1] * sizes[k + 1] for k in range(split, len(sizes) - 1))


Schedule = list[Group | Step]


def group(graph: Graph) -> tuple[Schedule, Layout, dict[Step, str]]:
    """The graph as loops and single steps, in an order in which they can run; and why steps are not in a loop that was near.

    A step that computes element by element from inputs alone could be in any loop. It waits for the first that uses it, since
    its result is in a register there; in an earlier loop it would be written to memory.
    """
    layout = Layout(graph)
    schedule: Schedule = []
    at: dict[Value, int] = {}  # where in the schedule a value is made
    waiting: dict[Value, Step] = {}
    reasons: dict[Step, str] = {}
    order = {step: i for i, step in enumerate(graph.steps)}
    for step in [*graph.steps, None]:
        if step is not None and step.outputs[0] in layout.views:
            continue
        needed = [*waiting] if step is None else [layout.source(v) for v in _needed(step)]
        if step is not None and _is_elementwise(step) and not any(v in at for v in needed):
            waiting[step.out] = step
            continue
        earliest = max([at.get(v, 0) for v in needed], default=0)
        chosen = [] if step is None or step in layout.joins else [step]
        while needed:
            found = waiting.pop(needed.pop(), None)
            if found is not None:
                chosen.append(found)
                needed += [layout.source(v) for v in _needed(found)]
        for one in sorted(chosen, key=order.__getitem__):
            first = max([at.get(layout.source(v), 0) for v in _needed(one)], default=0)
            place = _join(one, schedule, max(first, earliest), layout, reasons)
            at.update(dict.fromkeys(one.outputs, place))
        if step is not None and step in layout.joins:  # complete only after the last of these loops
            at[step.out] = max(at[x] for x in step.values) + 1
    return schedule, layout, reasons


def _is_elementwise(step: Step) -> bool:
    try:
        return formula(step).kind == "elementwise"
    except NoLoweringError:
        return False


def _needed(step: Step) -> Iterable[Value]:
    """The values that a step reads: those in its formula, if it has one; of others it may need the shape alone."""
    try:
        formula(step)
    except NoLoweringError:
        return step.values
    return [x for x in operands(step).values() if isinstance(x, Value)]


def _join(step: Step, schedule: Schedule, earliest: int, layout: Layout, reasons: dict[Step, str]) -> int:
    """Put a step into the first group that takes it, or at the end; returns where."""
    try:
        formula(step)
    except NoLoweringError as error:
        reasons[step] = str(error)
        schedule.append(step)
        return len(schedule) - 1
    for k in range(earliest, len(schedule)):
        entry = schedule[k]
        if isinstance(entry, Group):
            try:
                schedule[k] = entry.add(step)
                return k
            except UnfitError as error:
                reasons.setdefault(step, str(error))
    try:
        schedule.append(Group(layout).add(step))
    except UnfitError as error:
        reasons[step] = str(error)
        schedule.append(step)
    return len(schedule) - 1
