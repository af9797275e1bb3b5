"""Boxes inside modules inside modules: what is drawn at first, what each box opens into, and which blocks are the same."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..engine.modes import Call
from .tracing import Box

__all__ = ["BUDGET", "Group", "Item", "Tree"]

BUDGET = 300  # boxes in one picture; more are drawn together
PART = 100  # boxes that are drawn together, where it is too many


@dataclass(eq=False)
class Group:
    """A call of a module or function, or neighbours that are drawn together, with everything inside."""

    name: str
    title: str  # the class of a module, "" of a function
    kind: str  # "module", "function" or "part"
    children: list[Item] = field(default_factory=list)
    copies: list[Group] = field(default_factory=list)  # itself and those after it that look the same
    id: str = ""

    def boxes(self) -> Iterator[Box]:
        """All boxes inside, in order, without those of copies."""
        stack: list[Item] = [self]
        while stack:
            item = stack.pop()
            if isinstance(item, Group):
                stack.extend(reversed(item.children))
            else:
                yield item

    def everything(self) -> Iterator[Box]:
        """All boxes inside, and inside of what looks the same."""
        stack: list[Item] = [self]
        while stack:
            item = stack.pop()
            if isinstance(item, Group):
                stack.extend(child for copy in reversed(item.copies or [item]) for child in reversed(copy.children))
            else:
                yield item


Item = Box | Group


class Tree:
    """The boxes of a graph, grouped by the calls they were made in."""

    def __init__(self, boxes: Sequence[Box], name: str = "graph"):
        self.order = {box: index for index, box in enumerate(boxes)}
        self.root = Group(name, "", "module")
        self.parents: dict[Item, Group] = {}
        self.note = ""
        self._place(boxes)
        self._simplify(self.root)
        self._unwrap()
        self._part(self.root)
        self._number()
        self.signatures: dict[Group, int] = {}
        self._find_copies()
        self.twins = self._find_twins()
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

    def groups(self) -> list[Group]:
        """Every group, those inside after those around them; of copies the first alone."""
        found = [self.root]
        for group in found:  # which grows meanwhile
            found.extend(child for child in group.children if isinstance(child, Group))
        return found

    def _place(self, boxes: Sequence[Box]) -> None:
        """Ops go where they were called; what was given goes as deep inside as all who use it are."""
        stack: list[tuple[Call | None, Group]] = [(None, self.root)]
        users: dict[Box, list[list[Group]]] = {}
        for box in boxes:
            if box.kind != "op":
                continue
            depth = 1
            while depth < len(stack) and depth <= len(box.calls) and stack[depth][0] is box.calls[depth - 1]:
                depth += 1
            del stack[depth:]
            for call in box.calls[depth - 1 :]:
                group = Group(call.name, call.title, "module" if call.title else "function")
                self._adopt(stack[-1][1], group)
                stack.append((call, group))
            self._adopt(stack[-1][1], box)
            for entry in box.inputs:
                if entry.source is not None and entry.source.kind != "op":
                    users.setdefault(entry.source, []).append([group for _, group in stack])
        for box in boxes:
            if box.kind != "op":
                home = self.root if box.kind == "input" else _shared(users.get(box, [[self.root]]))
                self._adopt(home, box)
        self._sort(self.root)

    def _adopt(self, group: Group, item: Item) -> None:
        group.children.append(item)
        self.parents[item] = group

    def _sort(self, root: Group) -> None:
        """Children in the order of time; what was given comes just before the op or group that uses it first."""
        first: dict[Any, int] = dict(self.order)
        used: dict[Item, int] = {}
        for box, place in reversed(self.order.items()):
            used |= {entry.source: place for entry in box.inputs if entry.source is not None}
        groups = [root]
        for group in groups:
            groups.extend(child for child in group.children if isinstance(child, Group))
        for group in reversed(groups):
            working = sorted(_working(group), key=first.__getitem__)
            starts = [first[child] for child in working]
            before: dict[int, list[Item]] = {}
            for child in group.children:
                if isinstance(child, Box) and child.kind != "op":
                    place = 0 if child.kind == "input" else max(bisect_right(starts, used.get(child, 0)) - 1, 0)
                    before.setdefault(place, []).append(child)
            rest = before.get(0, []) if not working else []
            group.children = [item for i, one in enumerate(working) for item in (*before.get(i, ()), one)] + rest
            first[group] = starts[0] if starts else 0

    def _simplify(self, root: Group) -> None:
        """A function that is a single op, or all that a module does, needs no box of its own."""
        groups = [root]
        for group in groups:
            groups.extend(child for child in group.children if isinstance(child, Group))
        for group in reversed(groups[1:]):
            ops = [item for item in _working(group) if isinstance(item, Group) or item.op != "output"]
            if group.kind == "function" and (len(ops) == 1 or len(_working(self.parents[group])) == 1):
                self._dissolve(group)

    def _dissolve(self, group: Group) -> None:
        """Put what is inside of a group in its place."""
        outer = self.parents.pop(group)
        place = outer.children.index(group)
        outer.children[place : place + 1] = group.children
        for child in group.children:
            self.parents[child] = outer

    def _unwrap(self) -> None:
        """A graph that is one call of a model opens as that model."""
        while len(working := _working(self.root)) == 1 and isinstance(working[0], Group):
            self.root.title = working[0].title
            self._dissolve(working[0])

    def _part(self, root: Group) -> None:
        """Where a picture would have more boxes than fit, neighbours are drawn together."""
        groups = [root]
        for group in groups:
            amount = len(group.children)
            if amount > BUDGET:
                size = max(PART, math.ceil(amount / PART))
                chunks = [group.children[i : i + size] for i in range(0, amount, size)]
                self.note = (
                    f"{amount:,} boxes are too many for one picture: neighbours are drawn together, {size} at a time"
                )
                group.children = []
                for index, chunk in enumerate(chunks):
                    part = Group(f"part {index + 1} of {len(chunks)}", "", "part")
                    self._adopt(group, part)
                    for child in chunk:
                        self._adopt(part, child)
            groups.extend(child for child in group.children if isinstance(child, Group))

    def _number(self) -> None:
        for index, group in enumerate(self.groups()):
            group.id = f"g{index}"

    def _find_copies(self) -> None:
        """Groups beside each other that look the same become one with copies."""
        known: dict[Any, int] = {}
        for group in reversed(self.groups()):
            self.signatures[group] = known.setdefault(self._look(group), len(known))
            merged: list[Item] = []
            for child in group.children:
                before = merged[-1] if merged else None
                if (
                    isinstance(child, Group)
                    and isinstance(before, Group)
                    and child.kind == "module"
                    and self.signatures[child] == self.signatures[before]
                ):
                    before.copies = before.copies or [before]
                    before.copies.append(child)
                else:
                    merged.append(child)
            group.children = merged

    def _find_twins(self) -> dict[Box, Box]:
        """For each box in a copy, the one in its place in the block that is drawn."""
        found: dict[Box, Box] = {}
        for group in reversed(self.groups()):
            for copy in group.copies[1:]:
                found |= {box: found.get(twin, twin) for box, twin in zip(copy.everything(), group.everything())}
        return found

    def _number_boxes(self) -> None:
        """Of several boxes that share a name, the later ones get a number; in a copy they have that of their twin."""
        seen: dict[str, int] = {}
        for box in self.order:
            if box not in self.twins:
                box.number = seen[box.title] = seen.get(box.title, 0) + 1
        for box, twin in self.twins.items():
            box.number = twin.number if box.title == twin.title else 1

    def _look(self, group: Group) -> Any:
        """What makes two groups the same: class, ops, shapes, and which goes into which."""
        number = {id(box): index for index, box in enumerate(group.boxes())}
        inside = [
            (
                box.kind,
                box.op,
                str(box.shape),
                box.dtype,
                tuple([(e.name, number.get(id(e.source), -1) if e.source else e.text) for e in box.inputs]),
            )
            for box in group.boxes()
        ]
        nested = tuple([self.signatures.get(c, 0) if isinstance(c, Group) else -1 for c in group.children])
        return group.title, group.kind, group.name.rstrip("0123456789"), nested, tuple(inside)


def _working(group: Group) -> list[Item]:
    """What is inside of a group without what is only given."""
    return [child for child in group.children if isinstance(child, Group) or child.kind == "op"]


def _shared(paths: list[list[Group]]) -> Group:
    """The innermost group that all paths go through."""
    home = paths[0][0]
    for level in zip(*paths):
        if any(group is not level[0] for group in level):
            break
        home = level[0]
    return home
