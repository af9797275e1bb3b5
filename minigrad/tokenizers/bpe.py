"""Byte-pair encoding: the characters of a word, merged pair by pair in the order in which the pairs were learned."""

from __future__ import annotations

import heapq
import re
from typing import Any

from ..data.errors import DataError
from .fields import MAX_TOKENS, Fields, token_of
from .memo import Memo
from .vocabulary import Vocabulary, byte_tokens, words_at_marks

__all__ = ["BPE"]

GONE = -1


class BPE:
    """The model of a `tokenizer.json` of type BPE: `ids(word)` are the tokens of one word.

    The merge that was learned first is done first, of equal ones the leftmost.
    """

    kind = "bpe"

    def __init__(self, fields: Fields):
        if fields.get("dropout", (int, float), "null", 0):
            fields.refuse("dropout", "null or 0: encoding is not random here", fields.values["dropout"])
        self.vocabulary = Vocabulary.of_mapping(fields)
        self.prefix = fields.text("continuing_subword_prefix", "")
        self.suffix = fields.text("end_of_word_suffix", "")
        self.fuse_unk, self.ignore_merges = fields.flag("fuse_unk", False), fields.flag("ignore_merges", False)
        unknown = fields.text("unk_token", None)
        self.unk_id = self.vocabulary.ids.get(unknown) if unknown is not None else None
        self.bytes = byte_tokens(self.vocabulary.ids) if fields.flag("byte_fallback", False) else {}
        # (left, right) -> rank · MAX_TOKENS + merged, which takes half the memory of a pair.
        self.merges = self._merges(fields)
        self.frozen = self._frozen(fields)
        by_words = not (self.prefix or self.suffix or self.ignore_merges)
        self._words = words_at_marks(self.vocabulary.ids) if by_words else None
        self.ids = Memo(self._encode).__getitem__

    def _merges(self, fields: Fields) -> dict[tuple[int, int], int]:
        ids = self.vocabulary.ids
        merges = fields.get("merges", list, "a list of pairs", [])
        if len(merges) > MAX_TOKENS:
            fields.refuse("merges", f"at most {MAX_TOKENS}", f"{len(merges)} merges")
        by_token = fields.flag("rank_by_token", False)  # ours: sentencepiece ranks what a merge makes, not the pair
        ranks: dict[int, int] = {}
        found = {}
        for rank, merge in enumerate(merges):
            left, right = _pair(merge, f"{fields.where}.merges[{rank}]")
            merged = ids.get(left + right[len(self.prefix) :])
            if left not in ids or right not in ids or merged is None:
                fields.refuse("merges", "pairs of tokens that make a token", f"{left!r} {right!r}")
            rank = ranks.setdefault(merged, rank) if by_token else rank
            found[ids[left], ids[right]] = rank * MAX_TOKENS + merged
        return found

    def by_rank(self) -> list[tuple[tuple[int, int], int]]:
        """The pairs that are merged, with their ranks, in their order."""
        return [(pair, found // MAX_TOKENS) for pair, found in sorted(self.merges.items(), key=lambda one: one[1])]

    def _encode(self, word: str) -> list[int]:
        if self.ignore_merges and word in self.vocabulary.ids:
            return [self.vocabulary.ids[word]]
        if self.frozen and len(parts := self.frozen.split(word)) > 1:
            ids = self.vocabulary.ids
            return [i for n, part in enumerate(parts) for i in ([ids[part]] if n % 2 else self.ids(part))]
        if self._words and len(words := self._words(word)) > 1:
            return [i for part in words for i in self.ids(part)]
        return self._merged(self._symbols(word))

    def _frozen(self, fields: Fields) -> re.Pattern[str] | None:
        """Finds the tokens that are taken out of a text first and never merged, which sentencepiece calls user-defined."""
        tokens = filter(None, map(self.vocabulary.token, fields.numbers("user_defined_ids")))
        literals = "|".join(re.escape(token) for token in sorted(tokens, key=len, reverse=True))
        return re.compile(f"({literals})") if literals else None

    def _symbols(self, word: str) -> list[int]:
        """The ids of single characters; one that the vocabulary does not have becomes its bytes, or unknown."""
        ids, symbols, pending = self.vocabulary.ids, list[int](), list[int]()
        last = len(word) - 1
        for i, character in enumerate(word):
            text = (self.prefix if i else "") + character + (self.suffix if i == last else "")
            found = ids.get(text)
            if found is not None:
                symbols += [*pending, found]
                pending = []
            elif self.bytes and all(byte in self.bytes for byte in text.encode("utf-8")):
                symbols += [self.bytes[byte] for byte in text.encode("utf-8")]
            elif self.unk_id is not None:
                symbols += [] if self.fuse_unk else pending
                pending = [self.unk_id]
        return symbols + pending

    def _merged(self, symbols: list[int]) -> list[int]:
        """Merge pairs, always the one of the lowest rank, the leftmost first, until no known pair is left."""
        merges, count = self.merges, len(symbols)
        after = list(range(1, count + 1))
        before = list(range(-1, count - 1))
        pairs = (merges.get(pair) for pair in zip(symbols, symbols[1:]))
        heap = [(found, i) for i, found in enumerate(pairs) if found is not None]
        heapq.heapify(heap)
        while heap:
            first, left = heapq.heappop(heap)
            right, merged = after[left], first % MAX_TOKENS
            if right >= count or symbols[left] == GONE:
                continue
            found = merges.get((symbols[left], symbols[right]))
            if found is None or found % MAX_TOKENS != merged:
                continue  # one of the two was merged with another neighbour meanwhile
            symbols[left], symbols[right] = merged, GONE
            following = after[left] = after[right]
            if following < count:
                before[following] = left
                if (found := merges.get((merged, symbols[following]))) is not None:
                    heapq.heappush(heap, (found, left))
            previous = before[left]
            if previous >= 0 and (found := merges.get((symbols[previous], merged))) is not None:
                heapq.heappush(heap, (found, previous))
        return [symbol for symbol in symbols if symbol != GONE]


def _pair(merge: Any, where: str) -> tuple[str, str]:
    """A merge as its two tokens: a list of two, or in older files one text with a space between them."""
    parts = merge.split(" ") if isinstance(merge, str) else merge
    if not isinstance(parts, (list, tuple)) or len(parts) != 2:
        raise DataError(f"tokenizer: {where} is not valid", "two tokens", repr(merge)[:60])
    return token_of(parts[0], where), token_of(parts[1], where)
