"""The engine against PyTorch's: random graphs, accumulation, hooks, grad() and modes."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.torch_oracle import (
    TOLERANCES,
    assert_same,
    assert_same_gradient,
    compare,
    examples,
    numbers,
    ours,
    seeds,
    theirs,
)

import minigrad as mg
from minigrad.engine.op import OPS
from minigrad.ops.composite import COMPOSITES

pytestmark = pytest.mark.torch

# Each of these keeps sizes in bounds, however long the chain.
STEPS: dict[str, Callable[..., Any]] = {
    "add": lambda m, a, b: a + b,
    "subtract": lambda m, a, b: a - b,
    "multiply": lambda m, a, b: a * m.sin(b),
    "divide": lambda m, a, b: a / (1 + b * b),
    "power": lambda m, a, b: m.tanh(a) ** 2 + b,
    "maximum": lambda m, a, b: m.maximum(a, b),
    "where": lambda m, a, b: m.where(a > 0, a, b),
    "tanh": lambda m, a, b: m.tanh(a),
    "exp": lambda m, a, b: m.exp(-a * a),
    "abs": lambda m, a, b: m.abs(a) + m.relu(b),
    "total": lambda m, a, b: m.tanh(m.total(a)) * 0.5,
    "cumsum": lambda m, a, b: m.tanh(m.cumsum(a)) if a.ndim else a,
    "flip": lambda m, a, b: m.flip(a) - b if a.ndim else a,
    "index": lambda m, a, b: a[..., :1] * b if a.ndim else a * b,
}
SHAPES = [(2, 3), (1, 3), (3,), (2, 1), (1,), (4, 1, 3)]


@st.composite
def graphs(draw: Any) -> tuple[list[np.ndarray], list[tuple[str, int, int]]]:
    """Leaves whose shapes broadcast with each other, and steps that each use two earlier values."""
    leaves = [
        numbers(draw(seeds), draw(st.sampled_from(SHAPES)), special=(0.0, 1.0)) for _ in range(draw(st.integers(1, 3)))
    ]
    count = draw(st.integers(1, 12))
    earlier = [st.integers(0, len(leaves) + i - 1) for i in range(count)]
    return leaves, [(draw(st.sampled_from(sorted(STEPS))), draw(earlier[i]), draw(earlier[i])) for i in range(count)]


def run_graph(m: Any, steps: list[tuple[str, int, int]]) -> Callable[..., Any]:
    """A function of the leaves that gives the last values of the graph, so that some are used often and some by nobody."""

    def graph(*leaves: Any) -> Any:
        values = list(leaves)
        for name, i, j in steps:
            values.append(STEPS[name](m, values[i], values[j]))
        return tuple(values[-3:])

    return graph


@examples
@given(drawn=graphs())
def test_random_graphs_have_pytorchs_first_and_second_derivatives(drawn: Any) -> None:
    leaves, steps = drawn
    compare(run_graph(ours, steps), run_graph(theirs, steps), leaves, {}, 2)


@examples
@given(drawn=graphs(), chosen=st.lists(st.booleans(), min_size=3, max_size=3))
def test_random_graphs_of_mixed_dtypes_give_each_leaf_a_gradient_of_its_own_dtype(
    drawn: Any, chosen: list[bool]
) -> None:
    leaves, steps = drawn
    mixed = [a.astype(np.float32) if single else a for a, single in zip(leaves, chosen)]
    results = []
    for m in (ours, theirs):
        tensors = [m.leaf(a) for a in mixed]
        run_graph(m, steps)(*tensors)[-1].sum().backward()
        results.append(tensors)
    for i, (a, b) in enumerate(zip(*results)):
        assert_same_gradient(a.grad, b.grad, a, f"leaf {i}", TOLERANCES["float32"])


@examples
@given(drawn=graphs(), times=st.integers(1, 3))
def test_gradients_of_several_backwards_over_a_retained_graph_add_up_as_pytorchs(drawn: Any, times: int) -> None:
    leaves, steps = drawn
    results = []
    for m in (ours, theirs):
        tensors = [m.leaf(a) for a in leaves]
        outputs = run_graph(m, steps)(*tensors)
        for _ in range(times):
            for output in outputs:
                if not output.is_leaf:
                    output.sum().backward(retain_graph=True)
        results.append(tensors)
    for i, (a, b) in enumerate(zip(*results)):
        assert_same_gradient(a.grad, b.grad, a, f"leaf {i}", TOLERANCES["float64"])


X, Y = np.array([0.5, -1.5, 2.0]), np.array([[1.0, 2.0, -0.5], [0.3, -0.2, 1.1]])


def two_backwards(m: Any, x: Any, y: Any) -> Any:
    (x * y).sum().backward()
    (x.sin() * y[0]).sum().backward()
    return x.grad, y.grad


def gradients_reset_between(m: Any, x: Any, y: Any) -> Any:
    (x * y).sum().backward()
    x.grad = None
    (x * x).sum().backward()
    return x.grad, y.grad


def backward_with_a_gradient(m: Any, x: Any, y: Any) -> Any:
    (x * y * y).backward(m.constant(np.arange(6.0).reshape(2, 3)))
    return x.grad, y.grad


def gradient_of_an_intermediate_kept(m: Any, x: Any, y: Any) -> Any:
    z = x * 3
    z.retain_grad()
    (z * z * y).sum().backward()
    return z.grad, x.grad


def hook_on_a_leaf_doubles(m: Any, x: Any, y: Any) -> Any:
    x.register_hook(lambda g: g * 2)
    (x * y).sum().backward()
    (x * y).sum().backward()
    return x.grad, y.grad


def hook_on_an_intermediate_changes_what_flows_on(m: Any, x: Any, y: Any) -> Any:
    z = x * y
    z.register_hook(lambda g: g + 1)
    z.register_hook(lambda g: g * 10)
    z.retain_grad()
    (z.sin() + z).sum().backward()
    return z.grad, x.grad, y.grad


def hook_that_only_looks(m: Any, x: Any, y: Any) -> Any:
    seen = []
    z = x * x
    z.register_hook(lambda g: seen.append(g.detach()))
    (z * y).sum().backward()
    assert len(seen) == 1, "a hook runs once for a tensor, after all its uses"
    return seen[0], x.grad


def hook_removed(m: Any, x: Any, y: Any) -> Any:
    first, second = x.register_hook(lambda g: g * 2), x.register_hook(lambda g: g * 3)
    first.remove()
    (x * y).sum().backward()
    second.remove()
    (x * y).sum().backward()
    return x.grad


def hook_seen_by_grad(m: Any, x: Any, y: Any) -> Any:
    z = x * y
    x.register_hook(lambda g: g * 2)
    z.register_hook(lambda g: g * 5)
    value = (z * z).sum()
    return *m.grad(value, [x, y], retain_graph=True), *m.grad(value, z)


def detached_part_is_constant(m: Any, x: Any, y: Any) -> Any:
    z = x * x
    (z.detach() * x * y).sum().backward()
    assert not z.detach().requires_grad
    return x.grad, y.grad


def detached_tensor_shares_memory(m: Any, x: Any, y: Any) -> Any:
    elsewhere = m.constant(Y)
    elsewhere[0] = x
    a = m.constant(X)
    a.detach()[0] = 5.0
    return a


def no_grad_part_is_constant(m: Any, x: Any, y: Any) -> Any:
    with m.no_grad():
        factor = m.exp(x) * 2
        with m.enable_grad():
            inner = x * 5
    assert not factor.requires_grad and inner.requires_grad
    (factor * inner * y).sum().backward()
    return x.grad, y.grad


def requires_grad_switched_off(m: Any, x: Any, y: Any) -> Any:
    x.requires_grad_(False)
    z = (x * y).sum()
    x.requires_grad_(True)
    z.backward()
    assert x.grad is None
    return y.grad


def updated_leaf_as_in_training(m: Any, x: Any, y: Any) -> Any:
    for _ in range(3):
        (m.tanh(x * y) ** 2).sum().backward()
        with m.no_grad():
            x -= 0.1 * x.grad
            x.grad = None
    return x, y.grad


def grad_leaves_dot_grad_alone(m: Any, x: Any, y: Any) -> Any:
    (g,) = m.grad((x * y).sum(), x)
    assert x.grad is None and y.grad is None
    return g


def grad_with_grad_outputs(m: Any, x: Any, y: Any) -> Any:
    return m.grad([x * y, x.sin()], [x, y], grad_outputs=[m.constant(Y), m.constant(X)])


def grad_with_respect_to_an_intermediate(m: Any, x: Any, y: Any) -> Any:
    z = x * y
    w = z.sin()
    return m.grad((w * z).sum(), [z, w, x])


def grad_of_a_tensor_by_itself(m: Any, x: Any, y: Any) -> Any:
    z = (x * x).sum()
    return m.grad(z, [z, x])


def grad_of_unused_input_is_none_if_allowed(m: Any, x: Any, y: Any) -> Any:
    used, unused = m.grad((x * 2).sum(), [x, y], allow_unused=True)
    assert unused is None
    return used


def grad_through_grad_outputs(m: Any, x: Any, y: Any) -> Any:
    v = m.leaf(Y)
    (g,) = m.grad(x * x * y, x, grad_outputs=v, create_graph=True)
    return m.grad((g * g).sum(), [v, x, y])


def third_derivative(m: Any, x: Any, y: Any) -> Any:
    value = (m.sin(x) * x**3).sum()
    for _ in range(3):
        (g,) = m.grad(value, x, create_graph=True)
        value = (g * m.constant(X)).sum()
    return g


def gradient_penalty(m: Any, x: Any, y: Any) -> Any:
    """A loss with a gradient in it, sent back by backward()."""
    (g,) = m.grad((m.tanh(x * y) * y).sum(), x, create_graph=True)
    ((g**2).sum() - 1).backward()
    return x.grad, y.grad


def one_tensor_as_both_operands(m: Any, x: Any, y: Any) -> Any:
    ((x * x) + (x - x) + x / x + m.maximum(x, x)).sum().backward()
    (y @ y.T).sum().backward()
    return x.grad, y.grad


def long_fan_out(m: Any, x: Any, y: Any) -> Any:
    parts = [x * i for i in range(50)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part * m.sin(part)
    total.sum().backward()
    return x.grad


PROGRAMS = [
    two_backwards,
    gradients_reset_between,
    backward_with_a_gradient,
    gradient_of_an_intermediate_kept,
    hook_on_a_leaf_doubles,
    hook_on_an_intermediate_changes_what_flows_on,
    hook_that_only_looks,
    hook_removed,
    hook_seen_by_grad,
    detached_part_is_constant,
    detached_tensor_shares_memory,
    no_grad_part_is_constant,
    requires_grad_switched_off,
    updated_leaf_as_in_training,
    grad_leaves_dot_grad_alone,
    grad_with_grad_outputs,
    grad_with_respect_to_an_intermediate,
    grad_of_a_tensor_by_itself,
    grad_of_unused_input_is_none_if_allowed,
    grad_through_grad_outputs,
    third_derivative,
    gradient_penalty,
    one_tensor_as_both_operands,
    long_fan_out,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_the_same_program_gives_pytorchs_results(program: Any) -> None:
    a, b = (program(m, m.leaf(X), m.leaf(Y)) for m in (ours, theirs))
    a, b = (results if isinstance(results, tuple) else (results,) for results in (a, b))
    assert len(a) == len(b)
    for i, (mine, other) in enumerate(zip(a, b)):
        assert_same(mine, other, f"result {i}")


REFUSED: dict[str, Callable[..., Any]] = {
    "backward twice without retain_graph": lambda m, x, y: [z := (x * x).sum(), z.backward(), z.backward()],
    "backward of several elements without a gradient": lambda m, x, y: (x * x).backward(),
    "backward of a constant": lambda m, x, y: (x.detach() * 2).sum().backward(),
    "backward with a gradient of another shape": lambda m, x, y: (x * y).backward(m.constant(X[:2])),
    "grad by an unused input": lambda m, x, y: m.grad((x * 2).sum(), [x, y]),
    "grad by a constant": lambda m, x, y: m.grad((x * 2).sum(), m.constant(X)),
    "grad of several elements without grad_outputs": lambda m, x, y: m.grad(x * 2, x),
    "requires_grad of whole numbers": lambda m, x, y: m.leaf(np.arange(3)),
    "requires_grad_(False) of a result": lambda m, x, y: (x * 2).requires_grad_(False),
    "in-place on a leaf": lambda m, x, y: x.__iadd__(1),
    "setitem on a leaf": lambda m, x, y: x.__setitem__(0, 1.0),
    "a value needed by backward written through its detached alias": lambda m, x, y: [
        z := x * 1,
        w := (z * z).sum(),
        z.detach().__imul__(2),
        w.backward(),
    ],
    "a value needed by backward written in place": lambda m, x, y: [
        z := x * 1,
        w := (z * z).sum(),
        z.__imul__(2),
        w.backward(),
    ],
    "a result needed by backward written in place": lambda m, x, y: [z := m.exp(x), z.__iadd__(1), z.sum().backward()],
    "numpy of a graph": lambda m, x, y: np.asarray(x * 2),
    "backward in no_grad of what was computed there": lambda m, x, y: m.no_grad()(lambda: (x * 2).sum().backward())(),
}


@pytest.mark.parametrize("label", REFUSED)
@pytest.mark.parametrize("m", [ours, theirs], ids=["minigrad", "pytorch"])
def test_what_pytorch_refuses_is_refused(label: str, m: Any) -> None:
    with pytest.raises((RuntimeError, ValueError, TypeError)):
        REFUSED[label](m, m.leaf(X), m.leaf(Y))


def test_every_public_op_that_pytorch_has_is_compared() -> None:
    """Those of nn.functional are compared beside it, but for the activations, which are here."""
    modules = [
        importlib.import_module(f"test_torch_{part}")
        for part in ("elementwise", "reduction", "shape", "indexing", "linalg", "special", "examples")
    ]
    compared = {re.split("[: ]", label)[0] for module in modules for label in module.CASES} | {*modules[-1].VALUES}
    public = {name for name in {**OPS, **COMPOSITES} if not name.startswith("_")}
    neural = {name for name in public if hasattr(mg.nn.functional, name)}
    missing = {name for name in public - neural - compared if hasattr(modules[0].torch, name)}
    assert missing == {"nanmedian"}  # which is the lower of two there, and their mean here, as NumPy's
