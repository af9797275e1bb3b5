"""The Trainer: it trains, is exact on ragged batches, validates, and stops when it should."""

import math

import numpy as np
import pytest
from support import killable_training as training
from support.folders import in_memory
from support.small_training import classify, line, rows_of, small

import minigrad as mg
from minigrad import nn, optim
from minigrad.errors import ArgumentError, CallError, GradientError
from minigrad.nn import functional as F
from minigrad.train import ArrayBatches, ListBatches, RunError, Trainer, find_checkpoint, read_checkpoint

MIXTURE = ("adamw", "cosine", "sequences")


@pytest.fixture
def folder():
    with in_memory() as place:
        yield place / "run"


def accuracy(model, x, y):
    logits = model(mg.tensor(x, device=next(model.parameters()).device))
    return float((logits.numpy().argmax(axis=-1) == y).mean())


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
        lambda m, b: m(mg.tensor(b)),
        lambda m, b: {},
        lambda m, b: {"loss": m(mg.tensor(b)).sum()},
        lambda m, b: {"loss": (m(mg.tensor(b)), 4)},
        lambda m, b: {1: (m(mg.tensor(b)).sum(), 4)},
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


def test_a_directory_that_holds_a_run_is_not_overwritten(folder):
    small(out=folder).train()
    with pytest.raises(RunError, match="already holds a run(.|\n)*resume"):
        small(out=folder)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"max_steps": None}, "when is it enough"),
        ({"accumulate": 0}, "accumulate"),
        ({"accumulate": None}, "accumulate"),
        ({"max_minutes": math.nan}, "max_minutes"),
        ({"max_minutes": math.inf}, "max_minutes"),
        ({"clip_norm": -1.0}, "clip_norm"),
        ({"config": {"out": object()}}, "config cannot be kept"),
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


@pytest.mark.parametrize(
    ("arrays", "batch_size"),
    [
        (np.ones((10, 3)), 4),
        (mg.ones(10, 3), 4),
        ((), 4),
        ((np.ones(3), np.ones(4)), 2),
        ((np.float32(1),), 1),
        ((np.ones(0),), 1),
        ((np.ones(4),), 0),
        ((np.ones(4),), 2.5),
        ((np.ones(4),), "2"),
    ],
)
def test_arrays_that_cannot_be_cut_into_batches_are_refused(arrays, batch_size):
    with pytest.raises(ArgumentError, match="a tuple of arrays with equally many rows"):
        ArrayBatches(arrays, batch_size)


class Nothing:
    """A sampler of no batches."""

    def __iter__(self):
        return iter(())

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


def test_data_that_gives_nothing_is_an_error_and_not_an_endless_loop():
    with pytest.raises(ArgumentError, match="the data gives no batches"):
        small(Nothing()).train()


def test_validation_data_that_gives_nothing_is_an_error_and_not_a_loss_of_zero():
    with pytest.raises(ArgumentError, match="validation data gives no batches"):
        small(valid=Nothing()).train()


def test_training_data_may_be_validated_on_and_all_of_it_is():
    rows = np.random.default_rng(1).normal(size=(9, 3)).astype("float32")
    seen = {True: [], False: []}

    def loss(model, batch):
        seen[mg.is_grad_enabled()].append(len(batch))
        return line(model, batch)

    data = ListBatches([rows[:2], rows[2:5], rows[5:]], shuffle=False)
    small(data, loss, valid=data, valid_every=1, max_steps=4).train()
    assert seen == {True: [2, 3, 4, 2], False: [2, 3, 4] * 4}


def test_a_validation_that_fails_leaves_its_data_where_they_were():
    rows = np.ones((4, 3), "float32")
    valid = ListBatches([rows, rows, rows], shuffle=False)

    def loss(model, batch):
        if not mg.is_grad_enabled() and valid.index == 2:
            raise ZeroDivisionError
        return line(model, batch)

    with pytest.raises(ZeroDivisionError):
        small(loss=loss, valid=valid).train()
    assert (valid.epoch, valid.index) == (0, 0)
