"""What a page holds besides its scripts: programs, a tokenizer, settings for the worker, and what is shown."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ...data import BPETokenizer, CharTokenizer, WordTokenizer
from ...errors import ArgumentError
from ...tokenizers import PretrainedTokenizer
from ...web.program import Programs
from .pretrained import Unknown, pretrained_form
from .scripts import script_pattern

__all__ = ["Content", "tokenizer_form"]


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


def tokenizer_form(loaded: Any) -> dict[str, Any]:
    """The tokenizer of a loaded model as the page reads it; one that a page has no code for is refused by name."""
    tokenizer = loaded.tokenizer
    if isinstance(tokenizer, PretrainedTokenizer):
        try:
            return pretrained_form(tokenizer)
        except Unknown as part:
            raise ArgumentError(
                f"page: the tokenizer of {loaded.spec.name} has a part that a page cannot run: {part}",
                "parts of known models",
                fix="share a folder: minigrad export RUN FOLDER",
            ) from None
    if type(tokenizer) not in (BPETokenizer, CharTokenizer, WordTokenizer):
        raise ArgumentError(
            f"page: {loaded.spec.name} has a tokenizer that a page cannot run",
            "characters, words or byte pairs of minigrad.data, or the tokenizer of a pretrained model",
            repr(tokenizer),
            "share a folder: minigrad export RUN FOLDER",
        )
    form = {"kind": tokenizer.kind, **tokenizer._content()}
    if isinstance(tokenizer, (BPETokenizer, WordTokenizer)):
        form["pattern"] = script_pattern(tokenizer.pattern.pattern)
    return form
