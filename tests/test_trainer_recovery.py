"""The Trainer when things go wrong: it goes on where it was, or stops and says why, and what was saved stays good."""

import math
import os
import random

import numpy as np
import pytest
from support import killable_training as training
from support.crashes import outcome
from support.folders import in_memory
from support.small_training import classify, line, rows_of, small

import minigrad as mg
from minigrad import nn, optim
from minigrad.errors import CheckpointError, NonFiniteError
from minigrad.train import (
    ArrayBatches,
    Checkpoint,
    RunError,
    Trainer,
    find_checkpoint,
    read_checkpoint,
    write_checkpoint,
)
from minigrad.train import snapshot as snapshot_module

MIXTURE = ("adamw", "cosine", "sequences")


@pytest.fixture
def folder():
    with in_memory() as place:
        yield place / "run"


def test_training_goes_on_when_called_again(folder):
    whole = small(out=folder / "whole", max_steps=9, log_every=1)
    whole.train()
    parts = small(out=folder / "parts", max_steps=9, log_every=1)
    parts.on("step", lambda t, info: t.stop() if info["step"] == 4 else None)
    assert parts.train().step == 4
    parts._handlers["step"].clear()
    assert parts.train().step == 9
    assert (folder / "whole" / "metrics.csv").read_bytes() == (folder / "parts" / "metrics.csv").read_bytes()


def test_interrupted_at_every_step_and_resumed_it_is_the_same_run(folder):
    """What the killed processes of test_resume.py show at random moments, shown at every step."""
    mixture = ("mixed", "plateau", "pairs")
    training.trainer(folder / "whole", *mixture, keep=1).train()
    whole = outcome(folder / "whole")
    while True:
        trainer = training.trainer(folder / "parts", *mixture, keep=1)
        trainer.on("step", lambda t, info: t.stop())
        if trainer.step == training.STEPS:
            trainer._close()
            break
        trainer.train()
    assert outcome(folder / "parts") == whole


def test_a_run_on_a_device_resumes_bit_for_bit(folder, device):
    rng = np.random.default_rng(0)
    data = (rng.normal(size=(20, 4)).astype("float32"), np.arange(20) % 3)

    def trainer(out):
        mg.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Linear(8, 3)).to(device=device)
        optimizer = optim.AdamW(model.parameters(), lr=0.01)
        return Trainer.resume(
            model, classify, ArrayBatches(data, 6), optimizer, out=out, seed=0, max_steps=9, log_every=1, progress=False
        )

    whole, first = trainer(folder / "whole"), trainer(folder / "parts")
    whole.train()
    first.on("step", lambda t, info: t.stop() if info["step"] == 5 else None)
    first.train()
    second = trainer(folder / "parts")
    second.train()
    assert next(second.model.parameters()).device == device
    for name, value in whole.model.state_dict().items():
        np.testing.assert_array_equal(second.model.state_dict()[name].numpy(), value.numpy())
    assert (folder / "whole" / "metrics.csv").read_bytes() == (folder / "parts" / "metrics.csv").read_bytes()


FORGETFUL = {
    "optimizer": lambda t, c: t.optimizer.load_state_dict(
        type(t.optimizer)(t.optimizer.param_groups[0]["params"]).state_dict()
    ),
    "schedule": lambda t, c: t.schedule.load_state_dict({**t.schedule.state_dict(), "steps": 0}),
    "data": lambda t, c: t.data.load_state_dict({**t.data.state_dict(), "index": 0, "epoch": 0}),
    "random": lambda t, c: mg.manual_seed(0),
    "python's random": lambda t, c: random.seed(0),
    "numpy's random": lambda t, c: np.random.seed(0),  # noqa: NPY002
    "window": lambda t, c: t.window.values.clear(),
    "weights": lambda t, c: t.model.load_state_dict(training.Model().state_dict()),
}


@pytest.mark.parametrize("forgotten", FORGETFUL)
def test_a_resume_that_forgot_something_would_be_noticed(folder, forgotten):
    outcomes = []
    for forget in (False, True):
        place = folder / str(forget)
        trainer = training.trainer(place, *MIXTURE)
        trainer.on("step", lambda t, info: t.stop() if info["step"] == 17 else None)
        trainer.train()
        again = training.trainer(place, *MIXTURE)
        if forget:
            FORGETFUL[forgotten](again, None)
        again.train()
        outcomes.append(outcome(place)["metrics"])
    assert outcomes[0] != outcomes[1]


