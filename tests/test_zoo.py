"""The zoo's core: settings, registry, training, loading, resuming and using a model."""

import dataclasses

import numpy as np
import pytest
from support.small_zoo import SPEC, Point, arrays, data, installed, loss

import minigrad as mg
from minigrad import zoo
from minigrad.train import RunError
from minigrad.zoo import plugin_files
from minigrad.zoo.config import configure, parse_overrides

__all__ = ["installed"]  # a fixture


def test_text_becomes_values_of_the_fields_types():
    given = parse_overrides(["width=7", "sizes=4,5,6", "bias=no", "kind=odd", "lr=1e-3", "share=0.5", "steps=1_000"])
    config = configure(SPEC, None, given)
    assert (config.width, config.sizes, config.bias, config.kind) == (7, (4, 5, 6), False, "odd")
    assert (config.lr, config.share, config.steps) == (1e-3, 0.5, 1000)
    assert configure(SPEC, None, {"share": "none"}).share is None
    assert configure(SPEC, "wide").width == 5 and configure(SPEC, "wide", {"width": "6"}).width == 6


def test_models_are_listed_by_pattern_and_task(installed):
    assert [entry.name for entry in zoo.list()] == ["line"]
    assert zoo.list("l*", task="regression") and not zoo.list("x*") and not zoo.list(task="lm")


def test_a_plugin_that_is_not_asked_for_is_not_imported(installed):
    class Untouched(Point):
        def load(self):
            raise AssertionError("imported")

    installed.append(Untouched("other", None))
    assert zoo.create("line").weight.shape == (1, 3)


def test_a_package_that_is_found_twice_on_the_path_is_one(installed):
    installed.append(Point("line", SPEC))
    assert len(zoo.list()) == 1 and zoo.list()[0].error is None


def test_create_train_load_predict(installed, tmp_path):
    assert zoo.create("line:wide", bias=False).weight.shape == (1, 5)
    result = zoo.train("line", tmp_path / "run", seed=3, progress=False, lr=0.1)
    assert result.step == 12
    loaded = zoo.load(tmp_path / "run")
    assert loaded.config.lr == 0.1 and loaded.step <= 12 and loaded.predict("four") == [4]
    assert loaded.double(4) == 8 and loaded.verbs == ["evaluate", "predict", "double"]
    assert 0 < loaded.evaluate()["loss"] == pytest.approx(result.best)
    with pytest.raises(AttributeError, match="'dobule'.*double"):
        loaded.dobule()


def test_evaluation_leaves_metrics_out_of_the_loss_and_takes_a_list_of_batches(installed, tmp_path):
    def with_metric(model, batch):
        return {**loss(model, batch), "rows": (100.0 * len(batch[0]), len(batch[0]))}

    def lists(config, path):
        return zoo.Data([arrays(config)], [arrays(config)])

    installed[:] = [Point("line", dataclasses.replace(SPEC, loss=with_metric, data=lists))]
    result = zoo.train("line", tmp_path / "run", progress=False)
    found = zoo.load(tmp_path / "run").evaluate()
    assert found == {"loss": pytest.approx(result.best), "rows": 100} and result.best < 100


def test_the_same_seed_gives_the_same_weights_and_another_one_others(installed, tmp_path):
    weights = []
    for number, seed in enumerate((1, 1, 2)):
        zoo.train("line", tmp_path / str(number), seed=seed, progress=False)
        weights.append(zoo.load(tmp_path / str(number), "latest").model.weight.numpy())
    np.testing.assert_array_equal(weights[0], weights[1])
    assert not np.array_equal(weights[0], weights[2])


def test_a_run_that_was_stopped_and_resumed_equals_one_that_was_not(installed, tmp_path):
    zoo.train("line", tmp_path / "whole", progress=False)
    zoo.train("line", tmp_path / "parts", max_steps=5, progress=False)
    assert zoo.resume(tmp_path / "parts", max_steps=12, progress=False).step == 12
    whole, parts = (zoo.load(tmp_path / name, "latest").model.weight.numpy() for name in ("whole", "parts"))
    np.testing.assert_array_equal(whole, parts)


