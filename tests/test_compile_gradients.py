"""What a compiled training step does with gradients before the optimiser's step is done at each call, or refused."""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile import TraceError

F, nn = mg.nn.functional, mg.nn


def batch(seed):
    return mg.tensor(np.random.default_rng(seed).normal(size=(5, 3)).astype("float32"))


def scale(params):
    for p in params:
        p.grad = p.grad * 0.5
        p.grad *= 0.5


@pytest.mark.parametrize(
    "change, width",  # narrow: one compiled function; wide: a plan of loops
    [
        (lambda params: nn.utils.clip_grad_norm_(params, 0.5), 2),
        (lambda params: nn.utils.clip_grad_norm_(params, 1.0, norm_type=math.inf), 400),
        (lambda params: nn.utils.clip_grad_value_(params, 0.2), 2),
        (scale, 2),
    ],
    ids=["norm", "largest", "value", "scaled"],
)
def test_gradients_that_a_step_changes_are_changed_at_each_call(change, width):
    def made(compiled):
        mg.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, 2))
        optimizer = mg.optim.SGD(net.parameters(), lr=0.1 / width)

        def step(x):
            optimizer.zero_grad()
            loss = (net(x) ** 2).mean() * 10
            loss.backward()
            norm = change(list(net.parameters()))
            optimizer.step()
            return loss, loss if norm is None else norm

        return net, mg.compile(step) if compiled else step

    (net, step), (plain_net, plain_step) = made(True), made(False)
    for seed in range(4):
        ours, theirs = step(batch(seed)), plain_step(batch(seed))
        for mine, other in zip(ours, theirs):
            assert float(mine) == pytest.approx(float(other), rel=1e-4)
        for p, q in zip(net.parameters(), plain_net.parameters()):
            np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-3, atol=1e-5)
            np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-3, atol=1e-5)


def test_gradients_are_cleared_at_each_call_whether_there_are_new_ones_or_not():
    used, unused = nn.Linear(3, 2), nn.Linear(3, 2)
    optimizer = mg.optim.SGD([*used.parameters(), *unused.parameters()], lr=0.05)

    @mg.compile
    def predict(x):
        optimizer.zero_grad()
        return used(x)

    @mg.compile
    def step(x):
        optimizer.zero_grad()
        loss = used(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    for function in (predict, step):
        for _ in range(3):
            (used(batch(0)).sum() + unused(batch(0)).sum()).backward()
            function(batch(1))
            assert unused.bias.grad is None
            assert (used.bias.grad is None) == (function is predict)


def test_a_product_of_the_same_numbers_is_a_part_of_a_small_step(recwarn):
    net = nn.Linear(3, 2)

    @mg.compile
    def step(x):
        loss = net(x).sum()  # its gradient is a matrix of ones
        net.zero_grad()
        loss.backward()
        return loss

    for seed in range(3):
        step(batch(seed))
        expected = np.broadcast_to(batch(seed).numpy().sum(axis=0), (2, 3))
        np.testing.assert_allclose(net.weight.grad.numpy(), expected, rtol=1e-5)
    assert not [w for w in recwarn if "could not be compiled" in str(w.message)]


@pytest.mark.parametrize("write", [
    lambda net, other: nn.init.normal_(net.weight),
    lambda net, other: net.load_state_dict(other),
], ids=["initialised", "loaded"])  # fmt: skip
def test_a_write_that_no_op_makes_is_refused(write):
    net, other = nn.Linear(3, 2), nn.Linear(3, 2).state_dict()

    @mg.compile
    def refused(x):
        write(net, other)
        return net(x)

    with pytest.raises(TraceError, match="written to by something else than an op"):
        refused(batch(0))


def test_a_hook_inside_is_called_by_a_backward_inside_and_otherwise_refused():
    weight = mg.tensor([1.0, 2.0], requires_grad=True)

    def loss_of(x):
        product = weight * x
        product.register_hook(lambda g: g * 10)
        return product.sum()

    @mg.compile
    def step(x):
        weight.grad = None
        loss = loss_of(x)
        loss.backward()
        return loss

    for k in range(1, 4):
        step(mg.tensor([k, 1.0]))
        assert weight.grad.tolist() == [10.0 * k, 10.0]
    with pytest.raises(TraceError, match="a hook on a tensor inside loss_of would not be called"):
        mg.compile(loss_of)(mg.tensor([1.0, 1.0]))
