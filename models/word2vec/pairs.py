"""From text to what skip-gram learns from: pairs of words that stand near each other, and words drawn at random."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minigrad.data import SPECIALS, UNK, Sampler, WordTokenizer
from minigrad.errors import ArgumentError

LONGEST = 1000  # words; a longer line is cut, since some files are one line


def vocabulary(lines: Iterable[str], vocab: int, min_count: int) -> WordTokenizer:
    """The words that were seen at least `min_count` times, without punctuation, the most frequent first."""
    trained = WordTokenizer.train((line.lower() for line in lines), min_count=min_count)
    words = [word for word in trained.tokens[len(SPECIALS) :] if any(map(str.isalnum, word))]
    kept = WordTokenizer(words[: max(vocab - len(SPECIALS), 0)])
    left = kept.vocab_size - len(SPECIALS)
    if left < 2:
        raise ArgumentError(
            "word2vec: there are too few words to learn from",
            f"at least two words that are there {min_count} times",
            f"{len(words)} such words, of which vocab={vocab} leaves {left}",
            "give more text, or set min_count=1",
        )
    return kept


def encoded(lines: Iterable[str], tokenizer: WordTokenizer) -> list[np.ndarray]:
    """Each line as the ids of its known words; punctuation and rare words are left out, as word2vec does."""
    found = []
    for line in lines:
        ids = np.array(tokenizer.encode(line.lower()), np.int64)
        ids = ids[ids != UNK]
        found += [ids[start : start + LONGEST] for start in range(0, len(ids), LONGEST)]
    return found


class WordPairs(Sampler):
    """Batches of words in the middle (B,), and others (B, 1 + negatives), of which the first stood beside it.

    In every epoch frequent words are thinned out anew, a word of share f kept with probability √(t/f) + t/f, and each
    word gets a window from 1 up to `window`, so that near words count more. Negatives are drawn by count^0.75.
    """

    def __init__(
        self,
        lines: Sequence[np.ndarray],
        vocab: int,
        batch: int,
        window: int,
        negatives: int,
        thin: float,
        seed: int = 0,
    ):
        super().__init__(seed)
        self.ids = np.concatenate(list(lines)) if len(lines) else np.zeros(0, np.int64)  # (N,)
        self.line = np.repeat(np.arange(len(lines)), [len(line) for line in lines])  # (N,)
        self.batch_size, self.window, self.negatives, self.thin = batch, window, negatives, thin
        counts = np.bincount(self.ids, minlength=vocab)
        share = np.maximum(counts / max(len(self.ids), 1), 1e-12)
        self.keep = np.minimum(np.sqrt(thin / share) + thin / share, 1) if thin else np.ones(vocab)
        self.drawn = np.cumsum(counts**0.75)
        self._made: tuple[tuple[int, int], np.ndarray] | None = None
        pairs = len(self.pairs(0))
        if not pairs:
            raise ArgumentError(
                "word2vec: no two words stand beside each other",
                "lines of several known words",
                f"{len(self.ids)} words in {len(lines)} lines",
                "give more text, or set min_count=1",
            )
        self.batches = -(-pairs // batch)

    def __len__(self) -> int:
        return self.batches

    def pairs(self, epoch: int) -> np.ndarray:
        """All pairs of an epoch in their order, (pairs, 2). A text so short that thinning leaves none is not thinned."""
        if self._made is None or self._made[0] != (self.seed, epoch):
            random = np.random.default_rng([self.seed, epoch])
            found = self._near(random, random.random(len(self.ids)) < self.keep[self.ids])
            if not len(found):
                found = self._near(random, np.ones(len(self.ids), bool))
            self._made = (self.seed, epoch), random.permutation(found)
        return self._made[1]

    def _near(self, random: np.random.Generator, kept: np.ndarray) -> np.ndarray:
        """The pairs of words that stand near each other among the words that are kept, (pairs, 2)."""
        ids, line = self.ids[kept], self.line[kept]
        reach = random.integers(1, self.window + 1, len(ids))
        found = []
        for distance in range(1, self.window + 1):
            left, right = np.arange(len(ids) - distance), np.arange(distance, len(ids))
            for middle, other in ((left, right), (right, left)):
                near = (line[middle] == line[other]) & (reach[middle] >= distance)
                found.append(np.stack([ids[middle[near]], ids[other[near]]], axis=1))
        return np.concatenate(found)

    def batch(self, epoch: int, index: int) -> tuple[np.ndarray, np.ndarray]:
        """Epochs differ a little in length; one that is short of pairs for its last batches begins again."""
        rows = np.arange(index * self.batch_size, (index + 1) * self.batch_size)
        middle, other = np.take(self.pairs(epoch), rows, axis=0, mode="wrap").T
        random = np.random.default_rng([self.seed, epoch, index + 1])  # with 0 it would be the stream of the pairs
        places = random.random((self.batch_size, self.negatives)) * self.drawn[-1]
        negatives = np.searchsorted(self.drawn, places, side="right")
        return middle, np.concatenate([other[:, None], negatives], axis=1)  # (B,), (B, 1 + negatives)

    def _identity(self) -> dict[str, Any]:
        crc = zlib.crc32(self.line.tobytes(), zlib.crc32(self.ids.tobytes()))
        settings = {name: getattr(self, name) for name in ("batch_size", "window", "negatives", "thin")}
        return {"data": crc, **settings}
