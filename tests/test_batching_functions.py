"""`mg.vmap`: every op of the registry beside a loop over the batch, axes, nesting with derivatives, and what is refused."""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np
import pytest
from support.samples import SAMPLES
from test_registry import FUNCTIONS, is_differentiable, several

import minigrad as mg
from minigrad.engine.tensor import wrap
from minigrad.transforms import batching

RANDOM = {"gumbel_softmax", "dropout"}  # which a loop draws anew for each example
NAMES = sorted({name for name, samples in SAMPLES.items() if any(is_differentiable(name, s) for s in samples)} - RANDOM)
F = mg.nn.functional


def near(got: Any, expected: Any, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", NAMES)
def test_every_op_does_for_a_batch_what_it_does_for_each_example(name: str) -> None:
    for sample in [s for s in SAMPLES[name] if is_differentiable(name, s)][:3]:
        batch = [np.stack([leaf, leaf[...] * 0.9, leaf * 1.1]).astype("float64") for leaf in sample.leaves]

        def f(*xs: Any, sample: Any = sample, function: Any = FUNCTIONS[name]) -> Any:
            return tuple(several(sample.call(function, list(xs if sample.via is None else sample.via(*xs)), wrap)))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            got = mg.vmap(f)(*[mg.tensor(a) for a in batch])
        rows = [f(*[mg.tensor(a[i]) for a in batch]) for i in range(3)]
        for out, parts in zip(got, zip(*rows), strict=True):
            near(out, mg.stack(list(parts)))


def attention(q: mg.Tensor, k: mg.Tensor, v: mg.Tensor) -> mg.Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@pytest.mark.parametrize(
    ("f", "shapes"),
    [
        (lambda x, w: x @ w, [(3, 4), (4, 5)]),
        (lambda x, w: x @ w, [(4,), (4,)]),
        (lambda x, w: F.conv2d(x, w, padding=1), [(2, 3, 6, 6), (4, 3, 3, 3)]),
        (lambda x: F.max_pool2d(x, 2), [(2, 3, 6, 6)]),
        (lambda x: x[1:, [0, 2]] * x.max(axis=0)[[1, 3]], [(4, 4)]),
        (lambda x: x.mean() + x.std(axis=-1, keepdims=True), [(3, 4)]),
        (lambda x: F.layer_norm(F.gelu(x), 4), [(3, 4)]),
        (attention, [(2, 5, 4), (2, 5, 4), (2, 5, 4)]),
        (lambda x: mg.grad(lambda y: (mg.tanh(y) ** 2).sum())(x), [(3,)]),
    ],
    ids=["matmul", "vectors", "convolution", "pooling", "indexing", "reductions", "layers", "attention", "gradients"],
)
def test_common_functions_batch_without_a_loop(f: Any, shapes: list[tuple[int, ...]], monkeypatch: Any) -> None:
    def loops(*_: Any) -> Any:
        raise AssertionError("it loops")

    monkeypatch.setattr(batching, "_each", loops)
    monkeypatch.setattr(batching, "_one_by_one", loops)
    rng = np.random.default_rng(0)
    args = [mg.tensor(rng.standard_normal((6, *shape))) for shape in shapes]
    near(mg.vmap(f)(*args), mg.stack([f(*[x[i] for x in args]) for i in range(6)]))
    axes = [0, *[None] * (len(args) - 1)]
    near(
        mg.vmap(f, in_axes=axes)(args[0], *[x[0] for x in args[1:]]),
        mg.stack([f(x, *[y[0] for y in args[1:]]) for x in args[0]]),
    )


X = mg.tensor(np.random.default_rng(1).standard_normal((4, 3)))


def test_the_rows_of_an_embedding_are_looked_up_for_a_batch() -> None:
    numbers = mg.tensor([[0, 2], [1, 1], [3, 0]])
    near(mg.vmap(lambda i: X[i])(numbers), X[numbers])
    near(mg.vmap(lambda x, i: x[i])(mg.stack([X, X * 2, X * 3]), numbers)[1], X[[1, 1]] * 2)


@pytest.mark.parametrize(
    ("f", "shapes", "axes"),
    [
        (lambda x: x[0, :, [1, 0]], [(2, 2, 2, 2)], 0),
        (lambda x: x[[1, 0], :, 0], [(2, 2, 2, 2)], 0),
        (mg.grad(lambda x: (x[0, :, [1, 0]] ** 2).sum()), [(2, 2, 2, 2)], 0),
        (mg.solve, [(3, 3, 2, 2), (3, 2)], (0, 0)),
        (mg.solve, [(3, 2, 2), (3, 2)], (None, 0)),
        (mg.solve, [(3, 2, 2), (2,)], (0, None)),
    ],
)
@pytest.mark.filterwarnings("ignore:vmap")
def test_axes_that_numpy_moves_and_vectors_beside_stacks_stay_with_their_example(
    f: Any, shapes: Any, axes: Any
) -> None:
    rng = np.random.default_rng(0)
    xs = [mg.tensor(rng.normal(size=shape)) for shape in shapes]
    own = [0] * len(xs) if axes == 0 else axes
    rows = [f(*[x if axis is None else x[i] for x, axis in zip(xs, own)]) for i in range(shapes[own.index(0)][0])]
    near(mg.vmap(f, in_axes=axes)(*xs), mg.stack(rows))


@pytest.mark.filterwarnings("ignore:vmap")
def test_an_empty_batch_gives_an_empty_batch_also_where_it_would_loop() -> None:
    for f in (mg.zeros_like, lambda x: mg.argsort(x, axis=None), lambda x: x.sum()):
        assert mg.vmap(f)(mg.zeros(0, 3)).shape == (0, *f(mg.zeros(3)).shape)


@pytest.mark.filterwarnings("ignore:vmap")
def test_an_op_without_a_rule_is_batched_where_no_gradient_is_asked_for() -> None:
    @mg.op
    def doubled(xp: Any, a: Any) -> Any:
        return a * 2

    assert mg.vmap(doubled)(mg.tensor([1.0, 2.0])).tolist() == [2.0, 4.0]
    with pytest.raises(mg.errors.GradientError, match="no rule"):
        mg.vmap(doubled)(mg.tensor([1.0, 2.0], requires_grad=True))


def test_arrays_are_taken_and_what_has_no_batch_is_given_as_it_is() -> None:
    x = np.arange(12.0).reshape(2, 3, 2)
    total = mg.vmap(lambda x, axis, keep, by: x.sum(axis=axis, keepdims=keep) * by, in_axes=(0, None, None, None))
    near(total(x, 1, True, np.array(2.0)), mg.tensor(x.sum(axis=2, keepdims=True) * 2))
    near(mg.vmap(lambda x, by: x * by, in_axes=(0, None))(x, 3), mg.tensor(x * 3))


def test_axes_are_taken_from_and_put_where_they_are_asked_for() -> None:
    near(mg.vmap(lambda x, y: x * y.sum(), in_axes=(1, None), out_axes=1)(X, X), X * X.sum())
    near(mg.vmap(lambda d: d["a"] + d["b"])({"a": X, "b": X}), X * 2)
    nested = mg.vmap(mg.vmap(lambda x, y: x * y, in_axes=(None, 0)), in_axes=(0, None))
    near(nested(X[:, 0], X[:, 1]), mg.outer(X[:, 0], X[:, 1]))


def test_derivatives_go_through_and_inside() -> None:
    def loss(x: mg.Tensor) -> mg.Tensor:
        return (mg.sin(x) * mg.exp(x[::-1])).sum()

    near(mg.vmap(mg.grad(loss))(X), mg.grad(lambda x: mg.vmap(loss)(x).sum())(X))
    near(mg.jvp(mg.vmap(loss), (X,), (X,))[1], mg.stack([mg.jvp(loss, (x,), (x,))[1] for x in X]))
    near(mg.vmap(lambda t: mg.jvp(loss, (X[0],), (t,))[1])(X), X @ mg.grad(loss)(X[0]))
    w = mg.tensor(np.ones(3), requires_grad=True)
    mg.vmap(lambda x: (x * w).sum())(X).sum().backward()
    near(w.grad, X.sum(axis=0))


def test_what_loops_says_so_once_and_is_right() -> None:
    batching._said.clear()

    def written(x: mg.Tensor) -> mg.Tensor:
        y = x.clone()
        y[0] = y[1] * 2
        return y

    with pytest.warns(RuntimeWarning, match="vmap: setitem runs once for each example"):
        got = mg.vmap(written)(X)
    near(got, mg.stack([written(x) for x in X]))
    with pytest.warns(RuntimeWarning, match="cannot be traced"):
        near(mg.vmap(lambda x: x if x.sum().item() > 0 else -x)(X).sum(axis=1), mg.abs(X.sum(axis=1)))


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: mg.vmap(mg.add)(X, X[:2]), "no one batch size"),
        (lambda: mg.vmap(mg.add, in_axes=(0, 3))(X, X), "has no axis 3"),
        (lambda: mg.vmap(mg.add, in_axes=(0,))(X, X), "one axis for each argument"),
        (lambda: mg.vmap(mg.sin, in_axes=None)(X), "no batch at all"),
        (lambda: mg.vmap(X), "takes a function"),
    ],
)
def test_what_has_no_batch_is_refused(call: Any, told: str) -> None:
    with pytest.raises(mg.MinigradError, match=told):
        call()


