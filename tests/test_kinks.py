"""What the gradient is where there is none in mathematics: at ties, corners, borders and zeros."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

import minigrad as mg

pytestmark = pytest.mark.usefixtures("ordinary_ops")
F = mg.nn.functional
POINTS: dict[str, tuple[Any, list[float], list[float]]] = {  # what -> function, where, and the gradient of its sum
    "abs is flat at 0": (mg.abs, [0.0, -0.0, 2.0, -2.0], [0.0, 0.0, 1.0, -1.0]),
    "relu is flat at 0": (mg.relu, [0.0, -0.0, 1.0], [0.0, 0.0, 1.0]),
    "leaky_relu takes the left slope at 0": (mg.leaky_relu, [0.0, 1.0], [0.01, 1.0]),
    "elu takes the left slope at 0": (lambda x: mg.elu(x, alpha=0.5), [0.0, 1.0], [0.5, 1.0]),
    "clip passes the gradient on its borders": (
        lambda x: mg.clip(x, -1.0, 1.0),
        [-2.0, -1.0, 0.0, 1.0, 2.0],
        [0.0, 1.0, 1.0, 1.0, 0.0],
    ),
    "hardtanh stops the gradient on its borders": (mg.hardtanh, [-2.0, -1.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0]),
    "hardsigmoid stops the gradient on its borders": (mg.hardsigmoid, [-3.0, 0.0, 3.0], [0.0, 1 / 6, 0.0]),
    "softsign has slope 1 at 0": (mg.softsign, [0.0], [1.0]),
    "sign, floor and round are flat everywhere": (
        lambda x: mg.sign(x) + mg.floor(x) + mg.round(x),
        [0.0, 0.5, 1.0],
        [0.0, 0.0, 0.0],
    ),
    "the largest elements share the gradient": (mg.max, [3.0, 1.0, 3.0, 3.0], [1 / 3, 0.0, 1 / 3, 1 / 3]),
    "the smallest elements share the gradient": (mg.min, [3.0, 1.0, 3.0, 1.0], [0.0, 0.5, 0.0, 0.5]),
    "the largest of what is scattered to a place share the gradient": (
        lambda x: mg.scatter_reduce(mg.tensor([2.0], dtype="float64"), 0, [0, 0, 0], x, "amax"),
        [2.0, 1.0, 2.0],
        [1 / 3, 0.0, 1 / 3],
    ),
    "sort is stable, so the first of equals stays first": (
        lambda x: (mg.sort(x) * mg.tensor([1.0, 2.0, 3.0], dtype="float64")).sum(),
        [2.0, 1.0, 1.0],
        [3.0, 1.0, 2.0],
    ),
    "topk picks the first of equals": (lambda x: mg.topk(x, 1)[0], [2.0, 2.0, 1.0], [1.0, 0.0, 0.0]),
    "the norm is flat at 0": (mg.norm, [0.0, 0.0], [0.0, 0.0]),
    "the standard deviation of equal numbers is flat": (mg.std, [2.0, 2.0, 2.0], [0.0, 0.0, 0.0]),
    "the largest absolute value shares between signs": (
        lambda x: mg.norm(x, ord=math.inf),
        [2.0, -2.0, 1.0],
        [0.5, -0.5, 0.0],
    ),
    "a product with one zero": (mg.prod, [2.0, 0.0, 5.0], [0.0, 10.0, 0.0]),
    "a product with two zeros": (mg.prod, [0.0, 0.0, 5.0], [0.0, 0.0, 0.0]),
    "x ** 2 and x ** 1 at 0": (lambda x: x**2 + x**1, [0.0], [1.0]),
    "x ** 0 at 0": (lambda x: x**0, [0.0, 2.0], [0.0, 0.0]),
    "0 to a power that is a tensor": (lambda x: mg.power(0.0, x), [0.0, 1.0, 2.0], [0.0, 0.0, 0.0]),
    "0 to a negative power that is a tensor": (lambda x: mg.power(0.0, x), [-1.0], [-math.inf]),
    "copysign is flat at 0, and asks zeros for their sign": (
        lambda x: mg.copysign(x, mg.tensor([1.0, 0.0, -0.0], dtype="float64")),
        [0.0, 2.0, 2.0],
        [0.0, 1.0, -1.0],
    ),
    "xlogy is flat at 0 and 0, and infinitely steep beside it": (
        lambda x: mg.xlogy(x, mg.tensor([0.0, 0.0], dtype="float64")),
        [0.0, 2.0],
        [0.0, -math.inf],
    ),
    "xlog1py is flat at 0 and -1, and infinitely steep beside it": (
        lambda x: mg.xlog1py(x, mg.tensor([-1.0, -1.0], dtype="float64")),
        [0.0, 2.0],
        [0.0, -math.inf],
    ),
    "the square root is infinitely steep at 0": (mg.sqrt, [0.0, 4.0], [math.inf, 0.25]),
    "the absolute error is flat where it is 0": (
        lambda x: F.l1_loss(x, mg.tensor([1.0, 0.0], dtype="float64"), reduction="sum"),
        [1.0, 2.0],
        [0.0, 1.0],
    ),
    "logsumexp ignores minus infinity": (mg.logsumexp, [-math.inf, 0.0, 0.0], [0.0, 0.5, 0.5]),
    "logsumexp of nothing but minus infinity is flat": (mg.logsumexp, [-math.inf, -math.inf], [0.0, 0.0]),
    "the first of equals gets the gradient of a pooling": (
        lambda x: F.max_pool2d(x.reshape(1, 1, 2, 2), 2),
        [1.0, 3.0, 3.0, 0.0],
        [0.0, 1.0, 0.0, 0.0],
    ),
}


def gradient(function: Any, *points: Any) -> list[np.ndarray]:
    leaves = [mg.tensor(p, dtype="float64", requires_grad=True) for p in points]
    with np.errstate(all="ignore"):
        result = function(*leaves)
        return [g.numpy() for g in mg.autograd.grad(result.sum(), leaves)]


@pytest.mark.parametrize("what", list(POINTS))
def test_gradient_at_a_kink(what: str) -> None:
    function, point, expected = POINTS[what]
    np.testing.assert_allclose(gradient(function, point)[0], expected, rtol=1e-14)


@pytest.mark.parametrize("function", [mg.maximum, mg.minimum], ids=["maximum", "minimum"])
def test_equal_arguments_get_half_the_gradient_each(function: Any) -> None:
    for g in gradient(function, [1.0, 2.0], [1.0, 2.0]):
        np.testing.assert_array_equal(g, [0.5, 0.5])


def test_limits_of_clip_get_the_gradient_only_beyond_them() -> None:
    a, low, high = gradient(mg.clip, [-2.0, -1.0, 0.0, 1.0, 2.0], [-1.0] * 5, [1.0] * 5)
    np.testing.assert_array_equal(a, [0, 1, 1, 1, 0])
    np.testing.assert_array_equal(low, [1, 0, 0, 0, 0])
    np.testing.assert_array_equal(high, [0, 0, 0, 0, 1])


def test_largest_along_an_axis_is_shared_within_each_row_only() -> None:
    (g,) = gradient(lambda x: mg.max(x, axis=1), [[1.0, 1.0], [0.0, 5.0]])
    np.testing.assert_array_equal(g, [[0.5, 0.5], [0.0, 1.0]])


def test_fully_masked_attention_row_gives_zeros_and_finite_gradients() -> None:
    mask = mg.tensor([[False, False], [True, True]])
    q, k, v = ([[0.3, -1.0], [2.0, 0.5]] for _ in range(3))
    out = F.scaled_dot_product_attention(*(mg.tensor(x, dtype="float64") for x in (q, k, v)), mask)
    np.testing.assert_array_equal(out.numpy()[0], [0.0, 0.0])
    gq, gk, gv = gradient(lambda q, k, v: mg.sin(F.scaled_dot_product_attention(q, k, v, mask)), q, k, v)
    np.testing.assert_array_equal(gq[0], [0.0, 0.0])
    assert np.isfinite(gq).all() and np.isfinite(gk).all() and np.isfinite(gv).all() and gk.any()


def test_arctan2_is_flat_at_the_origin() -> None:
    for g in gradient(mg.arctan2, [0.0, 0.0], [0.0, 2.0]):
        assert g[0] == 0


def test_the_gradient_of_a_large_determinant_is_taken_by_the_inverse() -> None:
    diagonal = np.linspace(0.5, 1.5, 40)
    (g,) = gradient(mg.det, np.diag(diagonal))
    np.testing.assert_allclose(g, np.diag(diagonal.prod() / diagonal), rtol=1e-12)


def test_the_gradient_of_a_long_mean_of_halves_is_no_zero() -> None:
    x = mg.zeros(70_000, dtype="float16", requires_grad=True)  # a float16 ends at 65504
    (g,) = mg.autograd.grad(x.mean() * 64, [x])
    np.testing.assert_array_equal(g.numpy(), np.float16(64) * np.float16(1 / 70_000))


def test_gradient_of_cholesky_is_symmetric() -> None:
    (g,) = gradient(lambda a: mg.cholesky(a) ** 3, [[[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]]])
    np.testing.assert_array_equal(g, g.swapaxes(-1, -2))
    assert g[0, 0, 1] != 0


def test_padding_row_of_an_embedding_gets_no_gradient() -> None:
    (g,) = gradient(lambda w: F.embedding(mg.tensor([0, 2, 2, 1]), w, padding_idx=2), np.ones((3, 2)))
    np.testing.assert_array_equal(g, [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]])


def test_of_repeated_places_only_the_last_written_value_gets_a_gradient() -> None:
    base, value = gradient(
        lambda a, v: mg.put_along_axis(a, indices=np.array([1, 0, 1]), values=v, axis=0),
        [1.0, 2.0, 3.0],
        [4.0, 5.0, 6.0],
    )
    np.testing.assert_array_equal(base, [0.0, 0.0, 1.0])
    np.testing.assert_array_equal(value, [0.0, 1.0, 1.0])

    def write(a: Any, v: Any) -> Any:
        a = a.clone()
        a[[2, 2, 0]] = v
        return a

    base, value = gradient(write, [1.0, 2.0, 3.0], [4.0, 5.0, 6.0])
    np.testing.assert_array_equal(base, [0.0, 1.0, 0.0])
    np.testing.assert_array_equal(value, [0.0, 1.0, 1.0])


CHECKS = [  # for test_mutation.py, as functions without arguments
    *(partial(test_gradient_at_a_kink, what) for what in POINTS),
    partial(test_equal_arguments_get_half_the_gradient_each, mg.maximum),
    partial(test_equal_arguments_get_half_the_gradient_each, mg.minimum),
    test_arctan2_is_flat_at_the_origin,
    test_gradient_of_cholesky_is_symmetric,
    test_the_gradient_of_a_large_determinant_is_taken_by_the_inverse,
    test_the_gradient_of_a_long_mean_of_halves_is_no_zero,
]
