"""PyTorch as the oracle: the same function on the same numbers in both frameworks, values and derivatives compared.

A `Case` says what PyTorch calls an op and how to draw arguments for it; the tables of cases are in the test files.
MINIGRAD_HYPOTHESIS=thorough draws many more examples.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

import minigrad as mg

torch = pytest.importorskip("torch", reason="PyTorch, the oracle of these tests, is not installed")
torch.backends.mkldnn.enabled = False  # oneDNN's GELU of float32 is wrong by 1e-4 on some machines, and NaN at infinity
torch.set_num_threads(1)

examples = settings(
    max_examples=500 if os.environ.get("MINIGRAD_HYPOTHESIS") == "thorough" else 30,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate, Phase.shrink),
)
_SAME_NAMES = ("sin", "tanh", "exp", "abs", "relu", "maximum", "minimum", "where", "no_grad", "enable_grad")
ours = SimpleNamespace(
    grad=mg.autograd.grad,
    leaf=lambda values: mg.tensor(values, requires_grad=True),
    constant=mg.tensor,
    detached=lambda a: a.detach(),
    start=lambda leaf: leaf * 1,
    cumsum=lambda a: mg.cumsum(a, axis=-1),
    flip=lambda a: mg.flip(a, axis=-1),
    total=lambda a: a.sum(axis=-1, keepdims=True),
    **{name: getattr(mg, name) for name in _SAME_NAMES},
)
theirs = SimpleNamespace(
    grad=torch.autograd.grad,
    leaf=lambda values: torch.tensor(values, requires_grad=True),
    constant=torch.tensor,
    detached=lambda a: a.detach().clone(),
    start=lambda leaf: leaf * 1,
    cumsum=lambda a: torch.cumsum(a, -1),
    flip=lambda a: torch.flip(a, (-1,)),
    total=lambda a: a.sum(-1, keepdim=True),
    **{name: getattr(torch, name) for name in _SAME_NAMES},
)
TOLERANCES = {"float64": {"rtol": 1e-10, "atol": 1e-11}, "float32": {"rtol": 1e-5, "atol": 1e-5}}


@dataclass(frozen=True)
class Case:
    """What PyTorch calls an op, how to draw its arguments, and how often both can be differentiated."""

    theirs: Callable[..., Any]
    arguments: st.SearchStrategy[tuple[list[np.ndarray], dict[str, Any]]]
    orders: int = 2
    single: bool = True  # whether float32 is compared too
    ours: Callable[..., Any] | None = None


def compare_case(name: str, case: Case, data: st.DataObject) -> None:
    """Draw arguments, then compare in float64 to the case's order, and in float32 to the first."""
    arrays, attrs = data.draw(case.arguments)
    ours = case.ours or getattr(mg, name)
    compare(ours, case.theirs, arrays, attrs, case.orders)
    if case.single:
        singles = [a.astype(np.float32) if a.dtype == np.float64 else a for a in arrays]
        compare(ours, case.theirs, singles, attrs, min(case.orders, 1))


@np.errstate(all="ignore")
def compare(
    ours: Callable[..., Any],
    theirs: Callable[..., Any],
    arrays: Sequence[np.ndarray],
    attrs: dict[str, Any],
    orders: int,
) -> None:
    """Values, dtypes, and derivatives up to `orders` agree; the second derivative is also taken through the weights of the outputs."""
    our_inputs = [mg.tensor(a, requires_grad=orders > 0 and a.dtype.kind == "f") for a in arrays]
    their_inputs = [torch.tensor(a, requires_grad=orders > 0 and a.dtype.kind == "f") for a in arrays]
    our_outputs = as_tuple(ours(*our_inputs, **attrs))
    their_outputs = as_tuple(theirs(*their_inputs, **attrs))
    assert len(our_outputs) == len(their_outputs)
    for i, (a, b) in enumerate(zip(our_outputs, their_outputs)):
        assert_same(a, b, f"output {i}")
    if orders:
        compare_derivatives(our_inputs, our_outputs, their_inputs, their_outputs, orders)


def compare_derivatives(our_inputs: Any, our_outputs: Any, their_inputs: Any, their_outputs: Any, orders: int) -> None:
    rng = np.random.default_rng(0)
    weights = [rng.uniform(0.5, 2.0, o.shape).astype(o.dtype) for o in our_outputs]
    our_total, our_wrt = _weighted(
        our_outputs, [ours.leaf(w) if w.dtype.kind == "f" else None for w in weights], our_inputs
    )
    their_total, their_wrt = _weighted(
        their_outputs, [theirs.leaf(w) if w.dtype.kind == "f" else None for w in weights], their_inputs
    )
    tolerance = TOLERANCES[str(weights[0].dtype) if weights[0].dtype.kind == "f" else "float64"]
    for order in range(1, orders + 1):
        again = order < orders
        our_grads = mg.autograd.grad(our_total, our_wrt, create_graph=again, allow_unused=True)
        their_grads = torch.autograd.grad(their_total, their_wrt, create_graph=again, allow_unused=True)
        for i, (a, b) in enumerate(zip(our_grads, their_grads)):
            assert_same_gradient(a, b, our_wrt[i], f"derivative {order} with respect to input {i}", tolerance)
        if again:
            factors = [rng.uniform(0.5, 2.0, x.shape).astype(x.dtype) for x in our_wrt]
            our_total = _dot(our_grads, [mg.tensor(f) for f in factors], our_wrt[-1])
            their_total = _dot(their_grads, [torch.tensor(f) for f in factors], their_wrt[-1])


