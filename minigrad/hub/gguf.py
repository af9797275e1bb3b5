"""GGUF files as sources: their metadata in the words of a Hugging Face config."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..formats import open_weights
from ..tokenizers import from_gguf
from .family import HubError, ModelConfig
from .source import Source

__all__ = ["open_gguf"]

# Of a GGUF, after "llama.", and of config.json.
KEYS = {
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "attention.layer_norm_epsilon": "layer_norm_epsilon",
    "rope.freq_base": "rope_theta",
}


def open_gguf(path: Path) -> Source:
    """The model in a GGUF file, with the tokenizer and the chat template that it holds."""
    weights = open_weights(path)
    metadata = weights.metadata
    architecture = metadata.get("general.architecture")
    if architecture not in ("llama", "gpt2"):
        raise HubError(f"{os.fspath(path)!r}: the architecture {architecture!r} is not known here", "llama or gpt2")
    words: dict[str, Any] = {"model_type": architecture}
    for key, name in KEYS.items():
        if f"{architecture}.{key}" in metadata:
            words[name] = metadata[f"{architecture}.{key}"]
    scaling = metadata.get(f"{architecture}.rope.scaling.type", "none")
    if scaling != "none":
        raise HubError(f"{os.fspath(path)!r}: rotary positions scaled by {scaling!r} are not offered for GGUF files")
    words["vocab_size"] = weights["token_embd.weight"].shape[0]
    words["tie_word_embeddings"] = "output.weight" not in weights
    name = metadata.get("general.name", path.stem)
    licence = str(metadata.get("general.license", ""))
    tokenizer = None if metadata.get("tokenizer.ggml.model") == "no_vocab" else from_gguf(metadata)
    return Source(str(name), f"gguf:{architecture}", ModelConfig(words), weights, tokenizer, licence)
