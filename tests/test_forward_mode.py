"""Forward mode: every op of the registry beside the derivative of its gradient, nesting, memory, and what is refused."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from support.samples import SAMPLES
from test_registry import FUNCTIONS, is_differentiable, several

import minigrad as mg
from minigrad.engine.tensor import wrap
from minigrad.transforms.forward import _traced
from minigrad.transforms.reverse import jvp_by_gradients

NAMES = sorted({name for name, samples in SAMPLES.items() if any(is_differentiable(name, s) for s in samples)})
F = mg.nn.functional
HOST = np.arange(4.0).reshape(2, 2)


def near(got: Any, expected: Any, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", NAMES)
def test_the_tangent_of_every_op_is_the_derivative_of_its_gradient(name: str) -> None:
    rng = np.random.default_rng(0)
    for sample in [s for s in SAMPLES[name] if is_differentiable(name, s)][:3]:
        primals = [mg.tensor(leaf.astype("float64")) for leaf in sample.leaves]
        tangents = [mg.tensor(rng.standard_normal(x.shape)) for x in primals]

        def f(*xs: Any, sample: Any = sample, function: Any = FUNCTIONS[name]) -> Any:
            outs = several(sample.call(function, list(xs if sample.via is None else sample.via(*xs)), wrap))
            return tuple(out for out in outs if out.dtype.kind == "f")

        outs, got = mg.jvp(f, primals, tangents)
        expected_outs, expected = jvp_by_gradients(f, primals, tangents)
        for a, b in zip((*outs, *got), (*expected_outs, *expected), strict=True):
            near(a, b)


def network(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    h = F.layer_norm(mg.tanh(x @ w), w.shape[1])
    return F.softmax(h @ h.T) @ F.gelu(h)


X, W = (mg.tensor(np.random.default_rng(i).standard_normal(s)) for i, s in enumerate([(3, 4), (4, 5)]))
DX, DW = (mg.tensor(np.random.default_rng(i + 7).standard_normal(x.shape)) for i, x in enumerate((X, W)))


@pytest.mark.torch
def test_a_network_moves_as_in_pytorch() -> None:
    import torch

    def theirs(x: Any, w: Any) -> Any:
        h = torch.nn.functional.layer_norm(torch.tanh(x @ w), (5,))
        return torch.softmax(h @ h.T, -1) @ torch.nn.functional.gelu(h)

    out, moved = torch.func.jvp(
        theirs, tuple(torch.tensor(a.numpy()) for a in (X, W)), tuple(torch.tensor(a.numpy()) for a in (DX, DW))
    )
    got, tangent = mg.jvp(network, (X, W), (DX, DW))
    near(got, out)
    near(tangent, moved)


def test_forward_and_reverse_nest_in_any_order() -> None:
    def loss(x: mg.Tensor) -> mg.Tensor:
        return (network(x, W) ** 2).sum()

    hessian = mg.hessian(loss)(X).reshape(X.size, X.size)
    expected = (hessian @ DX.reshape(-1)).reshape(*X.shape)
    near(mg.hvp(loss, (X,), (DX,)), expected)
    near(mg.grad(lambda x: mg.jvp(loss, (x,), (DX,))[1])(X), expected)
    near(mg.jvp(lambda x: mg.jvp(loss, (x,), (DX,))[1], (X,), (DX,))[1], (expected * DX).sum())
    near(mg.jacfwd(mg.grad(loss))(X).reshape(X.size, X.size), hessian)


def test_jacobians_agree_and_choose_by_shape() -> None:
    def wide(x: mg.Tensor) -> mg.Tensor:
        return mg.outer(x, x).reshape(-1) * mg.exp(x[0])

    x = mg.tensor([0.5, 2.0], dtype="float64")
    near(mg.jacfwd(wide)(x), mg.jacrev(wide)(x))
    near(mg.jacobian(wide)(x), mg.jacrev(wide)(x))
    near(
        mg.jacobian(lambda w: mg.grad(lambda x: (network(x, w) ** 2).sum())(X))(W),
        mg.jacrev(lambda w: mg.grad(lambda x: (network(x, w) ** 2).sum())(X))(W),
        1e-8,
    )


def test_linearize_pushes_several_tangents_after_one_trace() -> None:
    traced = 0

    def f(x: mg.Tensor) -> mg.Tensor:
        nonlocal traced
        traced += 1
        return mg.sin(x) * 2

    out, push = mg.linearize(f, X)
    near(out, mg.sin(X) * 2)
    for t in (DX, X):
        near(push(t), 2 * mg.cos(X) * t)
    assert traced == 1


def test_what_is_detached_does_not_move_and_what_a_closure_holds_stands_still() -> None:
    held = mg.tensor(np.ones(4), requires_grad=True)
    out, moved = mg.jvp(lambda x: (x * x.detach() * held).sum(), (X,), (DX,))
    near(moved.detach(), (DX * X).sum())
    near(mg.autograd.grad(moved, held)[0], (DX * X).sum(axis=0))


def test_a_function_that_looks_at_values_is_differentiated_all_the_same() -> None:
    out, moved = mg.jvp(lambda x: x * 2 if x.sum().item() > -1e9 else x, (X,), (DX,))
    near(moved, DX * 2)


def test_the_memory_of_a_deep_function_does_not_grow_with_its_depth() -> None:
    x, t = mg.ones(100_000), mg.ones(100_000)

    def peak(depth: int) -> int:
        def deep(x: mg.Tensor) -> mg.Tensor:
            for _ in range(depth):
                x = mg.sin(x)
            return x

        mg.jvp(deep, (x,), (t,))
        tracemalloc.start()
        mg.jvp(deep, (x,), (t,))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert peak(80) < 1.5 * peak(5)


def test_nothing_is_computed_while_tracing() -> None:
    assert len(_traced(lambda x: (x @ x.T).sum(), [mg.ones(100_000, 1)]).graph.steps) == 3


@pytest.mark.parametrize(
    ("primals", "tangents", "told"),
    [((X,), (DW,), "look like its primal"), ((X,), (DX, DX), "as many tangents"), (X, (DX,), "come as tuples")],
)
def test_tangents_that_do_not_fit_are_refused(primals: Any, tangents: Any, told: str) -> None:
    with pytest.raises(mg.MinigradError, match=told):
        mg.jvp(mg.sin, primals, tangents)


def test_what_a_function_changes_outside_is_changed_once_and_by_true_values() -> None:
    x, (layer, other) = mg.tensor(np.arange(6.0).reshape(2, 3)), [mg.nn.BatchNorm1d(3, dtype="float64") for _ in "ab"]
    mg.jvp(layer, (x,), (x,))
    other(x)
    near(layer.running_var, other.running_var)
    w = mg.tensor([1.0, 2.0], requires_grad=True)
    w.grad = mg.ones(2)

    def fills(x: mg.Tensor) -> mg.Tensor:
        (w * x).sum().backward()
        return x * 2

    mg.jvp(fills, (mg.tensor([3.0, 4.0]),), (mg.ones(2),))
    assert w.grad is not None and w.grad.tolist() == [4.0, 5.0]


def test_the_rule_of_a_users_op_counts_and_not_what_the_op_makes_of_the_tangent() -> None:
    @mg.op
    def rounded(xp: Any, a: Any) -> Any:
        return xp.round(a)

    rounded.vjp(a=lambda g: -g)
    assert mg.jvp(rounded, (mg.tensor([2.2]),), (mg.tensor([0.25]),))[1].tolist() == [-0.25]


def test_an_infinite_value_beside_the_tangent_gives_zero_and_a_large_one_costs_no_digits() -> None:
    def written(x: mg.Tensor) -> mg.Tensor:
        y = x.clone()
        y[0] = -np.inf
        return y

    x, t = mg.tensor([1.0, 2.0]), mg.tensor([1e-9, 1e-9])
    assert mg.jvp(written, (x,), (t,))[1].tolist() == mg.tensor([0.0, 1e-9]).tolist()
    assert mg.jvp(lambda x: mg.pad(x, 1, constant_values=-np.inf), (x,), (x,))[1].tolist() == [0.0, 1.0, 2.0, 0.0]


def test_tangents_are_matched_by_name_and_have_the_dtype_of_their_primals() -> None:
    primal = {"a": mg.tensor(2.0), "b": mg.tensor(3.0)}
    product = lambda d: d["a"] * d["b"]  # noqa: E731
    assert mg.jvp(product, (primal,), ({"b": 0.0, "a": 1.0},))[1].item() == 3.0
    with pytest.raises(mg.errors.ArgumentError, match="parts of its primal"):
        mg.jvp(product, (primal,), ({"a": 1.0},))
    assert mg.jvp(lambda x: x.sum(), (mg.ones(2),), (mg.tensor(np.ones(2)),))[1].dtype == "float32"
    assert not mg.jacfwd(lambda x: x**2)(np.ones(2)).requires_grad


def test_a_compiled_function_draws_anew_inside_of_forward_mode_and_batches() -> None:
    drop = mg.nn.Dropout(0.5)
    for f in (lambda x: mg.jvp(drop, (x,), (x,))[1], lambda x: mg.vmap(lambda row: row * mg.randn(64))(x)):
        compiled, x = mg.compile(f), mg.ones(2, 64)
        mg.manual_seed(0)
        expected = [f(x) for _ in range(3)]
        mg.manual_seed(0)
        for want in expected:
            near(compiled(x), want, 1e-6)


def test_constants_and_unit_vectors_are_known_to_a_compiled_function() -> None:
    x = mg.tensor([1.0, 2.0])
    cubes = lambda x: x**3 * mg.tensor([1.0, 3.0])  # noqa: E731
    for f in (mg.jacfwd(cubes), mg.jacrev(cubes), lambda x: mg.hvp(lambda x: (x**3).sum(), (x,), (x,))):
        near(mg.compile(f)(x), f(x), 1e-6)


def test_a_linearized_function_refuses_to_go_on_with_values_that_were_overwritten() -> None:
    w, x = mg.tensor([1.0, 2.0]), mg.ones(2)
    _, push = mg.linearize(lambda x: x * w, x)
    assert push(x).tolist() == [1.0, 2.0]
    w[...] = 5.0
    with pytest.raises(mg.errors.GradientError, match="overwritten"):
        push(x)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: mg.jvp(lambda x: (x @ x).sin().sum(axis=0), (x,), (x,))[1],
        lambda x: mg.jvp(lambda x: x * mg.tensor(np.ones((2, 2)), device=x.device), (x,), (x,))[1],
        lambda x: mg.jvp(lambda x: x * mg.tensor(HOST, device=x.device), (x,), (x,))[1],
        lambda x: mg.jacfwd(lambda x: x**2)(x),
        lambda x: mg.hvp(lambda x: (x**3).sum(), (x,), (x,)),
        lambda x: mg.grad(lambda a: mg.fixed_point(lambda y, a: (y + a / y) / 2, x, a).sum())(x),
        lambda x: mg.vmap(lambda row: mg.zeros_like(row))(x[:0]),
    ],
)
def test_derivatives_are_taken_on_a_device_that_is_not_the_current_one(f: Any) -> None:
    x = np.arange(1.0, 5.0).reshape(2, 2)
    got = f(mg.tensor(x, device="fake:1"))
    assert got.device == "fake:1"
    near(got, f(mg.tensor(x)))


def test_a_linearized_function_that_cannot_be_traced_keeps_what_it_drew() -> None:
    x = mg.ones(2)
    y, push = mg.linearize(lambda x: x * mg.randn(2) if x.sum().item() > 0 else x, x)
    assert push(x).tolist() == push(x).tolist() == y.tolist()
