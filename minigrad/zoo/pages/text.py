"""The pages of models that read a text: words for blanks, and classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ops.creation import tensor
from ...web.program import Programs, traced
from ..page import Page
from .content import Content, tokenizer_form

__all__ = ["blanks", "classes"]

FRAME = [[1], [2], [2]]  # the special tokens before a text, between two, and at the end
CONTEXT = 128


def blanks(loaded: Any, said: Page) -> Content:
    """A program `read(ids)` that gives logits (1, T, V), and perhaps those of "the second text follows" (1, 2)."""
    labels = {"label": "A text with <mask> in it, or two with | between them", "heading": "Filled in"}
    return _reader(loaded, said, "blanks", said.function or loaded.model.logits, labels)


def classes(loaded: Any, said: Page) -> Content:
    """A program `read(ids)` that gives logits of the classes of a text, (1, classes)."""
    labels = {"label": "Text", "heading": "Answer"}
    return _reader(loaded, said, "classes", said.function or loaded.model, labels)


def _reader(loaded: Any, said: Page, kind: str, function: Callable[..., Any], labels: dict[str, str]) -> Content:
    form = tokenizer_form(loaded)
    context = int(getattr(loaded.model, "context", getattr(loaded.config, "context", CONTEXT)))

    def ids(length: int) -> np.ndarray:
        return np.full((1, length), loaded.tokenizer.vocab_size - 1)

    function(tensor(ids(context)))  # tables of positions grow to the greatest length that may come
    programs = Programs()
    programs.add("read", traced(function, [ids(5)], [ids(min(11, context))], holding=[loaded.model]))
    settings = {
        "frame": FRAME, "output": said.output or "classes", **said.settings, "context": context,
        "answers": list(said.answers),
    }  # fmt: skip
    return Content(kind, "text", programs, settings, {"examples": list(said.examples)}, form, labels)
