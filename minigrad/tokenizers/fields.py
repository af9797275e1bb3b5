"""Reading the parts of a `tokenizer.json` that anybody may have written: every field is checked, and errors name it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

from ..data.errors import DataError
from ..errors import nearest

__all__ = ["MAX_TOKENS", "MAX_TOKEN_LENGTH", "Fields", "built", "token_of"]

MAX_TOKENS = 2**21
MAX_TOKEN_LENGTH = 2**12  # characters
MAX_PARTS = 64  # parts of a sequence, and fields of a template
MAX_DEPTH = 8  # sequences inside sequences

REQUIRED: Any = object()
T = TypeVar("T")


class Fields:
    """An object of the file: `text("prepend")` is the field of that name, checked, or an error that says where it is."""

    def __init__(self, values: Any, where: str, depth: int = 0):
        if not isinstance(values, Mapping):
            raise DataError(f"tokenizer: {where} is not an object", "{…}", repr(values)[:60])
        if depth > MAX_DEPTH:
            raise DataError(f"tokenizer: {where} is nested too deeply", f"at most {MAX_DEPTH} levels")
        self.values, self.where, self.depth = values, where, depth

    def get(self, name: str, kind: Any, words: str, default: Any = REQUIRED) -> Any:
        """The field of a type; a missing one, or null, is the default."""
        value = self.values.get(name)
        if value is None and default is not REQUIRED:
            return default
        if not isinstance(value, kind) or isinstance(value, bool) and kind is not bool:
            self.refuse(name, words, value)
        return value

    def refuse(self, name: str, expected: object, value: Any) -> NoReturn:
        """The error for a field."""
        got = "nothing" if value is None else repr(value)[:60]
        raise DataError(f"tokenizer: {self.where}.{name} is not valid", expected, got)

    def text(self, name: str, default: Any = REQUIRED, longest: int = MAX_TOKEN_LENGTH) -> Any:
        """A text of bounded length."""
        value = self.get(name, str, "a text", default)
        if value is not None and len(value) > longest:
            self.refuse(name, f"at most {longest} characters", value)
        return value

    def flag(self, name: str, default: Any = REQUIRED) -> Any:
        """True or false."""
        return self.get(name, bool, "true or false", default)

    def number(self, name: str, default: Any = REQUIRED, greatest: int = MAX_TOKENS) -> Any:
        """A whole number from 0 up."""
        value = self.get(name, int, "a whole number", default)
        if value is not None and not 0 <= value <= greatest:
            self.refuse(name, f"0 to {greatest}", value)
        return value

    def numbers(self, name: str) -> frozenset[int]:
        """A list of whole numbers, as a set; empty if it is missing."""
        values = self.get(name, list, "a list of whole numbers", [])
        if len(values) > MAX_TOKENS or not all(type(value) is int for value in values):
            self.refuse(name, "a list of whole numbers", values[:4])
        return frozenset(values)

    def texts(self, name: str) -> list[str]:
        """A list of texts that are not empty; empty if it is missing."""
        values = self.get(name, list, "a list of texts", [])
        if len(values) > MAX_TOKENS or not all(isinstance(value, str) and value for value in values):
            self.refuse(name, "a list of texts", values[:4])
        return [token_of(value, f"{self.where}.{name}") for value in values]

    def choice(self, name: str, choices: Mapping[str, T], default: Any = REQUIRED) -> T:
        """The value that one of some names stands for."""
        value = self.get(name, str, " or ".join(choices), default)
        if value not in choices:
            self.refuse(name, " or ".join(choices), value)
        return choices[value]

    def object(self, name: str, default: Any = REQUIRED) -> Fields:
        """An object inside this one."""
        return Fields(self.get(name, Mapping, "an object", default), f"{self.where}.{name}", self.depth + 1)

    def objects(self, name: str, most: int = MAX_PARTS) -> list[Fields]:
        """A list of objects."""
        values = self.get(name, list, "a list")
        if len(values) > most:
            self.refuse(name, f"at most {most} parts", f"{len(values)} parts")
        return [Fields(value, f"{self.where}.{name}[{i}]", self.depth + 1) for i, value in enumerate(values)]


def built(fields: Fields, kinds: Mapping[str, Callable[[Fields], T]]) -> T:
    """The part that an object describes: its `type` names one of `kinds`, which reads the rest."""
    kind = fields.text("type")
    if kind not in kinds:
        raise DataError(
            f"tokenizer: {fields.where} is of a type that is not known here",
            got=repr(kind[:60]),
            fix=nearest(kind[:60], kinds),
        )
    return kinds[kind](fields)


def token_of(value: Any, where: str) -> str:
    """A token of a vocabulary: a text of bounded length with no half of a surrogate pair."""
    if not isinstance(value, str) or len(value) > MAX_TOKEN_LENGTH:
        expected = f"a text of at most {MAX_TOKEN_LENGTH} characters"
        raise DataError(f"tokenizer: {where} has a token that is not valid", expected, repr(value)[:60])
    return value
