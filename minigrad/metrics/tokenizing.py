"""How a text is cut into the words that BLEU counts. Other cuts give other scores, so they are part of the signature."""

from __future__ import annotations

import re
import string
import sys
import unicodedata
from collections.abc import Callable
from functools import lru_cache

__all__ = ["TOKENIZERS", "words_of"]

# Marks that always stand alone. The other four are ambiguous: in "it's", "3.5", "1,000" and "well-known" they do not.
_ALONE = re.compile("([" + re.escape("".join(sorted(set(string.punctuation) - set("'.,-")))) + "])")
_AFTER_NO_DIGIT = re.compile(r"([^0-9])([.,])")
_BEFORE_NO_DIGIT = re.compile(r"([.,])([^0-9])")
_DASH_AFTER_DIGIT = re.compile(r"([0-9])(-)")
# In this order: "&amp;lt;" becomes "<".
_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))


def _wmt(text: str) -> str:
    """As the script mteval-v13a does, by which the translation tasks of WMT are judged."""
    text = text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    text = _ALONE.sub(r" \1 ", f" {text} ")
    text = _AFTER_NO_DIGIT.sub(r"\1 \2 ", text)
    text = _BEFORE_NO_DIGIT.sub(r" \1 \2", text)
    return _DASH_AFTER_DIGIT.sub(r"\1 \2 ", text)


@lru_cache(maxsize=1)
def _international_patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Python's own patterns know no categories of Unicode, so those of all characters are written out."""
    of: dict[str, list[str]] = {"N": [], "P": [], "S": []}
    for character in map(chr, range(sys.maxunicode + 1)):
        of.get(unicodedata.category(character)[0], []).append(character)
    number, mark, symbol = (re.escape("".join(characters)) for characters in of.values())
    return re.compile(f"([^{number}])([{mark}])"), re.compile(f"([{mark}])([^{number}])"), re.compile(f"([{symbol}])")


def _international(text: str) -> str:
    """As the script mteval-v14 does: marks of all scripts stand alone unless in a number, and symbols always."""
    after_no_number, before_no_number, symbol = _international_patterns()
    text = after_no_number.sub(r"\1 \2 ", text)
    text = before_no_number.sub(r" \1 \2", text)
    return symbol.sub(r" \1 ", text)


TOKENIZERS: dict[str, Callable[[str], str]] = {
    "13a": _wmt,
    "intl": _international,
    "char": " ".join,
    "none": lambda text: text,
}


def words_of(text: str, tokenize: str, lowercase: bool) -> list[str]:
    """The words of a text: `words_of("No, 3.5!", "13a", True)` is `["no", ",", "3.5", "!"]`."""
    text = text.lower() if lowercase else text
    return TOKENIZERS[tokenize](text.rstrip()).split()
