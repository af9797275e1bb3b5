"""Pictures of one or two shapes, and what they show in words: (3, 32, 32) and "a small red circle left of a blue square".

A sentence follows from its picture: the shape that is named first is the left one, or, where the two are farther apart
vertically than horizontally, the upper one.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from minigrad.data.images import SUFFIXES, read_image
from minigrad.errors import ArgumentError

SIZE = 32
SIZES = {"small": 4.0, "large": 6.5}  # half the width, in pixels
COLORS = {"red": (0.85, 0.15, 0.15), "green": (0.15, 0.65, 0.2), "blue": (0.15, 0.3, 0.85), "yellow": (0.95, 0.8, 0.1)}
SHAPES = ("circle", "square", "triangle")
RELATIONS = ("left of", "above")
WORDS = ("<pad>", "<s>", "</s>", "a", *SIZES, *COLORS, *SHAPES, "left", "of", "above")
PAD, BOS, EOS = range(3)
LONGEST = 11  # words of a sentence of two shapes, and one at its end
PARTS = ("train", "valid", "test", "unseen")


class Kind(NamedTuple):
    """A shape as a sentence names it."""

    size: str
    color: str
    shape: str

    def __str__(self) -> str:
        return f"a {self.size} {self.color} {self.shape}"


KINDS = tuple(Kind(size, color, shape) for size in SIZES for color in COLORS for shape in SHAPES)
# Kinds that no picture for learning has, though it has each size, colour and shape, and most pairs of them.
HELD_OUT = (
    Kind("small", "red", "square"),
    Kind("large", "blue", "circle"),
    Kind("small", "green", "triangle"),
    Kind("large", "yellow", "square"),
)
SHOWN = tuple(kind for kind in KINDS if kind not in HELD_OUT)


class Scene(NamedTuple):
    """Kinds of shapes and the middles (x, y) of each, in the order in which they are named."""

    kinds: tuple[Kind, ...]
    places: tuple[tuple[float, float], ...]

    @property
    def sentence(self) -> str:
        if len(self.kinds) == 1:
            return str(self.kinds[0])
        (x, y), (other_x, other_y) = self.places
        return f"{self.kinds[0]} {RELATIONS[int(abs(other_y - y) > abs(other_x - x))]} {self.kinds[1]}"


def scene(rng: np.random.Generator, part: str) -> Scene:
    """A scene of one or two shapes; of the part "unseen", one at least is of a kind that is held out."""
    count = 1 + int(rng.random() < 0.8)
    kinds = [SHOWN[rng.integers(len(SHOWN))] for _ in range(count)]
    if part == "unseen":
        kinds[rng.integers(count)] = HELD_OUT[rng.integers(len(HELD_OUT))]
    while True:
        places = [tuple(rng.uniform(SIZES[k.size] + 1, SIZE - SIZES[k.size] - 1, 2)) for k in kinds]
        if count == 1:
            return Scene(tuple(kinds), tuple(places))
        apart = np.abs(np.subtract(*places))
        if apart.max() < sum(SIZES[k.size] for k in kinds) + 1 or abs(apart[0] - apart[1]) < 3:
            continue  # too near, or on a diagonal, where no relation is the clear one
        axis = int(apart[1] > apart[0])
        order = sorted(range(2), key=lambda i: places[i][axis])
        return Scene(tuple(kinds[i] for i in order), tuple(places[i] for i in order))


def paint(drawn: Scene, rng: np.random.Generator) -> np.ndarray:
    """A picture (3, 32, 32) from 0 to 1: light paper, shapes whose sizes and colours vary a little, and noise."""
    picture = np.full((3, SIZE, SIZE), rng.uniform(0.85, 1.0))
    for kind, (x, y) in zip(drawn.kinds, drawn.places):
        color = np.clip(np.array(COLORS[kind.color]) + rng.normal(0, 0.04, 3), 0, 1)[:, None, None]
        cover = _cover(kind.shape, x, y, SIZES[kind.size] * rng.uniform(0.9, 1.1))
        picture = picture * (1 - cover) + color * cover
    return np.clip(picture + rng.normal(0, 0.02, picture.shape), 0, 1).astype("float32")


def _cover(shape: str, x: float, y: float, half: float) -> np.ndarray:
    """How much of each pixel a shape covers, about: (32, 32)."""
    middles = np.arange(SIZE) + 0.5
    right, down = middles - x, (middles - y)[:, None]
    if shape == "circle":
        inside = half - np.hypot(right, down)
    elif shape == "square":
        inside = 0.9 * half - np.maximum(np.abs(right), np.abs(down))
    else:  # half as wide as far down as it goes
        inside = np.minimum((half + down) / 2 - np.abs(right), half - np.abs(down)) * 0.9
    return np.clip(inside + 0.5, 0, 1)


def encoded(sentence: str) -> list[int]:
    """The numbers of the words, with <s> and </s> around them."""
    return [BOS, *(WORDS.index(word) for word in sentence.split()), EOS]


def worded(numbers: np.ndarray) -> str:
    """The words of numbers, up to </s>."""
    listed = numbers.tolist()
    return " ".join(WORDS[n] for n in (listed[: listed.index(EOS)] if EOS in listed else listed))


@lru_cache(maxsize=4)
def pictures(count: int, seed: int, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Pictures (N, 3, 32, 32) and sentences (N, LONGEST + 1) in numbers; no two parts share a random number."""
    rng = np.random.default_rng([seed, PARTS.index(part)])
    shown, sentences = np.empty((count, 3, SIZE, SIZE), "float32"), np.full((count, LONGEST + 1), PAD)
    for i in range(count):
        drawn = scene(rng, part)
        shown[i], numbers = paint(drawn, rng), encoded(drawn.sentence)
        sentences[i, : len(numbers)] = numbers
    for array in (shown, sentences):
        array.flags.writeable = False
    return shown, sentences


def from_words(text: str) -> tuple[np.ndarray, str | None]:
    """From the command line: a number draws a picture and tells its sentence; a file of a picture is read, stretched to 32 x 32."""
    if re.fullmatch(r"[0-9]{1,9}", text.strip()):
        rng = np.random.default_rng([len(PARTS), int(text)])
        drawn = scene(rng, "test")
        return paint(drawn, rng), drawn.sentence
    if not text.lower().endswith(SUFFIXES):
        raise ArgumentError(
            f"caption: {text!r} is no picture", "a file such as picture.png, or a number to have one drawn"
        )
    return read_image(text, (SIZE, SIZE), color=True), None
