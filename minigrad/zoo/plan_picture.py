"""A picture of a plan: the memory and the time of each layout as bars, and the time line of the best one's step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..parallel.pipeline import schedule
from ..parallel.planning import Forecast, simulated
from ..viz.drawing.axes import labels, round_ticks
from ..viz.drawing.scene import Group, Line, Rect, Scene, Text, clean, text_width, widest

__all__ = ["plan_picture"]

ROW, GAP, SIZE, MOST = 16.0, 12.0, 10.5, 12
MEMORY = {"weights": "parameter", "optimizer": "output", "gradients": "group", "activations": "input"}
TIME = {"computing": "input", "communicating": "group"}
BOXES = {"forward": ("input", "F"), "backward": ("parameter", "B")}


def plan_picture(found: Sequence[Forecast], names: Sequence[str], width: float = 720) -> Scene:
    """The first forecasts of a plan; a line marks the memory of a rank. The time line is that of the first layout."""
    chosen = list(zip(found, names))[:MOST]
    left = min(widest(names[:MOST], SIZE) + 2 * GAP, width / 3)
    room = found[0].cluster.memory / found[0].cluster.ranks_inside
    most = max([room, *[one.bytes for one, _ in chosen]])
    shapes, y = _panel(chosen, MEMORY, 1e9, most, left, width, 0.0, "GB of a rank, and what it may take (dashed)")
    scale = (width - left - GAP) / most
    shapes.append(Line([(left + room * scale, 2 * GAP), (left + room * scale, y - 2 * GAP)], "ink", 1, True))
    slowest = max(one.seconds for one, _ in chosen)
    bars, y = _panel(chosen, TIME, 1.0, slowest, left, width, y + GAP, "seconds of a step")
    shapes += bars
    line, y = _time_line(found[0], left, width, y + GAP)
    return Scene(width, y + GAP, [*shapes, *line], "a plan: memory and time of each layout")


def _panel(
    chosen: list[tuple[Forecast, str]], parts: dict[str, str], unit: float, most: float, left: float, width: float, y: float, title: str,
) -> tuple[list[Any], float]:  # fmt: skip
    """A bar for each layout, made of parts, and a scale below them."""
    shapes: list[Any] = []
    x = left
    for name, role in parts.items():
        shapes += [Rect(x, y + GAP - 2, 10, 10, role, f"{role}-line"), Text(x + 15, y + GAP + 7, name, SIZE, "faint")]
        x += 32 + text_width(name, SIZE)
    scale = (width - left - GAP) / most
    top = y + 2 * GAP + SIZE
    for number, (one, name) in enumerate(chosen):
        y = top + number * (ROW + 4)
        x = left
        shapes.append(Text(left - GAP / 2, y + ROW - 4, clean(name, 40), SIZE, anchor="end"))
        bar: list[Any] = []
        for part, role in parts.items():
            wide = getattr(one, part) * scale
            bar.append(Rect(x, y, wide, ROW, role, f"{role}-line"))
            x += wide
        said = ", ".join(f"{part} {getattr(one, part) / unit:.3g}" for part in parts)
        shapes.append(Group(bar, "bar", f"{name}: {said}"))
    y = top + len(chosen) * (ROW + 4)
    ticks = round_ticks(0, most / unit)
    for tick, label in zip(ticks, labels(ticks)):
        shapes.append(Text(left + tick * unit * scale, y + SIZE, label, SIZE, "faint", "middle"))
    shapes.append(Text(width - GAP, y + 2 * SIZE + 4, title, SIZE, "faint", "end"))
    return shapes, y + 3 * SIZE


def _time_line(one: Forecast, left: float, width: float, y: float) -> tuple[list[Any], float]:
    """What each stage computes when, and the communication at the end of the step."""
    stages, pieces = one.layout.pipeline, one.pieces
    each = one.computing / (pieces + stages - 1)
    order = [schedule(one.layout.schedule, stages, stage, pieces) for stage in range(stages)]
    spans = simulated([(each / 3, 2 * each / 3)] * stages, order, hop=0.0)
    scale = (width - left - GAP) / one.seconds
    shapes: list[Any] = []
    for stage, own in enumerate(spans):
        top = y + GAP + stage * (ROW + 4)
        shapes.append(Text(left - GAP / 2, top + ROW - 4, f"stage {stage}", SIZE, anchor="end"))
        for kind, index, begin, end in own:
            role, letter = BOXES[kind]
            x, wide, said = left + begin * scale, (end - begin) * scale, f"{letter}{index}"
            box: list[Any] = [Rect(x, top, wide, ROW, role, f"{role}-line")]
            if text_width(said, SIZE) + 4 < wide:
                box.append(Text(x + wide / 2, top + ROW - 4, said, SIZE, anchor="middle"))
            shapes.append(Group(box, "span", f"{kind} {index}: {end - begin:.3g} s"))
        x = left + one.computing * scale
        wait = Rect(x, top, one.communicating * scale, ROW, "group", "group-line")
        shapes.append(Group([wait], "span", f"communicating: {one.communicating:.3g} s in all"))
    y += GAP + stages * (ROW + 4)
    said = "a step of the first layout: forwards (F), backwards (B), all communication at its end"
    shapes.append(Text(width - GAP, y + SIZE + 4, said, SIZE, "faint", "end"))
    return shapes, y + 2 * SIZE