def test_several_paths_of_data_are_found_again_from_another_directory(installed, tmp_path, monkeypatch):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    seen = []
    installed[:] = [Point("line", dataclasses.replace(SPEC, data=lambda c, path: seen.append(path) or data(c, path)))]
    zoo.train("line", "run", data="a.txt,b.txt", max_steps=2, progress=False)
    monkeypatch.chdir("/")
    zoo.resume(tmp_path / "run", max_steps=3, progress=False)
    assert seen == ["a.txt,b.txt", f"{tmp_path / 'a.txt'},{tmp_path / 'b.txt'}"]


def test_the_newest_run_of_a_task_is_found(installed, tmp_path):
    for name in ("a", "b"):
        zoo.train("line", tmp_path / name, progress=False, max_steps=1)
    assert zoo.newest_run("regression", tmp_path).name == "b"
    with pytest.raises(RunError, match="no run of a model for translation"):
        zoo.newest_run("translation", tmp_path)


def test_a_plugin_is_found_by_its_path(tmp_path):
    package = tmp_path / "plugin_by_path"
    package.mkdir()
    (package / "__init__.py").write_text("from minigrad.zoo import *\nspec = 3\n")
    with pytest.raises(zoo.PluginError, match="is no plugin"):
        plugin_files.spec_at(tmp_path)
    (package / "__init__.py").write_text("1 / 0\n")
    with pytest.raises(zoo.PluginError, match="ZeroDivisionError"):
        plugin_files.spec_at(package)
    json_package = tmp_path / "json"
    json_package.mkdir()
    (json_package / "__init__.py").write_text("")
    with pytest.raises(zoo.PluginError, match="there is another module 'json'"):
        plugin_files.spec_at(json_package)
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(zoo.PluginError, match="ends in .py"):
        plugin_files.spec_at(tmp_path / "notes.txt")


def test_training_on_a_device_is_the_training_on_the_cpu(installed, tmp_path, device):
    zoo.train("line", tmp_path / "run", device=device, progress=False)
    zoo.train("line", tmp_path / "cpu", progress=False)
    there, here = (zoo.load(tmp_path / name, "latest").model.weight.numpy() for name in ("run", "cpu"))
    np.testing.assert_allclose(there, here, rtol=1e-6)


def test_a_finished_run_says_so_and_is_never_made_shorter(installed, tmp_path, capsys):
    zoo.train("line", tmp_path / "run", progress=False)
    assert zoo.resume(tmp_path / "run").step == 12
    assert "it is at its last step, 12, already: --max-steps N goes on" in capsys.readouterr().out
    with pytest.raises(mg.MinigradError, match="already further than that"):
        zoo.resume(tmp_path / "run", max_steps=5)
    assert repr(zoo.load(tmp_path / "run")).startswith("<line of ") and "function" not in repr(zoo.list())
    assert {"create", "train", "load", "list"} <= set(dir(zoo)) and "TYPE_CHECKING" not in dir(zoo)


def test_a_setting_that_was_renamed_is_read_from_an_old_run(installed, tmp_path):
    zoo.train("line", tmp_path / "run", progress=False, width=2)

    @dataclasses.dataclass(frozen=True)
    class Renamed(zoo.Config):
        inputs: int = zoo.option(3, "how many inputs", formerly="width")
        sizes: tuple[int, ...] = zoo.option((2, 2), "sizes")
        bias: bool = zoo.option(True, "whether there is an offset")
        kind: str = zoo.option("plain", "which")
        share: float | None = zoo.option(None, "a share")

    build = lambda config: mg.nn.Linear(config.inputs, 1, bias=config.bias)  # noqa: E731
    installed[:] = [Point("line", dataclasses.replace(SPEC, config=Renamed, build=build, presets={}, tiny={}))]
    loaded = zoo.load(tmp_path / "run")
    assert loaded.config.inputs == 2 and loaded.model.weight.shape == (1, 2)
    with pytest.raises(mg.MinigradError, match="no setting 'widht'"):
        zoo.create("line", widht=2)
