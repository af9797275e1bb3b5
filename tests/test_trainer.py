"""The Trainer: it trains, is exact on ragged batches, stops when it should, and tells what it does."""

import csv
import io
import math
import os
import random

import numpy as np
import pytest
import train_to_be_killed as training
from killing import outcome
from places import in_memory

import minigrad as mg
from minigrad import nn, optim
from minigrad.engine.errors import ArgumentError, CallError, CheckpointError, GradientError, NonFiniteError
from minigrad.nn import functional as F
from minigrad.train import (
    ArrayBatches,
    ListBatches,
    Progress,
    RunError,
    Trainer,
    find_checkpoint,
    read_checkpoint,
    write_checkpoint,
)
from minigrad.train import state as state_module

MIXTURE = ("adamw", "cosine", "sequences")


@pytest.fixture
def folder():
    with in_memory() as place:
        yield place / "run"


def classify(model, batch):
    x, y = (mg.tensor(part, device=next(model.parameters()).device) for part in batch)
    return {"loss": (F.cross_entropy(model(x), y, reduction="sum"), len(batch[1]))}


def accuracy(model, x, y):
    logits = model(mg.tensor(x, device=next(model.parameters()).device))
    return float((logits.numpy().argmax(axis=-1) == y).mean())


def line(model, batch):
    """A straight line through ragged batches: rows of x, and their sum as what is to be found."""
    return {"loss": (((model(mg.tensor(batch)) - mg.tensor(batch.sum(axis=1, keepdims=True))) ** 2).sum(), len(batch))}


def small(data=None, loss=line, lr=0.05, **options):
    """A trainer of a straight line."""
    mg.manual_seed(0)
    model = nn.Linear(3, 1)
    rows = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")
    sampler = ListBatches([rows[:4], rows[4:]], shuffle=False) if data is None else data
    optimizer = options.pop("optimizer", optim.SGD)(model.parameters(), lr=lr)
    return Trainer(model, loss, sampler, optimizer, **{"max_steps": 5, "progress": False, **options})


def rows_of(folder):
    return list(csv.DictReader(io.StringIO((folder / "metrics.csv").read_text())))


def test_xor_is_learned(device):
    mg.manual_seed(0)
    x, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], "float32"), np.array([0, 1, 1, 0])
    model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2)).to(device=device)
    Trainer(model, classify, [(x, y)], optim.Adam(model.parameters(), lr=0.1), max_steps=100, progress=False).train()
    assert accuracy(model, x, y) == 1.0


def test_ten_classes_are_learned(device):
    rng = np.random.default_rng(0)
    centres, y = rng.normal(size=(10, 8)) * 3, np.arange(200) % 10
    x = (centres[y] + rng.normal(size=(200, 8)) * 0.3).astype("float32")
    mg.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 10)).to(device=device)
    optimizer = optim.AdamW(model.parameters(), lr=0.02)
    Trainer(
        model,
        classify,
        ArrayBatches((x, y), 32),
        optimizer,
        schedule=optim.Cosine(optimizer, 80),
        max_steps=80,
        progress=False,
    ).train()
    model.eval()
    assert accuracy(model, x, y) == 1.0


def test_a_transformer_learns_to_copy():
    words, length, width = 8, 4, 16
    mg.manual_seed(0)

    class Copier(nn.Module):
        def __init__(self):
            self.words = nn.Embedding(words, width)
            self.positions = nn.LearnedPositions(2 * length, width)
            self.decoder = nn.Encoder(1, width, 2, activation="relu", causal=True)
            self.head = nn.Linear(width, words)

        def forward(self, ids):
            return self.head(self.decoder(self.positions(self.words(ids))))

    rng = np.random.default_rng(0)

    def batch(n):
        first = rng.integers(1, words, (n, length))
        return np.concatenate([first, np.zeros((n, 1), int), first], axis=1)  # (n, 2 length + 1)

    def loss(model, ids):
        logits = model(mg.tensor(ids[:, :-1]))[:, length:]
        targets = ids[:, length + 1 :]
        return {
            "loss": (
                F.cross_entropy(logits.reshape(-1, words), mg.tensor(targets.ravel()), reduction="sum"),
                targets.size,
            )
        }

    model = Copier()
    optimizer = optim.AdamW(model.parameters(), lr=1e-2)
    data = [batch(16) for _ in range(300)]
    Trainer(
        model,
        loss,
        data,
        optimizer,
        schedule=optim.Cosine(optimizer, 300, 20),
        max_steps=300,
        clip_norm=1.0,
        progress=False,
    ).train()
    unseen = batch(100)
    with mg.no_grad():
        guessed = model(mg.tensor(unseen[:, :-1])).numpy()[:, length:].argmax(-1)
    assert (guessed == unseen[:, length + 1 :]).mean() == 1.0


