"""The English-Spanish phrasebook that is shipped: everyday pairs written by hand, and the many ways to type each of them."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from importlib.resources import files

__all__ = ["normalise", "phrasebook", "phrasebook_sections", "spellings"]

# Curly and other apostrophes and quotation marks that people type or paste.
_TYPOGRAPHY = str.maketrans({"’": "'", "‘": "'", "`": "'", "´": "'", "…": "...", "\u00a0": " "})
_EXPAND = [
    (r"\b(c)an't\b|\b(c)an not\b", r"\1\2annot"),
    (r"\b(w)on't\b", r"\1ill not"),
    (r"\b(sh)an't\b", r"\1all not"),
    (r"(?<=\w)n't\b", " not"),
    (r"\b(i)'m\b", r"\1 am"),
    (r"\b(let)'s\b", r"\1 us"),
    (r"\b(he|she|it|that|this|what|where|who|how|when|why|there|here|everything|nothing)'s\b", r"\1 is"),
    (r"(?<=\w)'re\b", " are"),
    (r"(?<=\w)'ve\b", " have"),
    (r"(?<=\w)'ll\b", " will"),
    (r"(?<=\w)'d\b", " would"),
]
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


def normalise(text: str) -> str:
    """The one form of an English sentence under which the phrasebook and the grammar know it.

    Unicode NFC, straight apostrophes, lower case, contractions written out ("you're" -> "you are", "can't" -> "cannot"),
    no punctuation but apostrophes and hyphens inside words and points inside numbers, single spaces.

    >>> normalise("You’re  WELCOME!"), normalise("I don't know, sorry...")
    ('you are welcome', 'i do not know sorry')
    """
    text = unicodedata.normalize("NFC", text).translate(_TYPOGRAPHY).lower()
    text = " ".join(text.split())
    if "'" in text or "can not" in text:
        text = _rewrite(text, _EXPAND)
    text = re.sub(r"(?<!\d)[.,:]|[.,:](?!\d)", " ", text)
    text = re.sub(r"[^\w\s'.,:-]|(?<!\w)['-]|['-](?!\w)", " ", text)
    return " ".join(text.split())


def spellings(source: str) -> list[str]:
    """Ways to type one English sentence, itself first: contracted or not, capital or small letters, with or without punctuation.

    >>> spellings("You are welcome.")[:4]
    ['You are welcome.', 'You are welcome', 'You are welcome!', 'you are welcome.']
    """
    full = _rewrite(source, _EXPAND)
    contracted = _rewrite(_rewrite(full, _SHORTEN_VERB), _SHORTEN_NOT)
    contracted_not = _rewrite(_rewrite(full, _SHORTEN_NOT), _SHORTEN_VERB)
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
    `normalise` to the same text have the same target.

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
    text = (files("minigrad.data") / "texts" / "phrasebook.tsv").read_text(encoding="utf-8")
    sections: dict[str, tuple[tuple[str, str], ...]] = {}
    for part in text.split("# ")[1:]:
        heading, *lines = part.splitlines()
        sections[heading] = tuple((source, target) for source, target in (line.split("\t") for line in lines))
    return sections


def _rewrite(text: str, rules: list[tuple[str, str]]) -> str:
    """Apply regular expressions that look at small and capital letters alike and keep those of the groups they repeat."""
    for pattern, replacement in rules:
        text = re.sub(pattern, replacement, text, flags=re.IGNORECASE)
    return text
