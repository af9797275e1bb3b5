"""The blocks of pretrained families are settings of ours: the stacks of `transformers`, with its weights, give the same numbers.

Only stacks are compared, which are given vectors and not tokens; transformers computes norms and angles in float32.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from support.functional_oracle import normal

import minigrad as mg
from minigrad.nn import Decoder, Encoder, RelativePositions, RotaryPositions, SinusoidalPositions, padding_mask

pytestmark = pytest.mark.transformers

B, L, S, C, H, DEPTH = 3, 9, 7, 16, 4, 2
SMALL: dict[str, Any] = {
    "vocab_size": 11, "hidden_size": C, "intermediate_size": 24, "num_hidden_layers": DEPTH, "num_attention_heads": H,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
LLAMA: dict[str, Any] = {"hidden": 24, "norm": "rms", "eps": 1e-6, "activation": "swiglu", "bias": False}
NAMES = {  # a part of a name in Llama and its descendants -> ours
    "layers": "blocks", "self_attn": "attention", "o_proj": "out_proj", "input_layernorm": "attention_norm",
    "post_attention_layernorm": "mlp_norm", "down_proj": "down", "dense": "out_proj", "dense_4h_to_h": "down",
    "dense_h_to_4h": "up", "final_layer_norm": "norm",
}  # fmt: skip
SANDWICH = {
    "post_attention_layernorm": "attention_post_norm", "pre_feedforward_layernorm": "mlp_norm",
    "post_feedforward_layernorm": "mlp_post_norm",
}  # fmt: skip


def rotary(base: float = 10000.0, dim: int = 4, **options: Any) -> RotaryPositions:
    return RotaryPositions(dim, base, style="half", **options)


LLAMA3 = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "rope_theta": 500.0,
    "original_max_position_embeddings": 16,
}  # fmt: skip
SANDWICHED = {
    **LLAMA, "kv_heads": 2, "head_dim": 8, "rotary": rotary(dim=8), "activation": "geglu_tanh", "sandwich": True, "scale": 0.5,
    "softcap": 5.0, "window": [4, None],
}  # fmt: skip
DECODERS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "Llama": ("LlamaConfig", {}, {**LLAMA, "rotary": rotary()}),
    "Llama 3": (
        "LlamaConfig",
        {"num_key_value_heads": 1, "rope_parameters": LLAMA3},
        {**LLAMA, "kv_heads": 1, "rotary": rotary(500.0, scaling=LLAMA3)},
    ),
    "Mistral": (
        "MistralConfig",
        {"num_key_value_heads": 2, "sliding_window": 4, "head_dim": 4},
        {**LLAMA, "kv_heads": 2, "window": 4, "rotary": rotary()},
    ),
    "Qwen2": (
        "Qwen2Config",
        {"num_key_value_heads": 2},
        {**LLAMA, "kv_heads": 2, "attention_bias": True, "out_bias": False, "rotary": rotary()},
    ),
    "Qwen3": (
        "Qwen3Config",
        {"num_key_value_heads": 2, "head_dim": 6},
        {**LLAMA, "kv_heads": 2, "head_dim": 6, "qk_norm": "rms", "rotary": rotary(dim=6)},
    ),
    "NeoX": (
        "GPTNeoXConfig",
        {"rotary_pct": 0.5, "hidden_act": "gelu"},
        {"hidden": 24, "parallel": True, "rotary": rotary(rotary_dim=2)},
    ),
    "NeoX, one part after the other": (
        "GPTNeoXConfig",
        {"rotary_pct": 0.5, "hidden_act": "gelu", "use_parallel_residual": False},
        {"hidden": 24, "rotary": rotary(rotary_dim=2)},
    ),
    "Gemma": (
        "GemmaConfig",
        {"num_key_value_heads": 1, "head_dim": 6},
        {**LLAMA, "kv_heads": 1, "head_dim": 6, "activation": "geglu_tanh", "rotary": rotary(dim=6)},
    ),
    "Gemma 2": (
        "Gemma2Config",
        {
            "num_key_value_heads": 2, "head_dim": 8, "sliding_window": 4, "attn_logit_softcapping": 5.0,
            "query_pre_attn_scalar": 4, "layer_types": ["sliding_attention", "full_attention"],
        },
        SANDWICHED,
    ),
}  # fmt: skip


def their_model(config: str, **options: Any) -> Any:
    """A model of theirs with weights that are large enough to matter."""
    import torch
    import transformers

    torch.manual_seed(0)
    made = transformers.AutoModel.from_config(getattr(transformers, config)(**options), attn_implementation="eager")
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, mean=1.0 if parameter.ndim == 1 else 0.0, std=0.3)
    return made.eval()


def state_of(theirs: Any, family: str) -> dict[str, np.ndarray]:
    """The weights of their decoder under our names: projections joined, those of NeoX with the heads of each kind together."""
    given = {name: value.detach().numpy() for name, value in theirs.named_parameters() if "embed" not in name}
    names = {**NAMES, **(SANDWICH if family == "Gemma 2" else {})}
    found: dict[str, np.ndarray] = {}
    for name, value in given.items():
        ours = ".".join(names.get(part, part) for part in name.split("."))
        if family.startswith("Gemma") and "norm" in ours:
            value = value + 1
        if "query_key_value" in ours:
            apart = value.reshape(H, 3, C // H, *value.shape[1:]).swapaxes(0, 1)
            found[ours.replace("query_key_value.", "in_proj_")] = apart.reshape(value.shape)
        elif joined := re.fullmatch(r"(.*)\.([qkv]|gate|up)_proj\.(weight|bias)", ours):
            path, part, kind = joined.groups()
            whole = f"{path}.in_proj_{kind}" if part in "qkv" else f"{path}.up.{kind}"
            found[whole] = np.concatenate([found[whole], value]) if whole in found else value
        else:
            found[ours] = value
    return found


def near(ours: Any, theirs: Any) -> None:
    expected = theirs.detach().numpy()
    np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-4, atol=2e-5 * np.abs(expected).max())


@pytest.mark.parametrize("family", DECODERS)
def test_a_decoder_is_that_of_transformers(family: str) -> None:
    import torch

    config, given, options = DECODERS[family]
    theirs = their_model(config, **{**SMALL, **given})
    ours = Encoder(DEPTH, C, H, causal=True, **options).eval()
    ours.load_state_dict(state_of(theirs, family))
    x = normal(B, L, C).astype("float32")
    near(ours(x), theirs(inputs_embeds=torch.tensor(x)).last_hidden_state)


@pytest.mark.parametrize("family", DECODERS)
def test_rows_padded_on_the_left_are_those_of_transformers(family: str) -> None:
    import torch

    config, given, options = DECODERS[family]
    theirs = their_model(config, **{**SMALL, **given})
    ours = Encoder(DEPTH, C, H, causal=True, **options).eval()
    ours.load_state_dict(state_of(theirs, family))
    x, real = normal(B, L, C).astype("float32"), np.arange(L) >= np.array([[0], [3], [6]])
    positions = np.maximum(real.cumsum(axis=1) - 1, 0)
    expected = theirs(
        inputs_embeds=torch.tensor(x), attention_mask=torch.tensor(real), position_ids=torch.tensor(positions)
    ).last_hidden_state
    got = ours(x, mask=padding_mask(real), positions=positions)
    for row in range(B):
        near(got[row][real[row]], expected[row][torch.tensor(real[row])])


T5_NAMES = {
    "block": "blocks", "SelfAttention": "attention", "EncDecAttention": "cross_attention", "o": "out_proj", "wo": "down",
    "wi": "up", "final_layer_norm": "norm", "DenseReluDense": "mlp",
}  # fmt: skip


def t5_state(theirs: Any, norms: list[str]) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for name, value in theirs.named_parameters():
        parts = [T5_NAMES.get(part, part) for part in name.split(".")]
        if "relative_attention_bias" in parts:
            parts = ["relative", "weight"]
        elif "layer" in parts:  # blocks, number, layer, number of the part, …
            number = int(parts[3])
            parts = [*parts[:2], *([norms[number], parts[-1]] if parts[4] == "layer_norm" else parts[4:])]
        ours, array = ".".join(parts), value.detach().numpy()
        if joined := re.fullmatch(r"(.*)\.([qkv]|wi_0|wi_1)\.weight", ours):
            whole = f"{joined[1]}.in_proj_weight" if joined[2] in "qkv" else f"{joined[1]}.up.weight"
            found[whole] = np.concatenate([found[whole], array]) if whole in found else array
        else:
            found[ours] = array
    return {name: value for name, value in found.items() if not name.startswith("embed_tokens")}


@pytest.mark.parametrize("activation, theirs_too", [("relu", "relu"), ("geglu_tanh", "gated-gelu")])
def test_an_encoder_and_a_decoder_are_those_of_t5(activation: str, theirs_too: str) -> None:
    import torch

    theirs = their_model(
        "T5Config", vocab_size=11, d_model=C, d_kv=6, d_ff=24, num_layers=DEPTH, num_heads=H, feed_forward_proj=theirs_too,
        relative_attention_num_buckets=8, relative_attention_max_distance=16, dropout_rate=0.0,
    )  # fmt: skip
    options: dict[str, Any] = {
        "hidden": 24, "head_dim": 6, "norm": "rms", "eps": 1e-6, "bias": False, "scale": 1.0, "activation": activation
    }  # fmt: skip
    encoder = Encoder(DEPTH, C, H, relative=RelativePositions(H, 8, 16), **options).eval()
    decoder = Decoder(DEPTH, C, H, relative=RelativePositions(H, 8, 16, bidirectional=False), **options).eval()
    encoder.load_state_dict(t5_state(theirs.encoder, ["attention_norm", "mlp_norm"]))
    decoder.load_state_dict(t5_state(theirs.decoder, ["attention_norm", "cross_norm", "mlp_norm"]))
    x, y = normal(B, S, C).astype("float32"), normal(B, 40, C, seed=1).astype("float32")
    real = np.arange(S) < np.array([[7], [2], [5]])
    expected = theirs(
        inputs_embeds=torch.tensor(x), attention_mask=torch.tensor(real), decoder_inputs_embeds=torch.tensor(y)
    )
    mask = padding_mask(real)
    memory = encoder(x, mask=mask)
    for row in range(B):
        near(memory[row][real[row]], expected.encoder_last_hidden_state[row][torch.tensor(real[row])])
    near(decoder(y, memory, memory_mask=mask), expected.last_hidden_state)
    cache = decoder.new_cache()
    with mg.no_grad():
        parts = [decoder(y[:, a:b], memory, memory_mask=mask, cache=cache) for a, b in ((0, 38), (38, 39), (39, 40))]
    near(mg.concatenate(parts, axis=1), expected.last_hidden_state)


@pytest.mark.parametrize("buckets, distance", [(32, 128), (8, 20), (64, 1000)])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_every_distance_has_the_bucket_that_t5_gives_it(buckets: int, distance: int, bidirectional: bool) -> None:
    import torch
    from transformers.models.t5.modeling_t5 import T5Attention

    away = np.arange(-5000, 5000)
    expected = T5Attention._relative_position_bucket(torch.tensor(away), bidirectional, buckets, distance)
    ours = RelativePositions(1, buckets, distance, bidirectional)
    np.testing.assert_array_equal(ours._bucket(away), expected.numpy())


SCALINGS: dict[str, dict[str, Any]] = {
    "default": {"rope_type": "default"},
    "linear": {"rope_type": "linear", "factor": 4.0},
    "llama3": {
        "rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768},
    "yarn of DeepSeek": {
        "rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1,
        "mscale": 1.0, "mscale_all_dim": 0.707,
    },
    "yarn of gpt-oss": {
        "rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096, "beta_fast": 32.0, "beta_slow": 1.0,
        "truncate": False, "attention_factor": 1.3,
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", SCALINGS)
@pytest.mark.parametrize("base", [10000.0, 500000.0])
def test_scaled_rotary_positions_are_those_of_transformers(kind: str, base: float) -> None:
    import torch
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    given = {**SCALINGS[kind], "rope_theta": base}
    config = LlamaConfig(hidden_size=256, num_attention_heads=4, max_position_embeddings=131072, rope_parameters=given)
    query, key = (normal(2, h, 5, 64, seed=h).astype("float32") for h in (4, 2))
    places = np.array([[0, 1, 2, 3, 4], [7, 100, 101, 102, 1000]])
    tensors = torch.tensor(query), torch.tensor(key)
    expected = apply_rotary_pos_emb(*tensors, *LlamaRotaryEmbedding(config)(tensors[0], torch.tensor(places)))
    got = RotaryPositions(64, base, style="half", scaling=given)(query, key, positions=places)
    for ours, theirs in zip(got, expected):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=5e-4)  # their angles are in float32
        np.testing.assert_allclose(ours.numpy()[0], theirs.numpy()[0], atol=5e-6)


def test_interleaved_and_half_are_the_same_rotation_of_other_columns() -> None:
    x = normal(2, 3, 5, 8)
    order = np.arange(8).reshape(4, 2).T.reshape(8)  # the even columns, then the odd ones
    paired, _ = RotaryPositions(8)(x, x)
    halved, _ = RotaryPositions(8, style="half")(x[..., order], x)
    np.testing.assert_allclose(halved.numpy(), paired.numpy()[..., order], rtol=1e-12)


@pytest.mark.parametrize("dim", [6, 7])
def test_sinusoids_in_halves_are_marians(dim: int) -> None:
    from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

    theirs = MarianSinusoidalPositionalEmbedding(20, dim)
    expected = theirs.create_weight() if hasattr(theirs, "create_weight") else theirs.weight
    got = SinusoidalPositions(dim, halves=True)(mg.zeros(20, dim))
    np.testing.assert_allclose(got.numpy(), expected.detach().numpy(), atol=1e-6)
