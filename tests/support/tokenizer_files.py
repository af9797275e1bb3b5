"""Small files of tokenizers, made by hand, with as many different parts as fit."""

from __future__ import annotations

import json
import struct
from typing import Any


def _json(model: dict[str, Any], **parts: Any) -> bytes:
    added = {
        "id": 0,
        "content": "<s>",
        "single_word": False,
        "lstrip": False,
        "rstrip": True,
        "normalized": False,
        "special": True,
    }
    return json.dumps({"version": "1.0", "added_tokens": [added], **parts, "model": model}).encode()


def _sequence(kind: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", kind: list(parts)}


def _replace(pattern: dict[str, str], content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


def byte_bpe() -> bytes:
    """As GPT-2's and its descendants': a regular expression, bytes, merges."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    pattern = {"Regex": r"'s|\p{L}+| ?[^\s\p{L}\p{N}]+|\p{N}{1,3}|\s+(?!\S)"}
    split = {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}
    letters = ["<s>", "h", "e", "l", "o", "Ġ", "he", "ll", "hell", "hello"]
    model = {
        "type": "BPE",
        "vocab": {token: i for i, token in enumerate(letters)},
        "merges": ["h e", "l l", "he ll", "hell o"],
    }
    model |= {"dropout": None, "unk_token": "<s>", "fuse_unk": False, "byte_fallback": False, "ignore_merges": True}
    return _json(
        model,
        pre_tokenizer=_sequence("pretokenizers", split, byte_level),
        decoder=byte_level,
        post_processor=byte_level,
    )


def wordpiece() -> bytes:
    """As BERT's: accents and cases removed, words in pieces, a template of special tokens."""
    vocab = {"<s>": 0, "[UNK]": 1, "[CLS]": 2, "hel": 3, "##lo": 4, "wor": 5, "##ld": 6, ",": 7}
    normalizer = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": None,
        "lowercase": True,
    }
    single = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    tokens = {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}}
    processor = {"type": "TemplateProcessing", "single": single, "pair": single, "special_tokens": tokens}
    model = {
        "type": "WordPiece",
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
        "vocab": vocab,
    }
    decoder = {"type": "WordPiece", "prefix": "##", "cleanup": True}
    return _json(
        model,
        normalizer=normalizer,
        pre_tokenizer={"type": "BertPreTokenizer"},
        post_processor=processor,
        decoder=decoder,
    )


def unigram() -> bytes:
    """As T5's: spaces as marks, tokens with the logarithms of their probabilities."""
    vocab = [["<s>", 0.0], ["<unk>", -9.0], ["▁hello", -2.5], ["▁", -3.0], ["l", -4.0], ["o", -4.5], ["<0x2C>", -9.0]]
    marks = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    normalizer = _sequence(
        "normalizers",
        {"type": "NFKC"},
        _replace({"Regex": " {2,}"}, " "),
        {"type": "Strip", "strip_left": True, "strip_right": True},
    )
    model = {"type": "Unigram", "unk_id": 1, "vocab": vocab, "byte_fallback": True}
    return _json(
        model,
        normalizer=normalizer,
        pre_tokenizer=marks,
        decoder=_sequence("decoders", {"type": "ByteFallback"}, marks),
    )


def sentencepiece() -> bytes:
    """A `.model` file: pieces with scores and types, and how text is normalised."""

    def part(number: int, content: bytes) -> bytes:
        return bytes([number << 3 | 2, len(content)]) + content

    def piece(text: str, score: float, kind: int) -> bytes:
        return part(1, part(1, text.encode()) + b"\x15" + struct.pack("<f", score) + bytes([0x18, kind]))

    pieces = [
        ("<unk>", 0.0, 2),
        ("<s>", 0.0, 3),
        ("▁hello", -2.0, 1),
        ("▁", -3.0, 1),
        ("l", -4.0, 1),
        ("<0x2C>", 0.0, 6),
    ]
    trainer = bytes([3 << 3, 1]) + bytes([0x98, 0x02, 1])  # unigram, with bytes for what is unknown
    return b"".join(piece(*each) for each in pieces) + part(2, trainer) + part(3, bytes([3 << 3, 1, 4 << 3, 1]))
