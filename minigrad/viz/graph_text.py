"""A graph for the terminal: a line for each value, indented inside its modules, with its numbers and where it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .labels import form
from .numbers import brief
from .scene import clean
from .tracing import Box
from .tree import Group, Item

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["text_of"]

INDENT = "  "


def text_of(graph: Graph) -> str:
    """The whole graph, repeated blocks once."""
    lines: list[tuple[str, ...]] = []
    stack: list[tuple[int, Item]] = [(0, child) for child in reversed(graph.tree.root.children)]
    names = _names(graph)
    while stack:
        level, item = stack.pop()
        if isinstance(item, Group):
            times = f" ×{len(item.copies)}" if item.copies else ""
            lines.append((f"{INDENT * level}{clean(item.name, 60)}{times}", clean(item.title or item.kind, 40)))
            stack.extend((level + 1, child) for child in reversed(item.children))
        else:
            lines.append((f"{INDENT * level}{names[item]}", *_columns(item, names)))
    widths = [max((len(line[i]) for line in lines if i < len(line)), default=0) for i in range(2)]
    shown = [
        "  ".join(
            [cell.ljust(width) for cell, width in zip(line, (max(widths[0], 16), max(widths[1], 8)))] + list(line[2:])
        )
        for line in lines
    ]
    note = [graph.tree.note] if graph.tree.note else []
    return "\n".join([line.rstrip() for line in [*shown, *note]])


def _names(graph: Graph) -> dict[Box, str]:
    """Each box's label; of several that share one, the later ones get a number."""
    seen: dict[str, int] = {}
    names = {}
    for box in graph.boxes:
        label = clean(box.label, 60)
        seen[label] = seen.get(label, 0) + 1
        names[box] = label if seen[label] == 1 else f"{label} {seen[label]}"
    return names


def _columns(box: Box, names: dict[Box, str]) -> list[str]:
    kind = "output" if box.is_output and not box.op else box.op.strip("_") if box.op and box.name else box.kind
    columns = [kind, form(box), "value not kept" if box.value is None else brief(box.value)]
    if box.gradient is not None:
        columns.append(f"∇ {brief(box.gradient)}")
    sources: list[Any] = [names[e.source] if e.source else f"{e.name} = {e.text}" for e in box.inputs]
    if sources:
        columns.append(f"<- {', '.join(sources)}")
    if box.line:
        columns.append(f"({clean(box.line, 120)})")
    return columns