@pytest.mark.parametrize("knows_units", [False, True])
def test_accumulation_over_ragged_batches_is_one_large_batch(knows_units):
    rows = np.random.default_rng(1).normal(size=(12, 3))
    mg.set_default_dtype("float64")
    try:
        results = []
        for cuts, accumulate in (([12], 1), ([1, 8, 3], 3)):
            parts = np.split(rows, np.cumsum(cuts)[:-1])

            class Loss:
                def __call__(self, model, batch):
                    return line(model, batch)

                if knows_units:

                    def units(self, batch):
                        return {"loss": len(batch)}

            trainer = small(ListBatches(parts, shuffle=False), Loss(), accumulate=accumulate, max_steps=7)
            trainer.train()
            results.append(trainer.model.weight.numpy().copy())
        np.testing.assert_allclose(*results, rtol=1e-12)
    finally:
        mg.set_default_dtype("float32")


class TwoTerms:
    """The second term has units of its own, which some batches have none of."""

    def units(self, batch):
        return {"rows": len(batch), "positive": int((batch[:, 0] > 0).sum())}

    def __call__(self, model, batch):
        units, out = self.units(batch), model(mg.tensor(batch))
        chosen = mg.tensor((batch[:, :1] > 0).astype(batch.dtype))
        return {
            "rows": ((out**2).sum(), units["rows"]),
            "positive": (((out - 1) ** 2 * chosen).sum(), units["positive"]),
        }


def test_two_terms_are_accumulated_each_with_its_own_units():
    rows = np.random.default_rng(1).normal(size=(12, 3))
    rows[:4, 0] = -1
    mg.set_default_dtype("float64")
    try:
        results = []
        for cuts, accumulate in (([12], 1), ([4, 6, 2], 3)):
            trainer = small(
                ListBatches(np.split(rows, np.cumsum(cuts)[:-1]), shuffle=False), TwoTerms(), accumulate=accumulate
            )
            trainer.train()
            results.append(trainer.model.weight.numpy().copy())
        np.testing.assert_allclose(*results, rtol=1e-12)
    finally:
        mg.set_default_dtype("float32")


def test_several_terms_without_units_cannot_be_accumulated():
    with pytest.raises(CallError, match="units\\(batch\\)"):
        small(loss=lambda model, batch: TwoTerms()(model, batch), accumulate=2).train()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda m, b: m(mg.tensor(b)).sum(),
        lambda m, b: {},
        lambda m, b: {"loss": m(mg.tensor(b)).sum()},
        lambda m, b: {"loss": (m(mg.tensor(b)), 4)},
        lambda m, b: {"loss": (m(mg.tensor(b)).sum(), 0.5)},
        lambda m, b: {"loss": (m(mg.tensor(b)).sum(), -1)},
    ],
)
def test_a_loss_that_gives_something_else_is_told_what_to_give(wrong):
    with pytest.raises(CallError, match="expected"):
        small(loss=wrong).train()


def test_a_loss_without_parameters_is_refused():
    with pytest.raises(GradientError, match="does not depend"):
        small(loss=lambda m, b: {"loss": (mg.tensor(1.0), 1)}).train()


def test_every_step_is_in_the_metrics_exactly(folder):
    trainer = small(out=folder, log_every=1, max_steps=3)
    seen = []
    trainer.on("step", lambda _, info: seen.append(info))
    trainer.train()
    assert [int(row["step"]) for row in rows_of(folder)] == [1, 2, 3]
    for row, info in zip(rows_of(folder), seen):
        assert {name: float(row[name]) for name in ("loss", "lr", "grad_norm")} == {
            n: info[n] for n in ("loss", "lr", "grad_norm")
        }


