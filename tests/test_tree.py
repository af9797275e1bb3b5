"""Nested structures: every kind of container is walked in order, and made anew around other leaves."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import pytest

import minigrad as mg
from minigrad import tree


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclasses.dataclass(frozen=True)
class Point:
    x: Any
    y: Any
    sum: Any = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sum", (self.x, self.y))


NEST = {"a": 1, "b": [2, (3, Pair(4, Point(5, {7: 6})))], "none": [None, (), {}]}


def test_leaves_come_in_order_with_the_paths_that_lead_to_them():
    assert list(tree.leaves(NEST)) == [1, 2, 3, 4, 5, 6, None]
    found = dict(tree.paths(NEST))
    assert found["b", 1, 1, "second", "y", 7] == 6 and found["b", 1, 1, "first"] == 4 and found["none", 0] is None
    assert list(tree.paths(3)) == [((), 3)]


def test_a_mapped_tree_has_the_containers_of_the_first():
    mapped = tree.map(lambda leaf: leaf and 10 * leaf, NEST)
    assert mapped == {"a": 10, "b": [20, (30, Pair(40, Point(50, {7: 60})))], "none": [None, (), {}]}
    pair = mapped["b"][1][1]
    assert type(pair) is Pair and pair.second.sum == (50, {7: 60})  # what a dataclass computes is computed anew
    assert tree.map(str, OrderedDict(b=1, a=2)) == {"b": "1", "a": "2"}
    assert tree.map(lambda kind: kind.__name__, [Point, Pair]) == ["Point", "Pair"]  # a class is a leaf


@pytest.mark.parametrize("value", [np.arange(3), mg.ones(2), "text", b"bytes", {1, 2}, range(3)], ids=type)
def test_arrays_strings_and_sets_are_leaves(value):
    assert (
        list(tree.leaves([value])) == [value] if not hasattr(value, "shape") else list(tree.leaves([value]))[0] is value
    )


def test_whoever_walks_may_call_more_things_leaves():
    is_pair = lambda part: isinstance(part, Pair)  # noqa: E731
    assert list(tree.leaves(NEST["b"], is_pair)) == [2, 3, Pair(4, Point(5, {7: 6}))]
    assert tree.map(len, [Pair(1, 2), [Pair(3, 4)]], is_pair) == [2, [2]]


def test_a_tree_is_rebuilt_from_its_leaves():
    assert tree.unflatten(NEST, tree.leaves(NEST)) == NEST
    assert tree.unflatten(("a", ["b"]), iter([1, 2, 3])) == (1, [2])


def test_gradients_come_in_the_structure_of_the_argument():
    weights = {"layer": Pair(mg.ones(2), [3.0, 4.0]), "point": Point(mg.tensor(2.0), [mg.tensor(5.0)])}

    def loss(given):
        return (given["layer"].first * given["layer"].second).sum() * given["point"].x * given["point"].y[0]

    found = mg.grad(loss)(weights)
    assert type(found["layer"]) is Pair and found["layer"].first.tolist() == [30, 40]
    assert found["layer"].second.tolist() == [10, 10] and found["point"].x.item() == 35
    assert found["point"].y[0].item() == 14
