"""Hypotheses and their references: `references[i]` belongs to `hypotheses[i]`, and is one text or several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ArgumentError, CallError

__all__ = ["References", "checked"]

# One text for each hypothesis, or several; how many may differ from hypothesis to hypothesis.
References = Sequence[str] | Sequence[Sequence[str]]


def checked(name: str, hypotheses: Any, references: Any) -> tuple[list[str], list[list[str]]]:
    """The hypotheses, and a list of references for each; refused unless there are as many."""
    for what, given in (("hypotheses", hypotheses), ("references", references)):
        if isinstance(given, str) or not hasattr(given, "__iter__"):
            fix = "put it into a list, or call sentence_bleu for a single sentence"
            raise CallError(f"{name}: the {what} are not a list", "a list of texts", type(given).__name__, fix)
    texts, expected = list(hypotheses), [[r] if isinstance(r, str) else list(r) for r in references]
    if not texts or len(texts) != len(expected):
        raise ArgumentError(
            f"{name}: each hypothesis needs its own reference",
            "as many references as hypotheses, at least one",
            f"{len(texts)} hypotheses and {len(expected)} references",
            "give several references of one hypothesis as a list: references[i] belongs to hypotheses[i]",
        )
    for place, (text, those) in enumerate(zip(texts, expected)):
        odd = next((type(t).__name__ for t in (text, *those) if not isinstance(t, str)), None)
        if odd is not None:
            raise CallError(f"{name}: a text is not one, at place {place}", "a str", odd)
        if not those:
            raise ArgumentError(f"{name}: the hypothesis at place {place} has no reference", "one or more")
    return texts, expected
