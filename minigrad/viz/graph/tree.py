"""Boxes inside modules inside modules: what is drawn at first, what each box opens into, and which blocks are the same."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .boxes import Box

__all__ = ["BUDGET", "Group", "Item", "Tree"]

BUDGET = 300  # boxes in one picture; more are drawn together
PART = 100  # boxes that are drawn together, where it is too many


@dataclass(eq=False)
class Group:
    """A call of a module or function, or neighbours that are drawn together, with everything inside."""

    name: str
    title: str  # the class of a module, "" of a function
    kind: str  # "module", "function", "part", or "loss", which stays closed in still pictures
    children: list[Item] = field(default_factory=list)
    copies: list[Group] = field(default_factory=list, repr=False)  # itself and those after it that look the same
    id: str = ""

    def boxes(self) -> Iterator[Box]:
        """All boxes inside, in order, and then those of copies."""
        stack: list[Item] = [self]
        while stack:
            item = stack.pop()
            if isinstance(item, Group):
                stack.extend(child for copy in reversed(item.copies or [item]) for child in reversed(copy.children))
            else:
                yield item

    @property
    def working(self) -> list[Item]:
        """What is inside, without what is only given."""
        return [child for child in self.children if isinstance(child, Group) or child.kind == "op"]


Item = Box | Group


class Tree:
    """The boxes of a graph, grouped by the calls they were made in."""

    def __init__(self, boxes: Sequence[Box], name: str = "graph"):
        self.order = {box: index for index, box in enumerate(boxes)}
        self.root = Group(name, "", "module")
        self.parents: dict[Item, Group] = {}
        self.note = ""
        self._place(boxes)
        self._sort()
        self._simplify()
        self._part()
        for index, group in enumerate(self.groups()):
            group.id = f"g{index}"
        self._find_copies()
        self.twins: dict[Box, Box] = {}  # for each box in a copy, the one in its place in the block that is drawn
        self._number_boxes()

    def path(self, item: Item) -> list[Group]:
        """The groups that an item is inside of, the outermost first."""
        found = []
        while item in self.parents:
            item = self.parents[item]
            found.append(item)
        return found[::-1]

    def path_name(self, group: Group) -> str:
        """The names of the groups from the outermost but the root to this one, as a model's paths are written."""
        return ".".join(part.name for part in [*self.path(group)[1:], group])

    def groups(self, copies: bool = False) -> list[Group]:
        """Every group, those inside after those around them; of copies the first alone, unless asked for."""
        found = [self.root]
        for group in found:  # which grows meanwhile
            inner = [child for child in group.children if isinstance(child, Group)]
            found.extend(one for child in inner for one in (child.copies if copies and child.copies else [child]))
        return found

    def _place(self, boxes: Sequence[Box]) -> None:
        """Ops go where they were called; what was given goes as deep inside as all who use it are."""
        stack: list[tuple[Any, Group]] = [(None, self.root)]
        homes: dict[Box, list[Group]] = {}  # the groups that all who use a box are in
        for box in boxes:
            if box.kind != "op":
                continue
            depth = 1
            while depth < len(stack) and depth <= len(box.calls) and stack[depth][0] is box.calls[depth - 1]:
                depth += 1
            del stack[depth:]
            for call in box.calls[depth - 1 :]:
                group = Group(call.name, call.kind, {"": "function", "loss": "loss"}.get(call.kind, "module"))
                self._adopt(stack[-1][1], group)
                stack.append((call, group))
            self._adopt(stack[-1][1], box)
            path = [group for _, group in stack]
            for source in box.sources:
                if source.kind != "op":
                    homes[source] = [a for a, b in zip(homes.get(source, path), path) if a is b]
        for box in boxes:
            if box.kind != "op":
                self._adopt(self.root if box.kind == "input" else homes.get(box, [self.root])[-1], box)

    def _adopt(self, group: Group, item: Item) -> None:
        group.children.append(item)
        self.parents[item] = group

    def _sort(self) -> None:
        """Children in the order of time; what was given comes just before the op or group that uses it first."""
        first: dict[Any, float] = dict(self.order)
        for group in reversed(self.groups()):
            first[group] = min([first[child] for child in group.working], default=0)
        for user in reversed(self.order):
            for source in user.sources:
                if source.kind != "op":
                    item: Item = user
                    while self.parents[item] is not self.parents[source]:
                        item = self.parents[item]
                    first[source] = first[item] - 0.5 if source.kind != "input" else -1
        for group in self.groups():
            group.children.sort(key=first.__getitem__)

    def _simplify(self) -> None:
        """A function that is a single op, or all that a module does, needs no box; a graph that is one call opens as it."""
        for group in reversed(self.groups()[1:]):
            ops = [item for item in group.working if isinstance(item, Group) or item.op != "output"]
            if group.kind == "function" and (len(ops) == 1 or len(self.parents[group].working) == 1):
                self._dissolve(group)
        while len(working := self.root.working) == 1 and isinstance(working[0], Group):
            self.root.title = working[0].title
            self._dissolve(working[0])

    def _dissolve(self, group: Group) -> None:
        outer = self.parents.pop(group)
        place = outer.children.index(group)
        outer.children[place : place + 1] = group.children
        self.parents.update(dict.fromkeys(group.children, outer))

    def _part(self) -> None:
        groups = self.groups()
        for group in groups:  # which grows meanwhile
            if (amount := len(group.children)) > BUDGET:
                size = max(PART, math.ceil(amount / PART))
                chunks = [group.children[i : i + size] for i in range(0, amount, size)]
                together = f"neighbours are drawn together, {size} at a time"
                self.note = f"{amount:,} boxes are too many for one picture: {together}"
                group.children = []
                for index, chunk in enumerate(chunks):
                    part = Group(f"part {index + 1} of {len(chunks)}", "", "part")
                    groups.append(part)
                    self._adopt(group, part)
                    for child in chunk:
                        self._adopt(part, child)

    def _find_copies(self) -> None:
        known: dict[Any, int] = {}
        forms: dict[Group, int] = {}
        for group in reversed(self.groups()):
            forms[group] = known.setdefault(_form(group, forms), len(known))
            merged: list[Item] = []
            for child in group.children:
                before: Any = merged[-1] if merged else None
                if isinstance(child, Group) and child.kind == "module" and forms[child] == forms.get(before):
                    before.copies = [*(before.copies or [before]), child]
                else:
                    merged.append(child)
            group.children = merged

    def _number_boxes(self) -> None:
        """Of several boxes that share a name, the later ones get a number; in a copy they have that of their twin."""
        for group in reversed(self.groups()):
            for copy in group.copies[1:]:
                self.twins |= {box: self.twins.get(twin, twin) for box, twin in zip(copy.boxes(), group.boxes())}
        seen: dict[str, int] = {}
        for box in self.order:
            if box not in self.twins:
                box.number = seen[box.title] = seen.get(box.title, 0) + 1
        for box, twin in self.twins.items():
            box.number = twin.number if box.title == twin.title else 1


def _form(group: Group, forms: dict[Group, int]) -> Any:
    number: dict[Box | None, int] = {box: index for index, box in enumerate(group.boxes())}
    inside = [
        (box.kind, box.op, str(box.shape), box.dtype, *[(e.name, number.get(e.source, -1), e.text) for e in box.inputs])
        for box in group.boxes()
    ]
    nested = tuple([forms[child] if isinstance(child, Group) else -1 for child in group.children])
    return group.title, group.kind, group.name.rstrip("0123456789"), nested, tuple(inside)
