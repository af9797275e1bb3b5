"""Simplified graphs have fewer steps and give the same numbers, to the last bit."""

import numpy as np
import pytest
from support.graphs import Build

from minigrad.compile.simplify import simplify
from minigrad.engine.op import OPS
from minigrad.ir.graph import Graph, Step, Value

rng = np.random.default_rng(0)


def simple(b, *outputs):
    """The names of the steps that are left, after a check that they compute the same bits."""
    graph = simplify(b.graph(*outputs))
    made = graph.replay(b.arrays)
    for out, array in zip(outputs, made):
        expected = b.known[out]
        assert array.shape == expected.shape and array.dtype == expected.dtype
        assert np.array_equal(
            array.view("u1") if array.ndim and array.flags.c_contiguous else array,
            expected.view("u1") if expected.ndim and array.flags.c_contiguous else expected,
        )
    return [step.op.name for step in graph.steps]


def floats(*shape):
    return rng.normal(size=shape).astype("float32")


def test_unused_steps_go():
    b = Build(floats(3))
    (x,) = b.inputs
    b.sin(b.cos(x))
    assert simple(b, b.exp(x)) == ["exp"]


def test_equal_steps_become_one():
    b = Build(floats(3))
    (x,) = b.inputs
    assert simple(b, b.add(b.exp(x), b.exp(x)), b.add(x, 1), b.add(x, 1.0)) == ["exp", "add", "add", "add"]


def test_steps_that_change_nothing_go():
    b = Build(floats(3, 4))
    (x,) = b.inputs
    same = [
        b.multiply(x, 1), b.multiply(1.0, x), b.divide(x, 1), b.subtract(x, 0), b.astype(x, dtype="float32"), b.positive(x),
        b.clone(x), b.reshape(x, shape=(3, 4)), b.transpose(x, axes=(0, 1)), b.negative(b.negative(x)), b.broadcast_to(x, shape=(3, 4)),
        b.power(x, 1), b.reshape(b.reshape(x, shape=(12,)), shape=(3, 4)),
    ]  # fmt: skip
    assert simple(b, *same) == []


def test_a_zero_keeps_its_sign():
    b = Build(np.array([0.0, -0.0, 1.0], np.float32))
    (x,) = b.inputs
    assert simple(b, b.add(x, 0), b.subtract(x, -0.0), b.multiply(x, 0)) == ["add", "subtract", "multiply"]


def test_a_wider_number_changes_the_dtype():
    b = Build(floats(3))
    (x,) = b.inputs
    assert simple(b, b.multiply(x, np.float64(1)), b.astype(x, dtype="float64"))[-1] == "astype"


def test_constants_are_computed_once():
    b = Build(floats(3))
    (x,) = b.inputs
    c = b.constant(floats(3))
    assert simple(b, b.add(x, b.exp(b.multiply(c, 2.0)))) == ["add"]


def test_an_array_of_ones_is_one_number():
    b = Build(floats(3, 4))
    (x,) = b.inputs
    ones = b.constant(np.ones((3, 4), np.float32))
    assert simple(b, b.multiply(x, ones)) == []
    assert simple(b, b.multiply(x, b.multiply(b.transpose(b.constant(np.full((4, 3), 2, np.float32))), ones))) == [
        "multiply"
    ]
    assert simple(b, b.add(x, b._zeros(x, shape=(3, 4)))) == ["add"]


def test_what_was_spread_out_is_used_as_it_was():
    b = Build(floats(3, 1), floats(3, 4))
    x, y = b.inputs
    assert simple(b, b.multiply(b.broadcast_to(x, shape=(3, 4)), y)) == ["multiply"]


def test_powers_that_numpy_computes_otherwise():
    b = Build(np.abs(floats(3, 4)))
    (x,) = b.inputs
    assert simple(b, b.power(x, 2), b.power(x, 0.5), b.power(x, 3)) == ["square", "sqrt", "power"]


def test_functions_made_of_ops_are_taken_apart():
    b = Build(floats(3, 4))
    (x,) = b.inputs
    steps = simplify(b.graph(b.softmax(x), b.mean(x, axis=0))).steps
    assert [s.op.name for s in steps] == ["max", "subtract", "exp", "sum", "reciprocal", "multiply", "sum", "divide"]


def test_reductions_over_single_elements_are_reshapes():
    b = Build(floats(3, 1))
    (x,) = b.inputs
    assert simple(b, b.sum(x, axis=1), b.max(x, axis=1, keepdims=True)) == ["reshape"]


def test_decisions_that_are_known_are_taken():
    b = Build(floats(3))
    (x,) = b.inputs
    assert simple(b, b.where(True, x, 0)) == []
    assert simple(b, b.where(False, x, 0)) == ["broadcast_to"]


@pytest.mark.parametrize("name", ["exp", "softmax", "mean", "sum"])
def test_empty_arrays_are_left_to_their_ops(name):
    x, out = Value((0, 3), "float32"), Value((0, 3) if name in ("exp", "softmax") else (3,), "float32")
    attrs = {} if name == "exp" else {"axis": 0}
    step = Step(OPS[name], (x,), attrs, (out,))
    assert [s.op.name for s in simplify(Graph([x], [step], [out])).steps] == [name]


def test_parts_of_a_split_are_views_of_the_whole():
    b = Build(floats(3, 6))
    (x,) = b.inputs
    first, second = Value((3, 2), "float32"), Value((3, 4), "float32")
    graph = simplify(
        Graph([x], [Step(OPS["_split"], (x,), {"cuts": (2,), "axis": 1}, (first, second))], [second, first])
    )
    assert [step.op.name for step in graph.steps] == ["getitem", "getitem"]
    for made, expected in zip(graph.replay(b.arrays), np.split(b.arrays[0], [2], axis=1)[::-1], strict=True):
        assert np.array_equal(made, expected)


def test_a_transpose_of_a_transpose_is_one_or_none():
    b = Build(floats(2, 3, 4))
    (x,) = b.inputs
    twisted = b.transpose(x, axes=(1, 2, 0))
    assert simple(b, b.exp(b.transpose(twisted, axes=(2, 0, 1)))) == ["exp"]
    assert simple(b, b.exp(b.transpose(twisted, axes=(-1, 1, 0)))) == ["transpose", "exp"]
    assert simple(b, b.exp(b.transpose(b.transpose(x)))) == ["exp"]


def test_a_stack_times_a_matrix_is_one_product_of_matrices():
    b = Build(floats(2, 3, 4), floats(4, 5))
    x, w = b.inputs
    assert simple(b, b.exp(b.matmul(x, w))) == ["reshape", "matmul", "reshape", "exp"]
