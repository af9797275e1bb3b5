"""Sketches for the tutorials: how to think of attention, of a translator's two halves, of text under a hand, and of a cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..viz.drawing.scene import Ellipse, Line, Polygon, Rect, Scene, Text

__all__ = ["encoder_and_decoder", "growing_cache", "question_label_content", "text_under_a_hand"]

HIGH = 24.0  # of a box with a word


def _box(x: float, y: float, width: float, text: str, role: str = "constant", dashed: bool = False) -> list[Any]:
    """A box with a word in its middle, by its upper left corner."""
    rect = Rect(x, y, width, HIGH, role, f"{role}-line", radius=5, dashed=dashed)
    return [rect, Text(x + width / 2, y + 16, text, 12, anchor="middle")]


def _row(x: float, y: float, words: Sequence[str], width: float, role: str = "constant") -> list[Any]:
    """Words in boxes, side by side."""
    return [shape for i, word in enumerate(words) for shape in _box(x + i * (width + 8), y, width, word, role)]


def _arrow(x0: float, y0: float, x1: float, y1: float, role: str = "line", thick: float = 1) -> Line:
    return Line([(x0, y0), (x1, y1)], role, thick=thick, arrow=True)


def question_label_content() -> Scene:
    """Attention as a party: one question meets three labels, and takes home a mixture of what they tell."""
    people = [
        ("You", "who speaks", "I spoke", 1.0),
        ("are", "a verb", "it holds now", 2.0),
        ("welcome", "thanks, doors", "politeness", 4.0),
    ]
    shapes: list[Any] = [
        Text(16, 24, "You: my question", 12, bold=True),
        *_box(16, 108, 118, "what is meant?", "input"),
    ]
    shapes += [Ellipse(75, 74, 44, 44, "input", "input-line"), Text(75, 78, "You", 12, anchor="middle")]
    shapes += [Text(212, 24, "their labels", 12, bold=True), Text(362, 24, "what they tell", 12, bold=True)]
    for place, (name, label, content, fits) in enumerate(people):
        y = 40 + 62.0 * place
        shapes += [Text(206, y + 10, name, 11, "faint"), *_box(206, y + 16, 112, label, "parameter")]
        shapes += [_arrow(136, 120, 202, y + 28, "input-line", fits), Line([(318, y + 28), (356, y + 28)], "line")]
        shapes += [*_box(356, y + 16, 112, content, "output"), _arrow(470, y + 28, 524, 120, "output-line", fits)]
    shapes += [Text(530, 84, "taken home:", 11, "faint")]
    top = 92.0
    for (_, _, _, fits), role in zip(people, ("heat-1", "heat-3", "heat-6")):
        shapes.append(Rect(530, top, 74, 9 * fits, role, "output-line"))
        top += 9 * fits
    shapes += [Text(530, top + 18, "a mixture", 12, bold=True)]
    shapes += [
        Text(
            16, 236, "The better a label fits the question, the thicker the arrow: the longer one listens.", 11, "faint"
        )
    ]
    return Scene(620, 250, shapes, "A question, three labels, three contents")


def encoder_and_decoder() -> Scene:
    """A translator: the encoder reads all of the source, the decoder writes a word at a time."""
    source, fed, said = ["You", "are", "welcome"], ["<s>", "de", "nada"], ["de", "nada", "</s>"]
    shapes: list[Any] = [Text(24, 24, "encoder: reads", 12, bold=True), Text(340, 24, "decoder: writes", 12, bold=True)]
    shapes += [*_row(24, 236, source, 70), *_row(340, 236, fed, 70), *_row(340, 44, said, 70, "output")]
    shapes += [
        Rect(24, 128, 226, 72, "input", "input-line", radius=6),
        Rect(340, 98, 226, 102, "group", "group-line", radius=6),
    ]
    shapes += [Text(137, 158, "self-attention", 12, anchor="middle"), Text(137, 182, "MLP", 12, anchor="middle")]
    for y, text in ((120, "MLP"), (152, "cross-attention"), (184, "self-attention, masked")):
        shapes.append(Text(453, y, text, 12, anchor="middle"))
    shapes += [Text(24, 84, "memory", 12, bold=True), *_row(24, 92, ["", "", ""], 70, "parameter")]
    for i in range(3):
        x = 59 + 78.0 * i
        shapes += [
            _arrow(x, 234, x, 203),
            _arrow(x, 126, x, 118),
            _arrow(x + 316, 234, x + 316, 203),
            _arrow(x + 316, 96, x + 316, 71),
        ]
    shapes += [_arrow(258, 106, 338, 146, "parameter-line", 2.5), Text(258, 92, "looked at", 11, "faint")]
    shapes += [
        Line([(410, 44), (418, 30), (612, 30), (612, 278), (453, 278), (453, 262)], "line", dashed=True, arrow=True)
    ]
    shapes += [Text(340, 296, "what was said is fed in the next turn", 11, "faint")]
    return Scene(630, 310, shapes, "Encoder and decoder")


def text_under_a_hand() -> Scene:
    """A language model's lessons: a hand covers the text from some word on, and the first word below it is to be guessed."""
    words = ["One", "day", "Ana", "met", "a", "dog"]
    shapes: list[Any] = []
    for row in range(4):
        y, shown = 20 + 52.0 * row, row + 1
        shapes += _row(16, y, words[:shown], 60)
        x = 16 + 68.0 * shown
        shapes += [*_box(x, y, 60, "?", "parameter"), *_hand(x + 72, y)]
        shapes += [Text(520, y + 16, f"wanted: {words[shown]}", 12)]
    shapes += [
        Text(16, 238, "Every row is a lesson, and none needs a label: the next word is the answer.", 11, "faint")
    ]
    return Scene(630, 252, shapes, "Text under a hand")


def _hand(x: float, y: float) -> list[Any]:
    """A flat hand that covers what is to the right of x."""
    fingers = [Rect(x + 3 * (i % 2), y - 8 + 10 * i, 52, 10, "heat-3", "accent", radius=5) for i in range(4)]
    palm = Polygon([(x + 42, y - 9), (496, y - 5), (496, y + 29), (x + 42, y + 33)], "heat-3", "accent")
    return [*fingers, palm]


def growing_cache() -> Scene:
    """Writing with a cache: keys and values of old tokens stay, and only the new token is computed."""
    words = ["One", "day", "Ana", "met"]
    shapes: list[Any] = [Text(150, 22, "kept: keys and values", 12, bold=True), Text(16, 22, "computed", 12, bold=True)]
    for row, word in enumerate(words):
        y = 40 + 58.0 * row
        shapes += [*_box(16, y, 60, word, "parameter"), _arrow(78, y + 12, 142, y + 12, "parameter-line", 1.5)]
        for column in range(row + 1):
            role = "parameter" if column == row else "input"
            x = 150 + 72.0 * column
            shapes += [Rect(x, y - 8, 62, 18, role, f"{role}-line"), Rect(x, y + 14, 62, 18, role, f"{role}-line")]
            shapes += [
                Text(x + 31, y + 5, f"k {words[column]}", 10, anchor="middle"),
                Text(x + 31, y + 27, f"v {words[column]}", 10, anchor="middle"),
            ]
        end = 150 + 72.0 * (row + 1)
        following = [*words, "a"][row + 1]
        shapes += [_arrow(end, y + 12, 470, y + 12), *_box(476, y, 60, following, "output")]
    shapes += [
        Text(16, 280, "Each turn adds one column; the blue ones are looked at, and not computed again.", 11, "faint")
    ]
    return Scene(570, 294, shapes, "A cache that grows")
