"""A compiled loss trains as the loss itself does; "auto" compiles where that pays, and a run keeps to what it chose."""

import itertools
import json
import random
import re
import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, zoo
from minigrad.errors import ArgumentError, IndexingError, NonFiniteError
from minigrad.kernels.selection import use
from minigrad.nn import functional as F
from minigrad.train import ArrayBatches, ListBatches, Trainer, compile_choice, find_checkpoint, read_state
from minigrad.train.compiled_loss import CompiledLoss
from minigrad.train.train_step import TrainStep
from minigrad.zoo.config import configure
from minigrad.zoo.run_arguments import arguments_of
from minigrad.zoo.training import named

CLASSES = 5
CALLS = itertools.count(1)


@pytest.fixture
def short_runs_pay(monkeypatch):
    monkeypatch.setattr(compile_choice, "STEPS", 1)


class Net(nn.Module):
    def __init__(self, norm=None, dtype="float64"):
        self.table = nn.Embedding(7, 6, dtype=dtype)
        self.norm = norm(6, dtype=dtype) if norm else nn.LayerNorm(6, dtype=dtype)
        self.dropout, self.out = nn.Dropout(0.3), nn.Linear(6, CLASSES, dtype=dtype)

    def forward(self, words):
        return self.out(self.dropout(self.norm(self.table(words)).tanh()))


def loss(model, batch):
    """The units are counted by ops, and the second term is a metric."""
    words, labels = (mg.tensor(part) for part in batch)
    logits = model(words)
    wrong = F.cross_entropy(logits, labels, reduction="sum")
    counted = (labels != -100).sum()
    return {"loss": (wrong, counted), "right": ((logits.argmax(axis=1) == labels).sum(), counted)}


def batches(rows=8, count=6, seed=0):
    rng = np.random.default_rng(seed)
    made = [(rng.integers(0, 7, rows), rng.integers(0, CLASSES, rows)) for _ in range(count)]
    for _, labels in made:
        labels[rng.integers(rows)] = -100
    return made


def trainer(function=loss, model=None, data=None, make=Trainer, **options):
    mg.manual_seed(0)
    model = model or Net()
    optimizer = mg.optim.AdamW(model.parameters(), lr=0.02)
    settings = {"max_steps": 12, "clip_norm": 1.0, "seed": 1, "progress": False, **options}
    return make(model, function, ListBatches(data or batches(), seed=3), optimizer, **settings)


