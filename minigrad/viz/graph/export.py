"""A graph written down: as text for the terminal, as plain data for .json, and as a page.

A page holds a picture of every part, laid out beforehand: it only opens them, and changes texts in them. Blocks that look
the same share a picture. The same graph gives the same files, but for the times that a page knows.
"""

from __future__ import annotations

import base64
from html import escape
from typing import TYPE_CHECKING, Any

from ..drawing.arrays import FEW, SOME, Digest, array_text, brief, statistics
from ..drawing.page import filled, page
from ..drawing.scene import clean, png
from .boxes import Box
from .labels import COLORS, Label, Look, cost, form, input_word, labels_of, setting, short_line, written
from .picture import scene_of
from .replay import Contribution, Step
from .tree import Group, Item, Tree
from .view import Port, View

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["data_of", "page_of", "text_of"]

LONGEST = 10_000  # letters of a name in data
LOOK = Look("both")  # of a page
MANY = 4096  # numbers of an array that can be looked at one by one
PRICED = 106.0  # the width of a box in which a cost can be written, in points
HELD = 200_000  # numbers that a page holds


def text_of(graph: Graph) -> str:
    """The whole graph, repeated blocks once."""
    tree = graph.tree
    names = {box: clean(box.label, 60) for box in graph.boxes}
    for box in tree.twins:  # which is printed nowhere, so it says in which copy it is
        names[box] = f"{clean(tree.path_name(tree.parents[box]), 60)}: {names[box]}"
    lines: list[list[str]] = []
    stack: list[tuple[int, Item]] = [(0, child) for child in reversed(tree.root.children)]
    while stack:
        level, item = stack.pop()
        if isinstance(item, Group):
            times = f" ×{len(item.copies)}" if item.copies else ""
            columns = [f"{clean(item.name, 60)}{times}", clean(item.title or item.kind, 40)]
            stack.extend((level + 1, child) for child in reversed(item.children))
        else:
            columns = _columns(item, names)
        lines.append(["  " * level + columns[0], *columns[1:]])
    widths = [max([least, *[len(line[i]) for line in lines]]) for i, least in enumerate((16, 8))]
    rows = ["  ".join([line[0].ljust(widths[0]), line[1].ljust(widths[1]), *line[2:]]).rstrip() for line in lines]
    return "\n".join([*rows, *filter(None, (tree.note, graph.hint))])


def _columns(box: Box, names: dict[Box, str]) -> list[str]:
    columns = [f"{names[box]} = {box.op.strip('_')}" if box.name and box.op else names[box]]
    columns.append("failed" if box.failed else "output" if box.is_output else box.kind)
    if box.failed and not box.dtype:
        columns += [clean(f"{name}: {value}", 60) for name, value in box.attrs.items()]
    else:
        columns.append(form(box))
        if not box.has_parts:
            columns.append("value not kept" if box.value_digest is None else brief(box.value_digest))
    if box.gradient_digest is not None:
        columns.append(f"∇ {brief(box.gradient_digest)}")
    if box.inputs:
        sources = [names[e.source] if e.source else clean(written(box, e), 60) for e in box.inputs]
        columns.append(f"<- {', '.join(sources)}")
    if box.error:
        columns.append(f"failed: {clean(box.error, 400)}")
    if box.line:
        columns.append(f"({clean(short_line(box.line), 120)})")
    return columns


def data_of(graph: Graph, with_times: bool = False) -> dict[str, Any]:
    """Boxes in the order of time, groups with what is in them, and every step of the backward pass."""
    parents = graph.tree.parents
    boxes = {box.id: _box_data(box) | {"group": parents[box].id} for box in graph.boxes}
    groups = {
        group.id: {
            "kind": group.kind, "name": clean(group.name, LONGEST), "title": clean(group.title),
            "children": [child.id for child in group.children], "copies": [copy.id for copy in group.copies],
            "parent": parents[group].id if group in parents else None,
            **{color: cost(group, color) for color in COLORS if with_times or color != "time"},
        }
        for group in graph.tree.groups(copies=True)
    }  # fmt: skip
    for box in graph.boxes if with_times else ():
        boxes[box.id] |= {"time": box.seconds} if box.seconds is not None else {}
    steps = [_step_data(step) for step in graph.steps]
    return {"name": graph.name, "note": graph.view.note, "boxes": boxes, "groups": groups, "backward": steps}


def _box_data(box: Box) -> dict[str, Any]:
    data: dict[str, Any] = {
        **{name: getattr(box, name) for name in ("kind", "dtype", "keeps", "failed", "bytes", "flops")},
        "label": clean(box.label, LONGEST), "op": box.op.strip("_"), "kept": box.is_kept, "output": box.is_output,
        "shape": [list(part) if isinstance(part, tuple) else part for part in box.shape],
        "inputs": [
            {"name": clean(entry.name), "from": entry.source.id, "word": clean(input_word(box, entry.name))}
            if entry.source
            else {"name": clean(entry.name), "text": clean(entry.text), "written": clean(written(box, entry))}
            for entry in box.inputs
        ],
        "settings": {clean(name): clean(setting(value)) for name, value in box.attrs.items()},
        "value": _array_data(box.value_digest), "gradient": _array_data(box.gradient_digest),
    }  # fmt: skip
    if box.node is not None and box.node.hooks:
        data["hooks"] = len(box.node.hooks)
    if box.error:
        data["error"] = "\n".join(clean(line) for line in box.error.split("\n")[:20])
    if box.line:
        data["line"] = clean(short_line(box.line), 120)
    return data


