"""Reductions, running sums and products, and sorting against PyTorch: axes, keepdims, ties, zeros, infinities and NaN."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.torch_oracle import Case, axes_of, axis_of, compare, compare_case, examples, numbers, seeds, shapes, torch

import minigrad as mg

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:.*degrees of freedom is <= 0", "ignore:divide by zero encountered in log"),
]
TIES = (-1.0, 0.0, 1.0, 2.0)


def far_apart(a: np.ndarray) -> np.ndarray:
    """Distinct numbers instead, none of them 0, so that no difference between two of them is small."""
    return np.argsort(a, axis=None).reshape(a.shape) / 7 - 0.95


@st.composite
def reduced(
    draw: Any, shape: Any = None, special: Any = (), several: bool = True, distinct: bool = False, **attrs: Any
) -> Any:
    """An array, the axes to reduce, and keepdims."""
    a = numbers(draw(seeds), draw(shape if shape is not None else shapes()), special=special)
    a = far_apart(a) if distinct else a
    axis = draw(axes_of(a.ndim)) if several else draw(st.none() | axis_of(a.ndim)) if a.ndim else None
    return [a], {"axis": axis, "keepdims": draw(st.booleans()), **{name: draw(value) for name, value in attrs.items()}}


@st.composite
def along(draw: Any, special: Any = (), shape: Any = None, distinct: bool = False, **attrs: Any) -> Any:
    """An array and one axis of it."""
    chosen = draw(shape if shape is not None else shapes(min_axes=1))
    a = numbers(draw(seeds), chosen, special=special)
    a = far_apart(a) if distinct else a
    return [a], {"axis": draw(axis_of(a.ndim)), **{name: draw(value) for name, value in attrs.items()}}


@st.composite
def matrices(draw: Any, orders: Any) -> Any:
    a = numbers(draw(seeds), draw(shapes(min_axes=2, min_size=1)))
    first, second = draw(st.permutations(range(a.ndim)))[:2]
    return [a], {
        "axis": (first, second - a.ndim),
        "ord": draw(st.sampled_from(orders)),
        "keepdims": draw(st.booleans()),
    }


def dims(a: Any, axis: Any) -> Any:
    return tuple(range(a.ndim)) if axis is None else axis


def plain(function: Any) -> Any:
    """A reduction of PyTorch's that takes a tuple of axes."""
    return lambda a, axis, keepdims, **rest: function(a, dim=dims(a, axis), keepdim=keepdims, **rest)


def one_at_a_time(function: Any) -> Any:
    """A reduction of PyTorch's that takes one axis only, done for each in turn."""

    def reduce(a: Any, axis: Any, keepdims: bool) -> Any:
        axes = dims(a, axis)
        axes = sorted(i % a.ndim for i in (axes if isinstance(axes, tuple) else (axes,)))
        for i in reversed(axes):
            a = function(a, dim=i, keepdim=keepdims)
        return a

    return reduce


def spread(function: Any) -> Any:
    """var and std, in which PyTorch calls ddof the correction."""
    return lambda a, axis, keepdims, ddof: function(a, dim=dims(a, axis), keepdim=keepdims, correction=ddof)


def position(function: Any) -> Any:
    return lambda a, axis, keepdims: function(a, dim=axis, keepdim=keepdims)


def vector_norm(a: Any, axis: Any, keepdims: bool, ord: Any) -> Any:
    return torch.linalg.vector_norm(a, ord=2 if ord is None else ord, dim=axis, keepdim=keepdims)


def matrix_norm(a: Any, axis: Any, keepdims: bool, ord: Any) -> Any:
    return torch.linalg.matrix_norm(a, ord=ord, dim=axis, keepdim=keepdims)


def raveled(function: Any) -> Any:
    return lambda a, axis: function(a.ravel() if axis is None else a, dim=0 if axis is None else axis)


def running(**options: Any) -> Any:
    return along(**options).flatmap(lambda drawn: st.sampled_from([drawn, (drawn[0], {"axis": None})]))


