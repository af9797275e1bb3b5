"""Families of encoders: configurations of the model `bert`, which reads a text both ways.

What a file has on top of the encoder says what the model is for: a head of words, of classes, tags or answers, or none, and
then it makes vectors of texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..family import Family, HubError, ModelConfig, either, joined

__all__ = ["BERT", "DISTILBERT", "ESM", "ROBERTA"]

BLOCK, LAYER = "encoder.blocks.{i}.", "encoder.layer.{i}."
ACTIVATIONS = {
    "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu_fast": "gelu_tanh", "swish": "silu",
    "gelu_python": "gelu",
}  # fmt: skip
POOLINGS = {"cls": "first", "mean": "mean", "max": "max"}
# The classes of transformers, by what a model is for.
CLASSES = {
    "pretrain": "ForPreTraining", "fill": "ForMaskedLM", "embed": "Model", "classify": "ForSequenceClassification",
    "tag": "ForTokenClassification", "answer": "ForQuestionAnswering",
}  # fmt: skip
# Modules of sentence-transformers, by the last part of their type.
MODULES = ("Transformer", "Pooling", "Normalize")


def _task(config: ModelConfig) -> str:
    """What a model is for, by the tensors that it has."""
    words = {"cls.predictions.bias", "cls.predictions.decoder.bias", "lm_head.bias", "vocab_projector.bias"}
    if words.intersection(config.names):
        return "pretrain" if "cls.seq_relationship.weight" in config.names else "fill"
    if "qa_outputs.weight" in config.names:
        return "answer"
    if {"classifier.weight", "classifier.out_proj.weight"}.intersection(config.names):
        is_tags = any("TokenClassification" in name for name in config.first("architectures", default=()))
        return "tag" if is_tags else "classify"
    return "embed"


def _classes(config: ModelConfig) -> tuple[str, ...]:
    """The names of the classes, as the config says them or else by number."""
    names = {int(number): str(name) for number, name in config.first("id2label", default={}).items()}
    count = max(len(names), config.first("num_labels", default=0), 2)
    return tuple(names.get(number, f"LABEL_{number}") for number in range(count))


def _pooling(config: ModelConfig, task: str) -> dict[str, Any]:
    """How a text becomes one vector: of heads with a pooler it is the first token, else as sentence-transformers' files say."""
    if task in ("pretrain", "classify"):
        return {"pool": "first"}
    kinds = [str(module.get("type", "")).rpartition(".")[2] for module in config.options.get("modules", ())]
    for kind in kinds:
        if kind not in MODULES:
            raise HubError(f"the module {kind!r} of this model is not offered", ", ".join(MODULES))
    said: Mapping[str, Any] = config.options.get("pooling", {"pooling_mode": "mean"})
    old = [key for key, value in said.items() if key.startswith("pooling_mode_") and value is True]
    modes = [said["pooling_mode"]] if "pooling_mode" in said else [key.split("_")[2] for key in old] or ["mean"]
    if modes[1:] or modes[0] not in POOLINGS or "pooling_mode_mean_sqrt_len_tokens" in old:
        raise HubError("the pooling of this model is not offered", "one of cls, mean and max", ", ".join(old or modes))
    return {"pool": POOLINGS[modes[0]], "normalize": "Normalize" in kinds}


def _common(config: ModelConfig, activation: str) -> dict[str, Any]:
    """What all of them are: norms after each part, learned positions, a head that uses the table of words."""
    task = _task(config)
    config.refuse(is_decoder=False, add_cross_attention=False, pruned_heads={})
    if task in ("pretrain", "fill"):
        config.refuse(tie_word_embeddings=True)
    return {
        "task": task, "classes": _classes(config) if task in ("classify", "tag") else (), "norm": "post",
        "positions": "learned", "activation": ACTIVATIONS.get(activation, activation), "vocab": config["vocab_size"],
        "specials": _specials(config), **_pooling(config, task),
    }  # fmt: skip


def _specials(config: ModelConfig) -> tuple[int, ...]:
    """The tokens for padding, beginning, end, unknown and hidden; -1 where there is none."""
    tokenizer = config.tokenizer
    if tokenizer is None:
        return (config.first("pad_token_id", default=0), -1, -1, -1, -1)
    found = (
        tokenizer.pad_id,
        tokenizer.bos_id if tokenizer.cls_id is None else tokenizer.cls_id,
        tokenizer.eos_id if tokenizer.sep_id is None else tokenizer.sep_id,
        tokenizer.unk_id,
        tokenizer.mask_id,
    )
    return tuple(-1 if token is None else token for token in found)


def _bert(config: ModelConfig) -> dict[str, Any]:
    config.refuse(position_embedding_type="absolute", embedding_size=config["hidden_size"])
    return {
        **_common(config, config.get("hidden_act", "gelu")), **_sizes(config), "types": config.get("type_vocab_size", 2)
    }  # fmt: skip


