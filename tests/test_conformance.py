"""The conformance suite passes a good model, and catches a model that breaks any one of its lines, by that line alone."""

import dataclasses
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, zoo
from minigrad.viz.drawing.scene import Scene, Text
from minigrad.zoo import conformance
from minigrad.zoo.conformance import CHECKS, Verdict, check
from minigrad.zoo.plugin_files import spec_at

THIRD_PARTY = Path(__file__).parent / "third_party"


@dataclasses.dataclass(frozen=True)
class LineConfig(zoo.Config):
    """A line."""

    width: int = zoo.option(3, "how many inputs")
    lr: float = zoo.option(0.1, "learning rate")


def arrays(config):
    x = np.random.default_rng(0).standard_normal((6, config.width)).astype("float32")
    return x, x.sum(1, keepdims=True)


def loss(model, batch):
    x, y = (mg.tensor(part) for part in batch)
    return {"loss": (nn.functional.mse_loss(model(x), y, reduction="sum"), len(x)), "rows": (len(x), 1)}


GOOD = zoo.ModelSpec(
    name="line",
    task="regression",
    summary="a line",
    config=LineConfig,
    data=lambda config, path: zoo.Data(mg.train.ArrayBatches(arrays(config), 2)),
    build=lambda config: nn.Linear(config.width, 1),
    loss=loss,
    example=arrays,
    predict=lambda loaded, inputs: [len(text) for text in inputs],
    example_inputs=["one", "two"],
)


