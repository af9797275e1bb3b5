"""Training as PyTorch users know it: a loader, a scalar loss, epochs and callbacks, and still every bit comes again."""

import warnings

import numpy as np
import pytest
from support.folders import in_memory
from support.small_training import line, rows_of, small

import minigrad as mg
from minigrad import nn, optim
from minigrad.data import DataLoader, IterableDataset, Padded, TensorDataset
from minigrad.errors import ArgumentError, CallError
from minigrad.nn import functional as F
from minigrad.train import Callback, ListBatches, Trainer, read_checkpoint

X = np.random.default_rng(0).normal(size=(22, 3)).astype("float32")
Y = X.sum(axis=1, keepdims=True)


@pytest.fixture
def folder():
    with in_memory() as place:
        yield place / "run"


def mean_loss(model, batch):
    x, y = batch
    return F.mse_loss(model(x), y)


def sum_loss(model, batch):
    x, y = batch
    return {"loss": (F.mse_loss(model(x), y, reduction="sum"), len(x))}


class Rows(IterableDataset):
    """The same rows as a stream."""

    def __iter__(self):
        return iter(list(zip(X, Y)))


def loader(kind="shuffled", **options):
    if kind == "stream":
        return DataLoader(Rows(), batch_size=4, **options)
    return DataLoader(TensorDataset(X, Y), batch_size=4, shuffle=kind == "shuffled", seed=0, **options)


class Book(Callback):
    """Remembers what it was called with, also through a resume."""

    def __init__(self, stop_at=None):
        self.steps, self.epochs, self.valid, self.ended = [], [], [], None
        self.mean, self.stop_at = mg.zeros(1, 3), stop_at

    def on_step(self, trainer, info):
        self.steps.append(info["step"])
        self.mean = 0.9 * self.mean + 0.1 * trainer.model.weight.detach()
        if info["step"] == self.stop_at:
            trainer.stop("enough")

    def on_epoch(self, trainer, info):
        self.epochs.append(info)

    def on_validation(self, trainer, info):
        self.valid.append(info["step"])

    def on_end(self, trainer, info):
        self.ended = info["reason"]

    def state_dict(self):
        return {"mean": self.mean, "steps": self.steps, "epochs": self.epochs}

    def load_state_dict(self, state):
        self.mean, self.steps, self.epochs = state["mean"], state["steps"], state["epochs"]


@pytest.mark.parametrize("kind", ["shuffled", "stream"])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_with_a_loader_stopped_anywhere_and_resumed_is_the_same_run(folder, kind, workers):
    options = {"loss": mean_loss, "max_steps": None, "epochs": 3, "log_every": 1, "optimizer": optim.Adam}
    whole = Book()
    expected = small(loader(kind), out=folder / "whole", callbacks=[whole], **options).train()
    assert (expected.step, expected.reason) == (18, "epochs")
    for stop in (1, 6, 7, 12, 17, 18):
        place, book = folder / f"{kind}-{stop}", Book(stop)
        small(loader(kind, num_workers=workers), out=place, callbacks=[book], **options).train()
        again = Book()
        more = small(loader(kind, num_workers=workers), out=place, callbacks=[again], resume=True, **options)
        assert more.train().step == 18
        assert rows_of(place) == rows_of(folder / "whole")
        assert again.steps == whole.steps and again.epochs == whole.epochs
        assert again.mean.numpy().tobytes() == whole.mean.numpy().tobytes()


def test_training_goes_on_with_the_rest_of_the_epoch_when_called_again():
    seen, data = [], loader()

    def watching(model, batch):
        seen.append(batch[0].tolist())
        return mean_loss(model, batch)

    trainer = small(data, loss=watching, max_steps=4)
    trainer.train()
    trainer.max_steps = 8
    trainer.train()
    same = loader()
    expected = [x.tolist() for _ in range(2) for x, _ in same]
    assert seen == expected[:8]


