"""Choosing tokens, against formulas written out in plain Python; text from tokens as they come; and `minigrad sample`."""

from __future__ import annotations

import io
import math
import subprocess
import sys
import warnings
from collections import Counter

import numpy as np
import pytest
from minigrad_models.gpt import spec

from minigrad import zoo
from minigrad.cli import main
from minigrad.data import SPECIALS, BPETokenizer, CharTokenizer, WordTokenizer
from minigrad.decode import LanguageModel, Sampling, TextStream, continue_text, generate, greedy
from minigrad.decode.text_stream import beginning
from minigrad.errors import ArgumentError, NonFiniteError
from minigrad.zoo.tasks import language_model

SCORES = [2.0, -1.0, 0.5, 0.5, -3.0, 1.5, -0.2]


def written_out(scores, seen=(), temperature=1.0, top_k=None, top_p=None, repetition_penalty=1.0, forbidden=()):
    """The probabilities of one row, step by step."""
    values = dict(enumerate(scores))
    for token in set(seen):
        values[token] = values[token] / repetition_penalty if values[token] > 0 else values[token] * repetition_penalty
    values = {token: math.exp(value / temperature) for token, value in values.items() if token not in forbidden}
    ranked = sorted(values, key=lambda token: -values[token])
    if top_k is not None and top_k < len(ranked):
        least = values[ranked[top_k - 1]]
        ranked = [token for token in ranked if values[token] >= least]
    if top_p is not None:
        total, sum_so_far, kept = sum(values[token] for token in ranked), 0.0, []
        for token in ranked:
            if sum_so_far < top_p * total:
                kept.append(token)
            sum_so_far += values[token]
        ranked = kept
    total = sum(values[token] for token in ranked)
    return [values[token] / total if token in ranked else 0.0 for token in range(len(scores))]


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"temperature": 0.3},
        {"temperature": 5.0},
        {"top_k": 1},
        {"top_k": 2},
        {"top_k": 4},
        {"top_k": 100},
        {"top_p": 0.01},
        {"top_p": 0.7},
        {"top_p": 1.0},
        {"repetition_penalty": 1.7},
        {"forbidden": frozenset({0, 5})},
        {"temperature": 0.7, "top_k": 5, "top_p": 0.8, "repetition_penalty": 1.3, "forbidden": frozenset({2})},
    ],
    ids=str,
)
def test_probabilities_are_those_of_the_formulas(how):
    seen = [0, 4, 4, 6]
    found = Sampling(**how).probabilities(np.array([SCORES, SCORES[::-1]]), np.array([seen, seen]))
    np.testing.assert_allclose(found[0], written_out(SCORES, seen, **how), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found[1], written_out(SCORES[::-1], seen, **how), rtol=1e-12, atol=1e-15)


def test_tokens_are_drawn_as_often_as_they_are_likely():
    how = {"temperature": 0.9, "top_k": 5, "top_p": 0.95}
    count = 40_000
    drawn = Sampling(**how).choose(np.tile(SCORES, (count, 1)), np.random.default_rng(0))
    found = Counter(drawn.tolist())
    likely = written_out(SCORES, **how)
    assert set(found) == {token for token, share in enumerate(likely) if share}
    # Pearson's statistic of so many classes is below this in 999 of 1,000 cases.
    statistic = sum((found[t] - count * p) ** 2 / (count * p) for t, p in enumerate(likely) if p)
    assert statistic < {2: 13.8, 3: 16.3, 4: 18.5}[len(found) - 1]


def test_temperature_0_takes_the_first_of_the_best_and_almost_0_does_the_same():
    scores = np.array([[1.0, 3.0, 3.0, 2.0], [0.0, -1.0, 4.0, 1.0]])
    random = np.random.default_rng(0)
    assert Sampling(temperature=0).choose(scores, random).tolist() == [1, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Sampling(temperature=1e-310).choose(scores[1:], random).tolist() == [2]


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -0.1}, {"temperature": math.nan}, {"temperature": math.inf}, {"top_k": 0}, {"top_p": 0.0},
        {"top_p": 1.1}, {"repetition_penalty": 0.5}, {"repetition_penalty": math.nan},
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_is_refused_by_name(wrong):
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        Sampling(**wrong)


