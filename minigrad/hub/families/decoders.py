"""Families of decoders: configurations of the model `gpt`, which continue a text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ..family import Family, From, HubError, ModelConfig, joined, transposed

__all__ = ["GEMMA", "GEMMA2", "GPT2", "GPT2_GGUF", "LLAMA", "LLAMA_GGUF", "NEOX"]

BLOCK = "encoder.blocks.{i}."
GELUS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu_fast": "gelu_tanh"}
Own = Mapping[str, Any]  # the settings of a model of ours


def _gpt2(config: ModelConfig) -> dict[str, Any]:
    config.refuse(scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False, add_cross_attention=False)
    activation = config.get("activation_function", "gelu_new")
    return {
        "vocab": config["vocab_size"], "context": config["n_positions"], "layers": config["n_layer"],
        "heads": config["n_head"], "dim": config["n_embd"], "hidden": config.get("n_inner"), "positions": "learned",
        "activation": GELUS.get(activation, activation), "eps": config.get("layer_norm_epsilon", 1e-5),
        "tied": config.get("tie_word_embeddings", True),
    }  # fmt: skip


def _gpt2_configs(own: Own, model: Any) -> Iterator[dict[str, Any]]:
    yield {
        "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": own["vocab"],
        "n_positions": own["context"], "n_layer": own["layers"], "n_head": own["heads"], "n_embd": own["dim"],
        "n_inner": model.encoder.blocks[0].mlp.up.weight.shape[0], "layer_norm_epsilon": model.encoder.norm.eps,
        "activation_function": theirs(own["activation"]), "tie_word_embeddings": own["tied"],
    }  # fmt: skip


def theirs(activation: str) -> str:
    """What transformers call an activation."""
    return "gelu_new" if activation == "gelu_tanh" else activation


GPT2 = Family(
    names=("gpt2",),
    model="gpt",
    settings=_gpt2,
    configs=_gpt2_configs,
    heads=("lm_head",),
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


def _common_config(own: Own, model: Any) -> dict[str, Any]:
    """What the configs of all families with rotary positions say in the same words."""
    block, heads, mlp = own["block"], own["heads"], model.encoder.blocks[0].mlp
    rope = {
        "rope_theta": own["rotary"].get("base", 10000.0),
        **(own["rotary"].get("scaling") or {"rope_type": "default"}),
    }
    return {
        "vocab_size": own["vocab"], "max_position_embeddings": own["context"], "num_hidden_layers": own["layers"],
        "num_attention_heads": heads, "num_key_value_heads": block.get("kv_heads") or heads, "hidden_size": own["dim"],
        "head_dim": block.get("head_dim") or own["dim"] // heads, "intermediate_size": mlp.down.weight.shape[1],
        "rms_norm_eps": float(np.finfo("float32").eps) if model.encoder.norm.eps is None else model.encoder.norm.eps,
        "rope_theta": rope["rope_theta"], "rope_parameters": rope, "tie_word_embeddings": own["tied"],
        "attention_bias": bool(block.get("attention_bias", own["bias"])),
    }  # fmt: skip


def _llama_configs(own: Own, model: Any) -> Iterator[dict[str, Any]]:
    """Those of Llama, Mistral, Qwen2 and Qwen3, of which at most one kind has the biases, norms and windows of a model."""
    shared = {**_common_config(own, model), "hidden_act": "silu", "mlp_bias": False}
    yield {**shared, "model_type": "llama", "architectures": ["LlamaForCausalLM"]}
    window = own["block"].get("window")
    windows = window if isinstance(window, (list, tuple)) else [window] * own["layers"]
    limited = {
        "sliding_window": next(filter(None, windows), None),
        "layer_types": ["full_attention" if one is None else "sliding_attention" for one in windows],
    }
    if None not in windows:
        mistral = {name: value for name, value in shared.items() if name not in ("attention_bias", "mlp_bias")}
        yield {
            **mistral,
            "model_type": "mistral",
            "architectures": ["MistralForCausalLM"],
            "sliding_window": windows[0],
        }
    used = {**limited, "use_sliding_window": limited["sliding_window"] is not None, "max_window_layers": 0}
    qwen2 = {name: value for name, value in shared.items() if name != "attention_bias"}
    yield {**qwen2, "model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], **used}
    yield {**shared, "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], **used}


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


def _gemma_configs(own: Own, model: Any) -> Iterator[dict[str, Any]]:
    activation = "gelu" if own["activation"] == "geglu" else "gelu_pytorch_tanh"
    yield {
        **_common_config(own, model), "model_type": "gemma", "architectures": ["GemmaForCausalLM"],
        "hidden_act": activation, "hidden_activation": activation,
    }  # fmt: skip


def _gemma2_configs(own: Own, model: Any) -> Iterator[dict[str, Any]]:
    (config,), attention = _gemma_configs(own, model), model.encoder.blocks[0].attention
    window = own["block"].get("window")
    windows = window if isinstance(window, (list, tuple)) else [window] * own["layers"]
    yield {
        **config, "model_type": "gemma2", "architectures": ["Gemma2ForCausalLM"],
        "query_pre_attn_scalar": round(attention.scale**-2), "attn_logit_softcapping": attention.softcap,
        "final_logit_softcapping": own["logit_softcap"], "sliding_window": next(filter(None, windows), None),
        "layer_types": ["full_attention" if one is None else "sliding_attention" for one in windows],
    }  # fmt: skip


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
    configs=_gemma_configs,
    heads=("lm_head",),
    prefixes=("model.",),
    tensors={**GEMMA_TENSORS, f"{BLOCK}mlp_norm": _less_one("layers.{i}.post_attention_layernorm")},
    ignored=(r"rotary_emb\.inv_freq$",),
)
GEMMA2 = Family(
    names=("gemma2",),
    model="gpt",
    settings=_gemma2,
    configs=_gemma2_configs,
    heads=("lm_head",),
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
    configs=_llama_configs,
    heads=("lm_head",),
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


def _gpt2_gguf(config: ModelConfig) -> dict[str, Any]:
    names = {
        "n_positions": "max_position_embeddings", "n_layer": "num_hidden_layers", "n_head": "num_attention_heads",
        "n_embd": "hidden_size", "n_inner": "intermediate_size",
    }  # fmt: skip
    return _gpt2(ModelConfig(config, **{name: config[words] for name, words in names.items()}))


GPT2_GGUF = Family(
    names=("gguf:gpt2",),
    model="gpt",
    settings=_gpt2_gguf,
    tensors={
        "tokens": "token_embd",
        "positions": "position_embd",
        f"{BLOCK}attention_norm": "blk.{i}.attn_norm",
        f"{BLOCK}attention.in_proj": "blk.{i}.attn_qkv",
        f"{BLOCK}attention.out_proj": "blk.{i}.attn_output",
        f"{BLOCK}mlp_norm": "blk.{i}.ffn_norm",
        f"{BLOCK}mlp.up": "blk.{i}.ffn_up",
        f"{BLOCK}mlp.down": "blk.{i}.ffn_down",
        "encoder.norm": "output_norm",
        "head": "output",
    },
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


def _neox_configs(own: Own, model: Any) -> Iterator[dict[str, Any]]:
    config, head = _common_config(own, model), own["dim"] // own["heads"]
    part, base = (own["rotary"].get("rotary_dim") or head) / head, config["rope_theta"]
    config = {name: config[name] for name in config if not name.startswith(("rms_", "rope_", "head_", "num_key"))}
    yield {
        **config, "model_type": "gpt_neox", "architectures": ["GPTNeoXForCausalLM"],
        "hidden_act": theirs(own["activation"]), "layer_norm_eps": model.encoder.norm.eps,
        "use_parallel_residual": own["block"].get("parallel", False), "rotary_pct": part, "rotary_emb_base": base,
        "rope_parameters": {"rope_type": "default", "rope_theta": base, "partial_rotary_factor": part},
    }  # fmt: skip


def _heads_apart(rows: int, config: ModelConfig) -> np.ndarray:
    """NeoX has the query, key and value of each head together; we have all queries, then all keys, then all values."""
    heads = config["num_attention_heads"]
    return np.arange(rows).reshape(heads, 3, -1).transpose(1, 0, 2).reshape(-1)


NEOX = Family(
    names=("gpt_neox",),
    model="gpt",
    settings=_neox,
    configs=_neox_configs,
    heads=("embed_out",),
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
