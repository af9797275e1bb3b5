"""Curves of training: loss, learning rate, norm of the gradient and whatever else a run writes down, over its steps."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...metrics.units import SHARES
from ...train.run_data import Best, Curve, panels_of, read_config, read_metrics
from ..drawing.axes import Scale, span
from ..drawing.lines import NAME, plot
from ..drawing.scene import Ellipse, Group, Scene, Text, clean, text_width, widest

__all__ = ["curves", "label_room", "panel"]

WIDTH, HEIGHT = 480, 200
LEFT, RIGHT, ABOVE, BELOW = 62, 12, 30, 26  # around the box of a panel
DOTS = 30  # a curve of fewer points shows them
PANELS = 24  # more columns than this are no metrics of ours


def curves(source: str | os.PathLike[str] | Mapping[str, Curve], log: bool = False) -> Scene:
    """The curves of a run directory, or of named lists of (step, value), a panel for each quantity, one below the other.

    With `log`, the axes of values that are all above zero show powers of ten. NaN and infinities are gaps with a mark.

    >>> picture = curves({"loss": [(10, 0.7), (20, 0.5)], "valid_loss": [(20, 0.6)], "lr": [(10, 0.1), (20, 0.1)]})
    >>> picture.title
    'loss, lr'
    """
    best = Best() if isinstance(source, Mapping) else Best.of(read_config(source))
    found = panels_of(source if isinstance(source, Mapping) else read_metrics(source))
    names = list(found)[:PANELS]
    room = label_room(found)
    shapes: list[Any] = [_panel(name, found[name], best, log, room, i * HEIGHT) for i, name in enumerate(names)]
    if not names:
        shapes.append(Text(WIDTH / 2, HEIGHT / 2, "no numbers yet", 12, "faint", "middle"))
    return Scene(WIDTH, HEIGHT * max(len(names), 1), shapes, ", ".join(names))


def label_room(panels: Mapping[str, Mapping[str, Curve]]) -> float:
    """How much room the names at the ends of curves need, so that all panels are equally wide."""
    return max(44, widest([word for group in panels.values() for word in _words(group).values()], 11))


def panel(name: str, group: Mapping[str, Curve], best: Best, log: bool = False, room: float = 100) -> Scene:
    """One panel alone, with so much room for the names at the ends of its curves."""
    return Scene(WIDTH, HEIGHT, [_panel(name, group, best, log, room, 0)], name)


def _words(group: Mapping[str, Curve]) -> dict[str, str]:
    return {name: clean(name, NAME) if len(group) > 1 else _value(name, curve[-1][1]) for name, curve in group.items()}


def _value(name: str, value: float) -> str:
    return f"{100 * value:.4g} %" if name.removeprefix("valid_") in SHARES else f"{value:.4g}"


def _panel(name: str, group: Mapping[str, Curve], best: Best, log: bool, room: float, top: float) -> Group:
    size = [1, 100 if name in SHARES else 1]  # a share is drawn in per cent
    curves = {column: np.array(curve, float).reshape(-1, 2) * size for column, curve in group.items()}
    points = np.concatenate(list(curves.values()))
    finite = points[np.isfinite(points[:, 1])][:, 1]
    log = log and len(finite) > 0 and bool(finite.max() / 5 > finite.min() > 0)  # else it tells no more
    right = WIDTH - RIGHT - room - 8
    first, last = (points[:, 0].min(), points[:, 0].max()) if len(points) else (0.0, 1.0)
    alone = float(first == last)
    x = Scale(float(first) - alone, float(last) + alone, LEFT, right, whole=len(points) > 0)
    y = Scale(*span(finite, log=log), top + HEIGHT - BELOW, top + ABOVE, log)
    shapes: list[Any] = [
        Text(LEFT, top + 19, clean(name, 40) + ", %" * (name in SHARES) + ", powers of ten" * log, 12.5, bold=True),
        Text(WIDTH - RIGHT, y.start + 14, "step", 10.5, "faint", "end"),
        *plot(curves, _words(group), x, y, DOTS),
    ]
    point = best.point(group[best.column]) if best.column in group else None
    if point is not None:  # a ring around it, and what it is above the box
        word = f"best {_value(name, point[1])} at step {point[0]:,}"
        rings = [(float(x(point[0])), float(y(point[1] * size[1]))), (x.end - text_width(word, 11) - 10, y.end - 15)]
        shapes += [Ellipse(*at, 9, 9, fill=None, stroke="ink", thick=1.4) for at in rings]
        shapes.append(Text(x.end, y.end - 11, word, 11, "ink", "end"))
    data = {
        "left": LEFT, "right": right, "top": y.end, "bottom": y.start, "first": x.low, "last": x.high,
        "low": y.low, "high": y.high, "log": int(log), "columns": json.dumps(list(group)), "size": size[1],
    }  # fmt: skip
    return Group(shapes, "curves", data=data)
