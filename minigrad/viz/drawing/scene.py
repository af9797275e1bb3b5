"""Pictures as lists of shapes: written as SVG here, and as PNG or PDF by matplotlib.

Lengths are in points, y grows downwards. A colour is a role of minigrad.viz.drawing.colors, or "#rrggbb". An SVG says all in
plain attributes, which every program reads; its classes let a style sheet put dark colours on top. Texts are escaped here.
"""

from __future__ import annotations

import base64
import os
import re
import struct
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ArgumentError, MissingExtraError, install_hint, nearest
from ...saving import check_folder, write_atomically
from .colors import DARK, LIGHT, resolve

__all__ = [
    "Ellipse", "Group", "Image", "Line", "Polygon", "Rect", "Scene", "Text", "checked_target", "clean", "png", "text_width",
    "widest", "write_as",
]  # fmt: skip

FONTS = {
    "mono": "'DejaVu Sans Mono',Menlo,Consolas,'Liberation Mono',monospace",
    "sans": "'DejaVu Sans',Verdana,'Segoe UI',sans-serif",
}
MONO_WIDTH = 0.602  # of a letter, in font sizes
SUFFIXES = (".svg", ".png", ".pdf")
KINDS = {"f": "fill", "s": "stroke"}  # class f-ink fills in the colour of the role "ink", s-ink strokes in it
SHARP = ":root image{image-rendering:pixelated}"  # browsers only; SVG's own word for it is optimizeSpeed
# Control characters, marks that turn the direction of what follows, and marks that show nothing and join nothing.
_HIDDEN = [(0, 31), (127, 159), (8203, 8203), (8206, 8207), (8232, 8238), (8288, 8297), (55296, 57343), (65279, 65279)]
_CONTROLS = {code: "�" for first, last in [*_HIDDEN, (65534, 65535)] for code in range(first, last + 1)}


def clean(text: Any, longest: int = 200) -> str:
    """A name as it can be shown: on one line, of bounded length, without marks that reach beyond it."""
    shown = str(text).replace("\n", "⏎").translate(_CONTROLS)
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def text_width(text: str, size: float) -> float:
    """How wide a text in the mono font is; some letters, such as 好, take two places, and marks on letters none."""
    letters = (letter for letter in text if unicodedata.category(letter) not in ("Mn", "Me", "Cf"))
    return size * MONO_WIDTH * sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in letters)


def widest(texts: Iterable[str], size: float) -> float:
    """How wide the widest of some texts is."""
    return max((text_width(text, size) for text in texts), default=0)


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

    @property
    def head(self) -> Polygon:
        """The triangle at the end of an arrow."""
        (x0, y0), (x1, y1) = self.points[-2:]
        along = np.array([x1 - x0, y1 - y0]) / max(np.hypot(x1 - x0, y1 - y0), 1e-9)
        base, across = np.array([x1, y1]) - 7 * along, 2.8 * np.array([-along[1], along[0]])
        return Polygon([(x1, y1), tuple(base + across), tuple(base - across)], self.stroke, None)


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


@dataclass(frozen=True)
class Scene:
    """A picture of a size, that shows itself in a notebook, and writes itself as .svg, .png or .pdf."""

    width: float
    height: float
    shapes: Sequence[Any]
    title: str = ""

    def svg(self, standalone: bool = True) -> str:
        """The picture as text; where it is not `standalone`, the page around it has the background and the dark colours."""
        back = [Rect(0, 0, self.width, self.height, "paper", None)] if standalone else []
        body = "".join(map(_svg, [*back, *self.shapes]))
        style = f"<style>{_dark_style(body)}</style>" if standalone else ""
        spaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
        view = f"0 0 {_n(self.width)} {_n(self.height)}"
        size = _attributes(width=self.width, height=self.height, viewBox=view, role="img", font_family=FONTS["mono"])
        return f"<svg {spaces}{size}>{_title(self.title)}{style}{body}</svg>"

    def _repr_svg_(self) -> str:
        return self.svg()

    def write(self, path: str | os.PathLike[str], dark: bool = False) -> Path:
        """Write the picture; the suffix says how: .svg, .png or .pdf. Only an SVG is both light and dark."""
        target, suffix = checked_target(path, SUFFIXES)
        if suffix == ".svg":
            write_atomically(target, self.svg().encode())
            return target
        try:
            from .figure import paint
        except ImportError as error:
            what = f"a {suffix} needs matplotlib, which is not installed"
            raise MissingExtraError(what, fix=f"{install_hint('viz')}, or write an .svg") from error
        write_atomically(target, paint(self, suffix[1:], dark))
        return target


def checked_target(path: str | os.PathLike[str], suffixes: Sequence[str]) -> tuple[Path, str]:
    """Where a picture is to be written, and its suffix; refuses a suffix or a folder that does not exist."""
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in suffixes:
        what, fix = f"{os.fspath(path)!r} cannot be written like this", nearest(suffix or ".svg", suffixes)
        raise ArgumentError(what, ", ".join(suffixes), suffix or "no suffix", fix)
    check_folder(target)
    return target, suffix


