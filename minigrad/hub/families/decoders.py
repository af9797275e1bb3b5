"""Families of decoders: configurations of the model `gpt`, which continue a text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..family import Family, From, HubError, ModelConfig, joined, transposed

__all__ = ["GEMMA", "GEMMA2", "GPT2", "LLAMA", "LLAMA_GGUF", "NEOX"]

BLOCK = "encoder.blocks.{i}."
GELUS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu_fast": "gelu_tanh"}


def _gpt2(config: ModelConfig) -> dict[str, Any]:
    config.refuse(scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False, add_cross_attention=False)
    activation = config.get("activation_function", "gelu_new")
    return {
        "vocab": config["vocab_size"], "context": config["n_positions"], "layers": config["n_layer"],
        "heads": config["n_head"], "dim": config["n_embd"], "hidden": config.get("n_inner"), "positions": "learned",
        "activation": GELUS.get(activation, activation), "eps": config.get("layer_norm_epsilon", 1e-5),
        "tied": config.get("tie_word_embeddings", True),
    }  # fmt: skip


GPT2 = Family(
    names=("gpt2",),
    model="gpt",
    settings=_gpt2,
    prefixes=("transformer.",),
    tensors={
        "tokens": "wte",
        "positions": "wpe",
        f"{BLOCK}attention_norm": "h.{i}.ln_1",
        f"{BLOCK}attention.in_proj": transposed("h.{i}.attn.c_attn"),
        f"{BLOCK}attention.out_proj": transposed("h.{i}.attn.c_proj"),
        f"{BLOCK}mlp_norm": "h.{i}.ln_2",
        f"{BLOCK}mlp.up": transposed("h.{i}.mlp.c_fc"),
        f"{BLOCK}mlp.down": transposed("h.{i}.mlp.c_proj"),
        "encoder.norm": "ln_f",
        "head": "lm_head",
    },
    ignored=(r"\.attn\.(masked_)?bias$",),
)


def _windows(config: ModelConfig, is_limited: Callable[[int], bool]) -> list[int | None]:
    """The window of each layer, None for all; older files do not list the layers, and each family has a rule for them."""
    numbers = range(config["num_hidden_layers"])
    usual = ["sliding_attention" if is_limited(i) else "full_attention" for i in numbers]
    kinds = config.first("layer_types", default=usual)
    unknown = {*kinds} - {"sliding_attention", "full_attention"}
    if unknown:
        raise HubError("a kind of layer of this model is not offered", "sliding_attention or full_attention", *unknown)
    return [config["sliding_window"] if kind == "sliding_attention" else None for kind in kinds]


def _llama(config: ModelConfig) -> dict[str, Any]:
    """Llama, Mistral, SmolLM, TinyLlama, Qwen2 and Qwen3, which differ in biases, norms of queries and keys, and windows."""
    config.refuse(hidden_act="silu", pretraining_tp=1, mlp_bias=False)
    kind, heads = config["model_type"], config["num_attention_heads"]
    has_window = config.get("use_sliding_window", kind == "mistral") and config.get("sliding_window") is not None
    first = 0 if kind == "mistral" else config.get("max_window_layers", 28)
    window = _windows(config, lambda layer: layer >= first) if has_window else None
    rope = config.first("rope_parameters", "rope_scaling", default={})
    is_scaled = rope.get("rope_type", rope.get("type", "default")) != "default"
    has_bias = config.get("attention_bias", kind == "qwen2")
    block = {
        "head_dim": config.get("head_dim"), "kv_heads": config.get("num_key_value_heads"), "window": window,
        "attention_bias": has_bias, "out_bias": has_bias and kind != "qwen2",
        "qk_norm": "rms" if kind == "qwen3" else None,
    }  # fmt: skip
    base = rope.get("rope_theta", config.get("rope_theta", 10000.0))
    context = {"original_max_position_embeddings": config["max_position_embeddings"]}  # unless it says another one
    return {
        "vocab": config["vocab_size"], "context": config["max_position_embeddings"],
        "layers": config["num_hidden_layers"], "heads": heads, "dim": config["hidden_size"],
        "hidden": config["intermediate_size"], "positions": "rotary", "norm": "rms", "activation": "swiglu",
        "bias": False, "eps": config["rms_norm_eps"], "tied": config.get("tie_word_embeddings", False),
        "rotary": {"base": base, "style": "half", **({"scaling": {**context, **rope}} if is_scaled else {})},
        "block": {name: value for name, value in block.items() if value is not None},
    }  # fmt: skip


def _gemma(config: ModelConfig) -> dict[str, Any]:
    """Gemma: scaled vectors of tokens, and a gate with GELU."""
    config.refuse(use_bidirectional_attention=None)
    rope, has_bias = config.first("rope_parameters", default={}), config.get("attention_bias", False)
    if rope.get("rope_type", "default") != "default":
        raise HubError(
            "scaled rotary positions are not offered for this family", "rope_type default", rope["rope_type"]
        )
    activation = config.first("hidden_activation", "hidden_act", default="gelu_pytorch_tanh")
    if activation not in ("gelu", *GELUS):
        raise HubError("hidden_activation of this model is not offered", f"gelu, {', '.join(GELUS)}", activation)
    return {
        "vocab": config["vocab_size"], "context": config["max_position_embeddings"],
        "layers": config["num_hidden_layers"], "heads": config["num_attention_heads"], "dim": config["hidden_size"],
        "hidden": config["intermediate_size"], "positions": "rotary", "norm": "rms", "scaled": True, "bias": False,
        "activation": "geglu" if activation == "gelu" else "geglu_tanh", "eps": config["rms_norm_eps"],
        "tied": config.get("tie_word_embeddings", True),
        "rotary": {"base": rope.get("rope_theta", config.get("rope_theta", 10000.0)), "style": "half"},
        "block": {
            "head_dim": config["head_dim"], "kv_heads": config["num_key_value_heads"], "attention_bias": has_bias,
            "out_bias": has_bias,
        },
    }  # fmt: skip


def _gemma2(config: ModelConfig) -> dict[str, Any]:
    """The same with norms after each part too, capped scores and logits, and a window in every other layer."""
    settings = _gemma(config)
    block = {
        "scale": config["query_pre_attn_scalar"] ** -0.5, "softcap": config.get("attn_logit_softcapping"), "sandwich": True,
        "window": _windows(config, lambda layer: layer % 2 == 0),
    }  # fmt: skip
    return {**settings, "logit_softcap": config.get("final_logit_softcapping"), "block": {**settings["block"], **block}}


def _less_one(name: str) -> From:
    """A norm of Gemma's, whose weights are stored less 1."""
    return From((name,), plus=1.0)


