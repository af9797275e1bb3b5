"""Pretrained encoder-decoders in our own modules compute, and say, what transformers' do."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import minigrad as mg
from tests.support.transformers_models import in_float64, saved, torch, transformers

pytestmark = pytest.mark.transformers

VOCABULARY = 50
SMALL = {
    "vocab_size": VOCABULARY, "d_model": 24, "encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 3,
    "decoder_attention_heads": 3, "encoder_ffn_dim": 40, "decoder_ffn_dim": 40, "max_position_embeddings": 40,
}  # fmt: skip


def marian(**options: Any) -> tuple[str, Any]:
    ids = {"pad_token_id": 49, "eos_token_id": 0, "decoder_start_token_id": 49, "forced_eos_token_id": None}
    return "MarianMTModel", transformers.MarianConfig(**{**SMALL, "scale_embedding": True, **ids, **options})


def bart(**options: Any) -> tuple[str, Any]:
    ids = {
        "pad_token_id": 1,
        "bos_token_id": 0,
        "eos_token_id": 2,
        "decoder_start_token_id": 2,
        "forced_eos_token_id": None,
    }
    return "BartForConditionalGeneration", transformers.BartConfig(**{**SMALL, **ids, **options})


def t5(**options: Any) -> tuple[str, Any]:
    sizes = {"vocab_size": VOCABULARY, "d_model": 24, "d_kv": 10, "d_ff": 40, "num_layers": 2, "num_heads": 3}
    ids = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}
    return "T5ForConditionalGeneration", transformers.T5Config(**{**sizes, **ids, **options})


CASES: dict[str, Any] = {
    "marian": lambda: marian(),
    "marian, other sizes": lambda: marian(
        decoder_layers=3,
        decoder_attention_heads=4,
        decoder_ffn_dim=30,
        activation_function="swish",
        scale_embedding=False,
    ),
    "marian, a head of its own": lambda: marian(tie_word_embeddings=False),
    "marian, two vocabularies": lambda: marian(
        share_encoder_decoder_embeddings=False, decoder_vocab_size=45, pad_token_id=44, decoder_start_token_id=44
    ),
    "marian, nothing tied": lambda: marian(share_encoder_decoder_embeddings=False, tie_word_embeddings=False),
    "bart": lambda: bart(),
    "bart, scaled": lambda: bart(scale_embedding=True, activation_function="relu", encoder_attention_heads=2),
    "bart, untied": lambda: bart(tie_word_embeddings=False, decoder_layers=2, decoder_attention_heads=4),
    "bart, a first token": lambda: bart(forced_bos_token_id=0),
    "t5": lambda: t5(),
    "t5, other sizes": lambda: t5(
        num_decoder_layers=1, num_heads=5, d_kv=3, relative_attention_num_buckets=8, relative_attention_max_distance=16
    ),
    "t5 1.1": lambda: t5(feed_forward_proj="gated-gelu", tie_word_embeddings=False),
    "t5, relu, untied": lambda: t5(tie_word_embeddings=False, num_heads=4),
    "t5, gated by silu": lambda: t5(feed_forward_proj="gated-silu"),
}


@pytest.fixture(params=CASES)
def folder(request, tmp_path):
    kind, config = CASES[request.param]()
    saved(tmp_path, kind, config)
    return tmp_path, getattr(transformers, kind).from_pretrained(tmp_path).eval()  # Marian's sines are not in the file


def batch(model: Any, rows: int = 3, length: int = 9) -> tuple[np.ndarray, np.ndarray]:
    """Sources of unequal lengths, filled up with padding, and targets."""
    config, draw = model.config, np.random.default_rng(1)
    most = min(config.vocab_size, getattr(config, "decoder_vocab_size", None) or VOCABULARY) - 6
    sources, targets = draw.integers(3, most, (rows, length)), draw.integers(3, most, (rows, 7))
    sources[1, 5:] = sources[2, 2:] = config.pad_token_id
    targets[:, 0] = config.decoder_start_token_id
    return sources, targets


def logits(model: Any, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        mask = torch.tensor((sources != model.config.pad_token_id).astype("int64"))
        given = {"input_ids": torch.tensor(sources), "decoder_input_ids": torch.tensor(targets), "attention_mask": mask}
        return model(**given, use_cache=False).logits.numpy()


def test_logits_agree_in_both_precisions(folder):
    path, model = folder
    given = batch(model)
    assert np.abs(mg.hub.load(path).logits(*given) - logits(model, *given)).max() < 1e-4
    ours = mg.hub.load(path, dtype="float64")
    with in_float64(model) as exact:
        assert np.abs(ours.logits(*given) - logits(exact, *given)).max() < 1e-6


def test_token_by_token_with_a_cache_gives_the_same(folder):
    path, model = folder
    sources, targets = batch(model)

    def one_by_one(dtype: Any) -> np.ndarray:
        ours = mg.hub.load(path, dtype=dtype).model
        cache = ours.new_cache()
        with mg.no_grad():
            parts = [ours(sources, targets[:, i : i + 1], cache=cache).numpy() for i in range(targets.shape[1])]
        return np.concatenate(parts, axis=1)

    assert np.abs(one_by_one(None) - logits(model, sources, targets)).max() < 1e-4
    with in_float64(model) as exact:
        assert np.abs(one_by_one("float64") - logits(exact, sources, targets)).max() < 1e-6


def test_sources_padded_on_the_left_are_those_of_transformers(folder):
    path, model = folder
    sources, targets = batch(model)
    rows = [row[row != model.config.pad_token_id] for row in sources]
    left = np.full_like(sources, model.config.pad_token_id)
    for row, tokens in zip(left, rows):
        row[len(row) - len(tokens) :] = tokens
    assert np.abs(mg.hub.load(path).logits(left, targets) - logits(model, left, targets)).max() < 1e-4
    ours = mg.hub.load(path, dtype="float64").logits(left, targets)
    with in_float64(model) as exact:
        assert np.abs(ours - logits(exact, left, targets)).max() < 1e-6


@pytest.mark.parametrize("beams", [1, 3])
def test_it_says_what_transformers_says(folder, beams):
    path, model = folder
    sources, _ = batch(model)
    rows = [[int(i) for i in row if i != model.config.pad_token_id] for row in sources]
    ours = mg.hub.load(path).model
    ours.special = dataclasses.replace(
        ours.special, never=()
    )  # which transformers forbids after the softmax, and we before
    found = mg.decode.search_all(ours, rows, beams=beams, alpha=0.0)
    for row, hypotheses in zip(rows, found):
        most = 2 * len(row) + 10
        most = most if ours.longest is None else min(most, ours.longest - len(ours.special.prompt) + 1)
        options = {"num_beams": beams, "length_penalty": 0.0, "max_new_tokens": most + len(ours.special.prompt) - 1}
        with torch.no_grad():
            said = model.generate(torch.tensor([row]), do_sample=False, **options)[0].tolist()
        said = said[len(ours.special.prompt) :]
        assert hypotheses[0].tokens == (said[: said.index(ours.special.end)] if ours.special.end in said else said)


def test_a_head_that_is_not_tied_is_taken_from_the_file(tmp_path):
    kind, config = t5(feed_forward_proj="gated-gelu", tie_word_embeddings=False)
    model = getattr(transformers, kind)(config).eval()
    model.lm_head.weight = torch.nn.Parameter(torch.randn(VOCABULARY, 24))
    model.save_pretrained(tmp_path)
    given = batch(model)
    loaded = mg.hub.load(tmp_path)
    assert loaded.config.separate == "head"
    assert np.abs(loaded.logits(*given) - logits(model, *given)).max() < 1e-4
