"""What a page holds besides its scripts: programs, a tokenizer, settings for the worker, and what is shown."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from ...data import BPETokenizer, CharTokenizer, WordTokenizer
from ...errors import ArgumentError
from ...web.program import Programs

__all__ = ["Content", "script_pattern", "tokenizer_form"]

LETTER = r"[\p{L}\p{N}_]"  # what \w is in Python


@dataclasses.dataclass(frozen=True)
class Content:
    """`kind` names the task of the worker, and `view` the part of the page that shows its answers."""

    kind: str
    view: str
    programs: Programs
    settings: Mapping[str, Any]
    shown: Mapping[str, Any]
    tokenizer: Mapping[str, Any] | None = None
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)  # that the HTML of the view has places for


def script_pattern(pattern: str) -> str:
    """A regular expression of Python as one of JavaScript with the flag u, which knows letters of all scripts.

    >>> script_pattern("[\\\\U0001f000-\\\\U0001faff]")
    '[\\\\u{1f000}-\\\\u{1faff}]'
    """
    pattern = re.sub(r"\\U([0-9a-f]{8})", lambda found: f"\\u{{{int(found[1], 16):x}}}", pattern)
    pattern = pattern.replace(r"\b", rf"(?:(?<={LETTER})(?!{LETTER})|(?<!{LETTER})(?={LETTER}))")
    return pattern.replace(r"\w", LETTER)


def tokenizer_form(loaded: Any) -> dict[str, Any]:
    """The tokenizer of a loaded model as the page reads it; one that a page has no code for is refused by name."""
    tokenizer = loaded.tokenizer
    if type(tokenizer) not in (BPETokenizer, CharTokenizer, WordTokenizer):
        raise ArgumentError(
            f"page: {loaded.spec.name} has a tokenizer that a page cannot run",
            "characters, words or byte pairs of minigrad.data",
            repr(tokenizer),
            "share a folder: minigrad export RUN FOLDER",
        )
    form = {"kind": tokenizer.kind, **tokenizer._content()}
    if isinstance(tokenizer, (BPETokenizer, WordTokenizer)):
        form["pattern"] = script_pattern(tokenizer.pattern.pattern)
    return form
