"""Where Graphviz puts the boxes of a picture: by `dot` on the PATH, or by the one that pygraphviz brings along."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..engine.errors import MinigradError, MissingExtraError

__all__ = ["Layout", "lay_out"]

POINTS = 72  # to an inch
SECONDS = 120  # that a layout may take


@dataclass
class Layout:
    """Places in points, y growing downwards: centres of boxes, points of Bézier curves, corners of clusters."""

    width: float
    height: float
    boxes: dict[str, tuple[float, float]]
    edges: dict[tuple[str, str], list[tuple[float, float]]]
    clusters: dict[str, tuple[float, float, float, float]]  # left, top, right, bottom


@cache
def lay_out(dot: str) -> Layout:
    """Lay out a graph that was written by minigrad.viz.drawing, in which sizes are fixed and nothing has a text."""
    found = json.loads(_drawn(dot))
    left, bottom, right, top = (float(n) for n in found["bb"].split(","))
    made = Layout(right - left, top - bottom, {}, {}, {})
    names = {}
    for thing in found.get("objects", ()):
        names[thing["_gvid"]] = thing["name"]
        if "pos" in thing:
            x, y = (float(n) for n in thing["pos"].split(","))
            made.boxes[thing["name"]] = (x - left, top - y)
        elif "bb" in thing:
            x0, y0, x1, y1 = (float(n) for n in thing["bb"].split(","))
            made.clusters[thing["name"]] = (x0 - left, top - y1, x1 - left, top - y0)
    for edge in found.get("edges", ()):
        made.edges[names[edge["tail"]], names[edge["head"]]] = [(x - left, top - y) for x, y in _points(edge["pos"])]
    return made


def _points(text: str) -> list[tuple[float, float]]:
    """Graphviz writes `e,x,y` for the tip of the arrow, and then the points of the curve."""
    words = text.split()
    tip = next((word[2:] for word in words if word.startswith("e,")), None)
    places = [word for word in words if not word.startswith(("e,", "s,"))]
    points = [_place(word) for word in places]
    return [*points[:-1], _place(tip)] if tip else points


def _place(word: str) -> tuple[float, float]:
    x, y = word.split(",")
    return float(x), float(y)


def _drawn(dot: str) -> Any:
    program = shutil.which("dot")
    if program is not None:
        return _run(program, dot)
    try:
        import pygraphviz
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "a picture of a graph needs Graphviz, which is not installed",
            fix="pip install 'minigrad[viz]'; .dot, .json and text need nothing",
        ) from error
    except ImportError as error:  # as of a library that the barest systems lack
        raise MissingExtraError(
            f"a picture of a graph needs Graphviz, which cannot be loaded: {error}",
            fix="install it with the system's packages: apt-get install graphviz; .dot, .json and text need nothing",
        ) from error
    return pygraphviz.AGraph(string=dot).draw(format="json0", prog="dot")


def _run(program: str, dot: str) -> bytes:
    try:
        done = subprocess.run([program, "-Tjson0"], input=dot.encode(), capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        raise MinigradError(f"dot took more than {SECONDS} s", fix="draw less: a smaller depth=") from error
    if done.returncode:
        raise MinigradError("dot failed", got=done.stderr.decode(errors="replace")[:500])
    return done.stdout
