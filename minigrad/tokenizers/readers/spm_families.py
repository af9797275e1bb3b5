"""What families of models do with a SentencePiece model: other numbers, more tokens, and special tokens around a text."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from ...data.errors import DataError
from .sentencepiece import CONTROL, UNKNOWN, Piece, Spec, spec_json
from .templates import added_token, template

__all__ = ["family_json"]

NAMES = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}


def family_json(spec: Spec, config: Mapping[str, Any], special: Mapping[str, str]) -> dict[str, Any]:
    """The description of a tokenizer, by the `tokenizer_class` of its `tokenizer_config.json`."""
    name = str(config.get("tokenizer_class", "")).removesuffix("Fast").removesuffix("Tokenizer")
    if name not in FAMILIES:
        raise DataError(
            f"tokenizer: a {name}Tokenizer is read from its tokenizer.json only",
            ", ".join(filter(None, FAMILIES)),
            fix="transformers.AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER) writes that file",
        )
    return FAMILIES[name](spec, config, {**NAMES, **special})


def _plain(*around: str) -> Callable[[Spec, Mapping[str, Any], dict[str, str]], dict[str, Any]]:
    """Numbers as in the model; `bos` before a text and `eos` after it where the family, or the config, says so."""

    def described(spec: Spec, config: Mapping[str, Any], names: dict[str, str]) -> dict[str, Any]:
        description = spec_json(spec)
        ids = {piece.text: i for i, piece in enumerate(spec.pieces)}
        sides = []
        for side in ("bos", "eos"):
            token = names[f"{side}_token"]
            wanted = config.get(f"add_{side}_token", side in around) and token in ids
            sides.append([(token, ids[token])] if wanted else [])
        return {**description, "post_processor": template(*sides), "special_tokens": names}

    return described


def _t5(spec: Spec, config: Mapping[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """T5 has a hundred tokens more, for gaps in a text, which are counted down."""
    description = _plain("eos")(spec, config, {**names, "pad_token": names.get("pad_token", "<pad>")})
    count = config.get("extra_ids", 100)
    if type(count) is not int or not 0 <= count <= 1000:
        raise DataError("tokenizer_config.json: extra_ids is not valid", "0 to 1000", repr(count)[:40])
    first = len(spec.pieces)
    extra = [added_token(f"<extra_id_{count - 1 - i}>", first + i, special=True) for i in range(count)]
    return {**description, "added_tokens": description["added_tokens"] + extra}


def _xlm_roberta(spec: Spec, config: Mapping[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """XLM-RoBERTa numbers four special tokens first, then the pieces after the model's own three, then the mask."""
    first = [Piece("<s>", 0.0, CONTROL), Piece("<pad>", 0.0, CONTROL), Piece("</s>", 0.0, CONTROL)]
    pieces = [*first, Piece("<unk>", 0.0, UNKNOWN), *spec.pieces[3:], Piece("<mask>", 0.0, CONTROL)]
    description = spec_json(dataclasses.replace(spec, pieces=pieces))
    process = {
        "type": "RobertaProcessing",
        "cls": ["<s>", 0],
        "sep": ["</s>", 2],
        "trim_offsets": True,
        "add_prefix_space": True,
    }
    special = {"cls_token": "<s>", "sep_token": "</s>", "pad_token": "<pad>", "mask_token": "<mask>", **names}
    description["added_tokens"][-1]["lstrip"] = True
    return {**description, "post_processor": process, "special_tokens": special}


FAMILIES = {
    "": _plain(), "PreTrained": _plain(), "Llama": _plain("bos"), "CodeLlama": _plain("bos"), "Gemma": _plain("bos"),
    "T5": _t5, "MT5": _t5, "XLMRoberta": _xlm_roberta,
}  # fmt: skip
