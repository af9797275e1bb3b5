"""What all scores have in common: a number with the signature of its settings, and the check of what is compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import __version__
from ..engine.errors import ArgumentError, CallError

__all__ = ["References", "Score", "checked", "chosen", "ngrams", "signature"]

# One text for each hypothesis, or several; how many may differ from hypothesis to hypothesis.
References = Sequence[str] | Sequence[Sequence[str]]


@dataclass(frozen=True)
class Score:
    """A score from 0 to 100, and how it was computed, in the form of sacreBLEU's signatures."""

    name: str
    score: float
    signature: str

    def __str__(self) -> str:
        return f"{self.name}|{self.signature} = {self.score:.2f}"


def signature(references: Sequence[Sequence[str]], **settings: object) -> str:
    """How a score was computed: `nrefs:1|case:mixed|…|version:minigrad 0.1.0`."""
    counts = {len(texts) for texts in references}
    fields = {"nrefs": counts.pop() if len(counts) == 1 else "var", **settings, "version": f"minigrad {__version__}"}
    return "|".join(f"{name}:{value}" for name, value in fields.items())


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


def chosen(name: str, what: str, value: str, known: Sequence[str]) -> str:
    """One of the known ways."""
    if value not in known:
        raise ArgumentError(f"{name}: there is no such {what}", ", ".join(map(repr, known)), repr(value))
    return value


def ngrams(parts: Sequence[Any], n: int) -> Counter[Any]:
    """How often each run of `n` parts is there: of the words of a list, or of the characters of a text."""
    hashable = parts if isinstance(parts, str) else tuple(parts)
    return Counter(hashable[i : i + n] for i in range(len(hashable) - n + 1))