def doubled_mean(x: mg.Tensor) -> float:
    return 2 * float(x.data.mean())


class Scaled(mg.nn.Module):
    def forward(self, x: mg.Tensor) -> mg.Tensor:
        return x * float(x.data.sum())


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * float(x.data.mean()),
        lambda x: x * doubled_mean(x),
        lambda x: x * 2 if x.data.sum() > 0 else x * 3,
        lambda x: x * (lambda y: y.data.max())(x * 2),
        lambda x: x * getattr(x, "data").sum(),  # noqa: B009
        lambda x: x * operator.attrgetter("data")(x).sum(),
        Scaled(),
    ],
    ids=["number", "helper", "branch", "inner function", "getattr", "attrgetter", "module"],
)
@pytest.mark.filterwarnings("ignore:vmap:RuntimeWarning")
def test_values_that_a_function_reads_from_data_are_those_of_its_argument(f: Any) -> None:
    near(mg.vmap(f)(X), mg.stack([f(x) for x in X]))
    near(mg.jvp(f, (X,), (X,))[0], f(X))


def test_an_attribute_called_data_of_something_else_is_no_reason_to_loop(monkeypatch: Any) -> None:
    class Scale:
        def __init__(self) -> None:
            self.data = 3.0

        def __call__(self, x: mg.Tensor) -> mg.Tensor:
            return x * self.data * len(mg.data.__name__)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        near(mg.vmap(Scale())(X), Scale()(X))


