"""Models as ONNX: onnxruntime gives their numbers, for any batch and length."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, zoo
from minigrad.cli import main
from minigrad.data import WordTokenizer, normalise
from minigrad.errors import ArgumentError
from minigrad.ir import Size
from minigrad.onnx import MAPPINGS, onnx_model
from minigrad.web.program import graph_of
from minigrad.zoo.config import configure
from minigrad.zoo.frameworks import export_onnx
from minigrad.zoo.frameworks.programs import programs_of
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


def test_a_language_model_goes_on_token_by_token_with_its_cache(tmp_path):
    loaded = zoo.load(RUNS / "gpt")
    step = session(export_onnx(loaded, tmp_path / "out") / "step.onnx")
    ids = tokens(3, 12, 500)
    past = {value.name: np.zeros((3, value.shape[1], 0, value.shape[3]), "float32") for value in step.get_inputs()[1:]}
    whole = loaded.model(mg.tensor(ids)).numpy()
    for place in range(ids.shape[1]):
        logits, *present = step.run(None, {"token": ids[:, place : place + 1], **past})
        np.testing.assert_allclose(logits, whole[:, place], **CLOSE)
        past = dict(zip(past, present, strict=True))


def test_a_translator_goes_on_token_by_token_with_its_cache(tmp_path):
    loaded = zoo.load(RUNS / "translator")
    folder = export_onnx(loaded, tmp_path / "out")
    start, step = session(folder / "start.onnx"), session(folder / "step.onnx")
    texts, special = ["You are welcome", "Where is the library?", "I don't see the red car"], loaded.model.special
    pieces = [loaded.tokenizer.encode(normalise(text), eos=True) for text in texts]
    source = np.zeros((len(texts), max(map(len, pieces))), "int64")
    for row, piece in zip(source, pieces):
        row[: len(piece)] = piece
    past = [value.name for value in step.get_inputs() if value.name != "token"]
    said = np.full((len(texts), 1), special.start)
    logits, *present = start.run(None, {"source": source, "target": said})
    for _ in range(14):
        with mg.no_grad():
            np.testing.assert_allclose(logits, loaded.model(mg.tensor(source), mg.tensor(said)).numpy()[:, -1], **CLOSE)
        logits[:, list(special.never)] = -np.inf
        token = logits.argmax(axis=1)[:, None]
        said = np.concatenate([said, token], axis=1)
        logits, *present = step.run(None, {"token": token, **dict(zip(past, present, strict=True))})
    ends = [row.index(special.end) for row in said.tolist()]
    texts_said = [loaded.tokenizer.decode(row[1:end]) for row, end in zip(said.tolist(), ends)]
    assert texts_said == [found.text for found in loaded.translate(texts, beams=1)]


WORDS = WordTokenizer(["dog", "cat", "soup", "red", "blue", "ana", "ben", "park"])
OTHERS = {
    "rnn": {"cell": "rnn"}, "gru": {"cell": "gru"}, "lstm": {"cell": "lstm"}, "bitmlp": {}, "facts": {}, "superposition": {},
    "vit": {}, "caption": {}, "word2vec": {"vocab": WORDS.vocab_size},
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_every_other_model_of_the_zoo_gives_the_same(name, tmp_path):
    spec = "rnn" if name in ("gru", "lstm") else name
    loaded = dataclasses.replace(fresh(spec, **OTHERS[name]), tokenizer=WORDS if name == "word2vec" else None)
    (program, *_) = programs_of(loaded, MAPPINGS).values()
    run = session(export_onnx(loaded, tmp_path / "out") / "model.onnx")
    generator = np.random.default_rng(0)
    given = [
        generator.random([3 if isinstance(n, Size) else n for n in value.shape]).astype(value.dtype)
        if value.dtype.kind == "f" else generator.integers(5, 8, [3 if isinstance(n, Size) else n for n in value.shape])
        for value in program.graph.inputs
    ]  # fmt: skip
    function = loaded.model
    if spec != "rnn" and loaded.spec.page is not None and spec != "caption":
        function = loaded.spec.page(loaded).function or loaded.model
    assert_equal_for(run, function, *given)
    if spec == "rnn":
        step, past = session(tmp_path / "out" / "step.onnx"), {}
        past = {value.name: np.zeros((1, 3, value.shape[2]), "float32") for value in step.get_inputs()[1:]}
        whole = loaded.model(mg.tensor(given[0])).numpy()
        for place in range(3):
            logits, *present = step.run(None, {"token": given[0][:, place : place + 1], **past})
            np.testing.assert_allclose(logits, whole[:, place], **CLOSE)
            past = dict(zip(past, present, strict=True))


@pytest.mark.parametrize(("cell", "attention"), [("rnn", False), ("gru", True), ("lstm", False), ("lstm", True)])
def test_a_recurrent_translator_goes_on_token_by_token(cell, attention, tmp_path):
    loaded = fresh("seq2seq", cell=cell, attention=attention, vocab=30, layers=2)
    folder = export_onnx(loaded, tmp_path / "out")
    start, step = session(folder / "start.onnx"), session(folder / "step.onnx")
    source, target = tokens(4, 9, 30), tokens(4, 6, 30)
    source[1, 4:] = source[2, 1:] = 0  # texts that end before others
    expected = loaded.model(mg.tensor(source), mg.tensor(target)).numpy()
    past = [value.name for value in step.get_inputs() if value.name != "token"]
    logits, *present = start.run(None, {"source": source, "target": target[:, :1]})
    np.testing.assert_allclose(logits, expected[:, 0], **CLOSE)
    for place in range(1, target.shape[1]):
        given = dict(zip(past, (present[int(name[5:])] for name in past)))
        logits, *present = step.run(None, {"token": target[:, place : place + 1], **given})
        np.testing.assert_allclose(logits, expected[:, place], **CLOSE)


@pytest.mark.parametrize("name", ["speech", "caption"])
def test_what_reads_and_then_writes_has_an_encoder_and_a_decoder_with_a_cache(name, tmp_path):
    loaded = fresh(name)
    folder = export_onnx(loaded, tmp_path / "out")
    model, encoder, start, step = (session(folder / f"{part}.onnx") for part in ("model", "encoder", "start", "step"))
    read, _ = loaded.spec.example(loaded.config)
    read, target = np.concatenate([read, read[:1], read[:1]])[:4], tokens(4, 8, 15)
    with mg.no_grad():
        expected = loaded.model(mg.tensor(read), mg.tensor(target))
    expected = [part.numpy() for part in (expected if isinstance(expected, tuple) else (expected,))]
    for got, want in zip(model.run(None, {"input_0": read, "input_1": target}), expected, strict=True):
        np.testing.assert_allclose(got, want, **CLOSE)
    (memory,) = encoder.run(None, {"input": read})
    logits, *present = start.run(None, {"memory": memory, "target": target[:, :2]})
    past = [value.name for value in step.get_inputs() if value.name != "token"]
    for place in range(2, target.shape[1]):
        np.testing.assert_allclose(logits, expected[0][:, place - 1], **CLOSE)
        token = target[:, place : place + 1]
        logits, *present = step.run(None, {"token": token, **dict(zip(past, present, strict=True))})


def test_the_painter_takes_noise_away_from_any_number_of_pictures(tmp_path):
    loaded = fresh("paint")
    run = session(export_onnx(loaded, tmp_path / "out") / "model.onnx")
    noisy, times, words, _ = loaded.spec.example(loaded.config)
    for rows in (1, 3):
        assert_equal_for(run, loaded.model, noisy[:rows], times[:rows], words[:rows])


def test_an_op_without_a_mapping_is_named_with_its_module():
    class Twisted(nn.Module):
        def __init__(self):
            self.inner = nn.Sequential(nn.Linear(3, 3))

        def forward(self, x):
            return mg.linalg.det(self.inner(x))

    graph = graph_of(Twisted(), [np.ones((3, 3), "float32")], whole=MAPPINGS)
    with pytest.raises(ArgumentError, match=r"(?s)no mapping for the op 'det'.*Twisted.*export RUN FOLDER"):
        onnx_model(graph, ["x"], ["y"])
