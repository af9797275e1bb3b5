"""Where a pretrained model comes from: a folder in Hugging Face's layout, a GGUF file, Marian's files, or the hub itself."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..formats import open_weights
from ..tokenizers import from_folder
from .families import guessed_family
from .family import HubError, ModelConfig

__all__ = ["Source", "open_source"]

LARGEST_JSON = 2**24  # bytes of a config
LARGEST_LICENCE = 2**18
WEIGHTS = ("model.safetensors.index.json", "model.safetensors", "pytorch_model.bin.index.json", "pytorch_model.bin")
TOKENIZERS = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "source.spm",
)
OPTIONS = {
    "generation": "generation_config.json", "pooling": "1_Pooling/config.json", "modules": "modules.json",
}  # fmt: skip
LICENCES = ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE", "LICENCE.txt", "COPYING")
PATTERNS = ["*.json", "*.safetensors", "*.model", "*.spm", "*.txt", "pytorch_model*.bin", "LICEN*", "COPYING"]


@dataclass(frozen=True)
class Source:
    """A pretrained model as it lies on the disk: its config, its tensors, its tokenizer, and its licence."""

    name: str
    kind: str  # the family: its model_type, or "gguf:" and the architecture
    config: ModelConfig
    weights: Mapping[str, Any]
    tokenizer: Any = None
    licence: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)  # of generating and pooling, as other files say them


def open_source(source: str | os.PathLike[str]) -> Source:
    """Open a folder, a file, or `hf:owner/name@revision`; nothing but headers is read yet."""
    text = os.fspath(source)
    if text.startswith("hf:"):
        return _folder(_downloaded(text.removeprefix("hf:")), text)
    path = Path(text)
    from .marian import is_marian, marian_model, open_marian

    if path.is_dir():
        model = None if (path / "config.json").is_file() else marian_model(path)
        return _folder(path, text) if model is None else open_marian(model)
    if not path.is_file():
        raise HubError(
            f"there is no {text!r}",
            "a folder with config.json and weights, a .gguf file, a Marian .bin, or hf:owner/name",
            fix="check the path",
        )
    if path.suffix == ".gguf":
        from .gguf import open_gguf

        return open_gguf(path)
    if is_marian(path):
        return open_marian(path)
    return _folder(path.parent, text, path)


def _folder(folder: Path, name: str, weights: Path | None = None) -> Source:
    """A folder in Hugging Face's layout."""
    if not (folder / "config.json").is_file():
        raise HubError(
            f"{name!r} holds no pretrained model",
            "config.json beside the weights",
            ", ".join(_names(folder)) or "nothing",
        )
    config = ModelConfig(read_json(folder / "config.json"))
    if weights is None:
        found = [folder / file for file in WEIGHTS if (folder / file).is_file()]
        if not found:
            raise HubError(f"{name!r} holds no weights", " or ".join(WEIGHTS), ", ".join(_names(folder)))
        weights = found[0]
    options = {key: read_json(folder / file) for key, file in OPTIONS.items() if (folder / file).is_file()}
    tokenizer = tokenizer_in(folder)
    tensors = open_weights(weights)
    kind = config.get("model_type") or guessed_family(tensors) or config["model_type"]
    return Source(name, str(kind), config, tensors, tokenizer, licence_in(folder), options)


def tokenizer_in(folder: Path) -> Any:
    """The tokenizer beside a model; None where there is none."""
    return (
        from_folder(folder)
        if any((folder / name).is_file() for name in TOKENIZERS) or any(folder.glob("*.spm"))
        else None
    )


def licence_in(folder: Path) -> str:
    """The text of the licence beside a model; empty where there is none."""
    path = next((folder / name for name in LICENCES if (folder / name).is_file()), None)
    if path is None:
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(LARGEST_LICENCE)


def read_json(path: Path) -> Any:
    """A JSON object, or a list of objects, of bounded size."""
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST_JSON + 1)
        found = json.loads(content) if len(content) <= LARGEST_JSON else None
    except (OSError, ValueError, RecursionError) as error:
        raise HubError(f"{os.fspath(path)!r} cannot be read: {error}"[:300]) from None
    if not isinstance(found, dict) and not (isinstance(found, list) and all(isinstance(part, dict) for part in found)):
        raise HubError(
            f"{os.fspath(path)!r} is not what it should be", f"a JSON object of at most {LARGEST_JSON:,} bytes"
        )
    return found


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())[:8]


def _downloaded(name: str) -> Path:
    """The folder of a model of the Hugging Face hub, downloaded or from its cache."""
    repository, _, revision = name.partition("@")
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise HubError(
            f"hf:{name} needs the package huggingface_hub", fix="pip install 'minigrad[hub]', or give a folder"
        ) from None
    try:
        return Path(snapshot_download(repository, revision=revision or None, allow_patterns=PATTERNS))
    except Exception as error:  # of many classes: no network, no such model, not allowed
        reason = str(error).strip().removeprefix("Got: ").partition("\n")[0] or type(error).__name__
        raise HubError(
            f"hf:{name} cannot be had: {reason}"[:300],
            fix="check the name and the network, or download the folder elsewhere and give its path",
        ) from None
