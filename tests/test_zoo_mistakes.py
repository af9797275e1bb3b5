"""What the zoo says when something is wrong, whoever made the mistake, and that nothing is lost by it."""

import dataclasses
import errno

import numpy as np
import pytest
from support.small_zoo import SPEC, LineConfig, Point, installed, loss

import minigrad as mg
from minigrad import zoo
from minigrad.errors import ArgumentError, MinigradError
from minigrad.train import RunError
from minigrad.zoo.config import configure, parse_overrides
from minigrad.zoo.data import data_of
from minigrad.zoo.export import export

__all__ = ["installed"]  # a fixture


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["widht=3"], "no setting 'widht'.*\n.*\n.*\n.*width"),
        (["width=x"], "width cannot be 'x'\n.*a whole number"),
        (["width=2.5"], "a whole number"),
        (["bias=maybe"], "true or false"),
        (["kind=odds"], "plain, odd.*\n.*\n.*odd"),
        (["sizes=1,b"], "sizes cannot be"),
        (["width"], "key=value"),
        (["width=1,000"], "a whole number"),
        (["width=3", "width=4"], "set twice"),
        (["lr=nan"], "a number"),
        (["lr=inf"], "lr cannot be 'inf'\n.*a number"),
        (["share=x"], "a number"),
        (["steps=0"], "steps cannot be 0\n.*1 or more"),
        (["batch=-4"], "batch cannot be -4\n.*1 or more"),
        (["lr=-0.1"], "lr cannot be -0.1\n.*0 or more"),
        (["sizes=3,-1"], "sizes cannot be -1\n.*0 or more"),
    ],
)
def test_a_wrong_setting_is_explained(given, words):
    with pytest.raises(ArgumentError, match=words):
        configure(SPEC, None, parse_overrides(given))


@pytest.mark.parametrize(
    "words",
    [
        "xor hidden=0", "regression hidden=10,0", "word2vec window=0", "word2vec negatives=-1", "word2vec thin=-1",
        "facts sparsity=-1", "facts unseen=-1", "superposition dims=0", "superposition sae_steps=0", "digits images=0",
        "digits held_out=0", "digits images_seed=-1", "bitmlp hidden=-2",
    ],
)  # fmt: skip
def test_what_a_model_cannot_be_made_of_is_refused_before_anything_is_made(words):
    name, setting = words.split()
    with pytest.raises(ArgumentError, match=rf"{name}: \w+ cannot be \S+\n.*[01] or more"):
        configure(zoo.find(name), None, parse_overrides([setting]))


def test_values_that_are_no_text_must_fit_their_fields():
    assert configure(SPEC, None, {"sizes": [1, 2], "width": 4.0, "lr": 1}).sizes == (1, 2)
    for wrong in (
        {"kind": None},
        {"width": True},
        {"width": None},
        {"sizes": 3},
        {"bias": 2},
        {"lr": "x"},
        {"kind": 3},
    ):
        with pytest.raises(ArgumentError, match=f"{next(iter(wrong))} cannot be"):
            configure(SPEC, None, wrong)


def test_settings_that_the_config_itself_refuses_are_explained():
    @dataclasses.dataclass(frozen=True)
    class Choosy(LineConfig):
        def __post_init__(self):
            if self.width % 2 == 0:
                raise ValueError("width must be odd")

    with pytest.raises(ArgumentError, match="width must be odd\n.*width=4"):
        configure(dataclasses.replace(SPEC, config=Choosy), None, {"width": "4"})


def test_an_unknown_preset_and_an_unknown_model_get_the_nearest(installed):
    with pytest.raises(ArgumentError, match="no preset 'wise'(.|\n)*wide"):
        configure(SPEC, "wise")
    with pytest.raises(ArgumentError, match="no model 'lime'(.|\n)*line"):
        zoo.create("lime")


