"""The English-Spanish phrasebook that is shipped: everyday pairs written by hand, and the many ways to type each of them."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from minigrad.data.normalisation import CONTRACTIONS, rewrite

__all__ = ["phrasebook", "phrasebook_sections", "spellings"]

# Nobody shortens the last verb of a sentence ("yes, I am"), nor the one before a last pronoun ("where is it?").
_BEFORE_MORE = r"(?= \w)(?! (?:it|he|she)\W*$)"
_SHORTEN_VERB = [
    (rf"\b(I) am\b{_BEFORE_MORE}", r"\1'm"),
    (rf"\b(you|we|they) are\b{_BEFORE_MORE}", r"\1're"),
    (rf"\b(he|she|it|that|what|where|who|how|there|here) is\b{_BEFORE_MORE}", r"\1's"),
    (rf"\b(I|you|he|she|it|we|they) will\b{_BEFORE_MORE}", r"\1'll"),
    (rf"\b(I|you|he|she|we|they) would\b{_BEFORE_MORE}", r"\1'd"),
]
_SHORTEN_NOT = [
    (r"\b(do|does|did|is|are|was|were|would|could|should) not\b", r"\1n't"),
    (r"\b(ca)nnot\b", r"\1n't"),
    (r"\b(w)ill not\b", r"\1on't"),
]


def spellings(source: str) -> list[str]:
    """Ways to type one English sentence, itself first: contracted or not, capital or small letters, with or without punctuation.

    >>> spellings("You are welcome.")[:4]
    ['You are welcome.', 'You are welcome', 'You are welcome!', 'you are welcome.']
    """
    full = rewrite(source, CONTRACTIONS)
    contracted = rewrite(rewrite(full, _SHORTEN_VERB), _SHORTEN_NOT)
    contracted_not = rewrite(rewrite(full, _SHORTEN_NOT), _SHORTEN_VERB)
    found: dict[str, None] = {}
    for text in (source, full, contracted, contracted_not):
        words, mark = text.rstrip(".!?"), text[len(text.rstrip(".!?")) :]
        other = "?" if mark == "?" else "!" if mark == "." else "."
        for written in (text, words, words + other):
            found.setdefault(written)
        for written in (text, words, words + other):
            found.setdefault(written.lower())
    return list(found)


def phrasebook(*, variants: bool = False) -> list[tuple[str, str]]:
    """The pairs (English, Spanish), in the order of the book; with `variants`, one pair for each of the `spellings` of a source.

    A target is what is said, in small letters but for names, with ¿? and ¡! and without a full stop. All sources that
    `minigrad.data.normalise` to the same text have the same target.

    >>> dict(phrasebook())["You are welcome."]
    'de nada'
    >>> dict(phrasebook(variants=True))["you're welcome!"]
    'de nada'
    """
    pairs = [pair for section in _book().values() for pair in section]
    if not variants:
        return pairs
    return [(written, target) for source, target in pairs for written in spellings(source)]


def phrasebook_sections() -> dict[str, list[tuple[str, str]]]:
    """The pairs under the headings of the book, such as "greetings", "food and drink" or "travel"."""
    return {name: list(pairs) for name, pairs in _book().items()}


@cache
def _book() -> dict[str, tuple[tuple[str, str], ...]]:
    text = (files(__package__) / "texts" / "phrasebook.tsv").read_text(encoding="utf-8")
    sections: dict[str, tuple[tuple[str, str], ...]] = {}
    for part in text.split("# ")[1:]:
        heading, *lines = part.splitlines()
        sections[heading] = tuple((source, target) for source, target in (line.split("\t") for line in lines))
    return sections
