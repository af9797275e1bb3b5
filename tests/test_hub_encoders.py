"""Pretrained encoders in our own modules compute what transformers computes: words, classes, tags, answers and vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from support.transformers_models import in_float64, logits, saved, torch, transformers

import minigrad as mg
from minigrad import hub

pytestmark = pytest.mark.transformers

SMALL = {
    "vocab_size": 61, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 6, "intermediate_size": 40,
    "max_position_embeddings": 32,
}  # fmt: skip
DISTIL = {"vocab_size": 61, "dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 40, "max_position_embeddings": 32}


def bert(kind: str, **options: Any) -> tuple[str, Any]:
    return f"Bert{kind}", transformers.BertConfig(**{**SMALL, **options})


def roberta(kind: str, **options: Any) -> tuple[str, Any]:
    return f"Roberta{kind}", transformers.RobertaConfig(**{**SMALL, **options})


def esm(kind: str, **options: Any) -> tuple[str, Any]:
    kept = {"position_embedding_type": "rotary", "emb_layer_norm_before": True, "pad_token_id": 1, "mask_token_id": 60}
    return f"Esm{kind}", transformers.EsmConfig(**{**SMALL, **kept, **options})


def distilbert(kind: str, **options: Any) -> tuple[str, Any]:
    return f"DistilBert{kind}", transformers.DistilBertConfig(**{**DISTIL, **options})


CASES: dict[str, Any] = {
    "bert": lambda: bert("ForMaskedLM"),
    "bert, odd heads": lambda: bert("ForMaskedLM", num_attention_heads=3, hidden_act="relu", layer_norm_eps=1e-3),
    "bert, one head": lambda: bert("ForMaskedLM", num_attention_heads=1, hidden_act="gelu_new", num_hidden_layers=3),
    "bert, one type": lambda: bert("ForMaskedLM", type_vocab_size=1, hidden_act="silu"),
    "bert, three types": lambda: bert("ForMaskedLM", type_vocab_size=3, hidden_act="swish"),
    "roberta": lambda: roberta("ForMaskedLM", type_vocab_size=1),
    "roberta, odd heads": lambda: roberta("ForMaskedLM", num_attention_heads=3, hidden_act="relu", layer_norm_eps=1e-3),
    "xlm-roberta": lambda: ("XLMRobertaForMaskedLM", transformers.XLMRobertaConfig(**SMALL, type_vocab_size=1)),
    "distilbert": lambda: distilbert("ForMaskedLM"),
    "distilbert, even heads": lambda: distilbert("ForMaskedLM", n_heads=4, activation="relu", n_layers=1),
    "esm": lambda: esm("ForMaskedLM"),
    "esm, another base": lambda: esm("ForMaskedLM", rope_theta=500.0, layer_norm_eps=1e-3, num_attention_heads=3),
    "esm, tags": lambda: esm("ForTokenClassification", num_labels=5),
    "bert, classes": lambda: bert("ForSequenceClassification", id2label={0: "no", 1: "perhaps", 2: "yes"}),
    "roberta, classes": lambda: roberta("ForSequenceClassification", num_labels=4),
    "distilbert, classes": lambda: distilbert("ForSequenceClassification"),
    "bert, tags": lambda: bert("ForTokenClassification", num_labels=5),
    "roberta, tags": lambda: roberta("ForTokenClassification", num_labels=5),
    "distilbert, tags": lambda: distilbert("ForTokenClassification", num_labels=5),
}  # fmt: skip
VECTORS: dict[str, Any] = {
    "bert": lambda: bert("Model"),
    "bert, odd heads": lambda: bert("Model", num_attention_heads=3, hidden_act="relu"),
    "roberta": lambda: roberta("Model"),
    "distilbert": lambda: distilbert("Model"),
}


@pytest.fixture(params=CASES)
def folder(request, tmp_path):
    kind, config = CASES[request.param]()
    return tmp_path, saved(tmp_path, kind, config)


def tokens(rows: int = 2, length: int = 13) -> np.ndarray:
    """Any tokens, those for padding too: without a mask they are read like others."""
    return np.random.default_rng(1).integers(0, 61, (rows, length))


def types_for(model: Any, ids: np.ndarray) -> dict[str, np.ndarray]:
    """Token types at random, if a model takes them."""
    kinds = getattr(model.config, "type_vocab_size", 0)
    return {"types": np.random.default_rng(2).integers(0, kinds, ids.shape)} if kinds else {}


def theirs(model: Any, ids: np.ndarray, mask: Any = None, types: Any = None) -> np.ndarray:
    return logits(model, ids, mask, **({} if types is None else {"token_type_ids": torch.tensor(types)}))


def test_logits_agree_in_both_precisions(folder):
    path, model = folder
    ids = tokens()
    loaded, exact = hub.load(path), hub.load(path, dtype="float64")
    for given in ({}, types_for(model, ids)):
        assert np.abs(loaded.logits(ids, **given) - theirs(model, ids, **given)).max() < 1e-4
    with in_float64(model) as double:
        for given in ({}, types_for(model, ids)):
            assert np.abs(exact.logits(ids, **given) - theirs(double, ids, **given)).max() < 1e-6


@pytest.mark.parametrize("side", ["left", "right"])
def test_logits_agree_with_padding_on_either_side(folder, side):
    path, model = folder
    ids, mask = tokens(3), np.ones((3, 13), bool)
    mask[1, :4] = mask[2, :9] = False
    mask = mask if side == "left" else mask[:, ::-1].copy()
    ids[~mask] = model.config.pad_token_id

    def farthest(model: Any, dtype: Any) -> float:
        apart = np.abs(hub.load(path, dtype=dtype).logits(ids, mask=mask) - logits(model, ids, mask))
        return (apart if apart.ndim == 2 else apart[mask]).max()  # classes are those of a text

    assert farthest(model, None) < 1e-4
    with in_float64(model) as exact:
        assert farthest(exact, "float64") < 1e-6


@pytest.mark.parametrize("name", VECTORS)
def test_hidden_vectors_agree(name, tmp_path):
    kind, config = VECTORS[name]()
    model = saved(tmp_path, kind, config)
    ids, mask = tokens(3), np.ones((3, 13), bool)
    mask[1, 4:] = mask[2, 9:] = False
    ids[~mask] = config.pad_token_id
    with torch.no_grad():
        expected = model(torch.tensor(ids), attention_mask=torch.tensor(mask.astype(int))).last_hidden_state.numpy()
    loaded = hub.load(tmp_path)
    with mg.no_grad():
        assert np.abs(loaded.model(ids, mask).numpy() - expected)[mask].max() < 1e-4
        vectors = loaded.model.embed(ids, mask).numpy()
    means = [row[there].mean(axis=0) for row, there in zip(expected, mask)]
    assert loaded.config.task == "embed" and np.abs(vectors - means).max() < 1e-4


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["bert", "roberta", "distilbert", "bert, classes"])
def test_half_precision_stays_packed_and_gives_the_same_as_unpacked(name, dtype, tmp_path):
    kind, config = CASES[name]()
    model = saved(tmp_path, kind, config, dtype=getattr(torch, dtype))
    loaded, ids = hub.load(tmp_path), tokens()
    assert isinstance(loaded.model.tokens.weight, mg.nn.Packed)
    expected = logits(model.float(), ids)
    assert np.abs(loaded.logits(ids) - expected).max() < 1e-4
    assert np.abs(hub.load(tmp_path, dtype="float64").logits(ids) - expected).max() < 1e-4


@pytest.mark.parametrize("name", CASES)
def test_an_imported_folder_gives_the_same_to_the_bit(name, tmp_path):
    kind, config = CASES[name]()
    saved(tmp_path / "theirs", kind, config)
    first = hub.load(tmp_path / "theirs")
    again = hub.load(hub.import_model(tmp_path / "theirs", tmp_path / "ours"))
    np.testing.assert_array_equal(first.logits(tokens()), again.logits(tokens()))
    assert again.config == first.config


def test_classes_have_the_names_of_the_config(tmp_path):
    kind, config = CASES["bert, classes"]()
    saved(tmp_path / "named", kind, config)
    assert hub.load(tmp_path / "named").config.classes == ("no", "perhaps", "yes")
    saved(tmp_path / "numbered", *distilbert("ForSequenceClassification"))
    assert hub.load(tmp_path / "numbered").config.classes == ("LABEL_0", "LABEL_1")


def changed(folder: Path, **renamed: str) -> None:
    """Rename tensors of a folder, by the ends of their names."""
    state = load_file(folder / "model.safetensors")
    for old, new in renamed.items():
        state = {name.removesuffix(old) + new if name.endswith(old) else name: value for name, value in state.items()}
    save_file(state, folder / "model.safetensors", {"format": "pt"})


def test_old_names_of_norms_are_known(tmp_path):
    model = saved(tmp_path, *bert("ForMaskedLM"))
    changed(tmp_path, **{"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"})
    assert np.abs(hub.load(tmp_path).logits(tokens()) - logits(model, tokens())).max() < 1e-4


def test_a_config_that_does_not_say_its_family_is_known_by_the_tensors(tmp_path):
    model = saved(tmp_path, *bert("ForMaskedLM"))
    config = json.loads((tmp_path / "config.json").read_text())
    del config["model_type"], config["architectures"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert np.abs(hub.load(tmp_path).logits(tokens()) - logits(model, tokens())).max() < 1e-4


@pytest.mark.parametrize("pooling, normalize", [("cls", True), ("mean", False), ("max", True)])
def test_pooling_is_as_the_files_of_sentence_transformers_say(pooling, normalize, tmp_path):
    saved(tmp_path, *bert("Model"))
    (tmp_path / "1_Pooling").mkdir()
    modes = {f"pooling_mode_{name}_tokens": name == pooling for name in ("mean", "max", "mean_sqrt_len")}
    said = {"word_embedding_dimension": 24, "pooling_mode_cls_token": pooling == "cls", **modes}
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(said))
    kinds = ["Transformer", "Pooling", *["Normalize"] * normalize]
    (tmp_path / "modules.json").write_text(json.dumps([{"type": f"sentence_transformers.models.{k}"} for k in kinds]))
    config = hub.load(tmp_path).config
    assert (config.pool, config.normalize) == ({"cls": "first"}.get(pooling, pooling), normalize)
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps({**said, "pooling_mode_mean_sqrt_len_tokens": True}))
    with pytest.raises(hub.HubError, match="pooling of this model is not offered(.|\n)*mean_sqrt_len"):
        hub.load(tmp_path)
    (tmp_path / "modules.json").write_text(json.dumps([{"type": "sentence_transformers.models.Dense"}]))
    with pytest.raises(hub.HubError, match="'Dense' of this model is not offered"):
        hub.load(tmp_path)


@pytest.mark.parametrize(
    "case, wrong",
    [
        (bert, {"position_embedding_type": "relative_key"}),
        (bert, {"tie_word_embeddings": False}),
        (bert, {"is_decoder": True}),
        (roberta, {"pad_token_id": 0}),
        (distilbert, {"sinusoidal_pos_embds": True}),
    ],
)
def test_options_that_are_not_offered_are_refused_by_name(case, wrong, tmp_path):
    saved(tmp_path, *case("ForMaskedLM"))
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **wrong}))
    with pytest.raises(hub.HubError, match=f"{next(iter(wrong))} of this model is not offered"):
        hub.load(tmp_path)


def test_a_tensor_that_is_missing_or_left_over_is_named(tmp_path):
    saved(tmp_path, *bert("ForMaskedLM"))
    changed(tmp_path, **{"layer.1.attention.self.key.weight": "layer.1.attention.self.adapter.weight"})
    with pytest.raises(hub.HubError, match=r"missing: .*self\.key\.weight(.|\n)*left over: .*self\.adapter\.weight"):
        hub.load(tmp_path)
