"""Which steps become one loop, and how often memory is gone over."""

import numpy as np
import pytest
from support.graphs import Build

import minigrad as mg
from minigrad.compile import trace
from minigrad.compile.group import Group, group
from minigrad.compile.plan import Plan
from minigrad.compile.simplify import simplify
from minigrad.compile.views import strided
from minigrad.engine.op import OPS
from minigrad.ir.graph import Step, Value

pytest.importorskip("numba")
rng = np.random.default_rng(0)


def normal(*shape):
    return rng.normal(size=shape).astype("float32")


def grouped(b, *outputs):
    """The names of the ops in each loop, and of those that are by themselves."""
    schedule, _, reasons = group(simplify(b.graph(*outputs)))
    names = [
        [m.step.op.name for m in entry.members] if isinstance(entry, Group) else entry.op.name for entry in schedule
    ]
    return names, list(reasons.values())


def test_a_softmax_is_one_pass_over_its_rows():
    b = Build(normal(40, 30))
    names, _ = grouped(b, b.softmax(b.inputs[0]))
    assert names == [["max", "subtract", "exp", "sum", "reciprocal", "multiply"]]


def test_a_product_parts_two_loops():
    b = Build(normal(4, 3), normal(3, 5))
    x, w = b.inputs
    names, reasons = grouped(b, b.tanh(b.matmul(b.exp(x), w)))
    assert names == [["exp"], "matmul", ["tanh"]]
    assert reasons == ["matmul has no formula for one element"]


def test_a_sum_over_rows_is_complete_after_the_loop():
    b = Build(normal(40, 30))
    (x,) = b.inputs
    e = b.exp(x)
    names, reasons = grouped(b, b.subtract(e, b.sum(e, axis=0)))
    assert names == [["exp", "sum"], ["subtract"]]
    assert reasons == ["it needs a reduction that is complete only after the loop"]


def test_sums_over_all_rows_pass_by_in_the_same_loop():
    b = Build(normal(40, 30), normal(30))
    x, w = b.inputs
    y = b.multiply(b.softmax(x), w)
    names, _ = grouped(b, y, b.sum(y, axis=0), b.sum(y), b.max(y, axis=1))
    assert len(names) == 1
    b.check(y, b.sum(y, axis=0), b.sum(y), b.max(y, axis=1), rtol=1e-5)


def test_numbers_for_each_row_join_the_loop_over_rows():
    b = Build(normal(40, 30), rng.integers(0, 30, (40,)))
    x, labels = b.inputs
    valid = b.not_equal(labels, 3)
    index = b.reshape(b.where(valid, labels, 0), shape=(40, 1))
    scores = b.log_softmax(x)
    loss = b.where(valid, b.negative(b.reshape(b._take_along(scores, indices=index, axis=-1), shape=(40,))), 0)
    total = b.sum(loss)
    names, _ = grouped(b, total)
    assert len(names) == 1
    b.check(total, rtol=1e-5)


def test_an_array_beside_its_transpose_is_read_twice_not_copied():
    b = Build(normal(12, 12))
    (x,) = b.inputs
    y = b.exp(x)
    names, _ = grouped(b, b.add(y, b.transpose(y)))
    assert names == [["exp"], ["add"]]
    b.check(b.add(y, b.transpose(y)), b.add(x, b.transpose(x)))


def test_outer_products_and_masks_over_four_axes():
    b = Build(normal(2, 3, 5, 7), rng.random((2, 1, 1, 7)) > 0.4, normal(3, 1, 1))
    scores, mask, slope = b.inputs
    y = b._masked_softmax(b.multiply(scores, slope), mask)
    plan = b.check(y, b.sum(y, axis=(0, 2)), b.transpose(y, axes=(0, 2, 1, 3)), rtol=1e-5)
    assert not [entry for entry in plan.schedule if isinstance(entry, Step)]
    v = b.inputs[2]
    b.check(b.multiply(v, b.reshape(v, shape=(1, 3))))


def test_normalising_over_other_axes_than_the_last():
    b = Build(normal(6, 5, 4, 3))
    (x,) = b.inputs
    centred = b.subtract(x, b.mean(x, axis=(0, 2, 3), keepdims=True))
    scale = b.rsqrt(b.add(b.mean(b.square(centred), axis=(0, 2, 3), keepdims=True), 1e-5))
    b.check(b.multiply(centred, scale), b.softmax(x, axis=1), b.softmax(x, axis=0), rtol=2e-5)
    columns = b.subtract(x, b.mean(x, axis=(2, 3), keepdims=True))
    b.check(b.softmax(columns, axis=3), rtol=2e-5)