GEMMA_TENSORS: dict[str, str | From] = {
    "tokens": "embed_tokens",
    f"{BLOCK}attention_norm": _less_one("layers.{i}.input_layernorm"),
    f"{BLOCK}attention.in_proj": joined(*[f"layers.{{i}}.self_attn.{part}_proj" for part in "qkv"]),
    f"{BLOCK}attention.out_proj": "layers.{i}.self_attn.o_proj",
    f"{BLOCK}mlp.up": joined("layers.{i}.mlp.gate_proj", "layers.{i}.mlp.up_proj"),
    f"{BLOCK}mlp.down": "layers.{i}.mlp.down_proj",
    "encoder.norm": _less_one("norm"),
    "head": "lm_head",
}
GEMMA = Family(
    names=("gemma",),
    model="gpt",
    settings=_gemma,
    prefixes=("model.",),
    tensors={**GEMMA_TENSORS, f"{BLOCK}mlp_norm": _less_one("layers.{i}.post_attention_layernorm")},
    ignored=(r"rotary_emb\.inv_freq$",),
)
GEMMA2 = Family(
    names=("gemma2",),
    model="gpt",
    settings=_gemma2,
    prefixes=("model.",),
    tensors={
        **GEMMA_TENSORS,
        f"{BLOCK}attention_post_norm": _less_one("layers.{i}.post_attention_layernorm"),
        f"{BLOCK}mlp_norm": _less_one("layers.{i}.pre_feedforward_layernorm"),
        f"{BLOCK}mlp_post_norm": _less_one("layers.{i}.post_feedforward_layernorm"),
    },
    ignored=(r"rotary_emb\.inv_freq$",),
)
LLAMA = Family(
    names=("llama", "mistral", "qwen2", "qwen3"),
    model="gpt",
    settings=_llama,
    prefixes=("model.",),
    tensors={
        "tokens": "embed_tokens",
        f"{BLOCK}attention_norm": "layers.{i}.input_layernorm",
        f"{BLOCK}attention.in_proj": joined(*[f"layers.{{i}}.self_attn.{part}_proj" for part in "qkv"]),
        f"{BLOCK}attention.q_norm": "layers.{i}.self_attn.q_norm",
        f"{BLOCK}attention.k_norm": "layers.{i}.self_attn.k_norm",
        f"{BLOCK}attention.out_proj": "layers.{i}.self_attn.o_proj",
        f"{BLOCK}mlp_norm": "layers.{i}.post_attention_layernorm",
        f"{BLOCK}mlp.up": joined("layers.{i}.mlp.gate_proj", "layers.{i}.mlp.up_proj"),
        f"{BLOCK}mlp.down": "layers.{i}.mlp.down_proj",
        "encoder.norm": "norm",
        "head": "lm_head",
    },
    ignored=(r"rotary_emb\.inv_freq$",),
)


