"""The verb `embed`: vectors that do not depend on the company a text is in, pooled as the config says; and its command."""

import io
import json

import numpy as np
import pytest
from minigrad_models.bert import spec

import minigrad as mg
from minigrad import zoo
from minigrad.cli import main
from minigrad.data import WordTokenizer
from minigrad.errors import ArgumentError
from minigrad.zoo.config import configure
from minigrad.zoo.loaded import Loaded
from minigrad.zoo.tasks.embedding import TOKENS, WASTED, _batches

WORDS = [f"w{i}" for i in range(50)]
ONE_ROUNDING = {"rtol": 1e-5, "atol": 1e-6}


def made(**settings):
    """A bert that was never trained, with weights that are not small."""
    small = {"layers": 2, "dim": 8, "heads": 2, "hidden": 12, "vocab": 55, "context": 16}
    config = configure(spec, None, {"task": "fill", **small, **settings})
    model = spec.build(config).eval()
    for i, parameter in enumerate(model.parameters()):
        parameter.data[...] = np.random.default_rng(i).normal(float(parameter.ndim == 1), 0.5, parameter.shape)
    return Loaded(spec, config, model, WordTokenizer(WORDS), {"data": None}, 0, None)


def texts(count, longest=30, seed=0):
    draw = np.random.default_rng(seed)
    return [" ".join(draw.choice(WORDS, draw.integers(0, longest))) for _ in range(count)]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("embed") / "run"
    zoo.train("bert", out, progress=False, **{**spec.tiny, "vocab": 10_000, "steps": 2})
    return str(out)


@pytest.mark.parametrize("pool", ["first", "max", "mean"])
@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_a_text_has_the_same_vector_in_any_company(pool, positions):
    loaded, asked = made(pool=pool, positions=positions), texts(100)
    together = loaded.embed(asked)
    assert together.shape == (100, 8) and together.dtype == np.float32
    np.testing.assert_allclose(together, np.concatenate([loaded.embed(text) for text in asked]), **ONE_ROUNDING)
    np.testing.assert_allclose(together[::-1], loaded.embed(asked[::-1]), **ONE_ROUNDING)


@pytest.mark.parametrize("pool", ["first", "max", "mean"])
@pytest.mark.parametrize("normalize", [False, True])
def test_vectors_are_pooled_as_the_config_says(pool, normalize):
    loaded = made(pool=pool, normalize=normalize)
    for text in ("w1 w2 w3", "w5"):
        ids = np.array([loaded.tokenizer.encode(text, bos=True, eos=True)])
        with mg.no_grad():
            hidden = loaded.model(ids).numpy()[0]
        expected = {"first": hidden[0], "max": hidden.max(axis=0), "mean": hidden.mean(axis=0)}[pool]
        expected = expected / np.linalg.norm(expected) if normalize else expected
        np.testing.assert_allclose(loaded.embed([text])[0], expected, **ONE_ROUNDING)


def test_what_is_too_long_is_cut_before_its_last_token():
    loaded = made()
    long = " ".join(WORDS)
    np.testing.assert_array_equal(loaded.embed([long]), loaded.embed([" ".join(WORDS[:14])]))  # 16 with <s> and </s>


def test_no_text_gives_no_vectors_and_an_empty_one_gives_one():
    loaded = made()
    assert loaded.embed([]).shape == (0, 8) and np.isfinite(loaded.embed([""])).all()


@pytest.mark.parametrize("task", ["pretrain", "fill", "embed", "classify", "tag", "answer", "similar"])
def test_every_task_can_embed_and_those_with_a_head_give_logits(task):
    loaded = made(task=task)
    assert np.isfinite(loaded.embed(texts(5))).all()
    ids = np.array([[1, 7, 8, 2, 9, 2], [1, 5, 2, 0, 0, 0]])
    shapes = {"pretrain": (2, 6, 55), "fill": (2, 6, 55), "classify": (2, 2), "tag": (2, 6, 2), "answer": (2, 6, 2)}
    if task in shapes:
        assert loaded.logits(ids).shape == shapes[task]
        alone = loaded.logits(ids[1:, :3])
        padded = loaded.logits(ids, mask=ids != 0)[1:]
        np.testing.assert_allclose(padded if task == "classify" else padded[:, :3], alone, **ONE_ROUNDING)
    else:
        with pytest.raises(ArgumentError, match="no head that gives logits"):
            loaded.logits(ids)


def test_the_logits_of_words_are_those_that_are_learned():
    loaded = made()
    batch = spec.example(loaded.config)
    is_hidden = batch.targets != -100
    types = np.cumsum(batch.ids == 2, axis=1) - (batch.ids == 2) > 0
    logits = loaded.logits(batch.ids, batch.ids != 0, types.astype(int))[is_hidden].astype(np.float64)
    chances = np.exp(logits - logits.max(axis=1, keepdims=True))
    surprise = -np.log(chances[np.arange(len(chances)), batch.targets[is_hidden]] / chances.sum(axis=1)).sum()
    assert spec.loss(loaded.model, batch)["words"][0].item() == pytest.approx(surprise, rel=1e-5)


@pytest.mark.parametrize("longest", [1, 3, 100, 3000])
def test_batches_hold_every_row_once_with_little_padding_and_not_too_many_tokens(longest):
    lengths = np.random.default_rng(0).integers(1, longest + 1, 700).tolist()
    batches = list(_batches(lengths))
    assert sorted(i for batch in batches for i in batch.tolist()) == [*range(700)]
    for batch in batches:
        widths = [lengths[i] for i in batch]
        area = max(widths) * len(widths)
        assert len(batch) == 1 or area <= TOKENS and area - sum(widths) <= WASTED * area + 1e-9


def test_the_command_prints_vectors_of_arguments_or_of_lines(run, capsys, monkeypatch):
    asked = ["Ana was sad.", "Ben ran."]
    assert main(["embed", run, *asked]) == 0
    printed = [[float(x) for x in line.split()] for line in capsys.readouterr().out.splitlines()]
    np.testing.assert_allclose(printed, zoo.load(run).embed(asked), rtol=1e-6)
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join([asked[0], "", asked[1], ""])))
    assert main(["embed", run, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["text"] for one in found] == asked
    np.testing.assert_allclose([one["vector"] for one in found], printed, rtol=1e-6)


def test_the_command_ranks_texts_by_their_cosine_to_the_first(run, capsys):
    asked = ["Ana was sad.", "Ben ran.", "Ana was sad.", "The kite was red."]
    vectors = zoo.load(run).embed(asked).astype(np.float64)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = sorted(zip(asked[1:], unit[1:] @ unit[0]), key=lambda pair: -pair[1])
    assert main(["embed", run, "--similar", *asked]) == 0
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert [text for _, text in lines] == [text for text, _ in expected]
    np.testing.assert_allclose([float(c) for c, _ in lines], [c for _, c in expected], atol=1e-4)
    assert main(["embed", run, "--similar", "--json", *asked]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["text"] == asked[0] and [one["text"] for one in found["similar"]] == [text for text, _ in expected]
    assert main(["embed", run, "--similar", "alone"]) == 1
    assert "too few texts" in capsys.readouterr().err
