"""What the pages compute: functions of minigrad, which are traced, and the data that comes with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import minigrad as mg
from minigrad.nn import functional as F

from ...data import BPETokenizer, CharTokenizer, WordTokenizer
from ...web.program import Programs, traced
from ...zoo.pages.scripts import script_pattern
from ..lessons import TITLES
from ..sheet import sheet

__all__ = ["HOLLOWS", "PLAYS", "Play", "SIDE"]

SIDE = 41  # points along each side of a surface
PIECES = 500  # that the tokenizer of byte pairs has learned


@dataclass(frozen=True)
class Play:
    """A page: its texts, its script, the programs that this calls, and data."""

    title: str
    lead: str
    script: str
    programs: Callable[[], Programs]
    data: Callable[[], dict[str, Any]] = dict
    parts: Sequence[str] = ()  # further scripts of the runtime


def _says(x: Any, W: Any, b: Any, v: Any, c: Any) -> Any:
    """A network of two hidden units for points x: (N, 2) -> (N,)."""
    return mg.sigmoid((mg.sigmoid(x @ W + b) * v).sum(axis=-1) + c)


def _xor() -> Programs:
    corners, wanted = mg.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), mg.tensor([0.0, 1.0, 1.0, 0.0])
    side = np.linspace(-0.25, 1.25, SIDE, dtype="float32")
    points = mg.tensor(np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2))

    def step(*weights: Any) -> Any:
        def loss(*weights: Any) -> Any:
            return ((_says(corners, *weights) - wanted) ** 2).mean()

        value, gradients = mg.value_and_grad(loss, argnums=(0, 1, 2, 3))(*weights)
        return (_says(corners, *weights), value, *gradients)

    shapes = [np.ones(shape, "float32") for shape in ((2, 2), (2,), (2,), ())]
    programs = Programs()
    programs.add("surface", traced(lambda *weights: _says(points, *weights), shapes))
    programs.add("step", traced(step, shapes))
    return programs


# By name: the loss, where x and y lie, and the point that the race begins at.
HOLLOWS: dict[str, tuple[Callable[[Any, Any], Any], float, tuple[float, float]]] = {
    "a narrow valley": (lambda x, y: (x**2 + 25 * y**2) / 2, 2.0, (-1.7, 0.9)),
    "a banana": (lambda x, y: ((1 - x) ** 2 + 10 * (y - x**2) ** 2) / 4, 2.0, (-1.4, -0.4)),
    "two hollows": (lambda x, y: (x**2 - 1) ** 2 + y**2 + 0.3 * x, 2.0, (1.6, 1.4)),
    "a saddle": (lambda x, y: (x**2 - y**2) / 2 + y**4 / 8, 2.0, (-1.5, 0.02)),
}


def _race() -> Programs:
    programs = Programs()
    one = np.ones(1, "float32")
    for name, (surface, half, _) in HOLLOWS.items():
        programs.add(name, traced(_slopes(surface), [one, one]))
        side = np.linspace(-half, half, SIDE, dtype="float32")
        x, y = np.meshgrid(side, side)
        programs.add(f"{name}: heights", traced(surface, [x.reshape(-1), y.reshape(-1)]))
    return programs


def _slopes(surface: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A loss and its slopes along both of its arguments."""

    def slopes(x: Any, y: Any) -> Any:
        value, gradients = mg.value_and_grad(lambda a, b: surface(a, b).sum(), argnums=(0, 1))(x, y)
        return (value, *gradients)

    return slopes


def _attention() -> Programs:
    def attend(q: Any, k: Any, v: Any) -> Any:
        scores = q @ k.T / q.shape[1] ** 0.5
        weights = F.softmax(scores, axis=-1)
        return scores, weights, weights @ v

    programs = Programs()
    programs.add("attend", traced(attend, [np.ones((3, 2), "float32")] * 3))
    return programs


def _tokenizers() -> dict[str, Any]:
    """Three tokenizers, which have learned from the exercises of the course."""
    text = "\n".join(sheet(number) for number in TITLES)
    forms = {}
    made = {
        "byte pairs": BPETokenizer.train([text], PIECES),
        "words": WordTokenizer.train([text]),
        "characters": CharTokenizer.train([text]),
    }
    for name, tokenizer in made.items():
        forms[name] = {"kind": tokenizer.kind, **tokenizer._content()}
        if isinstance(tokenizer, (BPETokenizer, WordTokenizer)):
            forms[name]["pattern"] = script_pattern(tokenizer.pattern.pattern)
    return {"tokenizers": forms}


def _cost() -> Programs:
    programs = Programs()
    one = np.ones((), "float32")
    programs.add("cost", traced(lambda n, d: (12 * n * d**2, 2 * n**2 * d), [one, one]))
    return programs


PLAYS = {
    "xor": Play(
        "The weights of XOR", "Drag nine weights until the four corners are right, or let the slope do it.", "xor", _xor, lambda: {"side": SIDE}
    ),
    "race": Play(
        "A race of optimisers",
        "Four optimisers go down the same loss. Tap the surface to choose where they begin.",
        "race",
        _race,
        lambda: {"side": SIDE, "hollows": {name: {"half": half, "start": list(start)} for name, (_, half, start) in HOLLOWS.items()}},
    ),
    "attention": Play(
        "Attention between three words", "Drag the tips of questions, labels and contents, and see who listens to whom.", "attention", _attention
    ),
    "tokenizer": Play(
        "What a word is to a machine",
        "Type, and see the pieces that three tokenizers make of it.",
        "tokenizer",
        Programs,
        _tokenizers,
        ("text", "tokenizers"),
    ),
    "square": Play(
        "The n² of attention", "Every word looks at every word: what twice the length costs.", "square", _cost
    ),
}  # fmt: skip
