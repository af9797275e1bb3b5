"""One loop over rows, described without a language: what is loaded, computed, kept, stored and summed, in which phase of a row.

Taking the mean from each row has two phases: the first adds up `x[j]` along the row; between the two, the mean is divided out;
the second stores `x[j] - mean`.

A phase goes along the row once. A value that a later phase needs again is computed again if that is cheap, or else kept in a
row of scratch memory (or read from the output it was stored to).
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..ir.graph import Value
from .group import Group, Member
from .lowering import PLACES, operands
from .views import c_strides

RECOMPUTED = 6  # additions: what costs more is kept from one phase to the next


@dataclass(frozen=True)
class Access:
    """A place in memory for each point of the loop; with no root, the number of that place itself."""

    root: Value | None
    offset: int
    outer: tuple[int, ...]  # strides
    inner: int

    @property
    def level(self) -> str:
        """Whether it moves along the row ("full"), from row to row ("row"), or not at all ("scalar")."""
        return "full" if self.inner else "row" if any(self.outer) else "scalar"


@dataclass(frozen=True)
class Known:
    """A number that is the same in the whole loop."""

    number: Any  # a Number, or plain
    dtype: np.dtype | None  # None for a Python number, which takes that of the others


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
    names: dict[str, Any]  # of operands: a name and its dtype, or Known
    at: str | None = None


@dataclass
class Copy:
    """`name = source`"""

    name: str
    source: str


@dataclass
class Store:
    """`memory[access] = name`"""

    access: Access
    name: str


@dataclass
class Keep:
    """`scratch[slot][j] = name`"""

    slot: tuple[str, int]
    name: str


@dataclass
class Fetch:
    """`name = scratch[slot][j]`, or of an output that was stored before."""

    name: str
    slot: tuple[str, int] | Access


@dataclass
class Reduce:
    """`total = total + name`, a local of the row."""

    total: str
    member: Member
    name: str


@dataclass
class Finish:
    """The result of a Reduce, when the row has ended."""

    name: str
    total: str
    member: Member


@dataclass
class Accumulate:
    """`memory[access] = memory[access] + name`, complete when the loop ends."""

    access: Access
    member: Member
    name: str
    dtype: np.dtype  # of the memory

    @property
    def value(self) -> Value:
        """What is summed up."""
        return self.member.step.out


@dataclass
class Place:
    """`name = index`, counted from 0; what is out of range is reported, and becomes 0."""

    name: str
    index: str
    size: int


Statement = Any


@dataclass
class Loop:
    """A group as a loop over rows."""

    group: Group
    outer: tuple[int, ...]  # sizes
    row: int
    blocked: bool  # all is one axis, of which each thread has a part as its row
    before: list[Statement] = field(default_factory=list)
    between: dict[int, list[Statement]] = field(default_factory=lambda: defaultdict(list))  # before phase k
    along: dict[int, list[Statement]] = field(default_factory=lambda: defaultdict(list))  # in phase k
    reads: list[Value] = field(default_factory=list)
    writes: list[Value] = field(default_factory=list)
    sums: dict[Value, Accumulate] = field(default_factory=dict)  # complete only after the loop
    slots: dict[str, int] = field(default_factory=lambda: defaultdict(int))  # rows of scratch memory by dtype

    @property
    def phases(self) -> int:
        """How often a row is gone along."""
        return max(self.along, default=-1) + 1

    @property
    def size(self) -> int:
        """The number of points."""
        return math.prod(self.outer) * self.row

    @property
    def row_axes(self) -> frozenset[int]:
        """The axes of the domain that are the row."""
        return frozenset(range(self.group.split, len(self.group.sizes)))


class _Builder:
    def __init__(self, group: Group, stored: set[Value], prefix: str, widen: bool):
        self.group, self.stored, self.prefix, self.widen = group, stored, prefix, widen
        sizes, split = group.sizes, group.split
        self.every, self.outer = frozenset(range(len(sizes))), frozenset(range(split))
        self.row = self.every - self.outer
        summed_here = any(m.reduced and m.step.out in group.used for m in group.members)
        self.names = {m.step.out: f"{prefix}v{i}" for i, m in enumerate(group.members)}
        self.makers = {m.step.out: m for m in group.members}
        self.merged = self.merge_outer()
        blocked = not split and not summed_here
        self.loop = Loop(
            group, tuple([math.prod(sizes[k] for k in part) for part in self.merged]), math.prod(sizes[split:]), blocked
        )
        self.inside: dict[Member, dict[str, Value]] = {}
        self.phase: dict[Member, int] = {}
        self.ready: dict[Value, int] = {}
        self.loaded: dict[tuple[Access, str | None], str] = {}

    def level(self, member: Member) -> str:
        return "full" if member.over == self.every else "row" if member.over == self.outer else "scalar"

    def is_sum(self, member: Member) -> bool:
        """Whether the result of a reduction is complete only after the loop."""
        return bool(member.reduced) and (member.reduced != self.row or self.loop.blocked)

    def merge_outer(self) -> list[list[int]]:
        """The outer axes, those that are as one axis for every array taken together."""
        merged: list[list[int]] = []
        strides = self.group.patterns
        for k in range(self.group.split):
            size = self.group.sizes[k]
            if merged and all(s[merged[-1][-1]] == s[k] * size for s in strides):
                merged[-1].append(k)
            else:
                merged.append([k])
        return merged

    def access(self, root: Value | None, offset: int, strides: tuple[int, ...]) -> Access:
        inner = strides[-1] if self.row and strides else 0
        return Access(root, offset, tuple([strides[part[-1]] for part in self.merged]), inner)

    def load_of(self, member: Member, x: Value) -> Access:
        root, offset, _ = self.group.layout.place(x)
        return self.access(root, offset, self.group.strides(x, self.group.axes_of_operand(member, x)))

    def place_of(self, value: Value) -> Access:
        root, offset, _ = self.group.layout.place(value)
        return self.access(root, offset, self.group.strides(value, self.group.axes[value]))

    def build(self) -> Loop:
        self.find_phases()
        computed, kept = self.find_demands()
        for member in self.group.members:
            if self.level(member) != "full" or member.formula.kind == "gather":
                self.outside_rows(member)
        for q in range(max(self.phase.values(), default=0) + 1):
            self.write_phase(q, computed, kept)
        for statements in (self.loop.before, *self.loop.between.values(), *self.loop.along.values()):
            self.note_memory(statements)
        return self.loop

    def find_phases(self) -> None:
        for member in self.group.members:
            found = {}
            for name, x in operands(member.step).items():
                if isinstance(x, Value) and (at := self.group.find(x)) is not None:
                    found[name] = at[0]
            self.inside[member] = found
            phase = max([self.ready[v] for v in found.values()], default=0)
            self.phase[member] = phase
            over_row = member.reduced and self.level(member) == "full"
            self.ready[member.step.out] = phase + 1 if over_row else phase

    def find_demands(self) -> tuple[dict[Value, set[int]], dict[Value, Any]]:
        """The phases in which each value along the row is computed, and where those that stay between phases are kept."""
        demanded: dict[Value, set[int]] = defaultdict(set)
        computed: dict[Value, set[int]] = {}
        kept: dict[Value, Any] = {}
        costs = self.chain_costs()
        for member in reversed(self.group.members):
            if self.level(member) != "full" or member.formula.kind == "gather":
                continue
            out, phases = member.step.out, {self.phase[member]}
            if not member.reduced:
                if out in self.stored:
                    demanded[out].add(self.phase[member])
                phases = demanded[out]
                if len(phases) > 1 and costs[out] > RECOMPUTED:
                    phases = {min(phases)}
                    place = self.place_of(out)
                    if out in self.stored and place.inner == 1:
                        kept[out] = place
                    else:
                        dtype = out.dtype.name
                        kept[out] = dtype, self.loop.slots[dtype]
                        self.loop.slots[dtype] += 1
                computed[out] = phases
            for value in self.inside[member].values():
                if value in self.makers and self.level(self.makers[value]) == "full" and not self.makers[value].reduced:
                    demanded[value] |= phases
        return computed, kept

    def chain_costs(self) -> dict[Value, int]:
        """What computing a value again, from what is loaded and from numbers of the row, would cost."""
        costs: dict[Value, int] = {}
        for member in self.group.members:
            cost = member.formula.cost
            for name, x in operands(member.step).items():
                if isinstance(x, Value):
                    source = self.inside[member].get(name)
                    cost += 1 if source is None else costs[source]
            along = self.level(member) == "full" and not member.reduced and member.formula.kind != "gather"
            costs[member.step.out] = cost if along else 0
        return costs

    def operand_names(
        self, member: Member, at: str | None, statements: list[Statement], available: dict[Value, str]
    ) -> dict[str, Any]:
        """The names that a formula's operands have in the source; what is not there yet is loaded."""
        names: dict[str, Any] = {}
        for name, x in operands(member.step).items():
            if not isinstance(x, Value):
                names[name] = Known(x, x.dtype if isinstance(x, np.generic) else None)
            elif name in self.inside[member]:
                source = self.inside[member][name]
                names[name] = available.get(source, self.names[source]), source.dtype
            else:
                names[name] = self.load(self.load_of(member, x), at, statements), x.dtype
            if name == "indices":
                names[name] = self.checked_index(member, x, names[name][0], at, statements), np.dtype(np.int64)
        for name in member.formula.names & PLACES:
            shape = member.step.out.shape
            strides = c_strides(shape)
            if name == "position":
                axis = member.step.attrs["axis"] % len(shape)
                strides = tuple([int(i == axis) for i in range(len(shape))])
            over = [0] * len(self.group.sizes)
            for a, s in zip(self.group.axes[member.step.out], strides):
                if a is not None:
                    over[a] = s
            names[name] = self.load(self.access(None, 0, tuple(over)), at, statements), np.dtype(np.int64)
        return names

    def checked_index(self, member: Member, x: Value, index: str, at: str | None, statements: list[Statement]) -> str:
        """The name of an index after it was checked: once for each row, unless it differs along the row."""
        place = f"p_{self.names[member.step.out]}" + ("" if at is None else f"_{at}")
        source = self.inside[member].get("indices")
        level = self.load_of(member, x).level if source is None else self.level(self.makers[source])
        target = statements if at is not None or level == "full" else self.loop.between[self.phase[member]]
        if not any(isinstance(s, Place) and s.name == place for s in target):
            target.append(Place(place, index, member.step.out.shape[member.step.attrs["axis"]]))
        return place

    def load(self, access: Access, at: str | None, statements: list[Statement]) -> str:
        """The name of what is loaded: for each element where it is needed, for each row or the whole loop at the beginning."""
        place = at if access.level == "full" else None
        key = (access, place if access.level == "full" else None)
        target = {"full": statements, "row": self.loop.between[0], "scalar": self.loop.before}[access.level]
        if key not in self.loaded:
            self.loaded[key] = f"{self.prefix}x{len(self.loaded)}"
        name = self.loaded[key]
        if not any(isinstance(s, Load) and s.name == name for s in target):
            if access.level == "row":
                target.insert(0, Load(name, access))
            else:
                target.append(Load(name, access, place))
        return name

    def outside_rows(self, member: Member) -> None:
        """A step that runs once for each row, or once for the whole loop."""
        out, name = member.step.out, self.names[member.step.out]
        level = self.level(member)
        target = self.loop.before if level == "scalar" else self.loop.between[self.phase[member]]
        if member.formula.kind == "gather":
            self.gather(member, target)
        elif member.reduced:
            names = self.operand_names(member, None, target, {})
            self.sum(member, names["a"][0], target, self.place_of(out), widen=True)
            return
        else:
            target.append(Compute(name, member, self.operand_names(member, None, target, {})))
        if out in self.stored:
            self.loop.between[self.phase[member]].append(Store(self.place_of(out), name))

    def sum(self, member: Member, name: str, target: list[Statement], access: Access, widen: bool) -> None:
        dtype = member.step.out.dtype
        if widen and self.widen and dtype == np.float32 and member.step.op.lowering == "out + a":
            dtype = np.dtype(np.float64)  # the sums of many rows
        self.loop.sums[member.step.out] = Accumulate(access, member, name, dtype)
        target.append(self.loop.sums[member.step.out])

    def gather(self, member: Member, target: list[Statement]) -> None:
        """The value at one place of the row: computed there."""
        out, source = member.step.out, operands(member.step)["a"]
        inside = self.inside[member]
        if "indices" in inside:
            index = self.names[inside["indices"]]
        else:
            index = self.load(self.load_of(member, operands(member.step)["indices"]), None, target)
        place, name = f"p_{self.names[out]}", self.names[out]
        target.append(Place(place, index, source.shape[member.step.attrs["axis"]]))
        if "a" not in inside:
            target.append(Load(name, self.load_of(member, source), place))
            return
        available: dict[Value, str] = {}
        self.chain(inside["a"], place, f"{name}_", target, available)
        result = available.get(inside["a"], self.names[inside["a"]])
        target.append(Copy(name, result))

    def chain(
        self, value: Value, place: str, prefix: str, target: list[Statement], available: dict[Value, str]
    ) -> None:
        member = self.makers[value]
        if value in available or self.level(member) != "full" or member.reduced:
            return
        for source in self.inside[member].values():
            self.chain(source, place, prefix, target, available)
        names = self.operand_names(member, place, target, available)
        available[value] = prefix + self.names[value]
        target.append(Compute(available[value], member, names, place))

    def write_phase(self, q: int, computed: dict[Value, set[int]], kept: dict[Value, Any]) -> None:
        body = self.loop.along[q]
        here: set[Value] = set()

        def fetch(member: Member) -> None:
            for source in self.inside[member].values():
                if source in kept and source not in here:
                    body.append(Fetch(self.names[source], kept[source]))
                    here.add(source)

        for member in self.group.members:
            if self.level(member) != "full" or member.formula.kind == "gather":
                continue
            out, name = member.step.out, self.names[member.step.out]
            if member.reduced and self.phase[member] == q:
                fetch(member)
                self.reduce(member, body, q)
            elif not member.reduced and q in computed[out]:
                fetch(member)
                body.append(Compute(name, member, self.operand_names(member, None, body, {})))
                here.add(out)
                if out in self.stored and q == self.phase[member]:
                    body.append(Store(self.place_of(out), name))
                if out in kept and not isinstance(kept[out], Access):
                    body.append(Keep(kept[out], name))
        if not body:
            del self.loop.along[q]

    def reduce(self, member: Member, body: list[Statement], q: int) -> None:
        out, name = member.step.out, self.names[member.step.out]
        given = self.operand_names(member, None, body, {})["a"][0]
        if not member.reduced & self.row:
            self.sum(member, given, body, self.place_of(out), widen=False)
            return
        total = f"{name}_total"
        body.append(Reduce(total, member, given))
        after = self.loop.between[q + 1]
        after.insert(0, Finish(name, total, member))
        if self.is_sum(member):
            self.sum(member, name, [], self.place_of(out), widen=True)
            after.insert(1, self.loop.sums[out])
        elif out in self.stored:
            after.insert(1, Store(self.place_of(out), name))

    def note_memory(self, statements: list[Statement]) -> None:
        for s in statements:
            if isinstance(s, (Load, Store)) and s.access.root is not None:
                found = self.loop.reads if isinstance(s, Load) else self.loop.writes
                if s.access.root not in found:
                    found.append(s.access.root)


def describe(group: Group, stored: set[Value], prefix: str = "", widen: bool = True) -> Loop:
    """The loop that computes a group, and stores those of its values that are needed outside.

    `prefix` begins all names; with `widen`, float32 numbers of many rows are summed in double precision.
    """
    return _Builder(group, stored, prefix, widen).build()
