"""Decoders: how the tokens of a text are put together again. Each is a function from texts to texts, joined at last."""

from __future__ import annotations

import re
from collections.abc import Callable

from .byte_level import to_bytes
from .fields import Fields, built
from .normalizers import replace

__all__ = ["DECODERS", "Decoder", "decoder"]

Decoder = Callable[[list[str]], list[str]]

BROKEN = "\ufffd"
BYTE = re.compile("<0x([0-9A-Fa-f]{2})>")
# Spaces that English writes without, each in its turn.
CLEANUP = (
    (" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"), (" 'm", "'m"), (" do not", " don't"),
    (" 's", "'s"), (" 've", "'ve"), (" 're", "'re"),
)  # fmt: skip


def byte_level(tokens: list[str]) -> list[str]:
    """Characters that stand for bytes, as the text that these bytes are."""
    return [b"".join(map(to_bytes, tokens)).decode("utf-8", errors="replace")]


def byte_fallback(tokens: list[str]) -> list[str]:
    """Tokens such as `<0xE2>` that follow each other, as the text of their bytes; where they make none, each is `\ufffd`."""
    result: list[str] = []
    pending = bytearray()
    for token in [*tokens, None]:
        found = BYTE.fullmatch(token) if token is not None else None
        if found:
            pending.append(int(found[1], 16))
            continue
        if pending:
            try:
                result.append(pending.decode("utf-8"))
            except UnicodeDecodeError:
                result += [BROKEN] * len(pending)
            pending.clear()
        if token is not None:
            result.append(token)
    return result


def cleaned(text: str) -> str:
    """Without the spaces before punctuation that a tokenizer of words makes."""
    for spaced, plain in CLEANUP:
        text = text.replace(spaced, plain)
    return text


def _wordpiece(fields: Fields) -> Decoder:
    prefix, cleanup = fields.text("prefix", "##"), fields.flag("cleanup", True)

    def joined(i: int, token: str) -> str:
        if i:
            token = token.removeprefix(prefix) if prefix and token.startswith(prefix) else " " + token
        return cleaned(token) if cleanup else token

    return lambda tokens: [joined(i, token) for i, token in enumerate(tokens)]


def _metaspace(fields: Fields) -> Decoder:
    mark = fields.text("replacement", "▁")
    scheme = fields.choice("prepend_scheme", {"always": True, "first": True, "never": False}, "always")
    first = "" if scheme and fields.flag("add_prefix_space", True) else " "
    return lambda tokens: [token.replace(mark, " " if i else first) for i, token in enumerate(tokens)]


def _bpe(fields: Fields) -> Decoder:
    suffix = fields.text("suffix", "</w>")

    def decode(tokens: list[str]) -> list[str]:
        if not suffix:
            return tokens
        return [token.replace(suffix, " " if i < len(tokens) - 1 else "") for i, token in enumerate(tokens)]

    return decode


def _strip(fields: Fields) -> Decoder:
    content = fields.text("content")
    start, stop = fields.number("start", 0), fields.number("stop", 0)

    def stripped(token: str) -> str:
        first = next((i for i, c in enumerate(token[:start]) if c != content), min(start, len(token)))
        kept = token[first:]
        last = next(
            (i for i, c in enumerate(reversed(kept[-stop:] if stop else "")) if c != content), min(stop, len(kept))
        )
        return kept[: len(kept) - last]

    return lambda tokens: [stripped(token) for token in tokens]


def _replace(fields: Fields) -> Decoder:
    replaced = replace(fields)
    return lambda tokens: [replaced(token) for token in tokens]


def _ctc(fields: Fields) -> Decoder:
    pad, delimiter = fields.text("pad_token", "<pad>"), fields.text("word_delimiter_token", "|")
    cleanup = fields.flag("cleanup", True)

    def decode(tokens: list[str]) -> list[str]:
        once = [token for i, token in enumerate(tokens) if not i or token != tokens[i - 1]]
        kept = [token.replace(pad, "") if pad else token for token in once]
        return [cleaned(token).replace(delimiter, " ") if cleanup else token for token in kept if token]

    return decode


def _sequence(fields: Fields) -> Decoder:
    parts = [decoder(part) for part in fields.objects("decoders")]

    def decode(tokens: list[str]) -> list[str]:
        for part in parts:
            tokens = part(tokens)
        return tokens

    return decode


DECODERS: dict[str, Callable[[Fields], Decoder]] = {
    "ByteLevel": lambda fields: byte_level,
    "WordPiece": _wordpiece,
    "Metaspace": _metaspace,
    "BPEDecoder": _bpe,
    "ByteFallback": lambda fields: byte_fallback,
    "Fuse": lambda fields: lambda tokens: ["".join(tokens)],
    "Replace": _replace,
    "Strip": _strip,
    "CTC": _ctc,
    "Sequence": _sequence,
}


def decoder(fields: Fields) -> Decoder:
    """The decoder that an object of a file describes.

    >>> decoder(Fields({"type": "WordPiece"}, "decoder"))(["un", "##know", "##n", "!"])
    ['un', 'know', 'n', '!']
    """
    return built(fields, DECODERS)
