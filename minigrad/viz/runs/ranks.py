"""Pictures of a model that is divided among ranks: when each computes what, and who holds which slice of which matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..drawing.axes import round_ticks
from ..drawing.scene import Group, Line, Rect, Scene, Text, clean, text_width, widest

__all__ = ["holders", "pipeline_schedule"]

ROW, GAP, SIZE = 30, 10, 10.5
LOOKS = {
    "forward": ("input", "input-line", "F"),
    "backward": ("parameter", "parameter-line", "B"),
    "reduce": ("group", "group-line", ""),
    "gather": ("output", "output-line", ""),
}
MEANINGS = {"forward": "forward", "backward": "backward", "reduce": "sum of gradients", "gather": "gather of weights"}


def pipeline_schedule(spans: Sequence[Sequence[Any]], names: Sequence[str] | None = None, width: float = 720) -> Scene:
    """The time line of a step: for each rank its spans `(kind, microbatch, begin, end, waited)`, as `parallel.timeline` records them.

    Boxes are computing and waiting; their lower, dashed part is the share of the time that was spent waiting for other ranks.
    """
    labels = list(names or [f"rank {rank}" for rank in range(len(spans))])
    left = widest(labels, SIZE) + 2 * GAP
    first = min((one[2] for own in spans for one in own), default=0.0)
    last = max((one[3] for own in spans for one in own), default=1.0)
    scale = (width - left - GAP) / max(last - first, 1e-9)
    top = 2 * GAP + SIZE
    shapes: list[Any] = _legend({one[0] for own in spans for one in own}, left)
    for rank, own in enumerate(spans):
        y = top + GAP + rank * (ROW + GAP)
        shapes.append(Text(left - GAP, y + ROW / 2 + 4, labels[rank], SIZE, anchor="end"))
        shapes.append(Line([(left, y + ROW), (width - GAP, y + ROW)], "grid"))
        shapes += [_box(one, left, y, first, scale) for one in own]
    bottom = top + GAP + len(spans) * (ROW + GAP)
    for tick in round_ticks(0, 1000 * (last - first)):
        x = left + tick / 1000 * scale
        shapes.append(Text(x, bottom + SIZE + 2, f"{tick:g}", SIZE, "faint", "middle"))
    shapes.append(Text(width - GAP, bottom + 2 * SIZE + 8, "milliseconds", SIZE, "faint", "end"))
    return Scene(width, bottom + 3 * SIZE + 6, shapes, "the schedule of a step, as measured")


def _legend(kinds: set[str], left: float) -> list[Any]:
    shapes, x = list[Any](), left
    for kind in (kind for kind in LOOKS if kind in kinds):
        fill, stroke, _ = LOOKS[kind]
        shapes += [Rect(x, GAP, 12, 12, fill, stroke), Text(x + 17, GAP + 10, MEANINGS[kind], SIZE, "faint")]
        x += 35 + text_width(MEANINGS[kind], SIZE)
    line = Line([(x, GAP + 6), (x + 12, GAP + 6)], "faint", 2, True)
    return [*shapes, line, Text(x + 17, GAP + 10, "waiting", SIZE, "faint")]


def _box(one: Any, left: float, y: float, first: float, scale: float) -> Group:
    kind, piece, begin, end, waited = one
    fill, stroke, letter = LOOKS.get(kind, ("constant", "constant-line", ""))
    x, wide = left + (begin - first) * scale, max((end - begin) * scale, 0.7)
    shapes: list[Any] = [Rect(x, y, wide, ROW, fill, stroke)]
    share = min(waited / max(end - begin, 1e-9), 1.0)
    if share > 0.02:
        shapes.append(Line([(x, y + ROW - 3), (x + wide * share, y + ROW - 3)], "faint", 2, True))
    said = f"{letter}{piece}" if letter else ""
    if said and text_width(said, SIZE) + 4 < wide:
        shapes.append(Text(x + wide / 2, y + ROW / 2 + 3, said, SIZE, anchor="middle"))
    tip = f"{MEANINGS.get(kind, kind)} {piece if piece >= 0 else ''}: {1000 * (end - begin):.1f} ms, of which {1000 * waited:.1f} waiting"
    return Group(shapes, "span", tip)


def holders(placements: Sequence[Any], layout: Any, width: float = 720, most: int = 40) -> Scene:
    """Who holds which slice of which matrix: a row for each placement of a matrix, a column for each rank that holds the model."""
    places = [(stage, tensor) for stage in range(layout.pipeline) for tensor in range(layout.tensor)]
    rows = [one for one in placements if len(one.shape) == 2][:most]
    titles = [f"stage {stage}" + (f", {tensor}" if layout.tensor > 1 else "") for stage, tensor in places]
    names = [clean(one.name, 44) for one in rows]
    left = min(widest(names, SIZE) + 2 * GAP, width / 2)
    step = (width - left - GAP) / len(places)
    places_of = [left + (i + 0.5) * step for i in range(len(places))]
    shapes = list[Any](Text(x, GAP + SIZE, title, SIZE, "faint", "middle") for x, title in zip(places_of, titles))
    for number, one in enumerate(rows):
        y = 2 * GAP + SIZE + number * (ROW + 4)
        shapes.append(Text(left - GAP, y + ROW / 2 + 4, names[number], SIZE, anchor="end"))
        for i, (stage, tensor) in enumerate(places):
            shapes.append(_matrix(one, stage, tensor, left + i * step + step / 2 - 26, y))
    height = 3 * GAP + SIZE + len(rows) * (ROW + 4)
    return Scene(width, height, shapes, "who holds which slice of which matrix")


def _matrix(one: Any, stage: int, tensor: int, x: float, y: float) -> Group:
    """A matrix, with the part of a rank filled."""
    wide, high = 52.0, float(ROW - 4)
    shapes: list[Any] = [Rect(x, y, wide, high, None, "grid")]
    if not one.is_on(stage, tensor):
        return Group(shapes, "matrix", f"{one.name}: on other ranks")
    ranges = [[(0, one.shape[0])]] if one.spec is None else one.spec.ranges
    across = one.spec is not None and one.spec.axis == 1
    whole = one.shape[1 if across else 0]
    for start, stop in ranges[0 if one.spec is None else tensor]:
        a, b = start / whole, stop / whole
        px, py, w, h = (x + a * wide, y, (b - a) * wide, high) if across else (x, y + a * high, wide, (b - a) * high)
        shapes.append(Rect(px, py, w, h, "parameter", "parameter-line"))
    part = one.shape if one.spec is None else one.local_shape(tensor)
    return Group(shapes, "matrix", f"{one.name}: {part} of {one.shape}")