def test_other_versions_are_said_once_and_do_not_stop(folder, monkeypatch, capsys):
    trainer = training.trainer(folder, *MIXTURE, max_steps=4)
    trainer.train()
    monkeypatch.setattr(snapshot_module, "_thread_count", lambda: 77)
    again = training.trainer(folder, *MIXTURE, max_steps=8, progress=True)
    again.train()
    said = capsys.readouterr().out
    assert said.count("threads was") == 1 and "is 77" in said and again.step == 8


@pytest.mark.parametrize(
    "spoil",
    [
        lambda tensors, state: state.update(step=-1),
        lambda tensors, state: state.update(step="7"),
        lambda tensors, state: state.pop("data"),
        lambda tensors, state: state.update(data=[1]),
        lambda tensors, state: state.update(optimizer={"kind": "AdamW", "groups": [{}], "steps": {}}),
        lambda tensors, state: state.update(schedule={"kind": "Cosine", "steps": -5}),
        lambda tensors, state: state["random"].update(minigrad={"cpu": {"bit_generator": "MT19937"}}),
        lambda tensors, state: state["random"].update(python=[1, "x"]),
        lambda tensors, state: state.update(window={"a": [1]}),
        lambda tensors, state: state.update(best=[]),
        lambda tensors, state: tensors.update({"model.length.bias": np.ones(5)}),
        lambda tensors, state: tensors.pop("model.length.bias"),
        lambda tensors, state: tensors.update({"random.python": np.ones((3, 3))}),
        lambda tensors, state: tensors.update({"random.numpy": np.ones(2)}),
        lambda tensors, state: tensors.update(tokenizer=np.ones(2, np.uint8)),
    ],
)
def test_a_checkpoint_with_impossible_content_is_refused(folder, spoil):
    trainer = training.trainer(folder, *MIXTURE, max_steps=4)
    trainer.train()
    path = find_checkpoint(folder)
    found = read_checkpoint(path)
    spoil(found.tensors, found.state)
    write_checkpoint(path, found.tensors, found.state)
    with pytest.raises(CheckpointError, match="does not fit this run"):
        training.trainer(folder, *MIXTURE)


def test_the_tokenizer_is_in_the_checkpoint(folder):
    trainer = training.trainer(folder, *MIXTURE, max_steps=1)
    trainer.train()
    text = read_checkpoint(find_checkpoint(folder)).tensors["tokenizer"].tobytes().decode()
    assert type(trainer.tokenizer).from_json(text) == trainer.tokenizer
    assert read_checkpoint(find_checkpoint(folder)).tokenizer == trainer.tokenizer
    assert Checkpoint({}, {}).tokenizer is None
    with pytest.raises(CheckpointError, match="not text"):
        _ = Checkpoint({"tokenizer": np.array([255], "uint8")}, {}).tokenizer


def bad_at(number, kind):
    """A loss that goes wrong at one step."""
    calls = []

    def loss(model, batch):
        if not mg.is_grad_enabled():
            return line(model, batch)
        calls.append(1)
        out = model(mg.tensor(batch))
        if len(calls) >= number:
            return {"loss": ((out * 0).log().sum() if kind == "forward" else ((out * 0) ** 2 + 0.0).sqrt().sum(), 4)}
        return line(model, batch)

    return loss


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize(("kind", "op"), [("forward", "log"), ("backward", "sqrt")])
def test_a_step_that_is_not_finite_stops_and_names_the_op_and_keeps_the_good_checkpoint(folder, kind, op):
    trainer = small(out=folder, loss=bad_at(4, kind), save_every=1)
    before = []
    trainer.on("step", lambda t, info: before.append(t.model.weight.numpy().copy()))
    with pytest.raises(NonFiniteError, match=f"step 4(.|\n)*{op}"):
        trainer.train()
    np.testing.assert_array_equal(trainer.model.weight.numpy(), before[-1])
    assert read_checkpoint(find_checkpoint(folder)).state["step"] == 3


