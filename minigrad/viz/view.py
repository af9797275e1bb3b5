"""What one picture of a graph shows: which boxes, which frames around them, and which arrows between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .tracing import Box
from .tree import BUDGET, Group, Item, Tree

__all__ = ["Port", "View"]


@dataclass
class Port:
    """Where an arrow comes into the picture of a part, or leaves it."""

    box: Box
    is_entry: bool

    @property
    def is_result(self) -> bool:
        """Whether it shows what comes out of the whole graph."""
        return self.box.is_output and not self.is_entry


class View:
    """The boxes, arrows and frames of one picture: of a group, open to a depth."""

    def __init__(self, tree: Tree, group: Group, depth: int = 1):
        self.tree, self.group = tree, group
        self.note = tree.note if group is tree.root else ""
        self.frames: list[tuple[Group, Group]] = []  # groups that are open here, each with the one around it
        self.owner: dict[Item, Group] = {}  # the frame that an item stands in
        self.items: list[Item] = list(group.children)
        self.owner = dict.fromkeys(self.items, group)
        self._open(depth)
        self.keys: dict[int, str] = {id(item): f"i{index}" for index, item in enumerate(self.items)}
        self.ports: list[Port] = []
        self.edges: dict[tuple[str, str], int] = {}
        self.backs: set[tuple[str, str]] = set()  # the edges that a gradient comes back by
        self.room: dict[str, float] = {}  # the least width of boxes, by key
        self.shown = self._standing_for()
        self._connect()

    def _open(self, depth: int) -> None:
        """Open groups level by level, as long as the picture keeps within its budget."""
        for _ in range(max(depth, 1) - 1):
            closed = [item for item in self.items if isinstance(item, Group)]
            for item in closed:
                if len(self.items) - 1 + len(item.children) > BUDGET:
                    self.note = f"more than {BUDGET} boxes: some stay closed; a page (.html) opens them"
                    continue
                place = self.items.index(item)
                self.items[place : place + 1] = item.children
                self.frames.append((item, self.owner.pop(item)))
                self.owner.update(dict.fromkeys(item.children, item))
            if not closed:
                return

    def _standing_for(self) -> dict[Box, str]:
        """The key of the item that each box is in, or is. Open blocks that look the same are drawn as the first of them."""
        shown = {
            box: self.keys[id(item)]
            for item in self.items
            for box in (item.everything() if isinstance(item, Group) else [item])
        }
        for group, _ in reversed(self.frames):
            for copy in group.copies[1:]:
                shown |= {box: shown[twin] for box, twin in zip(copy.everything(), group.copies[0].everything())}
        return shown

    def _copies(self) -> dict[Box, dict[int, int]]:
        """For boxes in open blocks that look the same, which of them, by the number of the frame."""
        found: dict[Box, dict[int, int]] = {}
        for number, (group, _) in enumerate(self.frames):
            for index, copy in enumerate(group.copies):
                for box in copy.everything():
                    found.setdefault(box, {})[number] = index
        return found

    def _connect(self) -> None:
        """Arrows between items; those from and to the world around go through ports."""
        inside, copies = self.shown, self._copies()
        entries: dict[Box, str] = {}
        exits: dict[Box, str] = {}
        for box in self.tree.order:
            for entry in box.inputs:
                source = entry.source
                if source is None or source not in inside and box not in inside:
                    continue
                here, there = copies.get(box, {}), copies.get(source, {})
                if any(here[frame] or there[frame] for frame in here.keys() & there.keys()):
                    continue  # inside of another block than the first, or from one to the next
                tail, head = inside.get(source), inside.get(box)
                if tail is None:
                    tail = entries.get(source) or entries.setdefault(source, self._port(source, True))
                if head is None:
                    head = exits.get(source) or exits.setdefault(source, self._port(source, False))
                if tail != head:
                    self.edges[tail, head] = self.edges.get((tail, head), 0) + 1
                    if _comes_back(source, box):
                        self.backs.add((tail, head))
        for box, key in inside.items():
            if box.is_output and box not in self.items:  # it would be hidden in a closed box
                port = self._port(box, False)
                self.edges[key, port] = 1
                if box.gradient is not None:
                    self.backs.add((key, port))

    def _port(self, box: Box, is_entry: bool) -> str:
        self.ports.append(Port(box, is_entry))
        return f"p{len(self.ports) - 1}"

    def things(self) -> Iterator[tuple[str, Any]]:
        """Every box of the picture with its key."""
        for item in self.items:
            yield self.keys[id(item)], item
        for index, port in enumerate(self.ports):
            yield f"p{index}", port


def _comes_back(source: Box, user: Box) -> bool:
    """Whether a gradient of what an op computed reaches this input of it."""
    if source.node is None or user.node is None or source.node not in user.node.parents:
        return False
    return (user if source.has_parts else source).gradient is not None
