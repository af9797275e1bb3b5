"""What one picture of a graph shows: which boxes, which frames around them, and which arrows between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .boxes import Box
from .tree import BUDGET, Group, Item, Tree

__all__ = ["Port", "View"]


@dataclass(eq=False)
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
        self.items: list[Item] = list(group.children)
        self.owner: dict[Any, Group] = dict.fromkeys(self.items, group)  # the frame that an item stands in
        self._open(depth)
        self.keys: dict[Any, str] = {item: f"i{i}" for i, item in enumerate(self.items)}  # of ports, too
        self.edges: dict[tuple[str, str], int] = {}
        self.backs: set[tuple[str, str]] = set()  # the edges that a gradient comes back by
        self._connect()

    def _open(self, depth: int) -> None:
        for _ in range(depth - 1):
            closed = [item for item in self.items if isinstance(item, Group) and item.kind != "loss"]
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

    def _shown(self) -> dict[Box, str]:
        """The key of the item that each box is in, or is. Open blocks that look the same are drawn as the first of them."""
        parts = [(item, item.boxes() if isinstance(item, Group) else [item]) for item in self.items]
        shown = {box: self.keys[item] for item, boxes in parts for box in boxes}
        for group, _ in reversed(self.frames):
            for copy in group.copies[1:]:
                shown |= {box: shown[twin] for box, twin in zip(copy.boxes(), group.boxes())}
        return shown

    def _connect(self) -> None:
        shown = self._shown()
        copies: dict[Box, dict[int, int]] = {}  # of boxes in open blocks that look the same: in which, by frame
        for number, (group, _) in enumerate(self.frames):
            for index, copy in enumerate(group.copies):
                for box in copy.boxes():
                    copies.setdefault(box, {})[number] = index
        ports: dict[tuple[Box, bool], str] = {}

        def port(box: Box, is_entry: bool) -> str:
            if (box, is_entry) not in ports:
                ports[box, is_entry] = self.keys[Port(box, is_entry)] = f"p{len(ports)}"
            return ports[box, is_entry]

        for box in self.tree.order:
            for source in box.sources:
                if source not in shown and box not in shown:
                    continue
                here, there = copies.get(box, {}), copies.get(source, {})
                if any(here[frame] or there[frame] for frame in here.keys() & there.keys()):
                    continue  # inside of another block than the first, or from one to the next
                edge = shown.get(source) or port(source, True), shown.get(box) or port(source, False)
                if edge[0] != edge[1]:
                    self.edges[edge] = self.edges.get(edge, 0) + 1
                    if _comes_back(source, box):
                        self.backs.add(edge)
        for box, key in shown.items():
            if box.is_output and box not in self.keys:  # it would be hidden in a closed box
                edge = key, port(box, False)
                self.edges[edge] = 1
                if box.gradient_digest is not None:
                    self.backs.add(edge)


def _comes_back(source: Box, user: Box) -> bool:
    """Whether a gradient of what an op computed reaches this input of it."""
    if source.node is None or user.node is None or source.node not in user.node.parents:
        return False
    return (user if source.has_parts else source).gradient_digest is not None