def test_a_plugin_that_fails_to_import_is_listed_as_broken_with_its_error(installed):
    installed.append(Point("bad", ZeroDivisionError("what now")))
    installed.append(Point("odd", 3))
    installed.append(Point("other", SPEC))
    errors = {entry.name: entry.error for entry in zoo.list()}
    assert errors["line"] is None
    assert "ZeroDivisionError: what now" in errors["bad"] and "no ModelSpec but int" in errors["odd"]
    assert "'other'" in errors["other"] and "'line'" in errors["other"]
    with pytest.raises(zoo.PluginError, match="somebody's 1.0 is broken.*what now"):
        zoo.create("bad")


def test_a_plugin_that_ends_the_program_when_imported_is_listed_as_broken(installed):
    class Leaving(Point):
        def load(self):
            raise SystemExit(3)

    installed.append(Leaving("leaving", None))
    assert "SystemExit: 3" in zoo.list("leaving")[0].error


def fail(*_):
    raise ZeroDivisionError("what now")


@pytest.mark.parametrize(
    ("part", "doing"),
    [
        ("data", "making its data"),
        ("build", "building the model"),
        ("optimizer", "building the model"),
        ("schedule", "building the model"),
        ("loss", "training"),
        ("after", "showing what it learned"),
    ],
)
def test_what_a_plugin_raises_names_it_and_its_package_and_keeps_the_cause(installed, tmp_path, part, doing):
    installed[:] = [Point("line", dataclasses.replace(SPEC, **{part: fail}))]
    words = f"'line' of somebody's 1.0 failed while {doing}: ZeroDivisionError: what now"
    with pytest.raises(zoo.PluginError, match=words) as caught:
        zoo.train("line", tmp_path / "run", progress=False)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_plugin_that_raises_in_the_middle_of_training_loses_nothing(installed, tmp_path):
    fails_at = [9]

    def sometimes(model, batch):
        if model.training:
            fails_at[0] -= 1
        return fail() if fails_at[0] == 0 else loss(model, batch)

    zoo.train("line", tmp_path / "whole", progress=False)
    installed[:] = [Point("line", dataclasses.replace(SPEC, loss=sometimes))]
    with pytest.raises(zoo.PluginError, match="failed while training(.|\n)*minigrad resume"):
        zoo.train("line", tmp_path / "run", progress=False)
    assert zoo.load(tmp_path / "run").step == 8  # the last validation before it
    assert zoo.resume(tmp_path / "run", progress=False).step == 12
    whole, parts = (zoo.load(tmp_path / name, "latest").model.weight.numpy() for name in ("whole", "run"))
    np.testing.assert_array_equal(whole, parts)


@pytest.mark.parametrize(
    ("verb", "doing"), [("predict", "predicting"), ("evaluate", "evaluating"), ("double", "double")]
)
def test_what_a_plugin_raises_when_it_is_used_names_it_too(installed, tmp_path, verb, doing):
    zoo.train("line", tmp_path / "run", progress=False)
    spec = dataclasses.replace(SPEC, predict=fail, evaluate=fail, verbs={"double": fail})
    installed[:] = [Point("line", spec)]
    with pytest.raises(zoo.PluginError, match=f"somebody's 1.0 .*{doing}: ZeroDivisionError"):
        getattr(zoo.load(tmp_path / "run"), verb)()


def test_a_name_that_two_packages_want_is_refused_naming_both(installed):
    installed.append(Point("line", SPEC, "another"))
    with pytest.raises(zoo.PluginError, match="another 1.0 and somebody's 1.0"):
        zoo.create("line")