def _llama_gguf(config: ModelConfig) -> dict[str, Any]:
    """The same, from the words of a GGUF file; there the rows of queries and keys are ordered for pairs of neighbours."""
    settings = _llama(config)
    return {**settings, "rotary": {**settings["rotary"], "style": "interleaved"}}


LLAMA_GGUF = Family(
    names=("gguf:llama",),
    model="gpt",
    settings=_llama_gguf,
    tensors={
        "tokens": "token_embd",
        f"{BLOCK}attention_norm": "blk.{i}.attn_norm",
        f"{BLOCK}attention.in_proj": joined(*[f"blk.{{i}}.attn_{part}" for part in "qkv"]),
        f"{BLOCK}attention.out_proj": "blk.{i}.attn_output",
        f"{BLOCK}mlp_norm": "blk.{i}.ffn_norm",
        f"{BLOCK}mlp.up": joined("blk.{i}.ffn_gate", "blk.{i}.ffn_up"),
        f"{BLOCK}mlp.down": "blk.{i}.ffn_down",
        "encoder.norm": "output_norm",
        "head": "output",
    },
    ignored=(r"^rope_freqs\.weight$",),
)


def _neox(config: ModelConfig) -> dict[str, Any]:
    heads, dim = config["num_attention_heads"], config["hidden_size"]
    rope = config.first("rope_parameters", "rope_scaling", default={})
    part = config.first("rotary_pct", default=rope.get("partial_rotary_factor", 0.25))
    base = config.first("rotary_emb_base", default=rope.get("rope_theta", 10000.0))
    activation = config.get("hidden_act", "gelu")
    return {
        "vocab": config["vocab_size"], "context": config["max_position_embeddings"],
        "layers": config["num_hidden_layers"], "heads": heads, "dim": dim, "hidden": config["intermediate_size"],
        "positions": "rotary", "activation": GELUS.get(activation, activation), "eps": config["layer_norm_eps"],
        "tied": config.get("tie_word_embeddings", False),
        "rotary": {"base": base, "style": "half", "rotary_dim": int(dim // heads * part)},
        "block": {"parallel": config.get("use_parallel_residual", True), "attention_bias": config.get("attention_bias", True)},
    }  # fmt: skip


def _heads_apart(rows: int, config: ModelConfig) -> np.ndarray:
    """NeoX has the query, key and value of each head together; we have all queries, then all keys, then all values."""
    heads = config["num_attention_heads"]
    return np.arange(rows).reshape(heads, 3, -1).transpose(1, 0, 2).reshape(-1)


NEOX = Family(
    names=("gpt_neox",),
    model="gpt",
    settings=_neox,
    prefixes=("gpt_neox.",),
    tensors={
        "tokens": "embed_in",
        f"{BLOCK}attention_norm": "layers.{i}.input_layernorm",
        f"{BLOCK}attention.in_proj": From(("layers.{i}.attention.query_key_value",), order=_heads_apart),
        f"{BLOCK}attention.out_proj": "layers.{i}.attention.dense",
        f"{BLOCK}mlp_norm": "layers.{i}.post_attention_layernorm",
        f"{BLOCK}mlp.up": "layers.{i}.mlp.dense_h_to_4h",
        f"{BLOCK}mlp.down": "layers.{i}.mlp.dense_4h_to_h",
        "encoder.norm": "final_layer_norm",
        "head": "embed_out",
    },
    ignored=(r"\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)$",),
)
