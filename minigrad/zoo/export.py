"""A trained model as a folder to share: plain safetensors, what it takes to build the model again, and its tokenizer.

model.safetensors   the weights under the names of `model.state_dict()`
config.json         the model's name, its settings, and with which versions it was trained
tokenizer.json      only where the model has a tokenizer
lora.safetensors    only where it was trained with adapters: these alone; the model itself has them merged
LICENSE             only where the model, or the one that it was trained from, came with one
"""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .. import __version__
from ..nn.weights.lora import lora_state_dict, merge_lora
from ..saving import load as load_tensors
from ..saving import save, sync_folder, write_atomically
from ..tokenizers import from_json as tokenizer_from_json
from ..train import RunError
from .loaded import Loaded, assembled
from .run_arguments import are_arguments, spec_of

__all__ = [
    "FORMAT", "check_new", "description_of", "export", "is_exported", "load_exported", "merged", "new_folder", "write_model"
]  # fmt: skip

FORMAT = "minigrad-model-1"
WEIGHTS, CONFIG, TOKENIZER = "model.safetensors", "config.json", "tokenizer.json"
ADAPTERS, LICENCE = "lora.safetensors", "LICENSE"
LARGEST_JSON = 2**26  # bytes: what a stranger sent is not read without end


def export(loaded: Loaded, folder: str | os.PathLike[str]) -> Path:
    """Write a loaded model to a new folder, which appears whole or not at all."""
    return new_folder(folder, lambda made: write_model(loaded, made))


def new_folder(folder: str | os.PathLike[str], write: Callable[[Path], None]) -> Path:
    """A new folder with what `write(folder)` puts into it; it appears whole or not at all."""
    check_new(folder)
    target = Path(folder)
    try:
        parent = target.absolute().parent
        parent.mkdir(parents=True, exist_ok=True)
        made = parent / f".{target.name}.{secrets.token_hex(4)}.tmp"
        made.mkdir()
        try:
            write(made)
            if target.is_dir():
                target.rmdir()  # it is empty; Windows would not replace it
            os.replace(made, target)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
        sync_folder(parent)
    except OSError as error:
        raise RunError(
            f"{os.fspath(folder)!r} cannot be written: {error.strerror}", fix="see to the disk and its permissions"
        ) from error
    return target


def check_new(folder: str | os.PathLike[str]) -> None:
    """Refuse a folder that has something in it."""
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise RunError(f"{os.fspath(folder)!r} is taken", "a folder that is new, or empty", fix="choose another")


def write_model(loaded: Loaded, folder: Path) -> None:
    """Write the files of a model, as above, into a folder that is there."""
    if adapters := lora_state_dict(loaded.model):
        save(adapters, folder / ADAPTERS, {"format": FORMAT, "model": loaded.spec.name})
    loaded = merged(loaded)
    description = {"format": FORMAT, "minigrad": __version__, "step": loaded.step, **loaded.arguments}
    description["data"] = None  # a path of this machine is private
    if "init" in description["config"]:
        description["config"] = {**description["config"], "init": None}
    weights: dict[int, tuple[str, Any]] = {}
    for name, value in loaded.model.state_dict().items():
        weights.setdefault(id(value.data), (name, value))  # a tied one once, by its first name
    save(dict(weights.values()), folder / WEIGHTS, {"format": FORMAT, "model": loaded.spec.name})
    write_atomically(folder / CONFIG, (json.dumps(description, indent=2) + "\n").encode())
    if loaded.tokenizer is not None:
        write_atomically(folder / TOKENIZER, loaded.tokenizer.to_json().encode())
    if licence := loaded.arguments.get("origin", {}).get("licence"):
        write_atomically(folder / LICENCE, licence.encode())


def merged(loaded: Loaded) -> Loaded:
    """The same with what its adapters learned in its weights; itself if it has none."""
    if not lora_state_dict(loaded.model):
        return loaded
    arguments = {**loaded.arguments, "config": {**loaded.arguments["config"], "lora": 0}}
    model, config = merge_lora(copy.deepcopy(loaded.model)), dataclasses.replace(loaded.config, lora=0)
    return dataclasses.replace(loaded, model=model, config=config, arguments=arguments)


def is_exported(folder: str | os.PathLike[str]) -> bool:
    """Whether this is a folder that `export` wrote."""
    return all((Path(folder) / name).is_file() for name in (WEIGHTS, CONFIG))


def load_exported(folder: str | os.PathLike[str]) -> Loaded:
    """The model of a folder that `export` wrote, ready to be used as one of `minigrad.zoo.load`."""
    path = Path(folder)
    description = description_of(path)
    text = path / TOKENIZER
    tokenizer = tokenizer_from_json(_text(text)) if text.is_file() else None
    weights, step = load_tensors(path / WEIGHTS), description["step"]
    return assembled(spec_of(description, path), description, weights, tokenizer, step, path)


def description_of(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """What config.json of a folder that `export` wrote says."""
    path = Path(folder) / CONFIG
    try:
        found = json.loads(_text(path))
        right = found["format"] == FORMAT and isinstance(found["step"], int) and are_arguments(found)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        right = False
    if not right:
        raise RunError(
            f"{os.fspath(path)!r} was not written by `minigrad export`, or is damaged", fix="export the run again"
        )
    return dict(found)


def _text(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST_JSON + 1)
        if len(content) > LARGEST_JSON:
            raise RunError(f"{os.fspath(path)!r} is too large", f"at most {LARGEST_JSON:,} bytes")
        return content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"{os.fspath(path)!r} cannot be read: {error}", fix="export the run again") from None