def test_a_run_of_another_program_or_version_is_refused(installed, tmp_path, monkeypatch):
    model = mg.nn.Linear(2, 1)
    batches = [(np.ones((2, 2), "float32"), np.ones((2, 1), "float32"))]
    mg.train.Trainer(
        model, loss, batches, mg.optim.SGD(model.parameters(), lr=0.1), out=tmp_path / "own", max_steps=1
    ).train()
    with pytest.raises(RunError, match="is no run of `minigrad train`"):
        zoo.load(tmp_path / "own")
    zoo.train("line", tmp_path / "run", progress=False)
    export(zoo.load(tmp_path / "run"), tmp_path / "shared")
    shorter = dataclasses.make_dataclass(
        "Shorter", [("other", int, zoo.option(1, "x"))], bases=(zoo.Config,), frozen=True
    )
    installed[:] = [Point("line", dataclasses.replace(SPEC, config=shorter, presets={}))]
    for place in ("run", "shared"):
        with pytest.raises(RunError, match="another version of 'line'(.|\n)*width"):
            zoo.load(tmp_path / place)
    installed[:] = [Point("line", dataclasses.replace(SPEC, build=lambda config: mg.nn.Linear(9, 1)), version="2.0")]
    for place in ("run", "shared"):
        with pytest.raises(RunError, match="'line', with somebody's 1.0 .installed is somebody's 2.0.(.|\n)*weight"):
            zoo.load(tmp_path / place)
    with pytest.raises(MinigradError, match="does not fit"):
        zoo.resume(tmp_path / "run", progress=False)
    installed.clear()
    for use, place in ((zoo.load, "run"), (zoo.resume, "run"), (zoo.load, "shared")):
        with pytest.raises(ArgumentError, match="no model 'line'(.|\n)*install somebody's 1.0"):
            use(tmp_path / place)


def test_a_directory_that_holds_a_run_is_refused_before_the_data_is_made_and_stays_as_it_was(installed, tmp_path):
    zoo.train("line", tmp_path, progress=False)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    installed[:] = [Point("other", dataclasses.replace(SPEC, name="other", data=fail))]
    with pytest.raises(RunError, match="already holds a run(.|\n)*minigrad resume"):
        zoo.train("other", tmp_path, progress=False)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("out", ["file", "file/run"])
def test_a_file_in_the_place_of_a_run_is_refused_before_the_data_is_made(out, installed, tmp_path):
    (tmp_path / "file").write_text("mine")
    installed[:] = [Point("other", dataclasses.replace(SPEC, name="other", data=fail))]
    with pytest.raises(RunError, match="cannot be a run directory: .*file' is a file"):
        zoo.train("other", tmp_path / out, progress=False)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_place_that_may_not_be_written_to_is_refused_before_the_data_is_made(installed, tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)  # as for somebody who is not root
    installed[:] = [Point("other", dataclasses.replace(SPEC, name="other", data=fail))]
    with pytest.raises(RunError, match="cannot be a run directory: .* may not be written to"):
        zoo.train("other", tmp_path / "run", progress=False)


@pytest.mark.parametrize("text", ["", "[]", '{"config": 3}', '{"config": {"model": ["line"]}}', "\x00"])
def test_a_run_directory_whose_config_is_damaged_is_refused(installed, tmp_path, text):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text(text)
    with pytest.raises(MinigradError, match="cannot be read|is no run of"):
        zoo.resume(tmp_path / "run", progress=False)
    with pytest.raises(RunError, match="no run of a model for regression"):
        zoo.newest_run("regression", tmp_path)


def test_a_directory_that_is_no_run_is_refused(installed, tmp_path):
    for use in (zoo.load, zoo.resume):
        with pytest.raises(MinigradError, match="no latest checkpoint"):
            use(tmp_path)


def test_a_place_that_cannot_be_written_is_said_and_left_alone(installed, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunError, match="cannot be a run directory"):
        zoo.train("line", tmp_path / "file" / "run", progress=False)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_full_disk_is_said_and_the_last_checkpoint_stays(installed, tmp_path, monkeypatch):
    zoo.train("line", tmp_path / "run", max_steps=5, progress=False)

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("minigrad.train.checkpoint.write_atomically", full)
        with pytest.raises(MinigradError, match="No space left on device"):
            zoo.resume(tmp_path / "run", max_steps=8, progress=False)
    assert zoo.load(tmp_path / "run", "latest").step == 5
    assert zoo.resume(tmp_path / "run", max_steps=8, progress=False).step == 8


def test_data_that_is_not_there_is_said_before_anything_begins(installed, tmp_path):
    with pytest.raises(ArgumentError, match="there is no 'nowhere.txt'"):
        zoo.train("line", tmp_path / "run", data="nowhere.txt", progress=False)
    assert not (tmp_path / "run").exists()


OWN_DATA = ["bitmlp", "facts", "regression", "superposition", "xor"]


