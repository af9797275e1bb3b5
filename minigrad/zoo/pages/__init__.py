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
from ..export import check_new, new_folder
from ..page import Page
from ..registry import blamed
from .chat import chat
from .content import Content
from .continuation import continuation
from .described import described
from .html import html_of, weight_scripts
from .painting import painting
from .plain import numbers, words
from .text import alike, blanks, classes, span, tags
from .translation import translation

__all__ = ["KINDS", "LARGEST", "WEIGHTS", "content_of", "export_page", "export_page_folder", "with_weights"]

Builder = Callable[[Any, Page], Content]
KINDS: dict[str, Builder] = {
    "translation": translation, "continuation": continuation, "blanks": blanks, "classes": classes, "tags": tags,
    "chat": chat, "span": span, "alike": alike, "words": words, "numbers": numbers,
    "painting": painting, "described": described,
}  # fmt: skip
BY_TASK = {"translation": "translation", "language model": "continuation", "masked language model": "blanks"}
WEIGHTS = ("int8", "float32")
SMALL = 2**20  # bytes of floats: where there are more, weights are kept in 8 bits unless told otherwise
LARGEST = 15_000_000  # bytes of a page
LARGEST_FOLDER = 1_000_000_000  # bytes of weights beside a page


def with_weights(loaded: Any, weights: str | None = None) -> tuple[Any, str]:
    """The loaded model as a page has it: adapters merged, and matrices in 8 bits if `weights` is "int8". Also what was chosen.

    Unless told, a model of more than a megabyte is kept in 8 bits; one that came in as few is "packed", and stays so.
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
            chosen = (
                "packed" if any(True for _ in model.named_packed()) else "float32"
            )  # no layer could be made smaller
    return dataclasses.replace(loaded, model=model), chosen


def content_of(loaded: Any) -> Content:
    """What the page of a model holds: as its spec says, or as its task or the call in its loss suggests."""
    with blamed(loaded.spec, "describing its page"):
        said = loaded.spec.page(loaded) if loaded.spec.page is not None else Page()
    talks = loaded.spec.task == "language model" and getattr(loaded.tokenizer, "chat_template", None)
    kind = said.kind or ("chat" if talks else BY_TASK.get(loaded.spec.task, "numbers"))
    if kind not in KINDS:
        raise ArgumentError(f"{loaded.spec.name}: there is no page of the kind {kind!r}", ", ".join(KINDS))
    return KINDS[kind](loaded, said)


def export_page(loaded: Any, path: str | os.PathLike[str], weights: str | None = None) -> Path:
    """Write the page of a loaded model; one of more than 15 MB is refused, with what else could be done."""
    small, chosen = with_weights(loaded, weights)
    content = content_of(small)
    size = _size_of(content)
    text = html_of(small, content, chosen).encode() if size <= LARGEST else b""
    if max(len(text), size) > LARGEST:
        smaller = "--weights int8, or " if chosen == "float32" else ""
        raise ArgumentError(
            f"page: {loaded.spec.name} is too large for a page",
            f"at most {LARGEST / 1e6:.0f} MB",
            f"{max(len(text), size) / 1e6:.1f} MB with {_kept(chosen)}",
            f"{smaller}a folder with the page and its weights beside it: minigrad export RUN FOLDER --to page",
        )
    target = Path(path)
    target.absolute().parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, text)
    return target


def export_page_folder(loaded: Any, folder: str | os.PathLike[str], weights: str | None = None) -> Path:
    """Write a new folder with the page of a loaded model, page.html, and its weights in scripts beside it."""
    check_new(folder)
    small, chosen = with_weights(loaded, weights)
    content = content_of(small)
    if (size := len(content.programs.content)) > LARGEST_FOLDER:
        raise ArgumentError(
            f"page: {loaded.spec.name} is too large for a browser",
            f"at most {LARGEST_FOLDER / 1e6:.0f} MB",
            f"{size / 1e6:.0f} MB with {_kept(chosen)}",
            "a page whose model stays where it is: minigrad serve RUN",
        )
    scripts = weight_scripts(content)

    def write(made: Path) -> None:
        for number, script in enumerate(scripts, 1):
            write_atomically(made / f"weights-{number}.js", script.encode())
        write_atomically(made / "page.html", html_of(small, content, chosen, len(scripts)).encode())

    return new_folder(folder, write)


def _size_of(content: Content) -> int:
    """About how many bytes the weights of a page take there."""
    return 4 * len(content.programs.content) // 3


def _kept(weights: str) -> str:
    return "weights that are packed already" if weights == "packed" else f"weights of {weights}"
