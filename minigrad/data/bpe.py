"""Byte-pair encoding: tokens are frequent runs of bytes, so every text can be written and nothing is unknown."""

from __future__ import annotations

import heapq
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

from ..errors import ArgumentError
from .errors import DataError
from .tokenizers import (
    DIGIT,
    LETTER,
    MARK,
    MAX_TOKENS,
    SPACE,
    SPECIALS,
    Tokenizer,
    as_texts,
    checked_text,
    made_from,
    only_string,
)

__all__ = ["BPETokenizer"]

FIRST_BYTE = len(SPECIALS)  # the byte b has the id FIRST_BYTE + b
FIRST_MERGE = FIRST_BYTE + 256
MAX_BYTES = 128  # in one token; without a bound, a file of 40 merges could ask for a token of a terabyte
MAX_CACHE = 2**16

# How a text is cut before bytes are paired; no token reaches across a cut. A word takes one space before it; the end of
# "don't" is "'t"; a run of spaces leaves its last one to the next word. Lengths are bounded, since pairing the bytes of a
# piece takes time that grows with the square of its length.
PATTERN = (
    f"['’]{LETTER}{{1,2}}(?!{LETTER})"
    f"| ?{LETTER}{{1,32}}"
    f"| ?[{DIGIT}]{{1,3}}"
    f"| ?[{MARK}]{{1,16}}"
    f"|[{SPACE}]{{1,16}}(?![^{SPACE}])"
    f"|[{SPACE}]"
)

Pair = tuple[int, int]


class BPETokenizer(Tokenizer):
    """Byte-pair encoding over UTF-8: `decode(encode(text)) == text` for every valid text in any script.

    The ids are the five special tokens, the 256 bytes, then the merges in the order in which they were learned.

    >>> tokenizer = BPETokenizer.train("low lower lowest slow slower", vocab_size=265)
    >>> [tokenizer.token(i) for i in tokenizer.encode("slowly ñ")]
    ['s', 'low', 'l', 'y', ' ', '\\\\xc3', '\\\\xb1']
    >>> tokenizer.decode(tokenizer.encode("slowly ñ 👋🏽"))
    'slowly ñ 👋🏽'
    """

    kind = "bpe"
    pattern = re.compile(PATTERN)

    def __init__(self, merges: Iterable[Pair]):
        self.merges = tuple(merges)
        self.bytes = [token.encode() for token in SPECIALS] + [bytes([b]) for b in range(256)]
        self._ranks: dict[Pair, int] = {}
        self._results: list[int] = []  # the id that each merge makes
        self._cache: dict[str, tuple[int, ...]] = {}
        if len(self.merges) > MAX_TOKENS:
            raise ArgumentError("BPETokenizer: too many merges", f"at most {MAX_TOKENS}", len(self.merges))
        ids = {token: i for i, token in enumerate(self.bytes) if i >= FIRST_BYTE}
        for rank, pair in enumerate(self.merges):
            self._add(rank, pair, ids)

    def _add(self, rank: int, pair: Pair, ids: dict[bytes, int]) -> None:
        """Two merges may give the same bytes, as a+bc and ab+c do; these are one token."""
        left, right = pair
        if not (FIRST_BYTE <= left < len(self.bytes) and FIRST_BYTE <= right < len(self.bytes)):
            raise ArgumentError(
                f"BPETokenizer: merge {rank} uses a token that is not made yet",
                f"ids from {FIRST_BYTE} to {len(self.bytes) - 1}",
                pair,
            )
        merged = self.bytes[left] + self.bytes[right]
        if pair in self._ranks or len(merged) > MAX_BYTES:
            problem = "is there twice" if pair in self._ranks else "makes a token that is too long"
            raise ArgumentError(f"BPETokenizer: merge {rank} {problem}", f"new pairs, at most {MAX_BYTES} bytes", pair)
        if merged not in ids:
            ids[merged] = len(self.bytes)
            self.bytes.append(merged)
        self._ranks[pair] = rank
        self._results.append(ids[merged])

    @classmethod
    def train(cls, texts: str | Iterable[str], vocab_size: int = 8000, min_count: int = 2) -> BPETokenizer:
        """Learn merges from one text or several until there are `vocab_size` ids or no pair occurs `min_count` times.

        The most frequent pair is merged first; of equally frequent ones, that with the smaller ids.
        """
        if not FIRST_MERGE <= vocab_size <= MAX_TOKENS:
            expected = f"from {FIRST_MERGE} (the special tokens and all bytes) to {MAX_TOKENS}"
            raise ArgumentError("BPETokenizer.train: the vocabulary cannot have this size", expected, vocab_size)
        pieces: Counter[str] = Counter()
        for text in as_texts(texts):
            pieces.update(cls.pattern.findall(checked_text(text, "BPETokenizer.train")))
        return cls(_learn(pieces, vocab_size, max(1, min_count)))

    @property
    def vocab_size(self) -> int:
        return len(self.bytes)

    def token(self, id: int) -> str:
        return self.bytes[self._checked(id)].decode("utf-8", errors="backslashreplace")

    def _encode(self, text: str) -> list[int]:
        cache, ids = self._cache, list[int]()
        for piece in self.pattern.findall(text):
            known = cache.get(piece)
            if known is None:
                known = self._encode_piece(piece)
                if len(cache) < MAX_CACHE:
                    cache[piece] = known
            ids += known
        return ids

    def _encode_piece(self, piece: str) -> tuple[int, ...]:
        """Merge the pair that was learned first, wherever it occurs, until no known pair is left."""
        ids = [FIRST_BYTE + b for b in piece.encode("utf-8")]
        ranks, unlearned = self._ranks, len(self._ranks)
        while len(ids) > 1:
            rank = min(map(ranks.get, zip(ids, ids[1:]), repeat(unlearned)))
            if rank == unlearned:
                break
            ids = _merged(ids, self.merges[rank], self._results[rank])
        return tuple(ids)

    def _decode(self, ids: list[int]) -> str:
        """Ids that a model made up may not be valid UTF-8; what is not shows as the replacement character."""
        return b"".join([self.bytes[i] for i in ids]).decode("utf-8", errors="replace")

    def _content(self) -> dict[str, str]:
        return {"merges": " ".join(f"{left} {right}" for left, right in self.merges)}

    @classmethod
    def _from_content(cls, content: dict[str, Any]) -> BPETokenizer:
        merges = only_string(content, "merges")
        words = merges.split(" ") if merges and merges.count(" ") < 2 * MAX_TOKENS else []
        if (
            bool(words) != bool(merges)
            or len(words) % 2
            or re.search("[^0-9 ]", merges)
            or any(not 0 < len(w) < 8 for w in words)
        ):
            raise DataError(
                "from_json: the merges are not valid", "pairs of ids, separated by spaces", repr(merges[:60])
            )
        numbers = [int(word) for word in words]
        return made_from(cls, zip(numbers[::2], numbers[1::2]))


