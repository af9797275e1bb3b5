"""What a compiled function may be, draw, read and return: each works, or is refused, and nothing is of yesterday."""

import dataclasses
import random
from random import gauss

import numpy as np
import pytest
from numpy.random import rand

import minigrad as mg

x = mg.tensor([1.0, -2.0, 3.0])
rng, old, own = np.random.default_rng(0), np.random.RandomState(0), random.Random(0)


def noisy(x):
    return x * random.random()


def in_closure():
    drawn = np.random.default_rng(1)
    return lambda x: x * drawn.uniform()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * np.random.rand(), lambda x: x * rand(), lambda x: x * rng.random(), lambda x: x * old.rand(),
        lambda x: x * random.random(), lambda x: x * gauss(0, 1), lambda x: x * own.random(), lambda x: noisy(x),
        in_closure(),
    ],
    ids=["np.random", "of numpy.random", "Generator", "RandomState", "random", "of random", "Random", "helper", "closure"],
)  # fmt: skip
def test_random_numbers_of_others_are_refused_not_frozen(function):
    with pytest.raises(mg.MinigradError, match="draws random numbers of NumPy or Python"):
        mg.compile(function)(x)


def test_a_generator_that_is_named_and_not_drawn_from_is_no_obstacle():
    assert mg.compile(lambda x: x * 2 if rng is not None else x)(x).tolist() == [2, -4, 6]


def through_data(x):
    return x * float(x.data.max())


class Scaled(mg.nn.Module):
    def reset(self):
        self.weight.data[...] = 1

    def __init__(self):
        self.weight = mg.nn.Parameter(mg.ones(3) * 2)

    def forward(self, x):
        return x * self.weight


class Scaling(Scaled):
    def forward(self, x):
        return x * float(self.weight.data[0])


@pytest.mark.parametrize(
    "function", [through_data, lambda x: through_data(x), Scaling()], ids=["own", "helper", "module"]
)
def test_a_read_of_data_is_refused_by_the_name_of_its_function(function):
    name = "Scaling.forward" if isinstance(function, Scaling) else "through_data"
    with pytest.raises(mg.MinigradError, match=f"{name} reads .data"):
        mg.compile(function)(x)


def test_other_methods_of_a_module_may_read_data():
    module = Scaled()
    compiled = mg.compile(module)
    assert compiled(x).tolist() == [2, -4, 6]
    module.reset()
    assert compiled(x).tolist() == [1, -2, 3]


@dataclasses.dataclass
class Batch:
    data: mg.Tensor


def test_an_argument_may_have_something_called_data():
    double = mg.compile(lambda batch: batch.data * 2)
    for scale in (1.0, 3.0, 5.0):
        assert double(Batch(x * scale)).tolist() == [2 * scale, -4 * scale, 6 * scale]


class Box:
    def __init__(self, tensor):
        self.tensor = tensor


def one_by_one(x):
    yield x


@pytest.mark.parametrize(
    "function",
    [lambda x: Box(x * 2), lambda x: [Box(x)], lambda x: lambda y: x * y, one_by_one, lambda x: map(abs, [x])],
    ids=["object", "object with an argument", "closure", "generator", "map"],
)
def test_a_result_that_would_keep_old_tensors_is_refused(function):
    with pytest.raises(mg.MinigradError, match="returns an object whose tensors would be those of the first call"):
        mg.compile(function)(x)


def test_what_holds_the_same_tensors_at_each_call_may_be_returned():
    module = Scaled()
    compiled = mg.compile(lambda x: (module(x), module, Batch(x)))
    for scale in (1.0, 2.0, 3.0):
        value, same, batch = compiled(x * scale)
        assert same is module and value.tolist() == [2 * scale, -4 * scale, 6 * scale]
        assert batch.data.tolist() == (x * scale).tolist()


class Layer:
    """A class of one's own with a compiled method."""

    def __init__(self, scale):
        self.scale, self.weight = scale, mg.tensor([1.0, 2.0, 3.0], requires_grad=True)

    @mg.compile
    def run(self, x, shift=0.0):
        """Scale and shift."""
        return x * self.scale * self.weight + shift


def test_methods_can_be_compiled():
    two, ten = Layer(2.0), Layer(10.0)
    for _ in range(3):
        assert two.run(x).tolist() == [2, -8, 18] and ten.run(x, shift=1.0).tolist() == [11, -39, 91]
    two.scale, two.weight = 3.0, mg.ones(3)
    assert two.run(x).tolist() == Layer.run(two, x).tolist() == [3, -6, 9]
    ten.run(x).sum().backward()
    assert ten.weight.grad.tolist() == [10, -20, 30]
    assert "loop" in ten.run.explain() and ten.run.__doc__ == "Scale and shift."


class Net(mg.nn.Module):
    def __init__(self):
        self.linear, self.dropout = mg.nn.Linear(3, 4), mg.nn.Dropout(0.5)

    @mg.compile
    def forward(self, x):
        return self.dropout(self.linear(x).relu())


def test_the_forward_of_a_module_can_be_compiled():
    net = Net().eval()
    for _ in range(2):
        np.testing.assert_allclose(net(x).numpy(), net.linear(x).relu().numpy(), rtol=1e-6)
    net.train()
    assert any(net(x).tolist() != net(x).tolist() for _ in range(20))
    optimizer = mg.optim.SGD(net.parameters(), lr=0.1)
    before = net.linear.bias.tolist()
    net.eval()(x).sum().backward()
    optimizer.step()
    assert net.linear.bias.tolist() != before
    np.testing.assert_allclose(net(x).numpy(), net.linear(x).relu().numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    "function", [lambda x: mg.sort(x, axis=1), lambda x: mg.median(x, axis=1), lambda x: mg.sort(x, axis=0)],
    ids=["sort", "median", "sort columns"],
)  # fmt: skip
def test_gradients_of_what_is_sorted_are_compiled(function):
    scores = mg.tensor(rng.normal(size=(5, 4)), requires_grad=True)
    weights = mg.tensor(rng.normal(size=function(scores).shape))
    for _ in range(2):
        (got,) = mg.autograd.grad((mg.compile(function)(scores) * weights).sum(), [scores])
        (wanted,) = mg.autograd.grad((function(scores) * weights).sum(), [scores])
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-12)