def test_mixed_precision_skips_and_recovers_inside_a_trainer():
    mg.manual_seed(0)
    model = nn.Linear(3, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.05)
    scaler = optim.MixedPrecision(model, optimizer, optim.LossScaler(init=2.0**24))
    rows = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")
    trainer = Trainer(model, line, [rows], optimizer, scaler=scaler, max_steps=40, progress=False)
    taken, losses = [], []
    trainer.on("step", lambda t, info: (taken.append(info["taken"]), losses.append(info["loss"])))
    trainer.train()
    assert not taken[0] and taken[-1] and losses[-1] < losses[0] / 2


@pytest.mark.parametrize(("of", "step"), [(-1.0, 1), (0.0, 41)])
def test_mixed_precision_stops_at_a_loss_that_no_scale_makes_finite(of, step):
    """log(-1) is NaN with a gradient that looks good; that of log(0) might have overflowed, until the scale is smallest."""
    model = nn.Linear(3, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.05)

    def loss(model, batch):
        return {"loss": ((model(mg.tensor(batch)) * 0 + of).log().sum(), 4)}

    scaler = optim.MixedPrecision(model, optimizer)
    trainer = Trainer(
        model, loss, [np.ones((4, 3), "float32")], optimizer, scaler=scaler, max_steps=100, progress=False
    )
    with pytest.raises(NonFiniteError, match=f"step {step}:(.|\n)*log"):
        trainer.train()


def test_weights_that_are_not_finite_are_never_saved(folder):
    trainer = small(out=folder, save_every=1, max_steps=4)

    def spoil(t, info):
        if info["step"] == 3:
            with mg.no_grad():
                t.model.weight[0, 0] = math.inf

    trainer.on("step", spoil)
    with pytest.raises(NonFiniteError, match="model.weight is not finite"):
        trainer.train()
    assert read_checkpoint(find_checkpoint(folder)).state["step"] == 2


def test_a_disk_that_is_full_for_a_while_costs_nothing(folder, monkeypatch, capsys):
    trainer = small(out=folder, save_every=1, log_every=1, max_steps=6, progress=True)
    real = os.replace

    def full(source, target):
        raise OSError(28, "No space left on device")

    def handler(t, info):
        monkeypatch.setattr(os, "replace", full if info["step"] in (3, 4) else real)

    trainer.on("step", handler)
    trainer.train()
    said = capsys.readouterr().out
    assert "No space left" in said and "checkpoint of step 2 is intact" in said
    assert read_checkpoint(find_checkpoint(folder)).state["step"] == 6
    assert [row["step"] for row in rows_of(folder)] == list("123456")


def test_a_last_save_that_fails_is_an_error(folder, monkeypatch):
    trainer = small(out=folder, max_steps=2)

    def full(source, target):
        raise OSError(28, "No space left on device")

    trainer.on("step", lambda t, info: monkeypatch.setattr(os, "replace", full))
    with pytest.raises(CheckpointError, match="No space left"):
        trainer.train()
    monkeypatch.undo()
    assert read_checkpoint(find_checkpoint(folder)).state["step"] == 0


def three_terms(model, batch):
    """Terms whose order is not that of their names, since a sum of three floating numbers depends on its order."""
    out = model(mg.tensor(batch))
    return {
        "c": ((out**2).sum(), 4),
        "a": (((out - 0.1) ** 2).sum() * 1e3, 3),
        "b": (((out - 0.3) ** 2).sum() * 7e-3, 7),
    }


@pytest.mark.parametrize("stop", range(1, 12))
def test_a_run_stopped_between_two_rows_of_the_metrics_repeats_the_order_of_its_terms(folder, stop):
    options = {"loss": three_terms, "log_every": 4, "max_steps": 12, "lr": 1e-5}
    small(out=folder / "whole", **options).train()
    first = small(out=folder / "parts", **options)
    first.on("step", lambda t, info: t.stop() if info["step"] == stop else None)
    first.train()
    small(out=folder / "parts", resume=True, **options).train()
    assert (folder / "parts" / "metrics.csv").read_text() == (folder / "whole" / "metrics.csv").read_text()