def median(a: Any, axis: Any, keepdims: bool) -> Any:
    """NumPy's median; PyTorch's own takes the lower of two middle elements."""
    flat = a.ravel() if axis is None else a
    result = torch.quantile(
        flat, 0.5, dim=0 if axis is None else axis, keepdim=keepdims and axis is not None, interpolation="midpoint"
    )
    return result.reshape((1,) * a.ndim) if axis is None and keepdims else result


def stable_topk(a: Any, axis: int, k: int, largest: bool) -> Any:
    """topk by a stable sort, since which of equal elements PyTorch's topk takes is not defined."""
    values, positions = torch.sort(a, dim=axis, descending=largest, stable=True)
    return values.narrow(axis, 0, k), positions.narrow(axis, 0, k)


def sort_values(a: Any, axis: int, descending: bool) -> Any:
    return torch.sort(a, dim=axis, descending=descending, stable=True).values


def argsort(a: Any, axis: int, descending: bool) -> Any:
    return torch.argsort(a, dim=axis, descending=descending, stable=True)


full, ddof = shapes(min_size=1), st.sampled_from([0, 1])
long_lines = shapes(min_axes=1, max_axes=3, min_size=2)
some, keep, small_k = shapes(min_axes=1, min_size=1), st.booleans(), st.integers(0, 2)
CASES = {
    "sum": Case(plain(torch.sum), reduced(special=TIES)),
    "mean": Case(plain(torch.mean), reduced(special=TIES)),
    "var": Case(spread(torch.var), reduced(full, special=TIES, ddof=ddof)),
    "std": Case(spread(torch.std), reduced(long_lines, distinct=True, ddof=ddof)),
    "prod": Case(one_at_a_time(torch.prod), reduced(special=(1.0, 2.0))),
    "prod: zeros": Case(one_at_a_time(torch.prod), reduced(special=(0.0, 0.0, 2.0), several=False)),
    "max": Case(plain(torch.amax), reduced(full, special=TIES)),
    "min": Case(plain(torch.amin), reduced(full, special=TIES)),
    "argmax": Case(position(torch.argmax), reduced(full, special=TIES, several=False), orders=0),
    "argmin": Case(position(torch.argmin), reduced(full, special=TIES, several=False), orders=0),
    "any": Case(plain(torch.any), reduced(special=(0.0, 0.0, 0.0)), orders=0),
    "all": Case(plain(torch.all), reduced(special=(0.0, 1.0)), orders=0),
    "logsumexp": Case(plain(torch.logsumexp), reduced(special=TIES)),
    "norm": Case(vector_norm, reduced(full, several=False, ord=st.just(None))),
    "norm: by axis": Case(
        vector_norm, along(TIES, some, ord=st.sampled_from([1, 2, 3, 0, math.inf, -math.inf]), keepdims=keep), orders=1
    ),
    "norm: second derivative": Case(
        vector_norm,
        along(
            shape=long_lines,
            distinct=True,
            ord=st.sampled_from([1, 2, 3, 2.5, 0.5, math.inf, -math.inf]),
            keepdims=keep,
        ),
    ),
    "norm: matrix": Case(matrix_norm, matrices([1, -1, 2, -2, math.inf, -math.inf, "fro", "nuc"]), orders=1),
    "cumsum": Case(raveled(torch.cumsum), running()),
    "cumprod": Case(raveled(torch.cumprod), running(special=(1.0, 2.0))),
    "cumprod: zeros": Case(raveled(torch.cumprod), running(special=(0.0, 0.0, 2.0))),
    "sort": Case(sort_values, along(special=TIES, descending=st.booleans())),
    "argsort": Case(argsort, along(special=TIES, descending=st.booleans()), orders=0),
    "topk": Case(
        lambda a, axis, k, largest: torch.topk(a, k, dim=axis, largest=largest),
        along(shape=long_lines, distinct=True, k=small_k, largest=st.booleans()),
    ),
    "topk: ties": Case(stable_topk, along(shape=long_lines, special=TIES, k=small_k, largest=st.booleans())),
    "median": Case(median, along(shape=some, distinct=True, keepdims=keep)),
    "median: whole": Case(median, reduced(full, several=False)),
}


@pytest.mark.parametrize("label", CASES)
@examples
@given(data=st.data())
def test_values_and_derivatives_equal_pytorchs(label: str, data: st.DataObject) -> None:
    compare_case(label.partition(":")[0], CASES[label], data)


