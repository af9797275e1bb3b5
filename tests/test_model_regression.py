"""The plugin regression: a line ends at least squares, and a small MLP is far better than any line."""

import math

import numpy as np
import pytest
from minigrad_models.regression import spec
from minigrad_models.regression.model import between, function_of, least_squares, outside, points

from minigrad import zoo
from minigrad.errors import ArgumentError
from minigrad.zoo import trainer_of
from minigrad.zoo.config import configure


def oracle():
    """Slope and offset by NumPy's least squares."""
    x = np.linspace(-10, 10, 100)
    return np.linalg.lstsq(np.stack([x, np.ones(100)], axis=1), np.sin(x), rcond=None)[0]


def trained(preset, seed, **settings):
    trainer = trainer_of(spec, configure(spec, preset, settings), None, seed=seed, progress=False)
    trainer.train()
    return function_of(trainer.model)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_line_learned_equals_least_squares_to_a_millionth(seed):
    slope, offset = oracle()
    f = trained("linear", seed)
    x, _ = points()
    assert np.abs(f(x) - (slope * x + offset)).max() < 1e-6
    start, end = f(np.array([[0.0], [1.0]], "float32"))[:, 0]
    assert abs(end - start - slope) < 1e-6 and abs(start - offset) < 1e-6


def test_the_closed_form_is_that_of_numpy():
    assert np.allclose(least_squares(), oracle(), rtol=0, atol=1e-8)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_mlp_has_a_tenth_of_the_error_of_the_best_line(seed):
    slope, offset = oracle()
    x, y = between()
    line = ((slope * x + offset - y) ** 2).mean()
    assert 0.4 < line < 0.5  # sin² itself has a mean of about a half: a line explains next to nothing
    f = trained(None, seed, steps=1000)
    assert ((f(x) - np.sin(x)) ** 2).mean() < line / 10


def test_the_places_are_where_they_should_be():
    (x, y), (middle, _), (far, _) = points(), between(), outside()
    assert (x.min(), x.max(), len(x)) == (-10, 10, 100) and np.allclose(y, np.sin(x))
    assert not np.isin(middle, x).any() and np.abs(middle).max() < 10
    assert np.abs(far).min() > 10 and np.abs(far).max() <= 12


@pytest.fixture(scope="module", params=["regression", "regression:linear"])
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    zoo.train(request.param, folder, max_steps=300, progress=False)
    return zoo.load(folder)


def test_errors_of_model_and_line_are_evaluated_and_shown_in_a_table(run):
    found = run.evaluate()
    slope, offset = oracle()
    x, y = points()
    assert math.isclose(found["least_squares_mse"], ((slope * x + offset - y) ** 2).mean(), rel_tol=1e-5)
    assert math.isclose(found["mse"], ((function_of(run.model)(x) - y) ** 2).mean(), rel_tol=1e-5)
    assert found["mse"] >= found["least_squares_mse"] - 1e-6 or run.config.hidden  # no line is better
    shown = spec.after(run, run.path)
    (row,) = (line for line in shown.splitlines() if line.startswith("between them"))
    assert [float(word) for word in row.split()[2:]] == pytest.approx(
        [found["least_squares_mse_between"], found["mse_between"]], abs=1e-6
    )
    assert ("slope" in shown) == (run.config.hidden == ())


def test_a_place_gets_a_value_and_what_is_no_number_an_explanation(run):
    (answer,) = run.predict("1.5")
    value = function_of(run.model)(np.array([[1.5]], "float32")).item()
    assert answer == {"input": "1.5", "value": round(value, 4), "sin": 0.9975}
    for wrong in ("one", "", "inf", "nan", "1e39"):
        with pytest.raises(ArgumentError, match='is not a place(.|\n)*"1.5"'):
            run.predict(wrong)
