"""The tokenizer inside a GGUF file: its metadata has tokens, scores, types and merges under `tokenizer.ggml.*`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...data.errors import DataError
from ...errors import nearest
from ..fields import MAX_TOKENS, token_of
from ..patterns import GPT2, KNOWN, LLAMA3, QWEN2
from ..vocabulary import MARK
from .sentencepiece import BPE, CONTROL, NORMAL, UNIGRAM, USER_DEFINED, Piece, Spec, spec_json
from .templates import added_token, template
from .vocab_files import byte_level_parts, wordpiece

__all__ = ["PATTERNS", "gguf_json"]

PREFIX = "tokenizer.ggml."
SPECIAL = {"bos": "bos_token", "eos": "eos_token", "unknown": "unk_token", "padding": "pad_token", "mask": "mask_token",
           "cls": "cls_token", "seperator": "sep_token"}  # fmt: skip

DIGITS = KNOWN["digits"]
# What `tokenizer.ggml.pre` calls the patterns that cut a text into words.
PATTERNS: dict[str, str | list[str]] = {
    "default": GPT2, "gpt-2": GPT2, "phi-2": GPT2, "gpt2": GPT2, "roberta-bpe": GPT2, "olmo": GPT2, "jina-en": GPT2,
    "smollm": [DIGITS, GPT2], "starcoder": [DIGITS, GPT2], "refact": [DIGITS, GPT2], "command-r": [DIGITS, GPT2],
    "llama-bpe": LLAMA3, "llama3": LLAMA3, "llama-v3": LLAMA3, "falcon3": LLAMA3, "dbrx": LLAMA3, "smaug-bpe": LLAMA3,
    "qwen2": QWEN2, "stablelm2": QWEN2, "deepseek-r1-qwen": QWEN2,
    "gpt-4o": KNOWN["gpt4o"], "llama4": KNOWN["gpt4o"], "tekken": KNOWN["tekken"],
    "deepseek-coder": [
        KNOWN["lines"], KNOWN["deepseek coder letters"], KNOWN["deepseek coder marks"],
        KNOWN["deepseek chinese 1"], DIGITS,
    ],
    "qwen35": KNOWN["qwen35"], "deepseek-v3": [KNOWN["deepseek numbers"], KNOWN["deepseek chinese"], KNOWN["deepseek"]],
}  # fmt: skip


def gguf_json(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The description of the tokenizer in the metadata of a GGUF file."""
    kind = metadata.get(PREFIX + "model")
    readers = {"gpt2": _byte_level, "llama": _sentencepiece, "t5": _sentencepiece, "bert": _bert}
    if not isinstance(kind, str) or kind not in readers:
        fix = nearest(str(kind)[:60], readers)
        raise DataError(
            f"gguf: a tokenizer of this kind is not read: {PREFIX}model", ", ".join(readers), repr(kind)[:60], fix
        )
    tokens = [token_of(token, PREFIX + "tokens") for token in _list(metadata, "tokens")]
    description = readers[kind](metadata, tokens)
    names = {}
    for key, name in SPECIAL.items():
        i = metadata.get(f"{PREFIX}{key}_token_id")
        if i is not None and 0 <= int(i) < len(tokens):
            names[name] = tokens[int(i)]
    description["special_tokens"] = {**description.get("special_tokens", {}), **names}
    adds = {"bos": kind == "llama", "eos": kind == "t5"}
    around = {
        key: [(names[f"{key}_token"], tokens.index(names[f"{key}_token"]))]
        if metadata.get(f"{PREFIX}add_{key}_token", default) and f"{key}_token" in names
        else []
        for key, default in adds.items()
    }
    if kind != "bert":
        description["post_processor"] = template(around["bos"], around["eos"]) or description["post_processor"]
    chat = metadata.get("tokenizer.chat_template")
    return {**description, "chat_template": chat} if isinstance(chat, str) else description


def _byte_level(metadata: Mapping[str, Any], tokens: list[str]) -> dict[str, Any]:
    name = metadata.get(PREFIX + "pre", "default")
    if name not in PATTERNS:
        raise DataError(
            f"gguf: how words are cut is not known here: {PREFIX}pre",
            got=repr(name)[:60],
            fix=nearest(str(name)[:60], PATTERNS),
        )
    types = _list(metadata, "token_type", [])
    own = {token: token for token in tokens}  # a merge's tokens are those of the vocabulary, not copies of them
    merges = [tuple(own.get(part, part) for part in str(merge).split(" ")) for merge in _list(metadata, "merges")]
    prefix = bool(metadata.get(PREFIX + "add_space_prefix", False))
    ids = {token: i for i, token in enumerate(tokens)}
    description = byte_level_parts(PATTERNS[name], prefix, ids, merges)
    description["model"]["ignore_merges"] = name in ("llama-bpe", "llama3", "llama-v3", "tekken")
    description["added_tokens"] = [
        added_token(tokens[i], i, special=int(kind) == CONTROL)
        for i, kind in enumerate(types[: len(tokens)])
        if int(kind) in (CONTROL, USER_DEFINED)
    ]
    return description


def _sentencepiece(metadata: Mapping[str, Any], tokens: list[str]) -> dict[str, Any]:
    scores, types = (
        _list(metadata, "scores", [0.0] * len(tokens)),
        _list(metadata, "token_type", [NORMAL] * len(tokens)),
    )
    if not len(tokens) == len(scores) == len(types):
        raise DataError("gguf: tokens, scores and types differ in number", len(tokens), (len(scores), len(types)))
    unigram = metadata.get(PREFIX + "model") == "t5"
    pieces = [Piece(token, float(score), int(kind)) for token, score, kind in zip(tokens, scores, types)]
    charsmap = _list(metadata, "precompiled_charsmap", [])
    return spec_json(
        Spec(
            pieces,
            UNIGRAM if unigram else BPE,
            byte_fallback="<0x00>" in tokens,
            charsmap=bytes(int(byte) & 0xFF for byte in charsmap),
            add_dummy_prefix=bool(metadata.get(PREFIX + "add_space_prefix", True)),
            remove_extra_whitespaces=bool(metadata.get(PREFIX + "remove_extra_whitespaces", unigram)),
        )
    )


def _bert(metadata: Mapping[str, Any], tokens: list[str]) -> dict[str, Any]:
    """Tokens of BERT, which are written with a mark where a word begins instead of `##` where it goes on."""
    plain = [
        token.removeprefix(MARK) if token.startswith(MARK) else token if token.startswith("[") else "##" + token
        for token in tokens
    ]
    return wordpiece("\n".join(plain), {}, {})


def _list(metadata: Mapping[str, Any], name: str, default: Any = None) -> Sequence[Any]:
    value = metadata.get(PREFIX + name, default)
    value = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(value, (list, tuple)) or len(value) > MAX_TOKENS:
        raise DataError(f"gguf: {PREFIX}{name} is not valid", f"a list of at most {MAX_TOKENS}", type(value).__name__)
    return value
