"""Pretrained models into our own modules: `load` opens one, `import_model` writes it as a folder of minigrad."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..formats.mapped_file import release, writable
from ..kernels import Packed
from ..maths.packing import FORMATS
from ..nn import LearnedPositions, RelativePositions
from ..zoo import Loaded, find
from ..zoo import load as load_own
from ..zoo.export import export, is_exported
from ..zoo.registry import package_of
from .checked_config import build
from .families import family_of
from .family import From, HubError
from .source import Source, open_source, read_json

__all__ = ["import_model", "load"]

AT_ONCE = 16  # rows that are transposed together: twice as fast as all of them, which the cache cannot hold
UNPACKED = (LearnedPositions, RelativePositions)  # which take no packed rows


def load(source: str | os.PathLike[str], dtype: Any = None) -> Loaded:
    """Open a pretrained model, with its tokenizer, in our own modules; also a folder that `minigrad import` wrote.

    `source` is a folder in Hugging Face's layout, a .gguf file, a Marian .bin, a pytorch_model.bin beside its config.json,
    or `hf:owner/name@revision`. Weights stay as they are stored, packed and memory-mapped, unless a `dtype` is given.
    """
    if os.path.isdir(source) and is_exported(source) and not _is_foreign(Path(source)):
        return load_own(source)
    opened = open_source(source)
    family = family_of(opened.kind)
    spec = find(family.model)
    opened.config.names, opened.config.tokenizer = family.renamed(iter(opened.weights)), opened.tokenizer
    opened.config.options = opened.options
    config, model = build(spec, family, opened)
    state, modules = model.state_dict(), dict(model.named_modules())
    firsts = {id(tensor.data): name for name, tensor in reversed(state.items())}  # a tensor may have several names
    copies = [name for name in state if name not in firsts.values()]
    for name, origin in family.matched([*reversed(firsts.values())], iter(opened.weights), copies).items():
        module = modules[name.rpartition(".")[0]]
        kept = dtype is None and not isinstance(module, UNPACKED)
        value = _value(opened, origin, state[name], kept, dtype)
        _assign(module, name, state[name], value)
        for stored in (opened.weights[one].data for one in origin.names):
            if not np.may_share_memory(value.data if isinstance(value, Packed) else value, stored):
                release(stored)  # it was copied
    arguments = {
        "model": spec.name, "package": package_of(spec), "preset": None, "config": vars(config), "data": None, "seed": 0,
        "device": "cpu", "max_steps": 0, "origin": _origin(opened),
    }  # fmt: skip
    return Loaded(spec, config, model.eval(), opened.tokenizer, arguments, 0, Path(source))


def import_model(source: str | os.PathLike[str], out: str | os.PathLike[str]) -> Path:
    """Write a pretrained model as a folder that every verb of its task takes; its licence goes along."""
    return export(load(source), out)


def _is_foreign(folder: Path) -> bool:
    """Whether a folder with config.json and model.safetensors is not ours."""
    return "format" not in read_json(folder / "config.json")


def _origin(source: Source) -> dict[str, str]:
    """Where a model came from, as `minigrad show` says it."""
    return {"source": source.name, "family": source.kind, "minigrad": __version__, "licence": source.licence}


def _value(source: Source, origin: From, wanted: Any, kept: bool, dtype: Any) -> Any:
    """A tensor from the file: packed as it is stored, where it may be `kept` so, or an array of floats."""
    parts = [_turned(source.weights[name]) if origin.is_transposed else source.weights[name] for name in origin.names]
    is_matrix = wanted.ndim == 2 and all(len(part.shape) == 2 for part in parts)
    if kept and is_matrix and len({part.format for part in parts}) == 1 and parts[0].format in FORMATS:
        packed = _joined([_packed(part) for part in parts])
        packed = packed[origin.skip :] if origin.skip else packed
        if origin.extra:
            zeros = np.zeros((origin.extra, packed.data.shape[1]), np.uint8)
            packed = _joined([packed, Packed(zeros, packed.format, (origin.extra, packed.shape[1]))])
        return packed if origin.order is None else packed[origin.order(packed.shape[0], source.config)]
    arrays = [part.array() if is_matrix else part.array().reshape(-1) for part in parts]
    made = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    made = made[origin.skip :] if origin.skip else made
    made = np.concatenate([made, np.zeros((origin.extra, *made.shape[1:]), made.dtype)]) if origin.extra else made
    made = made if origin.order is None else made[origin.order(len(made), source.config)]
    made = made + np.float32(origin.plus) if origin.plus else made
    return np.ascontiguousarray(made, np.dtype(dtype or "float32") if wanted.dtype.kind == "f" else wanted.dtype)


def _turned(part: Any) -> Any:
    """A matrix that is stored as (in, out)."""
    if len(part.shape) != 2:
        return part
    data = np.empty(part.data.shape[::-1], part.data.dtype)
    for first in range(0, len(part.data), AT_ONCE):
        data[:, first : first + AT_ONCE] = part.data[first : first + AT_ONCE].T  # (some, out) -> (out, some)
    return replace(part, shape=part.shape[::-1], data=data)


def _packed(part: Any) -> Packed:
    """A matrix as it is stored, still in the memory of its file where that has our layout."""
    rows, _ = part.shape
    data = np.ascontiguousarray(part.data).view(np.uint8).reshape(rows, -1)
    if part.format == "i8":  # one scale for all, where ours have one in each row
        scales = np.full((rows, 1), part.scale, "<f4").view(np.uint8)
        data = np.concatenate([data, scales], axis=1)
    return Packed(data, part.format, part.shape)


def _joined(parts: list[Packed]) -> Packed:
    return parts[0] if len(parts) == 1 else Packed.concatenate(parts)


def _assign(module: Any, name: str, wanted: Any, value: Any) -> None:
    """Put a tensor in its place, without a copy."""
    if value.shape != wanted.shape:
        raise HubError(f"{name} of this model does not fit its config", wanted.shape, value.shape)
    leaf = name.rpartition(".")[2]
    if isinstance(value, Packed):
        setattr(module, leaf, value)
    else:
        getattr(module, leaf).data = writable(value)  # who trains it changes a copy of its pages, not the file
