"""Models of SentencePiece (`.model`, `.spm`): pieces with scores, how text is normalised, and what is special."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...data.errors import DataError
from ..fields import MAX_TOKENS, token_of
from ..vocabulary import MARK
from .protobuf import Value, fields_of, float_of
from .templates import added_token

__all__ = ["BYTE", "CONTROL", "NORMAL", "UNKNOWN", "UNUSED", "USER_DEFINED", "Piece", "Spec", "read_model", "spec_json"]

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
UNIGRAM, BPE = 1, 2


@dataclass(frozen=True)
class Piece:
    """A token with its score and its type."""

    text: str
    score: float = 0.0
    type: int = NORMAL


@dataclass
class Spec:
    """What a model of SentencePiece says, as far as it concerns encoding and decoding."""

    pieces: list[Piece] = field(default_factory=list)
    kind: int = UNIGRAM
    byte_fallback: bool = False
    charsmap: bytes = b""
    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True
    escape_whitespaces: bool = True
    whitespace_as_suffix: bool = False
    unknown_pieces: list[Piece] = field(default_factory=list)  # known to the model, and unknown to its vocabulary


def read_model(data: bytes, where: str = "sentencepiece model") -> Spec:
    """The bytes of a `.model` or `.spm` file."""
    spec = Spec()
    for number, value in fields_of(data, where):
        if number == 1:
            spec.pieces.append(_piece(_message(value, where), where))
            if len(spec.pieces) > MAX_TOKENS:
                raise DataError(f"{where}: too many pieces", f"at most {MAX_TOKENS}")
        elif number == 2:
            trainer = dict(fields_of(_message(value, where), where))
            spec.kind = _number(trainer.get(3, UNIGRAM))
            spec.whitespace_as_suffix, spec.byte_fallback = bool(trainer.get(24, 0)), bool(trainer.get(35, 0))
        elif number == 3:
            normalizer = dict(fields_of(_message(value, where), where))
            spec.charsmap = _message(normalizer.get(2, b""), where)
            spec.add_dummy_prefix = bool(normalizer.get(3, 1))
            spec.remove_extra_whitespaces = bool(normalizer.get(4, 1))
            spec.escape_whitespaces = bool(normalizer.get(5, 1))
    if not spec.pieces:
        raise DataError(f"{where}: it has no pieces", "a model of sentencepiece")
    return spec


def spec_json(spec: Spec) -> dict[str, Any]:
    """The description of a tokenizer that gives the ids of SentencePiece.

    What `tokenizers` cannot express is in fields of ours, which it ignores: `longest_match`, `kept`, `rank_by_token`,
    `user_defined_ids`, `hidden_ids`, `unknown_pieces`.
    """
    if spec.kind not in (UNIGRAM, BPE):
        raise DataError("sentencepiece: models of words or characters are not read", "unigram or BPE", spec.kind)
    if spec.whitespace_as_suffix or not spec.escape_whitespaces:
        raise DataError("sentencepiece: spaces at the end of words, or not escaped, are not read")
    pieces = spec.pieces
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [
            added_token(piece.text, i, special=True) for i, piece in enumerate(pieces) if piece.type in (CONTROL, UNKNOWN)
        ],
        "normalizer": {"type": "Sequence", "normalizers": _normalizers(spec)},
        "pre_tokenizer": None, "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": _decoders(spec)},
        "model": _bpe(spec) if spec.kind == BPE else _unigram(spec),
    }  # fmt: skip


def _normalizers(spec: Spec) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    if spec.charsmap:
        kept = [piece.text for piece in spec.pieces if piece.type == USER_DEFINED]
        coded = base64.b64encode(spec.charsmap).decode("ascii")
        parts.append({"type": "Precompiled", "precompiled_charsmap": coded, "longest_match": True, "kept": kept})
    if spec.remove_extra_whitespaces:
        parts += [_replaced({"Regex": r"\A +"}, ""), _replaced({"Regex": " {2,}"}, " ")]
    if spec.add_dummy_prefix:
        parts.append({"type": "Prepend", "prepend": MARK})
    parts.append(_replaced({"String": " "}, MARK))
    if spec.remove_extra_whitespaces:
        parts.append(_replaced({"Regex": rf"{MARK}+\z"}, ""))
    return parts


def _decoders(spec: Spec) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [_replaced({"String": MARK}, " ")]
    parts += [{"type": "ByteFallback"}] if spec.byte_fallback else []
    parts.append({"type": "Fuse"})
    return [*parts, {"type": "Strip", "content": " ", "start": 1, "stop": 0}] if spec.add_dummy_prefix else parts


def _replaced(pattern: dict[str, str], content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


def _unigram(spec: Spec) -> dict[str, Any]:
    types = [piece.type for piece in spec.pieces]
    return {
        "type": "Unigram",
        "unk_id": types.index(UNKNOWN) if UNKNOWN in types else None,
        "byte_fallback": spec.byte_fallback,
        "vocab": [[piece.text, piece.score] for piece in spec.pieces],
        "hidden_ids": [i for i, kind in enumerate(types) if kind in (UNKNOWN, CONTROL, UNUSED, BYTE)],
        "user_defined_ids": [i for i, kind in enumerate(types) if kind == USER_DEFINED],
        "unknown_pieces": [[piece.text, piece.score] for piece in spec.unknown_pieces],
    }


def _bpe(spec: Spec) -> dict[str, Any]:
    unknown = next((piece.text for piece in spec.pieces if piece.type == UNKNOWN), None)
    return {
        "type": "BPE", "dropout": None, "unk_token": unknown, "continuing_subword_prefix": None, "end_of_word_suffix": None,
        "fuse_unk": True, "byte_fallback": spec.byte_fallback, "ignore_merges": False,
        "vocab": {piece.text: i for i, piece in enumerate(spec.pieces)},
        "merges": merges_of(spec.pieces), "rank_by_token": True,
        "user_defined_ids": [i for i, piece in enumerate(spec.pieces) if piece.type == USER_DEFINED],
    }  # fmt: skip


def merges_of(pieces: Sequence[Piece]) -> list[list[str]]:
    """All pairs of pieces that make a piece, those that make the piece with the best score first."""
    known = {piece.text for piece in pieces if piece.type in (NORMAL, UNUSED)}
    ordered = sorted((piece for piece in pieces if piece.text in known), key=lambda piece: -piece.score)
    return [
        [piece.text[:place], piece.text[place:]]
        for piece in ordered
        for place in range(1, len(piece.text))
        if piece.text[:place] in known and piece.text[place:] in known
    ]


def _piece(message: bytes, where: str) -> Piece:
    fields = dict(fields_of(message, where))
    try:
        text = _message(fields.get(1, b""), where).decode("utf-8")
    except UnicodeDecodeError:
        raise DataError(f"{where}: a piece is not UTF-8", got=repr(fields.get(1))[:60]) from None
    score = float_of(fields[2], where) if 2 in fields else 0.0
    return Piece(token_of(text, where), score, _number(fields.get(3, NORMAL)))


def _message(value: Value, where: str) -> bytes:
    if not isinstance(value, bytes):
        raise DataError(f"{where}: this is no model of sentencepiece", "a message", f"the number {value}")
    return value


def _number(value: Value) -> int:
    return value if isinstance(value, int) else 0