def verdicts(spec, *names):
    """The verdicts on a spec by name, of all lines or of some."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conformance, "CHECKS", {name: CHECKS[name] for name in names or CHECKS})
        return {verdict.name: verdict for verdict in check(spec)}


def only_failure(**changes) -> Verdict:
    """The one line that a spec with these changes fails."""
    found = verdicts(dataclasses.replace(GOOD, **changes))
    (failure,) = (verdict for verdict in found.values() if verdict.ok is False)
    return failure


def test_a_good_model_passes_every_line_that_applies():
    found = verdicts(dataclasses.replace(GOOD))  # a copy, which is in no module that could be light to import
    inapplicable = {name for name, verdict in found.items() if verdict.ok is None}
    assert inapplicable == {"light to import", "cached decoding", "draws, samples, attends"}
    assert all(verdict.ok for name, verdict in found.items() if name not in inapplicable)
    assert all(verdict.detail and verdict.seconds >= 0 and "\n" not in verdict.detail for verdict in found.values())


def test_a_strangers_transformer_passes_all_lines_without_exception():
    found = verdicts(spec_at(THIRD_PARTY))
    assert {name: verdict.detail for name, verdict in found.items() if not verdict.ok} == {}


@pytest.mark.parametrize(
    "name",
    [
        "bert", "bitmlp", "digits", "facts", "gpt", "regression", "rnn", "seq2seq", "superposition", "translator",
        "word2vec", "xor",
    ],
)  # fmt: skip
def test_the_models_that_come_with_minigrad_fail_no_line(name):
    found = verdicts(zoo.find(name))
    assert {name: verdict.detail for name, verdict in found.items() if verdict.ok is False} == {}
    assert found["predicts"].ok and found["saves, loads, resumes"].ok and found["overfits one batch"].ok
    assert found["gradients"].ok or "estimates" in found["gradients"].detail


def test_checking_leaves_random_numbers_and_the_working_directory_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mg.manual_seed(5)
    expected = mg.randn(3).tolist()
    mg.manual_seed(5)
    verdicts(GOOD)
    assert mg.randn(3).tolist() == expected and not list(tmp_path.iterdir())


def config_with(name, kind, default):
    return dataclasses.make_dataclass("Odd", [(name, kind, default)], bases=(LineConfig,), frozen=True)


def test_a_setting_without_help_is_caught():
    failure = only_failure(config=config_with("mystery", int, 3))
    assert failure.name == "settings" and "'mystery' has no help" in failure.detail


@pytest.mark.parametrize(("kind", "default"), [(complex, 1j), (int, "three"), (str, 3)])
def test_a_setting_whose_default_cannot_be_given_as_text_is_caught(kind, default):
    spec = dataclasses.replace(GOOD, config=config_with("odd", kind, zoo.option(default, "a number")))
    found = verdicts(spec, "settings")["settings"]
    assert found.ok is False and "odd" in found.detail


def test_a_build_that_is_no_module_is_caught():
    assert "is no minigrad.nn.Module" in verdicts(dataclasses.replace(GOOD, build=lambda c: len))["builds"].detail


def test_weights_that_ignore_the_seed_are_caught():
    def build(config):
        model = nn.Linear(config.width, 1)
        model.weight.data[...] = np.random.default_rng().standard_normal((1, config.width))
        return model

    found = verdicts(dataclasses.replace(GOOD, build=build), "builds")
    assert found["builds"].ok is False and "weight differs" in found["builds"].detail


def test_a_preset_that_cannot_be_built_is_caught():
    failure = only_failure(presets={"none": {"width": -1}})
    assert failure.name == "builds" and "preset 'none'" in failure.detail


def test_a_large_preset_is_built_without_its_weights():
    def build(config):
        return nn.Sequential(nn.Linear(config.width, config.width), nn.Linear(config.width, 1))

    presets = {"large": {"width": 20_000}, "huge": {"width": 10_000_000}}  # 1.6 GB and 400 TB
    found = verdicts(dataclasses.replace(GOOD, build=build, presets=presets), "builds")["builds"]
    assert found.ok and "default 16, large 400,040,001, huge more than this machine's memory holds" in found.detail


def test_data_without_batches_is_caught():
    class Nothing(mg.train.ListBatches):
        def __iter__(self):
            return iter(())

    found = verdicts(dataclasses.replace(GOOD, data=lambda c, path: zoo.Data(Nothing([1]))))
    assert found["data"].ok is False and "no batches" in found["data"].detail


def test_data_whose_loss_is_not_finite_is_caught():
    def data(config, path):
        x, y = arrays(config)
        return zoo.Data([(x * np.inf, y)])

    found = verdicts(dataclasses.replace(GOOD, data=data), "data")
    assert found["data"].ok is False and "the loss is nan" in found["data"].detail


@mg.op
def wrong_double(xp, a):
    return 2 * a


wrong_double.vjp(a=lambda g: 2.1 * g)


def with_output(function):
    """A line whose result goes through a function."""

    class Changed(nn.Linear):
        def forward(self, x):
            return function(super().forward(x))

    return lambda config: Changed(config.width, 1)


def test_a_wrong_gradient_is_caught_and_names_the_parameter():
    failure = only_failure(build=with_output(wrong_double))
    assert failure.name == "gradients" and "wrong in weight" in failure.detail


def test_gradients_that_are_estimates_and_say_so_are_not_compared():
    spec = dataclasses.replace(GOOD, build=with_output(wrong_double), estimates_gradients="rounding is passed through")
    found = verdicts(spec, "gradients")["gradients"]
    assert found.ok is None and "rounding is passed through" in found.detail


def test_a_loss_that_is_cut_off_from_the_parameters_is_caught():
    def cut_off(model, batch):
        return {name: (getattr(s, "detach", lambda s=s: s)(), n) for name, (s, n) in loss(model, batch).items()}

    found = verdicts(dataclasses.replace(GOOD, loss=cut_off), "gradients", "overfits one batch")
    assert not any(verdict.ok for verdict in found.values())
    assert "depends on no parameter" in found["gradients"].detail


def test_a_model_that_does_not_look_at_its_input_is_caught():
    failure = only_failure(build=lambda config: Blind())
    assert failure.name == "overfits one batch" and "falls only from" in failure.detail


class Blind(nn.Module):
    def __init__(self):
        self.bias = nn.Parameter(np.zeros(1, "float32"))

    def forward(self, x):
        return self.bias + 0 * x[:, :1]


def test_random_numbers_that_a_checkpoint_does_not_hold_are_caught():
    own = np.random.default_rng(0)

    def noisy(model, batch):
        x, y = batch
        return loss(model, (x + own.standard_normal(x.shape).astype("float32") * model.training * 1e-3, y))

    found = verdicts(dataclasses.replace(GOOD, loss=noisy), "saves, loads, resumes")
    failure = found["saves, loads, resumes"]
    assert failure.ok is False and "model.bias differs" in failure.detail


def test_what_a_model_learns_outside_of_its_state_dict_is_caught():
    class Forgetful(nn.Linear):
        offset = 0.0

        def forward(self, x):
            if self.training:
                self.offset = self.offset + 0.5
            return super().forward(x) + (0.0 if self.training else self.offset)

    found = verdicts(dataclasses.replace(GOOD, build=lambda c: Forgetful(c.width, 1)), "saves, loads, resumes")
    failure = found["saves, loads, resumes"]
    assert failure.ok is False and "state_dict()" in failure.detail


def change_weights(loaded, inputs):
    loaded.model.weight.data[...] += 1
    return list(inputs)


@pytest.mark.parametrize(
    ("predict", "words"),
    [
        (lambda loaded, inputs: inputs[:1], "not answered by a list of as many"),
        (lambda loaded, inputs: [np.float32(1)] * 2, "not JSON"),
        (lambda loaded, inputs: [float("nan")] * 2, "not JSON"),
        (lambda loaded, inputs: list(np.random.default_rng().random(2)), "two answers"),
        (lambda loaded, inputs: 1 / 0, "PluginError.*ZeroDivisionError"),
        (change_weights, "changes weight"),
    ],
)
def test_predictions_that_cannot_be_used_are_caught(predict, words):
    failure = only_failure(predict=predict)
    assert failure.name == "predicts"
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(failure.detail)


def test_a_model_without_predict_or_without_example_inputs_is_told_so():
    assert "no predict" in verdicts(dataclasses.replace(GOOD, predict=None), "predicts")["predicts"].detail
    untried = verdicts(dataclasses.replace(GOOD, example_inputs=()), "predicts")["predicts"]
    assert untried.ok is None and "no example_inputs" in untried.detail


SEEN = "draws, samples, attends"


def picture(text):
    return Scene(10, 10, [Text(0, 5, text)])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"draw": lambda loaded: "a picture"}, "draw.* returned str, which is no minigrad.viz.Scene"),
        ({"draw": lambda loaded: 1 / 0}, "PluginError.*drawing.*ZeroDivisionError"),
        ({"draw": lambda loaded: picture(str(change_weights(loaded, [])))}, "draw.* changes weight"),
        ({"draw": lambda loaded: picture(str(np.random.default_rng().random()))}, "two different answers of its draw"),
        ({"samples": lambda loaded: ["a", "b"]}, r"samples.* returned \['a', 'b'\]"),
        ({"samples": lambda loaded: " "}, "no text to show"),
        ({"attend": lambda loaded, text: {"inputs": ()}}, "must say what the model takes"),
        ({"attend": lambda loaded, text: {"inputs": (mg.ones(1, 3),), "tokens": ["a"]}}, "called no attention"),
    ],
)
def test_what_cannot_be_seen_is_caught(changes, words):
    failure = verdicts(dataclasses.replace(GOOD, **changes), SEEN)[SEEN]
    assert failure.ok is False and re.search(words, failure.detail), failure.detail


def test_what_can_be_seen_is_told():
    spec = dataclasses.replace(GOOD, draw=lambda loaded: picture("x"), samples=lambda loaded: "one\ntwo")
    assert verdicts(spec, SEEN)[SEEN].detail == "draws 10 by 10 points; samples of 2 lines"
    nothing_yet = dataclasses.replace(GOOD, draw=lambda loaded: None)
    assert verdicts(nothing_yet, SEEN)[SEEN].detail == "draws nothing yet"
    stranger = spec_at(THIRD_PARTY)
    assert verdicts(stranger, SEEN)[SEEN].detail.endswith("; samples of 2 lines; 1 attention, 2 heads")
    untried = verdicts(dataclasses.replace(stranger, example_inputs=(), samples=None, draw=None), SEEN)[SEEN]
    assert untried.ok and "attend not tried" in untried.detail


def test_a_cache_that_forgets_is_caught():
    spec = spec_at(THIRD_PARTY)

    def build(config):
        model = spec.build(config)
        honest = type(model)

        class Forgetful(honest):
            def forward(self, x, cache=None):
                return honest.forward(self, x)

        model.__class__ = Forgetful
        return model

    found = verdicts(dataclasses.replace(spec, build=build), "cached decoding")
    assert found["cached decoding"].ok is False and "another result than at once" in found["cached decoding"].detail


def test_rows_that_depend_on_each_other_are_caught_unless_the_module_says_so():
    class Centred(nn.Linear):
        def forward(self, x):
            return super().forward(x) - 0.5 * x[:, :1].mean()

    failure = only_failure(build=lambda config: Centred(config.width, 1))
    assert failure.name == "rows are independent" and "couples_batch = True" in failure.detail
    Centred.couples_batch = True
    found = verdicts(dataclasses.replace(GOOD, build=lambda config: Centred(config.width, 1)))
    assert found["rows are independent"].ok is None


def plugin(folder, name, top):
    """A plugin on disk, like the third party's but for what it does first."""
    package = folder / name
    package.mkdir()
    text = (THIRD_PARTY / "strides" / "__init__.py").read_text(encoding="utf-8")
    (package / "__init__.py").write_text(text.replace("from dataclasses", top + "\nfrom dataclasses", 1))
    return spec_at(package)


def test_a_plugin_that_imports_something_heavy_is_caught(tmp_path, monkeypatch):
    (tmp_path / "matplotlib.py").write_text("")
    monkeypatch.setitem(sys.modules, "matplotlib", types.ModuleType("matplotlib"))  # here it must not stay imported
    monkeypatch.syspath_prepend(tmp_path)
    found = verdicts(plugin(tmp_path, "heavy_one", "import matplotlib"), "light to import")
    assert found["light to import"].ok is False and "imports matplotlib" in found["light to import"].detail


def test_a_plugin_that_is_slow_to_import_is_caught(tmp_path):
    found = verdicts(plugin(tmp_path, "slow_one", "import time\ntime.sleep(0.6)"), "light to import")
    assert found["light to import"].ok is False and "takes 0.6" in found["light to import"].detail
