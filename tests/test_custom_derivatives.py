"""Gradients given by hand, and those of fixed points: to second order, against formulas and plain differentiation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad.check import gradcheck
from minigrad.errors import ArgumentError, GradientError

X = mg.tensor(np.random.default_rng(0).uniform(0.5, 1.5, 4), requires_grad=True)


def near(got: Any, expected: Any, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=tolerance, atol=tolerance)


def product() -> Any:
    @mg.custom_vjp
    def product(x: mg.Tensor, y: mg.Tensor) -> mg.Tensor:
        return x * mg.sin(y)

    product.defvjp(
        lambda x, y: (x * mg.sin(y), (x, y)), lambda kept, g: (g * mg.sin(kept[1]), g * kept[0] * mg.cos(kept[1]))
    )
    return product


def test_a_gradient_given_by_hand_is_right_to_second_order() -> None:
    assert gradcheck(product(), (X, mg.tensor(X.numpy() * 2, requires_grad=True)), order=2)


def test_the_rule_is_used_and_not_the_function() -> None:
    @mg.custom_vjp
    def f(x: mg.Tensor) -> mg.Tensor:
        return x * 3

    f.defvjp(lambda x: (x * 3, None), lambda kept, g: (g * 7,))
    near(mg.grad(lambda x: f(x).sum())(X), mg.full((4,), 7.0, dtype="float64"))
    with mg.no_grad():
        near(f(X), X * 3)


def test_several_results_and_arguments_without_gradients() -> None:
    @mg.custom_vjp
    def f(x: mg.Tensor, n: int) -> Any:
        return x * n, x + n

    f.defvjp(lambda x, n: ((x * n, x + n), n), lambda n, g: (g[0] * n + g[1], None))
    near(mg.grad(lambda x: sum(part.sum() for part in f(x, 3)))(X), mg.full((4,), 4.0, dtype="float64"))


def test_mistakes_in_a_rule_are_named() -> None:
    w = mg.tensor(2.0, requires_grad=True, dtype="float64")
    hidden = mg.custom_vjp(lambda x: x * w)
    with pytest.raises(GradientError, match="no derivative was given"):
        hidden(X)
    hidden.defvjp(lambda x: (x * w, None), lambda kept, g: (g,))
    with pytest.raises(GradientError, match="besides its arguments"):
        hidden(X)
    short = mg.custom_vjp(lambda x, y: x)
    short.defvjp(lambda x, y: (x * 1, None), lambda kept, g: (g,))
    with pytest.raises(GradientError, match="a tuple of 2"):
        short(X, X * 1).sum().backward()


def root(a: mg.Tensor) -> mg.Tensor:
    return mg.fixed_point(lambda x, a: (x + a / x) / 2, mg.ones(*a.shape, dtype="float64"), a, tolerance=1e-14)


def test_a_fixed_point_has_the_derivatives_of_what_it_solves() -> None:
    near(root(X), mg.sqrt(X))
    near(mg.grad(lambda a: root(a).sum())(X), 0.5 / mg.sqrt(X))
    second = mg.grad(lambda a: mg.grad(lambda a: root(a).sum())(a).sum())(X)
    near(second, -0.25 * X.detach() ** -1.5)


def test_a_fixed_point_passes_gradients_to_what_its_function_holds() -> None:
    w = mg.tensor(np.random.default_rng(1).standard_normal((4, 4)) * 0.1, requires_grad=True)
    b = mg.tensor(np.random.default_rng(2).standard_normal(4), requires_grad=True)
    solved = mg.fixed_point(lambda x: mg.tanh(w @ x + b), mg.zeros(4, dtype="float64"), tolerance=1e-14)
    grads = mg.autograd.grad(solved.sum(), [w, b])
    x = mg.zeros(4, dtype="float64")
    for _ in range(60):
        x = mg.tanh(w @ x + b)
    for got, expected in zip(grads, mg.autograd.grad(x.sum(), [w, b])):
        near(got, expected)


def test_steps_that_do_not_come_to_rest_are_refused() -> None:
    with pytest.raises(ArgumentError, match="do not come to rest"):
        mg.fixed_point(lambda x: 2 * x + 1, mg.tensor(1.0))


def tripled() -> Any:
    """Doubles, with a gradient of 3, so that it shows which derivative was taken."""

    @mg.custom_vjp
    def tripled(x: mg.Tensor) -> mg.Tensor:
        return x * 2

    tripled.defvjp(lambda x: (x * 2, x), lambda kept, g: (g * 3 + kept * 0,))
    return tripled


@pytest.mark.filterwarnings("ignore:vmap")
def test_the_rule_is_used_in_batches_and_forward_mode_and_not_lost_by_the_compiler() -> None:
    f, x = tripled(), mg.tensor([1.0, 2.0])
    for found in (
        mg.grad(lambda x: mg.vmap(f)(x).sum())(x),
        mg.vmap(mg.grad(lambda x: f(x).sum()))(x),
        mg.jvp(f, (x,), (mg.ones(2),))[1],
        mg.compile(mg.grad(lambda x: f(x).sum()))(x),
    ):
        assert found.tolist() == [3.0, 3.0]
    assert mg.compile(f)(x).tolist() == [2.0, 4.0]
    with pytest.raises(GradientError, match="custom_vjp has a derivative of its own"):
        mg.compile(f)(mg.tensor([1.0, 2.0], requires_grad=True))


@pytest.mark.filterwarnings("ignore:vmap")
def test_a_fixed_point_is_iterated_to_its_end_in_batches_and_forward_mode_and_refused_by_the_compiler() -> None:
    a, one = mg.tensor([4.0, 9.0], dtype="float64"), mg.tensor(4.0, dtype="float64")
    near(mg.vmap(root)(a), mg.sqrt(a))
    near(mg.grad(lambda a: mg.vmap(root)(a).sum())(a), 0.5 / mg.sqrt(a))
    near(mg.jvp(root, (one,), (one,))[1], one / 4)
    with pytest.raises(GradientError, match="fixed_point looks at the value"):
        mg.compile(root)(one)


def test_a_write_between_the_value_and_its_gradient_is_refused() -> None:
    for f in (tripled(), root):
        x = mg.tensor(4.0, dtype="float64", requires_grad=True)
        y = f(x)
        with mg.no_grad():
            x[...] = 9.0
        with pytest.raises(GradientError, match="overwritten in place"):
            y.backward()


def test_a_result_that_is_the_argument_has_memory_of_its_own() -> None:
    @mg.custom_vjp
    def same(x: mg.Tensor) -> mg.Tensor:
        return x

    same.defvjp(lambda x: (x, None), lambda kept, g: (g,))
    x = mg.tensor([1.0], requires_grad=True)
    y = same(x)
    y += 1
    assert x.tolist() == [1.0]
