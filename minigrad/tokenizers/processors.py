"""Post-processors: the special tokens around one text or two, such as `[CLS] A [SEP] B [SEP]`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .fields import MAX_TOKENS, Fields, built

__all__ = ["PROCESSORS", "Part", "PostProcessor", "post_processor"]

MAX_TEMPLATE = 256  # pieces


@dataclass(frozen=True)
class Part:
    """Some ids of a sequence, all of one token type."""

    ids: list[int]
    type_id: int = 0


# From one part for each text, and whether special tokens are wanted, to all parts.
PostProcessor = Callable[[list[Part], bool], list[Part]]


def _template(fields: Fields) -> PostProcessor:
    tokens = _special_tokens(fields)
    single, pair = _pieces(fields, "single", tokens), _pieces(fields, "pair", tokens)

    def process(texts: list[Part], special: bool) -> list[Part]:
        parts = []
        for ids, number, type_id in single if len(texts) == 1 else pair:
            if ids is None:
                parts.append(Part(texts[min(number, len(texts) - 1)].ids, type_id))
            elif special:
                parts.append(Part(ids, type_id))
        return parts

    return process


def _special_tokens(fields: Fields) -> dict[str, list[int]]:
    found: dict[str, Any] = {}
    tokens = fields.object("special_tokens")
    for name in tokens.values:
        ids = tokens.object(name).get("ids", list, "a list of ids")
        if len(ids) > MAX_TEMPLATE or not all(type(i) is int and 0 <= i < MAX_TOKENS for i in ids):
            tokens.refuse(f"{name}.ids", f"ids from 0 to {MAX_TOKENS - 1}", ids[:4])
        found[name] = ids
    return found


def _pieces(fields: Fields, name: str, tokens: dict[str, list[int]]) -> list[tuple[list[int] | None, int, int]]:
    """The pieces of a template as (ids of a special token or None, number of the text, token type)."""
    pieces: list[tuple[list[int] | None, int, int]] = []
    for piece in fields.objects(name, MAX_TEMPLATE):
        if "Sequence" in piece.values:
            text = piece.object("Sequence")
            pieces.append((None, text.choice("id", {"A": 0, "B": 1}), text.number("type_id", 0)))
        else:
            token = piece.object("SpecialToken")
            ids = (
                token.choice("id", tokens) if tokens else token.refuse("id", "a special token", token.values.get("id"))
            )
            pieces.append((ids, 0, token.number("type_id", 0)))
    return pieces


def _token_and_id(fields: Fields, name: str) -> int:
    pair = fields.get(name, list, "a token and its id")
    if len(pair) != 2 or type(pair[1]) is not int or not 0 <= pair[1] < MAX_TOKENS:
        fields.refuse(name, "a token and its id", pair)
    number: int = pair[1]
    return number


def _bert(fields: Fields) -> PostProcessor:
    cls, sep = _token_and_id(fields, "cls"), _token_and_id(fields, "sep")

    def process(texts: list[Part], special: bool) -> list[Part]:
        if not special:
            return texts
        first, *rest = texts
        return [Part([cls, *first.ids, sep], 0), *(Part([*text.ids, sep], 1) for text in rest)]

    return process


def _roberta(fields: Fields) -> PostProcessor:
    cls, sep = _token_and_id(fields, "cls"), _token_and_id(fields, "sep")

    def process(texts: list[Part], special: bool) -> list[Part]:
        if not special:
            return [Part(text.ids, 0) for text in texts]
        first, *rest = texts
        return [Part([cls, *first.ids, sep], 0), *(Part([sep, *text.ids, sep], 0) for text in rest)]

    return process


def _sequence(fields: Fields) -> PostProcessor:
    parts = [post_processor(part) for part in fields.objects("processors")]

    def process(texts: list[Part], special: bool) -> list[Part]:
        for part in parts:
            texts = part(texts, special)
        return texts

    return process


PROCESSORS: dict[str, Callable[[Fields], PostProcessor]] = {
    "TemplateProcessing": _template,
    "BertProcessing": _bert,
    "RobertaProcessing": _roberta,
    "ByteLevel": lambda fields: lambda texts, special: texts,  # it trims offsets only, which are not kept here
    "Sequence": _sequence,
}


def post_processor(fields: Fields) -> PostProcessor:
    """The post-processor that an object of a file describes.

    >>> fields = Fields({"type": "BertProcessing", "cls": ["[CLS]", 101], "sep": ["[SEP]", 102]}, "post_processor")
    >>> post_processor(fields)([Part([7, 8])], True)
    [Part(ids=[101, 7, 8, 102], type_id=0)]
    """
    return built(fields, PROCESSORS)