@pytest.mark.parametrize("name", OWN_DATA)
def test_data_for_a_model_that_makes_its_own_is_refused_and_not_passed_over(tmp_path, name):
    (tmp_path / "mine.csv").write_text("1,0,1\n")
    with pytest.raises(ArgumentError, match=f"{name} makes its own data(.|\n)*leave out --data"):
        zoo.train(name, tmp_path / "run", data=str(tmp_path / "mine.csv"), progress=False)
    assert not (tmp_path / "run").exists()


def test_data_to_judge_by_is_refused_as_data_to_learn_from_is(installed, tmp_path):
    zoo.train("line", tmp_path / "run", progress=False)
    (tmp_path / "mine.csv").write_text("1,0,1\n")

    def refused(data, words, **changes):
        installed[:] = [Point("line", dataclasses.replace(SPEC, evaluate=lambda loaded, path: {"seen": 1}, **changes))]
        with pytest.raises(ArgumentError, match=words):
            zoo.load(tmp_path / "run").evaluate(str(data))

    refused(tmp_path / "mine.csv", "line makes its own data", takes_data=False)
    refused(tmp_path / "nowhere.csv", "there is no '.*nowhere.csv'")
    assert zoo.load(tmp_path / "run").evaluate(str(tmp_path / "mine.csv")) == {"seen": 1}


def test_data_of_a_run_that_is_gone_is_to_be_put_back_and_not_looked_for_on_the_command_line(installed, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("1,0,1\n")
    zoo.train("line", tmp_path / "run", data=str(path), max_steps=2, progress=False)
    path.unlink()
    with pytest.raises(ArgumentError, match="there is no '.*mine.csv'(.|\n)*fix: +put it back: a run goes on"):
        zoo.resume(tmp_path / "run", max_steps=3, progress=False)
    with pytest.raises(ArgumentError, match="there is no '.*mine.csv'(.|\n)*fix: +put it back .* or give other data"):
        zoo.load(tmp_path / "run").evaluate()


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"\xff\xfe\x00", "cannot be read: it is not text"), (b"no numbers", "failed while reading '.*': ValueError")],
)
def test_data_that_cannot_be_read_is_said_with_its_path(installed, tmp_path, content, words):
    path = tmp_path / "data.txt"
    path.write_bytes(content)

    def from_file(config, path):
        with open(path, encoding="utf-8") as file:
            return zoo.Data([float(line) for line in file])

    installed[:] = [Point("line", dataclasses.replace(SPEC, data=from_file))]
    with pytest.raises(MinigradError, match=words) as caught:
        zoo.train("line", tmp_path / "run", data=str(path), progress=False)
    assert str(path) in str(caught.value) and not (tmp_path / "run").exists()
    with pytest.raises(ArgumentError, match="cannot be read: Is a directory|cannot be read: Permission denied"):
        zoo.train("line", tmp_path / "run", data=str(tmp_path), progress=False)


def test_a_spec_that_cannot_work_is_refused_at_once():
    with pytest.raises(MinigradError, match="cannot be a name"):
        dataclasses.replace(SPEC, name="a:b")
    with pytest.raises(MinigradError, match="extends minigrad.zoo.Config"):
        dataclasses.replace(SPEC, config=dict)
    with pytest.raises(MinigradError, match="preset 'wide' has a setting 'widht'(.|\n)*width"):
        dataclasses.replace(SPEC, presets={"wide": {"widht": 5}})
    with pytest.raises(MinigradError, match="a preset cannot be called 'default'"):
        dataclasses.replace(SPEC, presets={"default": {}})
    with pytest.raises(MinigradError, match="a verb cannot be called 'model'"):
        dataclasses.replace(SPEC, verbs={"model": fail})
    taken = dataclasses.make_dataclass("Taken", [("seed", int, zoo.option(1, "x"))], bases=(LineConfig,), frozen=True)
    with pytest.raises(MinigradError, match="a setting cannot be called 'seed'"):
        dataclasses.replace(SPEC, config=taken)
    with pytest.raises(ArgumentError, match="returned no Data"):
        data_of(dataclasses.replace(SPEC, data=lambda config, path: None), LineConfig(), None)
