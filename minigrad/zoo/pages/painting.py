"""The page of a model that paints what a sentence says: from noise to a picture, stroke by stroke."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...web.program import Programs, traced
from ..page import Page
from .content import Content

__all__ = ["painting"]

NEEDED = ("words", "first", "frame", "pad", "longest", "strokes", "noise")


def painting(loaded: Any, said: Page) -> Content:
    """A program `stroke(picture, time, share, words)` that gives the next picture, (1, 3, H, W), from 2 for black to 0 for white.

    The spec gives it as `function`; `settings` have the `words` by number, the `frame` of numbers before and after them, `pad`,
    `longest` (numbers of a sentence), how many `strokes`, and `noise`, the pictures to begin with, (n, 3, H, W).
    """
    lacking = [name for name in NEEDED if name not in said.settings]
    if said.function is None or lacking:
        raise ArgumentError(
            f"{loaded.spec.name} has no page", "a function of a stroke, and its settings", ", ".join(lacking)
        )
    settings, programs = dict(said.settings), Programs()
    noise = np.asarray(settings.pop("noise"), "float32")
    one = np.array([0.5], "float32")
    words = np.full((1, settings["longest"]), settings["pad"])
    programs.add("stroke", traced(said.function, [noise[:1], one, one, words], holding=[loaded.model]))
    settings["noise"] = programs.tensor(noise)
    shown = {"examples": list(said.examples), "size": list(noise.shape[2:]), "seeds": len(noise)}
    return Content("painting", "painting", programs, settings, shown)
