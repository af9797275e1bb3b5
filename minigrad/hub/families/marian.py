"""Marian's own binary layout: translators with self-attention, or an SSRU, in their decoders, and matrices as (in, out)."""

from __future__ import annotations

from typing import Any

from ..family import Family, From, HubError, ModelConfig, either, joined, transposed
from .encoder_decoders import ACTIVATIONS, DECODER, ENCODER, TOKENS, USE

__all__ = ["MARIAN_NATIVE"]

LONGEST = 128  # tokens of a piece of text; longer ones are cut
ONLY: dict[str, Any] = {
    "type": "transformer", "transformer-postprocess": "dan", "transformer-preprocess": "", "transformer-postprocess-top": "",
    "transformer-postprocess-emb": "d", "transformer-ffn-depth": 2, "transformer-no-projection": False,
    "transformer-train-position-embeddings": False, "transformer-tied-layers": [], "transformer-pool": False,
}  # fmt: skip


def _marian_native(config: ModelConfig) -> dict[str, Any]:
    config.refuse(**{name: value for name, value in ONLY.items() if config.get(name) is not None})
    dim, (source, target) = config["dim-emb"], config["dim-vocabs"]
    autoreg, activation = config.get("transformer-decoder-autoreg"), config["transformer-ffn-activation"]
    if autoreg not in ("self-attention", "rnn") or autoreg == "rnn" and config.get("dec-cell") != "ssru":
        raise HubError("the decoder of this model is not offered", "self-attention, or rnn with ssru", autoreg)
    is_shared = config.get("tied-embeddings-all", False)
    if not is_shared and not config.get("tied-embeddings", False):
        raise HubError("the output layer of this model is not offered", "one tied to the embeddings of the targets")
    # The vector before the first word is zero: that of a token behind the vocabulary, which is the padding, too.
    pad, pairs = max(source, target), dim // 2
    return {
        **USE, "vocab": pad + 1, "dim": dim, "heads": config["transformer-heads"], "hidden": config["transformer-dim-ffn"],
        "depth": config["enc-depth"], "decoder_depth": config["dec-depth"], "norm_first": False, "head_bias": True,
        "activation": ACTIVATIONS.get(activation, activation), "separate": "" if is_shared else "source",
        "positions": "sinusoidal", "position_options": {"base": 10000.0 ** (pairs / (pairs - 1)), "halves": True},
        "block": {"eps": 1e-9}, "decoder": {"recurrence": "ssru"} if autoreg == "rnn" else {}, "dropout": 0.1,
        "beams": 1, "max_length": LONGEST, "shortlist": config["shortlist"],
        "special": {"pad": pad, "start": pad, "end": config["end"], "never": [config["unknown"], pad]},
    }  # fmt: skip


def _attention(ours: str, theirs: str, norm: str) -> dict[str, Any]:
    return {
        f"{ours}attention.in_proj_weight": joined(*[f"{theirs}_W{part}" for part in "qkv"], is_transposed=True),
        f"{ours}attention.in_proj_bias": joined(*[f"{theirs}_b{part}" for part in "qkv"]),
        f"{ours}attention.out_proj.weight": transposed(f"{theirs}_Wo"),
        f"{ours}attention.out_proj.bias": f"{theirs}_bo",
        **_norm(f"{ours}{norm}", f"{theirs}_Wo_ln"),
    }


def _mlp(ours: str, theirs: str) -> dict[str, Any]:
    return {
        f"{ours}mlp.up.weight": transposed(f"{theirs}_W1"),
        f"{ours}mlp.up.bias": f"{theirs}_b1",
        f"{ours}mlp.down.weight": transposed(f"{theirs}_W2"),
        f"{ours}mlp.down.bias": f"{theirs}_b2",
        **_norm(f"{ours}mlp_norm", f"{theirs}_ffn_ln"),
    }


def _norm(ours: str, theirs: str) -> dict[str, Any]:
    return {f"{ours}.weight": f"{theirs}_scale", f"{ours}.bias": f"{theirs}_bias"}


MARIAN_NATIVE = Family(
    names=("marian-native",),
    model="translator",
    settings=_marian_native,
    tensors={
        "embedding.weight": either("Wemb", "encoder_Wemb", extra=1),
        "target_embedding.weight": either("Wemb", "decoder_Wemb", extra=1),
        "head_bias": From(("decoder_ff_logit_out_b",), extra=1),
        **_attention(ENCODER, "encoder_l{n}_self", "attention_norm"),
        **_mlp(ENCODER, "encoder_l{n}_ffn"),
        **_attention(DECODER, "decoder_l{n}_self", "attention_norm"),
        f"{DECODER}attention_norm.weight": either("decoder_l{n}_self_Wo_ln_scale", "decoder_l{n}_rnn_ffn_ln_scale"),
        f"{DECODER}attention_norm.bias": either("decoder_l{n}_self_Wo_ln_bias", "decoder_l{n}_rnn_ffn_ln_bias"),
        f"{DECODER}attention.candidate.weight": transposed("decoder_l{n}_rnn_W"),
        f"{DECODER}attention.forget.weight": transposed("decoder_l{n}_rnn_Wf"),
        f"{DECODER}attention.forget.bias": "decoder_l{n}_rnn_bf",
        **_attention(f"{DECODER}cross_", "decoder_l{n}_context", "norm"),
        **_mlp(DECODER, "decoder_l{n}_ffn"),
        "shortlist.offsets": "shortlist.offsets",
        "shortlist.targets": "shortlist.targets",
    },
    ignored=(r"_QuantMultA$",),  # with which other engines round activations
    tokens=TOKENS,
)
