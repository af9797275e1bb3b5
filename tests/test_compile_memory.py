"""A compiled function writes to memory of its own, and to each part of it: nothing is left as it was, nothing overwritten.

What was freed before is filled with other numbers, since new memory often still holds the right ones.
"""

import gc

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import MinigradError


def poison(*sizes):
    """Leave numbers that nobody wants in the memory that is free now."""
    for size in sizes:
        del [np.full(size, -7.0) for _ in range(20)][:]


def numbers(*shape, seed=0):
    return mg.tensor(np.random.default_rng(seed).standard_normal(shape))


JOINED = {
    "a value twice": lambda x: (lambda q: mg.concatenate([q, q]))(x * x),
    "equal values": lambda x: mg.concatenate([x + 1, x + 1]),
    "a value around another": lambda x: (lambda q: mg.concatenate([q, x - 2, q]))(x * x),
    "angles": lambda x: mg.concatenate([mg.cos(x), mg.cos(x)], axis=-1),
    "loops one after the other": lambda x: mg.concatenate([mg.cumsum(x[:2]) * 2, mg.cumsum(x)[2:] * 3]),
    "a sum between": lambda x: mg.concatenate([x * 2, (x - x.sum()) * 3, mg.cumsum(x) * 4]),
}


@pytest.mark.parametrize("function", JOINED.values(), ids=JOINED)
def test_every_part_of_a_concatenation_is_written(function):
    compiled = mg.compile(function)
    for seed in range(4):
        x = numbers(5, seed=seed)
        expected = function(x).numpy()
        poison(5, 10, 15)
        np.testing.assert_allclose(compiled(x).numpy(), expected, rtol=1e-12)


def test_the_gradient_of_a_value_joined_with_itself():
    def loss(x, w):
        return (mg.concatenate([mg.cos(x * w), mg.cos(x * w)], axis=-1) * x.sum()).sum()

    compiled = mg.compile(loss)
    for seed in range(3):
        x, w = numbers(4, 3, seed=seed), numbers(3, seed=9).requires_grad_()
        (expected,) = mg.autograd.grad(loss(x, w), w)
        poison(12, 24)
        (found,) = mg.autograd.grad(compiled(x, w), w)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12)


@pytest.mark.parametrize("count", [1, 3])
def test_a_sum_of_what_was_added_along_an_axis_counts_every_index(count):
    x, index = numbers(3, 5), mg.tensor(np.array([[0, 1, 1], [2, 2, 2], [4, 0, 1]])[:, :count])

    def gradient(b):
        return mg.autograd.grad(mg.take_along_axis(x + b, index, axis=-1).sum(), b)[0]

    def total(values):
        return mg.scatter_add(mg.zeros(3, 5, dtype="float64"), indices=index, values=values, axis=-1).sum(axis=-1)

    for function, shape in ((gradient, (3, 1)), (total, (3, count)), (total, (3, 1))):
        compiled = mg.compile(function)
        for seed in range(3):
            given = numbers(*shape, seed=seed).requires_grad_()
            np.testing.assert_allclose(compiled(given).numpy(), function(given).numpy(), rtol=1e-12)


def test_what_an_op_of_ones_own_returns_a_view_of_is_left_alone():
    @mg.op
    def first_half(xp, a):
        return a[: len(a) // 2]

    def function(x):
        return mg.cumsum(first_half(x) * 2 + 1) + first_half(mg.cumsum(x))

    compiled = mg.compile(function)
    for seed in range(3):
        x = numbers(80, seed=seed)
        before = x.numpy().copy()
        expected = function(x).numpy()
        np.testing.assert_allclose(compiled(x).numpy(), expected, rtol=1e-12)
        np.testing.assert_array_equal(x.numpy(), before)


def test_arguments_that_share_memory_with_what_is_written_are_refused():
    @mg.compile
    def add_one(x, y):
        x[...] = x + 1
        return y * 2

    x, y = mg.tensor([1.0, 2.0]), mg.tensor([3.0, 4.0])
    for _ in range(2):
        np.testing.assert_array_equal(add_one(x, y).numpy(), [6, 8])
    before = x.numpy().copy()
    for shared in (x, x.detach(), mg.flip(x)):
        if shared is not x and not np.shares_memory(shared.numpy(), x.numpy()):
            continue
        with pytest.raises(MinigradError, match="share"):
            add_one(x, shared)
        np.testing.assert_array_equal(x.numpy(), before)


def test_parameters_that_come_to_share_memory_are_refused():
    a, b = (mg.nn.Parameter(mg.tensor([1.0, 2.0])) for _ in range(2))
    optimizer = mg.optim.SGD([a, b], lr=0.1)

    @mg.compile
    def step(x):
        optimizer.zero_grad()
        loss = (a * x + b).sum()
        loss.backward()
        optimizer.step()
        return loss

    x = mg.tensor([1.0, 1.0])
    for _ in range(3):
        step(x)
    b.data = a.data
    with pytest.raises(MinigradError, match="share"):
        step(x)
    with pytest.raises(MinigradError, match="share"):
        step(a.detach())


def test_no_search_for_cycles_interrupts_the_making_of_a_plan():
    inside: list[bool] = []

    def seen(x):
        inside.append(gc.isenabled())
        return mg.exp(x) * 2

    mg.compile(seen)(mg.ones(3, requires_grad=True)).sum().backward()
    assert inside == [False] and gc.isenabled()
