"""Random tensors by distribution: moments, frequencies, shapes, dtypes, gradients, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg


@pytest.fixture(autouse=True)
def seeded() -> None:
    mg.manual_seed(0)


def test_what_is_like_another_tensor_has_its_shape_dtype_and_device():
    model = mg.zeros(2, 3, dtype="float64")
    for made in (mg.rand_like(model), mg.randn_like(model), mg.empty_like(model)):
        assert (made.shape, made.dtype, made.device) == ((2, 3), np.float64, "cpu")
    assert mg.randn_like(model, dtype="float32", requires_grad=True).requires_grad


def test_uniform_fills_its_range_and_normal_has_its_moments():
    x = mg.uniform(-2.0, 6.0, (20_000,)).numpy()
    assert x.dtype == np.float32 and x.min() >= -2 and x.max() < 6 and abs(x.mean() - 2) < 0.1
    y = mg.normal(mg.tensor([[1.0], [-3.0]]), mg.tensor([0.5, 2.0]), size=(20_000, 2, 2)).numpy()
    np.testing.assert_allclose(y.mean(0), [[1, 1], [-3, -3]], atol=0.1)
    np.testing.assert_allclose(y.std(0), [[0.5, 2], [0.5, 2]], rtol=0.05)


def test_gradients_pass_to_the_parameters_of_normal_and_uniform():
    mean, std = mg.zeros(3, requires_grad=True), mg.ones(3, requires_grad=True)
    drawn = mg.normal(mean, std)
    drawn.sum().backward()
    np.testing.assert_allclose(mean.grad.numpy(), 1)
    np.testing.assert_allclose(std.grad.numpy(), drawn.numpy())
    high = mg.tensor(4.0, requires_grad=True)
    drawn = mg.uniform(0.0, high)
    drawn.backward()
    np.testing.assert_allclose(high.grad.item() * 4, drawn.item(), rtol=1e-6)


def test_bernoulli_is_1_as_often_as_its_probability_says():
    p = mg.tensor([0.0, 0.3, 1.0], dtype="float64")
    drawn = mg.bernoulli(p, (20_000, 3)).numpy()
    assert drawn.dtype == np.float64 and set(np.unique(drawn)) == {0, 1}
    np.testing.assert_allclose(drawn.mean(0), p.numpy(), atol=0.02)


@pytest.mark.parametrize("replacement", [True, False])
def test_multinomial_draws_each_place_as_often_as_its_weight_says(replacement):
    weights = np.array([1.0, 2.0, 0.0, 5.0, 0.0])
    if replacement:
        drawn = mg.multinomial(weights, 20_000, replacement=True).numpy()
    else:
        drawn = mg.multinomial(np.tile(weights, (20_000, 1)), 2).numpy()
        assert (drawn[:, 0] != drawn[:, 1]).all()
        second = np.bincount(drawn[drawn[:, 0] == 3, 1], minlength=5)  # after the last has gone
        np.testing.assert_allclose(second / second.sum(), [1 / 3, 2 / 3, 0, 0, 0], atol=0.03)
        drawn = drawn[:, 0]
    np.testing.assert_allclose(np.bincount(drawn, minlength=5) / 20_000, weights / 8, atol=0.02)


def test_draws_on_the_device_stay_there():
    pytest.importorskip("support.fake_device")
    p = mg.full((3, 4), 0.5, device="fake")
    for drawn in (mg.bernoulli(p), mg.multinomial(p, 2), mg.multinomial(p, 2, replacement=True), mg.normal(p, p)):
        assert drawn.device == "fake:0" or drawn.device == "fake"


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: mg.bernoulli(1.5), "probability"),
        (lambda: mg.normal(0.0, -1.0), "standard deviation"),
        (lambda: mg.multinomial([0.0, 1.0], 2), "at most 1.*\n.*\n.*replacement=True"),
        (lambda: mg.multinomial([-1.0, 1.0], 1), "from 0 up"),
        (lambda: mg.multinomial([1.0, 1.0], 0), "from 1 up"),
    ],
)
def test_impossible_parameters_are_refused(call, told):
    with pytest.raises(mg.MinigradError, match=told):
        call()


def test_equality_and_closeness_give_true_or_false():
    a, b = mg.tensor([1.0, np.nan]), np.array([1.0 + 1e-7, np.nan])
    assert mg.allclose(a, b, equal_nan=True) is True and mg.allclose(a, b) is False
    assert mg.array_equal([1, 2], mg.tensor([1, 2])) is True and mg.array_equal([1, 2], [[1, 2]]) is False
    assert mg.array_equal(a, a, equal_nan=True) is True and mg.array_equal(a, a) is False
    assert mg.array_equiv([1, 2], [[1, 2], [1, 2]]) is True and mg.array_equiv([1, 2], [1, 2, 3]) is False
