"""Marian's own files as a source: the binary model, and beside it its vocabulary and its lexical shortlist."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..formats import StoredTensor, Weights, open_weights
from ..formats.shortlist import read_shortlist
from ..tokenizers import from_folder, from_marian
from .family import HubError, ModelConfig
from .source import Source, licence_in

__all__ = ["marian_model", "open_marian"]

LARGEST_VOCABULARY = 2**26  # bytes


def marian_model(folder: Path) -> Path | None:
    """The one binary model of Marian in a folder without a config.json; None if there is none, or more than one."""
    found = [path for path in sorted(folder.glob("*.bin")) if is_marian(path)]
    return found[0] if len(found) == 1 else None


def is_marian(path: Path) -> bool:
    """Whether a file begins as a binary model of Marian does, with its version."""
    with open(path, "rb") as file:
        return file.read(8) == (1).to_bytes(8, "little")


def open_marian(path: Path) -> Source:
    """The model in a binary file of Marian, with the vocabulary and the shortlist beside it."""
    weights = open_weights(path)
    config = ModelConfig(weights.metadata)
    tokenizer = _vocabulary(path)
    end, unknown = tokenizer.id("</s>"), tokenizer.id("<unk>")
    if end is None or unknown is None:
        raise HubError(f"the vocabulary beside {os.fspath(path)!r} is not one of Marian's", "the tokens </s> and <unk>")
    config |= {"end": end, "unknown": unknown, "shortlist": {}}
    tensors: dict[str, StoredTensor] = dict(weights)
    lists = sorted(path.parent.glob("lex*.bin"))
    if len(lists) == 1:
        found, sizes = _shortlist(lists[0])
        tensors, config["shortlist"] = {**tensors, **found}, sizes
    named = Weights("marian", tensors, weights.metadata)
    return Source(os.fspath(path), "marian-native", config, named, tokenizer, licence_in(path.parent))


def _vocabulary(path: Path) -> Any:
    """The tokenizer of the one .spm file beside a model, or of a tokenizer.json."""
    files = {file.read_bytes() for file in path.parent.glob("*.spm") if file.stat().st_size <= LARGEST_VOCABULARY}
    if len(files) == 1:
        return from_marian(files.pop())
    if len(files) > 1:
        raise HubError(
            f"{os.fspath(path)!r} has a vocabulary for each language", "one .spm file for both", f"{len(files)} of them"
        )
    if (path.parent / "tokenizer.json").is_file():
        return from_folder(path.parent)
    raise HubError(f"{os.fspath(path)!r} has no vocabulary beside it", "an .spm file, or tokenizer.json")


def _shortlist(path: Path) -> tuple[Mapping[str, StoredTensor], dict[str, int]]:
    """A lexical shortlist as tensors, and its sizes."""
    found = read_shortlist(path)
    offsets, targets = found.offsets.astype("<i8"), found.targets.astype("<i4")
    tensors = {
        "shortlist.offsets": StoredTensor("shortlist.offsets", "i64", offsets.shape, offsets),
        "shortlist.targets": StoredTensor("shortlist.targets", "i32", targets.shape, targets),
    }
    return tensors, {"words": len(offsets) - 1, "count": len(targets), "first": found.first}