def test_a_scalar_is_the_mean_over_rows_so_ragged_last_batches_are_exact(folder):
    results = []
    for loss in (mean_loss, sum_loss):
        trainer = small(
            loader(), loss=loss, max_steps=None, epochs=2, accumulate=3, valid=loader("in order"),
            out=folder / loss.__name__, log_every=1, resume=True,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            trainer.train()
        results.append([{name: float(value) for name, value in row.items() if value} for row in rows_of(trainer.out)])
    assert len(results[0]) == len(results[1]) == 4
    for ours, theirs in zip(*results):
        assert ours == pytest.approx(theirs, rel=1e-5)


def test_a_scalar_is_of_the_whole_batch_also_where_threads_would_divide_it(monkeypatch):
    """A sum in the place of a mean shows it: of halves of a batch it would be half as large."""
    monkeypatch.setattr("minigrad.train.data_parallel.MIN_WORK", 1)
    weights = {}
    for threads in ("1", "2"):
        monkeypatch.setenv("MINIGRAD_THREADS", threads)
        sizes = set()

        def total(model, batch, sizes=sizes):
            sizes.add(len(batch[0]))
            return F.mse_loss(F.dropout(model(batch[0]), 0.3), batch[1], reduction="sum")

        trainer = small(loader(drop_last=True), loss=total, lr=0.001, compile="off")
        trainer.train()
        weights[threads] = trainer.model.weight.numpy().tobytes()
    assert sizes == {4, 2}  # halves were tried, once
    assert weights["1"] == weights["2"]


@pytest.mark.parametrize(
    "batches",
    [
        [Padded.of([[1, 2], [1]]), Padded.of([[1], [2]])],
        [np.ones((2, 3), "float32"), np.ones((2, 2), "float32")],
        [(np.ones((2, 3)), np.ones(3))] * 2,
    ],
    ids=["padding", "lengths", "no rows"],
)
def test_ragged_batches_under_a_scalar_are_warned_of_once(batches):
    trainer = small(ListBatches(batches, shuffle=False), loss=lambda m, b: (m.weight**2).mean())
    with pytest.warns(RuntimeWarning, match="batches are ragged") as caught:
        trainer.train()
    assert len(caught) == 1


def test_epochs_end_training_and_each_is_validated():
    book = Book()
    trainer = small(loader(), loss=mean_loss, max_steps=None, epochs=3, valid=loader("in order"), callbacks=[book])
    assert trainer.planned_steps == 18
    assert trainer.train().reason == book.ended == "epochs"
    assert book.steps == list(range(1, 19)) and book.valid == [6, 12, 18]
    assert [info["epoch"] for info in book.epochs] == [1, 2, 3] and trainer.epoch == 3
    assert [info["step"] for info in book.epochs] == [6, 12, 18]
    assert book.epochs[-1]["loss"] < book.epochs[0]["loss"] and "valid_loss" in book.epochs[0]


def test_the_loss_of_an_epoch_is_the_mean_over_all_its_rows():
    book = Book()
    small(loader(), loss=mean_loss, max_steps=None, epochs=1, lr=1e-12, callbacks=[book]).train()
    mg.manual_seed(0)
    expected = mean_loss(nn.Linear(3, 1), (mg.tensor(X), mg.tensor(Y))).item()
    assert book.epochs[0]["loss"] == pytest.approx(expected, rel=1e-5)


def test_the_last_epoch_may_end_within_an_accumulated_step():
    book = Book()
    small(loader(), loss=mean_loss, max_steps=None, epochs=2, accumulate=5, callbacks=[book]).train()
    assert book.steps == [1, 2, 3]  # of 5, 5 and 2 batches
    assert [info["epoch"] for info in book.epochs] == [1, 2]


def test_data_that_cannot_tell_their_last_batch_have_epochs_too():
    class Plain:
        def state_dict(self):
            return {}

        def load_state_dict(self, state):
            pass

        def __iter__(self):
            return iter([X[:4], X[4:8]])

    book = Book()
    assert small(Plain(), max_steps=None, epochs=2, callbacks=[book]).train().step == 4
    assert [info["epoch"] for info in book.epochs] == [1, 2]


def test_whichever_limit_is_reached_first_ends_training():
    assert small(loader(), loss=mean_loss, max_steps=4, epochs=1).train().reason == "max_steps"
    assert small(loader(), loss=mean_loss, max_steps=400, epochs=1).train().reason == "epochs"
    with pytest.raises(ArgumentError, match="epochs cannot be used"):
        small(epochs=0)


def test_a_callback_may_stop_training_and_need_have_no_base():
    class Stopper:
        def on_epoch(self, trainer, info):
            trainer.stop(f"after epoch {info['epoch']}")

    assert small(loader(), loss=mean_loss, max_steps=50, callbacks=[Stopper()]).train().reason == "after epoch 1"


@pytest.mark.parametrize("wrong", [object(), Book, print, "on_step"], ids=["object", "class", "function", "text"])
def test_what_is_no_callback_is_refused(wrong):
    with pytest.raises(CallError, match=r"no callback(.|\n)*on_step, on_epoch, on_validation, on_checkpoint, on_end"):
        small(callbacks=[wrong])


def test_other_callbacks_in_a_resume_are_told(folder, capsys):
    small(out=folder, callbacks=[Book()]).train()
    small(out=folder, resume=True, max_steps=6, progress=True)
    assert "callbacks with a state were Book, and are none" in capsys.readouterr().out


def test_the_state_of_a_callback_is_in_the_checkpoint(folder):
    book = Book()
    small(out=folder, callbacks=[book]).train()
    tensors = read_checkpoint(folder / "checkpoints/step-00000005.safetensors").tensors
    np.testing.assert_array_equal(tensors["callback.0.mean"], book.mean.numpy())


def test_a_run_that_failed_before_its_first_step_leaves_a_folder_that_can_be_used_again(folder):
    def broken(model, batch):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        small(out=folder, loss=broken).train()
    assert small(out=folder, loss=line, model=nn.Linear(3, 1, bias=False)).train().step == 5
    with pytest.raises(Exception, match="already holds a run"):
        small(out=folder)


def test_a_run_begins_with_a_whole_epoch_whatever_was_taken_out_of_the_loader_before():
    def broken(model, batch):
        raise ZeroDivisionError

    data = loader()
    next(iter(data))
    with pytest.raises(ZeroDivisionError):
        small(data, loss=broken, max_steps=None, epochs=1).train()
    assert small(data, loss=mean_loss, max_steps=None, epochs=1).train().step == len(data)
    data.load_state_dict({**data.state_dict(), "index": 1})
    assert small(data, loss=mean_loss, max_steps=None, epochs=1).train().step == len(data) - 1


def test_a_scalar_loss_compiles(folder):
    results = [
        small(loader(drop_last=True), loss=mean_loss, max_steps=None, epochs=2, compile=choice)
        for choice in ("on", "off")
    ]
    for trainer in results:
        trainer.train()
    ours, theirs = (trainer.model.weight.numpy() for trainer in results)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_a_trainer_takes_a_loader_by_the_way_it_is_written_in_pytorch():
    model = nn.Linear(3, 1)
    result = Trainer(
        model,
        lambda model, batch: F.mse_loss(model(batch[0]), batch[1]),
        DataLoader(TensorDataset(X, Y), batch_size=8, shuffle=True),
        optim.SGD(model.parameters(), lr=0.1),
        epochs=20,
        progress=False,
    ).train()
    assert result.step == 60 and F.mse_loss(model(X), Y).item() < 0.01