def test_a_logged_loss_is_the_mean_over_all_units_since_the_last(folder):
    rows = np.random.default_rng(1).normal(size=(9, 3)).astype("float32")
    trainer = small(ListBatches([rows[:2], rows[2:]], shuffle=False), out=folder, log_every=2, max_steps=2, lr=0.0)
    trainer.train()
    expected = (
        (rows @ trainer.model.weight.numpy().T + trainer.model.bias.numpy() - rows.sum(axis=1, keepdims=True)) ** 2
    ).mean()
    assert float(rows_of(folder)[0]["loss"]) == pytest.approx(float(expected), rel=1e-5)


def test_validation_neither_learns_nor_disturbs(folder):
    results = []
    for valid_every in (5, 40):
        trainer = training.trainer(folder / str(valid_every), *MIXTURE, valid_every=valid_every)
        trainer.train()
        results.append(read_checkpoint(find_checkpoint(trainer.out)).tensors)
    assert [name for name in results[0] if not np.array_equal(results[0][name], results[1][name])] == []


def test_a_part_in_evaluation_mode_stays_so_through_validation(folder):
    trainer = training.trainer(folder, *MIXTURE)
    trainer.model.norm.eval()
    trainer.train()
    assert not trainer.model.norm.training and trainer.model.dropout.training


def test_patience_stops_and_best_is_kept(folder):
    values = iter([3.0, 2.0, 2.5, 2.0, 9.0])
    trainer = small(out=folder, valid=lambda model: {"loss": next(values)}, valid_every=2, patience=2, max_steps=None)
    result = trainer.train()
    assert (result.reason, result.step, result.best, result.best_step) == ("patience", 8, 2.0, 4)
    assert read_checkpoint(find_checkpoint(folder, "best")).state["step"] == 4
    assert [row["valid_loss"] for row in rows_of(folder)] == ["3.0", "2.0", "2.5", "2.0"]


def test_another_metric_may_be_the_best_and_larger_may_be_better():
    values = iter([{"loss": 1.0, "bleu": 5.0}, {"loss": 0.5, "bleu": 9.0}, {"loss": 0.1, "bleu": math.nan}])
    result = small(valid=lambda m: next(values), valid_every=1, metric="bleu", maximize=True, max_steps=3).train()
    assert (result.best, result.best_step) == (9.0, 2)
    with pytest.raises(ArgumentError, match="no 'blue'(.|\n)*bleu"):
        small(valid=lambda m: {"bleu": 1.0}, valid_every=1, metric="blue").train()


def test_the_plateau_schedule_hears_of_every_validation():
    mg.manual_seed(0)
    model = nn.Linear(3, 1)
    optimizer = optim.SGD(model.parameters(), lr=1.0)
    schedule = optim.Plateau(optimizer, patience=0, factor=0.5)
    rows = np.zeros((2, 3), "float32")
    Trainer(
        model,
        line,
        [rows],
        optimizer,
        schedule=schedule,
        valid=lambda m: {"loss": 1.0},
        valid_every=2,
        max_steps=6,
        progress=False,
    ).train()
    assert optimizer.param_groups[0]["lr"] == 0.25


def test_time_is_a_limit_for_the_whole_run(folder):
    trainer = small(out=folder, max_steps=None, max_minutes=0.2 / 60)
    assert trainer.train().reason == "max_minutes" and 0.2 <= trainer.seconds < 20
    mg.manual_seed(0)
    model = nn.Linear(3, 1)
    rows = [np.zeros((4, 3), "float32"), np.zeros((4, 3), "float32")]
    optimizer = optim.SGD(model.parameters(), lr=0.05)
    again = Trainer.resume(
        model, line, ListBatches(rows, shuffle=False), optimizer, out=folder, max_minutes=0.2 / 60, progress=False
    )
    assert again.train().step == trainer.step