def write_as(
    path: str | os.PathLike[str], texts: Mapping[str, Callable[[], str]], scene: Callable[[], Scene], dark: bool
) -> Path:
    """Write one of the texts, by its suffix, or else the scene, which only .png and .pdf make light or dark."""
    target, suffix = checked_target(path, (*SUFFIXES, *texts))
    if suffix not in texts:
        return scene().write(target, dark)
    write_atomically(target, texts[suffix]().encode())
    return target


def png(pixels: np.ndarray) -> bytes:
    """A PNG file of uint8 pixels, (rows, columns, 3)."""
    rows, columns, _ = pixels.shape
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), pixels.reshape(rows, columns * 3)], axis=1)
    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")]
    parts = [struct.pack(">I", len(b)) + k + b + struct.pack(">I", zlib.crc32(k + b)) for k, b in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _dark_style(body: str) -> str:
    """The dark colours of the classes that occur. `:root` keeps programs that do not know @media from applying them."""
    used = {name for names in re.findall(' class="([^"]*)"', body) for name in names.split()}
    pairs = [(kind, role) for kind in KINDS for role in DARK if f"{kind}-{role}" in used]
    rules = [f":root .{kind}-{role}{{{KINDS[kind]}:{DARK[role]}}}" for kind, role in pairs]
    return f"@media all{{{SHARP}}}@media (prefers-color-scheme:dark){{{''.join(rules)}}}"


def role_classes() -> str:
    """CSS for pages: classes that fill and stroke in the variable of a role, the two fonts, and images with sharp edges."""
    roles = [SHARP] + [f".{kind}-{role}{{{name}:var(--{role})}}" for kind, name in KINDS.items() for role in LIGHT]
    return "".join(roles + [f".{name}{{font-family:{family}}}" for name, family in FONTS.items()])


def _n(number: float) -> str:
    """A length, as short as half a hundredth of a point allows."""
    return f"{number:.2f}".rstrip("0").rstrip(".")


def _attributes(**values: Any) -> str:
    known = [(name.replace("_", "-"), value) for name, value in values.items() if value is not None]
    return "".join(f' {name}="{escape(value) if isinstance(value, str) else _n(value)}"' for name, value in known)


def _title(text: str) -> str:
    return f"<title>{escape(clean(text, 2000))}</title>" if text else ""


def _element(tag: str, fill: str | None, stroke: str | None, **attributes: Any) -> str:
    roles = [f"{kind}-{color}" for kind, color in (("f", fill), ("s", stroke)) if color and not color.startswith("#")]
    names = {"class": " ".join(roles) or None}
    paints = {"fill": resolve(fill) if fill else "none", "stroke": resolve(stroke) if stroke else None}
    return f"<{tag}{_attributes(**attributes, **names, **paints)}"


def _shape(tag: str, shape: Any, **place: Any) -> str:
    width, dashes = shape.thick if shape.stroke and shape.thick != 1 else None, "4 3" if shape.dashed else None
    look = {"stroke_width": width, "stroke_dasharray": dashes}
    return _element(tag, getattr(shape, "fill", None), shape.stroke, **place, **look) + "/>"


def _svg(shape: Any) -> str:
    match shape:
        case Rect(x, y, width, height, radius=radius):
            return _shape("rect", shape, x=x, y=y, width=width, height=height, rx=radius or None)
        case Ellipse(x, y, width, height):
            return _shape("ellipse", shape, cx=x, cy=y, rx=width / 2, ry=height / 2)
        case Polygon(points):
            return _shape("polygon", shape, points=" ".join(f"{_n(x)},{_n(y)}" for x, y in points))
        case Line(points):
            start, *rest = [f"{_n(x)},{_n(y)}" for x, y in points]
            path = f"M{start}{'C' if shape.curved else 'L'}{' '.join(rest)}"
            return _shape("path", shape, d=path) + (_svg(shape.head) if shape.arrow else "")
        case Text():
            return _text(shape, clean(shape.text, 2000))
        case Image(x, y, width, height, pixels):
            place = _attributes(x=x, y=y, width=width, height=height, preserveAspectRatio="none")
            # Some programs smooth images: with several pixels to a cell they blur only its edges.
            times = max(1, min(round(2 * width / max(pixels.shape[1], 1)), 512 // max(pixels.shape), 32))
            larger = base64.b64encode(png(pixels.repeat(times, 0).repeat(times, 1))).decode()
            return f'<image{place} image-rendering="optimizeSpeed" xlink:href="data:image/png;base64,{larger}"/>'
        case Group(shapes, name, tip, data):
            more = {f"data-{key}": str(value) for key, value in data.items()}
            inside = "".join(map(_svg, shapes))
            return f"<g{_attributes(**{'class': name or None}, **more)}>{_title(tip)}{inside}</g>"
    raise TypeError(f"{type(shape).__name__} is no shape of a scene")


def _text(shape: Text, text: str) -> str:
    look = {
        "text_anchor": None if shape.anchor == "start" else shape.anchor,
        "font_weight": "bold" if shape.bold else None,
        "font_family": None if shape.font == "mono" else FONTS[shape.font],
        "transform": f"rotate(-90 {_n(shape.x)} {_n(shape.y)})" if shape.turned else None,
    }
    spaces = ' xml:space="preserve"' if text != " ".join(text.split()) else ""
    start = _element("text", shape.color, None, x=shape.x, y=shape.y, font_size=shape.size, **look)
    return f"{start}{spaces}>{escape(text)}</text>"
