"""A gpt of Llama's or GPT-2's parts as GGUF, the file of llama.cpp."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..data import BPETokenizer
from ..formats.gguf_writer import gguf_bytes
from ..saving import write_atomically
from ..tokenizers import PretrainedTokenizer
from ..tokenizers.description import description_of
from ..tokenizers.patterns import GPT2
from ..tokenizers.readers.gguf import DIGITS, PATTERNS
from ..tokenizers.readers.sentencepiece import CONTROL, NORMAL, UNUSED, USER_DEFINED
from ..zoo import Loaded
from .families.decoders import GPT2_GGUF, LLAMA_GGUF
from .family import Family, HubError
from .layout import Layout, halves, layout_of

__all__ = ["export_gguf"]

FAMILIES: dict[str, Family] = {"llama": LLAMA_GGUF, "gpt2": GPT2_GGUF}
IDS = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}


def export_gguf(loaded: Loaded, path: str | os.PathLike[str]) -> Path:
    """Write a file in float32, with the tokenizer where llama.cpp has its kind."""
    layout = layout_of(loaded)
    kind = layout.config["model_type"]
    if kind not in FAMILIES:
        raise HubError(
            f"{loaded.spec.name} is a {kind} there", "a llama or a gpt2", fix="export it otherwise: --to hf, --to onnx"
        )
    tensors = dict(
        part for name, array in layout.tensors.items() for part in _written(layout, FAMILIES[kind], name, array)
    )
    tokens = _tokenizer(loaded, layout.own["vocab"])
    metadata = {
        "general.architecture": kind, "general.name": loaded.spec.name, "general.file_type": 0, **_sizes(kind, layout.config),
        **{f"tokenizer.ggml.{name}": value for name, value in tokens.items()},
        **({"tokenizer.chat_template": chat} if (chat := getattr(loaded.tokenizer, "chat_template", None)) else {}),
    }  # fmt: skip
    target = Path(path)
    if target.exists():
        raise HubError(f"{os.fspath(path)!r} is taken", "a file that is new", fix="choose another name")
    target.absolute().parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, gguf_bytes(metadata, tensors))
    return target


def _sizes(kind: str, config: Mapping[str, Any]) -> dict[str, Any]:
    if kind == "gpt2":
        sizes = {
            "context_length": config["n_positions"], "embedding_length": config["n_embd"], "block_count": config["n_layer"],
            "feed_forward_length": config["n_inner"], "attention.head_count": config["n_head"],
            "attention.layer_norm_epsilon": float(config["layer_norm_epsilon"]),
        }  # fmt: skip
        if config["activation_function"] != "gelu_new":
            raise HubError("GGUF has one activation for gpt2", "activation=gelu_tanh", config["activation_function"])
    else:
        rope = config["rope_parameters"]
        if rope["rope_type"] != "default" or config["attention_bias"]:
            raise HubError("this Llama has no GGUF here", "plain rotary positions and no biases", rope["rope_type"])
        sizes = {
            "context_length": config["max_position_embeddings"], "embedding_length": config["hidden_size"],
            "block_count": config["num_hidden_layers"], "feed_forward_length": config["intermediate_size"],
            "attention.head_count": config["num_attention_heads"],
            "attention.head_count_kv": config["num_key_value_heads"], "attention.key_length": config["head_dim"],
            "attention.value_length": config["head_dim"], "rope.dimension_count": config["head_dim"],
            "rope.freq_base": float(rope["rope_theta"]), "attention.layer_norm_rms_epsilon": float(config["rms_norm_eps"]),
            "vocab_size": config["vocab_size"],
        }  # fmt: skip
    return {f"{kind}.{name}": value for name, value in sizes.items()}


def _written(layout: Layout, family: Family, name: str, array: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """A tensor under its names there; rows of queries and keys have pairs side by side."""
    source = family.sources(name)
    if source is None:
        return
    config, parts = layout.config, len(source.names)
    rows = [len(array) // parts] * parts
    if parts == 3:
        size, shared = config["head_dim"], config["num_key_value_heads"]
        rows = [size * heads for heads in (config["num_attention_heads"], shared, shared)]
        count, order = len(array) // size - shared, np.argsort(halves(size))
        turned = (size * np.arange(count)[:, None] + order).reshape(-1)
        array = np.concatenate([array[turned], array[len(turned) :]])
    yield from zip(source.names, np.split(array, np.cumsum(rows)[:-1]))


def _tokenizer(loaded: Loaded, vocab: int) -> dict[str, Any]:
    """Byte pairs as llama.cpp has them; a tokenizer of another kind is left out, and then it takes numbers of tokens."""
    tokenizer = loaded.tokenizer
    description = description_of(tokenizer) if isinstance(tokenizer, (BPETokenizer, PretrainedTokenizer)) else {}
    model = description.get("model", {})
    pre = "gpt-2" if isinstance(tokenizer, BPETokenizer) else _pattern(description)
    if model.get("type") != "BPE" or pre is None:
        return {"model": "no_vocab"}
    names, kinds = [f"[PAD{number}]" for number in range(vocab)], [UNUSED] * vocab  # where no token has the number
    for token, number in model["vocab"].items():
        names[number], kinds[number] = token, NORMAL
    for one in description["added_tokens"] or ():
        names[one["id"]], kinds[one["id"]] = one["content"], CONTROL if one.get("special") else USER_DEFINED
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    ids = {
        f"{name}_token_id": names.index(token) for key, name in IDS.items()
        if (token := description.get("special_tokens", {}).get(key)) in names
    }  # fmt: skip
    return {"model": "gpt2", "pre": pre, "tokens": names, "token_type": kinds, "merges": merges, **ids}


def _pattern(description: Mapping[str, Any]) -> str | None:
    """What GGUF calls the patterns that cut a text into words; None for those that it has no name for."""
    cut = description.get("pre_tokenizer") or {}
    found: list[str] = []
    for part in cut.get("pretokenizers", [cut]):
        if part.get("type") == "Split":
            found.append(part["pattern"].get("Regex", ""))
        elif part.get("type") == "Digits":
            found.append(DIGITS)
        elif part.get("type") == "ByteLevel" and part.get("use_regex", True):
            found.append(GPT2)
    known = (name for name, one in PATTERNS.items() if found == (one if isinstance(one, list) else [one]))
    return next((name for name in known if name != "default"), None)