def test_what_is_not_stored_is_not_memory():
    b = Build(normal(400, 300))
    (x,) = b.inputs
    y = b.multiply(b.exp(b.add(x, 1.0)), 2.0)
    plan = Plan(b.graph(y))
    (loop,) = plan.loops.values()
    assert loop.reads == [x] and len(loop.writes) == 1
    assert "1 pass over 1.0 MB of memory; op by op, 3 over 2.9 MB" in plan.explain()


def test_explain_names_what_was_not_fused_and_why():
    b = Build(normal(40, 30))
    (x,) = b.inputs
    plan = b.check(b.argsort(b.exp(x)), b._cumsum(x, axis=0))
    assert "argsort by itself" in plan.explain() and "has no formula for one element" in plan.explain()


@pytest.mark.parametrize(
    ("array", "new"),
    [
        (np.zeros((4, 6)), (2, 2, 3, 2)),
        (np.zeros((4, 6))[:, :4], (4, 2, 2)),
        (np.zeros((4, 6))[:, :4], (8, 2)),
        (np.zeros((4, 6)).T, (3, 2, 4)),
        (np.zeros((4, 6)).T, (24,)),
        (np.zeros((4, 1, 6))[::2], (2, 3, 2, 1)),
        (np.broadcast_to(np.zeros(6), (4, 6)), (2, 2, 6)),
        (np.broadcast_to(np.zeros((4, 1)), (4, 6)), (4, 3, 2)),
        (np.zeros((2, 3, 4)).transpose(0, 2, 1), (8, 3)),
    ],
)
def test_a_reshape_is_a_view_where_numpy_makes_one(array, new):
    strides = tuple([s // array.itemsize if n > 1 else 0 for n, s in zip(array.shape, array.strides)])
    value = Value(array.shape, array.dtype)
    step = Step(OPS["reshape"], (value,), {"shape": new}, (Value(new, array.dtype),))
    made = array.reshape(new)
    expected = tuple([s // array.itemsize if n > 1 else 0 for n, s in zip(made.shape, made.strides)])
    found = strided(step, array.shape, strides)
    assert found == ((0, expected) if np.shares_memory(made, array) else None)


def test_what_comes_from_inputs_alone_is_computed_where_it_is_used():
    b = Build(normal(20, 30), normal(20, 30), normal(30, 30))
    x, y, w = b.inputs
    early, late = b.exp(x), b.exp(y)
    first = b.add(b.matmul(x, w), early)
    second = b.add(b.matmul(first, w), late)
    schedule, _, _ = group(simplify(b.graph(second)))
    loops = [[m.step.op.name for m in entry.members] for entry in schedule if isinstance(entry, Group)]
    assert loops == [["exp", "add"], ["exp", "add"]]


@pytest.mark.parametrize("change", [lambda x: mg.transpose(x, (0, 2, 1)), lambda x: x[:, 1], lambda x: x[1:]])
def test_views_of_arrays_whose_sizes_vary_along_any_axis(change):
    def f(x):
        return mg.exp(change(x))

    graph = trace(f, mg.tensor(normal(3, 40, 5)), other=[mg.tensor(normal(3, 50, 5))])
    plan = Plan(graph)
    for n in (40, 50, 77):
        x = normal(3, n, 5)
        np.testing.assert_allclose(plan.run([x])[0], f(mg.tensor(x)).numpy(), rtol=1e-6)


@pytest.mark.parametrize("shape", [(40, 30), (40, 3), (1, 30), (40, 1), (5, 8, 20), (1, 1), (30,)])
def test_one_element_is_taken_of_each_row(shape):
    b = Build(normal(*shape), rng.integers(0, shape[-1], (*shape[:-1], 1)))
    x, indices = b.inputs
    b.check(b._take_along(x, indices=indices, axis=-1))
    taken = b._take_along(b.exp(x), indices=b.add(indices, 0), axis=-1)
    b.check(b.negative(taken), b.sum(taken), rtol=1e-5)