def trained(**options):
    run = trainer(**options)
    losses = []
    run.on("step", lambda _, info: losses.append((info["loss"], info.get("right", 0), info["grad_norm"])))
    run.train()
    return np.array(losses), np.concatenate([p.numpy().ravel() for p in run.model.parameters()])


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_compiled_loss_trains_as_the_loss_itself_does(accumulate):
    for ours, theirs in zip(
        trained(compile="on", accumulate=accumulate), trained(compile="off", accumulate=accumulate)
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_threads_and_compiling_change_nothing_but_rounding():
    results = []
    for threads in (1, 2):
        for compiled in (False, True):
            mg.manual_seed(0)
            model = Net()
            optimizer = mg.optim.AdamW(model.parameters(), lr=0.02)
            step = TrainStep(
                model, loss, optimizer, None, 1.0, threads, CompiledLoss(loss, model) if compiled else None
            )
            for number, batch in enumerate(batches(rows=9)):
                step.step([batch], number)
            results.append(np.concatenate([p.numpy().ravel() for p in model.parameters()]))
    for other in results[1:]:
        np.testing.assert_allclose(other, results[0], rtol=1e-9, atol=1e-12)


def test_the_first_result_is_the_plans_so_it_does_not_matter_when_it_was_traced():
    mg.manual_seed(0)
    model, batch = Net(dtype="float32"), batches()[0]
    compiled = CompiledLoss(loss, model)
    values = []
    for _ in range(3):
        mg.manual_seed(5)
        amount, _ = compiled(batch)["loss"]
        values.append(amount.item())
    assert values[0] == values[1] == values[2] and compiled.traces == 1


def test_auto_compiles_a_small_model_and_the_run_keeps_to_it(tmp_path, short_runs_pay, monkeypatch):
    first = trainer(out=tmp_path / "run", max_steps=5)
    first.train()
    saved = json.loads((tmp_path / "run" / "config.json").read_text())["training"]
    assert (saved["compile"], saved["compiled"]) == ("auto", True) and "parameters" in saved["compile_reason"]
    monkeypatch.setattr(compile_choice, "choose", lambda trainer: pytest.fail("it was chosen already"))
    again = trainer(out=tmp_path / "run", max_steps=12, make=Trainer.resume)
    assert again.compiled
    again.train()
    monkeypatch.undo()
    monkeypatch.setattr(compile_choice, "STEPS", 1)
    whole = trainer(max_steps=12)
    whole.train()
    for ours, theirs in zip(again.model.parameters(), whole.model.parameters()):
        assert ours.numpy().tobytes() == theirs.numpy().tobytes()
    assert read_state(find_checkpoint(tmp_path / "run"))["training"]["compiled"] is True


def test_a_run_that_was_not_compiled_goes_on_so_unless_asked(tmp_path, short_runs_pay, capsys):
    trainer(out=tmp_path / "run", max_steps=5, compile="off").train()
    assert trainer(out=tmp_path / "run", make=Trainer.resume).compiled is False
    capsys.readouterr()
    again = trainer(out=tmp_path / "run", make=Trainer.resume, compile="on", progress=True)
    assert again.compiled and "compile on (was off)" in capsys.readouterr().out


def test_looking_ahead_changes_nothing_of_the_run(short_runs_pay):
    run = trainer()
    before = run.data.state_dict(), mg.random.random_state(), random.getstate()
    weights = [p.numpy().copy() for p in run.model.parameters()]
    assert compile_choice.choose(run)[0]
    assert (run.data.state_dict(), mg.random.random_state(), random.getstate()) == before
    assert all((p.numpy() == w).all() and p.grad is None for p, w in zip(run.model.parameters(), weights))


def looks_at_a_value(model, batch):
    terms = loss(model, batch)
    return terms if terms["loss"][0].item() > 0 else {}


def draws_by_python(model, batch):
    amount, units = loss(model, batch)["loss"]
    return {"loss": (amount * (1 + random.random()), units)}


def counts_its_calls(model, batch):
    amount, units = loss(model, batch)["loss"]
    return {"loss": (amount * next(CALLS), units)}


def counts_by_numpy(model, batch):
    amount, _ = loss(model, batch)["loss"]
    return {"loss": (amount, int((batch[1] != -100).sum()))}


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (looks_at_a_value, r"item looks at the value .*test_trainer_compile\.py:\d+"),
        (counts_by_numpy, r"looks at the value .*test_trainer_compile\.py:\d+"),
        (draws_by_python, "draws random numbers of NumPy or Python"),
        (counts_its_calls, "something else when it is called again"),
    ],
)
def test_what_cannot_be_compiled_is_an_error_under_on_and_a_reason_under_auto(function, reason, short_runs_pay):
    with pytest.raises(mg.MinigradError, match=reason):
        trainer(function, compile="on").train()
    run = trainer(function)
    run.train()
    assert not run.compiled and re.search(reason, run.compile_reason)


def test_a_layer_that_changes_its_buffers_is_not_compiled(short_runs_pay):
    with pytest.raises(mg.MinigradError, match="BatchNorm"):
        trainer(model=Net(nn.BatchNorm1d), compile="on").train()
    run = trainer(model=Net(nn.BatchNorm1d))
    run.train()
    assert not run.compiled and "BatchNorm" in run.compile_reason


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"data": [batches(rows)[0] for rows in (3, 4, 5)]}, "3 different shapes"),
        ({"model": nn.Sequential(nn.Embedding(7, 5000), nn.Linear(5000, CLASSES))}, "60,005 parameters"),
    ],
)
def test_auto_says_why_it_does_not_compile(options, reason, short_runs_pay):
    compiled, why = compile_choice.choose(trainer(**options))
    assert not compiled and reason in why


