"""The recurrent language model: it learns more than how often characters are, and its cache gives what whole texts give."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from minigrad_models import rnn
from minigrad_models.corpora import story_text

import minigrad as mg
from minigrad import zoo

SETTINGS = {"dim": 24, "hidden": 64, "characters": 40_000, "steps": 250, "batch": 16, "context": 32, "lr": 8e-3}


@pytest.fixture(scope="module", params=["rnn", "gru", "lstm"])
def loaded(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / request.param
    config = zoo.configure(rnn.spec, request.param, {**SETTINGS, "lr": 8e-3})
    zoo.trainer_of(rnn.spec, config, folder, seed=0, progress=False).train()
    return zoo.load(folder)


def bigram_loss(text: str) -> float:
    """The mean surprise, over its last tenth, of what the first nine tenths tell about a character from the one before it."""
    cut, kinds = len(text) * 9 // 10, len(set(text))
    pairs, firsts = Counter(zip(text[: cut - 1], text[1:cut])), Counter(text[: cut - 1])
    held = list(zip(text[cut:], text[cut + 1 :]))
    return -sum(math.log((pairs[a, b] + 0.1) / (firsts[a] + 0.1 * kinds)) for a, b in held) / len(held)


def test_it_knows_more_than_the_character_before(loaded):
    bound = bigram_loss(story_text(40_000))
    assert 2 < bound < 2.6
    assert loaded.evaluate()["whole_validation_loss"] < bound - 0.1


def test_token_by_token_it_says_what_it_says_of_a_whole_text(loaded):
    model, ids = loaded.model.eval(), np.random.default_rng(0).integers(5, loaded.config.vocab, (2, 12))
    whole, cache = model(mg.tensor(ids)).numpy(), model.new_cache()
    parts = [model(mg.tensor(ids[:, t : t + 1]), cache=cache).numpy() for t in range(12)]
    np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, rtol=1e-4, atol=1e-5)
    cache.select(mg.tensor([1, 0]))
    swapped = model(mg.tensor(ids[::-1, :1].copy()), cache=cache).numpy()
    again = model.new_cache()
    model(mg.tensor(ids), cache=again)
    np.testing.assert_allclose(swapped[::-1], model(mg.tensor(ids[:, :1]), cache=again).numpy(), rtol=1e-4, atol=1e-5)


def test_it_writes_on_with_a_seed(loaded):
    written = ["".join(loaded.sample("Ana", tokens=20, seed=1)) for _ in range(2)]
    assert written[0] == written[1] and len(written[0]) == 20