SPECIAL_ROWS = np.array(
    [
        [0.0, 0.0, 0.0],
        [1.0, 1.0, 1.0],
        [0.0, 2.0, 0.0],
        [np.inf, 1.0, 2.0],
        [-np.inf, 1.0, 2.0],
        [-np.inf, -np.inf, -np.inf],
        [np.inf, np.inf, -np.inf],
        [np.nan, 1.0, 2.0],
        [1000.0, 1000.0, -1000.0],
    ]
)


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "min", "logsumexp"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows_of_zeros_ties_infinities_and_nan_give_pytorchs_values_and_gradients(name: str, dtype: str) -> None:
    rows = np.delete(SPECIAL_ROWS, 5, 0) if name == "logsumexp" else SPECIAL_ROWS
    compare(getattr(mg, name), CASES[name].theirs, [rows.astype(dtype)], {"axis": 1, "keepdims": False}, 1)


def test_logsumexp_of_nothing_but_minus_infinity_has_gradient_0_and_not_nan_as_in_pytorch() -> None:
    x, y = mg.full((3,), -np.inf, requires_grad=True), torch.full((3,), -np.inf, requires_grad=True)
    assert mg.logsumexp(x).item() == -np.inf
    assert mg.autograd.grad(mg.logsumexp(x), x)[0].tolist() == [0.0, 0.0, 0.0]
    assert torch.autograd.grad(torch.logsumexp(y, 0), y)[0].isnan().all()


@pytest.mark.parametrize("name", ["sum", "mean", "var", "std", "prod", "any", "all", "logsumexp", "norm"])
@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_empty_axes_reduce_as_in_pytorch(name: str, axis: int | None) -> None:
    attrs = {
        "axis": axis,
        "keepdims": False,
        **({"ddof": 1} if name in ("var", "std") else {"ord": None} if name == "norm" else {}),
    }
    compare(getattr(mg, name), CASES[name].theirs, [np.zeros((2, 0, 3))], attrs, min(CASES[name].orders, 1))


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("ddof", [0, 1])
def test_constant_rows_have_pytorchs_spread_and_gradient(name: str, ddof: int) -> None:
    compare(getattr(mg, name), CASES[name].theirs, [SPECIAL_ROWS[:3]], {"axis": 1, "keepdims": False, "ddof": ddof}, 1)


@pytest.mark.parametrize("ord", [1, 2, 3, 2.5, 1.5, 0, math.inf, -math.inf])
def test_the_norm_of_zeros_and_ties_has_pytorchs_gradient(ord: float) -> None:
    compare(mg.norm, vector_norm, [SPECIAL_ROWS[:3]], {"ord": ord, "axis": 1, "keepdims": False}, 1)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "sort"])
def test_running_and_sorted_rows_of_special_values_equal_pytorchs(name: str) -> None:
    attrs = {"axis": 1, "descending": False} if name == "sort" else {"axis": 1}
    rows = SPECIAL_ROWS[:3] if name == "cumprod" else SPECIAL_ROWS
    compare(getattr(mg, name), CASES[name].theirs, [rows], attrs, 1)


@pytest.mark.parametrize("values", [[2.0, 1.0, 2.0, 2.0], [1.0, 1.0, 1.0], [3.0, 1.0, 2.0, 2.0, 0.0]])
def test_the_median_of_ties_gives_its_whole_gradient_to_middle_elements(values: list[float]) -> None:
    x = mg.tensor(np.array(values), requires_grad=True)
    (g,) = mg.autograd.grad(mg.median(x), x)
    assert g.numpy().sum() == 1
    assert set(np.flatnonzero(g.numpy())) <= set(np.flatnonzero(np.array(values) == np.median(values)))


def test_spread_divides_by_n_and_the_median_averages_as_in_numpy_not_as_in_pytorch() -> None:
    values = np.array([1.0, 2.0, 4.0, 8.0])
    x, y = mg.tensor(values), torch.tensor(values)
    assert x.var().item() == values.var() != y.var().item()
    assert x.std().item() == values.std() != y.std().item()
    assert x.median().item() == np.median(values) != y.median().item()