def test_a_short_run_is_not_compiled():
    compiled, why = compile_choice.choose(trainer(max_steps=999))
    assert not compiled and "999 steps" in why


def test_without_numba_auto_does_not_compile_and_on_runs_op_by_op(short_runs_pay):
    expected = trained(compile="off")
    with use("numpy"):
        assert "numba" in compile_choice.choose(trainer())[1]
        for ours, theirs in zip(trained(compile="on"), expected):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_a_wrong_choice_is_refused():
    with pytest.raises(ArgumentError, match="'auto' or 'on' or 'off'"):
        trainer(compile="yes")
    model = Net(dtype="float32")
    optimizer = mg.optim.AdamW(model.parameters(), lr=0.01)
    with pytest.raises(ArgumentError, match="mixed precision"):
        Trainer(
            model,
            loss,
            batches(),
            optimizer,
            scaler=mg.optim.MixedPrecision(model, optimizer),
            max_steps=1,
            compile="on",
        )


def test_a_step_that_is_not_finite_is_explained_op_by_op():
    def broken(model, batch):
        amount, units = loss(model, batch)["loss"]
        return {"loss": ((amount * 0 - 1).log(), units)}

    with pytest.raises(NonFiniteError, match=r"step 1(?s:.)*\blog\b"):
        trainer(broken, compile="on").train()


def test_a_wrong_label_is_named_as_by_the_loss_itself():
    wrong = batches()
    wrong[3][1][0] = CLASSES
    with pytest.raises(IndexingError, match=r"cross_entropy: a label is out of range(?s:.)*got: +5"):
        trainer(data=wrong, compile="on").train()


def test_a_loss_that_is_always_new_goes_on_op_by_op():
    model, scale = Net(dtype="float32").eval(), [1.0]

    def scaled(model, batch):
        amount, units = loss(model, batch)["loss"]
        return {"loss": (amount * scale[0], units)}

    compiled, batch = CompiledLoss(scaled, model, most=2), batches()[0]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for number in range(1, 6):
            scale[0] = float(number)
            amount, _ = compiled(batch)["loss"]
            assert amount.item() == pytest.approx(scaled(model, batch)["loss"][0].item(), rel=1e-5)
    assert compiled.traces == 2 and [str(w.message).count("compiled 2 times") for w in caught] == [1]


@pytest.mark.parametrize("name", ["xor", "regression", "facts", "superposition", "word2vec:small", "digits", "bitmlp"])
def test_the_small_models_of_the_zoo_can_be_compiled(name):
    spec, preset = named(name)
    config = configure(spec, preset, {})
    model, batch = spec.build(config), spec.example(config)
    mg.manual_seed(0)
    plain = spec.loss(model, batch)
    mg.manual_seed(0)
    for term, (amount, units) in CompiledLoss(spec.loss, model)(batch).items():
        assert float(amount) == pytest.approx(float(plain[term][0]), rel=1e-4) and int(units) == int(plain[term][1])


def test_the_command_line_takes_it(tmp_path):
    result = zoo.train("regression", tmp_path / "run", max_steps=3, compile="on", progress=False)
    assert result.step == 3
    assert arguments_of(tmp_path / "run")["compile"] == "on"
    assert zoo.resume(tmp_path / "run", max_steps=5, progress=False).step == 5
    assert read_state(find_checkpoint(tmp_path / "run"))["training"]["compiled"] is True


def test_arrays_are_batches_too():
    x = np.linspace(-1, 1, 10, dtype="float32")[:, None]
    model = nn.Linear(1, 1)
    run = Trainer(
        model,
        lambda model, batch: {"loss": (((model(batch[0]) - mg.tensor(batch[1])) ** 2).sum(), len(batch[0]))},
        ArrayBatches((x, 3 * x), batch_size=4),
        mg.optim.SGD(model.parameters(), lr=0.3),
        max_steps=100,
        compile="on",
        progress=False,
    )
    run.train()
    assert model.weight.item() == pytest.approx(3, abs=0.01)
