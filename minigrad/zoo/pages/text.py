"""The pages of models that read a text: words for blanks, classes, tags, answers, and how alike two are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...data import BOS, EOS, MASK, PAD, UNK, WordTokenizer
from ...errors import ArgumentError
from ...ops.creation import tensor
from ...web.program import Programs, traced
from ..page import Page
from .content import Content, tokenizer_form
from .scripts import script_pattern

__all__ = ["alike", "blanks", "classes", "span", "tags"]

OWN = {  # the special tokens before a text, between two, and at the end; the hidden one; and all
    "frame": [[BOS], [EOS], [EOS]], "mask": MASK, "specials": [PAD, BOS, EOS, UNK, MASK],
}  # fmt: skip
WORD = r"<mask>|\[MASK\]|" + WordTokenizer.pattern.pattern  # as people count them
CONTEXT = 128


def blanks(loaded: Any, said: Page) -> Content:
    """A program `read(ids)` that gives logits (1, T, V), and perhaps those of "the second text follows" (1, 2)."""
    labels = {"label": "A text with <mask> in it, or two with | between them", "heading": "Filled in"}
    return _reader(loaded, said, "blanks", said.function or loaded.model.logits, labels)


def classes(loaded: Any, said: Page) -> Content:
    """A program `read(ids)` that gives logits of the classes of a text, (1, classes)."""
    labels = {"label": "Text", "heading": "Answer"}
    return _reader(loaded, said, "classes", said.function or loaded.model, labels)


def tags(loaded: Any, said: Page) -> Content:
    """A program `read(ids)` that gives logits of the tags of each token, (1, T, tags); a token is a word."""
    return _reader(loaded, said, "tags", said.function or loaded.model, {"label": "Text", "heading": "Tagged"})


def span(loaded: Any, said: Page) -> Content:
    """A program `read(ids)` that gives logits of "the answer begins here" and "ends here", (1, T, 2); a token is a word."""
    labels = {"label": "A question and a text, with | between them", "heading": "Answer"}
    return _reader(loaded, said, "span", said.function or loaded.model, labels)


def alike(loaded: Any, said: Page) -> Content:
    """A program `read(ids, others)` that gives a cosine (1,), and perhaps the logit of "they say the same" (1,)."""
    labels = {"label": "Two texts with | between them", "heading": "How alike they are"}
    return _reader(loaded, said, "alike", said.function or loaded.model, labels, texts=2)


def _reader(
    loaded: Any, said: Page, kind: str, function: Callable[..., Any], labels: dict[str, str], texts: int = 1
) -> Content:
    form = tokenizer_form(loaded)
    if kind in ("tags", "span") and form["kind"] not in ("word", "pretrained"):
        raise ArgumentError(f"{loaded.spec.name} has no page", "a tokenizer of words", repr(loaded.tokenizer))
    context = int(getattr(loaded.model, "context", getattr(loaded.config, "context", CONTEXT)))

    def ids(length: int) -> np.ndarray:
        return np.full((1, length), loaded.tokenizer.vocab_size - 1)

    function(*[tensor(ids(context))] * texts)  # tables of positions grow to the greatest length that may come
    small = [ids(5), ids(7)][:texts]
    large = [ids(min(11, context)), ids(min(20, context))][:texts]
    programs = Programs()
    programs.add("read", traced(function, small, large, holding=[loaded.model]))
    settings = {
        **OWN, "word": script_pattern(WORD), "output": said.output or "classes", **said.settings, "context": context,
        "answers": list(said.answers),
    }  # fmt: skip
    return Content(kind, "text", programs, settings, {"examples": list(said.examples)}, form, labels)
