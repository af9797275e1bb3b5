"""What a compiled function is given, and what it refers to: nothing of it is frozen."""

import types
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import IndexingError
from minigrad.nn import functional as F

SCALE = np.float32(1)


class Pair(NamedTuple):
    x: Any
    labels: Any


@dataclass
class Record:
    x: Any
    labels: Any


HOLDERS = {
    "two": lambda x, labels: (x, labels),
    "tuple": lambda x, labels: ((x, labels),),
    "dict": lambda x, labels: ({"x": x, "labels": labels},),
    "named": lambda x, labels: (Pair(x, labels),),
    "record": lambda x, labels: (Record(x, labels),),
}


def parts(given):
    if len(given) == 2:
        return given
    (batch,) = given
    return batch.values() if isinstance(batch, dict) else batch if isinstance(batch, tuple) else vars(batch).values()


@pytest.mark.parametrize("holder", HOLDERS)
def test_an_array_that_numpy_code_counts_in_is_refused_not_frozen(holder):
    def counted(*given):
        x, labels = parts(given)
        return mg.tensor(x).sum() * int((labels != 0).sum())

    with pytest.raises(mg.MinigradError, match=r"looks at the value .*test_compile_arguments\.py:\d+"):
        mg.compile(counted)(*HOLDERS[holder](np.ones(3, np.float32), np.array([1, 0, 0])))


@pytest.mark.parametrize("holder", HOLDERS)
def test_an_array_that_ops_count_in_is_an_input(holder):
    @mg.compile
    def counted(*given):
        x, labels = parts(given)
        return mg.tensor(x).sum() * (labels != 0).sum()

    for labels in ([1, 0, 0], [1, 1, 0], [1, 1, 1]):
        given = HOLDERS[holder](np.ones(3, np.float32), np.array(labels))
        assert counted(*given).item() == 3 * sum(labels)
    assert len(counted.traces) == 1


def test_numbers_of_numpy_are_compared_by_value_as_arguments_and_as_globals():
    global SCALE
    times = mg.compile(lambda x, scale: (x * scale).sum())
    scaled = mg.compile(lambda x: (x * SCALE).sum())
    for k in (1, 2, 3, 4):
        SCALE = np.float32(k)
        assert times(mg.ones(3), np.float32(k)).item() == scaled(mg.ones(3)).item() == 3 * k


def test_any_setting_of_a_module_may_change():
    class Net(mg.nn.Module):
        def __init__(self):
            self.squash, self.sizes, self.factor = F.tanh, (1.0, 2.0), {"by": 2.0}

        def forward(self, x):
            return (self.squash(x) * self.sizes[0] * self.factor["by"]).sum()

    net, x = Net(), mg.tensor([-1.0, 2.0])
    compiled = mg.compile(lambda x: net(x))
    values = [compiled(x).item() for _ in range(3)]
    assert values == pytest.approx([2 * float(np.tanh([-1.0, 2.0]).sum())] * 3)
    net.squash = F.relu
    assert compiled(x).item() == 4.0
    net.sizes = (3.0, 2.0)
    assert compiled(x).item() == 12.0
    net.factor["by"] = 5.0
    assert compiled(x).item() == 30.0


@pytest.mark.parametrize("options", [{}, {"reduction": "sum"}, {"weight": True}, {"label_smoothing": 0.1}])
def test_the_labels_of_a_cross_entropy_may_change_and_are_checked(options):
    mg.manual_seed(0)
    layer, x = mg.nn.Linear(3, 5, dtype="float64"), mg.randn(4, 3, dtype="float64")
    options = {**options, "weight": mg.rand(5, dtype="float64")} if "weight" in options else options

    def loss(x, labels):
        return F.cross_entropy(layer(x), labels, **options)

    compiled = mg.compile(loss)
    for labels in ([0, 1, 2, 3], [0, -100, 4, 3], [4, 4, -100, 0]):
        results = []
        for function in (compiled, loss):
            layer.zero_grad()
            value = function(x, np.array(labels))
            value.backward()
            results.append(np.append(layer.weight.grad.numpy(), value.item()))
        np.testing.assert_allclose(*results, rtol=1e-12, atol=1e-14)
    for wrong in (5, -1):
        with pytest.raises(IndexingError, match="out of range"):
            compiled(x, np.array([0, 1, 2, wrong]))


def test_a_row_of_an_embedding_does_not_count_from_the_end():
    table = mg.nn.Embedding(4, 2)
    compiled = mg.compile(lambda rows: table(rows).sum())
    for rows in ([0, 3], [1, 1]):
        assert compiled(np.array(rows)).item() == pytest.approx(table.weight.numpy()[rows].sum())
    for wrong in (-1, 4):
        with pytest.raises(IndexingError, match="out of range"):
            compiled(np.array([0, wrong]))


