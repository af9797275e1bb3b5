"""Plain files of a vocabulary: BERT's `vocab.txt`, and `vocab.json` with `merges.txt` of GPT-2 and its kin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...data.errors import DataError
from ..patterns import GPT2, QWEN2
from .templates import added_token, template

__all__ = ["byte_level_bpe", "byte_level_parts", "merges_of_lines", "wordpiece"]

BERT_TOKENS = {
    "unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]", "cls_token": "[CLS]", "mask_token": "[MASK]",
}  # fmt: skip
ROBERTA_TOKENS = {
    "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "sep_token": "</s>", "pad_token": "<pad>",
    "cls_token": "<s>", "mask_token": "<mask>",
}  # fmt: skip


def wordpiece(vocabulary: str, config: Mapping[str, Any], special: Mapping[str, str]) -> dict[str, Any]:
    """A `vocab.txt`, one token a line, with the `do_lower_case` … of its `tokenizer_config.json`."""
    ids = {token: i for i, token in enumerate(vocabulary.removesuffix("\n").split("\n"))}
    names = {**BERT_TOKENS, **special}
    missing = [names[name] for name in ("unk_token", "cls_token", "sep_token") if names[name] not in ids]
    if missing:
        raise DataError("vocab.txt: special tokens are missing", ", ".join(missing), f"{len(ids)} tokens")
    cls, sep = ((names[name], ids[names[name]]) for name in ("cls_token", "sep_token"))
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": _added(names, ids),
        "normalizer": {
            "type": "BertNormalizer", "clean_text": True,
            "handle_chinese_chars": bool(config.get("tokenize_chinese_chars", True)),
            "strip_accents": config.get("strip_accents"),
            "lowercase": bool(config.get("do_lower_case", True)),
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": template([cls], [sep]),
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece", "unk_token": names["unk_token"], "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": ids,
        },
        "special_tokens": names,
    }  # fmt: skip


def byte_level_bpe(
    ids: Mapping[str, int], merges: str, config: Mapping[str, Any], special: Mapping[str, str]
) -> dict[str, Any]:
    """A `vocab.json` and the text of a `merges.txt`: GPT-2's, RoBERTa's and BART's, or Qwen's, by `tokenizer_class`."""
    name = str(config.get("tokenizer_class", "")).removesuffix("Fast").removesuffix("Tokenizer")
    prefix = bool(config.get("add_prefix_space", False))
    is_roberta = (
        name in ("Roberta", "Bart", "Longformer", "LED") or not name and {"<s>", "</s>", "<mask>"} <= ids.keys()
    )
    if is_roberta:
        names = {**ROBERTA_TOKENS, **special}
        cls, sep = ([names[key], ids.get(names[key], 0)] for key in ("cls_token", "sep_token"))
        process: dict[str, Any] = {
            "type": "RobertaProcessing", "sep": sep, "cls": cls, "trim_offsets": True, "add_prefix_space": prefix,
        }  # fmt: skip
    else:
        end = {key: "<|endoftext|>" for key in ("bos_token", "eos_token", "unk_token") if "<|endoftext|>" in ids}
        names = {**end, **special}
        process = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}
    pattern = QWEN2 if name == "Qwen2" else GPT2
    description = byte_level_parts(pattern, prefix, dict(ids), merges_of_lines(merges))
    added = _added(names, ids)
    for token in added:
        token["lstrip"] = is_roberta and token["content"] == names["mask_token"]
    normalizer = {"type": "NFC"} if name == "Qwen2" else None
    return {
        **description, "normalizer": normalizer, "added_tokens": added, "post_processor": process, "special_tokens": names,
    }  # fmt: skip


def byte_level_parts(pattern: str | list[str], prefix: bool, ids: dict[str, int], merges: list[Any]) -> dict[str, Any]:
    """A description of byte-level BPE that cuts words by one pattern or several."""
    cut: dict[str, Any] = {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": True}
    if pattern != GPT2:
        patterns = [pattern] if isinstance(pattern, str) else pattern
        splits = [
            {"type": "Split", "pattern": {"Regex": one}, "behavior": "Isolated", "invert": False}
            for one in patterns
            if one != GPT2
        ]
        cut = {"type": "Sequence", "pretokenizers": [*splits, {**cut, "use_regex": GPT2 in patterns}]}
    decoder = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    model = {
        "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": "",
        "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": ids, "merges": merges,
    }  # fmt: skip
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": cut, "post_processor": None, "decoder": decoder, "model": model,
    }  # fmt: skip


def merges_of_lines(text: str) -> list[list[str]]:
    """The merges of a `merges.txt`: two tokens a line; a line with the version is left out."""
    lines = [line for line in text.split("\n") if line.strip() and not line.startswith("#version")]
    merges = [line.rstrip("\r").split(" ") for line in lines]
    wrong = next((i for i, merge in enumerate(merges) if len(merge) != 2), None)
    if wrong is not None:
        raise DataError(
            f"merges.txt: merge {wrong + 1} is not valid", "two tokens with a space between", lines[wrong][:60]
        )
    return merges


def _added(names: Mapping[str, str], ids: Mapping[str, int]) -> list[dict[str, Any]]:
    found = {ids[token]: token for token in names.values() if token in ids}
    return [added_token(token, i, special=True) for i, token in sorted(found.items())]
