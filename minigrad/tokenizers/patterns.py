"""The regular expressions of pretrained tokenizers, which say where a text is cut into words.

A pattern in a file is code of a stranger: with Python's `re`, a short one can run for hours. So the patterns of known
models are compiled here, and any other one runs under a time limit, by the package `regex`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any

from ..data.errors import DataError
from .characters import compiled

__all__ = ["Matcher", "matcher", "spans"]

SECONDS = 10.0  # for a text, by a pattern that is not known
MAX_PATTERN = 2**14

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace("{1,3}", "")
_WORD = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
_NAME = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
_END = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_REST = r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT4O = f"{_WORD}{_END}|{_NAME}{_END}|{_REST}"
TEKKEN = f"{_WORD}|{_NAME}|{_REST}".replace("{1,3}", "")
DEEPSEEK = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"""
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
KNOWN = {
    "gpt2": GPT2,
    "llama3": LLAMA3,
    "qwen2": QWEN2,
    "gpt4o": GPT4O,
    "tekken": TEKKEN,
    "deepseek": DEEPSEEK,
    "deepseek numbers": r"\p{N}{1,3}",
    "deepseek chinese": "[一-龥\u3040-ゟ゠-ヿ]+",
    "deepseek chinese 1": "[一-龥ࠀ-一가-\ud7ff]+",
    "deepseek marks": r"\s?[!-/:-~！-／：-～‘-‟　-。]+",
    "deepseek end": r"\s+$",
    "deepseek coder letters": r"\s?\p{L}+",
    "deepseek coder marks": r"\s?\p{P}+",
    "qwen35": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    "bloom": r" ?[^(\s|[.,!?…。，、।۔،])]+",
    "clip": r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    "digits": r"\p{N}",
    "three digits": "[0-9][0-9][0-9]",
    "spaces": r"\s+",
    "two spaces": " {2,}",
    "first spaces": r"\A +",
    "last marks": r"▁+\z",
    "lines": r"[\r\n]",
}  # fmt: skip

PROPERTIES = {"L": "LETTER", "N": "NUMBER", "M": "MARK", "P": "PUNCTUATION", "S": "SYMBOL"}
# Unions that stand in brackets as a whole, and sets of `re` that Oniguruma writes in another way.
PHRASES = {
    r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}": "{CAPITAL}",
    r"\p{Ll}\p{Lm}\p{Lo}\p{M}": "{SMALL}",
    "|[.,!?…。，、।۔،])]+": "|.,!?…。，、।۔،)]+",
    r"\z": r"\Z",
}


class Matcher:
    """A pattern that cuts texts; one that is not known has a time limit."""

    def __init__(self, pattern: Any, parts: Any = None, **limits: Any):
        self.pattern, self.parts, self.limits = pattern, parts, limits

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where the pattern matches, from left to right."""
        try:
            for found in self.pattern.finditer(text, **self.limits):
                yield found.span()
        except TimeoutError:
            raise DataError(
                "tokenizer: its regular expression takes too long",
                f"{SECONDS:g} s for a text",
                repr(self.pattern.pattern)[:80],
            ) from None

    def isolated(self, text: str) -> list[str]:
        """The text cut before and after each match."""
        if self.parts is not None:
            return list(filter(None, self.parts.split(text)))
        return [text[start:end] for start, end, _ in spans(self.spans(text), len(text))]

    def replaced(self, text: str, content: str) -> str:
        """The text with each match replaced."""
        if self.parts is not None:
            return str(self.pattern.sub(lambda found: content, text))
        return "".join(
            content if matched else text[start:end] for start, end, matched in spans(self.spans(text), len(text))
        )


def spans(found: Iterator[tuple[int, int]], length: int) -> Iterator[tuple[int, int, bool]]:
    """Matches and what lies between them as (start, end, whether it matched), over a whole text."""
    place = 0
    for start, end in found:
        if start > place:
            yield place, start, False
        yield start, end, True
        place = end
    if place < length:
        yield place, length, False


@functools.cache
def _known() -> frozenset[str]:
    return frozenset(KNOWN.values())


@functools.lru_cache(maxsize=64)
def matcher(pattern: str) -> Matcher:
    """The matcher of a pattern: of `KNOWN` ones by Python's `re`, of others by `regex`, with a time limit."""
    spelt = pattern.replace("\r", r"\r").replace("\n", r"\n")  # some files have the characters themselves
    if spelt in _known():
        own = translated(spelt)
        return Matcher(compiled(own), compiled(f"({own})"))
    try:
        import regex
    except ImportError:
        raise DataError(
            "tokenizer: its regular expression is not one of a known model",
            f"the pattern of {', '.join(KNOWN)}",
            repr(pattern)[:80],
            "pip install regex, which runs any pattern under a time limit",
        ) from None
    try:
        return Matcher(regex.compile(pattern, regex.MULTILINE), timeout=SECONDS)
    except (regex.error, RecursionError, OverflowError) as error:
        raise DataError(f"tokenizer: its regular expression is not valid: {error}", got=repr(pattern)[:80]) from None


def translated(pattern: str) -> str:
    r"""A known pattern as one of ours: `re` has no `\p{L}`, and four characters more in its `\s`.

    >>> translated(r" ?\p{L}+|[^\s\p{L}]+|\s+(?!\S)")
    ' ?[{LETTER}]+|[^{SPACE}{LETTER}]+|[{SPACE}]+(?![^{SPACE}])'
    """
    for phrase, ours in PHRASES.items():
        pattern = pattern.replace(phrase, ours)
    parts, inside, place = [], False, 0
    for found in re.finditer(r"\\p\{(\w+)\}|\\([sS])|\\.|[\[\]]", pattern):
        text = found[0]
        if found[1] or found[2]:
            name = "{" + (PROPERTIES[found[1]] if found[1] else "SPACE") + "}"
            text = name if inside else f"[{'^' * (found[2] == 'S')}{name}]"
        elif text in "[]":
            inside = text == "["
        parts += [pattern[place : found.start()], text]
        place = found.end()
    return "".join([*parts, pattern[place:]])
