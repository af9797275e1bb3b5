"""A picture of a graph in Graphviz's language, DOT: for any tool that reads it, and for our own layout."""

from __future__ import annotations

import math
from typing import Any

from .labels import Look, frame_title, kind_of, rows, size, title_width
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
    lines += ["  " + line for line in _frames(view, look, labels)]
    for index, port in enumerate(view.ports):
        lines.append("  " + _box(view, f"p{index}", port, look, labels))
    for (tail, head), times in view.edges.items():
        pair = (head, tail) if look.direction == "backward" else (tail, head)
        marks = [f"label={quoted(f'×{times}')}"] if labels and times > 1 else []
        if labels and look.direction == "backward" and (tail, head) not in view.backs:
            marks.append("style=dotted arrowhead=none")
        lines.append(f"  {pair[0]} -> {pair[1]}" + (f" [{' '.join(marks)}];" if marks else ";"))
        if labels and look.direction == "both" and (tail, head) in view.backs:
            lines.append(f"  {head} -> {tail} [style=dashed constraint=false];")
    return "\n".join([*lines, "}"]) + "\n"


def _frames(view: View, look: Look, labels: bool) -> list[str]:
    """The boxes, each in the frame it stands in. Frames may be nested deeply, so this does not recurse."""
    inside: dict[Group, list[str]] = {view.group: [], **{group: [] for group, _ in view.frames}}
    for item in view.items:
        inside[view.owner[item]].append(_box(view, view.keys[id(item)], item, look, labels))
    for number, (group, around) in reversed(list(enumerate(view.frames))):  # the innermost come last
        title = quoted(frame_title(group)) if labels else _room(group)
        lines = [f"label={title};", "labeljust=l;", "margin=12;", *inside[group]]
        inside[around] += [f"subgraph cluster_{number} {{", *["  " + line for line in lines], "}"]
    return inside[view.group]


def _room(group: Group) -> str:
    """As much room as a frame's title takes, without any text: so Graphviz needs no fonts."""
    width = math.ceil(title_width(group))
    size = f'FIXEDSIZE="TRUE" WIDTH="{width}" HEIGHT="14"'
    plain = 'BORDER="0" CELLBORDER="0" CELLPADDING="0" CELLSPACING="0"'
    return f"<<TABLE {plain} {size}><TR><TD {size}></TD></TR></TABLE>>"


def _box(view: View, key: str, thing: Any, look: Look, labels: bool) -> str:
    width, height = size(thing, look, view.room.get(key, 0))
    if not labels:
        return f'{key} [label="" width={width / POINTS:.3f} height={height / POINTS:.3f}];'
    shape = {"parameter": "hexagon", "input": "ellipse", "constant": "note", "output": "doubleoctagon"}
    form = shape.get(kind_of(thing), "component" if isinstance(thing, Group) else "box")
    return f"{key} [label={quoted(chr(10).join(row.text for row in rows(thing, look)))} shape={form}];"


def quoted(text: str) -> str:
    """A string of DOT: quotes and backslashes escaped, lines parted by `\\n`; nothing in it can end it."""
    safe = "\n".join(clean(line, 500) for line in text.split("\n"))
    return '"' + safe.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
