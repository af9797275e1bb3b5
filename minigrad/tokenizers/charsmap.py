"""The table of replacements inside a SentencePiece model: a trie of what is replaced, and the texts it is replaced by.

The trie is a double array. A unit is a number of 32 bits: a label (the byte that leads to it), whether a key ends there,
and the distance to its children, which lie at `place ^ distance ^ byte`. The texts stand one after the other, each
with a zero byte at its end, and the value of a key is where its text begins.
"""

from __future__ import annotations

import re
import sys
from array import array

from ..data.errors import DataError
from .characters import compiled
from .memo import Memo

__all__ = ["Charsmap"]

CLUSTER = r"\r\n|[{CONTROL}]|[{PREPEND}]*[^{CONTROL}{PREPEND}][{EXTENDER}]*|[{PREPEND}]+"
SHORT = 6  # bytes of a cluster that is looked up as a whole: fewer than this
ASCII = re.compile("[ -~]+(?![^ -~])")  # up to the last one before another character, which may be an accent of it
MAX_KEY = 64  # characters
LABEL, HAS_VALUE, VALUE = 0x800000FF, 0x100, 0x7FFFFFFF  # of a unit; the top bit marks one that holds a value


class Charsmap:
    """Replacements of characters and of short runs of them, read from a `precompiled_charsmap`."""

    def __init__(self, data: bytes):
        size = int.from_bytes(data[:4], "little") if data else 0
        if size % 4 or size > len(data) - 4 * bool(data):
            raise DataError("charsmap: the trie is cut off", "4 bytes a unit", f"{size} of {len(data)} bytes")
        self.units = array("I", data[4 : 4 + size])
        if sys.byteorder == "big":
            self.units.byteswap()
        self.texts = data[4 + size :]
        self._clusters = Memo(self._cluster)
        self._pairs = Memo(self._pair)
        self._keeps_ascii = all(self._pair(chr(c) + "\0") == (1, chr(c)) for c in range(0x20, 0x7F))

    def by_grapheme(self, text: str) -> str:
        """As `tokenizers` does it: what a reader takes for one character is looked up as a whole, if it is short."""
        if self._keeps_ascii and text.isascii() and text.isprintable():
            return text
        return "".join(map(self._clusters.__getitem__, compiled(CLUSTER).findall(text)))

    def longest(self, text: str) -> str:
        """As `sentencepiece` does it: from left to right, the longest key that fits is replaced."""
        parts, place = [], 0
        while place < len(text):
            if self._keeps_ascii and (plain := ASCII.match(text, place)):
                parts.append(plain[0])
                place = plain.end()
                continue
            found = self._pairs[text[place : place + 2]]
            size, new = found if found else self._longest(text[place : place + MAX_KEY])
            parts.append(new)
            place += size
        return "".join(parts)

    def _cluster(self, cluster: str) -> str:
        coded = cluster.encode("utf-8")
        keys = self._walk(coded)[0] if len(coded) < SHORT else []
        if keys:
            return self._text(keys[0][1])  # of the shortest key that it begins with, which stands for all of it
        return "".join(self._single(character) for character in cluster)

    def _single(self, character: str) -> str:
        keys, _ = self._walk(character.encode("utf-8"))
        return self._text(keys[0][1]) if keys else character

    def _longest(self, text: str) -> tuple[int, str]:
        """How many characters the longest key at the start of a text has, and what replaces them."""
        coded = text.encode("utf-8")
        keys, _ = self._walk(coded)
        if not keys:
            return 1, text[0]
        size, value = keys[-1]
        return len(coded[:size].decode("utf-8")), self._text(value)

    def _pair(self, text: str) -> tuple[int, str] | None:
        """The same for two characters, or None if a longer key may begin with them."""
        return self._longest(text) if self._walk(text.encode("utf-8"))[1] else None

    def _walk(self, coded: bytes) -> tuple[list[tuple[int, int]], bool]:
        """The keys that some bytes begin with as (size, value), and whether no longer key can begin with all of them."""
        units, keys = self.units, list[tuple[int, int]]()
        place = _distance(units[0]) if units else 0
        for size, byte in enumerate(coded, 1):
            place ^= byte
            if not byte or place >= len(units) or units[place] & LABEL != byte:
                return keys, True
            unit = units[place]
            place ^= _distance(unit)
            if unit & HAS_VALUE and place < len(units):
                keys.append((size, units[place] & VALUE))
        return keys, False

    def _text(self, value: int) -> str:
        end = self.texts.find(b"\0", value)
        return self.texts[value : end if end >= 0 else None].decode("utf-8", errors="replace")


def _distance(unit: int) -> int:
    """From a unit to its children: 22 bits, or the same with eight zeros behind."""
    return (unit >> 10) << ((unit & 0x200) >> 6)
