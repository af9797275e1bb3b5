"""A picture of a graph in Graphviz's language, DOT: for any tool that reads it, and for our own layout."""

from __future__ import annotations

from typing import Any

from .labels import Look, frame_title, kind_of, rows, size
from .layout import POINTS
from .scene import clean
from .tree import Group
from .view import View

__all__ = ["dot_of", "quoted"]


def dot_of(view: View, look: Look, labels: bool = True) -> str:
    """The picture in Graphviz's language; without labels only sizes, which is all that the layout needs."""
    spread = 'nodesep="0.28" ranksep="0.36"'
    lines = [
        "digraph G {",
        f"  graph [rankdir=TB {spread}];",
        f"  node [fixedsize={'false' if labels else 'true'} shape=box];",
    ]
    lines += _frame(view, look, view.group, labels, "  ")
    for index, port in enumerate(view.ports):
        lines.append("  " + _box(f"p{index}", port, look, labels))
    for (tail, head), times in view.edges.items():
        pair = (head, tail) if look.direction == "backward" else (tail, head)
        label = f" [label={quoted(f'×{times}')}]" if labels and times > 1 else ""
        lines.append(f"  {pair[0]} -> {pair[1]}{label};")
        if labels and look.direction == "both" and view.has_gradient(tail):
            lines.append(f"  {head} -> {tail} [style=dashed constraint=false];")
    return "\n".join([*lines, "}"]) + "\n"


def _frame(view: View, look: Look, frame: Group, labels: bool, indent: str) -> list[str]:
    lines = [indent + _box(view.keys[id(item)], item, look, labels) for item in view.items if view.owner[item] is frame]
    for number, (group, around) in enumerate(view.frames):
        if around is frame:
            title = f"{indent}  label={quoted(frame_title(group))};" if labels else f'{indent}  label=" "; fontsize=14;'
            inside = _frame(view, look, group, labels, indent + "  ")
            lines += [
                f"{indent}subgraph cluster_{number} {{",
                title,
                f"{indent}  margin=12;",
                *inside,
                f"{indent}}}",
            ]
    return lines


def _box(key: str, thing: Any, look: Look, labels: bool) -> str:
    width, height = size(thing, look)
    if not labels:
        return f'{key} [label="" width={width / POINTS:.3f} height={height / POINTS:.3f}];'
    shape = {"parameter": "hexagon", "input": "ellipse", "constant": "note", "output": "doubleoctagon"}
    form = shape.get(kind_of(thing), "component" if isinstance(thing, Group) else "box")
    return f"{key} [label={quoted(chr(10).join(row.text for row in rows(thing, look)))} shape={form}];"


def quoted(text: str) -> str:
    """A string of DOT: quotes and backslashes escaped, lines parted by `\\n`; nothing in it can end it."""
    safe = "\n".join(clean(line, 500) for line in text.split("\n"))
    return '"' + safe.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
