"""Unigram: of all ways to write a text with the tokens of the vocabulary, the most probable one."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

from ..data.errors import DataError
from .fields import MAX_TOKENS, Fields, token_of
from .memo import Memo
from .vocabulary import Vocabulary, byte_tokens, words_at_marks

__all__ = ["Unigram"]

UNK_PENALTY = 10.0
USER_DEFINED_SCORE = -0.1  # nearly certain, so that such a token is always taken


class Unigram:
    """The model of a `tokenizer.json` of type Unigram: every token has a score, the logarithm of its probability.

    The best path to each place of a text is the best of those to earlier places, and one token more (Viterbi).
    """

    kind = "unigram"

    def __init__(self, fields: Fields):
        pieces = _pieces(fields)
        self.vocabulary = Vocabulary((token, i) for i, (token, _) in enumerate(pieces))
        self.unk_id: int | None = fields.number("unk_id", None, max(len(pieces) - 1, 0))
        self.bytes = byte_tokens(self.vocabulary.ids) if fields.flag("byte_fallback", False) else {}
        hidden, defined = fields.numbers("hidden_ids"), fields.numbers("user_defined_ids")  # ours, for sentencepiece
        self.scores: dict[str, tuple[float, int | None]] = {
            token: (USER_DEFINED_SCORE if i in defined else pieces[i][1], i)
            for token, i in self.vocabulary.ids.items()
            if i not in hidden and token
        }
        for token, score in _pieces(fields, "unknown_pieces"):  # ours: found in a text, and then unknown
            self.scores.setdefault(token, (score, self.unk_id))
        ordinary = (score for i, (_, score) in enumerate(pieces) if i not in hidden and i not in defined)
        self.unk_score = min(ordinary, default=0.0) - UNK_PENALTY
        self.lengths = _lengths(self.scores)
        self._words = words_at_marks(self.scores)
        self._paths = Memo(self._path)

    def ids(self, text: str) -> list[int]:
        """The ids of the best path through a text."""
        if self._words is None:
            return self._path(text)
        return [i for word in self._words(text) for i in self._paths[word]]

    def _path(self, text: str) -> list[int]:
        """The best path, back from the end; unknown characters that follow each other are one token, or their bytes."""
        best = self._best(text)
        found: list[int] = []
        end, unknown_end = len(text), 0
        while end:
            start, i = best[end]
            if i is None:
                unknown_end = unknown_end or end
                if not start or best[start][1] is not None:
                    found += self._unknown(text[start:unknown_end])
                    unknown_end = 0
            else:
                found.append(i)
            end = start
        return found[::-1]

    def _best(self, text: str) -> list[tuple[int, int | None]]:
        """For each place of a text where the last token of the best path to it starts, and the id of that token."""
        scores, lengths, size = self.scores, self.lengths, len(text)
        reached = [0.0] + [-math.inf] * size
        best: list[tuple[int, int | None]] = [(0, None)] * (size + 1)
        for start in range(size):
            here = reached[start]
            single = scores.get(text[start])
            score, i = single if single else (self.unk_score, None)
            if here + score > reached[start + 1]:
                reached[start + 1], best[start + 1] = here + score, (start, i)
            for length in lengths.get(text[start : start + 2], ()):
                end = start + length
                if end > size:
                    break
                known = scores.get(text[start:end])
                if known and here + known[0] > reached[end]:
                    reached[end], best[end] = here + known[0], (start, known[1])
        return best

    def _unknown(self, text: str) -> list[int]:
        """The tokens of a run of unknown characters, the last one first."""
        coded = text.encode("utf-8")
        if self.bytes and all(byte in self.bytes for byte in coded):
            return [self.bytes[byte] for byte in reversed(coded)]
        if self.unk_id is None:
            raise DataError("tokenizer: the text has a character that no token stands for", got=repr(text)[:60])
        return [self.unk_id]


def _lengths(tokens: Iterable[str]) -> dict[str, list[int]]:
    """How long the tokens are that begin with two characters: only these are looked up at a place of a text."""
    found: defaultdict[str, set[int]] = defaultdict(set)
    for token in tokens:
        if len(token) > 1:
            found[token[:2]].add(len(token))
    return {start: sorted(sizes) for start, sizes in found.items()}


def _pieces(fields: Fields, name: str = "vocab") -> list[tuple[str, float]]:
    """A list of tokens of the model, `[["token", score], …]`."""
    pieces = fields.get(name, list, "a list of tokens and scores", *([[]] if name != "vocab" else []))
    if len(pieces) > MAX_TOKENS:
        fields.refuse(name, f"at most {MAX_TOKENS} tokens", f"{len(pieces)} tokens")
    found = []
    for i, piece in enumerate(pieces):
        where = f"{fields.where}.{name}[{i}]"
        if not isinstance(piece, (list, tuple)) or len(piece) != 2:
            raise DataError(f"tokenizer: {where} is not valid", "a token and its score", repr(piece)[:60])
        score = piece[1]
        if isinstance(score, bool) or not isinstance(score, (int, float)) or not math.isfinite(score):
            raise DataError(f"tokenizer: the score in {where} is not valid", "a number", repr(score)[:60])
        found.append((token_of(piece[0], where), float(score)))
    return found
