"""Normalisers: what is done to a text before it is cut into words. Each is a function from text to text."""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Callable
from functools import partial
from typing import Literal

from ..data.errors import DataError
from .byte_level import to_characters
from .characters import NEW_LOWERCASE, SPACES, compiled
from .charsmap import Charsmap
from .fields import Fields, built
from .patterns import MAX_PATTERN, matcher

__all__ = ["NORMALIZERS", "Normalizer", "normalizer"]

Normalizer = Callable[[str], str]
Form = Literal["NFC", "NFD", "NFKC", "NFKD"]

MAX_CHARSMAP = 2**23  # characters of base64

# What a machine translation system takes for nothing, and for a space.
NMT = {
    **dict.fromkeys([*range(1, 9), 0xB, *range(0xE, 0x20), 0x7F, 0x8F, 0x9F]),
    **dict.fromkeys([9, 10, 12, 13, 0x1680, *range(0x200B, 0x2010), 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD], " "),
}
# Characters that BERT writes as words of their own; one block of Chinese is left out, by a slip that all models share.
CHINESE = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b81f\U0002b920-\U0002ceaf"
    "\U0002f800-\U0002fa1f]"
)
LOWERCASE: dict[int, int] = {
    **NEW_LOWERCASE,
    ord("Σ"): ord("σ"),
}  # letter by letter: a sigma at the end of a word is not special


def lowercase(text: str) -> str:
    """Every letter by itself as its small one."""
    return text.lower() if text.isascii() else text.translate(LOWERCASE).lower()


def unicode_form(form: Form, text: str) -> str:
    """A normal form of Unicode, which leaves what is newer than the tables of the original as it is."""
    if text.isascii():
        return text
    parts = compiled("([{UNNORMALIZED}])").split(text)
    return "".join(unicodedata.normalize(form, part) if i % 2 == 0 else part for i, part in enumerate(parts))


def strip_accents(text: str) -> str:
    """Without combining characters."""
    return text if text.isascii() else compiled("[{ACCENT}]+").sub("", text)


def _bert(fields: Fields) -> Normalizer:
    clean, chinese = fields.flag("clean_text", True), fields.flag("handle_chinese_chars", True)
    lower = fields.flag("lowercase", True)
    accents = fields.flag("strip_accents", lower)

    def normalize(text: str) -> str:
        if clean:
            text = compiled("[{SPACE}]").sub(" ", compiled("[{BERT_CONTROL}]+").sub("", text))
        if chinese and not text.isascii():
            text = CHINESE.sub(r" \g<0> ", text)
        if accents and not text.isascii():
            text = compiled("[{BERT_ACCENT}]+").sub("", unicode_form("NFD", text))
        return lowercase(text) if lower else text

    return normalize


def pattern_of(fields: Fields) -> Callable[[str, str], str]:
    """The `pattern` of a part, `{"String": …}` or `{"Regex": …}`, as a function that replaces it in a text."""
    pattern = fields.object("pattern")
    if "String" in pattern.values:
        literal = pattern.text("String")
        return lambda text, content: text.replace(literal, content) if literal else text
    return matcher(pattern.text("Regex", longest=MAX_PATTERN)).replaced


def replace(fields: Fields) -> Normalizer:
    """Every match of `pattern` becomes `content`."""
    replaced, content = pattern_of(fields), fields.text("content")
    return lambda text: replaced(text, content)


def _prepend(fields: Fields) -> Normalizer:
    start = fields.text("prepend")
    return lambda text: start + text if text else text


def _strip(fields: Fields) -> Normalizer:
    left, right = fields.flag("strip_left"), fields.flag("strip_right")

    def normalize(text: str) -> str:
        text = text.lstrip(SPACES) if left else text
        return text.rstrip(SPACES) if right else text

    return normalize


def _precompiled(fields: Fields) -> Normalizer:
    text = fields.text("precompiled_charsmap", "", MAX_CHARSMAP)
    try:
        charsmap = Charsmap(base64.b64decode(text, validate=True))
    except binascii.Error:
        raise DataError(f"tokenizer: {fields.where}.precompiled_charsmap is not base64") from None
    if not fields.flag("longest_match", False):  # ours, for sentencepiece
        return charsmap.by_grapheme
    kept = fields.texts("kept")
    if not kept:
        return charsmap.longest
    literal = re.compile("(" + "|".join(re.escape(token) for token in sorted(kept, key=len, reverse=True)) + ")")

    def normalize(text: str) -> str:
        parts = enumerate(literal.split(text))
        return "".join(part if i % 2 else charsmap.longest(part) for i, part in parts)

    return normalize


def _sequence(fields: Fields) -> Normalizer:
    parts = [normalizer(part) for part in fields.objects("normalizers")]

    def normalize(text: str) -> str:
        for part in parts:
            text = part(text)
        return text

    return normalize


NORMALIZERS: dict[str, Callable[[Fields], Normalizer]] = {
    "NFC": lambda fields: partial(unicode_form, "NFC"),
    "NFD": lambda fields: partial(unicode_form, "NFD"),
    "NFKC": lambda fields: partial(unicode_form, "NFKC"),
    "NFKD": lambda fields: partial(unicode_form, "NFKD"),
    "Lowercase": lambda fields: lowercase,
    "StripAccents": lambda fields: strip_accents,
    "BertNormalizer": _bert,
    "Replace": replace,
    "Prepend": _prepend,
    "Strip": _strip,
    "Nmt": lambda fields: lambda text: text.translate(NMT),
    "Precompiled": _precompiled,
    "ByteLevel": lambda fields: to_characters,
    "Sequence": _sequence,
}


def normalizer(fields: Fields) -> Normalizer:
    """The normaliser that an object of a file describes.

    >>> normalizer(Fields({"type": "NFKC"}, "normalizer"))("ﬁ①")
    'fi1'
    """
    return built(fields, NORMALIZERS)
