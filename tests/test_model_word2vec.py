"""word2vec: that words of a kind come near each other, beside chance and counting, and that its pairs, verbs and files are right."""

import math
from collections import Counter

import numpy as np
import pytest
from minigrad_models.corpora import stories
from minigrad_models.word2vec import evaluation, word_space
from minigrad_models.word2vec.pairs import LONGEST, WordPairs, encoded, vocabulary
from minigrad_models.word2vec.space import WordSpace

from minigrad import zoo
from minigrad.data import SPECIALS, WordTokenizer
from minigrad.errors import ArgumentError
from minigrad.nn import read_word_vectors

SHORTER = {"size": 24, "stories": 800, "steps": 500, "valid_every": 250}
POINTS = WordSpace(["east", "north", "north-east", "west"], np.array([[2, 0], [0, 1], [1, 1], [-3, 0]], "float32"))


@pytest.fixture(scope="module", params=[0, 1])
def trained(request, tmp_path_factory):
    out = tmp_path_factory.mktemp("word2vec") / "run"
    zoo.train("word2vec", out, seed=request.param, progress=False, **SHORTER)
    return zoo.load(out)


@pytest.fixture(scope="module")
def measured(trained):
    return trained.evaluate()


def test_words_of_a_kind_are_near_each_other(measured):
    assert measured["kinds"] > 0.6
    assert measured["kinds"] > 10 * measured["kinds_by_chance"]
    assert measured["kinds"] > 0.8 * measured["kinds_by_counting"]
    assert measured["loss"] < 0.5 * measured["loss_knowing_nothing"]


def test_labels_that_mean_nothing_are_not_learned(trained):
    """The measure itself cannot be pleased by any good vectors: with the words exchanged at random it falls to chance."""
    points = word_space(trained)
    exchanged = WordSpace(list(np.random.default_rng(0).permutation(points.words)), points.vectors)
    assert evaluation.mean_average_precision(exchanged) < 0.1


def test_analogies_are_right_far_more_often_than_by_chance(trained, measured):
    assert measured["analogies"] > 0.15 > 50 * measured["analogies_by_chance"]
    (answer,) = trained.predict("ana : she :: tom")
    assert next(iter(answer["nearest"])) == "he"


def test_the_kinds_are_those_of_the_stories():
    kinds = evaluation.kinds()
    assert {"red", "golden"} <= kinds["colour"] and {"dog", "goat"} <= kinds["animal"] and "ana" in kinds["girl"]
    assert len(kinds["girl"]) == len(kinds["boy"]) == 16 and not kinds["girl"] & kinds["boy"]
    told = " ".join(story.text for story in stories(2000)).lower()
    assert [word for words in kinds.values() for word in words if word not in told] == []
    assert evaluation.voices()["dog"] == "barked"


def test_average_precision_is_that_of_the_definition():
    words = ["red", "blue", "green", "kite", "the"]
    angles = np.radians([0.0, 10.0, 40.0, 22.0, 100.0])
    space = WordSpace(words, np.stack([np.cos(angles), np.sin(angles)], axis=1))
    red = (1 / 1 + 2 / 3) / 2  # blue, kite, green, the
    blue = (1 / 1 + 2 / 3) / 2  # red, kite, green, the
    green = (1 / 2 + 2 / 3) / 2  # kite, blue, red, the
    assert evaluation.mean_average_precision(space) == pytest.approx((red + blue + green) / 3)


def test_counting_gives_the_positive_pointwise_mutual_information():
    pairs = np.array([[0, 1]] * 6 + [[1, 0]] * 6 + [[0, 2], [2, 0]])
    found = evaluation.by_counting(pairs, ["a", "b", "c"]).vectors
    counts = Counter(map(tuple, pairs.tolist()))
    beside = {w: sum(n for (_, o), n in counts.items() if o == w) ** 0.75 for w in range(3)}
    for a in range(3):
        row = sum(n for (w, _), n in counts.items() if w == a)
        for b in range(3):
            seen = counts[(a, b)]
            expected = max(math.log(seen / (row * beside[b] / sum(beside.values()))), 0) if seen else 0
            assert found[a, b] == pytest.approx(expected)


def test_pairs_stand_within_the_window_of_one_line():
    lines = [np.array([5, 6, 7, 8]), np.array([9, 10])]
    pairs = WordPairs(lines, 11, batch=4, window=2, negatives=3, thin=0)
    seen = {tuple(pair) for epoch in range(30) for pair in pairs.pairs(epoch).tolist()}
    near = {(5, 6), (6, 7), (7, 8), (5, 7), (6, 8), (9, 10)}
    assert seen == near | {(b, a) for a, b in near}
    middle, others = pairs.batch(0, 0)
    assert middle.shape == (4,) and others.shape == (4, 4)
    np.testing.assert_array_equal(pairs.batch(3, 1)[1], pairs.batch(3, 1)[1])
    assert sum(len(batch[0]) for batch in pairs) >= len(pairs.pairs(0))