def test_a_config_with_tuples_is_known_again(folder, capsys):
    small(out=folder, config={"sizes": (1, 2)}).train()
    small(out=folder, config={"sizes": (1, 2)}, resume=True, max_steps=6, progress=True).train()
    assert "config" not in capsys.readouterr().out
    small(out=folder, config={"sizes": (1, 3)}, resume=True, max_steps=7, progress=True).train()
    assert "the config is not the one" in capsys.readouterr().out


@pytest.mark.parametrize("tokenizers", [(True, False), (False, True)])
def test_a_tokenizer_is_neither_lost_nor_found_on_the_way(folder, tokenizers):
    first, second = (training.CharTokenizer("abc") if given else None for given in tokenizers)
    small(out=folder, tokenizer=first).train()
    with pytest.raises(CheckpointError, match="one of the two has none"):
        small(out=folder, tokenizer=second, resume=True)


class Masked(nn.Module):
    """A straight line with a mask beside it that is infinite from the beginning."""

    def __init__(self):
        self.line = nn.Linear(3, 1)
        self.register_buffer("mask", mg.tensor([0.0, -math.inf]))
        self.register_buffer("seen", mg.tensor([0.0]))

    def forward(self, x):
        return self.line(x)


def test_what_was_infinite_from_the_beginning_may_be_saved_and_what_becomes_so_may_not(folder):
    small(out=folder, model=Masked()).train()
    trainer = small(out=folder, model=Masked(), resume=True, max_steps=7)
    assert trainer.train().step == 7
    again = small(out=folder, model=Masked(), resume=True, max_steps=9)
    with mg.no_grad():
        again.model.seen[0] = math.nan
    with pytest.raises(NonFiniteError, match="model.seen is not finite(.|\n)*the checkpoint of step 7 is good"):
        again.train()
    with pytest.raises(NonFiniteError, match="model.seen is not finite"):
        again.train()


def test_samples_that_cannot_be_written_do_not_stop_training(folder, capsys):
    folder.mkdir()
    (folder / "samples").write_text("in the way")
    result = small(out=folder, valid=lambda m: {"loss": 1.0}, samples=lambda m: "hello", progress=True).train()
    said = capsys.readouterr().out
    assert result.step == 5 and "hello" in said and "goes on without these samples" in said


def test_samples_that_are_not_valid_unicode_are_written_all_the_same(folder):
    small(out=folder, valid=lambda m: {"loss": 1.0}, samples=lambda m: "ol\ud800é").train()
    assert (folder / "samples" / "step-00000005.txt").read_text(encoding="utf-8") == "ol\\ud800é\n"


def test_metrics_that_somebody_deletes_are_begun_again(folder):
    trainer = small(out=folder, save_every=1, log_every=2, max_steps=6)
    trainer.on("step", lambda t, info: (folder / "metrics.csv").unlink() if info["step"] == 3 else None)
    assert trainer.train().step == 6
    assert [row["step"] for row in rows_of(folder)] == ["4", "6"]


def test_a_directory_that_training_could_not_begin_in_is_let_go(folder):
    (folder / "config.json").mkdir(parents=True)
    trainer = small(out=folder)
    with pytest.raises(RunError, match="config.json' cannot be written"):
        trainer.train()
    (folder / "config.json").rmdir()
    assert small(out=folder).train().step == 5


@pytest.mark.parametrize("event", ["step", "valid", "save", "stop"])
def test_a_handler_that_fails_lets_go_of_the_run_which_goes_on_as_if_nothing_had_been(folder, event):
    options = {"valid": lambda m: {"loss": 1.0}, "valid_every": 2, "save_every": 3, "log_every": 1, "max_steps": 7}
    small(out=folder / "whole", **options).train()
    trainer = small(out=folder / "parts", **options)

    def fail(t, info):
        if t.step > 3:
            raise ZeroDivisionError

    trainer.on(event, fail)
    with pytest.raises(ZeroDivisionError):
        trainer.train()
    small(out=folder / "parts", resume=True, **options).train()
    one, two = outcome_without_samples(folder / "whole"), outcome_without_samples(folder / "parts")
    assert one == two


def outcome_without_samples(folder):
    (folder / "samples").mkdir(exist_ok=True)
    return outcome(folder)
