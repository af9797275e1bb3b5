"""Any tokenizer as the `tokenizer.json` that other libraries read: those of minigrad.data in its words, others as they came."""

from __future__ import annotations

import re
from typing import Any

from ..data import BPETokenizer, CharTokenizer, WordTokenizer
from ..data.tokenizers import SPECIALS, Tokenizer
from ..errors import ArgumentError
from .byte_level import CHARACTER_OF
from .tokenizer import SPECIAL_NAMES, PretrainedTokenizer

__all__ = ["description_of"]

NAMES = dict(zip(("pad_token", "bos_token", "eos_token", "unk_token", "mask_token"), SPECIALS))
FIELDS = ("truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder", "model")
SURROGATES = r"\ud800-\udfff"  # halves of characters, which a text of other libraries never has
ESCAPES = re.compile(r"\\U([0-9a-f]{8})|\\u([0-9a-f]{4})|\\x([0-9a-f]{2})")


def description_of(tokenizer: Tokenizer, around: str = "") -> dict[str, Any]:
    """What tokenizer.json says, with `special_tokens` and `chat_template`, which other libraries keep in other files.

    Around a text come the tokens that the model wants: "both" for beginning and end, "end", or nothing. A text that has
    the name of a special token in it gives that token there, as everywhere in that format; ours would be plain text.

    >>> description_of(CharTokenizer("ab"))["model"]["vocab"]["b"]
    6
    """
    if isinstance(tokenizer, PretrainedTokenizer):
        special = {name: tokenizer.token(i) for name in SPECIAL_NAMES if (i := _id(tokenizer, name)) is not None}
        return {"version": "1.0", **dict.fromkeys(FIELDS), "special_tokens": special, **tokenizer.description}
    if type(tokenizer) not in PARTS:
        raise ArgumentError(
            f"tokenizer: {type(tokenizer).__name__} has no tokenizer.json",
            "characters, words or byte pairs of minigrad.data, or a pretrained one",
        )
    added = [
        {"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        for i, token in enumerate(SPECIALS)
    ]  # fmt: skip
    return {
        "version": "1.0", **dict.fromkeys(FIELDS), "added_tokens": added, "post_processor": _around(around),
        **PARTS[type(tokenizer)](tokenizer), "special_tokens": dict(NAMES),
    }  # fmt: skip


def _id(tokenizer: Tokenizer, name: str) -> int | None:
    found: int | None = getattr(tokenizer, name.replace("_token", "_id"))
    return found


def _around(kind: str) -> dict[str, Any] | None:
    if not kind:
        return None
    begin, end = NAMES["bos_token"], NAMES["eos_token"]

    def token(name: str, number: int) -> dict[str, Any]:
        return {"SpecialToken": {"id": name, "type_id": number}}

    def text(name: str, number: int) -> dict[str, Any]:
        return {"Sequence": {"id": name, "type_id": number}}

    first = [*([token(begin, 0)] if kind == "both" else []), text("A", 0), token(end, 0)]
    ids = {name: {"id": name, "ids": [SPECIALS.index(name)], "tokens": [name]} for name in (begin, end)}
    pair = [*first, text("B", 1), token(end, 1)]
    return {"type": "TemplateProcessing", "single": first, "pair": pair, "special_tokens": ids}


def _characters(tokenizer: Any) -> dict[str, Any]:
    cut = {"type": "Split", "pattern": {"Regex": "(?m:[\\s\\S])"}, "behavior": "Isolated", "invert": False}
    model = {"type": "WordLevel", "vocab": tokenizer.ids, "unk_token": NAMES["unk_token"]}
    return {"pre_tokenizer": cut, "model": model, "decoder": {"type": "Fuse"}}


def _words(tokenizer: Any) -> dict[str, Any]:
    """Words and marks; between them is one space when they are put together, but at marks that do without."""
    cut = {
        "type": "Split", "pattern": {"Regex": _plain(tokenizer.pattern.pattern)}, "behavior": "Removed", "invert": True
    }  # fmt: skip
    glued = [
        *[(f" {mark}", mark) for mark in sorted(tokenizer.no_space_before)],
        *[(f"{mark} ", mark) for mark in sorted(tokenizer.no_space_after)],
    ]
    replaced = [{"type": "Replace", "pattern": {"String": a}, "content": b} for a, b in glued]
    spaced = {"type": "WordPiece", "prefix": "##", "cleanup": False}  # which no word of ours has
    decoder = {"type": "Sequence", "decoders": [spaced, {"type": "Fuse"}, *replaced]}
    model = {"type": "WordLevel", "vocab": tokenizer.ids, "unk_token": NAMES["unk_token"]}
    return {"pre_tokenizer": cut, "model": model, "decoder": decoder}


def _byte_pairs(tokenizer: Any) -> dict[str, Any]:
    names = list(SPECIALS)
    names += ["".join(CHARACTER_OF[byte] for byte in token) for token in tokenizer.bytes[len(SPECIALS) :]]
    cut = {
        "type": "Split",
        "pattern": {"Regex": _plain(tokenizer.pattern.pattern)},
        "behavior": "Isolated",
        "invert": False,
    }
    as_bytes = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    model = {
        "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
        "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
        "vocab": {name: i for i, name in enumerate(names)},
        "merges": [[names[left], names[right]] for left, right in tokenizer.merges],
    }  # fmt: skip
    both = {"type": "Sequence", "pretokenizers": [cut, as_bytes]}
    return {"pre_tokenizer": both, "decoder": as_bytes, "model": model}


PARTS: dict[type, Any] = {CharTokenizer: _characters, WordTokenizer: _words, BPETokenizer: _byte_pairs}


def _plain(pattern: str) -> str:
    """A pattern of ours with its characters in the place of their numbers, which each regex engine writes in its own way."""
    pattern = pattern.replace(SURROGATES, "")
    return ESCAPES.sub(lambda found: chr(int(next(filter(None, found.groups())), 16)), pattern)
