"""A picture of a graph as a scene, drawn by ourselves: Graphviz only says where boxes go.

The sizes of boxes are known beforehand, since their texts are in a font of even width. So a picture looks the same wherever
it is made, and a page can exchange its texts for those of another block of the same form.
"""

from __future__ import annotations

import math
from typing import Any

from .colors import HEATS
from .dot import dot_of
from .labels import (
    PAD,
    ROW,
    SIZE,
    STACK,
    THUMB,
    Look,
    cost,
    cost_text,
    frame_title,
    kind_of,
    rows,
    size,
    thumbs,
    title_width,
)
from .layout import Layout, lay_out
from .scene import Group as Shapes
from .scene import Image, Line, Polygon, Rect, Scene, Text, text_width
from .tracing import Box
from .view import Port, View

__all__ = ["scene_of"]

MARGIN = 16.0


def scene_of(view: View, look: Look, title: str = "", hint: str = "") -> Scene:
    """The picture, with a legend of the forms in it, and below it what was left out, and how to see more."""
    place = lay_out(dot_of(view, look, labels=False))
    shapes: list[Any] = [_frame_shape(view, number, place) for number in range(len(view.frames))]
    shapes += [_edge_shape(view, look, edge, place) for edge in view.edges]
    shapes += [_title_shape(view, number, place) for number in range(len(view.frames))]
    shapes += [_box_shape(view, look, key, thing, place) for key, thing in view.things()]
    legend, legend_width, legend_height = _legend(view, look)
    width = max(place.width, legend_width, *[text_width(text, SIZE) for text in (view.note, hint)]) + 2 * MARGIN
    left, top = (width - place.width) / 2, MARGIN
    moved = [_moved(shape, left, top) for shape in shapes]
    bottom = top + place.height + 14
    for text, color in ((view.note, "error"), (hint, "faint")):
        if text:
            moved.append(Text(MARGIN, bottom + 8, text, SIZE, color))
            bottom += ROW + 6
    moved += [_moved(shape, MARGIN, bottom) for shape in legend]
    return Scene(width, bottom + legend_height + 6, moved, title)


def _frame_shape(view: View, number: int, place: Layout) -> Any:
    left, top, right, bottom = place.clusters[f"cluster_{number}"]
    return Rect(left, top, right - left, bottom - top, _frame_fill(view, number), "group-line", 8)


def _frame_fill(view: View, number: int) -> str:
    """Frames inside of frames take turns."""
    return "group" if len(view.tree.path(view.frames[number][0])) % 2 else "paper"


def _title_shape(view: View, number: int, place: Layout) -> Any:
    """The title of a frame, on a ground of its own, so that no arrow goes through the letters."""
    left, top, _, _ = place.clusters[f"cluster_{number}"]
    group = view.frames[number][0]
    ground = Rect(left + 6, top + 4, title_width(group), 14, _frame_fill(view, number), None)
    return Shapes([ground, Text(left + 8, top + 15, frame_title(group), SIZE, "group-line", bold=True)], "frame")


def _edge_shape(view: View, look: Look, edge: tuple[str, str], place: Layout) -> Any:
    pair = edge[::-1] if look.direction == "backward" else edge
    points = place.edges[pair]
    thick = 1 if view.edges[edge] == 1 else 1.8
    if look.direction == "backward":
        comes = edge in view.backs  # to a number that is merely used nothing comes back
        return Line(points, "gradient" if comes else "grid", thick, curved=True, arrow=comes)
    ways = [Shapes([Line(points, "line", thick, curved=True, arrow=True)], "forward")]
    if look.direction == "both" and edge in view.backs:
        back = [(x + 5, y) for x, y in reversed(points)]
        ways.append(Shapes([Line(back, "gradient", 1, True, True, True)], "backward"))
    return Shapes(ways, "edge", data={"from": edge[0], "to": edge[1]})


def _box_shape(view: View, look: Look, key: str, thing: Any, place: Layout) -> Any:
    (x, y), (width, height) = place.boxes[key], size(thing, look, view.room.get(key, 0))
    left, top = x - width / 2, y - height / 2
    copies = len(getattr(thing, "copies", ()))
    if copies:
        x, top, width, height = x - STACK / 2, top + STACK, width - STACK, height - STACK
    kind, fill = kind_of(thing), _fill(view, look, thing)
    lines = rows(thing, look)
    shapes = [*_outline(kind, left, top, width, height, fill, copies)]
    for number, row in enumerate(lines):
        color = row.color if fill is None else "ink"
        shapes.append(Text(x, top + PAD / 2 + (number + 0.76) * ROW, row.text, SIZE, color, "middle", row.bold))
    pictures = thumbs(thing, look)
    start = x - len(pictures) * (THUMB[0] + 6) / 2 + 3
    for number, pixels in enumerate(pictures):
        corner = start + number * (THUMB[0] + 6), top + PAD / 2 + len(lines) * ROW + 3
        stroke = "gradient" if number or look.direction == "backward" else "line"
        shapes += [Image(*corner, *THUMB, pixels), Rect(*corner, *THUMB, None, stroke)]
    if isinstance(thing, Box) and thing.is_kept:
        shapes.append(_kept_mark(left + width - {"parameter": 12, "input": 8}.get(kind, 3), top + 3))
    tip = "\n".join(row.text for row in lines)
    return Shapes(shapes, f"box {kind}", tip, {"key": key})