@pytest.mark.parametrize("row", [[math.nan, 0.0], [math.inf, 0.0], [-math.inf, -math.inf]])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_scores_that_are_not_finite_choose_nothing(row, temperature):
    with pytest.raises(NonFiniteError, match="no token can be chosen"):
        Sampling(temperature).choose(np.array([row]), np.random.default_rng(0))


class Echo:
    """A continuation that scores (last token + 1) highest, and remembers what it was given."""

    def __init__(self, size=5):
        self.size, self.given = size, []

    def __call__(self, tokens):
        self.given.append(tokens.copy())
        return 4.0 * np.eye(self.size)[(tokens[:, -1] + 1) % self.size]

    def select(self, rows):
        raise AssertionError("nobody asks for this")


def test_generate_gives_each_token_once_and_ends_when_every_row_has():
    echo = Echo()
    found = list(generate(echo, np.array([[0, 1], [2, 3]]), length=9, sampling=Sampling(0), end={4}))
    assert np.stack(found, axis=1).tolist() == [[2, 3, 4], [4, 0, 1]]
    assert [given.tolist() for given in echo.given] == [[[0, 1], [2, 3]], [[2], [4]], [[3], [0]]]
    assert greedy(Echo(), np.array([[0, 1], [2, 3]]), length=9, end=4) == [[2, 3], []]


def test_the_same_seed_draws_the_same_and_another_another():
    def drawn(seed):
        return [
            int(token[0]) for token in generate(Echo(), np.array([[0]]), length=40, sampling=Sampling(3.0), seed=seed)
        ]

    assert drawn(1) == drawn(1) != drawn(2)


def test_a_penalty_for_repetition_breaks_a_loop():
    class Stuck(Echo):
        def __call__(self, tokens):
            return np.array([[2.0, 1.9, 1.8, 0.0, 0.0]])

    def written(penalty):
        how = Sampling(0, repetition_penalty=penalty)
        return [int(token[0]) for token in generate(Stuck(), np.array([[4]]), length=3, sampling=how)]

    assert written(1.0) == [0, 0, 0]
    assert written(1.5) == [0, 1, 2]


TEXTS = ["plain", "ñandú, ¿sí? — €5", "👋🏽 hello 👩‍👩‍👧 \U0001f600", "日本語 text", "a\n\nb  c\t", ""]


@pytest.mark.parametrize("text", TEXTS)
def test_pieces_of_byte_pairs_are_whole_characters_and_together_the_text(text):
    tokenizer = BPETokenizer.train("the other day", vocab_size=262)
    stream = TextStream(tokenizer)
    pieces = [stream.push(token) for token in tokenizer.encode(text)]
    assert all("\ufffd" not in piece for piece in pieces)
    assert "".join(pieces) == text and stream.finish() == ""


def test_bytes_that_are_no_text_show_as_such_and_lose_nothing_else():
    tokenizer = BPETokenizer.train("ab", vocab_size=261)
    random = np.random.default_rng(0)
    for _ in range(200):
        ids = random.integers(5, 261, random.integers(1, 12)).tolist()
        stream = TextStream(tokenizer)
        assert "".join(map(stream.push, ids)) + stream.finish() == tokenizer.decode(ids)


def test_words_keep_their_spaces_after_a_prompt_and_between_quotes():
    tokenizer = WordTokenizer.train('He said: "well, no." She left (at once).')
    ids = tokenizer.encode('He said: "well, no." She left (at once). "He left"')
    for cut in range(len(ids)):
        stream = TextStream(tokenizer, prompt=ids[:cut])
        assert tokenizer.decode(ids[:cut]) + "".join(map(stream.push, ids[cut:])) + stream.finish() == tokenizer.decode(
            ids
        )


def test_what_comes_before_the_first_stop_string_is_shown_and_nothing_of_it():
    tokenizer = CharTokenizer("abc")
    random = np.random.default_rng(1)
    for _ in range(2000):
        text = "".join(random.choice(list("abc"), random.integers(0, 12)))
        stops = ["".join(random.choice(list("abc"), random.integers(1, 4))) for _ in range(random.integers(0, 3))]
        stream, shown = TextStream(tokenizer, stop=stops), ""
        for token in tokenizer.encode(text):
            shown += stream.push(token)
            assert not any(stop in shown for stop in stops)
        shown += stream.finish()
        # The stop string that is complete first, and of those that end together the one that began first.
        ends = [(text.find(stop) + len(stop), text.find(stop)) for stop in stops if stop in text]
        assert shown == (text[: min(ends)[1]] if ends else text)
        assert stream.is_stopped == bool(ends)