def _sizes(config: ModelConfig) -> dict[str, Any]:
    return {
        "context": config["max_position_embeddings"], "layers": config["num_hidden_layers"], "dim": config["hidden_size"],
        "heads": config["num_attention_heads"], "hidden": config["intermediate_size"],
        "eps": config.get("layer_norm_eps", 1e-12), "dropout": config.get("hidden_dropout_prob", 0.1),
    }  # fmt: skip


def _common_config(own: Mapping[str, Any], model: Any, kind: str) -> dict[str, Any]:
    """What the configs of all of them say in the same words; what a model for `similar` texts is has no class there."""
    activation = "gelu_new" if own["activation"] == "gelu_tanh" else own["activation"]
    names = {str(number): name for number, name in enumerate(own["classes"])}
    classes = {"id2label": names, "label2id": {name: int(number) for number, name in names.items()}} if names else {}
    architectures = [f"{kind}{CLASSES[own['task']]}"] if own["task"] in CLASSES else []
    return {
        "architectures": architectures, "vocab_size": own["vocab"], "max_position_embeddings": own["context"],
        "num_hidden_layers": own["layers"], "hidden_size": own["dim"], "num_attention_heads": own["heads"],
        "intermediate_size": own["hidden"], "hidden_act": activation, "layer_norm_eps": own["eps"],
        "type_vocab_size": max(own["types"], 1), "hidden_dropout_prob": own["dropout"],
        "attention_probs_dropout_prob": own["dropout"], "tie_word_embeddings": True, **classes,
    }  # fmt: skip


def _bert_configs(own: Mapping[str, Any], model: Any) -> Iterator[dict[str, Any]]:
    yield {"model_type": "bert", **_common_config(own, model, "Bert")}


def _roberta_configs(own: Mapping[str, Any], model: Any) -> Iterator[dict[str, Any]]:
    config = _common_config(own, model, "Roberta")
    yield {**config, "model_type": "roberta", "max_position_embeddings": own["context"] + 2}


def _distilbert_configs(own: Mapping[str, Any], model: Any) -> Iterator[dict[str, Any]]:
    config = _common_config(own, model, "DistilBert")
    kept = ("architectures", "vocab_size", "max_position_embeddings", "tie_word_embeddings", "id2label", "label2id")
    yield {
        **{name: config[name] for name in kept if name in config}, "model_type": "distilbert", "n_layers": own["layers"],
        "dim": own["dim"], "n_heads": own["heads"], "hidden_dim": own["hidden"], "activation": config["hidden_act"],
        "dropout": own["dropout"], "sinusoidal_pos_embds": False,
    }  # fmt: skip


def _no_before_yes(rows: int, config: ModelConfig) -> np.ndarray:
    """The order of classes; of whether a text follows another, BERT has yes before no, and we have no before yes."""
    return np.arange(rows)[::-1] if _task(config) == "pretrain" else np.arange(rows)


BERT_TENSORS: dict[str, Any] = {
    "tokens": "embeddings.word_embeddings",
    "segments": "embeddings.token_type_embeddings",
    "places": "embeddings.position_embeddings",
    "norm": "embeddings.LayerNorm",
    f"{BLOCK}attention.in_proj": joined(*[f"{LAYER}attention.self.{part}" for part in ("query", "key", "value")]),
    f"{BLOCK}attention.out_proj": f"{LAYER}attention.output.dense",
    f"{BLOCK}attention_norm": f"{LAYER}attention.output.LayerNorm",
    f"{BLOCK}mlp.up": f"{LAYER}intermediate.dense",
    f"{BLOCK}mlp.down": f"{LAYER}output.dense",
    f"{BLOCK}mlp_norm": f"{LAYER}output.LayerNorm",
    "head.ends": "qa_outputs",
}
IGNORED = (r"^embeddings\.(position|token_type)_ids$",)
BERT = Family(
    names=("bert",),
    model="bert",
    settings=_bert,
    configs=_bert_configs,
    heads=("cls", "classifier", "qa_outputs"),
    prefixes=("bert.",),
    tensors={
        **BERT_TENSORS,
        "head.dense": "cls.predictions.transform.dense",
        "head.norm": "cls.predictions.transform.LayerNorm",
        "head.bias": either("cls.predictions.bias", "cls.predictions.decoder.bias"),
        "head.pool.dense": "pooler.dense",
        "head.classes": either("classifier", "cls.seq_relationship", order=_no_before_yes),
    },
    ignored=IGNORED,
    optional=(r"^pooler\.", r"^cls\.predictions\.decoder\."),
    written=lambda own: {"head.classes": "cls.seq_relationship"} if own["task"] == "pretrain" else {},
)


def _roberta(config: ModelConfig) -> dict[str, Any]:
    """As BERT, with places that count tokens from the row after that of padding, and a head that always has GELU."""
    config.refuse(pad_token_id=1)
    return {
        **_bert(config), "context": config["max_position_embeddings"] - 2, "counted": True, "word_activation": "gelu",
    }  # fmt: skip


