"""Families of encoder-decoders: configurations of the model `translator`, which turn one text into another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..family import Family, From, HubError, ModelConfig, either, joined

__all__ = ["BART", "MARIAN", "PEGASUS", "T5"]

ENCODER, DECODER = "encoder.blocks.{i}.", "decoder.blocks.{i}."
ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "swish": "silu"}
GATED = {"gelu_tanh": "geglu_tanh", "gelu": "geglu", "silu": "swiglu", "relu": "reglu"}
TOKENS = {"vocabulary": "pretrained"}
# What an imported translator is evaluated and searched with.
USE: dict[str, Any] = {"corpus": "pairs", "form": "plain", "batch": 2048, "lr": 3e-4, "epochs": 1.0}


def _use(config: ModelConfig, longest: int) -> dict[str, Any]:
    return {**USE, "beams": _generation(config, "num_beams") or 1, "max_length": longest}


def _generation(config: ModelConfig, key: str) -> Any:
    """How texts are generated, which newer models do not say in config.json."""
    return config.first(key, default=config.options.get("generation", {}).get(key))


def _special(config: ModelConfig, never: list[int]) -> dict[str, Any]:
    end, pad = config["eos_token_id"], config["pad_token_id"]
    start = _generation(config, "decoder_start_token_id")
    return {
        "pad": pad, "start": pad if start is None else start, "never": never,
        "end": end[0] if isinstance(end, list) else end, "first": _generation(config, "forced_bos_token_id"),
    }  # fmt: skip


def _bart(config: ModelConfig) -> dict[str, Any]:
    """What BART and Marian's Hugging Face layout have in common."""
    activation = config.get("activation_function", "gelu")
    own = {"heads": config["decoder_attention_heads"], "hidden": config["decoder_ffn_dim"]}
    is_tied = config.get("tie_word_embeddings", True)
    same = own == {"heads": config["encoder_attention_heads"], "hidden": config["encoder_ffn_dim"]}
    return {
        "vocab": config["vocab_size"], "dim": config["d_model"], "heads": config["encoder_attention_heads"],
        "hidden": config["encoder_ffn_dim"], "depth": config["encoder_layers"], "norm_first": False,
        "decoder_depth": config["decoder_layers"], "decoder": {} if same else own,
        "activation": ACTIVATIONS.get(activation, activation), "scaled": config.get("scale_embedding", False),
        "dropout": config.get("dropout", 0.1), "inner_dropout": config.get("attention_dropout", 0.0),
        "tied": is_tied or "decoder.embed_tokens.weight" not in config.names, "separate": "" if is_tied else "head",
        "head_bias": "final_logits_bias" in config.names, **_use(config, config["max_position_embeddings"]),
    }  # fmt: skip


def _bart_only(config: ModelConfig) -> dict[str, Any]:
    return {
        **_bart(config), "positions": "learned", "embedding_norm": True, "special": _special(config, []),
        "position_options": {"max_length": config["max_position_embeddings"]},
    }  # fmt: skip


def _marian(config: ModelConfig) -> dict[str, Any]:
    settings = {
        **_bart(config), "positions": "sinusoidal", "position_options": {"halves": True},
        "special": _special(config, [config["pad_token_id"]]),
    }  # fmt: skip
    if config.get("share_encoder_decoder_embeddings", True):
        return settings
    if not settings["separate"]:
        settings["separate"] = "source"
    return {**settings, "target_vocab": config.first("decoder_vocab_size", default=config["vocab_size"])}


def _pegasus(config: ModelConfig) -> dict[str, Any]:
    """As Marian's, with norms before each part, and one after all of them."""
    never = config.options.get("generation", {}).get("suppress_tokens") or []
    return {
        **_bart(config), "positions": "sinusoidal", "position_options": {"halves": True}, "norm_first": True,
        "special": _special(config, never),
    }  # fmt: skip


def _bart_config(own: Mapping[str, Any], model: Any, kind: str) -> dict[str, Any]:
    """What the configs of BART, Marian and Pegasus say in the same words."""
    special, encoder, decoder = model.special, model.encoder.blocks[0], model.decoder.blocks[0]
    activation = "gelu_new" if own["activation"] == "gelu_tanh" else own["activation"]
    return {
        "model_type": kind.lower(), "is_encoder_decoder": True, "vocab_size": own["vocab"], "d_model": model.dim,
        "encoder_layers": len(model.encoder.blocks), "decoder_layers": len(model.decoder.blocks),
        "encoder_attention_heads": encoder.attention.heads, "encoder_ffn_dim": encoder.mlp.up.weight.shape[0],
        "decoder_attention_heads": decoder.cross_attention.heads, "decoder_ffn_dim": decoder.mlp.up.weight.shape[0],
        "activation_function": activation, "scale_embedding": own["scaled"], "dropout": own["dropout"] or 0.0,
        "attention_dropout": own["inner_dropout"] or 0.0, "tie_word_embeddings": own["tied"] and not own["separate"],
        "max_position_embeddings": model.longest or max(512, 2 * own["max_length"] + 10), "pad_token_id": special.pad,
        "eos_token_id": special.end, "decoder_start_token_id": special.start, "forced_bos_token_id": special.first,
        "forced_eos_token_id": None, "bos_token_id": None,
    }  # fmt: skip


