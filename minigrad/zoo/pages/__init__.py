"""A trained model as one page that works anywhere: `export_page(loaded, "page.html")`.

The page holds the weights, the traced programs of the model, its tokenizer, and the runtime of minigrad.web that executes
them in a worker. It asks for nothing from a network.
"""

from __future__ import annotations

import copy
import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...errors import ArgumentError
from ...nn import quantized
from ...nn.summary import memory
from ...nn.weights.lora import lora_state_dict, merge_lora
from ...saving import write_atomically
from ..page import Page
from ..registry import blamed
from .content import Content
from .continuation import continuation
from .html import html_of
from .plain import numbers, words
from .text import alike, blanks, classes, span, tags
from .translation import translation

__all__ = ["KINDS", "LARGEST", "WEIGHTS", "content_of", "export_page", "with_weights"]

Builder = Callable[[Any, Page], Content]
KINDS: dict[str, Builder] = {
    "translation": translation, "continuation": continuation, "blanks": blanks, "classes": classes, "tags": tags,
    "span": span, "alike": alike, "words": words, "numbers": numbers,
}  # fmt: skip
BY_TASK = {"translation": "translation", "language model": "continuation", "masked language model": "blanks"}
WEIGHTS = ("int8", "float32")
SMALL = 2**20  # bytes of floats: where there are more, weights are kept in 8 bits unless told otherwise
LARGEST = 15_000_000  # bytes of a page


def with_weights(loaded: Any, weights: str | None = None) -> tuple[Any, str]:
    """The loaded model as a page has it: adapters merged, and matrices in 8 bits if `weights` is "int8". Also what was chosen.

    Unless told, a model of more than a megabyte is kept in 8 bits.
    """
    if weights not in (None, *WEIGHTS):
        raise ArgumentError(f"page: weights cannot be kept as {weights!r}", " or ".join(WEIGHTS))
    model = loaded.model
    if lora_state_dict(model):
        model = merge_lora(copy.deepcopy(model))
    chosen = weights or ("int8" if memory(model) > SMALL else "float32")
    if chosen == "int8":
        try:
            model = quantized(model, 8, embeddings=True)
        except ArgumentError:
            if weights is not None:
                raise
            chosen = "float32"  # there is no layer that could be packed
    return dataclasses.replace(loaded, model=model), chosen


def content_of(loaded: Any) -> Content:
    """What the page of a model holds: as its spec says, or as its task or the call in its loss suggests."""
    with blamed(loaded.spec, "describing its page"):
        said = loaded.spec.page(loaded) if loaded.spec.page is not None else Page()
    kind = said.kind or BY_TASK.get(loaded.spec.task, "numbers")
    if kind not in KINDS:
        raise ArgumentError(f"{loaded.spec.name}: there is no page of the kind {kind!r}", ", ".join(KINDS))
    return KINDS[kind](loaded, said)


def export_page(loaded: Any, path: str | os.PathLike[str], weights: str | None = None) -> Path:
    """Write the page of a loaded model; one of more than 15 MB is refused, with what else could be done."""
    small, chosen = with_weights(loaded, weights)
    text = html_of(small, content_of(small), chosen).encode()
    if len(text) > LARGEST:
        smaller = "--weights int8, or " if chosen == "float32" else ""
        raise ArgumentError(
            f"page: {loaded.spec.name} is too large for a page",
            f"at most {LARGEST / 1e6:.0f} MB",
            f"{len(text) / 1e6:.1f} MB with weights of {chosen}",
            f"{smaller}a folder that minigrad opens: minigrad export RUN FOLDER",
        )
    target = Path(path)
    target.absolute().parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, text)
    return target
