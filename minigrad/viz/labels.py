"""What stands in the boxes of a graph: lines of text, thumbnails, and how large that makes a box."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine.errors import ArgumentError, nearest
from .numbers import brief, count, thumbnail
from .scene import clean, text_width
from .tracing import Box, Input
from .tree import Group, Item
from .view import Port

__all__ = [
    "COLORS",
    "DIRECTIONS",
    "Look",
    "Row",
    "cost",
    "cost_text",
    "fit",
    "form",
    "frame_title",
    "input_word",
    "kind_of",
    "rows",
    "setting",
    "short_line",
    "size",
    "thumbs",
    "title_width",
    "written",
]

SIZE, ROW, PAD = 11.0, 14.5, 9.0
THUMB = (46.0, 23.0)
LONGEST = 34  # letters in a row
STACK = 6.0  # how far the boxes show that stand behind one with copies
DIRECTIONS = ("forward", "backward", "both")
COLORS = ("time", "bytes", "flops")
ORDINALS = ("first", "second", "third", "fourth")
SIGNS = {
    "add": "+",
    "subtract": "−",
    "multiply": "×",
    "divide": "/",
    "power": "**",
    "less": "<",
    "less_equal": "≤",
    "greater": ">",
    "greater_equal": "≥",
    "equal": "=",
    "not_equal": "≠",
}


@dataclass(frozen=True)
class Look:
    """How a graph is drawn: which way arrows go, and what colours tell besides the kinds of boxes."""

    direction: str = "forward"
    color: str | None = None

    def __post_init__(self) -> None:
        if self.direction not in DIRECTIONS:
            raise ArgumentError(
                f"graph: unknown direction {self.direction!r}",
                ", ".join(DIRECTIONS),
                fix=nearest(self.direction, DIRECTIONS),
            )
        if self.color is not None and self.color not in COLORS:
            raise ArgumentError(
                f"graph: unknown color {self.color!r}", ", ".join(COLORS), fix=nearest(str(self.color), COLORS)
            )


@dataclass(frozen=True)
class Row:
    """A line of text in a box."""

    text: str
    role: str = "detail"  # or "name", "form", "value", "gradient"
    color: str = "faint"
    bold: bool = False


def rows(thing: Any, look: Look) -> list[Row]:
    """The lines of text in a box, the first one its name."""
    if isinstance(thing, Port) and thing.is_result:
        name, *rest = _box_rows(thing.box, look)
        return [Row("output", "name", "ink", True), Row(name.text), *rest]
    if isinstance(thing, Port):
        word = "from" if thing.is_entry else "to"
        shown = thing.box.label if thing.is_entry else "outside"
        return [Row(fit(f"{word} {shown}"), "name"), Row(fit(form(thing.box)), "form")]
    return _group_rows(thing, look) if isinstance(thing, Group) else _box_rows(thing, look)


def _group_rows(group: Group, look: Look) -> list[Row]:
    times = f" ×{len(group.copies)}" if group.copies else ""
    name = group.name
    if group.copies:
        first, last = group.copies[0].name, group.copies[-1].name
        name = first if first == last else f"{first} … {last.rpartition('.')[2]}"
    amount = max(len(group.copies), 1)
    ops = sum(box.kind == "op" for box in group.everything()) // amount
    weights = sum(math.prod(box.shape) for box in group.everything() if box.kind == "parameter") // amount
    rows = [Row(fit(f"{name}{times}"), "name", "ink", True)]
    if group.title and group.title not in (group.name, "module"):
        rows.append(Row(fit(group.title)))
    inside = f"{ops:,} op{'s' * (ops != 1)}" + (f" · {count(weights)} weights" if weights else "")
    rows.append(Row(fit(inside + (" each" if times else ""))))
    return [*rows, *_cost_rows(group, look)]


def _box_rows(box: Box, look: Look) -> list[Row]:
    title = f"{box.label} = {box.op.strip('_')}" if box.name and box.op else box.label
    rows = [Row(fit(title), "name", "error" if box.failed else "ink", True)]
    given = [written(box, entry) for entry in box.inputs if entry.source is None and entry.text]
    given += [f"{name} = {setting(v)}" for name, v in box.attrs.items() if v is not None and _is_short(v)]
    if box.failed and not box.dtype:  # it has no result
        rows += [Row(fit(line), "form", "error") for line in given]
        return [*rows, *([Row(fit(short_line(box.line)))] if box.line else [])]
    if given:
        rows.append(Row(fit(", ".join(given))))
    rows.append(Row(fit(form(box)), "form"))
    if look.direction != "backward" and not box.has_parts:
        shown = "value not kept" if box.value is None else fit(brief(box.value, LONGEST))
        rows.append(Row(shown, "value", "faint" if box.value is None else "ink"))
    if box.gradient is not None:
        rows.append(Row(fit("∇ " + brief(box.gradient, LONGEST - 2)), "gradient", "gradient"))
    if box.failed:
        rows.append(Row("its backward failed", "detail", "error"))
    return [*rows, *_cost_rows(box, look)]


def written(box: Box, entry: Input) -> str:
    """A number that goes into an op, as one writes it: `** 2`, `1 −`; by the name of the argument where there is no sign."""
    sign = SIGNS.get(box.op)
    if sign is None or entry.name not in ("a", "b"):
        return f"{entry.name} = {entry.text}"
    return f"{sign} {entry.text}" if entry.name == "b" else f"{entry.text} {sign}"


def input_word(box: Box, name: str) -> str:
    """What to call an input of an op in a sentence: by its place where the op has no word for it."""
    names = [entry.name for entry in box.inputs]
    if not re.fullmatch(r"[ab]|[a-z]+\d+", name):
        return f"its input {name}"
    place = names.index(name) if name in names else 0
    return "its input" if len(names) == 1 else f"{ORDINALS[place]} input" if place < 4 else f"input {place + 1}"


def _cost_rows(item: Item, look: Look) -> list[Row]:
    if look.color is None:
        return []
    amount = cost(item, look.color)
    return [Row(cost_text(amount, look.color))] if amount else []


def cost_text(amount: float, color: str) -> str:
    """A cost with its unit."""
    return f"{amount * 1e6:.0f} µs" if color == "time" else count(amount, "B" if color == "bytes" else "FLOP")


def thumbs(thing: Any, look: Look) -> list[np.ndarray]:
    """Small pictures of a box's value and gradient, where they are large."""
    if isinstance(thing, Port) and thing.is_result:
        return thumbs(thing.box, look)
    if not isinstance(thing, Box):
        return []
    arrays = [thing.value if look.direction != "backward" else None, thing.gradient]
    return [pixels for array in arrays if array is not None and (pixels := thumbnail(array)) is not None]


