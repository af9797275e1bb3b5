"""A graph for the terminal: a line for each value, indented inside its modules, with its numbers and where it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .labels import form, short_line, written
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
            shown = f"{names[item]} = {item.op.strip('_')}" if item.name and item.op else names[item]
            lines.append((f"{INDENT * level}{shown}", *_columns(item, names)))
    widths = [max((len(line[i]) for line in lines if i < len(line)), default=0) for i in range(2)]
    rows = [
        "  ".join(
            [cell.ljust(width) for cell, width in zip(line, (max(widths[0], 16), max(widths[1], 8)))] + list(line[2:])
        )
        for line in lines
    ]
    notes = [note for note in (graph.tree.note, graph.hint) if note]
    return "\n".join([line.rstrip() for line in [*rows, *notes]])


def _names(graph: Graph) -> dict[Box, str]:
    """Each box's label; one in a copy, which is printed nowhere, says in which."""
    tree = graph.tree
    names = {box: clean(box.label, 60) for box in graph.boxes}
    return names | {box: f"{clean(tree.path_name(tree.parents[box]), 60)}: {names[box]}" for box in tree.twins}


def _columns(box: Box, names: dict[Box, str]) -> list[str]:
    columns = ["failed" if box.failed else "output" if box.is_output else box.kind, form(box)]
    if box.failed and not box.dtype:
        columns = ["failed", *[clean(f"{name}: {value}", 60) for name, value in box.attrs.items()]]
    elif not box.has_parts:
        columns.append("value not kept" if box.value is None else brief(box.value))
    if box.gradient is not None:
        columns.append(f"∇ {brief(box.gradient)}")
    sources: list[Any] = [names[e.source] if e.source else clean(written(box, e), 60) for e in box.inputs]
    if sources:
        columns.append(f"<- {', '.join(sources)}")
    if box.error:
        columns.append(f"failed: {clean(box.error, 400)}")
    if box.line:
        columns.append(f"({clean(short_line(box.line), 120)})")
    return columns
