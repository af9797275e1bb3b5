"""Digits drawn with a pen: images (N, 1, 16, 16) from strokes, each moved, stretched, slanted, bent and blurred at random."""

from __future__ import annotations

import os
import re
from functools import lru_cache

import numpy as np

from minigrad.data.images import SUFFIXES, read_image, resized
from minigrad.errors import ArgumentError

SIZE = 16
MARGIN = 2.5  # between a drawing that was read from a file and the edge, as much as a usual image has
SHADES = {".": 0.0, " ": 0.0, "+": 0.5, "#": 1.0}


def arc(x: float, y: float, width: float, height: float, start: float, end: float) -> list[tuple[float, float]]:
    """Points along an ellipse around (x, y), from one angle to another; 0 is to the right and 90 below."""
    angles = np.radians(np.linspace(start, end, 9))
    return [(x + width * np.cos(a), y + height * np.sin(a)) for a in angles]


# Each digit as lines of the pen through points in a box of width and height 1, y downwards.
STROKES: dict[int, list[list[tuple[float, float]]]] = {
    0: [arc(0.5, 0.5, 0.45, 0.5, 0, 180), arc(0.5, 0.5, 0.45, 0.5, 180, 360)],
    1: [[(0.25, 0.25), (0.55, 0), (0.55, 1)]],
    2: [[*arc(0.5, 0.28, 0.42, 0.28, 190, 390), (0.08, 1), (0.95, 1)]],
    3: [arc(0.45, 0.25, 0.42, 0.25, 210, 450), arc(0.45, 0.74, 0.48, 0.26, 270, 510)],
    4: [[(0.65, 1), (0.65, 0), (0.05, 0.65), (0.95, 0.65)]],
    5: [[(0.9, 0), (0.2, 0), (0.14, 0.45), *arc(0.45, 0.68, 0.45, 0.32, 235, 510)]],
    6: [[(0.75, 0), *arc(0.62, 0.62, 0.54, 0.45, 235, 150)], arc(0.5, 0.7, 0.42, 0.3, 0, 360)],
    7: [[(0.05, 0), (0.95, 0), (0.35, 1)]],
    8: [arc(0.5, 0.25, 0.36, 0.25, 0, 360), arc(0.5, 0.75, 0.45, 0.25, 0, 360)],
    9: [arc(0.5, 0.3, 0.42, 0.3, 0, 360), [(0.92, 0.3), (0.85, 0.65), (0.6, 1)]],
}


@lru_cache(maxsize=1)
def segments() -> np.ndarray:
    """(10, S, 2, 2): digit, segment, its two ends, x and y around (0, 0); short digits repeat their last segment."""
    lists = [[pair for line in STROKES[digit] for pair in zip(line, line[1:])] for digit in range(10)]
    longest = max(map(len, lists))
    return np.array([pairs + pairs[-1:] * (longest - len(pairs)) for pairs in lists]) - 0.5


