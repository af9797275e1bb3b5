"""The tokenizer of a folder or a file, whatever files it comes in."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...data.errors import DataError
from ..tokenizer import MAX_FILE, SPECIAL_NAMES, PretrainedTokenizer
from .marian import marian_json, words_json, words_of
from .sentencepiece import read_model, spec_json
from .spm_families import family_json
from .vocab_files import byte_level_bpe, wordpiece

__all__ = ["from_file", "from_folder"]

MODELS = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "spm.model", "source.spm")
TEMPLATES = ("chat_template.jinja", "chat_template.json")


def from_folder(path: str | os.PathLike[str]) -> PretrainedTokenizer:
    """The tokenizer of a model's folder: of `tokenizer.json` if it is there, else of the files that older models have.

    `tokenizer_config.json` and `special_tokens_map.json` say which tokens are special, and how a chat is written.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise DataError(f"tokenizer: there is no folder {str(folder)!r}", fix="give the folder of a model")
    config = _object(folder / "tokenizer_config.json")
    special = _special_tokens({**_object(folder / "special_tokens_map.json"), **config})
    description = _description(folder, config, special)
    names = {**description.get("special_tokens", {}), **special}
    _add_tokens(description, config)
    chat = _chat_template(folder, config)
    extra = {"special_tokens": names} if names else {}
    return PretrainedTokenizer({**description, **extra, **({"chat_template": chat} if chat else {})})


def from_file(path: str | os.PathLike[str]) -> PretrainedTokenizer:
    """The tokenizer of one file: `tokenizer.json`, `.model`, `.spm`, `vocab.txt`, or Marian's vocabulary of words."""
    file = Path(path)
    if not file.is_file():
        raise DataError(f"tokenizer: there is no file {str(file)!r}")
    if file.suffix == ".json" and '"model"' in (text := _text(file)):
        return PretrainedTokenizer.from_json(text)
    if file.suffix in (".yml", ".yaml", ".json"):
        return PretrainedTokenizer(words_json(words_of(_text(file))))
    if file.suffix == ".txt":
        return PretrainedTokenizer(wordpiece(_text(file), {}, {}))
    return PretrainedTokenizer(spec_json(read_model(_bytes(file), file.name)))


def _description(folder: Path, config: Mapping[str, Any], special: Mapping[str, str]) -> dict[str, Any]:
    if (folder / "tokenizer.json").is_file():
        return _object(folder / "tokenizer.json")
    model = next((folder / name for name in MODELS if (folder / name).is_file()), None)
    if model is not None:
        spec = read_model(_bytes(model), model.name)
        if (folder / "vocab.json").is_file():
            return marian_json(spec, words_of(_text(folder / "vocab.json")))
        return family_json(spec, config, special)
    if (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
        return byte_level_bpe(words_of(_text(folder / "vocab.json")), _text(folder / "merges.txt"), config, special)
    if (folder / "vocab.txt").is_file():
        return wordpiece(_text(folder / "vocab.txt"), config, special)
    expected = "tokenizer.json, *.model, *.spm, vocab.json with merges.txt, or vocab.txt"
    raise DataError(f"tokenizer: {str(folder)!r} has no file of a tokenizer", expected)


def _special_tokens(config: Mapping[str, Any]) -> dict[str, str]:
    """Name -> token, which is a text or an object with its `content`."""
    found = {}
    for name in SPECIAL_NAMES:
        value = config.get(name)
        value = value.get("content") if isinstance(value, Mapping) else value
        if isinstance(value, str):
            found[name] = value
    return found


def _add_tokens(description: dict[str, Any], config: Mapping[str, Any]) -> None:
    """Tokens that only `tokenizer_config.json` has are added, in the order of their numbers."""
    listed = config.get("added_tokens_decoder")
    if not isinstance(listed, Mapping):
        return
    tokens = list(description.get("added_tokens") or [])
    known = {token.get("content") for token in tokens if isinstance(token, Mapping)}
    numbered = sorted((int(i), token) for i, token in listed.items() if i.isdecimal() and isinstance(token, Mapping))
    tokens += [{**token, "id": i} for i, token in numbered if token.get("content") not in known]
    description["added_tokens"] = tokens


def _chat_template(folder: Path, config: Mapping[str, Any]) -> str | None:
    for name in TEMPLATES:
        if (folder / name).is_file():
            text = _text(folder / name)
            found = json.loads(text).get("chat_template") if name.endswith(".json") else text
            return found if isinstance(found, str) else None
    given = config.get("chat_template")
    if isinstance(given, list):  # several templates by name
        named = {entry.get("name"): entry.get("template") for entry in given if isinstance(entry, Mapping)}
        given = named.get("default")
    return given if isinstance(given, str) else None


def _object(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        found = json.loads(_text(file))
    except (ValueError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"tokenizer: {file.name} is not JSON: {error}"[:200]) from None
    if not isinstance(found, dict):
        raise DataError(f"tokenizer: {file.name} is not an object", "{…}", type(found).__name__)
    return found


def _text(file: Path) -> str:
    try:
        return _bytes(file).decode("utf-8")
    except UnicodeDecodeError:
        raise DataError(f"tokenizer: {file.name} is not UTF-8") from None


def _bytes(file: Path) -> bytes:
    size = file.stat().st_size
    if size > MAX_FILE:
        raise DataError(f"tokenizer: {file.name} is too large", f"at most {MAX_FILE:,} bytes", f"{size:,}")
    return file.read_bytes()
