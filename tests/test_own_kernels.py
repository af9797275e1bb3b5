"""Kernels of one's own: a mistake in what they return is named."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.kernels import FUSED, Kernel, fused

rng = np.random.default_rng(0)


@pytest.fixture
def doubling():
    """A function that makes an op of a kernel, whose backward is right unless it is given."""
    before = dict(FUSED)

    def make(forward, backward=lambda g, kept, needs, x: (2 * g,)):
        def doubled(x):
            return x + x

        op = fused(doubled)
        op.kernels["numpy"] = Kernel(forward, backward, lambda x: True)
        return op

    yield make
    FUSED.clear()
    FUSED.update(before)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (lambda g: None, "backward gave no tuple of gradients for 1 input\n"),
        (lambda g: 2 * g, "backward gave no tuple of gradients for 1 input\n"),
        (lambda g: (), "backward gave 0 gradients for 1 input\n"),
        (lambda g: (g, g), "backward gave 2 gradients for 1 input\n"),
        (lambda g: (2.0,), "backward gave a gradient that is not an array\n"),
    ],
)
@pytest.mark.parametrize("rows", [1, 3])
def test_a_backward_that_returns_something_else_than_gradients_is_named(doubling, given, problem, rows):
    op = doubling(lambda x: (x + x, None), lambda g, kept, needs, x: given(g))
    x = mg.tensor(rng.standard_normal((rows, 2)), requires_grad=True)
    with pytest.raises(mg.MinigradError) as caught:
        op(x).sum().backward()
    assert str(caught.value).startswith(f"the numpy kernel of doubled: {problem}")


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_forward_that_returns_only_the_output_is_named(doubling, rows):
    op = doubling(lambda x: x + x)
    with pytest.raises(mg.MinigradError, match="the numpy kernel of doubled: forward gave something else") as caught:
        op(mg.tensor(rng.standard_normal((rows, 5))))
    assert f"({rows}, 5) float64" in str(caught.value)


def test_a_mistake_is_named_also_after_calls_that_were_right(doubling):
    results = iter([(2.0,), (2.0, 2.0)])
    op = doubling(lambda x: (x + x, None), lambda g, kept, needs, x: tuple(factor * g for factor in next(results)))
    x = mg.tensor(rng.standard_normal(3), requires_grad=True)
    op(x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.full(3, 2.0))
    with pytest.raises(mg.MinigradError, match="backward gave 2 gradients for 1 input"):
        op(x).sum().backward()


def test_a_kernel_of_a_function_needs_a_backward_when_a_gradient_is_asked_for(doubling):
    op = doubling(lambda x: (x + x, None), None)
    assert op(mg.tensor([1.0])).tolist() == [2.0]
    with pytest.raises(mg.MinigradError, match="the numpy kernel of doubled: there is no backward"):
        op(mg.tensor([1.0], requires_grad=True)).sum().backward()


def test_a_joint_rule_that_forgets_an_input_is_named():
    @mg.op
    def product(xp, a, b):
        return a * b

    @product.vjp
    def rule(g, a, b):
        return (g * b,)

    with pytest.raises(mg.MinigradError, match="rule of product gave 1 gradient for 2 inputs"):
        product(mg.tensor([1.0], requires_grad=True), mg.tensor([1.0], requires_grad=True)).sum().backward()


@pytest.mark.parametrize("share", [lambda x: x, lambda x: x[...], lambda x: x[::1]])
def test_what_a_kernel_returned_of_its_input_is_written_to_without_harm(doubling, share):
    op = doubling(lambda x: (share(x), None), lambda g, kept, needs, x: (g,))
    x = mg.tensor(rng.standard_normal(3), requires_grad=True)
    before = x.numpy().copy()
    y = op(x)
    y += 1
    (y * y).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * (before + 1))
    np.testing.assert_array_equal(x.numpy(), before)
