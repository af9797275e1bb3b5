"""Pictures as lists of shapes: drawn once, written as SVG here, and as PNG or PDF by matplotlib.

Lengths are in points, y grows downwards. A colour is a role of minigrad.viz.colors, or "#rrggbb". Every text is escaped
where it is written, so that no name can become markup.
"""

from __future__ import annotations

import base64
import io
import os
import re
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.errors import ArgumentError, MissingExtraError, nearest
from ..saving import check_folder, write_atomically
from .colors import DARK, LIGHT, resolve

__all__ = ["Ellipse", "Group", "Image", "Line", "Polygon", "Rect", "Scene", "Text", "clean", "png", "text_width"]

FONTS = {
    "mono": "'DejaVu Sans Mono',Menlo,Consolas,'Liberation Mono',monospace",
    "sans": "'DejaVu Sans',Verdana,'Segoe UI',sans-serif",
}
MONO_WIDTH = 0.602  # of a letter, in font sizes
SUFFIXES = (".svg", ".png", ".pdf")
_CONTROLS = dict.fromkeys([*range(32), 127, *range(128, 160), 65534, 65535], "�")
# Marks that turn the direction of what follows, or that show nothing: they would reach beyond the name they stand in.
_CONTROLS.update(dict.fromkeys([*range(8203, 8208), *range(8232, 8239), *range(8288, 8298), 65279], "�"))


def clean(text: Any, longest: int = 200) -> str:
    """A name as it can be shown: on one line, of bounded length, without marks that reach beyond it."""
    shown = str(text).replace("\n", "⏎").translate(_CONTROLS)
    shown = re.sub("[\ud800-\udfff]", "�", shown)
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def text_width(text: str, size: float) -> float:
    """How wide a text in the mono font is."""
    return len(text) * size * MONO_WIDTH


@dataclass(frozen=True)
class Rect:
    x: float
    y: float
    width: float
    height: float
    fill: str | None = "surface"
    stroke: str | None = "line"
    radius: float = 0
    dashed: bool = False
    thick: float = 1


@dataclass(frozen=True)
class Ellipse:
    x: float  # of the centre
    y: float
    width: float
    height: float
    fill: str | None = "surface"
    stroke: str | None = "line"
    dashed: bool = False
    thick: float = 1


@dataclass(frozen=True)
class Polygon:
    points: Sequence[tuple[float, float]]
    fill: str | None = "surface"
    stroke: str | None = "line"
    dashed: bool = False
    thick: float = 1


@dataclass(frozen=True)
class Line:
    """Through its points, or where it is curved, the first and then three for each piece of a Bézier curve."""

    points: Sequence[tuple[float, float]]
    stroke: str = "line"
    thick: float = 1
    dashed: bool = False
    curved: bool = False
    arrow: bool = False


@dataclass(frozen=True)
class Text:
    x: float
    y: float  # of the baseline
    text: str
    size: float = 11
    color: str = "ink"
    anchor: str = "start"  # or "middle", or "end"
    bold: bool = False
    font: str = "mono"
    turned: bool = False  # a quarter to the left


@dataclass(frozen=True)
class Image:
    """Pixels of uint8, (rows, columns, 3), each a rectangle with sharp edges."""

    x: float
    y: float
    width: float
    height: float
    pixels: np.ndarray


@dataclass(frozen=True)
class Group:
    """Shapes that belong together: `tip` is shown where the mouse rests, `data` becomes data-… attributes for scripts."""

    shapes: Sequence[Any]
    name: str = ""  # its class
    tip: str = ""
    data: dict[str, Any] = field(default_factory=dict)


