"""A trained gpt in Hugging Face's layout, GPT-2's or Llama's, which `transformers` loads: the reverse of loading."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from ..saving import save, write_atomically
from ..tokenizers import PretrainedTokenizer
from ..zoo import Loaded
from ..zoo.export import merged, new_folder
from .families.decoders import GPT2, LLAMA
from .family import Family, HubError

__all__ = ["export_transformers"]

SPECIAL_IDS = ("bos_token_id", "eos_token_id", "pad_token_id")


def export_transformers(loaded: Loaded, folder: str | os.PathLike[str]) -> Path:
    """Write config.json and model.safetensors, and tokenizer.json where the tokenizer came with the model."""
    loaded = merged(loaded)
    family, config = _layout(loaded)
    tensors = _tensors(loaded.model, family, config)

    def write(target: Path) -> None:
        save(tensors, target / "model.safetensors", {"format": "pt"})
        write_atomically(target / "config.json", (json.dumps(config, indent=2) + "\n").encode())
        if isinstance(loaded.tokenizer, PretrainedTokenizer):
            write_atomically(target / "tokenizer.json", loaded.tokenizer.to_json().encode())

    return new_folder(folder, write)


def _layout(loaded: Loaded) -> tuple[Family, dict[str, Any]]:
    """The family whose options these are, and its config."""
    if loaded.spec.name != "gpt":
        raise HubError(
            f"{loaded.spec.name} has no layout of transformers here",
            "gpt",
            fix="minigrad export RUN FOLDER, or --to onnx",
        )
    settings = vars(loaded.config)
    is_llama = settings["positions"] == "rotary"
    plain: dict[str, Any] = {"scaled": False, "logit_softcap": None}
    if is_llama:
        plain |= {"norm": "rms", "activation": "swiglu", "bias": False}
        known = {"kv_heads", "head_dim"}
    else:
        plain |= {"positions": "learned", "norm": "layer", "bias": True}
        known = set()
    found = {name: settings.get(name) for name, value in plain.items() if settings.get(name, value) != value}
    found |= {f"block.{name}": value for name, value in settings["block"].items() if name not in known}
    rotary = settings["rotary"]
    if is_llama and (rotary.get("style", "interleaved") != "half" or set(rotary) - {"style", "base"}):
        found["rotary"] = rotary
    if not is_llama and settings["activation"] not in ("gelu_tanh", "gelu", "relu", "silu"):
        found["activation"] = settings["activation"]
    if found:
        wanted = {**plain, **({"rotary": {"style": "half"}} if is_llama else {})}
        raise HubError(
            f"no layout of transformers has these settings of gpt: {', '.join(f'{k}={v!r}' for k, v in found.items())}",
            f"for {'Llama' if is_llama else 'GPT-2'}: {', '.join(f'{k}={v!r}' for k, v in wanted.items())}",
            fix="train with these, or export to ONNX: --to onnx",
        )
    return (LLAMA, _llama_config(loaded)) if is_llama else (GPT2, _gpt2_config(loaded))


def _gpt2_config(loaded: Loaded) -> dict[str, Any]:
    settings, model = vars(loaded.config), loaded.model
    activation = settings["activation"]
    return {
        "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": len(model.tokens.weight),
        "n_positions": model.context, "n_layer": settings["layers"], "n_head": settings["heads"], "n_embd": settings["dim"],
        "n_inner": model.encoder.blocks[0].mlp.up.weight.shape[0], "layer_norm_epsilon": model.encoder.norm.eps,
        "activation_function": "gelu_new" if activation == "gelu_tanh" else activation,
        "tie_word_embeddings": settings["tied"], **_special(loaded),
    }  # fmt: skip


def _llama_config(loaded: Loaded) -> dict[str, Any]:
    settings, model = vars(loaded.config), loaded.model
    block, heads, eps = settings["block"], settings["heads"], model.encoder.norm.eps
    return {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": len(model.tokens.weight),
        "max_position_embeddings": model.context, "num_hidden_layers": settings["layers"], "num_attention_heads": heads,
        "num_key_value_heads": block.get("kv_heads") or heads, "hidden_size": settings["dim"],
        "head_dim": block.get("head_dim") or settings["dim"] // heads,
        "intermediate_size": model.encoder.blocks[0].mlp.down.weight.shape[1], "hidden_act": "silu",
        "rms_norm_eps": float(np.finfo("float32").eps) if eps is None else eps, "rope_theta": settings["rotary"].get("base", 10000.0),
        "tie_word_embeddings": settings["tied"], "attention_bias": False, "mlp_bias": False, **_special(loaded),
    }  # fmt: skip


def _special(loaded: Loaded) -> dict[str, Any]:
    tokenizer = loaded.tokenizer
    return {name: getattr(tokenizer, name.replace("_token", ""), None) for name in SPECIAL_IDS}


def _tensors(model: Any, family: Family, config: dict[str, Any]) -> dict[str, np.ndarray]:
    """The tensors by their names in the family: rows apart where it keeps them so, and turned."""
    made: dict[str, np.ndarray] = {}
    seen: set[int] = set()
    prefix = family.prefixes[0]
    for name, tensor in model.state_dict().items():
        source = family.sources(name)
        if id(tensor.data) in seen or source is None:
            continue
        seen.add(id(tensor.data))
        array = np.asarray(tensor.numpy(), "float32")
        rows = np.cumsum(_rows(len(source.names), len(array), config))[:-1]
        for called, part in zip(source.names, np.split(array, rows)):
            whole = called if called.startswith("lm_head") else prefix + called
            made[whole] = np.ascontiguousarray(part.T if source.is_transposed else part)
    return made


def _rows(parts: int, rows: int, config: dict[str, Any]) -> list[int]:
    """How many rows each of the tensors has that lie in one of ours: queries, keys and values, or a gate and what it opens."""
    if parts == 3:
        width = config["head_dim"]
        return [width * config["num_attention_heads"], *[width * config["num_key_value_heads"]] * 2]
    return [rows // parts] * parts
