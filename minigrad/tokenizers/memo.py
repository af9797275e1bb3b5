"""A dictionary that computes what it does not have: words of a text return, and are worked out once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Memo"]

MAX_ENTRIES = 2**16
MAX_LENGTH = 256  # characters of a key; what is longer hardly returns

V = TypeVar("V")


class Memo(dict[str, V], Generic[V]):
    """`memo[text]` is `function(text)`, kept for the next time, up to a number of entries.

    >>> lengths = Memo(len)
    >>> lengths["word"], dict(lengths)
    (4, {'word': 4})
    """

    def __init__(self, function: Callable[[str], V]):
        super().__init__()
        self.function = function

    def __missing__(self, key: str) -> V:
        value = self.function(key)
        if len(self) < MAX_ENTRIES and len(key) <= MAX_LENGTH:
            self[key] = value
        return value