def _array_data(array: Digest | None) -> dict[str, Any] | None:
    if array is None:
        return None
    shown: dict[str, Any] = {"text": array_text(array), "whole": array.size <= SOME}
    return shown | ({"statistics": statistics(array)} if array.size > FEW and array.dtype.kind in "fiub" else {})


def _step_data(step: Step) -> dict[str, Any]:
    upstream = None if step.upstream is None else array_text(step.upstream)
    return {"box": step.box.id, "upstream": upstream, "parts": [_part_data(step, part) for part in step.contributions]}


def _part_data(step: Step, part: Contribution) -> dict[str, Any]:
    data: dict[str, Any] = {
        "input": part.input, "word": clean(input_word(step.box, part.input)), "to": part.target.id,
        "part": array_text(part.part), "formula": part.formula,
    }  # fmt: skip
    if part.local is not None:
        data["local"] = array_text(part.local)
    if part.is_summed:
        data |= {"raw": array_text(part.raw), "raw_shape": list(part.raw.shape), "shape": list(part.part.shape)}
    if part.before is not None:
        data |= {"before": array_text(part.before), "total": array_text(part.total)}
    if part.raw.size > SOME:
        data["large"] = True
    return data | part.examples


def page_of(graph: Graph) -> str:
    """One HTML file."""
    views, pictures = [], []
    places: dict[str, list[Any]] = {}
    for group in graph.tree.groups():
        shown = [View(graph.tree, twin) for twin in _twins(graph.tree, group)]
        labels = [labels_of(view, LOOK) for view in shown]
        for key, label in labels[0].items():
            priced = PRICED if label.kind in ("op", "module") else 0
            label.width = max(priced, *[twin[key].width for twin in labels])
        picture = scene_of(shown[0], LOOK, group.name, labels=labels[0]).svg(standalone=False)
        pictures.append(f'<div class="view" id="view-{group.id}" hidden>{picture}</div>')
        instances = []
        for number, view in enumerate(shown):
            things = {key: _thing_data(thing, labels[number][key]) for thing, key in view.keys.items()}
            instances.append({"group": view.group.id, "name": graph.tree.path_name(view.group), "things": things})
            places |= {thing.id: [group.id, number, key] for thing, key in view.keys.items() if isinstance(thing, Box)}
        views.append({"group": group.id, "instances": instances})
    data = data_of(graph, with_times=True)
    forward = [box.id for box in graph.boxes if box.kind == "op" and box.op != "output"]
    data |= {"views": views, "places": places, "numbers": _numbers(graph), "forward": forward}
    notes = [(graph.view.note, "note"), (graph.hint, "hint faint")]
    note = "".join(f'<p class="{name}">{escape(text)}</p>' for text, name in notes if text)
    body = filled("graph.html", name=escape(graph.name), note=note, pictures="\n".join(pictures))
    return page(graph.name, body, data, "graph")


def _numbers(graph: Graph) -> dict[str, dict[str, Any]]:
    found, left = dict[str, dict[str, Any]](), HELD
    for box in graph.boxes:
        for name, array in (("value", box.value), ("gradient", box.gradient)):
            if array is not None and SOME < array.size <= min(MANY, left) and array.dtype.kind in "fiu":
                left -= array.size
                rows = array.reshape(-1, array.shape[-1]).tolist()  # (…, C) -> (R, C)
                short = [[v if isinstance(v, int) else float(f"{v:.4g}") for v in row] for row in rows]
                found.setdefault(box.id, {})[name] = short
    return found


def _twins(tree: Tree, group: Group) -> list[Group]:
    """The groups that share a picture: the copies of this one, in all copies of the groups around it."""
    path = [*tree.path(group), group]
    found: list[Any] = [path[0]]
    for outer, inner in zip(path, path[1:]):
        place = outer.children.index(inner)
        children: list[Any] = [one.children[place] for one in found]
        found = [copy for child in children for copy in child.copies or [child]]
    return found


def _thing_data(thing: Any, label: Label) -> dict[str, Any]:
    data: dict[str, Any] = {"rows": [[row.text, row.role] for row in label.rows]}
    if isinstance(thing, Port):
        return data | {"id": thing.box.id, "port": True}
    pictures = [base64.b64encode(png(pixels)).decode() for pixels in label.thumbs]
    return data | {"id": thing.id} | ({"thumbs": pictures} if pictures else {})
