"""Imported models as ONNX: onnxruntime gives the numbers of transformers, for any batch and length, whole and with a cache."""

from pathlib import Path

import numpy as np
import pytest
import test_hub_decoders as decoders
import test_hub_encoder_decoders as encoder_decoders
import test_hub_encoders as encoders
from support.transformers_models import logits, saved, torch, transformers

from minigrad import hub
from minigrad.zoo.frameworks import export_onnx

onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.transformers
CLOSE = {"rtol": 1e-4, "atol": 1e-4}


def exported(cases, name, folder):
    """The model of transformers, ours, and the sessions of its files."""
    kind, config = cases[name]()
    saved(folder / "theirs", kind, config)
    theirs = getattr(transformers, kind).from_pretrained(folder / "theirs").eval()
    loaded = hub.load(folder / "theirs", dtype="float32")
    files = export_onnx(loaded, folder / "onnx").glob("*.onnx")
    return theirs, loaded, {path.stem: session(path) for path in files}


def session(path: Path):
    return onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])


def named(run, present, skipped=("token",)):
    """What a step reads of what the one before it gave."""
    names = [value.name for value in run.get_inputs() if value.name not in skipped]
    return {name: present[int(name.removeprefix("past_"))] for name in names}


@pytest.mark.parametrize("name", [
    "gpt2, other sizes", "llama", "llama 3, scaled positions", "mistral, a window", "qwen2, tied, a window from the second layer on",
    "qwen3", "gemma", "gemma2", "neox",
])  # fmt: skip
def test_a_decoder(name, tmp_path):
    theirs, loaded, runs = exported(decoders.CASES, name, tmp_path)
    ids = np.random.default_rng(0).integers(5, 40, (3, 9))
    for rows, length in ((1, 1), (3, 9), (2, 4)):
        (got,) = runs["model"].run(None, {"tokens": ids[:rows, :length]})
        np.testing.assert_allclose(got, logits(theirs, ids[:rows, :length]), **CLOSE)
    step, expected = runs["step"], logits(theirs, ids)
    present = [np.zeros((3, value.shape[1], 0, value.shape[3]), "float32") for value in step.get_inputs()[1:]]
    for place in range(ids.shape[1]):
        got, *present = step.run(None, {"token": ids[:, place : place + 1], **named(step, present)})
        np.testing.assert_allclose(got, expected[:, place], **CLOSE)


@pytest.mark.parametrize("name", ["bert", "roberta", "distilbert", "xlm-roberta", "bert, classes", "roberta, tags"])
def test_an_encoder(name, tmp_path):
    theirs, loaded, runs = exported(encoders.CASES, name, tmp_path)
    ids = np.random.default_rng(0).integers(5, 40, (3, 9))
    there = np.arange(9) < np.array([[9], [4], [7]])
    ids = np.where(there, ids, loaded.model.specials.pad)
    given = {"tokens": ids, "mask": there}
    options = {}
    if "types" in [value.name for value in runs["model"].get_inputs()]:
        kinds = np.random.default_rng(1).integers(0, theirs.config.type_vocab_size, ids.shape)
        given["types"], options = kinds, {"token_type_ids": torch.tensor(kinds)}
    got, expected = runs["model"].run(None, given)[0], logits(theirs, ids, there, **options)
    rows = there if got.ndim == 3 else ...
    np.testing.assert_allclose(got[rows], expected[rows], **CLOSE)


@pytest.mark.parametrize("name", ["marian", "marian, two vocabularies", "bart", "bart, a first token", "t5", "t5 1.1"])
def test_an_encoder_and_decoder(name, tmp_path):
    theirs, loaded, runs = exported(encoder_decoders.CASES, name, tmp_path)
    sources, targets = encoder_decoders.batch(theirs)
    expected = encoder_decoders.logits(theirs, sources, targets)
    memory, mask = runs["encoder"].run(None, {"source": sources})
    (got,) = runs["decoder"].run(None, {"target": targets, "memory": memory, "mask": mask})
    np.testing.assert_allclose(got, expected, **CLOSE)
    got, *present = runs["start"].run(None, {"source": sources, "target": targets[:, :2]})
    step = runs["step"]
    for place in range(2, targets.shape[1]):
        np.testing.assert_allclose(got, expected[:, place - 1], **CLOSE)
        got, *present = step.run(None, {"token": targets[:, place : place + 1], **named(step, present)})
