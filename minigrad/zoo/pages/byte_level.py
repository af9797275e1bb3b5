"""The byte-level byte pairs of a pretrained model as a page reads them: GPT-2's, Llama 3's, Qwen's, SmolLM's and their kin."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ...tokenizers import PretrainedTokenizer
from ...tokenizers.characters import PLANES, compiled
from ...tokenizers.patterns import GPT2, KNOWN, translated
from .scripts import script_pattern

__all__ = ["byte_level_form"]

# What is written there for letters of either size; one of them has a third form.
CASES = {"s": "sS\u017f"}


def byte_level_form(tokenizer: PretrainedTokenizer) -> dict[str, Any] | None:
    """Tokens, merges, and the patterns that cut a text; None for a tokenizer that has something else, too."""
    said = tokenizer.description
    model, decoder, after = said["model"], said.get("decoder") or {}, said.get("post_processor") or {}
    plain = not any(
        model.get(name) for name in ("continuing_subword_prefix", "end_of_word_suffix", "byte_fallback", "unk_token")
    )
    if tokenizer.kind != "bpe" or not plain or said.get("normalizer") or decoder.get("type") != "ByteLevel":
        return None
    if after.get("type", "ByteLevel") != "ByteLevel" or any(
        token.lstrip or token.rstrip or token.single_word for token in tokenizer.added.by_id.values()
    ):
        return None
    patterns = list(_patterns(said.get("pre_tokenizer") or {}))
    if None in patterns:
        return None
    tokens: list[str | None] = [None] * tokenizer.vocab_size
    for token, number in tokenizer.model.vocabulary.ids.items():
        tokens[number] = token
    added = {token.content: number for number, token in tokenizer.added.by_id.items()}
    for token, number in added.items():
        tokens[number] = token
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    return {
        "kind": "bytelevel", "tokens": tokens, "merges": merges, "patterns": patterns, "whole": bool(model.get("ignore_merges")),
        "added": sorted(added.items(), key=lambda one: -len(one[0])),
        "special": [number for number, token in tokenizer.added.by_id.items() if token.special],
    }  # fmt: skip


def _patterns(part: dict[str, Any]) -> Iterator[str | None]:
    """The patterns of a pre-tokenizer one after the other; None stands for what a page has no code for."""
    kind = part.get("type")
    if kind == "Sequence":
        for one in part["pretokenizers"]:
            yield from _patterns(one)
    elif kind == "ByteLevel" and not part.get("add_prefix_space", True):
        if part.get("use_regex", True):
            yield _script(GPT2)
    elif kind == "Digits" and part.get("individual_digits"):
        yield _script(KNOWN["digits"])
    elif kind == "Split" and part.get("behavior") == "Isolated" and not part.get("invert"):
        pattern = part.get("pattern", {}).get("Regex", "")
        yield _script(pattern) if pattern in KNOWN.values() else None
    else:
        yield None


def _script(pattern: str) -> str:
    """A known pattern in JavaScript, with the same classes of characters as in Python."""
    exact = compiled(translated(pattern)).below(PLANES[-1]).pattern
    return script_pattern(re.sub(r"\(\?i:([^)]*)\)", lambda found: f"(?:{_either(found[1])})", exact))


def _either(text: str) -> str:
    return re.sub("[a-z]", lambda found: f"[{CASES.get(found[0], found[0] + found[0].upper())}]", text)
