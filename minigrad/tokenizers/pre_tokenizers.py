"""Pre-tokenisers: how a text is cut into words, inside of which the model then finds its tokens.

Each is a function from pieces to smaller pieces. A piece knows whether it is the beginning of the text, because some
tokenizers put a space before the first word only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from ..data.errors import DataError
from .byte_level import to_characters
from .characters import compiled
from .fields import Fields, built
from .memo import Memo
from .patterns import GPT2, MAX_PATTERN, Matcher, matcher, spans

__all__ = ["PRE_TOKENIZERS", "PreTokenizer", "pre_tokenizer"]

Span = tuple[int, int, bool]
Cut = Callable[[str], list[str]]
# From the pieces of a text, and whether the first is where the text begins, to smaller pieces.
PreTokenizer = Callable[[list[str], bool], list[str]]


def isolated(found: Iterable[Span]) -> list[tuple[int, int]]:
    """Each match is a piece of its own."""
    return [(start, end) for start, end, _ in found]


def removed(found: Iterable[Span]) -> list[tuple[int, int]]:
    """Matches are left out."""
    return [(start, end) for start, end, matched in found if not matched]


def contiguous(found: Iterable[Span]) -> list[tuple[int, int]]:
    """Matches that follow each other are one piece."""
    pieces: list[tuple[int, int]] = []
    last: bool | None = None
    for start, end, matched in found:
        if matched == last:
            pieces[-1] = pieces[-1][0], end
        else:
            pieces.append((start, end))
        last = matched
    return pieces


def merged_with_previous(found: Iterable[Span]) -> list[tuple[int, int]]:
    """A match is the end of the piece before it, unless that ends with a match."""
    pieces: list[tuple[int, int]] = []
    last = False
    for start, end, matched in found:
        if matched and not last and pieces:
            pieces[-1] = pieces[-1][0], end
        else:
            pieces.append((start, end))
        last = matched
    return pieces


def merged_with_next(found: Iterable[Span]) -> list[tuple[int, int]]:
    """A match is the beginning of the piece after it, unless that begins with a match."""
    pieces: list[tuple[int, int]] = []
    last = False
    for start, end, matched in reversed(list(found)):
        if matched and not last and pieces:
            pieces[-1] = start, pieces[-1][1]
        else:
            pieces.append((start, end))
        last = matched
    return pieces[::-1]


BEHAVIORS = {
    "Removed": removed,
    "Isolated": isolated,
    "MergedWithPrevious": merged_with_previous,
    "MergedWithNext": merged_with_next,
    "Contiguous": contiguous,
}


def each(cut: Cut) -> PreTokenizer:
    """A pre-tokeniser that cuts every piece in the same way."""
    return lambda pieces, at_start: [word for piece in pieces for word in cut(piece)]


def found_by(pattern: str) -> PreTokenizer:
    """The pieces are the matches of a regular expression of ours, and the rest is left out."""
    return each(compiled(pattern).findall)


def cut_by(found: Matcher, behavior: Callable[[Iterable[Span]], list[tuple[int, int]]], invert: bool) -> Cut:
    """Cuts a text at the matches of a pattern."""

    def cut(text: str) -> list[str]:
        marked: Iterator[Span] = spans(found.spans(text), len(text))
        if invert:
            marked = ((start, end, not matched) for start, end, matched in marked)
        return [text[start:end] for start, end in behavior(marked) if end > start]

    return found.isolated if behavior is isolated else cut


def _split(fields: Fields) -> PreTokenizer:
    pattern = fields.object("pattern")
    if "String" in pattern.values:
        found = Matcher(re.compile(re.escape(pattern.text("String")) or "(?!)"))
    else:
        found = matcher(pattern.text("Regex", longest=MAX_PATTERN))
    return each(cut_by(found, fields.choice("behavior", BEHAVIORS), fields.flag("invert", False)))


def _byte_level(fields: Fields) -> PreTokenizer:
    prefix, by_regex = fields.flag("add_prefix_space", True), fields.flag("use_regex", True)
    cut, letters = matcher(GPT2).isolated, Memo(to_characters)

    def pre_tokenize(pieces: list[str], at_start: bool) -> list[str]:
        if prefix:
            pieces = [piece if piece.startswith(" ") else " " + piece for piece in pieces]
        words = [word for piece in pieces for word in cut(piece)] if by_regex else pieces
        return list(map(letters.__getitem__, words))

    return pre_tokenize


def _metaspace(fields: Fields) -> PreTokenizer:
    mark = fields.text("replacement", "▁")
    if len(mark) != 1:
        raise DataError(f"tokenizer: {fields.where}.replacement is not one character", "such as '▁'", repr(mark[:60]))
    scheme = fields.choice("prepend_scheme", {"always": 2, "first": 1, "never": 0}, "always")
    scheme = 0 if fields.flag("add_prefix_space", True) is False else scheme
    words = re.compile(f"{re.escape(mark)}?[^{re.escape(mark)}]+|{re.escape(mark)}").findall
    split = fields.flag("split", True)

    def pre_tokenize(pieces: list[str], at_start: bool) -> list[str]:
        result: list[str] = []
        for number, piece in enumerate(pieces):
            text = piece.replace(" ", mark)
            if (scheme == 2 or scheme == 1 and at_start and not number) and not text.startswith(mark):
                text = mark + text
            result += words(text) if split else [text]
        return result

    return pre_tokenize


def _punctuation(fields: Fields) -> PreTokenizer:
    behavior = fields.choice("behavior", BEHAVIORS, "Isolated")
    return each(cut_by(Matcher(compiled("[{BERT_PUNCTUATION}]")), behavior, False))


def _digits(fields: Fields) -> PreTokenizer:
    single = fields.flag("individual_digits", False)
    return found_by("[{NUMERIC}]|[^{NUMERIC}]+" if single else "[{NUMERIC}]+|[^{NUMERIC}]+")


def _delimiter(fields: Fields) -> PreTokenizer:
    delimiter = fields.text("delimiter")
    return each(lambda text: [piece for piece in text.split(delimiter) if piece] if delimiter else [text])


def _sequence(fields: Fields) -> PreTokenizer:
    parts = [pre_tokenizer(part) for part in fields.objects("pretokenizers")]

    def pre_tokenize(pieces: list[str], at_start: bool) -> list[str]:
        for part in parts:
            first = pieces[0] if pieces else ""
            pieces = part(pieces, at_start)
            at_start = at_start and bool(pieces) and first.startswith(pieces[0])
        return pieces

    return pre_tokenize


PRE_TOKENIZERS: dict[str, Callable[[Fields], PreTokenizer]] = {
    "ByteLevel": _byte_level,
    "Whitespace": lambda fields: found_by("[{WORD}]+|[^{WORD}{SPACE}]+"),
    "WhitespaceSplit": lambda fields: found_by("[^{SPACE}]+"),
    "BertPreTokenizer": lambda fields: found_by("[{BERT_PUNCTUATION}]|[^{SPACE}{BERT_PUNCTUATION}]+"),
    "Metaspace": _metaspace,
    "Split": _split,
    "Punctuation": _punctuation,
    "Digits": _digits,
    "CharDelimiterSplit": _delimiter,
    "Sequence": _sequence,
}


def pre_tokenizer(fields: Fields) -> PreTokenizer:
    """The pre-tokeniser that an object of a file describes.

    >>> pre_tokenizer(Fields({"type": "BertPreTokenizer"}, "pre_tokenizer"))(["Don't!  Go."], True)
    ['Don', "'", 't', '!', 'Go', '.']
    """
    return built(fields, PRE_TOKENIZERS)
