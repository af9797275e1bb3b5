"""Sorting, searching and counting: order among equal elements, NaN, the shift operators, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("kind", ["distinct", "ties", "NaN", "infinities", "integers", "booleans"])
@pytest.mark.parametrize("k", [1, 5, 100, 211])
def test_the_largest_few_of_many_are_those_that_a_stable_sort_puts_first(kind, largest, k):
    lines = np.random.default_rng(0).normal(size=(3, 211))
    lines = {"ties": np.round(lines), "integers": (lines * 5).astype("int64"), "booleans": lines > 1}.get(kind, lines)
    if kind in ("NaN", "infinities"):
        lines[0, ::7] = lines[2, 4:] = np.nan if kind == "NaN" else np.inf
        lines[1, ::9] = -np.inf
    order = mg.argsort(lines, axis=-1, descending=largest).numpy()[:, :k]
    values, positions = mg.topk(mg.tensor(lines.T), k, axis=0, largest=largest)
    np.testing.assert_array_equal(positions.numpy(), order.T)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(lines, order, -1).T)


def test_the_gradient_of_the_largest_few_goes_to_where_they_are():
    x = mg.tensor(np.random.default_rng(0).normal(size=(2, 100)), requires_grad=True)
    values, positions = mg.topk(x, 3)
    (values * mg.tensor([1.0, 2.0, 3.0], dtype="float64")).sum().backward()
    expected = np.zeros((2, 100))
    np.put_along_axis(expected, positions.numpy(), np.array([[1.0, 2.0, 3.0]]), -1)
    np.testing.assert_array_equal(x.grad.numpy(), expected)


def test_shift_operators_shift_bits():
    x = mg.tensor([1, 6, 8])
    assert (x << 2).tolist() == [4, 24, 32] and (x >> 1).tolist() == [0, 3, 4] and (1 << x).tolist() == [2, 64, 256]
    x <<= 1
    assert x.tolist() == [2, 12, 16]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: mg.bincount([1, -1]), "numbers from 0 up"),
        (lambda: mg.bincount([0.5]), "integer dtype"),
        (lambda: mg.bincount([[1]]), "1 axis"),
        (lambda: mg.bincount([1, 2], [0.5]), r"weights of shape \(2,\)"),
        (lambda: mg.histogram([1.0], bins="auto"), "not offered"),
        (lambda: mg.histogram([1.0], bins=0), "bins from 1 up"),
        (lambda: mg.histogram([1.0], bins=[2.0, 1.0]), "rising"),
        (lambda: mg.histogram([np.nan]), "finite numbers"),
        (lambda: mg.searchsorted([1.0, 2.0], 1.0, side="middle"), "'left' or 'right'"),
        (lambda: mg.searchsorted(np.ones((2, 3)), np.ones((3, 3))), "as many sorted lines"),
        (lambda: mg.nanargmax([np.nan, np.nan]), "nothing but NaN"),
        (lambda: mg.diff([1.0], n=-1), "from 0 up"),
        (lambda: mg.cumulative_sum(np.ones((2, 2))), "an axis"),
        (lambda: mg.polygamma(-1, mg.ones(1)), "from 0 up"),
        (lambda: mg.gcd(mg.ones(1), mg.ones(1)), "whole numbers"),
        (lambda: mg.sum(mg.ones(1), dtype="flaot32"), "did you mean 'float32'"),
        (lambda: mg.argsort(mg.ones(1), stable="yes"), "a bool"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_with_the_reason(call, told):
    with pytest.raises(mg.MinigradError, match=told):
        call()
