"""Models as one page of plain NumPy: it runs without minigrad, and gives the same numbers."""

import dataclasses
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, zoo
from minigrad.cli import main
from minigrad.data import WordTokenizer, normalise
from minigrad.decode import Sampling
from minigrad.errors import ArgumentError
from minigrad.ir import Size
from minigrad.zoo.config import configure
from minigrad.zoo.frameworks import export_numpy
from minigrad.zoo.frameworks.numpy_ops import EXPRESSIONS
from minigrad.zoo.frameworks.programs import programs_of
from minigrad.zoo.loaded import Loaded

RUNS = Path(__file__).resolve().parent.parent / "tutorials" / "runs"
WORDS = WordTokenizer(["dog", "cat", "soup", "red", "blue", "ana", "ben", "park"])
CLOSE = {"rtol": 1e-4, "atol": 1e-4}


def fresh(name, tokenizer=None, **settings):
    """A model of the zoo that nobody trained, as if it had been loaded."""
    spec = zoo.find(name)
    config = configure(spec, None, {**spec.tiny, **settings})
    mg.manual_seed(0)
    model = spec.build(config)
    model.eval()
    return Loaded(spec, config, model, tokenizer, {"data": None}, 0, Path("."))


def written(loaded, folder):
    """The names that the page defines."""
    return runpy.run_path(str(export_numpy(loaded, folder) / "model.py"))


MODELS = {
    "xor": {}, "regression": {}, "digits": {}, "bitmlp": {}, "facts": {}, "superposition": {}, "vit": {"layers": 2},
    "caption": {"layers": 2}, "word2vec": {"vocab": WORDS.vocab_size}, "rnn": {"cell": "rnn"}, "gru": {"cell": "gru"},
    "lstm": {"cell": "lstm"}, "gpt": {"layers": 3}, "bert": {"layers": 2}, "translator": {"depth": 2, "vocab": 12},
    "seq2seq": {"vocab": 12, "cell": "gru"}, "bahdanau": {"vocab": 12, "cell": "lstm", "attention": True}, "speech": {}, "paint": {},
    "llama": {
        "layers": 2, "heads": 4, "dim": 16, "positions": "rotary", "norm": "rms", "activation": "swiglu", "bias": False,
        "block": {"kv_heads": 2, "softcap": 5.0},
    },
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_the_functions_of_the_page_give_what_the_graphs_of_the_model_give(name, tmp_path):
    spec = {"gru": "rnn", "lstm": "rnn", "llama": "gpt", "bahdanau": "seq2seq"}.get(name, name)
    loaded = fresh(spec, WORDS if name == "word2vec" else None, **MODELS[name])
    page = written(loaded, tmp_path / "out")
    generator, sizes = np.random.default_rng(0), {"n0": 3, "n1": 4, "n2": 5}
    for function, program in programs_of(loaded, EXPRESSIONS).items():
        if function not in page:
            continue
        given = []
        for value in program.graph.inputs:
            shape = [n.at(sizes) if isinstance(n, Size) else n for n in value.shape]
            numbers = generator.random(shape) if value.dtype.kind == "f" else generator.integers(1, 2, shape)
            given.append(numbers.astype(value.dtype))
        expected = program.graph(*given) if callable(program.graph) else run(program.graph, given)
        got = page[function](*given)
        for one, other in zip(got if isinstance(got, tuple) else (got,), expected, strict=True):
            np.testing.assert_allclose(one, other, **CLOSE)


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_rows_that_end_before_others_keep_their_state(cell, tmp_path):
    loaded = fresh("seq2seq", vocab=12, cell=cell, attention=True)
    page = written(loaded, tmp_path / "out")
    source, target = np.random.default_rng(0).integers(5, 12, (2, 3, 7))
    source[1, 4:] = source[2, 1:] = 0
    expected = loaded.model(mg.tensor(source), mg.tensor(target)).numpy()
    logits, *state = page["start"](source, target[:, :1])
    for place in range(1, 7):
        np.testing.assert_allclose(logits, expected[:, place - 1], **CLOSE)
        logits, *state = page["step"](target[:, place : place + 1], *state)


def run(graph, inputs):
    """The outputs of a graph whose sizes are those of these inputs."""
    from minigrad.ir.graph import at_sizes, run_step

    sizes = {
        str(n): m for value, x in zip(graph.inputs, inputs) for n, m in zip(value.shape, x.shape) if isinstance(n, Size)
    }
    known = {**graph.constants, **dict(zip(graph.inputs, inputs))}
    for step in graph.steps:
        numbers = {key: at_sizes(value, sizes) for key, value in step.attrs.items()}
        now = dataclasses.replace(step, inputs=at_sizes(step.inputs, sizes), attrs=numbers)
        known.update(zip(step.outputs, run_step(now, known)))
    return [known[value] for value in graph.outputs]


def test_repeated_blocks_are_a_loop_and_the_page_is_short(tmp_path):
    for layers in (2, 6):
        folder = export_numpy(fresh("gpt", layers=layers), tmp_path / str(layers))
        text = (folder / "model.py").read_text()
        assert f"for i in range({layers}):" in text and "minigrad" not in text.partition('"""\n\n')[2]
    assert len(text.splitlines()) < 130


def test_the_pages_write_translate_and_fill_blanks_without_minigrad(tmp_path):
    def said(name, *words):
        if not (tmp_path / name).is_dir():
            assert main(["export", str(RUNS / name), str(tmp_path / name), "--to", "numpy"]) == 0
        command = [sys.executable, "-I", str(tmp_path / name / "model.py"), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.rstrip("\n")

    loaded = zoo.load(RUNS / "gpt")
    assert said("gpt", "One day, Ana", "15") == "One day, Ana" + "".join(
        loaded.sample("One day, Ana", tokens=15, sampling=Sampling(0))
    )
    translator, text = zoo.load(RUNS / "translator"), "Where is the library?"
    glued = said("translator", normalise(text)).replace("¿ ", "¿").replace(" ?", "?")
    assert glued == translator.translate(text, beams=1)[0].text
    words = zoo.load(RUNS / "bert").predict("The <mask> was hungry.")[0]["<mask>"]
    rows = [line.split() for line in said("bert", "The <mask> was hungry.").splitlines()]
    assert [word for _, word in rows] == list(words)
    np.testing.assert_allclose([float(chance[:-1]) / 100 for chance, _ in rows], list(words.values()), atol=1e-3)


def test_an_op_that_the_page_cannot_write_is_named_with_its_module(tmp_path):
    class Twisted(nn.Module):
        def __init__(self):
            self.inner = nn.Linear(2, 2)

        def forward(self, x):
            return mg.linalg.det(self.inner(x).reshape(-1, 1, 2) * mg.ones(2, 1))

    loaded = fresh("xor")
    odd = dataclasses.replace(
        loaded,
        model=Twisted(),
        spec=dataclasses.replace(
            loaded.spec, page=None, loss=lambda model, batch: {"loss": (model(batch[0]).sum(), 1)}
        ),
    )
    with pytest.raises(ArgumentError, match=r"(?s)op 'det'.*Twisted.*--to onnx"):
        export_numpy(odd, tmp_path / "out")
