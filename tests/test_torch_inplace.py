"""Programs that write in place: gradients as PyTorch's, or a refusal; never a wrong gradient.

PyTorch refuses more than it must in some places, and minigrad in others. So the oracle is `Pure`, which keeps memory as
a value that each write replaces: nothing is ever overwritten there, and PyTorch differentiates it without in-place rules.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from support.torch_oracle import TOLERANCES, assert_same_gradient, examples, ours, theirs, torch

pytestmark = pytest.mark.torch
START = np.array([[1.0, 2.0, -0.5], [0.3, -0.2, 1.1]])
Program = list[tuple[str, int, int, int]]


class Pure:
    """Places in a memory that aliases share. Reading picks elements; writing makes a new memory with other elements."""

    recording = True

    def __init__(self, memory: list[Any], places: np.ndarray):
        self.memory, self.places = memory, places

    @classmethod
    def fresh(cls, value: Any) -> Pure:
        return cls([value.ravel()], np.arange(value.numel()).reshape(tuple(value.shape)))

    def read(self) -> Any:
        return self.memory[0][torch.from_numpy(self.places)]

    def __setitem__(self, index: Any, value: Any) -> None:
        target = Pure(self.memory, np.asarray(self.places[index]))
        old = target.read()
        new = (value.read() if isinstance(value, Pure) else torch.tensor(value, dtype=old.dtype)).expand(old.shape)
        if not Pure.recording:
            new = old + (new - old).detach()
        self.memory[0] = self.memory[0].index_put((torch.from_numpy(target.places.ravel().copy()),), new.reshape(-1))

    def __iadd__(self, other: Any) -> Pure:
        self[...] = self + other
        return self

    def __imul__(self, other: Any) -> Pure:
        self[...] = self * other
        return self

    def __getitem__(self, index: Any) -> Pure:
        return Pure(self.memory, self.places[index])

    def __add__(self, other: Any) -> Pure:
        return Pure.fresh(self.read() + (other.read() if isinstance(other, Pure) else other))

    def __mul__(self, other: Any) -> Pure:
        return Pure.fresh(self.read() * (other.read() if isinstance(other, Pure) else other))

    def __gt__(self, number: float) -> np.ndarray:
        return (self.read() > number).numpy()

    @property
    def T(self) -> Pure:
        return Pure(self.memory, self.places.T)

    def clone(self) -> Pure:
        return Pure.fresh(self.read())

    def detach(self) -> Any:
        return self.read().detach()

    def sum(self) -> Any:
        return self.read().sum()


def _unrecorded() -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def decorate(function: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> Any:
            Pure.recording = False
            try:
                return function()
            finally:
                Pure.recording = True

        return run

    return decorate


pure = SimpleNamespace(
    leaf=theirs.leaf,
    grad=torch.autograd.grad,
    no_grad=_unrecorded,
    detached=lambda a: Pure.fresh(a.detach()),
    start=Pure.fresh,
    sin=lambda a: Pure.fresh(torch.sin(a.read())) if isinstance(a, Pure) else torch.sin(a),
    tanh=lambda a: Pure.fresh(torch.tanh(a.read())),
)

STEPS: dict[str, Callable[..., Any]] = {
    "add": lambda m, v, i, j, k: v.append(v[i] + v[j]),
    "multiply": lambda m, v, i, j, k: v.append(v[i] * v[j]),
    "sin": lambda m, v, i, j, k: v.append(m.sin(v[i])),
    "tanh": lambda m, v, i, j, k: v.append(m.tanh(v[i])),
    "clone": lambda m, v, i, j, k: v.append(v[i].clone()),
    "row": lambda m, v, i, j, k: v.append(v[i][k : k + 1] + v[j]),
    "view of rows": lambda m, v, i, j, k: v.append(v[i][:]),
    "view of a column": lambda m, v, i, j, k: v.append(v[i][:, k : k + 1] * v[j]),
    "transposed twice": lambda m, v, i, j, k: v.append(v[i].T.T),
    "add in place": lambda m, v, i, j, k: v[i].__iadd__(v[j]),
    "multiply in place": lambda m, v, i, j, k: v[i].__imul__(v[j]),
    "scale in place": lambda m, v, i, j, k: v[i].__imul__(0.5),
    "scale a row in place": lambda m, v, i, j, k: v[i][k].__imul__(0.5),
    "write a row": lambda m, v, i, j, k: v[i].__setitem__(k, v[j][1 - k]),
    "write a column": lambda m, v, i, j, k: v[i].__setitem__((slice(None), k), m.sin(v[j][:, k])),
    "write a number": lambda m, v, i, j, k: v[i].__setitem__((k, k), 0.25),
    "write where positive": lambda m, v, i, j, k: v[i].__setitem__(v[i] > 0, 0.5),
    "detach": lambda m, v, i, j, k: v.append(m.detached(v[i]) * v[j]),
    "write unrecorded": lambda m, v, i, j, k: m.no_grad()(lambda: v[i].__imul__(2.0))(),
}


@st.composite
def programs(draw: Any) -> Program:
    steps = st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 7), st.integers(0, 7), st.integers(0, 1))
    return draw(st.lists(steps, min_size=2, max_size=9))


def run(m: Any, program: Program) -> Any:
    """Values, and first and second derivatives by the leaves, of a program, or the error that ended it."""
    leaves = [m.leaf(START[:, :2]), m.leaf(START[:, 1:] / 2)]
    values = [m.start(leaf) for leaf in leaves]
    try:
        for name, i, j, k in program:
            STEPS[name](m, values, i % len(values), j % len(values), k)
        first = m.grad(sum((value * value).sum() for value in values), leaves, create_graph=True)
        second = m.grad(sum((g * m.sin(g)).sum() for g in first), leaves, allow_unused=True)
    except (RuntimeError, ValueError, TypeError) as error:
        return error
    return [v.detach() for v in values], [g.detach() for g in first], second


def assert_equal(results: Any, expected: Any) -> None:
    for what, got, wanted in zip(("value", "gradient by leaf", "second derivative by leaf"), results, expected):
        for i, (a, b) in enumerate(zip(got, wanted)):
            assert_same_gradient(a, b, START[:, :2], f"{what} {i}", TOLERANCES["float64"])


@settings(examples, max_examples=10 * examples.max_examples)
@given(program=programs())
def test_a_program_that_writes_in_place_has_the_right_gradients_or_is_refused(program: Program) -> None:
    mine, other, expected = run(ours, program), run(theirs, program), run(pure, program)
    assert not isinstance(expected, Exception), expected
    event(
        f"minigrad {'refuses' if isinstance(mine, Exception) else 'accepts'}, PyTorch {'refuses' if isinstance(other, Exception) else 'accepts'}"
    )
    if not isinstance(other, Exception):
        assert_equal(other, expected)
    if not isinstance(mine, Exception):
        assert_equal(mine, expected)


ACCEPTED: dict[str, Program] = {
    "written after use that saves nothing": [("add", 0, 1, 0), ("add in place", 0, 1, 0), ("write a row", 0, 1, 1)],
    "written before it is used": [("write a row", 0, 1, 0), ("multiply", 0, 0, 0), ("sin", 2, 0, 0)],
    "a value written into a clone": [("clone", 0, 0, 0), ("write a column", 2, 1, 0), ("multiply", 0, 2, 0)],
    "written where positive": [("write where positive", 0, 0, 0), ("multiply", 0, 1, 0)],
    "written again and again": [
        ("scale in place", 0, 0, 0),
        ("add in place", 0, 1, 0),
        ("write a number", 0, 0, 1),
        ("scale in place", 0, 0, 0),
    ],
}


@pytest.mark.parametrize("program", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_a_write_into_what_no_gradient_needs_is_accepted(program: Program) -> None:
    mine = run(ours, program)
    assert not isinstance(mine, Exception), mine
    assert_equal(mine, run(pure, program))


OVERWRITTEN: dict[str, Program] = {
    "factor": [("multiply", 0, 1, 0), ("scale in place", 0, 0, 0)],
    "factor, by an element": [("multiply", 0, 1, 0), ("write a number", 1, 0, 0)],
    "factor, by a view": [("view of rows", 0, 0, 0), ("multiply", 0, 1, 0), ("scale in place", 2, 0, 0)],
    "input of sin": [("sin", 0, 0, 0), ("add in place", 0, 1, 0)],
    "output of tanh": [("tanh", 0, 0, 0), ("write a row", 2, 1, 0)],
    "factor, unrecorded": [("multiply", 0, 1, 0), ("write unrecorded", 0, 0, 0)],
}


@pytest.mark.parametrize("program", OVERWRITTEN.values(), ids=OVERWRITTEN.keys())
@pytest.mark.parametrize("m", [ours, theirs], ids=["minigrad", "pytorch"])
def test_a_backward_that_needs_an_overwritten_value_is_refused(program: Program, m: Any) -> None:
    assert isinstance(run(m, program), RuntimeError)
