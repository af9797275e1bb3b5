"""Classes of characters for regular expressions, the same in every version of Python."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator

from .unicode_ranges import RANGES

__all__ = ["NEW_LOWERCASE", "SPACES", "Pattern", "char_class", "compiled", "in_class", "pairs"]

SPACES = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"

# Classes that are made of others: those of some, without those of another.
COMBINED: dict[str, tuple[tuple[str, ...], str | None]] = {
    "WORD": (("LETTER", "MARK", "DIGIT", "WORD_REST"), None),
    "CAPITAL": (("LETTER", "MARK"), "LOWERCASE"),
    "SMALL": (("LETTER", "MARK"), "UPPERCASE"),
}
PLANES = (0x80, 0x10000, 0x110000)  # ASCII, the characters of two bytes of UTF-16, all

# Capital letters since Unicode 13, which an older Python does not know: (first, last, step, distance to the small one).
_NEW_CAPITALS = (
    (0x2C2F, 0x2C2F, 1, 48), (0xA7C0, 0xA7C0, 1, 1), (0xA7CB, 0xA7CB, 1, -42343), (0xA7CC, 0xA7DA, 2, 1), (0xA7DC, 0xA7DC, 1, -42561),
    (0x1C89, 0x1C89, 1, 1), (0x10570, 0x1057A, 1, 39), (0x1057C, 0x1058A, 1, 39), (0x1058C, 0x10592, 1, 39), (0x10594, 0x10595, 1, 39),
    (0x10D50, 0x10D65, 1, 32), (0x16EA0, 0x16EB8, 1, 27),
)  # fmt: skip
NEW_LOWERCASE = {
    code: code + distance for first, last, step, distance in _NEW_CAPITALS for code in range(first, last + 1, step)
}


@functools.cache
def pairs(name: str) -> tuple[tuple[int, int], ...]:
    """The ranges of a class as (first, last), in their order."""
    if name in COMBINED:
        names, without = COMBINED[name]
        codes = {code for part in names for code in _codes(part)} - set(_codes(without) if without else ())
        return _ranges(sorted(codes))
    numbers = [int(word, 36) for word in RANGES[name].split()]
    found, end = [], 0
    for skipped, count in zip(numbers[::2], numbers[1::2]):
        found.append((end + skipped, end + skipped + count - 1))
        end += skipped + count
    return tuple(found)


def _codes(name: str) -> Iterator[int]:
    return (code for first, last in pairs(name) for code in range(first, last + 1))


def _ranges(codes: list[int]) -> tuple[tuple[int, int], ...]:
    firsts = [code for code, before in zip(codes, [-2, *codes]) if code != before + 1]
    lasts = [code for code, after in zip(codes, [*codes[1:], -2]) if code != after - 1]
    return tuple(zip(firsts, lasts))


@functools.cache
def char_class(name: str, limit: int = PLANES[-1]) -> str:
    r"""The characters of a class below a limit, as they stand inside the brackets of a regular expression.

    >>> char_class("DIGIT", 0x700)
    '\\u0030-\\u0039\\u0660-\\u0669\\u06f0-\\u06f9'
    """
    kept = [(first, min(last, limit - 1)) for first, last in pairs(name) if first < limit]
    body = "".join(_escaped(first) + (f"-{_escaped(last)}" if last > first else "") for first, last in kept)
    return body or _escaped(PLANES[-1] - 1)  # brackets cannot be empty; no text has this character


def _escaped(code: int) -> str:
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class Pattern:
    """A regular expression in which `{NAME}`, inside brackets, stands for a class of characters.

    It is compiled for texts of ASCII, for those of the characters up to U+FFFF, and for all: `re` looks at one range after the
    other, and a class has hundreds beyond U+FFFF, which most texts never reach.

    >>> Pattern("[{LETTER}]+").findall("¿Qué? 東京")
    ['Qué', '東京']
    """

    def __init__(self, pattern: str):
        self.pattern = pattern
        self._compiled: dict[int, re.Pattern[str]] = {}

    def below(self, limit: int) -> re.Pattern[str]:
        """For texts whose characters are below a limit."""
        if limit not in self._compiled:
            named = re.sub(r"\{([A-Z][A-Z_]+)\}", lambda found: char_class(found[1], limit), self.pattern)
            self._compiled[limit] = re.compile(named, re.MULTILINE)
        return self._compiled[limit]

    def of(self, text: str) -> re.Pattern[str]:
        """For this text."""
        return self.below(PLANES[0] if text.isascii() else PLANES[1] if max(text) < "\U00010000" else PLANES[2])

    def findall(self, text: str) -> list[str]:
        """All matches."""
        return self.of(text).findall(text)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """All matches, with their places."""
        return self.of(text).finditer(text)

    def split(self, text: str) -> list[str]:
        """What lies between the matches; with a group, they stand between."""
        return self.of(text).split(text)

    def sub(self, new: str | Callable[[re.Match[str]], str], text: str) -> str:
        """The text with all matches replaced."""
        return self.of(text).sub(new, text)


@functools.cache
def compiled(pattern: str) -> Pattern:
    """The pattern, compiled once."""
    return Pattern(pattern)


def in_class(name: str, character: str) -> bool:
    """Whether a character is in a class."""
    return bool(compiled(f"[{{{name}}}]").findall(character))