def test_a_handler_may_stop_training():
    trainer = small(max_steps=100)
    trainer.on("step", lambda t, info: t.stop("enough") if info["step"] == 3 else None)
    stopped = []
    trainer.on("stop", lambda t, info: stopped.append(info["reason"]))
    assert trainer.train().step == 3 and stopped == ["enough"]
    with pytest.raises(ArgumentError, match="did you mean 'step'"):
        trainer.on("stepp", print)


def test_training_goes_on_when_called_again(folder):
    whole = small(out=folder / "whole", max_steps=9, log_every=1)
    whole.train()
    parts = small(out=folder / "parts", max_steps=9, log_every=1)
    parts.on("step", lambda t, info: t.stop() if info["step"] == 4 else None)
    assert parts.train().step == 4
    parts._handlers["step"].clear()
    assert parts.train().step == 9
    assert (folder / "whole" / "metrics.csv").read_bytes() == (folder / "parts" / "metrics.csv").read_bytes()


def test_a_directory_that_holds_a_run_is_not_overwritten(folder):
    small(out=folder).train()
    with pytest.raises(RunError, match="already holds a run(.|\n)*resume"):
        small(out=folder)


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
            model, classify, ArrayBatches(data, 6), optimizer, out=out, max_steps=9, log_every=1, progress=False
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
    monkeypatch.setattr(state_module, "_thread_count", lambda: 77)
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


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"max_steps": None}, "when is it enough"),
        ({"accumulate": 0}, "accumulate"),
        ({"keep": 0}, "keep"),
        ({"log_every": 2.5}, "log_every"),
        ({"patience": 2}, "patience needs validation"),
        ({"valid": [1], "patience": 2}, "how often"),
        ({"samples": print}, "samples needs validation"),
        ({"data": iter([1])}, "position in data could not be saved"),
        ({"data": np.ones((2, 3))}, "ArrayBatches"),
        ({"data": []}, "empty"),
    ],
)
def test_settings_that_cannot_work_are_refused_at_once(options, match):
    with pytest.raises(ArgumentError, match=match):
        small(**options)


def test_data_that_gives_nothing_is_an_error_and_not_an_endless_loop():
    class Nothing:
        def __iter__(self):
            return iter(())

        def state_dict(self):
            return {}

        def load_state_dict(self, state):
            pass

    with pytest.raises(ArgumentError, match="no batches"):
        small(Nothing()).train()


class Screen(io.StringIO):
    """A terminal, whose last line is what a person would see."""

    def isatty(self):
        return True

    @property
    def lines(self):
        shown = []
        for row in self.getvalue().split("\n"):
            line = ""
            for part in row.split("\r"):
                line = part + line[len(part) :]
            shown.append(line.rstrip())
        return shown


def test_on_a_terminal_one_line_is_rewritten_and_text_stands_on_its_own(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    now, screen = [0.0], Screen()
    progress = Progress(screen, clock=lambda: now[0])
    for step in range(1, 4):
        now[0] += 1
        progress.update(step, 3, lambda: f"loss {1 / step:.{6 - step}f}")  # noqa: B023
    progress.say("a sample")
    now[0] += 1
    progress.update(3, 3, lambda: "x" * 200)
    progress.close()
    assert screen.lines == ["a sample", "step 3/3 | " + "x" * 68, ""]


def test_a_log_gets_a_whole_line_every_few_seconds_and_nothing_rewritten():
    now, log = [0.0], io.StringIO()
    progress = Progress(log, clock=lambda: now[0])
    for step in range(1, 101):
        now[0] += 0.25
        progress.update(step, None, lambda: "loss 1.0")
    progress.close()
    assert log.getvalue() == "step 1 | loss 1.0\nstep 41 | loss 1.0\nstep 81 | loss 1.0\n"


def test_a_closed_output_does_not_stop_training():
    log = io.StringIO()
    progress = Progress(log)
    log.close()
    progress.update(1, 1, lambda: "loss")
    progress.say("text")
    assert not progress.shown


def test_progress_tells_speed_loss_and_remaining_time(capsys):
    small(progress=True, max_steps=3).train()
    said = capsys.readouterr().out
    assert "step 1/3 | loss " in said and "units/s | ETA " in said and "stopped at step 3 (max_steps)" in said