def _bart_configs(own: Mapping[str, Any], model: Any) -> Iterator[dict[str, Any]]:
    yield {"architectures": ["BartForConditionalGeneration"], **_bart_config(own, model, "Bart")}


def _pegasus_configs(own: Mapping[str, Any], model: Any) -> Iterator[dict[str, Any]]:
    yield {"architectures": ["PegasusForConditionalGeneration"], **_bart_config(own, model, "Pegasus")}


def _marian_configs(own: Mapping[str, Any], model: Any) -> Iterator[dict[str, Any]]:
    config = {"architectures": ["MarianMTModel"], **_bart_config(own, model, "Marian")}
    yield config
    two = {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": own["target_vocab"] or own["vocab"]}
    yield {**config, **two, "tie_word_embeddings": own["tied"] and own["separate"] == "source"}


def _attention(ours: str, theirs: str, norm: str) -> dict[str, Any]:
    """An attention of BART's and its norm."""
    return {
        f"{ours}attention.in_proj": joined(*[f"{theirs}.{part}_proj" for part in "qkv"]),
        f"{ours}attention.out_proj": f"{theirs}.out_proj",
        f"{ours}{norm}": f"{theirs}_layer_norm",
    }


def _mlp(ours: str, theirs: str) -> dict[str, Any]:
    return {
        f"{ours}mlp.up": f"{theirs}fc1",
        f"{ours}mlp.down": f"{theirs}fc2",
        f"{ours}mlp_norm": f"{theirs}final_layer_norm",
    }


BART_TENSORS: dict[str, Any] = {
    "embedding": either("encoder.embed_tokens", "shared", "decoder.embed_tokens"),
    "target_embedding": either("decoder.embed_tokens", "shared"),
    "head": "lm_head",
    "head_bias": From(("final_logits_bias",), is_row=True),
    **_attention(ENCODER, "encoder.layers.{i}.self_attn", "attention_norm"),
    **_mlp(ENCODER, "encoder.layers.{i}."),
    **_attention(DECODER, "decoder.layers.{i}.self_attn", "attention_norm"),
    **_attention(f"{DECODER}cross_", "decoder.layers.{i}.encoder_attn", "norm"),
    **_mlp(DECODER, "decoder.layers.{i}."),
}
HEADS = ("lm_head", "final_logits_bias")


def _shared(own: Mapping[str, Any]) -> Mapping[str, str]:
    """Tied tables are written as the one that the others are made from."""
    return {"embedding": "shared"} if own["tied"] and own["separate"] != "source" else {}


BART = Family(
    names=("bart",),
    model="translator",
    settings=_bart_only,
    configs=_bart_configs,
    heads=HEADS,
    written=_shared,
    prefixes=("model.",),
    tensors={
        **BART_TENSORS,
        "positions": joined("encoder.embed_positions", skip=2),
        "target_positions": joined("decoder.embed_positions", skip=2),
        "source_norm": "encoder.layernorm_embedding",
        "target_norm": "decoder.layernorm_embedding",
    },
    ignored=(r"^encoder\.version$", r"^decoder\.version$"),
    tokens=TOKENS,
)
SINES = (r"embed_positions\.weight$",)  # which are computed
MARIAN = Family(
    names=("marian",),
    model="translator",
    settings=_marian,
    configs=_marian_configs,
    heads=HEADS,
    written=_shared,
    prefixes=("model.",),
    tensors=BART_TENSORS,
    ignored=SINES,
    tokens=TOKENS,
)
PEGASUS = Family(
    names=("pegasus",),
    model="translator",
    settings=_pegasus,
    configs=_pegasus_configs,
    heads=HEADS,
    written=_shared,
    prefixes=("model.",),
    tensors={**BART_TENSORS, "encoder.norm": "encoder.layer_norm", "decoder.norm": "decoder.layer_norm"},
    ignored=SINES,
    tokens=TOKENS,
)


def _t5(config: ModelConfig) -> dict[str, Any]:
    """T5, whose tied logits are scaled, and its version 1.1, with gated MLPs and a head of its own."""
    is_gated, activation = _feed_forward(config)
    is_scaled = config.get("scale_decoder_outputs", config.get("tie_word_embeddings", True))
    dim, own_head = config["d_model"], "lm_head.weight" in config.names and not is_scaled
    block = {
        "norm": "rms",
        "eps": config.get("layer_norm_epsilon", 1e-6),
        "bias": False,
        "head_dim": config["d_kv"],
        "scale": 1.0,
    }
    positions = {
        "buckets": config.get("relative_attention_num_buckets", 32),
        "distance": config.get("relative_attention_max_distance", 128),
    }
    return {
        "vocab": config["vocab_size"], "dim": dim, "heads": config["num_heads"], "hidden": config["d_ff"],
        "depth": config["num_layers"], "decoder_depth": config.first("num_decoder_layers", default=config["num_layers"]),
        "activation": GATED[activation] if is_gated else activation, "norm_first": True, "block": block,
        "separate": "head" if own_head else "", "scaled": False, "logit_scale": dim**-0.5 if is_scaled else 1.0,
        "positions": "relative", "position_options": positions, "dropout": config.get("dropout_rate", 0.1),
        "special": _special(config, []), **_use(config, config.first("n_positions", default=512)),
    }  # fmt: skip


def _t5_configs(own: Mapping[str, Any], model: Any) -> Iterator[dict[str, Any]]:
    special, block = model.special, model.encoder.blocks[0]
    kinds = {gated: f"gated-{name}" for name, gated in GATED.items()} | {"geglu_tanh": "gated-gelu"}
    config = {
        "model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "is_encoder_decoder": True,
        "vocab_size": own["vocab"], "d_model": model.dim, "d_kv": block.attention.head_dim,
        "d_ff": block.mlp.down.weight.shape[1], "num_heads": block.attention.heads,
        "num_layers": len(model.encoder.blocks), "num_decoder_layers": len(model.decoder.blocks),
        "relative_attention_num_buckets": own["position_options"].get("buckets", 32),
        "relative_attention_max_distance": own["position_options"].get("distance", 128),
        "layer_norm_epsilon": block.attention_norm.eps, "dropout_rate": own["dropout"] or 0.0,
        "feed_forward_proj": kinds.get(own["activation"], own["activation"]), "n_positions": own["max_length"],
        "pad_token_id": special.pad, "eos_token_id": special.end, "decoder_start_token_id": special.start,
        "tie_word_embeddings": own["separate"] != "head",
    }  # fmt: skip
    yield config
    if own["separate"] != "head":
        yield {**config, "scale_decoder_outputs": own["logit_scale"] != 1}


def _t5_written(own: Mapping[str, Any]) -> Mapping[str, str]:
    """The tied table under the name that the others are made from, and an MLP without a gate under a name of its own."""
    if own["activation"] in GATED.values():
        return {"embedding": "shared"}
    places = {ENCODER: "encoder.block.{i}.layer.1", DECODER: "decoder.block.{i}.layer.2"}
    plain = {f"{ours}mlp.up": f"{theirs}.DenseReluDense.wi" for ours, theirs in places.items()}
    return {"embedding": "shared", **plain}


def _feed_forward(config: ModelConfig) -> tuple[bool, str]:
    """Whether the MLPs are gated, and by what."""
    gated, _, name = config.get("feed_forward_proj", "relu").rpartition("-")
    name = "gelu_new" if (gated, name) == ("gated", "gelu") else name  # what the name means there
    activation = ACTIVATIONS.get(name, name)
    if gated not in ("", "gated") or activation not in GATED:
        raise HubError(
            "feed_forward_proj of this model is not offered", "relu or gated-gelu", config["feed_forward_proj"]
        )
    return gated == "gated", activation


def _t5_block(ours: str, theirs: str, mlp: int) -> dict[str, Any]:
    """Self-attention and MLP of a block, each with its norm."""
    dense = f"{theirs}{mlp}.DenseReluDense"
    return {
        f"{ours}attention.in_proj": joined(*[f"{theirs}0.SelfAttention.{part}" for part in "qkv"]),
        f"{ours}attention.out_proj": f"{theirs}0.SelfAttention.o",
        f"{ours}attention_norm": f"{theirs}0.layer_norm",
        f"{ours}mlp.up": joined(f"{dense}.wi_0", f"{dense}.wi_1", others=(f"{dense}.wi",)),
        f"{ours}mlp.down": f"{dense}.wo",
        f"{ours}mlp_norm": f"{theirs}{mlp}.layer_norm",
    }


RELATIVE = "block.0.layer.0.SelfAttention.relative_attention_bias"
CROSS = "decoder.block.{i}.layer.1."
T5 = Family(
    names=("t5",),
    model="translator",
    settings=_t5,
    configs=_t5_configs,
    heads=("lm_head",),
    written=_t5_written,
    tensors={
        "embedding": either("encoder.embed_tokens", "shared", "decoder.embed_tokens"),
        "head": "lm_head",
        **_t5_block(ENCODER, "encoder.block.{i}.layer.", 1),
        **_t5_block(DECODER, "decoder.block.{i}.layer.", 2),
        f"{DECODER}cross_attention.in_proj": joined(*[f"{CROSS}EncDecAttention.{part}" for part in "qkv"]),
        f"{DECODER}cross_attention.out_proj": f"{CROSS}EncDecAttention.o",
        f"{DECODER}cross_norm": f"{CROSS}layer_norm",
        "encoder.relative": f"encoder.{RELATIVE}",
        "decoder.relative": f"decoder.{RELATIVE}",
        "encoder.norm": "encoder.final_layer_norm",
        "decoder.norm": "decoder.final_layer_norm",
    },
    ignored=(r"EncDecAttention\.relative_attention_bias\.weight$",),  # which old files have, and nothing uses
    tokens=TOKENS,
)
