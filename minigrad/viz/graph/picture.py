"""A picture of a graph as a scene, drawn by ourselves: Graphviz only says where boxes go.

The sizes of boxes are known beforehand, since their texts are in a font of even width. So a picture looks the same wherever
it is made, and a page can exchange its texts for those of another block of the same form.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..drawing.colors import HEATS
from ..drawing.scene import Group as Shapes
from ..drawing.scene import Image, Line, Polygon, Rect, Scene, Text, text_width
from . import layout
from .labels import PAD, ROW, SIZE, STACK, THUMB, Label, Look, cost_text, frame_title, labels_of
from .layout import Layout, digraph_of
from .view import View

__all__ = ["scene_of"]

MARGIN = 16.0
LEGEND = {
    "input": "given", "parameter": "parameter", "constant": "constant", "op": "op", "module": "opens", "output": "output",
    "port": "outside this view", "error": "failed",
}  # fmt: skip


def scene_of(
    view: View, look: Look, title: str = "", hint: str = "", labels: Mapping[str, Label] | None = None
) -> Scene:
    """The picture, with a legend of the forms in it, and below it what was left out, and how to see more."""
    labels = labels_of(view, look) if labels is None else labels
    place = layout.lay_out(digraph_of(view, look, labels, sized=True).source)
    bottom = MARGIN + place.height + 14
    notes = [(text, color) for text, color in ((view.note, "error"), (hint, "faint")) if text]
    legend, right = _legend(labels, look, bottom + len(notes) * (ROW + 6))
    width = MARGIN + max(place.width + MARGIN, right, *[text_width(text, SIZE) + MARGIN for text, _ in notes])
    place = place.moved((width - place.width) / 2, MARGIN)
    frames = [_frame(view, number, place) for number in range(len(view.frames))]
    shapes: list[Any] = [frame for frame, _ in frames]
    shapes += [_edge(view, look, edge, place) for edge in view.edges]
    shapes += [title for _, title in frames]
    most = max([label.cost for label in labels.values()], default=0)
    shapes += [_box(look, key, label, most, *place.boxes[key]) for key, label in labels.items()]
    shapes += [Text(MARGIN, bottom + 8 + i * (ROW + 6), text, SIZE, color) for i, (text, color) in enumerate(notes)]
    return Scene(width, bottom + len(notes) * (ROW + 6) + 24, [*shapes, *legend], title)


def _frame(view: View, number: int, place: Layout) -> tuple[Rect, Shapes]:
    """A frame, and its title on a ground of its own, so that no arrow goes through the letters."""
    left, top, right, bottom = place.clusters[f"cluster_{number}"]
    group = view.frames[number][0]
    fill = "group" if len(view.tree.path(group)) % 2 else "paper"  # frames inside of frames take turns
    text, width = frame_title(group)
    ground = Rect(left + 6, top + 4, width, 14, fill, None)
    title = Text(left + 8, top + 15, text, SIZE, "group-line", bold=True)
    return Rect(left, top, right - left, bottom - top, fill, "group-line", 8), Shapes([ground, title], "frame")


def _edge(view: View, look: Look, edge: tuple[str, str], place: Layout) -> Any:
    thick = 1 if view.edges[edge] == 1 else 1.8
    comes = edge in view.backs  # to a number that is merely used nothing comes back
    if look.direction == "backward":
        return Line(place.edges[edge[::-1]], "gradient" if comes else "grid", thick, curved=True, arrow=comes)
    points = place.edges[edge]
    ways = [Shapes([Line(points, "line", thick, curved=True, arrow=True)], "forward")]
    if look.direction == "both" and comes:
        back = [(x + 5, y) for x, y in reversed(points)]
        ways.append(Shapes([Line(back, "gradient", 1, True, True, True)], "backward"))
    return Shapes(ways, "edge", data={"from": edge[0], "to": edge[1]})


def _box(look: Look, key: str, label: Label, most: float, x: float, y: float) -> Any:
    behind = STACK if label.copies else 0
    width, height = label.width - behind, label.height - behind
    left, top = x - label.width / 2, y - label.height / 2 + behind
    x -= behind / 2
    fill = f"heat-{max(math.ceil(HEATS * label.cost / most), 1)}" if label.cost else None
    shapes = _outline(label.kind, (left, top, width, height), fill, bool(label.copies))
    for number, row in enumerate(label.rows):
        color = row.color if fill is None else "ink"
        shapes.append(Text(x, top + PAD / 2 + (number + 0.76) * ROW, row.text, SIZE, color, "middle", row.bold))
    start = x - len(label.thumbs) * (THUMB[0] + 6) / 2 + 3
    for number, pixels in enumerate(label.thumbs):
        corner = start + number * (THUMB[0] + 6), top + PAD / 2 + len(label.rows) * ROW + 3
        stroke = "gradient" if number or look.direction == "backward" else "line"
        shapes += [Image(*corner, *THUMB, pixels), Rect(*corner, *THUMB, None, stroke)]
    if label.is_kept:
        shapes.append(_kept_mark(left + width - {"parameter": 12, "input": 8}.get(label.kind, 3), top + 3))
    return Shapes(shapes, f"box {label.kind}", "\n".join(row.text for row in label.rows), {"key": key})


def _legend(labels: Mapping[str, Label], look: Look, y: float) -> tuple[list[Any], float]:
    shapes: list[Any] = []
    x = MARGIN
    painted = {label.kind for label in labels.values() if label.cost}
    for kind in [kind for kind in LEGEND if any(label.kind == kind for label in labels.values())]:
        shapes += _outline(kind, (x, y, 22, 14), "paper" if kind in painted else None)
        x = _word(shapes, x + 28, y, LEGEND[kind])
    if any(label.is_kept for label in labels.values()):
        shapes.append(_kept_mark(x + 5, y + 7))
        x = _word(shapes, x + 16, y, "kept for the gradient")
    if look.color is not None:
        most = max([label.cost for label in labels.values()], default=0)
        shapes += [Rect(x + 9 * i, y, 9, 14, f"heat-{i + 1}", None) for i in range(HEATS)]
        x = _word(shapes, x + 9 * HEATS + 6, y, f"up to {cost_text(most, look.color)}")
    return shapes, x


def _word(shapes: list[Any], x: float, y: float, word: str) -> float:
    shapes.append(Text(x, y + 11, word, 10, "faint"))
    return x + text_width(word, 10) + 16


def _outline(kind: str, place: tuple[float, float, float, float], fill: str | None, stacked: bool = False) -> list[Any]:
    """A form for each kind, so that colours are not needed to tell them apart."""
    x, y, width, height = place
    round_ = min(height / 2, 20)
    if kind == "parameter":
        cut, middle = min(10.0, height / 2), y + height / 2
        above, below = [[(x + cut, edge), (x + width - cut, edge)] for edge in (y, y + height)]
        corners = [(x, middle), *above, (x + width, middle), *reversed(below)]
        return [Polygon(corners, fill or "parameter", "parameter-line")]
    if kind == "output":
        inner = Rect(x + 3, y + 3, width - 6, height - 6, None, "output-line", 2)
        return [Rect(*place, fill or "output", "output-line", 4, thick=1.6), *([inner] if height > 20 else [])]
    if kind == "module":
        steps = (STACK, STACK / 2) if stacked else ()
        behind = [Rect(x + step, y - step, width, height, "group", "group-line") for step in steps]
        return [*behind, Rect(*place, fill or "group", "group-line"), Rect(x, y, 5, height, "group-line", None)]
    plain = {
        "input": Rect(*place, fill or "input", "input-line", round_),
        "constant": Rect(*place, fill or "constant", "constant-line", dashed=True),
        "port": Rect(*place, "paper", "line", round_, True),
        "error": Rect(*place, "error-fill", "error", 4, thick=2),
    }
    return [plain.get(kind) or Rect(*place, fill or "surface", "line", 7)]


def _kept_mark(x: float, y: float) -> Polygon:
    return Polygon([(x, y - 4), (x + 4, y), (x, y + 4), (x - 4, y)], "accent", None)
