"""Scenes painted by matplotlib, for PNG and PDF."""

from __future__ import annotations

from typing import IO, Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse as EllipsePatch
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.patches import Polygon as PolygonPatch
from matplotlib.path import Path

from .colors import resolve
from .scene import Ellipse, Group, Image, Line, Polygon, Rect, Scene, Text, arrow_head, clean

__all__ = ["paint"]

POINTS = 72  # to an inch
DOTS = 144  # to an inch, in a PNG
FAMILIES = {"mono": "DejaVu Sans Mono", "sans": "DejaVu Sans"}  # which matplotlib brings along
_PLACES = {"start": "left", "middle": "center", "end": "right"}


def paint(scene: Scene, sink: IO[bytes], form: str, dark: bool) -> None:
    """Write a scene as "png" or "pdf"."""
    figure = Figure(figsize=(scene.width / POINTS, scene.height / POINTS), facecolor=resolve("paper", dark))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, scene.width)
    axes.set_ylim(scene.height, 0)
    axes.axis("off")
    for order, shape in enumerate(_flat(scene.shapes)):
        _add(axes, shape, dark, order)
    # Without a date and a version the same picture is the same file.
    nothing: dict[str, Any] = (
        {"Software": None} if form == "png" else {"CreationDate": None, "Producer": None, "Creator": None}
    )
    figure.savefig(sink, format=form, dpi=DOTS, facecolor=figure.get_facecolor(), metadata=nothing)


def _flat(shapes: Any) -> Any:
    stack = list(reversed(shapes))
    while stack:
        shape = stack.pop()
        if isinstance(shape, Group):
            stack.extend(reversed(shape.shapes))
        else:
            yield shape


def _look(shape: Any, dark: bool, order: int) -> dict[str, Any]:
    fill = getattr(shape, "fill", None)
    return {
        "facecolor": "none" if fill is None else resolve(fill, dark),
        "edgecolor": "none" if shape.stroke is None else resolve(shape.stroke, dark),
        "linewidth": shape.thick if shape.stroke else 0,
        "linestyle": (0, (4, 3)) if shape.dashed else "solid",
        "zorder": order,
    }


def _add(axes: Any, shape: Any, dark: bool, order: int) -> None:
    if isinstance(shape, Text):
        _add_text(axes, shape, dark, order)
    elif isinstance(shape, Image):
        edges = (shape.x, shape.x + shape.width, shape.y + shape.height, shape.y)
        axes.imshow(shape.pixels, extent=edges, interpolation="nearest", aspect="auto", zorder=order)
    else:
        look = _look(shape, dark, order)
        axes.add_patch(_patch(shape, look))
        if isinstance(shape, Line) and shape.arrow:
            head = arrow_head(shape)
            axes.add_patch(_patch(head, _look(head, dark, order)))


def _patch(shape: Any, look: dict[str, Any]) -> Any:
    if isinstance(shape, Rect):
        style = (
            f"round,pad=0,rounding_size={min(shape.radius, shape.width / 2, shape.height / 2)}"
            if shape.radius
            else "square,pad=0"
        )
        return FancyBboxPatch((shape.x, shape.y), shape.width, shape.height, boxstyle=style, **look)
    if isinstance(shape, Ellipse):
        return EllipsePatch((shape.x, shape.y), shape.width, shape.height, **look)
    if isinstance(shape, Polygon):
        return PolygonPatch(list(shape.points), **look)
    assert isinstance(shape, Line)
    codes = [Path.MOVETO] + [Path.CURVE4 if shape.curved else Path.LINETO] * (len(shape.points) - 1)
    return PathPatch(Path(list(shape.points), codes), **look)


def _add_text(axes: Any, shape: Text, dark: bool, order: int) -> None:
    axes.text(
        shape.x,
        shape.y,
        clean(shape.text, 2000),
        fontsize=shape.size,
        color=resolve(shape.color, dark),
        ha="left" if shape.turned and shape.anchor == "start" else _PLACES[shape.anchor],
        va="baseline",
        weight="bold" if shape.bold else "normal",
        family=FAMILIES[shape.font],
        rotation=90 if shape.turned else 0,
        rotation_mode="anchor",
        zorder=order,
        parse_math=False,
    )
