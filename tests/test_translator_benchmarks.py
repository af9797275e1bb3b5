"""The translator of the benchmarks is the plugin's, in both libraries, and both learn alike; no time is asserted."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad import zoo
from minigrad.data import BOS, EOS, PAD
from minigrad.decode import EncoderDecoder, SpecialIds
from minigrad.decode.encoder_decoder import search_batches

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))  # pytest puts only the tests' own folder there

from benchmarks import floor, parity, train_step  # noqa: E402
from benchmarks.twins import translator  # noqa: E402

TINY = replace(translator.CONFIGS["tiny-translator"], depth=2, batch=3, dtype="float64")
FULL = translator.CONFIGS["translator"]


def with_padding(batch: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The batch with ends cut off some of its sentences."""
    source, target = (ids.copy() for ids in batch)
    source[0, 5:], target[1, 3:] = PAD, PAD
    return source, target


@pytest.mark.torch
@pytest.mark.parametrize("fused", [None, True])
def test_both_translators_have_the_same_losses_in_every_step(fused: bool | None) -> None:
    from benchmarks.twins.translator_minigrad import minigrad_step
    from benchmarks.twins.translator_torch import torch_step

    ours, theirs = minigrad_step(TINY), torch_step(TINY, fused)
    curves = np.array([(ours().item(), theirs().item()) for _ in range(5)])
    assert curves[4, 0] < curves[0, 0]
    np.testing.assert_allclose(curves[:, 0], curves[:, 1], rtol=0, atol=1e-9)


@pytest.mark.torch
def test_both_translators_have_the_same_gradient_for_every_parameter(monkeypatch: pytest.MonkeyPatch) -> None:
    from minigrad_models.translator.model import translation_loss

    from benchmarks.twins import translator_minigrad, translator_torch

    monkeypatch.setattr(translator_minigrad, "batches", lambda config: map(with_padding, translator.batches(config)))
    ours, theirs = translator_minigrad.new_model(TINY), translator_torch.new_model(TINY)
    total, tokens = translation_loss(ours, next(translator_minigrad.pairs(TINY)))["loss"]
    (total / tokens).backward()
    batch = with_padding(next(translator.batches(TINY)))
    translator_torch.loss_of(theirs, *batch, TINY.smoothing).backward()
    assert tokens == (batch[1][:, 1:] != PAD).sum() < TINY.batch * TINY.length
    expected = {name: p.grad.numpy() for name, p in theirs.named_parameters()}
    found = translator_torch.torch_state({name: p.grad.numpy() for name, p in ours.named_parameters()})
    assert found.keys() == expected.keys()
    for name, grad in expected.items():
        largest = abs(grad).max()
        assert largest > 1e-9, name  # it has an effect
        assert abs(found[name].numpy() - grad).max() < 1e-6 * largest, name


def test_the_drawn_weights_are_all_that_the_plugin_has() -> None:
    from benchmarks.twins.translator_minigrad import new_model

    model, given = new_model(TINY), translator.weights(TINY)
    assert {name: p.shape for name, p in model.named_parameters()} == {n: array.shape for n, array in given.items()}
    assert (model.embedding.weight.detach().numpy() == given["embedding.weight"]).all()


def test_targets_are_the_sources_from_the_end_and_nothing_is_padding() -> None:
    assert (translator.PAD, translator.BOS) == (PAD, BOS)
    for (source, target), again in islice(zip(translator.batches(FULL), translator.batches(FULL)), 3):
        assert source.shape == (64, 20) and target.shape == (64, 21)
        assert (target[:, 0] == BOS).all() and (target[:, :0:-1] == source).all()
        assert source.min() > PAD and source.max() < FULL.vocabulary
        assert (source == again[0]).all() and (target == again[1]).all()


def test_frequent_tokens_are_as_frequent_as_words() -> None:
    tokens = np.concatenate([source.ravel() for source, _ in islice(translator.batches(FULL), 100)])
    for rank in (1, 2, 5, 20):
        share = np.log1p(1 / rank) / np.log(FULL.vocabulary)
        assert np.mean(tokens == rank) == pytest.approx(share, rel=0.1)


