"""One form of an English sentence, however it is typed: for lookups, and for splits that share no sentence."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

__all__ = ["CONTRACTIONS", "normalise", "rewrite"]

# Curly and other apostrophes and quotation marks that people type or paste.
_TYPOGRAPHY = str.maketrans({"’": "'", "‘": "'", "`": "'", "´": "'", "…": "...", "\u00a0": " "})
# Contractions as regular expressions, and the words they stand for.
CONTRACTIONS = (
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
)


def normalise(text: str) -> str:
    """The one form of an English sentence, however it is typed.

    Unicode NFC, straight apostrophes, lower case, contractions written out ("you're" -> "you are", "can't" -> "cannot"),
    no punctuation but apostrophes and hyphens inside words and points inside numbers, single spaces.

    >>> normalise("You’re  WELCOME!"), normalise("I don't know, sorry...")
    ('you are welcome', 'i do not know sorry')
    """
    text = unicodedata.normalize("NFC", text).translate(_TYPOGRAPHY).lower()
    text = " ".join(text.split())
    if "'" in text or "can not" in text:
        text = rewrite(text, CONTRACTIONS)
    text = re.sub(r"(?<!\d)[.,:]|[.,:](?!\d)", " ", text)
    text = re.sub(r"[^\w\s'.,:-]|(?<!\w)['-]|['-](?!\w)", " ", text)
    return " ".join(text.split())


def rewrite(text: str, rules: Iterable[tuple[str, str]]) -> str:
    """Apply (pattern, replacement) rules in order, ignoring case; a group that a rule repeats keeps its case."""
    for pattern, replacement in rules:
        text = re.sub(pattern, replacement, text, flags=re.IGNORECASE)
    return text
