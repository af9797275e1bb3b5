"""Training that would change nothing, or report what is not so, is refused; what is only looked at changes nothing."""

import numpy as np
import pytest
from support.folders import in_memory
from support.small_training import line, rows_of, small

import minigrad as mg
from minigrad import nn, optim
from minigrad.errors import ArgumentError, CallError
from minigrad.nn import functional as F
from minigrad.train import ListBatches, Trainer

ROWS = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")


@pytest.fixture
def folder():
    with in_memory() as place:
        yield place / "run"


def trainer(model, optimizer, **options):
    return Trainer(model, line, [ROWS], optimizer, **{"max_steps": 2, "progress": False, **options})


def test_training_does_not_seed_the_random_numbers_unless_asked_to():
    drawn = []
    for seed in (5, 6):
        mg.manual_seed(seed)
        model = nn.Linear(3, 1)
        trainer(model, optim.SGD(model.parameters(), lr=0.1)).train()
        drawn.append(mg.rand(1).item())
    assert drawn[0] != drawn[1]
    for _ in range(2):
        trainer(model, optim.SGD(model.parameters(), lr=0.1), seed=3).train()
        drawn.append(mg.rand(1).item())
    assert drawn[2] == drawn[3]


def test_an_optimiser_of_another_model_is_refused():
    model, other = nn.Linear(3, 1), nn.Linear(3, 1)
    with pytest.raises(ArgumentError, match="2 of 2 are of something else"):
        trainer(model, optim.SGD(other.parameters()))
    with pytest.raises(ArgumentError, match="1 of 3 are of something else"):
        trainer(model, optim.SGD([*model.parameters(), mg.ones(1, requires_grad=True)]))


def test_arguments_in_the_wrong_places_are_told_where_they_belong():
    model = nn.Linear(3, 1)
    with pytest.raises(CallError, match=r"no optimizer(.|\n)*make one: Adam\(model.parameters\(\), lr=1e-3\)"):
        trainer(model, optim.Adam)
    with pytest.raises(ArgumentError, match=r"the order is Trainer\(model, loss, data, optimizer\)"):
        Trainer(model, [ROWS], line, optim.SGD(model.parameters()), max_steps=1)


def test_mixed_precision_without_its_scaler_is_refused():
    model = nn.Linear(3, 1)
    optimizer = optim.SGD(model.parameters())
    mixed = optim.MixedPrecision(model, optimizer)
    with pytest.raises(ArgumentError, match="pass scaler="):
        trainer(model, optimizer)
    with pytest.raises(CallError, match="pass the model itself"):
        trainer(mixed, optimizer, scaler=mixed)
    with pytest.raises(ArgumentError, match="scaler is of another model"):
        trainer(nn.Linear(3, 1), optimizer, scaler=mixed)
    with pytest.raises(CallError, match="a MixedPrecision"):
        trainer(model, optimizer, scaler=optim.LossScaler())
    trainer(model, optimizer, scaler=mixed, valid=[ROWS], samples=lambda m: str(m.eval().training)).train()


def test_a_loss_without_units_is_refused_in_training_and_in_validation():
    def loss(model, batch):
        amount, units = line(model, batch)["loss"]
        return {"loss": (amount, 0 if len(batch) == 1 else units)}

    with pytest.raises(CallError, match="the loss has no units"):
        small(ListBatches([ROWS[:1]]), loss).train()
    with pytest.raises(CallError, match="the loss has no units"):
        small(ListBatches([ROWS]), loss, valid=[ROWS[:1]]).train()
    small(ListBatches([ROWS[:1], ROWS[1:]]), loss, accumulate=2, valid=[ROWS[:1], ROWS]).train()


def with_metric(model, batch, as_number=False, parts=1):
    """The terms of a line with how many of its points lie above 0, which no gradient goes through."""
    amount, units = line(model, batch)["loss"]
    above = (model(mg.tensor(batch)) > 0).sum()
    terms = {f"part{i}" if parts > 1 else "loss": (amount / parts, units) for i in range(parts)}
    return {**terms, "above": (above.item() if as_number else above, units)}


@pytest.mark.parametrize("as_number", [False, True])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_term_without_a_gradient_is_a_metric_and_not_added_to_the_loss(folder, as_number, accumulate):
    options = {"accumulate": accumulate, "log_every": 1, "valid": [ROWS], "valid_every": 1}
    plain = small(out=folder / "plain", **options)
    plain.train()
    watched = small(
        loss=lambda m, b: with_metric(m, b, as_number), out=folder / "metric", metric="above", maximize=True, **options
    )
    result = watched.train()
    np.testing.assert_array_equal(watched.model.weight.numpy(), plain.model.weight.numpy())
    rows = rows_of(folder / "metric")
    assert [row["loss"] for row in rows] == [row["loss"] for row in rows_of(folder / "plain")]
    assert [row["valid_loss"] for row in rows] == [row["valid_loss"] for row in rows_of(folder / "plain")]
    above = float((ROWS @ watched.model.weight.numpy().T + watched.model.bias.numpy() > 0).mean())
    assert float(rows[-1]["valid_above"]) == above
    assert result.best == max(float(row["valid_above"]) for row in rows)
    assert "loss_above" not in rows[0] and 0 <= float(rows[0]["above"]) <= 1


def test_a_metric_beside_two_terms_is_none_of_their_sum(folder):
    small(loss=lambda m, b: with_metric(m, b, parts=2), out=folder, log_every=1, max_steps=1).train()
    (row,) = rows_of(folder)
    assert float(row["loss"]) == pytest.approx(float(row["loss_part0"]) + float(row["loss_part1"]))
    assert "above" in row


def test_a_metric_cannot_have_the_name_of_another_column():
    def loss(model, batch):
        return {"square": line(model, batch)["loss"], "loss": (mg.tensor(1.0), 1)}

    with pytest.raises(CallError, match="a metric cannot have this name"):
        small(loss=loss).train()


def test_a_metric_that_the_loss_does_not_have_is_known_after_the_first_step():
    steps = []
    made = small(valid=[ROWS], valid_every=5, metric="accuracy")
    made.on("step", lambda _, info: steps.append(info["step"]))
    with pytest.raises(ArgumentError, match="validation has no 'accuracy'"):
        made.train()
    assert steps == [1]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"loss": F.cross_entropy}, r"def loss\(model, batch\)"),
        ({"loss": lambda model: {}}, "too many positional"),
        ({"loss": "loss"}, "not a callable"),
        ({"valid": lambda: {}}, r"valid\(model\)"),
        ({"config": nn.Linear(1, 1)}, "this is no config"),
        ({"data": (ROWS, ROWS)}, "ArrayBatches"),
        ({"valid": (mg.tensor(ROWS), mg.tensor(ROWS))}, "valid is a tuple of arrays"),
        ({"save_every": 5}, "save_every needs a directory"),
    ],
)
def test_what_cannot_be_trained_with_is_refused_at_once_with_the_fix(options, match):
    with pytest.raises(ArgumentError, match=match):
        small(**options)


def test_an_optimiser_that_needs_a_closure_is_refused():
    model = nn.Linear(3, 1)
    with pytest.raises(ValueError, match=r"LBFGS computes the loss several times[^$]*optimizer.step\(closure\)"):
        trainer(model, optim.LBFGS(model.parameters()))