def test_frequent_words_are_thinned_out_and_negatives_follow_the_power():
    draw = np.random.default_rng(7)
    line = draw.choice([5, 6], p=[0.9, 0.1], size=20_000)
    share = np.bincount(line, minlength=7) / len(line)
    thinned = WordPairs([line], 7, 1000, 1, 5, thin=1e-2)
    whole = WordPairs([line], 7, 1000, 1, 5, thin=0)
    for word in (5, 6):
        expected = math.sqrt(1e-2 / share[word]) + 1e-2 / share[word]
        kept = (thinned.pairs(0)[:, 0] == word).sum() / (whole.pairs(0)[:, 0] == word).sum()
        assert kept == pytest.approx(expected, rel=0.1)
    negatives = np.concatenate([whole.batch(0, i)[1][:, 1:].ravel() for i in range(10)])
    powers = share[[5, 6]] ** 0.75
    assert (negatives == 5).mean() == pytest.approx(powers[0] / powers.sum(), abs=0.01)
    assert set(negatives.tolist()) == {5, 6}


def test_words_are_found_without_punctuation_and_rare_ones():
    tokenizer = vocabulary(['The dog, "the" dog!', "A cat; the cat."], 100, 2)
    assert tokenizer.tokens[len(SPECIALS) :] == ("the", "cat", "dog")
    (line,) = encoded(["THE bird, a Dog"], tokenizer)
    assert [tokenizer.token(i) for i in line] == ["the", "dog"]
    assert [len(part) for part in encoded(["dog " * (LONGEST + 1)], tokenizer)] == [LONGEST, 1]
    with pytest.raises(ArgumentError, match="too few words(.|\n)*min_count"):
        vocabulary(["one two three"], 100, 2)
    with pytest.raises(ArgumentError, match="no two words"):
        WordPairs([np.array([5]), np.array([6])], 7, 4, 2, 5, 0)


@pytest.mark.parametrize("text", ["two words\n", "a b " * 30], ids=["two words", "two words, often"])
def test_a_text_of_two_words_is_learned_from(tmp_path, text):
    """Of so short a text, thinning leaves no pair in some epochs."""
    (tmp_path / "two.txt").write_text(text)
    result = zoo.train(
        "word2vec", tmp_path / "run", data=tmp_path / "two.txt", steps=9, batch=8, min_count=1, progress=False
    )
    assert result.step == 9


def test_neighbours_and_analogies_are_geometry():
    assert POINTS.neighbours("east", 2) == [("north-east", 0.707), ("north", 0.0)]
    assert POINTS.neighbours("west", 9)[-1] == ("east", -1.0) and len(POINTS.neighbours("west", 9)) == 3
    assert (
        POINTS.analogy("east", "north", "west", 1)[0][0] == "north-east"
    )  # north - east + west = (-2, 1); nearest of one
    with pytest.raises(ArgumentError, match="how many"):
        POINTS.neighbours("east", 0)


def test_an_unknown_word_gets_the_nearest_spellings(trained):
    with pytest.raises(ArgumentError, match="'paintre' is not known(.|\n)*'painter'"):
        trained.neighbours("paintre")
    with pytest.raises(ArgumentError, match="did you mean"):  # even where nothing is near
        trained.predict("ξξξ")
    with pytest.raises(ArgumentError, match="one word, or three"):
        trained.predict("dog cat")
    assert trained.neighbours("DOG") == trained.neighbours("dog")


def test_the_file_that_is_written_is_read_back_bit_for_bit(trained, tmp_path):
    assert trained.write(tmp_path / "vectors.txt") == len(word_space(trained).words)
    found = read_word_vectors(tmp_path / "vectors.txt")
    assert found.words == word_space(trained).words and found.bad == 0
    np.testing.assert_array_equal(found.vectors, word_space(trained).vectors)
    header = (tmp_path / "vectors.txt").read_text(encoding="utf-8").splitlines()[0]
    assert header == f"{len(found)} {trained.config.size}"
    again = WordSpace.read(tmp_path / "vectors.txt")
    assert again.neighbours("dog") == trained.neighbours("dog")
    assert [path.name for path in tmp_path.iterdir()] == ["vectors.txt"]
    with pytest.raises(ArgumentError, match="cannot be written"):
        trained.write(tmp_path / "nowhere" / "vectors.txt")


def test_a_text_of_ones_own_is_learned_from(tmp_path, capsys):
    text = tmp_path / "own.txt"
    text.write_text("the sun shines by day\nthe moon shines by night\n" * 30, encoding="utf-8")
    zoo.train("word2vec", tmp_path / "run", data=str(text), steps=20, batch=16, size=4, thin=0.0)
    loaded = zoo.load(tmp_path / "run")
    assert isinstance(loaded.tokenizer, WordTokenizer) and len(loaded.space().words) == 7
    assert set(loaded.evaluate()) == {"words", "loss", "loss_knowing_nothing"}
    assert "nearest words" in "".join(capsys.readouterr())


def test_a_run_that_was_stopped_and_resumed_equals_one_that_was_not(tmp_path):
    tiny = zoo.find("word2vec").tiny
    zoo.train("word2vec", tmp_path / "whole", progress=False, **tiny)
    zoo.train("word2vec", tmp_path / "parts", progress=False, max_steps=7, **tiny)
    zoo.resume(tmp_path / "parts", progress=False, max_steps=20)
    whole, parts = (zoo.load(tmp_path / name, "latest").model.words.weight.numpy() for name in ("whole", "parts"))
    np.testing.assert_array_equal(whole, parts)
