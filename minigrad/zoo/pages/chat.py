"""The page of a chat model: turns in the form of its template, which is found out by filling it in."""

from __future__ import annotations

import dataclasses
from typing import Any

from ...errors import ArgumentError
from ...tokenizers.chat import chat_text
from ..page import Page
from .content import Content
from .continuation import continuation

__all__ = ["chat"]

TOKENS, TEMPERATURE = 256, 0.7
MARKS = ("Wherever?", "Hereabouts.", "Whatever?", "Nothing.", "Whoever?")  # that no template has
SYSTEM = "Answer."


def chat(loaded: Any, said: Page) -> Content:
    """The programs of a language model, and what its template writes around turns."""
    form = template_form(loaded.tokenizer)
    settings = {"tokens": TOKENS, "temperature": TEMPERATURE, **said.settings, "template": form}
    examples = said.examples if said.kind else ()  # those of a spec that speaks of its page are beginnings of texts
    made = continuation(loaded, dataclasses.replace(said, settings=settings, examples=examples))
    return dataclasses.replace(made, kind="chat", view="chat")


def template_form(tokenizer: Any) -> dict[str, Any]:
    """What stands before the first text, between texts, and before an answer, without a system's text and with one.

    A template that does more than that, as three conversations show, is refused.
    """
    if getattr(tokenizer, "chat_template", None) is None:
        raise ArgumentError("page: this model has no chat template", "a model that was made for conversations")
    first, answer, second, *_ = MARKS
    opening, to_answer, to_text, last = _between(tokenizer, [first, answer, second], None)
    form: dict[str, Any] = {"opening": opening, "toAnswer": to_answer, "toText": to_text, "last": last, "system": None}
    try:
        before, after, *others = _between(tokenizer, [first, answer, second], SYSTEM)
    except ArgumentError:
        before = None  # the template takes no such text
    if before is not None and others == [to_answer, to_text, last]:
        form["system"] = [before, after]
    form["trims"] = [  # whether texts, and answers, lose the spaces around them
        _rendered(tokenizer, [f" {first} "], None) == _rendered(tokenizer, [first], None),
        _rendered(tokenizer, [first, f" {answer} ", second], None)
        == _rendered(tokenizer, [first, answer, second], None),
    ]
    spaced = [*MARKS, *(f" \n{mark} " for mark in MARKS)]
    for texts in (MARKS[:1], MARKS[:3], MARKS, spaced[4:5], spaced[4:7], spaced[:9]):
        for system in (None, SYSTEM) if form["system"] else (None,):
            if written(form, texts, system) != _rendered(tokenizer, texts, system):
                raise ArgumentError(
                    "page: the chat template of this model does more than to write turns one after the other",
                    "the same text before each turn of a kind",
                    fix="minigrad serve RUN, which runs the template itself",
                )
    return form


def written(form: dict[str, Any], texts: Any, system: str | None) -> str:
    """A conversation as the page writes it: texts and answers by turns, a text last."""
    before = form["opening"] if system is None else form["system"][0] + system + form["system"][1]
    joints = [form["toText"] if i % 2 else form["toAnswer"] for i in range(len(texts) - 1)]
    kept = [text.strip() if form["trims"][i % 2] else text for i, text in enumerate(texts)]
    return before + "".join(text + joint for text, joint in zip(kept, [*joints, form["last"]]))


def _rendered(tokenizer: Any, texts: Any, system: str | None) -> str:
    turns = [{"role": "assistant" if i % 2 else "user", "content": text} for i, text in enumerate(texts)]
    return chat_text(tokenizer, [{"role": "system", "content": system}] * (system is not None) + turns)


def _between(tokenizer: Any, texts: list[str], system: str | None) -> list[str]:
    """What a template writes before, between and after some texts."""
    whole, found = _rendered(tokenizer, texts, system), []
    for text in ([] if system is None else [system]) + texts:
        before, mark, whole = whole.partition(text)
        if not mark:
            raise ArgumentError("page: the chat template of this model leaves out what was said", repr(text))
        found.append(before)
    return [*found, whole]
