"""The lessons: a module for each, with its exercises, their solutions, cases and oracles."""

from __future__ import annotations

import importlib
from types import ModuleType

from ..exercise import SOLVED, Exercise

__all__ = ["TITLES", "exercises", "lesson"]

TITLES = {
    1: "One number at a time",
    2: "Build your own engine",
    3: "Tensors and broadcasting",
    4: "XOR",
    5: "A line and a curve",
    6: "Softmax and cross-entropy",
    7: "Optimisers",
    8: "Words as vectors",
    9: "Positions",
    10: "Attention by hand",
    11: "Inside a block",
    12: "The whole translator",
    13: "Beam search",
    14: "GPT",
    15: "BERT",
    16: "Making it fast",
    17: "Making it small",
    18: "Your own",
    19: "NumPy to CuPy",
    20: "A compiler in an afternoon",
    21: "Open a real model",
    22: "A real translator",
    23: "Networks with a memory",
    24: "Pictures and sound",
    25: "Larger than one machine",
}


def lesson(number: int) -> ModuleType:
    """The module of a lesson."""
    return importlib.import_module(f"{__name__}.lesson_{number:02}")


def exercises(number: int) -> list[Exercise]:
    """The exercises of a lesson, in their order."""
    module = lesson(number)
    own = (value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__)
    return [getattr(value, SOLVED) for value in own if SOLVED in getattr(value, "__dict__", {})]
