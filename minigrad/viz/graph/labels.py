"""What the boxes of a picture show: lines of text, thumbnails, and how large that makes a box."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...errors import ArgumentError, nearest
from ..drawing.arrays import brief, count, thumbnail
from ..drawing.scene import clean, text_width
from .boxes import Box, Input
from .tree import Group
from .view import Port, View

__all__ = [
    "COLORS", "DIRECTIONS", "Label", "Look", "Row", "cost", "cost_text", "form", "frame_title", "input_word", "labels_of",
    "rows", "setting", "short_line", "written",
]  # fmt: skip

SIZE, ROW, PAD = 11.0, 14.5, 9.0
THUMB = (46.0, 23.0)
LONGEST = 34  # letters in a row
STACK = 6.0  # how far the boxes show that stand behind one with copies
SLACK = {"parameter": 26, "input": 26, "module": 14, "output": 10}  # what the form of a box takes from its width
DIRECTIONS = ("forward", "backward", "both")
COLORS = ("time", "bytes", "flops")
_fit = partial(clean, longest=LONGEST)
ORDINALS = ("first", "second", "third", "fourth")


@dataclass(frozen=True)
class Look:
    """How a graph is drawn: which way arrows go, and what colours tell besides the kinds of boxes."""

    direction: str = "forward"
    color: str | None = None

    def __post_init__(self) -> None:
        for what, given, known in (("direction", self.direction, DIRECTIONS), ("color", self.color, COLORS)):
            if given not in known and (given is not None or what == "direction"):
                fix = nearest(str(given), known)
                raise ArgumentError(f"graph: unknown {what} {given!r}", ", ".join(known), fix=fix)


@dataclass(frozen=True)
class Row:
    """A line of text in a box."""

    text: str
    role: str = "detail"  # or "name", "form", "value", "gradient"
    color: str = "faint"
    bold: bool = False


@dataclass
class Label:
    """All that one box shows, and its size in points."""

    kind: str  # which form it has
    rows: list[Row]
    thumbs: list[np.ndarray]
    copies: int
    is_kept: bool
    cost: float
    width: float = 0
    height: float = 0

    def __post_init__(self) -> None:
        texts = [text_width(row.text, SIZE) * (1.03 if row.bold else 1) for row in self.rows]
        width = max(max(texts) + SLACK.get(self.kind, 0), len(self.thumbs) * (THUMB[0] + 6)) + 2 * PAD
        behind = STACK if self.copies else 0
        self.width = max(self.width, width + behind)
        self.height = len(self.rows) * ROW + PAD + (THUMB[1] + 6 if self.thumbs else 0) + behind


def labels_of(view: View, look: Look) -> dict[str, Label]:
    """What each box of a picture shows, by its key."""
    return {key: _label(thing, look) for thing, key in view.keys.items()}


def _label(thing: Any, look: Look) -> Label:
    shown = thing.box if isinstance(thing, Port) and thing.is_result else thing
    thumbs: list[np.ndarray] = []
    if isinstance(shown, Box):
        arrays = (shown.value_digest if look.direction != "backward" else None, shown.gradient_digest)
        thumbs = [pixels for array in arrays if array is not None and (pixels := thumbnail(array)) is not None]
        kind = "error" if shown.failed else "output" if shown.is_output else shown.kind
    else:
        kind = "port" if isinstance(shown, Port) else "module"
    price = cost(thing, look.color) if look.color and not isinstance(thing, Port) else 0
    copies, is_kept = len(getattr(thing, "copies", ())), getattr(thing, "is_kept", False)
    return Label(kind, rows(thing, look), thumbs, copies, is_kept, price)


def rows(thing: Any, look: Look) -> list[Row]:
    """The lines of text in a box, the first one its name."""
    if isinstance(thing, Port) and thing.is_result:
        first, *rest = _box_rows(thing.box, look)
        return [Row("output", "name", "ink", True), Row(first.text), *rest]
    if isinstance(thing, Port):
        name = f"from {thing.box.label}" if thing.is_entry else "to outside"
        return [Row(_fit(name), "name"), Row(_fit(form(thing.box)), "form")]
    lines = _group_rows(thing) if isinstance(thing, Group) else _box_rows(thing, look)
    if look.color is not None and (amount := cost(thing, look.color)):
        lines.append(Row(cost_text(amount, look.color)))
    return lines


def _group_rows(group: Group) -> list[Row]:
    amount = max(len(group.copies), 1)
    name = group.name
    if group.copies:
        last = group.copies[-1].name
        name = (name if name == last else f"{name} … {last.rpartition('.')[2]}") + f" ×{amount}"
    boxes = list(group.boxes())
    ops = sum(box.kind == "op" for box in boxes) // amount
    weights = sum(math.prod(box.shape) for box in boxes if box.kind == "parameter") // amount
    inside = f"{ops:,} op{'s' * (ops != 1)}" + (f" · {count(weights)} weights" if weights else "")
    title = [Row(_fit(group.title))] if group.title not in ("", "module", group.name) else []
    return [Row(_fit(name), "name", "ink", True), *title, Row(_fit(inside + (" each" if group.copies else "")))]


def _box_rows(box: Box, look: Look) -> list[Row]:
    title = f"{box.label} = {box.op.strip('_')}" if box.name and box.op else box.label
    lines = [Row(_fit(title), "name", "error" if box.failed else "ink", True)]
    given = [written(box, entry) for entry in box.inputs if entry.source is None and entry.text]
    short = {name: v for name, v in box.attrs.items() if v is not None and not (isinstance(v, tuple) and len(v) > 4)}
    given += [f"{name} = {setting(value)}" for name, value in short.items()]
    if box.failed and not box.dtype:  # it has no result
        lines += [Row(_fit(line), "form", "error") for line in given]
        return [*lines, *([Row(_fit(short_line(box.line)))] if box.line else [])]
    if given:
        lines.append(Row(_fit(", ".join(given))))
    lines.append(Row(_fit(form(box)), "form"))
    if look.direction != "backward" and not box.has_parts:
        known = box.value_digest
        lines.append(Row("value not kept", "value") if known is None else Row(brief(known, LONGEST), "value", "ink"))
    if box.gradient_digest is not None:
        lines.append(Row(_fit("∇ " + brief(box.gradient_digest, LONGEST - 2)), "gradient", "gradient"))
    return [*lines, *([Row("its backward failed", "detail", "error")] if box.failed else [])]


def written(box: Box, entry: Input) -> str:
    """A number that goes into an op, as one writes it: `** 2`, `1 −`; by the name of the argument where there is no sign."""
    if not box.symbol or entry.name not in ("a", "b"):
        return f"{entry.name} = {entry.text}"
    return f"{box.symbol} {entry.text}" if entry.name == "b" else f"{entry.text} {box.symbol}"


def input_word(box: Box, name: str) -> str:
    """What to call an input of an op in a sentence: by its place where the op has no word for it."""
    names = [entry.name for entry in box.inputs]
    if not re.fullmatch(r"[ab]|[a-z]+\d+", name):
        return f"its input {name}"
    place = names.index(name) if name in names else 0
    return "its input" if len(names) == 1 else f"{ORDINALS[place]} input" if place < 4 else f"input {place + 1}"


def cost(item: Any, color: str) -> float:
    """What an item costs, with everything inside of it."""
    name = "seconds" if color == "time" else color
    return sum(getattr(box, name) or 0 for box in (item.boxes() if isinstance(item, Group) else [item]))


def cost_text(amount: float, color: str) -> str:
    """A cost with its unit."""
    return f"{amount * 1e6:.0f} µs" if color == "time" else count(amount, "B" if color == "bytes" else "FLOP")


def frame_title(group: Group) -> tuple[str, float]:
    """What stands at the top of an open group, its name, how many look the same, and its class; and how wide it is."""
    times = f" ×{len(group.copies)}" if group.copies else ""
    title = f"  {group.title}" if group.title not in ("", "module", group.name) else ""
    text = clean(f"{group.name}{times}{title}", 60)
    return text, text_width(text, SIZE) * 1.03 + 4


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
    shown = []
    for part in parts:
        bounds: Any = (part.start, part.stop, part.step) if isinstance(part, slice) else (part,)
        bounds = bounds[:2] if len(bounds) == 3 and bounds[2] is None else bounds
        shown.append(":".join("" if bound is None else setting(bound) for bound in bounds))
    return f"[{', '.join(shown)}]"
