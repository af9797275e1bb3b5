"""Pretrained word vectors out of the text files of word2vec and GloVe: a word and its numbers on each line."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ...engine.tensor import Tensor
from ...errors import ArgumentError, MinigradError
from ...ops.creation import tensor
from ...ops.random import randn

__all__ = ["WordVectors", "WordVectorsError", "read_word_vectors"]

LONGEST_LINE = 1 << 20  # bytes; a longer one is no line of such a file
SHOWN = 5  # so many bad lines are quoted in the warning
LISTED = 1000  # and so many are listed in the result


class WordVectorsError(MinigradError, ValueError):
    """A file of word vectors cannot be understood at all."""


@dataclass
class WordVectors:
    """Words and their vectors (words, size), and what was wrong with which line of the file."""

    words: list[str]
    vectors: np.ndarray
    problems: list[str] = field(default_factory=list)  # the first thousand
    bad: int = 0  # how many lines were left out

    def __len__(self) -> int:
        return len(self.words)

    def table(self, vocabulary: Sequence[str]) -> tuple[Tensor, list[str]]:
        """One row for each word of a vocabulary, (len(vocabulary), size), and the words that had no vector.

        Those get random numbers with the mean and deviation of the vectors there are.
        """
        if not len(self):
            raise WordVectorsError("WordVectors.table: there are no vectors", "at least one word", "none")
        place = {word: i for i, word in enumerate(self.words)}
        drawn = randn(len(vocabulary), self.vectors.shape[1], dtype=self.vectors.dtype).numpy()
        rows = self.vectors.mean(axis=0) + self.vectors.std(axis=0) * drawn
        known = [i for i, word in enumerate(vocabulary) if word in place]
        rows[known] = self.vectors[[place[vocabulary[i]] for i in known]]
        return tensor(rows, dtype=self.vectors.dtype), [word for word in vocabulary if word not in place]


def read_word_vectors(
    path: str | Path, only: Collection[str] | None = None, limit: int | None = None, dtype: str = "float32"
) -> WordVectors:
    """Read a text file of word2vec (which begins with a line `words size`) or of GloVe (which does not); `.gz` too.

    `only` keeps just the words of a vocabulary (the numbers of others are not looked at), `limit` just so many. Lines
    that cannot be read are left out, listed in `problems` and warned of. Nothing is believed of the header before the
    lines bear it out.
    """
    if np.dtype(dtype).kind != "f":
        raise ArgumentError("read_word_vectors: dtype is floating", "'float32' or 'float64'", dtype)
    if limit is not None and limit < 1:
        raise ArgumentError("read_word_vectors: limit is a whole number from 1 up", "such as 10000, or None", limit)
    wanted = None if only is None else frozenset(only)
    with _opened(Path(path)) as file:
        reader = _Reader(str(path), np.dtype(dtype))
        for number, line in _lines(file):
            reader.take(number, line, wanted)
            if limit is not None and len(reader.rows) >= limit:
                return reader.result(whole=False)
    return reader.result(whole=True)


def _opened(path: Path) -> BinaryIO:
    if path.suffix != ".gz":
        return path.open("rb")
    import gzip

    return gzip.open(path, "rb")  # type: ignore[return-value]


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Numbered lines; None for one that is too long, which is passed over without keeping it."""
    import zlib

    number = 0
    try:
        while line := file.readline(LONGEST_LINE):
            number += 1
            whole = line.endswith(b"\n") or len(line) < LONGEST_LINE
            yield number, line if whole else None
            while not whole and (rest := file.readline(LONGEST_LINE)):
                whole = rest.endswith(b"\n")
    except (EOFError, OSError, zlib.error) as error:
        raise WordVectorsError(f"{getattr(file, 'name', 'file')}: the file is damaged", got=str(error)) from None


class _Reader:
    """What has been read so far. The size is the header's, or that of the first line that can be a vector."""

    def __init__(self, path: str, dtype: np.dtype):
        self.path, self.dtype = path, dtype
        self.size: int | None = None
        self.announced: int | None = None
        self.rows: dict[str, np.ndarray] = {}
        self.seen: set[str] = set()
        self.problems: list[str] = []
        self.bad = 0

    def take(self, number: int, line: bytes | None, wanted: frozenset[str] | None) -> None:
        """Read one line, or note what is wrong with it."""
        try:
            if line is None:
                raise ValueError(f"longer than {LONGEST_LINE:,} bytes")
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").replace("\t", " ").strip(" \r\n")
            if not text or number == 1 and self._is_header(text):
                return
            word, numbers = self._split([part for part in text.split(" ") if part])
            if word in self.seen:
                raise ValueError(f"the word {word[:40]!r} for the second time")
            if self.size is None or wanted is None or word in wanted:
                vector = self._vector(numbers)
                if wanted is None or word in wanted:
                    self.rows[word] = vector
            self.size = len(numbers)
            self.seen.add(word)
        except UnicodeDecodeError:
            self._note(f"line {number}: not UTF-8")
        except ValueError as error:
            self._note(f"line {number}: {error}")

    def _note(self, problem: str) -> None:
        self.bad += 1
        if len(self.problems) < LISTED:
            self.problems.append(problem)

    def _is_header(self, text: str) -> bool:
        parts = text.split()
        if len(parts) != 2 or not all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts):
            return False
        self.announced, self.size = int(parts[0]), int(parts[1])
        return True

    def _split(self, parts: list[str]) -> tuple[str, list[str]]:
        """A word and its numbers; once the size is known the word may contain spaces, as some of GloVe's do."""
        size = len(parts) - 1 if self.size is None else self.size
        word, numbers = parts[:-size], parts[-size:]
        if not size or not word or len(word) > 1 and _is_number(word[-1]):
            raise ValueError(f"{len(parts) - 1} numbers instead of {self.size or 'at least one'}")
        return " ".join(word), numbers

    def _vector(self, numbers: list[str]) -> np.ndarray:
        try:
            values = list(map(float, numbers))
        except ValueError:
            bad = next(text for text in numbers if not _is_number(text))
            raise ValueError(f"{bad[:40]!r} is not a number") from None
        with np.errstate(over="ignore"):
            vector = np.array(values).astype(self.dtype)
        if not np.isfinite(vector).all():
            raise ValueError(f"a number is not finite, or too large for {self.dtype}")
        return vector

    def result(self, whole: bool) -> WordVectors:
        """What was read, with a warning about what was not; `whole` if the file was read to its end."""
        if not self.seen:
            raise WordVectorsError(
                f"{self.path}: no line of this file is a word vector",
                "lines such as `house 0.12 -0.5 …`, perhaps after a line `words size`",
                self.problems[0] if self.problems else "an empty file",
                "a binary file of word2vec must be converted to text first",
            )
        if whole and self.announced not in (None, len(self.seen) + self.bad):
            self._note(f"line 1: announces {self.announced:,} words, but there are {len(self.seen) + self.bad:,}")
        if self.bad:
            shown = "; ".join(self.problems[:SHOWN]) + ("; …" if self.bad > SHOWN else "")
            warnings.warn(f"{self.path}: {self.bad:,} lines were left out: {shown}", stacklevel=3)
        vectors = np.array(list(self.rows.values()), dtype=self.dtype).reshape(len(self.rows), self.size or 0)
        return WordVectors(list(self.rows), vectors, self.problems, self.bad)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
