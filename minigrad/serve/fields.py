"""Reads the fields of a JSON object, each with its type and range; what is wrong or unknown is refused by name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import nearest
from .http import Refusal

__all__ = ["Fields"]

MOST_STOPS = 16


class Fields:
    """The fields of a request. Each is asked for by name, and `close` refuses those that nobody asked for.

    >>> fields = Fields({"temperature": 0.5})
    >>> fields.number("temperature", 1.0, 0, 2), fields.whole("tokens", 16, 1, 100)
    (0.5, 16)
    >>> fields.close()
    """

    def __init__(self, given: Mapping[str, Any]):
        self.given = given
        self.known: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a field, or the default where it is missing or null."""
        self.known.add(name)
        value = self.given.get(name)
        return default if value is None else value

    def refuse(self, name: str, expected: str) -> Refusal:
        """The error for a field of another kind than expected."""
        return Refusal(400, f"{name} has to be {expected}", name)

    def text(self, name: str, default: str | None = None) -> str:
        """A string; without a default it is needed."""
        value = self.get(name, default)
        if not isinstance(value, str):
            raise self.refuse(name, "a text")
        return _whole_characters(value, name)

    def texts(self, name: str, most: int) -> list[str]:
        """A string, or a list of some."""
        value = self.get(name)
        found = [value] if isinstance(value, str) else value
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found) or len(found) > most:
            raise self.refuse(name, f"a text, or a list of at most {most} texts")
        return [_whole_characters(one, name) for one in found]

    def stops(self, name: str = "stop") -> list[str]:
        """Texts to end before."""
        found = [] if self.get(name) is None else self.texts(name, MOST_STOPS)
        if not all(found):
            raise self.refuse(name, "of texts that are not empty")
        return found

    def number(self, name: str, default: float, least: float, most: float) -> float:
        """A number in a range."""
        value = self.get(name, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise self.refuse(name, "a number")
        if not least <= value <= most:
            raise self.refuse(name, f"a number from {least:g} to {most:g}")
        return float(value)

    def whole(self, name: str, default: Any, least: int, most: int) -> Any:
        """A whole number in a range; the default may be None."""
        value = self.get(name, default)
        if value is default and default is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.refuse(name, f"a whole number from {least:,} to {most:,}")
        return value

    def flag(self, name: str) -> bool:
        """True or false, which it is unless given."""
        value = self.get(name, False)
        if not isinstance(value, bool):
            raise self.refuse(name, "true or false")
        return value

    def only(self, name: str, allowed: Sequence[Any]) -> None:
        """Refuse a field that asks for what this server cannot do."""
        value = self.get(name)
        if value is not None and value not in allowed:
            shown = " or ".join(repr(one) for one in allowed) or "left out"
            raise Refusal(400, f"{name} has to be {shown}: this server does nothing else", name, "unsupported")

    def ignore(self, *names: str) -> None:
        """Fields that change no answer."""
        self.known.update(names)

    def close(self) -> None:
        """Refuse fields that nobody asked for."""
        for name in sorted(set(self.given) - self.known):
            raise Refusal(400, f"there is no field {name!r}: {nearest(name, sorted(self.known))}"[:300], name[:60])


def _whole_characters(text: str, name: str) -> str:
    """A text without halves of surrogate pairs, which JSON can spell and no tokenizer knows."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refusal(400, f"{name} has half a character in it: a surrogate without its pair", name) from None
    return text