def test_what_is_given_by_name_is_the_same_for_every_example() -> None:
    row = mg.tensor(np.arange(3.0))
    near(mg.vmap(lambda x, *, scale, shift=0: x * scale + shift)(X, scale=row, shift=1), X * row + 1)


@pytest.mark.torch
def test_what_is_given_by_name_is_the_same_for_every_example_in_pytorch_too() -> None:
    import torch

    def scaled(x: Any, *, scale: Any) -> Any:
        return x * scale

    row = np.arange(3.0)
    theirs = torch.func.vmap(scaled)(torch.tensor(X.numpy()), scale=torch.tensor(row))
    near(mg.vmap(scaled)(X, scale=mg.tensor(row)), mg.tensor(theirs.numpy()))


@pytest.mark.filterwarnings("ignore:vmap:RuntimeWarning")
def test_every_example_gets_the_random_numbers_of_one_call_also_where_it_loops() -> None:
    def noisy(x: mg.Tensor) -> mg.Tensor:
        return F.dropout(x + mg.randn(4, dtype="float64") if x.sum().item() < 1e9 else x, 0.5)

    x = mg.ones(3, 4, dtype="float64")
    mg.manual_seed(0)
    one, after = noisy(x[0]), mg.rand(1).item()
    mg.manual_seed(0)
    got, after_batch = mg.vmap(noisy)(x), mg.rand(1).item()
    near(got, mg.stack([one, one, one]))
    assert after_batch == after