def test_a_stop_string_may_be_parted_among_tokens_and_inside_one():
    tokenizer = BPETokenizer.train("abab abab abab cdcd cdcd", vocab_size=270)
    ids = tokenizer.encode("cdcd abab cdcd")
    assert max(len(tokenizer.token(i)) for i in ids) > 2
    stream = TextStream(tokenizer, stop=["bab c"])
    assert "".join(map(stream.push, ids)) + stream.finish() == "cdcd a"


@pytest.mark.parametrize("stop", ["ab", ["a", ""]])
def test_stop_strings_that_cannot_be_are_refused(stop):
    with pytest.raises(ArgumentError, match="stop"):
        TextStream(CharTokenizer("ab"), stop=stop)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A little model of stories that was hardly trained."""
    folder = tmp_path_factory.mktemp("sampling") / "run"
    zoo.train("gpt", str(folder), progress=False, **spec.tiny)
    return str(folder)


@pytest.fixture(scope="module")
def loaded(run):
    return zoo.load(run)


def test_a_text_is_continued_without_what_is_no_text(loaded):
    pieces = list(loaded.sample("Ana", tokens=300, sampling=Sampling(50.0)))
    assert len("".join(pieces)) == 300
    assert not any(special in "".join(pieces) for special in SPECIALS)
    assert "".join(loaded.sample("Ana", tokens=300, sampling=Sampling(50.0), seed=1)) != "".join(pieces)


def test_with_and_without_a_cache_the_same_is_written_past_the_context(loaded):
    assert loaded.config.context < 40
    for how in (Sampling(0), Sampling(1.0, top_k=10), Sampling(0.8, top_p=0.9, repetition_penalty=1.2)):
        texts = {
            "".join(loaded.sample("Ana ", tokens=40, sampling=how, seed=3, cached=cached)) for cached in (True, False)
        }
        assert len(texts) == 1


def test_a_stop_string_ends_the_text(loaded):
    whole = "".join(loaded.sample("Ana", tokens=60, seed=2))
    stop = whole[20:23]
    assert "".join(loaded.sample("Ana", tokens=60, seed=2, stop=[stop])) == whole[: whole.index(stop)]


def test_unknown_characters_are_left_out_and_named_once(loaded):
    said = []
    found = "".join(loaded.sample("Aña€n€a", tokens=20, notice=said.append))
    assert said == ["the model was trained on text without 'ñ', '€': left out of the prompt"]
    assert found == "".join(loaded.sample("Aana", tokens=20))
    with pytest.warns(UserWarning, match="'€'"):
        assert "".join(loaded.sample("€", tokens=20)) == "".join(loaded.sample("", tokens=20))


def test_a_prompt_longer_than_the_context_is_said_once_and_only_its_end_counts(loaded):
    said = []
    end = "he went home. "
    texts = {"".join(loaded.sample(start + end, tokens=20, notice=said.append)) for start in ("Ana sat. ", "Bread. ")}
    assert len(texts) == 1
    assert len(said) == 2 and "the model sees 8 at once" in said[0]


def test_nothing_is_continued_after_a_line_end_if_there_is_one():
    assert beginning(CharTokenizer("\nab")) == CharTokenizer("\nab").encode("\n")
    assert beginning(WordTokenizer.train("Hello . you")) == WordTokenizer.train("Hello . you").encode(".")
    assert beginning(CharTokenizer("ab")) == [5]


def test_a_negative_number_of_tokens_is_refused_before_anything_is_computed(loaded):
    with pytest.raises(ArgumentError, match="no text of so many tokens"):
        loaded.sample("Ana", tokens=-1)
    assert list(loaded.sample("Ana", tokens=0)) == []


def test_a_model_that_diverged_says_so(loaded):
    model = zoo.create("gpt", **spec.tiny)
    for parameter in model.parameters():
        parameter.data[...] = math.nan
    with pytest.raises(NonFiniteError, match="no token can be chosen"):
        list(continue_text(model, loaded.tokenizer, "Ana"))


def test_a_continuation_goes_on_with_the_rows_that_are_selected(loaded):
    prompts = np.random.default_rng(0).integers(5, loaded.config.vocab, (3, 4))
    new = np.array([[7], [8]])
    for cached in (True, False):
        chosen, alone = LanguageModel(loaded.model, cached), LanguageModel(loaded.model, cached)
        chosen(prompts)
        chosen.select(np.array([2, 0]))
        alone(prompts[[2, 0]])
        np.testing.assert_allclose(chosen(new), alone(new), rtol=1e-5, atol=1e-6)


def test_the_command_writes_prompt_and_text_and_the_same_for_the_same_seed(run, loaded, capsys):
    assert main(["sample", run, "Ana", "--tokens", "30", "--top-k", "9", "--top-p", "0.9", "--seed", "4"]) == 0
    first = capsys.readouterr()
    how = Sampling(0.8, top_k=9, top_p=0.9)
    assert first.out == "Ana" + "".join(loaded.sample("Ana", tokens=30, sampling=how, seed=4)) + "\n"
    assert first.err == ""
    assert main(["sample", run, "Ana", "--tokens=30", "--top-k=9", "--top-p=0.9", "--seed=4", "--no-cache"]) == 0
    assert capsys.readouterr().out == first.out


def test_greedy_is_temperature_0(run, capsys):
    texts = []
    for way in (["--greedy"], ["--temperature", "0"], ["--greedy", "--seed", "5"]):
        assert main(["sample", run, "--tokens", "25", *way]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] == texts[2]


def test_a_prompt_with_what_is_not_known_is_said_to_the_terminal_and_not_into_the_text(run, capsys):
    assert main(["sample", run, "An€a", "--tokens", "5"]) == 0
    shown = capsys.readouterr()
    assert shown.err == "minigrad: the model was trained on text without '€': left out of the prompt\n"
    assert shown.out.startswith("An€a")


@pytest.mark.parametrize(
    ("given", "part"),
    [
        (["--greedy", "--temperature", "1"], "exclude each other"),
        (["--top-k", "0"], "top_k cannot be 0"),
        (["--top-p", "1.5"], "top_p cannot be 1.5"),
        (["--temperature", "-1"], "temperature cannot be -1"),
        (["--repetition-penalty", "0.5"], "repetition_penalty cannot be 0.5"),
        (["--stop", ""], "not empty"),
        (["--tokens", "-3"], "whole number from 0 up"),
    ],
)
def test_what_cannot_be_sampled_is_one_line(run, given, part, capsys):
    assert main(["sample", run, *given]) == 2
    shown = capsys.readouterr()
    assert part in shown.err and len(shown.err.splitlines()) == 1 and shown.out == ""


def test_a_model_that_writes_nothing_says_what_it_can(tmp_path, capsys):
    zoo.train("xor", str(tmp_path / "xor"), progress=False, max_steps=2)
    assert main(["sample", str(tmp_path / "xor")]) == 2
    assert (
        "holds xor, a model for classification, which cannot sample: its commands are train, eval"
        in capsys.readouterr().err
    )


class Pieces(io.StringIO):
    """What is written, as far as it has been flushed."""

    def __init__(self):
        super().__init__()
        self.flushed = [""]

    def flush(self):
        self.flushed.append(self.getvalue())


def test_every_piece_is_shown_at_once_and_an_interruption_leaves_a_whole_line(run, monkeypatch, capsys):
    shown = Pieces()

    def interrupted(*args, **options):
        yield "one"
        assert shown.flushed[-1] == "Ana" + "one"
        yield "\x1b[31mtwo"
        assert shown.flushed[-1] == "Ana" + "one" + "\\x1b[31mtwo"
        raise KeyboardInterrupt

    monkeypatch.setitem(spec.verbs, "sample", interrupted)
    monkeypatch.setattr(language_model.sys, "stdout", shown)
    assert main(["sample", run, "Ana"]) == 130
    assert shown.flushed[-1] == "Anaone\\x1b[31mtwo\n"
    assert "minigrad: interrupted" in capsys.readouterr().err


def test_it_streams_into_a_pipe_that_may_be_closed_early(run):
    command = [sys.executable, "-m", "minigrad", "sample", run, "Ana", "--tokens", "100000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        first = process.stdout.read(20)
        process.stdout.close()
        assert process.wait(timeout=120) == 1
        assert first.startswith(b"Ana") and process.stderr.read() == b""
