"""Words as points: which are near, which complete an analogy, and the text format of word2vec."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence

import numpy as np

from minigrad.errors import ArgumentError, is_whole
from minigrad.nn import read_word_vectors
from minigrad.saving import write_atomically

Found = list[tuple[str, float]]


class WordSpace:
    """Words and their vectors (words, size); how near two words are is the cosine between their vectors."""

    def __init__(self, words: Sequence[str], vectors: np.ndarray):
        self.words, self.vectors = list(words), vectors
        self.place = {word: i for i, word in enumerate(self.words)}
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        self.directions = vectors / np.maximum(lengths, 1e-12)  # (words, size)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> WordSpace:
        """The words of a text file of word2vec or GloVe."""
        found = read_word_vectors(os.fspath(path))
        return cls(found.words, found.vectors)

    def write(self, path: str | os.PathLike[str]) -> int:
        """Write the text format of word2vec, a whole file or none; every float32 is read back as it was. Returns how many words."""
        lines = [f"{len(self.words)} {self.vectors.shape[1]}"]
        lines += [f"{word} {' '.join(f'{x:.9g}' for x in row)}" for word, row in zip(self.words, self.vectors.tolist())]
        try:
            write_atomically(path, ("\n".join(lines) + "\n").encode())
        except OSError as error:
            raise ArgumentError(
                f"{os.fspath(path)!r} cannot be written: {error.strerror}", fix="check the folder and its permissions"
            ) from None
        return len(self.words)

    def index(self, word: str) -> int:
        """The row of a word; a word that is not known gets the nearest spellings."""
        for spelling in (word, word.lower()):
            if spelling in self.place:
                return self.place[spelling]
        close = difflib.get_close_matches(word.lower(), self.words, n=3, cutoff=0.0)
        raise ArgumentError(
            f"the word {word!r} is not known",
            f"one of {len(self.words):,} words",
            repr(word),
            "did you mean " + " or ".join(map(repr, close)) + "?",
        )

    def neighbours(self, word: str, n: int = 5) -> Found:
        """The `n` words whose vectors point most nearly the same way, with their cosines."""
        place = self.index(word)
        return self._nearest(self.directions[place], {place}, n)

    def analogy(self, a: str, b: str, c: str, n: int = 5) -> Found:
        """`a` is to `b` as `c` is to …: the words nearest to b - a + c, those three left out."""
        places = [self.index(word) for word in (a, b, c)]
        first, second, third = self.directions[places]
        return self._nearest(second - first + third, set(places), n)

    def _nearest(self, point: np.ndarray, without: set[int], n: int) -> Found:
        if not is_whole(n) or n < 1:
            raise ArgumentError("how many neighbours?", "a whole number from 1", repr(n))
        cosines = self.directions @ point / max(float(np.linalg.norm(point)), 1e-12)
        order = [int(i) for i in np.argsort(-cosines, kind="stable") if int(i) not in without]
        return [(self.words[i], round(float(cosines[i]), 3)) for i in order[:n]]