def _fill(view: View, look: Look, thing: Any) -> str | None:
    """The colour that tells a cost."""
    if look.color is None or isinstance(thing, Port) or not (amount := cost(thing, look.color)):
        return None
    return f"heat-{max(math.ceil(HEATS * amount / _most(view, look.color)), 1)}"


def _most(view: View, color: str) -> float:
    return max([cost(item, color) for item in view.items], default=0)


def _legend(view: View, look: Look) -> tuple[list[Any], float, float]:
    """The forms that the picture has, each with its meaning: shapes, width and height."""
    words = {
        "input": "given",
        "parameter": "parameter",
        "constant": "constant",
        "op": "op",
        "module": "opens",
        "output": "output",
        "port": "elsewhere",
        "error": "failed",
    }
    present = {kind_of(thing) for _, thing in view.things()}
    painted = {kind_of(thing) for _, thing in view.things() if _fill(view, look, thing)}
    shapes: list[Any] = []
    x = 0.0
    for kind, word in words.items():
        if kind in present:
            shapes += [
                *_outline(kind, x, 0, 22, 14, "paper" if kind in painted else None, 0),
                Text(x + 28, 11, word, 10, "faint"),
            ]
            x += 28 + text_width(word, 10) + 16
    if any(isinstance(thing, Box) and thing.is_kept for _, thing in view.things()):
        shapes += [_kept_mark(x + 5, 7), Text(x + 16, 11, "kept for the gradient", 10, "faint")]
        x += 16 + text_width("kept for the gradient", 10) + 16
    if look.color is not None:
        word = f"up to {cost_text(_most(view, look.color), look.color)}"
        shapes += [Rect(x + 9 * i, 0, 9, 14, f"heat-{i + 1}", None) for i in range(HEATS)]
        shapes.append(Text(x + 9 * HEATS + 6, 11, word, 10, "faint"))
        x += 9 * HEATS + 6 + text_width(word, 10) + 16
    return shapes, x, 18.0


def _outline(kind: str, x: float, y: float, width: float, height: float, fill: str | None, copies: int) -> list[Any]:
    """A form for each kind, so that colours are not needed to tell them apart."""
    if kind == "parameter":
        cut = min(10.0, height / 2)
        middle = y + height / 2
        corners = [
            (x, middle),
            (x + cut, y),
            (x + width - cut, y),
            (x + width, middle),
            (x + width - cut, y + height),
            (x + cut, y + height),
        ]
        return [Polygon(corners, fill or "parameter", "parameter-line")]
    if kind == "input":
        return [Rect(x, y, width, height, fill or "input", "input-line", min(height / 2, 20))]
    if kind == "constant":
        return [Rect(x, y, width, height, fill or "constant", "constant-line", dashed=True)]
    if kind == "output":
        inner = Rect(x + 3, y + 3, width - 6, height - 6, None, "output-line", 2)
        return [
            Rect(x, y, width, height, fill or "output", "output-line", 4, thick=1.6),
            *([inner] if height > 20 else []),
        ]
    if kind == "module":
        steps = (STACK, STACK / 2) if copies else ()
        behind = [Rect(x + step, y - step, width, height, "group", "group-line") for step in steps]
        bar = Rect(x, y, 5, height, "group-line", None)
        return [*behind, Rect(x, y, width, height, fill or "group", "group-line"), bar]
    if kind == "port":
        return [Rect(x, y, width, height, "paper", "line", min(height / 2, 20), True)]
    if kind == "error":
        return [Rect(x, y, width, height, "error-fill", "error", 4, thick=2)]
    return [Rect(x, y, width, height, fill or "surface", "line", 7)]


def _kept_mark(x: float, y: float) -> Polygon:
    return Polygon([(x, y - 4), (x + 4, y), (x, y + 4), (x - 4, y)], "accent", None)


def _moved(shape: Any, x: float, y: float) -> Any:
    """The same shape elsewhere."""
    if isinstance(shape, Shapes):
        return Shapes([_moved(part, x, y) for part in shape.shapes], shape.name, shape.tip, shape.data)
    if isinstance(shape, (Line, Polygon)):
        points = [(a + x, b + y) for a, b in shape.points]
        return type(shape)(**{**vars(shape), "points": points})
    return type(shape)(**{**vars(shape), "x": shape.x + x, "y": shape.y + y})