def test_the_gradient_passes_a_tensor_that_was_made_and_written_to_inside():
    def marked(x):
        target = mg.zeros_like(x)
        target[:, 0] = 1
        return {"loss": (F.binary_cross_entropy_with_logits(x, target, reduction="sum"), len(x)), "top": x.max()}

    compiled, results = mg.compile(marked), []
    for function in (compiled, compiled, marked):
        x = mg.tensor([[0.5, -1.0], [2.0, 0.0]], dtype="float64", requires_grad=True)
        (function(x)["loss"][0] / 2).backward()
        results.append(x.grad.numpy())
    np.testing.assert_allclose(results[1], results[2], rtol=1e-12)
    np.testing.assert_allclose(results[0], results[2], rtol=1e-12)


@pytest.mark.parametrize(("pieces", "axis"), [(1, 1), (3, 1), (3, 0)])
def test_loops_read_the_pieces_of_a_split_and_leave_the_whole_alone(pieces, axis):
    def squares(x):
        return sum((piece**2).sum() * (k + 1) for k, piece in enumerate(mg.split(x, pieces, axis=axis)))

    x, compiled = mg.randn(6, 6, dtype="float64", requires_grad=True), mg.compile(squares)
    before = x.numpy().copy()
    for _ in range(2):
        x.grad = None
        compiled(x).backward()
    weights = np.repeat(np.arange(1, pieces + 1), 6 // pieces)
    np.testing.assert_array_equal(x.numpy(), before)
    np.testing.assert_allclose(x.grad.numpy(), 2 * before * (weights if axis else weights[:, None]), rtol=1e-12)


class Settings:
    scale = 2.0


class Slotted:
    __slots__ = ("scale",)

    def __init__(self):
        self.scale = 2.0


class Scaler:
    def __call__(self, x):
        return x * OUTSIDE

    def scaled(self, x):
        return x * OUTSIDE


def by_outside(x):
    return x * OUTSIDE


OUTSIDE = 2.0
HELD = types.ModuleType("held")
HELD.scale = 2.0
SLOTTED, SCALER, LISTED, PARTIAL, FACTORS = Slotted(), Scaler(), [by_outside], partial(by_outside), {2.0}
BEHIND = {
    "a module of Python's": (lambda x: x * HELD.scale, lambda: setattr(HELD, "scale", 5.0)),
    "a class": (lambda x: x * Settings.scale, lambda: setattr(Settings, "scale", 5.0)),
    "slots": (lambda x: x * SLOTTED.scale, lambda: setattr(SLOTTED, "scale", 5.0)),
    "a method": (lambda x: SCALER.scaled(x), lambda: globals().update(OUTSIDE=5.0)),
    "a function in a list": (lambda x: LISTED[0](x), lambda: globals().update(OUTSIDE=5.0)),
    "a partial": (lambda x: PARTIAL(x), lambda: globals().update(OUTSIDE=5.0)),
    "a set": (lambda x: x * max(FACTORS), lambda: FACTORS.add(5.0)),
}


@pytest.mark.parametrize(("function", "change"), BEHIND.values(), ids=BEHIND)
def test_what_stands_behind_a_name_may_change(function, change):
    globals().update(OUTSIDE=2.0)
    compiled, x = mg.compile(function), mg.tensor([1.0, 2.0])
    for _ in range(3):
        np.testing.assert_array_equal(compiled(x).numpy(), [2, 4])
    change()
    for _ in range(3):
        np.testing.assert_array_equal(compiled(x).numpy(), [5, 10])


def test_zero_and_minus_zero_are_two_numbers():
    reciprocal, x = mg.compile(lambda x, k: 1 / (x * k)), mg.tensor([1.0])
    for k in (0.0, 0.0, -0.0, -0.0):
        assert reciprocal(x, k).item() == (np.inf if np.copysign(1, k) > 0 else -np.inf)


def test_an_attribute_of_a_module_that_is_deleted_is_not_used_any_more():
    class Scaled(mg.nn.Module):
        scale = 3.0

        def forward(self, x):
            return x * self.scale

    module = Scaled()
    module.scale = 6.0
    compiled, x = mg.compile(lambda x: module(x)), mg.tensor([1.0])
    assert [compiled(x).item() for _ in range(3)] == [6, 6, 6]
    del module.scale
    assert [compiled(x).item() for _ in range(3)] == [3, 3, 3]