def _merged(ids: Sequence[int], pair: Pair, new: int) -> list[int]:
    """The ids with every occurrence of the pair, from left to right, replaced by the new one."""
    left, right = pair
    result, i, last = [], 0, len(ids) - 1
    while i <= last:
        if ids[i] == left and i < last and ids[i + 1] == right:
            result.append(new)
            i += 2
        else:
            result.append(ids[i])
            i += 1
    return result


def _learn(pieces: Counter[str], vocab_size: int, min_count: int) -> list[Pair]:
    chain = _Chain(pieces)
    # A count in the heap was right once and can only be too high since: it is put right when it comes to the top.
    heap = [(-count, pair) for pair, count in chain.counts.items() if count >= min_count]
    heapq.heapify(heap)
    tokens = [b""] * FIRST_BYTE + [bytes([b]) for b in range(256)]
    ids = {token: i for i, token in enumerate(tokens) if token}
    merges: dict[Pair, None] = {}
    while heap and len(tokens) < vocab_size:
        count, pair = heapq.heappop(heap)
        if -count != chain.counts[pair]:
            if chain.counts[pair] >= min_count:
                heapq.heappush(heap, (-chain.counts[pair], pair))
            continue
        left, right = divmod(pair, MAX_TOKENS)
        merged = tokens[left] + tokens[right]
        if len(merged) > MAX_BYTES:
            continue
        new = ids.setdefault(merged, len(tokens))
        if new == len(tokens):
            tokens.append(merged)
        merges[left, right] = None  # a pair can return, when another pair comes to make one of its halves
        for grown in chain.merge(left, right, new):
            if chain.counts[grown] >= min_count:
                heapq.heappush(heap, (-chain.counts[grown], grown))
    return list(merges)


class _Chain:
    """All pieces as one chain of ids, in which merging a pair touches only the places where it occurs.

    A pair is one number, `left * MAX_TOKENS + right`, which sorts like the tuple. Numbers, and places in arrays, spare
    the garbage collector millions of tuples and lists to look through.
    """

    def __init__(self, pieces: Counter[str]):
        self.ids = [0]  # 0 stands between pieces, and where an id was merged into the one before it
        self.often = [0]
        for piece, count in pieces.items():
            coded = piece.encode("utf-8")
            self.ids += [FIRST_BYTE + b for b in coded]
            self.ids.append(0)
            self.often += [count] * (len(coded) + 1)
        self.before = list(range(-1, len(self.ids) - 1))
        self.after = list(range(1, len(self.ids) + 1))
        self.counts: defaultdict[int, int] = defaultdict(int)
        self.places: defaultdict[int, array[int]] = defaultdict(lambda: array("q"))
        for place, (left, right) in enumerate(zip(self.ids, self.ids[1:])):
            if left and right:
                self.counts[left * MAX_TOKENS + right] += self.often[place]
                self.places[left * MAX_TOKENS + right].append(place)

    def merge(self, left: int, right: int, new: int) -> set[int]:
        """Replace a pair by a new id, from left to right; returns the pairs that there are now more of."""
        ids, before, after, counts, places = self.ids, self.before, self.after, self.counts, self.places
        grown: set[int] = set()
        for place in sorted(places.pop(left * MAX_TOKENS + right)):
            second = after[place]
            if ids[place] != left or ids[second] != right:
                continue  # merged with another neighbour since it was noted
            first, third, often = before[place], after[second], self.often[place]
            if ids[first]:
                counts[ids[first] * MAX_TOKENS + left] -= often
                pair = ids[first] * MAX_TOKENS + new
                counts[pair] += often
                places[pair].append(first)
                grown.add(pair)
            if ids[third]:
                counts[right * MAX_TOKENS + ids[third]] -= often
                pair = new * MAX_TOKENS + ids[third]
                counts[pair] += often
                places[pair].append(place)
                grown.add(pair)
            ids[place], ids[second] = new, 0
            after[place], before[third] = third, place
        del counts[left * MAX_TOKENS + right]
        return grown
