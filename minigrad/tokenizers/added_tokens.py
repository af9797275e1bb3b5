"""Added tokens: texts that are tokens as a whole, such as `<|im_start|>`, found before anything else is done."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from .characters import SPACES, in_class
from .fields import MAX_TOKENS, Fields
from .normalizers import Normalizer
from .vocabulary import Vocabulary

__all__ = ["AddedToken", "AddedTokens"]


@dataclass(frozen=True)
class AddedToken:
    """One of them: `lstrip` and `rstrip` take the spaces beside it along; `single_word` wants no letter beside it.

    A `normalized` one is looked for in the normalised text, and in its own normalised form.
    """

    content: str
    id: int
    special: bool = False
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = True


class AddedTokens:
    """All added tokens of a tokenizer."""

    def __init__(self, fields: list[Fields], vocabulary: Vocabulary, normalize: Normalizer | None):
        self.by_id: dict[int, AddedToken] = {}
        self.forms: dict[int, str] = {}  # what stands for them in a normalised text
        known = dict[str, int]()
        for entry in fields:
            token = _read(entry)
            if not token.content:
                continue
            number = known.get(token.content, vocabulary.ids.get(token.content))
            if number is None:  # the next one that is free, whatever number the file gives
                number = max(len(vocabulary), max(self.by_id, default=-1) + 1)
            known[token.content] = number
            self.by_id[number] = replace(token, id=number)
            self.forms[number] = normalize(token.content) if normalize and token.normalized else token.content
        self.ids = known
        self.special = frozenset(token.content for token in self.by_id.values() if token.special)
        self._plain = _Finder({self.forms[i]: t for i, t in self.by_id.items() if not t.normalized})
        self._normal = _Finder({self.forms[i]: t for i, t in self.by_id.items() if t.normalized})

    def pieces(self, text: str, normalize: Normalizer | None) -> Iterator[tuple[str, int | None, bool]]:
        """The text in pieces (normalised text, id of an added token or None, whether the text begins with it)."""
        for start, part, token in self._plain.split(text):
            if token is not None:
                yield part, token.id, not start
                continue
            normal = normalize(part) if normalize else part
            for inner, piece, found in self._normal.split(normal):
                yield piece, None if found is None else found.id, not start and not inner


class _Finder:
    """Finds some added tokens in a text, the leftmost first, of several there the longest."""

    def __init__(self, tokens: dict[str, AddedToken]):
        self.tokens = {content: token for content, token in tokens.items() if content}
        self.lengths: defaultdict[str, set[int]] = defaultdict(set)  # of those that begin with two characters, or one
        for content in self.tokens:
            self.lengths[content[:2]].add(len(content))
        firsts = "".join(sorted({re.escape(content[0]) for content in self.tokens}))
        self.start = re.compile(f"[{firsts}]") if firsts else None

    def matches(self, text: str) -> Iterator[tuple[int, int]]:
        """Where added tokens are: (start, end)."""
        place = 0
        while self.start and (found := self.start.search(text, place)):
            start = found.start()
            lengths = {*self.lengths.get(text[start : start + 2], ()), *self.lengths.get(text[start], ())}
            fitting = (n for n in sorted(lengths, reverse=True) if text[start : start + n] in self.tokens)
            length = next(fitting, 0)
            place = start + max(length, 1)
            if length:
                yield start, place

    def split(self, text: str) -> Iterator[tuple[int, str, AddedToken | None]]:
        """All of a text as (start, piece, added token or None); no piece is empty."""
        place = 0
        for start, end in self.matches(text):
            token = self.tokens[text[start:end]]
            if token.single_word and (_is_word(text[start - 1 : start]) or _is_word(text[end : end + 1])):
                continue
            if token.lstrip:
                while start > place and text[start - 1] in SPACES:
                    start -= 1
            if token.rstrip:
                while end < len(text) and text[end] in SPACES:
                    end += 1
            if start > place:
                yield place, text[place:start], None
            yield start, text[start:end], token
            place = end
        if place < len(text):
            yield place, text[place:], None


def _is_word(character: str) -> bool:
    return bool(character) and in_class("WORD", character)


def _read(fields: Fields) -> AddedToken:
    return AddedToken(
        fields.text("content"),
        fields.number("id", 0, MAX_TOKENS),
        fields.flag("special", False),
        fields.flag("single_word", False),
        fields.flag("lstrip", False),
        fields.flag("rstrip", False),
        fields.flag("normalized", True),
    )
