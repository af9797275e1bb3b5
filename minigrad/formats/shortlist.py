"""Marian's lexical shortlists: which words of the target language may come up in the translation of a sentence.

A vocabulary has 32,000 words, a sentence's shortlist some hundred: the last product of a decoder becomes that much smaller.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..errors import ArgumentError
from .mapped_file import Cursor, MappedFile

__all__ = ["Shortlist", "read_shortlist"]

_MAGIC = 0xF11A48D5013417F5


@dataclass(frozen=True, eq=False)
class Shortlist:
    """The `first` most frequent words, and for each source word the target words that translate it.

    The targets of the source word s are `targets[offsets[s] : offsets[s + 1]]`. Both arrays lie in the file.
    """

    first: int
    best: int
    vocab_size: int
    offsets: np.ndarray
    targets: np.ndarray

    def for_source(self, ids: Iterable[int], shared: bool = True) -> np.ndarray:
        """The ids of the words that may come up, sorted, as Marian chooses them.

        With one vocabulary for both languages (`shared`) the source words themselves are among them. Their number is rounded
        up to a multiple of eight with frequent words, as Marian's matrix products need it.
        """
        words = np.unique(np.fromiter(ids, np.int64))
        if len(words) and not 0 <= words[0] <= words[-1] < len(self.offsets) - 1:
            raise ArgumentError(
                "shortlist: a source word is unknown",
                f"ids from 0 to {len(self.offsets) - 2}",
                f"{words[0]} to {words[-1]}",
            )
        chosen = np.zeros(self.vocab_size, bool)
        chosen[: self.first] = True
        for word in words.tolist():
            chosen[self.targets[int(self.offsets[word]) : int(self.offsets[word + 1])]] = True
        if shared:
            chosen[words[words < self.vocab_size]] = True
        others = np.flatnonzero(~chosen[self.first :])[: -np.count_nonzero(chosen) % 8]
        chosen[self.first + others] = True
        return np.flatnonzero(chosen)


def read_shortlist(path: str | os.PathLike[str], vocab_size: int | None = None) -> Shortlist:
    """The shortlist of a file that Marian calls binary (`lex.….s2t.bin`); the target vocabulary has the source's size if not told."""
    file = MappedFile(path)
    cursor = Cursor(file)
    magic, _, first, best, words, count = cursor.numbers("Q" * 6, "the header of a shortlist")
    if magic != _MAGIC:
        raise file.error(
            "is not a binary shortlist of Marian", hex(_MAGIC), hex(magic), "convert it with marian-conv --shortlist"
        )
    if words < 1 or 8 * words + 4 * count != cursor.left:
        raise file.error("is not a whole shortlist", f"{words:,} offsets and {count:,} words", f"{cursor.left:,} bytes")
    offsets = file.array("offsets", cursor.at, "<u8", (words,))
    targets = file.array("words", cursor.at + 8 * words, "<u4", (count,))
    vocab_size = words - 1 if vocab_size is None else vocab_size
    if offsets[0] != 0 or offsets[-1] != count or np.any(offsets[1:] < offsets[:-1]):
        raise file.error(
            "has offsets of words that do not fit", f"from 0 to {count:,}, none smaller than the one before"
        )
    if count and targets.max() >= vocab_size:
        raise file.error("has words beyond the vocabulary", f"ids below {vocab_size:,}", int(targets.max()))
    return Shortlist(min(first, vocab_size), best, vocab_size, offsets, targets)
