"""Special functions, parts of numbers, running extremes, NaN-skipping sums, searching and counting against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.torch_oracle import Case, arrays, broadcastable, compare_case, examples, numbers, seeds, shapes, torch

import minigrad as mg

pytestmark = pytest.mark.torch
NAN = (np.nan, 0.0, 1.0)


@st.composite
def some(draw: Any, count: int = 1, low: float = -3.0, high: float = 3.0, special: Any = (), **attrs: Any) -> Any:
    """Arrays that broadcast with each other, and attributes, each drawn from its own strategy."""
    made = [numbers(draw(seeds), shape, low, high, special) for shape in draw(broadcastable(count))]
    return made, {name: draw(value) for name, value in attrs.items()}


@st.composite
def along(draw: Any, special: Any = (), **attrs: Any) -> Any:
    """An array and one axis of it."""
    a = numbers(draw(seeds), draw(shapes(min_axes=1, min_size=1)), special=special)
    return [a], {"axis": draw(st.integers(-a.ndim, a.ndim - 1)), **{name: draw(value) for name, value in attrs.items()}}


@st.composite
def sorted_and_values(draw: Any, **attrs: Any) -> Any:
    edges = np.sort(np.round(numbers(draw(seeds), (5,))))
    return [draw(arrays(None, -3.0, 3.0, (0.0, 1.0, 2.0))), edges], {name: draw(value) for name, value in attrs.items()}


@st.composite
def with_a_number(draw: Any) -> Any:
    """An array with NaN in it, but with a number on every line along an axis."""
    (a,), attrs = draw(along(special=NAN))
    np.moveaxis(a, attrs["axis"], 0)[0] = 0.5
    return [a], attrs


def over(function: Any) -> Any:
    """A function of PyTorch's with `dim` in place of `axis`."""
    return lambda a, axis, **rest: function(a, dim=axis, **rest)


booleans = st.booleans()
CASES = {
    "exp2": Case(torch.exp2, some()),
    "deg2rad": Case(torch.deg2rad, some()),
    "rad2deg": Case(torch.rad2deg, some()),
    "erfc": Case(torch.erfc, some(low=-5.0, high=5.0)),
    "erfinv": Case(torch.erfinv, some(low=-0.99, high=0.99)),
    "lgamma": Case(torch.lgamma, some(low=0.2, high=20.0), orders=1),  # PyTorch's polygamma(1, x) has nine digits
    "digamma": Case(torch.digamma, some(low=0.2, high=20.0), orders=0),
    "digamma: negative": Case(torch.digamma, some(low=-2.9, high=-2.1), orders=0),
    "polygamma": Case(
        lambda a, n: torch.polygamma(n, a),
        some(low=0.2, high=9.0, n=st.integers(2, 3)),
        ours=lambda a, n: mg.polygamma(n, a),
    ),
    "sinc": Case(torch.sinc, some(special=(0.0, 1.0)), orders=1),  # PyTorch's second derivative at 0 is 0
    "sinc: away from 0": Case(torch.sinc, some(low=0.2, high=3.0)),
    "sinc: negative": Case(torch.sinc, some(low=-3.0, high=-0.2)),
    "logit": Case(torch.logit, some(low=0.02, high=0.98)),
    "logit: eps": Case(torch.logit, some(low=-0.3, high=1.3, eps=st.sampled_from([0.01, 0.2]))),
    "xlogy": Case(torch.xlogy, some(2, low=0.2, special=(0.5,))),
    "xlog1py": Case(torch.special.xlog1py, some(2, low=-0.8, special=(0.5,))),
    "fmod": Case(torch.fmod, some(2, low=0.3)),
    "lerp": Case(torch.lerp, some(3)),
    "fmax": Case(torch.fmax, some(2, special=NAN), orders=1),
    "fmin": Case(torch.fmin, some(2, special=NAN), orders=1),
    "logaddexp2": Case(torch.logaddexp2, some(2)),
    "copysign": Case(torch.copysign, some(2, special=(0.0,)), orders=1),
    "frac": Case(torch.frac, some(special=(1.0, -2.0))),
    "nan_to_num": Case(torch.nan_to_num, some(special=(np.nan, np.inf, -np.inf)), orders=1),
    "heaviside": Case(torch.heaviside, some(2, special=(0.0,)), orders=0),
    "signbit": Case(torch.signbit, some(special=(0.0, -0.0)), orders=0),
    "isclose": Case(torch.isclose, some(2, special=(1.0, np.inf)), orders=0),
    "nansum": Case(over(torch.nansum), along(special=NAN)),
    "nanmean": Case(over(torch.nanmean), along(special=NAN), orders=0),
    "nanmean: of something": Case(over(torch.nanmean), with_a_number()),
    "logcumsumexp": Case(over(torch.logcumsumexp), along()),
    "cummax": Case(over(torch.cummax), along(special=(0.0, 1.0)), orders=1),
    "cummin": Case(over(torch.cummin), along(special=(0.0, 1.0)), orders=1),
    "diff": Case(over(torch.diff), along(n=st.integers(0, 2))),
    "count_nonzero": Case(over(torch.count_nonzero), along(special=(0.0,)), orders=0),
    "bucketize": Case(
        lambda a, b, right: torch.bucketize(a.contiguous(), b, right=right), sorted_and_values(right=booleans), orders=0
    ),
    "isin": Case(torch.isin, sorted_and_values(), orders=0),
    "unique": Case(torch.unique, some(special=(0.0, 1.0, 2.0)), orders=0),
}


@pytest.mark.parametrize("label", CASES)
@examples
@given(data=st.data())
def test_values_and_derivatives_equal_pytorchs(label: str, data: st.DataObject) -> None:
    compare_case(label.partition(":")[0], CASES[label], data)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_derivatives_of_lgamma_are_those_of_pytorch_to_its_nine_digits(times: int) -> None:
    points = np.concatenate([np.linspace(0.2, 20.0, 40), np.linspace(-2.9, -2.1, 7)])
    x, theirs = mg.tensor(points, requires_grad=True), torch.tensor(points, requires_grad=True)
    y, z = mg.lgamma(x), torch.lgamma(theirs)
    for _ in range(times):
        (y,) = mg.autograd.grad(y.sum(), x, create_graph=True)
        (z,) = torch.autograd.grad(z.sum(), theirs, create_graph=True)
    np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-8)


def test_the_second_derivative_of_sinc_at_0_is_the_limit_and_not_0_as_in_pytorch() -> None:
    second = mg.grad(mg.grad(mg.sinc))(mg.tensor(0.0, dtype="float64")).item()
    np.testing.assert_allclose(second, -(np.pi**2) / 3)


def test_lines_are_searched_as_pytorch_searches_them() -> None:
    lines, values = (
        np.sort(np.random.default_rng(0).normal(size=(2, 3, 7))),
        np.random.default_rng(1).normal(size=(2, 3, 4)),
    )
    expected = torch.searchsorted(torch.tensor(lines), torch.tensor(values)).numpy()
    np.testing.assert_array_equal(mg.searchsorted(lines, values).numpy(), expected)