def png(pixels: np.ndarray) -> bytes:
    """A PNG file of uint8 pixels, (rows, columns, 3)."""
    rows, columns, _ = pixels.shape
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), pixels.reshape(rows, columns * 3)], axis=1)
    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")]
    parts = [struct.pack(">I", len(b)) + k + b + struct.pack(">I", zlib.crc32(k + b)) for k, b in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@dataclass(frozen=True)
class Scene:
    """A picture of a size, that shows itself in a notebook, and writes itself as .svg, .png or .pdf."""

    width: float
    height: float
    shapes: Sequence[Any]
    title: str = ""

    def svg(self, standalone: bool = True) -> str:
        """The picture as text; where it is not `standalone`, the page around it has the colours."""
        size = f'width="{_n(self.width)}" height="{_n(self.height)}" viewBox="0 0 {_n(self.width)} {_n(self.height)}"'
        title = f"<title>{escape(clean(self.title))}</title>" if self.title else ""
        style = f"<style>{_own_style()}</style>" if standalone else ""
        back = '<rect width="100%" height="100%" class="f-paper"/>' if standalone else ""
        body = "".join(_svg(shape) for shape in self.shapes)
        return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">{title}{style}{back}{body}</svg>'

    def _repr_svg_(self) -> str:
        return self.svg()

    def write(self, path: str | os.PathLike[str], dark: bool = False) -> Path:
        """Write the picture; the suffix says how: .svg, .png or .pdf. Only an SVG is both light and dark."""
        target = Path(path)
        suffix = target.suffix.lower()
        if suffix not in SUFFIXES:
            raise ArgumentError(
                f"{os.fspath(path)!r} is no picture", ", ".join(SUFFIXES), target.suffix, nearest(suffix, SUFFIXES)
            )
        check_folder(target)
        write_atomically(target, self.svg().encode() if suffix == ".svg" else self.painted(suffix[1:], dark))
        return target

    def painted(self, form: str, dark: bool = False) -> bytes:
        """The picture as matplotlib paints it, "png" or "pdf"."""
        try:
            from .painting import paint
        except ImportError as error:
            raise MissingExtraError(
                f"a .{form} needs matplotlib, which is not installed",
                fix="pip install 'minigrad[viz]', or write an .svg",
            ) from error
        sink = io.BytesIO()
        paint(self, sink, form, dark)
        return sink.getvalue()


def style_of(colors: dict[str, str]) -> str:
    """CSS variables of a set of colours."""
    return "".join(f"--{role}:{value};" for role, value in colors.items())


def role_classes() -> str:
    """CSS classes f-… and s-…, by which shapes are filled and stroked in the colour of a role, and the two fonts."""
    roles = "".join(f".f-{r}{{fill:var(--{r})}}.s-{r}{{stroke:var(--{r})}}" for r in LIGHT)
    return roles + "".join(f".{name}{{font-family:{family}}}" for name, family in FONTS.items())


def _own_style() -> str:
    dark = f"@media (prefers-color-scheme:dark){{svg{{{style_of(DARK)}}}}}"
    return f"svg{{{style_of(LIGHT)}}}{dark}{role_classes()}text{{white-space:pre}}"


def _n(number: float) -> str:
    """A length, as short as half a hundredth of a point allows."""
    return f"{number:.2f}".rstrip("0").rstrip(".")


def _paint(kind: str, color: str | None) -> tuple[str, str]:
    """A class for a role, an attribute for a colour: (class, attribute)."""
    if color is None:
        return "", f' {kind}="none"'
    if color.startswith("#"):
        return "", f' {kind}="{resolve(color)}"'
    return f"{kind[0]}-{color}", ""


def _look(shape: Any) -> str:
    """The attributes of a shape that say how it is filled and stroked."""
    fill, fill_attribute = _paint("fill", getattr(shape, "fill", None))
    stroke, stroke_attribute = _paint("stroke", shape.stroke)
    names = " ".join(filter(None, (fill, stroke)))
    thick = f' stroke-width="{_n(shape.thick)}"' if shape.stroke and shape.thick != 1 else ""
    dashes = ' stroke-dasharray="4 3"' if shape.dashed else ""
    return (f' class="{names}"' if names else "") + fill_attribute + stroke_attribute + thick + dashes


def _svg(shape: Any) -> str:
    return _WRITERS[type(shape)](shape)


def _svg_rect(s: Rect) -> str:
    radius = f' rx="{_n(s.radius)}"' if s.radius else ""
    return f'<rect x="{_n(s.x)}" y="{_n(s.y)}" width="{_n(s.width)}" height="{_n(s.height)}"{radius}{_look(s)}/>'


def _svg_ellipse(s: Ellipse) -> str:
    return f'<ellipse cx="{_n(s.x)}" cy="{_n(s.y)}" rx="{_n(s.width / 2)}" ry="{_n(s.height / 2)}"{_look(s)}/>'


def _svg_polygon(s: Polygon) -> str:
    return f'<polygon points="{" ".join(f"{_n(x)},{_n(y)}" for x, y in s.points)}"{_look(s)}/>'


def _svg_line(s: Line) -> str:
    (x, y), *rest = s.points
    places = [f"{_n(a)},{_n(b)}" for a, b in rest]
    path = f"M{_n(x)},{_n(y)}" + ("C" if s.curved else "L") + " ".join(places)
    line = f'<path d="{path}"{_look(s)}/>'
    return line + (_svg_polygon(arrow_head(s)) if s.arrow else "")


def arrow_head(line: Line, length: float = 7) -> Polygon:
    """The triangle at the end of a line."""
    (x0, y0), (x1, y1) = line.points[-2:]
    along = np.array([x1 - x0, y1 - y0]) / max(np.hypot(x1 - x0, y1 - y0), 1e-9)
    across = np.array([-along[1], along[0]])
    base = np.array([x1, y1]) - along * length
    corners = [(x1, y1), tuple(base + across * length / 2.5), tuple(base - across * length / 2.5)]
    return Polygon(corners, fill=line.stroke, stroke=None)


def _svg_text(s: Text) -> str:
    color, attribute = _paint("fill", s.color)
    names = f"{s.font} {color}".strip()
    anchor = "" if s.anchor == "start" else f' text-anchor="{s.anchor}"'
    bold = ' font-weight="bold"' if s.bold else ""
    turn = f' transform="rotate(-90 {_n(s.x)} {_n(s.y)})"' if s.turned else ""
    place = f'x="{_n(s.x)}" y="{_n(s.y)}" font-size="{_n(s.size)}"'
    return f'<text {place}{anchor}{bold}{turn} class="{names}"{attribute}>{escape(clean(s.text, 2000))}</text>'


def _svg_image(s: Image) -> str:
    address = base64.b64encode(png(s.pixels)).decode()
    place = f'x="{_n(s.x)}" y="{_n(s.y)}" width="{_n(s.width)}" height="{_n(s.height)}"'
    return f'<image {place} preserveAspectRatio="none" style="image-rendering:pixelated" href="data:image/png;base64,{address}"/>'


def _svg_group(s: Group) -> str:
    name = f' class="{escape(s.name)}"' if s.name else ""
    data = "".join(f' data-{key}="{escape(str(value))}"' for key, value in s.data.items())
    tip = f"<title>{escape(clean(s.tip, 2000))}</title>" if s.tip else ""
    return f"<g{name}{data}>{tip}{''.join(_svg(shape) for shape in s.shapes)}</g>"


_WRITERS: dict[type, Any] = {
    Rect: _svg_rect,
    Ellipse: _svg_ellipse,
    Polygon: _svg_polygon,
    Line: _svg_line,
    Text: _svg_text,
    Image: _svg_image,
    Group: _svg_group,
}
