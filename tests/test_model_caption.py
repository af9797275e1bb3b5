"""The captioner: sentences follow from scenes, and are written for scenes that were never shown."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from minigrad_models import caption
from minigrad_models.caption import scenes
from minigrad_models.caption.evaluation import as_text, exactness
from minigrad_models.caption.model import described

import minigrad as mg
from minigrad import zoo
from minigrad.errors import ArgumentError
from minigrad.zoo.attention import attention_of

SHIPPED = Path(__file__).resolve().parent.parent / "tutorials" / "runs" / "caption"


@pytest.fixture(scope="module")
def loaded():
    return zoo.load(SHIPPED)


def test_a_sentence_says_what_is_where():
    red, blue = scenes.Kind("small", "red", "circle"), scenes.Kind("large", "blue", "square")
    beside = scenes.Scene((red, blue), ((5.0, 9.0), (20.0, 12.0)))
    below = scenes.Scene((blue, red), ((15.0, 8.0), (13.0, 25.0)))
    assert beside.sentence == "a small red circle left of a large blue square"
    assert below.sentence == "a large blue square above a small red circle"
    assert scenes.Scene((red,), ((9.0, 9.0),)).sentence == "a small red circle"


def test_what_is_painted_is_what_the_sentence_says():
    """Where the middle of the first shape is, its colour is; shapes do not overlap, and lie inside."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        drawn = scenes.scene(rng, "train")
        picture = scenes.paint(drawn, rng)
        for kind, (x, y) in zip(drawn.kinds, drawn.places):
            found = picture[:, int(y) : int(y) + 2, int(x) : int(x) + 2].mean((1, 2))
            nearest = min(scenes.COLORS, key=lambda name: np.abs(found - scenes.COLORS[name]).sum())
            assert nearest == kind.color


def test_training_never_shows_the_combinations_that_are_held_out():
    rng = np.random.default_rng(0)
    shown = {kind for _ in range(3000) for kind in scenes.scene(rng, "train").kinds}
    assert shown == set(scenes.SHOWN) and not shown & set(scenes.HELD_OUT)
    for part in zip(*scenes.HELD_OUT):  # but each size, colour and shape of them
        assert set(part) <= {value for kind in shown for value in kind}
    assert all(set(scenes.scene(rng, "unseen").kinds) & set(scenes.HELD_OUT) for _ in range(200))


def test_no_picture_is_in_two_parts():
    parts = [scenes.pictures(50, 0, part)[0] for part in scenes.PARTS]
    assert len({picture.tobytes() for part in parts for picture in part}) == 200


def test_the_shipped_model_describes_scenes_exactly(loaded):
    """There are 1,056 sentences of two kinds and a relation: luck describes no scene. The seed is not that of training."""
    shown, sentences = scenes.pictures(400, 99, "test")
    words = described(loaded.model, shown)
    right = [scenes.worded(a) == scenes.worded(b[1:]) for a, b in zip(words, sentences)]
    assert np.mean(right) >= 0.95


def test_both_parts_are_measured_apart(loaded):
    config = loaded.config
    found = exactness(loaded)
    assert found["scenes"] == config.held_out and found["exact"] > 0.95
    assert re.match(r"exactly right, of 1000 held-out scenes +9\d\.\d\d%", as_text(found))


def test_a_picture_that_was_written_is_described_like_the_one_that_was_drawn(loaded, tmp_path):
    sentence = loaded.picture(17, str(tmp_path / "scene.png"))
    drawn, read = loaded.predict("17", str(tmp_path / "scene.png"))
    assert drawn["drawn"] == sentence and drawn["text"] == read["text"] and "drawn" not in read
    with pytest.raises(ArgumentError, match="is no picture"):
        loaded.predict("scene.txt")


def test_words_one_by_one_are_those_of_the_whole_sentence(loaded):
    """What the cache gives, step by step, is what one pass over the sentence gives."""
    shown, _ = scenes.pictures(20, 5, "test")
    written = described(loaded.model, shown)
    fed = np.concatenate([np.full((20, 1), scenes.BOS), written[:, :-1]], axis=1)
    with mg.no_grad():
        np.testing.assert_array_equal(loaded.model(shown, fed).numpy().argmax(axis=-1), written)


def test_its_attention_is_named_by_words_and_patches(loaded):
    seen = attention_of(loaded, "17")
    crosses = [layer for layer in seen.layers if layer.kind == "cross"]
    assert len(crosses) == loaded.config.layers
    assert crosses[0].columns[0] == "1.1" and crosses[0].weights.shape[2] == (scenes.SIZE // loaded.config.patch) ** 2
    assert "where each word looks" in caption.draw(loaded).svg()
