"""`minigrad quantize`: a folder of packed weights that every command takes, and the truth about what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, zoo
from minigrad.cli import main
from minigrad.nn.summary import memory

ASKED = {
    "gpt": ["sample", "{}", "Ana", "--tokens", "3"],
    "bert": ["predict", "{}", "Ana was <mask>."],
    "translator": ["eval", "{}"],
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of each model that can be quantised, of two steps."""
    made = {}
    for name in ASKED:
        made[name] = tmp_path_factory.mktemp("runs") / name
        settings = {**zoo.find(name).tiny, "steps": 2}
        zoo.train(name, made[name], progress=False, **settings)
    return made


def formats(folder: Any) -> dict[str, str]:
    return {path: weight.format for path, weight in zoo.load(folder).model.named_packed()}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize(("bits", "format"), [(8, "q8_0"), (4, "q4_1")])
def test_a_quantised_run_is_a_folder_that_its_commands_take(name, bits, format, runs, tmp_path, capsys):
    small = tmp_path / "small"
    assert main(["quantize", str(runs[name]), "--bits", str(bits), "--out", str(small)]) == 0
    said = capsys.readouterr().out
    before, after = zoo.load(runs[name]), zoo.load(small)
    tables = {path for path, module in after.model.named_modules() if type(module) is nn.Embedding}
    found = formats(small)
    assert {found[path] for path in found if path.removesuffix(".weight") in tables} == {"q8_0"}
    assert {found[path] for path in found if path.removesuffix(".weight") not in tables} == {format}
    sizes = [f"{memory(loaded.model):,}" for loaded in (before, after)]
    lines = {line.split()[0]: line.split() for line in said.splitlines() if line}
    assert lines["bytes"][1:3] == sizes
    numbers = {key: value for key, value in after.evaluate().items() if isinstance(value, float)}
    assert numbers and all(float(lines[key][2]) == pytest.approx(value, abs=2e-5) for key, value in numbers.items())
    assert main([word.format(small) for word in ASKED[name]]) == 0


def test_logits_stay_near_those_of_the_run(runs):
    from minigrad.zoo.quantize import quantize

    loaded, ids = zoo.load(runs["gpt"]), np.array([[5, 6, 7, 8]])
    with mg.no_grad():
        wanted, *found = (one.model(ids).numpy() for one in (loaded, quantize(loaded, 8), quantize(loaded, 4)))
    errors = [np.abs(one - wanted).max() / np.abs(wanted).max() for one in found]
    assert 0 < errors[0] < 0.02 and errors[0] < errors[1] < 0.3


def test_what_a_file_has_in_16_bits_is_packed_anew_and_what_is_smaller_stays():
    model = nn.Encoder(1, 64, 4)
    state = model.state_dict().items()
    model.load_state_dict({name: nn.Packed.from_floats(v, "f16") if v.ndim == 2 else v for name, v in state})
    small = nn.quantized(model, 8)
    assert {weight.format for _, weight in small.named_packed()} == {"q8_0"}
    assert {weight.format for _, weight in model.named_packed()} == {"f16"}
    smaller = nn.quantized(small, 4)
    assert {weight.format for _, weight in smaller.named_packed()} == {"q4_1"}
    with pytest.raises(mg.errors.ArgumentError, match="nothing to make smaller"):
        nn.quantized(smaller, 8)


def test_adapters_are_merged_before(runs, tmp_path):
    settings = {**zoo.find("gpt").tiny, "steps": 2, "init": str(runs["gpt"]), "lora": 2}
    for taken in ("layers", "heads", "dim", "context", "tokenizer"):
        settings.pop(taken)
    zoo.train("gpt", tmp_path / "tuned", progress=False, **settings)
    assert main(["quantize", str(tmp_path / "tuned"), "-o", str(tmp_path / "small")]) == 0
    small = zoo.load(tmp_path / "small")
    assert small.config.lora == 0 and "encoder.blocks.0.mlp.up.weight" in formats(tmp_path / "small")
    wanted = zoo.load(tmp_path / "tuned").evaluate()["perplexity"]
    assert small.evaluate()["perplexity"] == pytest.approx(wanted, rel=1e-3)


def test_a_model_that_works_with_floats_is_refused_by_name(tmp_path, capsys):
    zoo.train("bitmlp", tmp_path / "bits", progress=False, **{**zoo.find("bitmlp").tiny, "steps": 1})
    assert main(["quantize", str(tmp_path / "bits"), "--out", str(tmp_path / "small")]) == 1
    said = capsys.readouterr().err
    assert "bitmlp cannot be quantised" in said and "bert, gpt, translator" in said
    assert not (tmp_path / "small").exists()


def test_a_folder_that_is_taken_is_refused_before_anything_is_computed(runs, tmp_path, capsys):
    (tmp_path / "note").write_text("mine")
    assert main(["quantize", str(runs["gpt"]), "--out", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert "is taken" in said.err and "bytes" not in said.out
    assert main(["quantize", str(runs["gpt"]), "--bits", "2", "--out", str(tmp_path / "new")]) == 2
