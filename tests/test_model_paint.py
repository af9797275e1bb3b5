"""The painter: noise is taken away as it was put there, and what is painted is what the sentence says to a captioner."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from minigrad_models import paint
from minigrad_models.caption import scenes
from minigrad_models.paint.model import Painter, joined, waves_of
from minigrad_models.paint.noise import NoisyScenes
from minigrad_models.paint.painting import film_strip, judged
from minigrad_models.vit.model import patches_of

import minigrad as mg
from minigrad import zoo
from minigrad.cli import main
from minigrad.errors import ArgumentError

RUNS = Path(__file__).resolve().parent.parent / "tutorials" / "runs"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of two steps: what it paints is nothing yet, but it paints."""
    folder = tmp_path_factory.mktemp("paint") / "run"
    config = zoo.configure(paint.spec, None, {**paint.spec.tiny, "steps": 2, "batch": 8})
    zoo.trainer_of(paint.spec, config, folder, progress=False).train()
    return folder


@pytest.fixture(scope="module")
def loaded(run):
    return zoo.load(run)


def test_patches_are_put_together_as_they_were_cut():
    shown = np.random.default_rng(0).random((2, 3, scenes.SIZE, scenes.SIZE))
    np.testing.assert_array_equal(joined(patches_of(mg.tensor(shown), 4), 4).numpy(), shown)


def test_times_are_told_apart():
    told = waves_of(mg.linspace(0, 1, 50), paint.spec.build(paint.spec.config()).waves).numpy()
    apart = np.abs(told[:, None] - told[None]).max(axis=-1) + np.eye(50)
    assert apart.min() > 0.05 and np.abs(told).max() <= 1


def test_noise_and_picture_are_mixed_by_the_time():
    given = scenes.pictures(200, 0, "train")
    noisy, times, words, clean = NoisyScenes(given, 200, 0.3, shuffle=False).batch(0, 0)
    np.testing.assert_allclose(clean, 2 - 2 * given[0], atol=1e-6)
    weight = times[:, None, None, None]
    noise = (noisy - weight * clean) / (1 - weight)
    assert abs(noise.mean()) < 0.01 and noise.std() == pytest.approx(1, abs=0.01)
    untold = (words == scenes.PAD).all(axis=1)
    assert 0.2 < untold.mean() < 0.4
    np.testing.assert_array_equal(words[~untold], given[1][~untold])


def test_each_epoch_has_noise_of_its_own_and_a_validation_always_the_same():
    given = scenes.pictures(8, 0, "train")
    for shuffle in (True, False):
        sampler = NoisyScenes(given, 8, 0.0, shuffle=shuffle)
        same = np.array_equal(np.sort(sampler.batch(0, 0)[1]), np.sort(sampler.batch(1, 0)[1]))
        assert same is not shuffle


def test_steps_lead_from_noise_to_what_the_model_sees():
    """A model that sees the same picture at every time is followed to that picture, in a straight line."""
    goal = np.random.default_rng(1).uniform(0, 2, (3, scenes.SIZE, scenes.SIZE)).astype("float32")

    class Certain(Painter):
        def forward(self, noisy, times, words):
            return mg.broadcast_to(mg.tensor(goal), noisy.shape)

    film = Certain(paint.PaintConfig(dim=8, strokes=5)).paint(["a small red circle"])
    assert film.shape == (6, 1, 3, scenes.SIZE, scenes.SIZE)
    np.testing.assert_allclose(film[-1, 0], 1 - goal / 2, atol=1e-5)


def test_a_captioner_judges_by_what_it_reads_in_the_pictures(loaded, monkeypatch):
    """The scenes themselves, painted exactly, are read as the captioner reads them; of what is no scene, next to nothing is right."""
    judge = str(RUNS / "caption")
    assert judged(loaded, judge)["exact"] <= 0.25
    drawn = {}
    for part in ("test", "unseen"):
        images, numbers = scenes.pictures(loaded.config.held_out, loaded.config.scenes_seed, part)
        drawn[tuple(scenes.worded(row[1:]) for row in numbers)] = images
    monkeypatch.setattr(loaded.model, "paint", lambda sentences, seed=0: drawn[tuple(sentences)][None])
    found = judged(loaded, judge)
    assert found["exact"] >= 0.8 and found["exact_unseen"] >= 0.6


def test_a_picture_and_its_film_are_written_by_the_command(run, loaded, tmp_path, capsys):
    image = pytest.importorskip("PIL.Image")
    for name in ("square.png", "square.gif"):
        assert main(["paint", str(run), "a large blue square", "-o", str(tmp_path / name)]) == 0
        assert capsys.readouterr().out == f"wrote {tmp_path / name}\n"
    with image.open(tmp_path / "square.png") as still, image.open(tmp_path / "square.gif") as film:
        assert still.size == film.size == (192, 192)
        assert film.n_frames == loaded.config.strokes + 1
        expected = loaded.paint("a large blue square")[-1]
        np.testing.assert_allclose(np.asarray(still)[::6, ::6], 255 * np.moveaxis(expected, 0, -1), atol=0.51)
    assert film_strip(loaded).svg().count("<image") == 12
    for out in ("square.bmp", "missing/square.png"):
        assert main(["paint", str(run), "a large blue square", "-o", str(tmp_path / out)]) != 0
    assert "square.bmp" in capsys.readouterr().err


def test_the_same_seed_paints_the_same_picture_and_company_does_not_change_it(loaded):
    first, again, other = (loaded.paint("a small red circle", seed=seed)[-1] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    beside = loaded.model.paint(["a small red circle", "a large green square"], 1)[-1, 0]
    np.testing.assert_allclose(first, beside, atol=1e-3)


@pytest.mark.parametrize("sentence", ["a small red cat", "", "a " * 11])
def test_sentences_of_no_scene_are_refused(loaded, sentence):
    with pytest.raises(ArgumentError, match="paint: "):
        loaded.predict(sentence)


def test_only_a_captioner_can_judge(loaded):
    with pytest.raises(ArgumentError, match="minigrad train caption"):
        loaded.evaluate()
    with pytest.raises(ArgumentError, match="holds vit"):
        loaded.evaluate(str(RUNS / "vit"))
