"""The page of a graph: a picture of every part, laid out beforehand; the page only opens them, and changes texts in them.

Blocks that look the same share a picture, and their numbers are exchanged in it. Every step of the forward and of the
backward pass knows the picture and the box that it happens in.
"""

from __future__ import annotations

import base64
from html import escape
from typing import TYPE_CHECKING, Any

from .drawing import scene_of
from .graph_data import data_of
from .labels import Look, kind_of, rows, size, thumbs
from .numbers import SOME
from .page import page
from .scene import png
from .tracing import Box
from .tree import Group, Tree
from .view import Port, View

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["page_of"]

LOOK = Look("both")
MANY = 4096  # numbers of an array that can be looked at one by one
PRICED = 106.0  # the width of a box in which a cost can be written, in points
HELD = 200_000  # numbers that a page holds


def page_of(graph: Graph) -> str:
    """One HTML file."""
    views, pictures, places = [], [], {}
    for group in graph.tree.groups():
        shown = [View(graph.tree, twin) for twin in _twins(graph.tree, group)]
        for view in shown:
            for key, thing in view.things():
                priced = PRICED if isinstance(thing, Group) or kind_of(thing) == "op" else 0
                shown[0].room[key] = max(shown[0].room.get(key, priced), size(thing, LOOK)[0])
        picture = scene_of(shown[0], LOOK, group.name).svg(standalone=False)
        pictures.append(f'<div class="view" id="view-{group.id}" hidden>{picture}</div>')
        instances = []
        for number, view in enumerate(shown):
            twin = view.group
            things = {key: _thing_data(thing) for key, thing in view.things()}
            instances.append({"group": twin.id, "name": graph.tree.path_name(twin), "things": things})
            for key, thing in view.things():
                if isinstance(thing, Box):
                    places[thing.id] = [group.id, number, key]
        views.append({"group": group.id, "instances": instances})
    data = data_of(graph, with_times=True)
    data |= {
        "views": views,
        "places": places,
        "numbers": _numbers(graph),
        "forward": [b.id for b in graph.boxes if b.kind == "op" and b.op != "output"],
    }
    return page(graph.name, _body(graph, "\n".join(pictures)), data, ["graph_numbers.js", "graph.js"], ["graph.css"])


def _numbers(graph: Graph) -> dict[str, dict[str, Any]]:
    """All numbers of arrays that are large, but not too large, to be looked at in the page; not of more than it can hold."""
    found: dict[str, dict[str, Any]] = {}
    left = HELD
    for box in graph.boxes:
        for name, array in (("value", box.value), ("gradient", box.gradient)):
            if array is not None and SOME < array.size <= min(MANY, left) and array.dtype.kind in "fiu":
                left -= array.size
                rows = array.reshape(-1, array.shape[-1])  # (…, C) -> (R, C)
                found.setdefault(box.id, {})[name] = [[_short(v) for v in row] for row in rows.tolist()]
    return found


def _short(value: float) -> float:
    return float(f"{value:.4g}") if isinstance(value, float) else value


def _twins(tree: Tree, group: Group) -> list[Group]:
    """The groups that share a picture: the copies of this one, in all copies of the groups around it."""
    path = [*tree.path(group), group]
    found = [path[0]]
    for outer, inner in zip(path, path[1:]):
        place = outer.children.index(inner)
        found = [copy for one in found for copy in _copies(one.children[place])]
    return found


def _copies(item: Any) -> list[Group]:
    return item.copies or [item]


def _thing_data(thing: Any) -> dict[str, Any]:
    """What stands in one box of a picture, and what it is."""
    data: dict[str, Any] = {"rows": [[row.text, row.role] for row in rows(thing, LOOK)]}
    if isinstance(thing, Port):
        return data | {"id": thing.box.id, "port": True}
    pictures = [base64.b64encode(png(pixels)).decode() for pixels in thumbs(thing, LOOK)]
    return data | {"id": thing.id} | ({"thumbs": pictures} if pictures else {})


def _body(graph: Graph, pictures: str) -> str:
    notes = [(graph.view.note, "note"), (graph.hint, "hint faint")]
    note = "".join(f'<p class="{name}">{escape(text)}</p>' for text, name in notes if text)
    return f"""<header><h1>{escape(graph.name)}</h1><span class="spacer"></span>
<label>search <input id="search" type="search" placeholder="name, op, module or shape" autocomplete="off"></label>
<label>color <select id="color"><option value="">kinds</option><option>time</option><option>bytes</option><option>flops</option></select></label>
<span id="scale" hidden><span id="ramp"></span> <span id="most" class="mono"></span></span>
<label>arrows <select id="direction"><option>forward</option><option>backward</option><option selected>both</option></select></label>
<button data-switch="theme" title="light or dark">◐</button></header>
{note}
<div id="results" class="panel" hidden></div>
<nav id="trail" aria-label="where you are"></nav>
<div class="columns"><main>
<div id="steps" class="panel"><button id="first" title="to the beginning">|◀</button><button id="back" title="one step back (←)">◀ back</button>
<button id="next" title="one step on (→)">step ▶</button><button id="play">play</button>
<button id="leave" title="show all numbers">all numbers</button>
<span id="where" class="mono"></span></div>
<div id="picture" class="scroll">{pictures}</div></main>
<aside id="details" class="panel" aria-live="polite"></aside></div>"""
