"""A model of ours in Hugging Face's layout, which `transformers` loads without code of ours: the reverse of loading."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..nn import SinusoidalPositions
from ..ops.creation import zeros
from ..saving import save, write_atomically
from ..tokenizers.description import description_of
from ..zoo import Loaded
from ..zoo.export import new_folder
from .family import From
from .layout import Layout, layout_of

__all__ = ["export_transformers"]


def export_transformers(loaded: Loaded, folder: str | os.PathLike[str]) -> Path:
    """Write config.json, model.safetensors, the tokenizer, and what says how texts are generated or pooled."""
    layout = layout_of(loaded)
    tensors = dict(part for name, array in layout.tensors.items() for part in _written(layout, name, array))
    tensors |= {**_sines(layout), **_unused(layout.config), **layout.further}
    files = {"config.json": dict(layout.config), **_options(layout, loaded), **_tokenizer(layout, loaded)}
    if layout.lost:
        kind = "".join(layout.config["architectures"])
        warnings.warn(f"{loaded.spec.name} is written as {kind}, which has no place for {layout.lost}", stacklevel=2)

    def write(target: Path) -> None:
        save(tensors, target / "model.safetensors", {"format": "pt"})
        for name, content in files.items():
            (target / name).parent.mkdir(exist_ok=True)
            text = json.dumps(content, indent=None if name == "tokenizer.json" else 2, ensure_ascii=False)
            write_atomically(target / name, (text + "\n").encode())

    return new_folder(folder, write)


def _written(layout: Layout, name: str, array: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """A tensor of ours as the family has it: rows apart where it keeps them so, turned, and under its names."""
    source = layout.sources(name)
    if source is None:
        return []
    if source.order is not None:
        array = array[np.argsort(source.order(len(array), layout.config))]
    array = array - np.float32(source.plus) if source.plus else array
    if source.skip:
        array = np.concatenate([np.zeros((source.skip, *array.shape[1:]), array.dtype), array])
    cuts = np.cumsum(_rows(source, len(array), layout.config))[:-1]
    prefix = layout.family.prefixes[0] if layout.family.prefixes else ""
    made = []
    for called, part in zip(source.names, np.split(array, cuts)):
        part = part.T if source.is_transposed else part
        whole = called if called.startswith(tuple(layout.family.heads)) else prefix + called
        made.append((whole, np.ascontiguousarray(part[None] if source.is_row else part)))
    return made


def _sines(layout: Layout) -> dict[str, np.ndarray]:
    """The tables of sines that transformers reads from the file, for encoder and decoder."""
    if layout.own.get("positions") != "sinusoidal":
        return {}
    width, length = layout.config["d_model"], layout.config["max_position_embeddings"]
    table = SinusoidalPositions(width, **layout.own["position_options"])(zeros(length, width)).numpy()
    return {f"model.{part}.embed_positions.weight": table for part in ("encoder", "decoder")}


def _unused(config: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """What transformers misses where it is not in the file: of ESM a head for proteins, and the speeds of rotary positions."""
    if config["model_type"] != "esm":
        return {}
    heads = config["num_attention_heads"]
    width, maps = config["hidden_size"] // heads, config["num_hidden_layers"] * heads
    head = {"weight": np.zeros((1, maps), "float32"), "bias": np.zeros(1, "float32")}
    speeds = config["rope_theta"] ** -(np.arange(0, width, 2) / width)
    return {
        **{f"esm.contact_head.regression.{name}": array for name, array in head.items()},
        "esm.rotary_embeddings.inv_freq": speeds.astype("float32"),
    }


def _rows(source: From, rows: int, config: Mapping[str, Any]) -> list[int]:
    """How many rows each of the tensors has that lie in one of ours: queries, keys and values, or a gate and what it opens."""
    parts = len(source.names)
    shared = config.get("num_key_value_heads")
    if parts == 3 and shared is not None:
        return [config["head_dim"] * heads for heads in (config["num_attention_heads"], shared, shared)]
    return [rows // parts] * parts


def _options(layout: Layout, loaded: Loaded) -> dict[str, Any]:
    """Files that say how texts are generated, or how they become vectors, as sentence-transformers reads it."""
    options, config = layout.config.options, layout.config
    if "generation" in options:
        ids = {name: config[name] for name in config if name.endswith("_token_id")}
        most = min(config.get("max_position_embeddings", config.get("n_positions")), 2 * layout.own["max_length"] + 10)
        return {
            "generation_config.json": {
                **ids, **options["generation"], "max_length": most, "num_beams": layout.own["beams"]
            }
        }  # fmt: skip
    if layout.own.get("task") != "embed":
        return {}
    modules = [
        {
            "idx": i,
            "name": str(i),
            "path": "1_Pooling" if "Pooling" in part["type"] else f"{i}_Normalize" * (i > 1),
            **part,
        }
        for i, part in enumerate(options["modules"])
    ]
    mode, width = options["pooling"]["pooling_mode"], layout.own["dim"]
    kinds = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens"}
    pooling = {f"pooling_mode_{name}": kind == mode for kind, name in kinds.items()}
    return {"modules.json": modules, "1_Pooling/config.json": {"word_embedding_dimension": width, **pooling}}


def _tokenizer(layout: Layout, loaded: Loaded) -> dict[str, Any]:
    """tokenizer.json, and beside it what it does not say: which tokens are special, and how a chat is written."""
    if loaded.tokenizer is None:
        return {}
    around = {"masked language model": "both", "translation": "end"}.get(loaded.spec.task, "")
    description = description_of(loaded.tokenizer, around)
    special, chat = description.pop("special_tokens", {}), description.pop("chat_template", None)
    length = getattr(loaded.config, "context", None) or getattr(loaded.config, "max_length", None)
    types = ["token_type_ids"] * bool(layout.own.get("types"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast", **special, "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", *types, "attention_mask"],
        **({"model_max_length": length} if length else {}), **({"chat_template": chat} if chat else {}),
    }  # fmt: skip
    return {"tokenizer.json": description, "tokenizer_config.json": config}
