"""Tasks: a stranger's plugin has the verbs of the task that its spec names, in Python and as commands, by the name alone."""

import dataclasses
import json

import numpy as np
import pytest
from support.small_zoo import SPEC, Point, installed  # noqa: F401  (a fixture)

import minigrad as mg
from minigrad import nn, zoo
from minigrad.cli import COMMANDS, main
from minigrad.data import BOS, EOS, PAD, CharTokenizer, Padded
from minigrad.errors import ArgumentError
from minigrad.zoo.tasks import TASKS, tasks_with, verbs_of

TEXT = "abcabcabcabc " * 20
PAIRS = [(text, text[::-1]) for text in ("ab", "ba", "abc", "cab", "bca", "aab")]
TOKENIZER = CharTokenizer.train(TEXT)


class Letters(nn.Module):
    """A language model of the least that there can be: (B, T) -> (B, T, V), by a bigram table."""

    context = 16

    def __init__(self):
        self.table = nn.Embedding(TOKENIZER.vocab_size, TOKENIZER.vocab_size)

    def new_cache(self):
        return Cache()

    def forward(self, tokens, cache=None):
        return self.table(tokens)


class Cache:
    """Nothing is kept: the next letter depends on the last alone."""

    def select(self, rows):
        pass


class Mirror(nn.Module):
    """A translator that sees only how long the source is, and which letter came last: (B, S), (B, T) -> (B, T, V)."""

    def __init__(self):
        self.table = nn.Embedding(TOKENIZER.vocab_size, TOKENIZER.vocab_size)
        self.bag = nn.Embedding(TOKENIZER.vocab_size, TOKENIZER.vocab_size)

    def new_cache(self):
        return Source()

    def forward(self, sources, targets, cache=None):
        if cache is not None and cache.rows is None:
            cache.rows = sources
        rows = sources if cache is None else cache.rows
        return self.table(targets) + self.bag(rows).mean(axis=1, keepdims=True)


class Source:
    """The sources, in the order of the beams."""

    rows = None

    def select(self, rows):
        self.rows = self.rows[mg.tensor(rows)]


def letters_loss(model, batch):
    rows = mg.tensor(batch)
    logits = model(rows[:, :-1])
    wanted = rows[:, 1:].reshape(-1)
    loss = nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), wanted, reduction="sum")
    return {"loss": (loss, wanted.size)}


def mirror_loss(model, batch):
    sources, targets = map(mg.tensor, batch)
    logits, wanted = model(sources, targets[:, :-1]), targets[:, 1:].reshape(-1)
    flat = logits.reshape(-1, logits.shape[-1])
    loss = nn.functional.cross_entropy(flat, wanted, ignore_index=PAD, reduction="sum")
    return {"loss": (loss, int((batch[1][:, 1:] != PAD).sum()))}


def letter_batches(config):
    return [np.array(TOKENIZER.encode(TEXT)).reshape(-1, 13)]


def pair_batches(config):
    sources = Padded.of([[*TOKENIZER.encode(source), EOS] for source, _ in PAIRS]).ids
    return [(sources, Padded.of([[BOS, *TOKENIZER.encode(target), EOS] for _, target in PAIRS]).ids)]


@dataclasses.dataclass(frozen=True)
class Settings(zoo.Config):
    """Few steps."""

    steps: int = zoo.option(60, "steps")
    lr: float = zoo.option(0.3, "rate")


def plugin(name, task, model, batches, loss, **more):
    return zoo.ModelSpec(
        name=name, task=task, summary="a stranger's", config=Settings, build=lambda config: model(), loss=loss,
        data=lambda config, path: zoo.Data(batches(config), tokenizer=TOKENIZER), example=lambda config: batches(config)[0],
        **more,
    )  # fmt: skip


LETTERS = plugin("letters", "language model", Letters, letter_batches, letters_loss)
MIRROR = plugin("mirror", "translation", Mirror, pair_batches, mirror_loss)


@pytest.fixture
def strangers(installed, tmp_path, monkeypatch):  # noqa: F811
    installed += [Point("letters", LETTERS), Point("mirror", MIRROR)]
    monkeypatch.chdir(tmp_path)
    for name in ("letters", "mirror"):
        assert main(["train", name, "--no-report"]) == 0


def test_a_language_model_samples_by_its_task_alone(strangers, capsys):
    capsys.readouterr()
    assert main(["sample", "runs/letters", "ab", "--tokens", "7", "--greedy"]) == 0
    assert capsys.readouterr().out == "abcabcabc\n"
    loaded = zoo.load("runs/letters")
    assert "".join(loaded.sample("ab", tokens=1, sampling=mg.decode.Sampling(0.0))) == "c"
    assert loaded.verbs == ["evaluate", "sample", "chat", "logits"]


def test_a_translator_translates_by_its_task_alone(strangers, capsys):
    capsys.readouterr()
    assert (
        main(["translate", "abc", "ab", "--nbest", "2", "--beam", "3", "--json"]) == 0
    )  # of the newest run of the task
    found = json.loads(capsys.readouterr().out)
    assert [one["source"] for one in found] == ["abc", "ab"] and all(len(one["best"]) == 2 for one in found)
    loaded = zoo.load("runs/mirror")
    (best,) = loaded.translate("abc", beams=3)
    assert best.text == found[0]["translation"] and best.score == pytest.approx(found[0]["score"])
    assert loaded.tree(best)["token"] == TOKENIZER.token(BOS)
    assert loaded.verbs == ["evaluate", "translate", "logits", "attention", "tree"]


def test_a_verb_of_the_spec_takes_the_place_of_the_tasks(strangers):
    own = dataclasses.replace(LETTERS, verbs={"sample": lambda loaded, prompt, **options: iter([prompt.upper()])})
    loaded = dataclasses.replace(zoo.load("runs/letters"), spec=own)
    assert "".join(loaded.sample("ab")) == "AB"


def test_a_verb_of_another_task_names_those_that_the_model_has(strangers, capsys):
    capsys.readouterr()
    assert main(["sample", "runs/mirror", "ab"]) == 2
    told = capsys.readouterr().err
    wanted = "which cannot sample: use minigrad translate TEXT --run runs/mirror; its commands are"
    assert f"holds mirror, a model for translation, {wanted}" in told
    assert told.endswith("train, eval, translate, graph\n")


def test_what_a_model_lacks_for_a_verb_of_its_task_is_named(strangers):
    loaded = zoo.load("runs/letters")
    with pytest.raises(ArgumentError, match="letters cannot sample(.|\n)*a tokenizer"):
        dataclasses.replace(loaded, tokenizer=None).sample("ab")
    with pytest.raises(ArgumentError, match="letters cannot sample(.|\n)*new_cache"):
        dataclasses.replace(loaded, model=nn.Linear(1, 1)).sample("ab")


def test_every_command_of_a_task_is_a_verb_of_it_and_no_other_command():
    for task in TASKS.values():
        assert task.commands.keys() <= task.verbs.keys()
        assert all(task.name in tasks_with(verb) for verb in task.verbs)
    assert {"sample", "embed", "translate"} <= COMMANDS.keys()
    assert verbs_of(SPEC).keys() == SPEC.verbs.keys()


def test_the_shipped_models_name_their_tasks():
    assert verbs_of(zoo.find("gpt")).keys() == {"sample", "chat", "logits"}
    assert "translate" in verbs_of(zoo.find("translator"))
    assert verbs_of(zoo.find("bert")).keys() == {"embed", "logits"}