def draw(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One image of each digit of `labels` (N,) -> (N, 1, 16, 16) float32: paper about 0, ink about 1, and noise."""
    parts = [_drawn(labels[start : start + 256], rng) for start in range(0, len(labels), 256)]
    return np.concatenate(parts)[:, None].astype("float32")


def _drawn(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    count = len(labels)

    def uniform(low: float, high: float) -> np.ndarray:
        return rng.uniform(low, high, (count, 1, 1))

    x, y = np.moveaxis(segments()[labels], -1, 0)  # each (N, S, 2)
    x = x + uniform(-0.08, 0.08) * np.sin(uniform(2, 6) * y + uniform(0, 2 * np.pi))
    y = y + uniform(-0.06, 0.06) * np.sin(uniform(2, 6) * x + uniform(0, 2 * np.pi))
    x, y = x * uniform(5, 10), y * uniform(8, 12.5)
    x = x - uniform(-0.1, 0.35) * y
    turn = uniform(-0.2, 0.2)
    x, y = np.cos(turn) * x - np.sin(turn) * y, np.sin(turn) * x + np.cos(turn) * y
    x, y = x + SIZE / 2 + uniform(-1.5, 1.5), y + SIZE / 2 + uniform(-1.5, 1.5)
    ink = uniform(0.7, 1.0) * np.clip(uniform(1.0, 1.8) - _distances(x, y), 0, 1)  # (N, 16, 16)
    return ink + uniform(0.02, 0.2) * rng.standard_normal(ink.shape)


def _distances(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """How far the middle of each pixel is from the nearest segment: twice (N, S, 2) -> (N, 16, 16)."""
    middles = (np.arange(SIZE) + 0.5).astype("float32")
    x, y = (part.astype("float32")[..., None, None] for part in (x, y))  # (N, S, 2, 1, 1)
    dx, dy = x[:, :, 1] - x[:, :, 0], y[:, :, 1] - y[:, :, 0]
    px, py = middles - x[:, :, 0], middles[:, None] - y[:, :, 0]  # (N, S, 1, 16) and (N, S, 16, 1)
    along = np.clip((px * dx + py * dy) / np.maximum(dx * dx + dy * dy, 1e-12), 0, 1)  # (N, S, 16, 16)
    return np.sqrt(((px - along * dx) ** 2 + (py - along * dy) ** 2).min(axis=1))


@lru_cache(maxsize=6)
def images(count: int, seed: int, part: str) -> tuple[np.ndarray, np.ndarray]:
    """So many images and their digits, of the part "train", "valid" or "test": no two parts share a random number."""
    rng = np.random.default_rng([seed, ("train", "valid", "test").index(part)])
    labels = rng.permutation(np.arange(count) % 10)
    drawn = draw(labels, rng)
    for array in (drawn, labels):
        array.flags.writeable = False
    return drawn, labels


def from_words(text: str, size: int = SIZE) -> np.ndarray:
    """(1, size, size) from the command line: "3" or "3:17" draws a new 3 (the 17th), a picture is read, any other file has a drawing."""
    if found := re.fullmatch(r"([0-9])(?::([0-9]{1,9}))?", text.strip()):
        digit, number = int(found[1]), int(found[2] or 0)
        return resized(draw(np.array([digit]), np.random.default_rng([3, digit, number])), (size, size))[0]
    if text.lower().endswith(SUFFIXES):
        return as_ink(read_image(text, (size, size))[None])[0]
    return resized(read_drawing(text)[None], (size, size))[0]


def as_ink(pictures: np.ndarray) -> np.ndarray:
    """Ink is 1 and paper 0: a picture (N, 1, H, W) whose edge is light is turned around."""
    edge = np.concatenate([pictures[:, :, [0, -1]].mean((1, 2)), pictures[:, :, :, [0, -1]].mean((1, 3))], axis=1).mean(
        1
    )
    return np.where(edge[:, None, None, None] > 0.5, 1 - pictures, pictures).astype("float32")


def read_drawing(path: str) -> np.ndarray:
    """A text drawing of any size, paper "." or " " and ink "#" (or "+", half of it), fitted into (1, 16, 16)."""
    fix = 'draw a digit with "#" on ".", or give a digit such as 3 to have one drawn'
    if not os.path.isfile(path):
        raise ArgumentError(f"there is no drawing {path!r}", "a text file, or a digit", repr(path), fix)
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = [line.rstrip() for line in file.read(100_000).splitlines()]
    for number, line in enumerate(lines, 1):
        for mark in line:
            if mark not in SHADES:
                raise ArgumentError(
                    f"{path!r}, line {number}: this is not part of a drawing", '".", "#" or "+"', repr(mark), fix
                )
    width = max(map(len, lines), default=0)
    page = np.array([[SHADES[mark] for mark in line.ljust(width)] for line in lines])
    if not page.any():
        raise ArgumentError(f"the drawing {path!r} is empty", 'some "#"', "no ink", fix)
    rows, columns = np.flatnonzero(page.any(axis=1)), np.flatnonzero(page.any(axis=0))
    return _fitted(page[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1])[None]


def _fitted(ink: np.ndarray) -> np.ndarray:
    """Any (H, W), stretched alike both ways, in the middle of (16, 16)."""
    scale = (SIZE - 2 * MARGIN) / max(ink.shape)
    across, down = (_overlaps(length, scale) for length in (ink.shape[1], ink.shape[0]))
    return (down @ ink @ across.T).astype("float32")  # (16, H) @ (H, W) @ (W, 16)


def _overlaps(length: int, scale: float) -> np.ndarray:
    """How much of each of 16 pixels is covered by each of `length` marks that are `scale` wide, around the middle."""
    edges = SIZE / 2 + scale * (np.arange(length + 1) - length / 2)
    pixels = np.arange(SIZE)[:, None]
    return np.clip(np.minimum(edges[1:], pixels + 1) - np.maximum(edges[:-1], pixels), 0, None)


def as_text(image: np.ndarray) -> str:
    """An image (1, 16, 16) as a drawing that `read_drawing` reads."""
    return "\n".join("".join(".+#"[int(ink > 0.3) + int(ink > 0.6)] for ink in row) for row in image[0])