def test_the_operations_of_the_matmuls_are_those_of_the_formula() -> None:
    c = FULL
    tokens = c.batch * c.length
    block = 4 * c.dim**2 + 2 * c.dim * c.hidden  # the weights of one block of the encoder
    linear = 6 * tokens * (c.depth * (2 * block + 4 * c.dim**2) + c.dim * c.vocabulary)  # 2 a weight and token, thrice
    attention = 12 * 3 * c.depth * tokens * c.length * c.dim  # two products forward, four backward
    assert floor.operations(c.products()) == linear + attention


def test_the_floor_multiplies_stacks() -> None:
    first = floor.gemm_step(TINY.products(), TINY.dtype)()
    assert first.shape == (1,) and first.dtype == TINY.dtype and np.isfinite(first).all()


def test_its_title_says_its_sizes() -> None:
    assert train_step.title_of("translator") == (
        "translator (3+3 layers, d 256, 8 heads, hidden 1024, batch 64 x 20 on both sides, vocabulary 8000, float32)"
    )
    assert train_step.title_of("nano").startswith("GPT nano (4 layers, d 128")


def run_twin(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["benchmarks.parity", *arguments])
    return parity.main()


@pytest.mark.torch
def test_the_twin_learns_as_the_plugin_does(monkeypatch: Any, capsys: Any, tmp_path: Path) -> None:
    file = tmp_path / "RESULTS.md"
    assert run_twin(monkeypatch, "--quick", "--json", "--write", str(file)) == 0
    printed = capsys.readouterr().out.splitlines()
    result = json.loads(printed[-1])
    ours, theirs = result["detail"]["losses"].values()
    assert len(ours) == len(theirs) == 5
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)
    assert 0 <= result["difference"] < 1e-10
    assert 0 < result["detail"]["padding"] < 0.5
    assert len(set(ours)) == 5  # other batches, other weights
    written = file.read_text()
    assert f"## {parity.TITLE}\n" in written and "losses of 5 steps" in written and "they are the same" in written


@pytest.mark.torch
def test_a_twin_that_learns_otherwise_is_found(monkeypatch: Any, capsys: Any) -> None:
    from benchmarks.twins import translator_torch

    right = translator_torch.sinusoids
    monkeypatch.setattr(translator_torch, "sinusoids", lambda *sizes: right(*sizes) * 1.0001)
    monkeypatch.setattr(parity, "QUICK_STEPS", 1)
    assert run_twin(monkeypatch, "--quick") == 1
    assert "THEY DIFFER" in capsys.readouterr().out


def test_without_pytorch_the_twin_says_so(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(
        parity, "prepared", lambda: (mg.nn.Linear(1, 1), type("Data", (), {"train": [0], "config": None}))
    )
    assert run_twin(monkeypatch, "--quick") == 1
    assert "nothing to compare" in capsys.readouterr().err


def test_the_table_has_every_twentieth_step_and_the_ends() -> None:
    curves = {"minigrad": [1.0] * 50, "PyTorch": [1.0] * 49 + [1.25]}
    text = parity.report({"losses": curves, "steps": 50, "padding": 0.1, "vocabulary": 9})
    lines = text.splitlines()
    assert [line.split()[0] for line in lines[2:-1]] == ["1", "20", "40", "50"]
    assert "at most 2.5e-01 apart" in lines[-1] and lines[-1].endswith("THEY DIFFER")


@pytest.mark.torch
def test_the_twin_with_a_cache_finds_the_same_translations() -> None:
    from benchmarks.twins.translation_torch import Continuation
    from benchmarks.twins.translation_torch import translator as twin

    mg.manual_seed(0)
    settings = {"vocab": 60, "depth": 2, "dim": 32, "heads": 2, "hidden": 48}
    model, rng = zoo.create("translator", **settings).eval(), np.random.default_rng(0)
    sources = [[*rng.integers(5, 60, length).tolist(), EOS] for length in (3, 9, 5, 5, 1)]
    state, ids = {name: value.numpy() for name, value in model.state_dict().items()}, SpecialIds()
    theirs = search_batches(partial(Continuation, twin(state, 2), ids.never), sources, [12] * 5, ids)
    ours = search_batches(partial(EncoderDecoder, model), sources, [12] * 5, ids)
    for one, other in zip(ours, theirs, strict=True):
        assert [found.tokens for found in one] == [found.tokens for found in other]
        np.testing.assert_allclose([found.score for found in one], [found.score for found in other], atol=1e-4)
