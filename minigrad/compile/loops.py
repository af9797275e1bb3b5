"""One loop over rows, described without a language: what is loaded, computed, kept, stored and summed, in which phase of a row.

Taking the mean from each row has two phases: the first adds up `x[j]` along the row; between the two, the mean is divided out;
the second stores `x[j] - mean`.

A phase goes along the row once. A value that a later phase needs again is computed again if that is cheap, or else kept in a
row of scratch memory (or read from the output it was stored to).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..ir.graph import Value
from ..ir.lowering import PLACES, REDUCTIONS, Reduction
from .group import Group, Member, padded
from .views import Strides

RECOMPUTED = 6  # additions: what costs more is kept from one phase to the next
LOOP, ROW, ELEMENT = range(3)  # levels: how often something is done


@dataclass(frozen=True)
class Slot:
    """A row of scratch memory."""

    name: str
    dtype: np.dtype


@dataclass(frozen=True)
class Access:
    """A place in memory for each point of the loop; with no root, the number of that place itself."""

    root: Value | Slot | None
    offset: int
    outer: Strides
    inner: int

    @property
    def level(self) -> int:
        """How often it moves."""
        return ELEMENT if self.inner else ROW if any(self.outer) else LOOP


@dataclass
class Load:
    """`name = memory[access]`, at the place `at` of the row if given."""

    name: str
    access: Access
    at: str | None = None


@dataclass
class Compute:
    """`name = formula(names)`"""

    name: str
    member: Member
    names: dict[str, Any]  # of operands: a name and its dtype, or a number that is the same in the whole loop


@dataclass
class Store:
    """`memory[access] = name`"""

    access: Access
    name: str


@dataclass
class Reduce:
    """`into = into + name`, in memory that is complete when the loop ends; or a total of the row, which gets the name `into`."""

    into: Access | str
    value: Value  # what it is in the graph
    kind: Reduction
    name: str
    given: np.dtype  # of the name
    dtype: np.dtype  # of the total

    @property
    def first(self) -> Any:
        """What the total begins with."""
        found = self.kind.first.get(self.dtype.kind)
        bounds = np.iinfo(self.dtype) if found is None else None
        return found if bounds is None else bounds.max if self.kind.function == "minimum" else bounds.min


@dataclass
class Place:
    """`name = index`, counted from 0; what is out of range is reported, and becomes 0."""

    name: str
    index: str
    size: int


Statement = Load | Compute | Store | Reduce | Place


def totals(statements: Iterable[Statement]) -> list[Reduce]:
    """Those of the statements that add to a total of the row."""
    return [s for s in statements if isinstance(s, Reduce) and isinstance(s.into, str)]


@dataclass(eq=False)
class Loop:
    """A group as a loop over rows."""

    group: Group
    outer: tuple[int, ...]  # sizes
    row: int
    blocked: bool  # all is one axis, of which each thread has a part as its row
    # By phase and level, in the order in which they are done; what is done once for the loop is of phase 0.
    parts: dict[tuple[int, int], list[Statement]] = field(default_factory=lambda: defaultdict(list))
    sums: dict[Value, Reduce] = field(default_factory=dict)  # complete only after the loop
    slots: dict[str, np.dtype] = field(default_factory=dict)  # rows of scratch memory, by their names

    @property
    def phases(self) -> int:
        """How often a row is gone along."""
        return max([phase + 1 for phase, level in self.parts if level == ELEMENT], default=0)

    @property
    def size(self) -> int:
        """The number of points."""
        return math.prod(self.outer) * self.row

    @cached_property
    def writes(self) -> list[Value]:
        """The arrays that it stores to."""
        return self._roots(Store)

    @cached_property
    def reads(self) -> list[Value]:
        """The arrays that it loads from, without those that it has stored to itself."""
        return [v for v in self._roots(Load) if v not in self.writes]

    def _roots(self, kind: type[Load] | type[Store]) -> list[Value]:
        found = dict.fromkeys(s.access.root for part in self.parts.values() for s in part if isinstance(s, kind))
        return [root for root in found if isinstance(root, Value)]


class _Builder:
    """Writes the statements of a loop, one phase after the other."""

    def __init__(self, group: Group, stored: set[Value], prefix: str, widen: bool):
        self.group, self.stored, self.prefix, self.widen = group, stored, prefix, widen
        sizes, split = group.sizes, group.domain.split
        self.row = frozenset(range(split, len(sizes)))
        levels = {frozenset[int](): LOOP, frozenset(range(split)): ROW, frozenset(range(len(sizes))): ELEMENT}
        self.levels = {m.step.out: ROW if m.formula.kind == "gather" else levels[m.over] for m in group.members}
        self.names = {m.step.out: f"{prefix}v{i}" for i, m in enumerate(group.members)}
        # The outer axes, those that are as one axis for every array taken together: the last of each.
        self.ends = [k for k in range(split) if k == split - 1 or not group.domain.is_joined(k)]
        outer_sizes = [math.prod(sizes[i + 1 : k + 1]) for i, k in zip([-1, *self.ends], self.ends)]
        blocked = not split and not group.domain.complete
        self.loop = Loop(group, tuple(outer_sizes), math.prod(sizes[split:]), blocked)
        self.loaded: dict[tuple[Access, str | None], str] = {}
        self.phase = 0  # the one that is being written
        self.seen: set[tuple[int | None, str]] = set()  # names, and the phase if they are for an element of the row
        self.kept: dict[Value, Access] = {}  # values that are there in later phases

    def is_along(self, value: Value) -> bool:
        """Whether a value made here has an element for each of the row."""
        return self.levels[value] == ELEMENT and not self.group.makers[value].reduced

    def access(self, member: Member, name: str) -> Access:
        """Where an operand that comes from outside is, or the output."""
        strides = padded(member.strides[name], self.group.sizes)
        outer = tuple([strides[k] for k in self.ends])
        inner = strides[-1] if self.row else 0
        given = {"out": member.step.out, **member.given}  # without the number of an element
        root, offset, _ = self.group.layout.place(given[name]) if name in given else (None, 0, ())
        return Access(root, offset, outer, inner)

    def build(self) -> Loop:
        phases, costs = self.find_phases()
        computed = self.find_demands(phases, costs)
        for self.phase in range(max(phases.values(), default=0) + 1):
            for member in self.group.members:
                out, is_first = member.step.out, phases[member] == self.phase
                if is_first and member.formula.kind == "reduction":
                    self.reduce(member)
                elif self.phase in computed[out] if self.is_along(out) else is_first:
                    self.compute(member, is_first and out in self.stored)
        self.loop.parts = {key: part for key, part in sorted(self.loop.parts.items()) if part}
        return self.loop

    def find_phases(self) -> tuple[dict[Member, int], dict[Value, int]]:
        """The first phase in which each member can be computed, and what computing a value along the row again would cost."""
        phases: dict[Member, int] = {}
        ready: dict[Value, int] = {}
        costs: dict[Value, int] = defaultdict(int)
        for member in self.group.members:
            out, inside = member.step.out, member.inside.values()
            phases[member] = ready[out] = max([ready[v] for v in inside], default=0)
            ready[out] += bool(member.reduced) and self.levels[out] == ELEMENT
            if self.is_along(out):
                loads = len(member.strides.keys() & member.given.keys())
                costs[out] = member.formula.cost + loads + sum([costs[v] for v in inside])
        return phases, costs

    def find_demands(self, phases: dict[Member, int], costs: dict[Value, int]) -> dict[Value, set[int]]:
        """The phases in which each value along the row is computed; notes those that are kept between phases."""
        demanded: dict[Value, set[int]] = defaultdict(set)
        for member in reversed(self.group.members):
            out, here = member.step.out, {phases[member]}
            if self.levels[out] != ELEMENT:
                continue
            if self.is_along(out):
                demanded[out] |= here if out in self.stored else set()
                if len(demanded[out]) > 1 and costs[out] > RECOMPUTED:
                    demanded[out] = {min(demanded[out])}
                    self.kept[out] = self.keep(member)
                here = demanded[out]
            for value in member.inside.values():
                demanded[value] |= here
        return demanded

    def keep(self, member: Member) -> Access:
        """Where a value is from one phase to the next: in the output that it is stored to, or in scratch memory."""
        out, place = member.step.out, self.access(member, "out")
        if out in self.stored and place.inner == 1:
            return place
        name = f"{self.prefix}k{len(self.loop.slots)}"
        self.loop.slots[name] = out.dtype
        return Access(Slot(name, out.dtype), 0, (0,) * len(self.ends), 1)

    def part(self, level: int) -> list[Statement]:
        """Where statements of this phase belong that are done so often."""
        return self.loop.parts[self.phase if level else 0, level]

    def compute(self, member: Member, is_stored: bool) -> None:
        """Write what computes a value, or for a gather, what computes it at one place of the row."""
        out = member.step.out
        part = self.part(self.levels[out])
        if member.formula.kind == "gather":
            self.names[out] = self.gather(member, part)
        else:
            part.append(Compute(self.names[out], member, self.operands(member, part)))
            self.is_new(self.names[out], in_phase=True)
        if is_stored:
            part.append(Store(self.access(member, "out"), self.names[out]))
        if out in self.kept and isinstance(self.kept[out].root, Slot):
            part.append(Store(self.kept[out], self.names[out]))

    def reduce(self, member: Member) -> None:
        out, name = member.step.out, self.names[member.step.out]
        part, kind = self.part(self.levels[out]), REDUCTIONS[member.step.op.lowering]
        given, dtype = self.operand(member, "a", part)
        if self.levels[out] == ELEMENT and member.reduced & self.row:
            part.append(Reduce(name, out, kind, given, dtype, out.dtype))
            part = self.loop.parts[self.phase + 1, ROW]
            if member.reduced == self.row and not self.loop.blocked:
                if out in self.stored:
                    part.append(Store(self.access(member, "out"), name))
                return
            given, dtype = name, out.dtype
        of_many_rows = part is not self.part(ELEMENT) and kind.function == "plus"
        is_wide = self.widen and of_many_rows and out.dtype == np.float32
        total = np.dtype(np.float64) if is_wide else out.dtype
        self.loop.sums[out] = Reduce(self.access(member, "out"), out, kind, given, dtype, total)
        part.append(self.loop.sums[out])

    def gather(self, member: Member, part: list[Statement]) -> str:
        """The name of the value at one place of the row, after what loads it from there or computes it there."""
        name = self.names[member.step.out]
        place, _ = self.operand(member, "indices", part)
        if "a" not in member.inside:
            part.append(Load(name, self.access(member, "a"), place))
            return name
        needed = {member.inside["a"]}
        for m in reversed(self.group.members):
            needed.update(m.inside.values() if m.step.out in needed and self.is_along(m.step.out) else ())
        for m in self.group.members:
            if m.step.out in needed and self.is_along(m.step.out):
                part.append(Compute(f"{place}_{self.names[m.step.out]}", m, self.operands(m, part, place)))
        return f"{place}_{self.names[member.inside['a']]}"

    def operands(self, member: Member, part: list[Statement], at: str | None = None) -> dict[str, Any]:
        """What the names in a formula stand for."""
        return {name: self.operand(member, name, part, at) for name in sorted(member.formula.names)}

    def operand(self, member: Member, name: str, part: list[Statement], at: str | None = None) -> Any:
        """A number, or the name and dtype of an operand; what is not there yet is loaded.

        The place `at` of the row, if given, begins the names of what was computed there.
        """
        x: Any = member.given.get(name)
        source = member.inside.get(name)
        if source is None and name not in member.strides:
            return x
        if source is None:
            access = self.access(member, name)
            level, found = access.level, self.load(access, at, part)
        else:
            level, found = self.levels[source], self.names[source]
            if at and self.is_along(source):
                found = f"{at}_{found}"
            elif source in self.kept and self.is_new(found, in_phase=True):
                part.append(Load(found, self.kept[source]))
        if name == "indices":  # is checked, once for each row unless it differs along the row
            index, found = found, f"p_{self.names[member.step.out]}" + (f"_{at}" if at else "")
            in_phase = level == ELEMENT and not at
            if self.is_new(found, in_phase):
                along = member.given["a"] if member.formula.kind == "gather" else member.step.out
                size = along.shape[member.step.attrs["axis"]]
                (part if at or in_phase else self.part(ROW)).append(Place(found, index, size))
        return found, np.dtype(np.int64) if name in (*PLACES, "indices") else x.dtype

    def load(self, access: Access, at: str | None, part: list[Statement]) -> str:
        """The name of what is loaded: each element in each phase that needs it, other things once."""
        at = at if access.level == ELEMENT else None
        name = self.loaded.setdefault((access, at), f"{self.prefix}x{len(self.loaded)}")
        if self.is_new(name, in_phase=access.level == ELEMENT and not at):
            (part if access.level == ELEMENT else self.part(access.level)).append(Load(name, access, at))
        return name

    def is_new(self, name: str, in_phase: bool) -> bool:
        """Whether a name does not exist yet, in this phase or in the whole loop; from now on it does."""
        count = len(self.seen)
        self.seen.add((self.phase if in_phase else None, name))
        return len(self.seen) > count


def describe(group: Group, stored: set[Value], prefix: str = "", widen: bool = True) -> Loop:
    """The loop that computes a group, and stores those of its values that are needed outside.

    `prefix` begins all names; with `widen`, float32 numbers of many rows are summed in double precision.
    """
    return _Builder(group, stored, prefix, widen).build()