def _weighted(outputs: Any, weights: Any, inputs: Any) -> tuple[Any, list[Any]]:
    """The sum of the outputs, each element with its weight, and everything to differentiate it by."""
    floating = [(o, w) for o, w in zip(outputs, weights) if w is not None]
    total = sum((o * w).sum() for o, w in floating)
    return total, [x for x in inputs if x.requires_grad] + [w for _, w in floating]


def _dot(grads: Any, factors: Any, anchor: Any) -> Any:
    """The sum of all gradients, each element with its factor; the anchor gives it a graph where no gradient depends on anything."""
    return sum(((g * f).sum() for g, f in zip(grads, factors) if g is not None), (anchor * 0).sum())


def as_tuple(outputs: Any) -> tuple[Any, ...]:
    return tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)


def assert_same(ours: Any, theirs: Any, what: str) -> None:
    """Both hold the same dtype, shape and numbers, NaN in the same places."""
    a, b = ours.numpy(), theirs.detach().numpy()
    assert isinstance(ours, mg.Tensor) and a.dtype == b.dtype, f"{what}: dtype {a.dtype}, PyTorch {b.dtype}"
    assert a.shape == b.shape, f"{what}: shape {a.shape}, PyTorch {b.shape}"
    np.testing.assert_allclose(a, b, err_msg=what, **TOLERANCES.get(str(a.dtype), {}))


def assert_same_gradient(ours: Any, theirs: Any, of: Any, what: str, tolerance: dict[str, float]) -> None:
    """The gradients agree; None, "does not depend on it", counts as zeros on either side."""
    a = np.zeros(of.shape, of.dtype) if ours is None else ours.numpy()
    b = np.zeros(of.shape, of.dtype) if theirs is None else theirs.detach().numpy()
    assert a.shape == of.shape and a.dtype == of.dtype, f"{what}: {a.shape} {a.dtype} for {of.shape} {of.dtype}"
    np.testing.assert_allclose(a, b, err_msg=what, **tolerance)


@st.composite
def shapes(draw: Any, min_axes: int = 0, max_axes: int = 4, min_size: int = 0, max_size: int = 4) -> tuple[int, ...]:
    """A shape; an empty one now and then where `min_size` is 0."""
    smallest = 0 if min_size == 0 and draw(st.integers(0, 5)) == 5 else max(min_size, 1)
    return tuple(draw(st.lists(st.integers(smallest, max_size), min_size=min_axes, max_size=max_axes)))


@st.composite
def broadcastable(draw: Any, count: int = 2, whole_first: bool = False) -> list[tuple[int, ...]]:
    """Shapes that broadcast with each other: some axes 1, some missing on the left; the first whole if asked."""
    whole = draw(shapes())
    result = [whole] if whole_first else []
    while len(result) < count:
        shape = tuple(1 if draw(st.booleans()) and draw(st.booleans()) else n for n in whole)
        result.append(shape[draw(st.integers(0, len(shape))) :] if draw(st.booleans()) else shape)
    return result


def numbers(
    seed: int, shape: tuple[int, ...], low: float = -3.0, high: float = 3.0, special: Sequence[float] = ()
) -> np.ndarray:
    """Random float64 numbers, about a third of them from `special`, so that ties and kinks are met."""
    rng = np.random.default_rng(seed)
    values = rng.uniform(low, high, shape)
    if len(special):
        values = np.where(rng.random(shape) < 0.35, rng.choice(np.asarray(special, dtype=np.float64), shape), values)
    return np.asarray(values)


seeds = st.integers(0, 2**32 - 1)


@st.composite
def arrays(
    draw: Any, shape: Any = None, low: float = -3.0, high: float = 3.0, special: Sequence[float] = ()
) -> np.ndarray:
    chosen = draw(shapes()) if shape is None else draw(shape) if isinstance(shape, st.SearchStrategy) else shape
    return numbers(draw(seeds), chosen, low, high, special)


def axis_of(ndim: int) -> st.SearchStrategy[int]:
    """One axis, counted from either end."""
    return st.integers(-ndim, ndim - 1)


@st.composite
def axes_of(draw: Any, ndim: int, none: bool = True) -> Any:
    """None, one axis, or a tuple of different axes, counted from either end."""
    kind = draw(st.sampled_from(["none", "one", "several"] if none else ["one", "several"]))
    if ndim == 0 or kind == "none":
        return None
    if kind == "one":
        return draw(axis_of(ndim))
    chosen = draw(st.lists(st.integers(0, ndim - 1), min_size=1, max_size=ndim, unique=True))
    return tuple(a - ndim if draw(st.booleans()) else a for a in chosen)
