"""Tokens and their ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..data.errors import DataError
from .fields import MAX_TOKENS, Fields, token_of

__all__ = ["MARK", "Vocabulary", "byte_tokens", "words_at_marks"]

MARK = "▁"  # stands for a space in the tokens of sentencepiece


class Vocabulary:
    """Tokens by id, and ids by token; an id may have no token."""

    def __init__(self, pairs: Iterable[tuple[str, int]]):
        self.ids = dict(pairs)
        size = max(self.ids.values(), default=-1) + 1
        self.tokens = [""] * size
        self.known = [False] * size
        for token, i in self.ids.items():
            self.tokens[i], self.known[i] = token, True

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def of_mapping(cls, fields: Fields) -> Vocabulary:
        """The `vocab` of a model, `{"token": id, …}`."""
        found: Any = fields.get("vocab", Mapping, "an object of tokens and ids")
        where = f"{fields.where}.vocab"
        if len(found) > MAX_TOKENS:
            fields.refuse("vocab", f"at most {MAX_TOKENS} tokens", f"{len(found)} tokens")
        for token, i in found.items():
            token_of(token, where)
            if type(i) is not int or not 0 <= i < MAX_TOKENS:
                raise DataError(
                    f"tokenizer: {where} has an id that is not valid", f"0 to {MAX_TOKENS - 1}", repr(i)[:60]
                )
        return cls(found.items())

    def token(self, i: int) -> str | None:
        """The token of an id, or None."""
        return self.tokens[i] if 0 <= i < len(self.tokens) and self.known[i] else None


def byte_tokens(ids: Mapping[str, int]) -> dict[int, int]:
    """Byte -> the id of its token, `<0x00>` to `<0xFF>`, which stands for a byte of a character that has no token."""
    return {byte: ids[name] for byte in range(256) if (name := f"<0x{byte:02X}>") in ids}


def words_at_marks(tokens: Iterable[str]) -> Callable[[str], list[str]] | None:
    """Cuts a text before the marks of spaces, if no token reaches across such a place; None if one does.

    The tokens of a text are then those of its words, and words return: what was found for one is found again.
    """
    inside = re.compile(f"[^{MARK}]{MARK}")
    if MARK not in tokens or any(MARK in token and inside.search(token) for token in tokens):
        return None
    return re.compile(f"{MARK}*[^{MARK}]+|{MARK}+").findall
