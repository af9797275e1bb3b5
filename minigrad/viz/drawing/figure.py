"""Scenes as matplotlib figures, for PNG and PDF."""

from __future__ import annotations

import io
import logging
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from matplotlib import font_manager, ft2font, patches
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.path import Path

from .colors import resolve
from .scene import Ellipse, Group, Image, Line, Polygon, Rect, Scene, Text, clean

__all__ = ["paint"]

POINTS = 72  # to an inch
DOTS = 144  # to an inch, in a PNG
FAMILIES = {"mono": "DejaVu Sans Mono", "sans": "DejaVu Sans"}  # which matplotlib brings along
ANCHORS = {"start": "left", "middle": "center", "end": "right"}
# Without a date and a version the same picture is the same file.
METADATA = {"png": {"Software": None}, "pdf": {"CreationDate": None, "Producer": None, "Creator": None}}
# That one font of many has no bold letters is nothing to tell.
logging.getLogger("matplotlib.font_manager").addFilter(
    lambda record: "Failed to find font weight" not in str(record.msg)
)


def paint(scene: Scene, form: str, dark: bool) -> bytes:
    """The file of a scene, "png" or "pdf"."""
    figure = Figure(figsize=(scene.width / POINTS, scene.height / POINTS), facecolor=resolve("paper", dark))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, scene.width)
    axes.set_ylim(scene.height, 0)
    axes.axis("off")
    shapes = list(_flat(scene.shapes))
    letters = {letter for shape in shapes if isinstance(shape, Text) for letter in clean(shape.text, 2000)}
    fonts, lacking = _more_fonts(letters)
    loose = "" if hasattr(ft2font, "__libraqm_version__") else "".join(sorted(filter(_is_shaped, letters)))
    boxes = f"no font here has {clean(lacking, 20)}, so the .{form} shows boxes: install one, such as Noto's"
    apart = f"the .{form} has {clean(loose, 20)} one by one from the left: install matplotlib 3.11, which joins letters"
    for what in [boxes] * bool(lacking) + [apart] * bool(loose):
        warnings.warn(f"{what}, or write an .svg", stacklevel=4)
    for order, shape in enumerate(shapes):
        _add(axes, shape, dark, order, fonts)
    sink = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph |Matplotlib currently", UserWarning)  # which was said above
        figure.savefig(sink, format=form, dpi=DOTS, facecolor=figure.get_facecolor(), metadata=METADATA[form])
    return sink.getvalue()


def _is_shaped(letter: str) -> bool:
    """Whether a letter is of a writing from the right, such as Arabic, or shapes its neighbours, as marks of Devanagari do."""
    return unicodedata.bidirectional(letter) in ("R", "AL") or unicodedata.category(letter) in ("Mn", "Mc")


@cache
def _letters(path: str) -> frozenset[int]:
    try:
        return frozenset(font_manager.get_font(path).get_charmap())
    except (OSError, RuntimeError):  # a font that is gone, or of a form that matplotlib does not read
        return frozenset()


def _more_fonts(letters: set[str]) -> tuple[list[str], str]:
    """Installed fonts with the letters that ours lack, and the letters that none has."""
    own = [_letters(font_manager.findfont(family)) for family in FAMILIES.values()]
    lacking, found = {ord(letter) for letter in letters} - frozenset.intersection(*own), list[str]()
    for font in sorted(font_manager.fontManager.ttflist, key=lambda font: (font.style != "normal", font.weight != 400)):
        if lacking and not font.name.startswith("Last Resort") and lacking & _letters(font.fname):
            found.append(font.name)
            lacking -= _letters(font.fname)
    return found, "".join(map(chr, sorted(lacking)))


def _flat(shapes: Sequence[Any]) -> Iterator[Any]:
    for shape in shapes:
        if isinstance(shape, Group):
            yield from _flat(shape.shapes)
        else:
            yield from [shape, shape.head] if isinstance(shape, Line) and shape.arrow else [shape]


def _add(axes: Any, shape: Any, dark: bool, order: int, fonts: Sequence[str]) -> None:
    if isinstance(shape, Text):
        axes.text(
            shape.x, shape.y, clean(shape.text, 2000), fontsize=shape.size, color=resolve(shape.color, dark),
            ha=ANCHORS[shape.anchor], va="baseline", weight="bold" if shape.bold else "normal",
            family=[FAMILIES[shape.font], *fonts], rotation=90 * shape.turned, rotation_mode="anchor", zorder=order, parse_math=False,
        )  # fmt: skip
    elif isinstance(shape, Image):
        edges = (shape.x, shape.x + shape.width, shape.y + shape.height, shape.y)
        axes.imshow(shape.pixels, extent=edges, interpolation="nearest", aspect="auto", zorder=order)
    else:
        fill, stroke = (resolve(c, dark) if c else "none" for c in (getattr(shape, "fill", None), shape.stroke))
        line = {"linewidth": shape.thick * bool(shape.stroke), "linestyle": (0, (4, 3)) if shape.dashed else "solid"}
        axes.add_patch(_patch(shape, facecolor=fill, edgecolor=stroke, zorder=order, **line))


def _patch(shape: Any, **look: Any) -> Any:
    match shape:
        case Rect(x, y, width, height, radius=radius):
            rounding = min(radius, width / 2, height / 2)
            style = f"round,pad=0,rounding_size={rounding}" if radius else "square,pad=0"
            return patches.FancyBboxPatch((x, y), width, height, boxstyle=style, **look)
        case Ellipse(x, y, width, height):
            return patches.Ellipse((x, y), width, height, **look)
        case Polygon(points):
            return patches.Polygon(list(points), **look)
        case Line(points, curved=curved):
            codes = [Path.MOVETO] + [Path.CURVE4 if curved else Path.LINETO] * (len(points) - 1)
            return patches.PathPatch(Path(list(points), codes), **look)
