"""Vocabularies of Marian: a SentencePiece model whose pieces a `vocab.json` numbers, or a list of words in YAML."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any

from ...data.errors import DataError
from .sentencepiece import CONTROL, NORMAL, UNKNOWN, UNUSED, Piece, Spec, spec_json
from .templates import added_token, template

__all__ = ["marian_json", "words_json", "words_of"]

SPECIAL = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
LANGUAGE = re.compile(">>.+<<")
LINE = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s"'][^:]*)\s*:\s*([0-9]+)\s*""")


def marian_json(spec: Spec, ids: Mapping[str, int] | None = None) -> dict[str, Any]:
    """The description of a tokenizer that ends a text with `</s>`, numbered by a `vocab.json` if there is one."""
    numbered = spec if ids is None else _numbered(spec, ids)
    description = spec_json(numbered)
    places = {piece.text: i for i, piece in enumerate(numbered.pieces)}
    special = {name: token for name, token in SPECIAL.items() if token in places}
    end = special.get("eos_token")
    description["post_processor"] = template([], [(end, places[end])]) if end else None
    description["added_tokens"] += [
        added_token(token, i, special=False) for token, i in places.items() if LANGUAGE.fullmatch(token)
    ]
    return {**description, "special_tokens": special}


def _numbered(spec: Spec, ids: Mapping[str, int]) -> Spec:
    """The pieces in the order of a vocabulary; one that it does not have is found in a text and then unknown."""
    known = {piece.text: piece for piece in spec.pieces}
    names = {i: token for token, i in ids.items()}
    if sorted(names) != list(range(len(ids))):
        raise DataError("marian: the numbers of the vocabulary have gaps", f"0 to {len(ids) - 1}")
    pieces = []
    for i in range(len(ids)):
        token = names[i]
        kind = UNKNOWN if token == SPECIAL["unk_token"] else CONTROL if token in SPECIAL.values() else UNUSED
        found = known.get(token, Piece(token, 0.0, kind))
        pieces.append(found if found.type == NORMAL else Piece(token, found.score, kind))
    extra = [piece for piece in spec.pieces if piece.type == NORMAL and piece.text not in ids]
    return dataclasses.replace(spec, pieces=pieces, unknown_pieces=extra)


def words_of(text: str) -> dict[str, int]:
    """The words of a vocabulary in JSON, or in YAML as Marian writes it, `word: number` on each line."""
    if text.lstrip().startswith("{"):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataError(f"marian: the vocabulary is not JSON: {error}"[:200]) from None
    else:
        lines = [line for line in text.split("\n") if line.strip() and line.strip() != "---"]
        entries = [LINE.fullmatch(line) for line in lines]
        if not all(entries):
            raise DataError(
                "marian: a line of the vocabulary is not valid", "word: number", repr(lines[entries.index(None)][:60])
            )
        found = {_unquoted(entry[1]): int(entry[2]) for entry in entries if entry}
    if not isinstance(found, dict) or not all(type(i) is int and i >= 0 for i in found.values()):
        raise DataError("marian: this is not a vocabulary", "words and their numbers")
    return found


def words_json(ids: Mapping[str, int]) -> dict[str, Any]:
    """The description of a tokenizer of words between spaces, which ends a text with `</s>`."""
    special = {name: token for name, token in SPECIAL.items() if token in ids}
    end = special.get("eos_token")
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [added_token(token, ids[token], special=True) for token in special.values()],
        "normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": template([], [(end, ids[end])]) if end else None, "decoder": None,
        "model": {"type": "WordLevel", "unk_token": SPECIAL["unk_token"], "vocab": dict(ids)},
        "special_tokens": special,
    }  # fmt: skip


def _unquoted(word: str) -> str:
    if word.startswith('"'):
        return str(json.loads(word))
    return word[1:-1].replace("''", "'") if word.startswith("'") else word.strip()