def size(thing: Any, look: Look, least: float = 0) -> tuple[float, float]:
    """Width and height of a box, in points; a page has room for the texts of copies, so it is no narrower than `least`."""
    lines, pictures = rows(thing, look), thumbs(thing, look)
    slack = {"parameter": 26, "input": 26, "module": 14, "output": 10}.get(kind_of(thing), 0)
    width = max([text_width(row.text, SIZE) * (1.03 if row.bold else 1) for row in lines]) + 2 * PAD + slack
    width = max(width, len(pictures) * (THUMB[0] + 6) + 2 * PAD)
    behind = STACK if getattr(thing, "copies", ()) else 0
    return max(width + behind, least), len(lines) * ROW + PAD + (THUMB[1] + 6 if pictures else 0) + behind


def kind_of(thing: Any) -> str:
    """Which form a box has."""
    if isinstance(thing, Port):
        return "output" if thing.is_result else "port"
    if isinstance(thing, Group):
        return "module"
    return "error" if thing.failed else "output" if thing.is_output else thing.kind


def cost(item: Any, color: str) -> float:
    """What an item costs, with everything inside of it."""
    name = {"time": "seconds", "bytes": "bytes", "flops": "flops"}[color]
    boxes = item.everything() if isinstance(item, Group) else [item]
    return sum(getattr(box, name) or 0 for box in boxes)


def frame_title(group: Group) -> str:
    """What stands at the top of an open group: its name, how many look the same, and its class."""
    times = f" ×{len(group.copies)}" if group.copies else ""
    shown = f"{group.name}{times}" + (f"  {group.title}" if group.title not in ("", "module", group.name) else "")
    return fit(shown, 60)


def title_width(group: Group) -> float:
    """How wide the title of an open group is, in points."""
    return text_width(frame_title(group), SIZE) * 1.03 + 4


def form(box: Box) -> str:
    """Shape and dtype."""
    shape = " ".join(map(str, box.shape)) if box.has_parts else str(tuple(box.shape)) if box.shape else ""
    return f"{shape} {box.dtype}".strip()


def short_line(line: str) -> str:
    """Where something was written, without the directory, which says little and is long."""
    return re.split(r"[/\\]", line)[-1]


def setting(value: Any) -> str:
    """An attribute as it would be written; the slices of an index as in x[1:, :3]."""
    parts = value if isinstance(value, tuple) else (value,)
    if not any(isinstance(part, slice) for part in parts):
        return value if isinstance(value, str) else str(value).replace("-", "−")
    bounds = [(p.start, p.stop, p.step) if isinstance(p, slice) else p for p in parts]
    shown = [
        ":".join("" if n is None else setting(n) for n in (b if b[2] is not None else b[:2]))
        if isinstance(b, tuple)
        else setting(b)
        for b in bounds
    ]
    return f"[{', '.join(shown)}]"


def _is_short(value: Any) -> bool:
    return isinstance(value, (int, float, str, bool, slice)) or isinstance(value, tuple) and len(value) <= 4


def fit(text: str, longest: int = LONGEST) -> str:
    return clean(text, longest)
