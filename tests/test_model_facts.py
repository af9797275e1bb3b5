"""The plugin facts: a block set by hand and a block that learned, both with AND gates, read as a memory."""

from functools import cache

import numpy as np
import pytest
from minigrad_models.facts import spec
from minigrad_models.facts.model import (
    ANSWERS,
    FACTS,
    FIRST,
    LAST,
    SPORTS,
    FactBlock,
    by_hand,
    directions,
    everybody,
    gates,
    indices,
    memory,
    unseen,
)

import minigrad as mg
from minigrad import zoo
from minigrad.errors import ArgumentError
from minigrad.zoo import trainer_of
from minigrad.zoo.config import configure


def answers_of(block):
    first, last, _ = everybody()
    with mg.no_grad():
        return block(first, last).numpy().argmax(axis=1)


@cache
def trained(preset=None, seed=0, **settings):
    trainer = trainer_of(spec, configure(spec, preset, settings), None, seed=seed, progress=False)
    trainer.train()
    return trainer.model


def test_every_name_and_sport_has_a_direction_of_its_own():
    found = directions()
    assert len(found) == len(FIRST) - 1 + len(LAST) - 1 + len(SPORTS)
    assert np.allclose(found @ found.T, np.eye(len(found)), atol=1e-6)


def test_the_block_set_by_hand_adds_basketball_for_michael_jordan_only():
    block = by_hand()
    first, last, answers = everybody()
    with mg.no_grad():
        stream = block.stream(first, last)
        added = block.down(block.neurons(stream)).numpy()  # (81, DIM)
    basketball = block.sports[SPORTS.index("basketball")].numpy()
    jordan = [(FIRST[f], LAST[g]) == ("Michael", "Jordan") for f, g in zip(first, last)].index(True)
    assert np.allclose(added[jordan], basketball, atol=1e-6)
    assert np.allclose(added[answers == ANSWERS.index("no fact")], 0, atol=1e-6)
    assert (answers_of(block) == answers).all()


def test_a_neuron_set_by_hand_is_an_and_gate():
    for gate in gates(by_hand()):
        assert np.allclose(gate.activations, [0, 0, 0, 1], atol=1e-6)
        assert gate.is_and and gate.others == 0


def test_the_memory_set_by_hand_is_the_table_of_facts():
    entries = memory(by_hand(), count=2)
    held = {frozenset(name for name, _ in entry.key): entry.value[0][0] for entry in entries}
    assert held == {frozenset(name.split()): sport for name, sport in FACTS.items()}
    assert all(size == pytest.approx(1, abs=1e-5) for entry in entries for _, size in entry.key + entry.value)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_learned_block_knows_every_fact_and_says_no_fact_to_wrong_combinations(seed):
    """To say "no fact" always would be right for 71 of 81, but for no fact; so facts and the rest are judged apart."""
    block = trained(seed=seed, steps=800)
    _, _, answers = everybody()
    right = answers_of(block) == answers
    facts = answers < len(SPORTS)
    seen = ~np.isin(np.arange(len(answers)), unseen(12))
    assert facts.sum() == 10 and right[facts].all()
    assert (seen & ~facts).sum() == 59 and right[seen & ~facts].all()
    assert right[~seen].mean() >= 0.75
    assert sum(gate.is_and for gate in gates(block)) >= 8


def test_the_entry_of_a_learned_gate_holds_its_names_and_its_sport():
    block = trained(seed=0, steps=800)
    entries = {entry.neuron: entry for entry in memory(block)}
    for gate in gates(block):
        entry = entries[gate.neuron]
        assert set(gate.fact.split()) <= {name for name, _ in entry.key}  # three names: two facts may share a neuron
        assert entry.value[0][0] == FACTS[gate.fact]


def test_without_the_cost_of_firing_no_neuron_is_an_and_gate_though_all_is_known():
    block = trained("dense", steps=800)
    assert (answers_of(block) == everybody()[2]).all()
    assert sum(gate.is_and for gate in gates(block)) <= 2


def test_without_relu_not_everything_can_be_known():
    """Readings of a linear block add up: Serena Federer and Roger Williams together are as much tennis as two facts are."""
    block = trained("linear", steps=800)
    assert (answers_of(block) != everybody()[2]).any()


def test_an_untrained_block_knows_next_to_nothing():
    mg.manual_seed(0)
    facts = everybody()[2] < len(SPORTS)
    assert (answers_of(FactBlock(16)) == everybody()[2])[facts].sum() <= 3


def test_what_is_kept_out_of_training_has_two_names_and_no_fact():
    first, last, answers = everybody()
    held = unseen(12)
    assert len(set(held)) == 12 and (first[held] > 0).all() and (last[held] > 0).all()
    assert (answers[held] == ANSWERS.index("no fact")).all()
    (first_seen, last_seen, _) = spec.data(configure(spec), None).train.arrays
    seen = set(zip(first_seen.tolist(), last_seen.tolist()))
    assert seen.isdisjoint(zip(first[held].tolist(), last[held].tolist())) and len(seen) == 81 - 12
    assert all(indices(name) in seen for name in FACTS)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "facts"
    zoo.train("facts", folder, max_steps=800, progress=False)
    return zoo.load(folder)


def test_a_name_gets_its_sport_with_probabilities(run):
    jordan, phelps, nobody, alone = run.predict("Michael Jordan", "michael phelps", "Serena Jordan", "Jordan")
    assert (jordan["answer"], phelps["answer"]) == ("basketball", "swimming")
    assert nobody["answer"] == alone["answer"] == "no fact"
    assert set(jordan["probabilities"]) == set(ANSWERS) and jordan["probabilities"]["basketball"] > 0.9
    assert sum(jordan["probabilities"].values()) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Micheal Jordan", "nobody called 'Micheal'(.|\n)*did you mean 'Michael'"),
        ("Michael Zzz", "nobody called 'Zzz'(.|\n)*Jordan"),
        ("Jordan Michael", "is not a name(.|\n)*in this order"),
        ("Michael Jordan Phelps", "is not a name"),
        ("Michael Serena", "is not a name"),
        ("", "is not a name(.|\n)*Michael Jordan"),
    ],
)
def test_what_is_no_known_name_is_explained(run, text, words):
    with pytest.raises(ArgumentError, match=words):
        run.predict(text)


def test_the_end_of_training_shows_gates_memory_and_what_is_right(run):
    found, shown = run.evaluate(), spec.after(run, run.path)
    assert found["facts"] == found["wrong_combinations"] == 1.0
    assert f"{found['and_gates']} of 10 facts have a neuron" in shown
    assert all(name in shown for name in FACTS) and "-> basketball" in shown.replace("  ", " ")
    assert run.gates() == gates(run.model) and run.memory() == memory(run.model)
