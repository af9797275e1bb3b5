"""Models as ONNX: onnxruntime gives their numbers, for any batch and length."""

from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, zoo
from minigrad.cli import main
from minigrad.errors import ArgumentError
from minigrad.onnx import onnx_model
from minigrad.web.program import graph_of
from minigrad.zoo.config import configure
from minigrad.zoo.frameworks import export_onnx
from minigrad.zoo.loaded import Loaded

onnxruntime = pytest.importorskip("onnxruntime")
RUNS = Path(__file__).resolve().parent.parent / "tutorials" / "runs"
CLOSE = {"rtol": 1e-4, "atol": 1e-4}


def fresh(name, **settings):
    """A model of the zoo that nobody trained, as if it had been loaded."""
    spec = zoo.find(name)
    config = configure(spec, None, {**spec.tiny, **settings})
    mg.manual_seed(0)
    model = spec.build(config)
    model.eval()
    return Loaded(spec, config, model, None, {"data": None}, 0, Path("."))


def session(model):
    given = model if isinstance(model, bytes) else Path(model).read_bytes()
    return onnxruntime.InferenceSession(given, providers=["CPUExecutionProvider"])


def assert_equal_for(run, function, *inputs):
    names = [value.name for value in run.get_inputs()]
    with mg.no_grad():
        expected = function(*[mg.tensor(x) for x in inputs])
    np.testing.assert_allclose(run.run(None, dict(zip(names, inputs, strict=True)))[0], expected.numpy(), **CLOSE)


def tokens(rows, length, vocab):
    return np.random.default_rng(rows).integers(5, vocab, (rows, length))


@pytest.mark.parametrize(("name", "shape"), [("xor", (2,)), ("regression", (1,)), ("digits", (1, 16, 16))])
def test_a_network_gives_the_same_for_any_number_of_rows(name, shape, tmp_path):
    loaded = fresh(name)
    run = session(export_onnx(loaded, tmp_path / "out") / "model.onnx")
    for rows in (1, 7):
        x = np.random.default_rng(rows).random((rows, *shape), "float32")
        assert_equal_for(run, loaded.spec.page(loaded).function or loaded.model, x)


def test_a_language_model_gives_the_same_for_any_batch_and_length(tmp_path):
    main(["export", str(RUNS / "gpt"), str(tmp_path / "out"), "--to", "onnx"])
    model, run = zoo.load(RUNS / "gpt").model, session(tmp_path / "out" / "model.onnx")
    for rows, length in ((1, 1), (4, model.context), (2, 13)):
        assert_equal_for(run, model, tokens(rows, length, 500))
    assert (tmp_path / "out" / "tokenizer.json").is_file()


@pytest.mark.parametrize("options", [
    {"positions": "learned"}, {"positions": "sinusoidal"}, {"norm": "rms", "activation": "swiglu", "positions": "rotary"},
])  # fmt: skip
def test_other_kinds_of_transformers_give_the_same(options, tmp_path):
    config = {"layers": 2, "heads": 4, "dim": 16, "context": 12, "block": {"kv_heads": 2}, **options}
    loaded = fresh("gpt", **{**config, "vocab": 30})
    run = session(export_onnx(loaded, tmp_path / "out") / "model.onnx")
    assert_equal_for(run, loaded.model, tokens(3, 9, loaded.model.tokens.weight.shape[0]))


def test_a_masked_language_model_gives_the_same_with_padding(tmp_path):
    model = zoo.load(RUNS / "bert").model
    run = session(export_onnx(zoo.load(RUNS / "bert"), tmp_path / "out") / "model.onnx")
    ids = tokens(3, 14, 500)
    ids[1, 9:] = 0
    ids[2] = 0  # a text that is nothing but padding: attention to nothing is zero, not NaN
    assert_equal_for(run, model.logits, ids, ids != 0, np.zeros_like(ids))
    assert_equal_for(run, model.logits, ids[:1, :4], ids[:1, :4] != 0, np.zeros_like(ids[:1, :4]))


def test_a_translator_gives_the_same_as_encoder_and_decoder(tmp_path):
    model = zoo.load(RUNS / "translator").model
    folder = export_onnx(zoo.load(RUNS / "translator"), tmp_path / "out")
    encoder, decoder = (session(folder / f"{name}.onnx") for name in ("encoder", "decoder"))
    for rows, size, length in ((1, 4, 1), (4, 9, 12)):
        source, target = tokens(rows, size, 500), tokens(rows, length, 500)
        source[0, 3:] = model.special.pad
        memory, mask = encoder.run(None, {"source": source})
        (logits,) = decoder.run(None, {"target": target, "memory": memory, "mask": mask})
        with mg.no_grad():
            np.testing.assert_allclose(logits, model(mg.tensor(source), mg.tensor(target)).numpy(), **CLOSE)


def test_an_op_without_a_mapping_is_named_with_its_module():
    class Twisted(nn.Module):
        def __init__(self):
            self.inner = nn.Sequential(nn.Linear(3, 3))

        def forward(self, x):
            return mg.linalg.det(self.inner(x))

    graph = graph_of(Twisted(), [np.ones((3, 3), "float32")])
    with pytest.raises(ArgumentError, match=r"(?s)no mapping for the op 'det'.*Twisted.*export RUN FOLDER"):
        onnx_model(graph, ["x"], ["y"])
