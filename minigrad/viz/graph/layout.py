"""A picture in Graphviz's language, and where Graphviz puts its boxes.

DOT is written with the `graphviz` package. The layout comes from `dot` on the PATH, or else from the one that pygraphviz
brings along. Graphviz does not draw the pictures: a page exchanges the texts of a block for those of another one of the same
form, so we fix the sizes of boxes ourselves, and pictures have thumbnails and a dark theme.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ...errors import MinigradError, MissingExtraError, install_hint
from ..drawing.scene import clean
from .labels import Label, Look, frame_title
from .view import View

__all__ = ["Layout", "digraph_of", "lay_out"]

POINTS = 72  # to an inch
SECONDS = 120  # that a layout may take
SHAPES = {
    "parameter": "hexagon", "input": "ellipse", "constant": "note", "output": "doubleoctagon", "module": "component",
}  # fmt: skip


def digraph_of(view: View, look: Look, labels: Mapping[str, Label], sized: bool = False) -> Any:
    """The picture as a graphviz.Digraph: with its texts; or `sized`, without any text, for the layout."""
    graphviz = _graphviz()
    made = graphviz.Digraph("G", graph_attr={"rankdir": "TB", "nodesep": "0.28", "ranksep": "0.36"})
    made.attr("node", shape="box", fixedsize="true" if sized else "false")
    inside: dict[Any, Any] = {group: graphviz.Digraph(f"cluster_{i}") for i, (group, _) in enumerate(view.frames)}
    for thing, key in view.keys.items():
        label, home = labels[key], inside.get(view.owner.get(thing), made)
        if sized:
            home.node(key, "", width=f"{label.width / POINTS:.3f}", height=f"{label.height / POINTS:.3f}")
        else:
            home.node(key, _escaped([row.text for row in label.rows]), shape=SHAPES.get(label.kind, "box"))
    for group, around in reversed(view.frames):  # the innermost come last
        text, width = frame_title(group)
        title = _room(width) if sized else _escaped([text])
        inside[group].attr(label=title, labeljust="l", margin="12")
        inside.get(around, made).subgraph(inside[group])
    for (tail, head), times in view.edges.items():
        marks = {"label": f"×{times}"} if times > 1 and not sized else {}
        if look.direction == "backward" and (tail, head) not in view.backs:
            marks |= {"style": "dotted", "arrowhead": "none"}
        made.edge(*((head, tail) if look.direction == "backward" else (tail, head)), **marks)
        if look.direction == "both" and (tail, head) in view.backs and not sized:
            made.edge(head, tail, style="dashed", constraint="false")
    return made


def _graphviz() -> Any:
    try:
        import graphviz
    except ImportError as error:
        what = "a picture of a graph needs the package graphviz, which is not installed"
        raise MissingExtraError(what, fix=f"{install_hint('viz')}; .json and text need nothing") from error
    return graphviz


def _escaped(lines: list[str]) -> Any:
    escape, nohtml = _graphviz().escape, _graphviz().nohtml
    return nohtml("\\n".join(escape(clean(line, 500)) for line in lines))


def _room(width: float) -> str:
    """As much room as a frame's title takes, without any text: so Graphviz needs no fonts."""
    size = f'FIXEDSIZE="TRUE" WIDTH="{math.ceil(width)}" HEIGHT="14"'
    plain = 'BORDER="0" CELLBORDER="0" CELLPADDING="0" CELLSPACING="0"'
    return f"<<TABLE {plain} {size}><TR><TD {size}></TD></TR></TABLE>>"


@dataclass(frozen=True)
class Layout:
    """Places in points, y growing downwards: centres of boxes, points of Bézier curves, corners of clusters."""

    width: float
    height: float
    boxes: dict[str, tuple[float, float]]
    edges: dict[tuple[str, str], list[tuple[float, float]]]
    clusters: dict[str, tuple[float, float, float, float]]  # left, top, right, bottom

    def moved(self, x: float, y: float) -> Layout:
        boxes = {key: (a + x, b + y) for key, (a, b) in self.boxes.items()}
        edges = {key: [(a + x, b + y) for a, b in points] for key, points in self.edges.items()}
        clusters = {key: (a + x, b + y, c + x, d + y) for key, (a, b, c, d) in self.clusters.items()}
        return Layout(self.width, self.height, boxes, edges, clusters)


@cache
def lay_out(dot: str) -> Layout:
    """Where Graphviz puts the boxes of a digraph that is `sized`."""
    found = json.loads(_drawn(dot))
    left, bottom, right, top = _numbers(found["bb"])
    made = Layout(right - left, top - bottom, {}, {}, {})
    names = {}
    for thing in found.get("objects", ()):
        names[thing["_gvid"]] = thing["name"]
        if "pos" in thing:
            x, y = _numbers(thing["pos"])
            made.boxes[thing["name"]] = (x - left, top - y)
        elif "bb" in thing:
            x0, y0, x1, y1 = _numbers(thing["bb"])
            made.clusters[thing["name"]] = (x0 - left, top - y1, x1 - left, top - y0)
    for edge in found.get("edges", ()):
        made.edges[names[edge["tail"]], names[edge["head"]]] = [(x - left, top - y) for x, y in _points(edge["pos"])]
    return made


def _numbers(text: str) -> list[float]:
    return [float(word) for word in text.split(",")]


def _points(text: str) -> list[list[float]]:
    """Graphviz writes `e,x,y` for the tip of the arrow, and then the points of the curve."""
    words = text.split()
    tip = [_numbers(word[2:]) for word in words if word.startswith("e,")]
    points = [_numbers(word) for word in words if not word.startswith(("e,", "s,"))]
    return points[:-1] + tip if tip else points


def _drawn(dot: str) -> Any:
    if program := shutil.which("dot"):
        try:
            done = subprocess.run([program, "-Tjson0"], input=dot.encode(), capture_output=True, timeout=SECONDS)
        except subprocess.TimeoutExpired as error:
            raise MinigradError(f"dot took more than {SECONDS} s", fix="draw less: a smaller depth=") from error
        if done.returncode:
            raise MinigradError("dot failed", got=done.stderr.decode(errors="replace")[:500])
        return done.stdout
    try:
        import pygraphviz
    except ImportError as error:
        what, fix = "is not installed", install_hint("viz")
        if not isinstance(error, ModuleNotFoundError):  # as of a library that the barest systems lack
            what, fix = f"cannot be loaded: {error}", "install it with the system's packages: apt-get install graphviz"
        fix += "; .dot, .json and text need nothing more"
        raise MissingExtraError(f"a picture of a graph needs Graphviz, which {what}", fix=fix) from error
    return pygraphviz.AGraph(string=dot).draw(format="json0", prog="dot")