ROBERTA = Family(
    names=("roberta", "xlm-roberta", "camembert"),
    model="bert",
    settings=_roberta,
    configs=_roberta_configs,
    heads=("lm_head", "classifier", "qa_outputs"),
    prefixes=("roberta.",),
    tensors={
        **BERT_TENSORS,
        "places": joined("embeddings.position_embeddings", skip=1),
        "head.dense": "lm_head.dense",
        "head.norm": "lm_head.layer_norm",
        "head.bias": either("lm_head.bias", "lm_head.decoder.bias"),
        "head.pool.dense": "classifier.dense",
        "head.classes": either("classifier.out_proj", "classifier"),
    },
    ignored=IGNORED,
    optional=(r"^pooler\.", r"^lm_head\.decoder\."),
    written=lambda own: {"head.classes": "classifier"} if own["task"] == "tag" else {},
)


def _distilbert(config: ModelConfig) -> dict[str, Any]:
    config.refuse(sinusoidal_pos_embds=False)
    settings = _common(config, config.get("activation", "gelu"))
    return {
        **settings, "context": config["max_position_embeddings"], "layers": config["n_layers"], "dim": config["dim"],
        "heads": config["n_heads"], "hidden": config["hidden_dim"], "eps": 1e-12, "types": 0,
        "pool_activation": "relu", "dropout": config.get("dropout", 0.1),
    }  # fmt: skip


def _esm(config: ModelConfig) -> dict[str, Any]:
    """Norms before each part and after the embedding, rotary positions; it reads one text at a time."""
    usual = {"position_embedding_type": "rotary", "emb_layer_norm_before": True, "token_dropout": False}
    config.refuse(**usual, is_folding_model=False)
    rotary = {"style": "half", "base": float(config.get("rope_theta", 10000.0))}
    return {
        **_common(config, "gelu"),
        **_sizes(config),
        "types": 0,
        "norm": "pre",
        "positions": "rotary",
        "rotary": rotary,
    }


def _esm_configs(own: Mapping[str, Any], model: Any) -> Iterator[dict[str, Any]]:
    config, (*_, hidden) = _common_config(own, model, "Esm"), own["specials"]
    yield {
        **{name: value for name, value in config.items() if name not in ("type_vocab_size", "hidden_act")},
        "model_type": "esm", "position_embedding_type": "rotary", "emb_layer_norm_before": True, "token_dropout": False,
        "rope_theta": float(own["rotary"].get("base", 10000.0)), "mask_token_id": None if hidden < 0 else hidden,
    }  # fmt: skip


ESM = Family(
    names=("esm",),
    model="bert",
    settings=_esm,
    configs=_esm_configs,
    heads=("lm_head", "classifier"),
    prefixes=("esm.",),
    tensors={
        **BERT_TENSORS,
        f"{BLOCK}attention_norm": f"{LAYER}attention.LayerNorm",
        f"{BLOCK}mlp_norm": f"{LAYER}LayerNorm",
        "norm": "embeddings.layer_norm",
        "encoder.norm": "encoder.emb_layer_norm_after",
        "head.dense": "lm_head.dense",
        "head.norm": "lm_head.layer_norm",
        "head.bias": "lm_head.bias",
        "head.pool.dense": "classifier.dense",
        "head.classes": either("classifier.out_proj", "classifier"),
    },
    ignored=(r"rotary_embeddings\.inv_freq$", r"^embeddings\.position_ids$", r"^contact_head\."),
    optional=(r"^pooler\.", r"^lm_head\.decoder\."),
    written=lambda own: {"head.classes": "classifier"} if own["task"] == "tag" else {},
)


TRANSFORMER = "transformer.layer.{i}."
DISTILBERT = Family(
    names=("distilbert",),
    model="bert",
    settings=_distilbert,
    configs=_distilbert_configs,
    heads=("vocab_transform", "vocab_layer_norm", "vocab_projector", "pre_classifier", "classifier", "qa_outputs"),
    prefixes=("distilbert.",),
    tensors={
        "tokens": "embeddings.word_embeddings",
        "places": "embeddings.position_embeddings",
        "norm": "embeddings.LayerNorm",
        f"{BLOCK}attention.in_proj": joined(*[f"{TRANSFORMER}attention.{part}_lin" for part in "qkv"]),
        f"{BLOCK}attention.out_proj": f"{TRANSFORMER}attention.out_lin",
        f"{BLOCK}attention_norm": f"{TRANSFORMER}sa_layer_norm",
        f"{BLOCK}mlp.up": f"{TRANSFORMER}ffn.lin1",
        f"{BLOCK}mlp.down": f"{TRANSFORMER}ffn.lin2",
        f"{BLOCK}mlp_norm": f"{TRANSFORMER}output_layer_norm",
        "head.dense": "vocab_transform",
        "head.norm": "vocab_layer_norm",
        "head.bias": "vocab_projector.bias",
        "head.pool.dense": "pre_classifier",
        "head.classes": "classifier",
        "head.ends": "qa_outputs",
    },
    optional=(r"^vocab_projector\.weight$",),
)
