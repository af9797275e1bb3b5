"""Elementwise ops and activations against PyTorch: values, first and second derivatives, kinks, infinities and NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.torch_oracle import Case, arrays, broadcastable, compare, compare_case, examples, numbers, seeds, torch

import minigrad as mg

pytestmark = pytest.mark.torch
F = torch.nn.functional
KINKS = (-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0)
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -3.0, 3.0, 30.0, -30.0, 800.0, -800.0, np.inf, -np.inf, np.nan)


@st.composite
def one(draw: Any, low: float = -3.0, high: float = 3.0, special: Any = (), **attrs: Any) -> Any:
    """One array and its attributes, each attribute drawn from its own strategy."""
    return [draw(arrays(None, low, high, special))], {name: draw(value) for name, value in attrs.items()}


@st.composite
def several(draw: Any, count: int = 2, low: float = -3.0, high: float = 3.0, special: Any = ()) -> Any:
    """Arrays whose shapes broadcast with each other."""
    return [numbers(draw(seeds), shape, low, high, special) for shape in draw(broadcastable(count))], {}


@st.composite
def with_mask(draw: Any) -> Any:
    (mask, a, b), _ = draw(several(3, special=KINKS))
    return [mask > 0, a, b], {}


@st.composite
def booleans(draw: Any, count: int = 2) -> Any:
    operands, _ = draw(several(count, special=KINKS))
    return [a > 0 for a in operands], {}


@st.composite
def with_bounds(draw: Any) -> Any:
    """A tensor and bounds that broadcast to it; PyTorch's clamp cannot go back when the bounds are larger."""
    return [numbers(draw(seeds), shape, special=KINKS) for shape in draw(broadcastable(3, whole_first=True))], {}


@st.composite
def borders(draw: Any) -> Any:
    low, high = sorted([draw(st.sampled_from(KINKS)), draw(st.sampled_from(KINKS))])
    return [draw(arrays(special=KINKS))], {"low": low, "high": high + 0.5}


@st.composite
def powers(draw: Any) -> Any:
    """Any base with whole exponents, zeros among both."""
    base, exponent = [numbers(draw(seeds), shape, special=(0.0, 1.0, -2.0)) for shape in draw(broadcastable())]
    return [base, np.round(exponent)], {}


def hardsigmoid(a: Any) -> Any:
    """PyTorch's own divides by 6 rounded to float32, whatever the dtype, and has no second derivative."""
    return F.hardtanh(a, -3.0, 3.0) / 6 + 0.5


slopes = st.sampled_from([0.01, 0.2, 0.0, 1.0])
exponents = st.sampled_from([0, 1, 2, 3, -1, 2.0, 0.0, 1.0, 3.0])
bases = st.sampled_from([1, 2, 0.5, 3.0])
bounds = st.sampled_from([None, -1.0, 0.0, 0.5])

UNARY = {
    "negative": Case(torch.negative, one(special=KINKS)),
    "positive": Case(torch.positive, one(special=KINKS)),
    "abs": Case(torch.abs, one(special=KINKS)),
    "sign": Case(torch.sign, one(special=KINKS)),
    "exp": Case(torch.exp, one(special=KINKS)),
    "expm1": Case(torch.expm1, one(special=KINKS + (1e-9,))),
    "log": Case(torch.log, one(0.1, 5.0)),
    "log1p": Case(torch.log1p, one(-0.9, 5.0, special=(0.0, 1e-9))),
    "log2": Case(torch.log2, one(0.1, 5.0, special=(1.0,))),
    "log10": Case(torch.log10, one(0.1, 5.0, special=(1.0,))),
    "sqrt": Case(torch.sqrt, one(0.1, 5.0, special=(0.0, 1.0))),
    "rsqrt": Case(torch.rsqrt, one(0.1, 5.0)),
    "square": Case(torch.square, one(special=KINKS)),
    "reciprocal": Case(torch.reciprocal, one(0.2, 3.0)),
    "sin": Case(torch.sin, one(special=KINKS)),
    "cos": Case(torch.cos, one(special=KINKS)),
    "tan": Case(torch.tan, one(-1.3, 1.3, special=(0.0,))),
    "arcsin": Case(torch.asin, one(-0.95, 0.95, special=(0.0,))),
    "arccos": Case(torch.acos, one(-0.95, 0.95, special=(0.0,))),
    "arctan": Case(torch.atan, one(special=KINKS)),
    "sinh": Case(torch.sinh, one(special=KINKS)),
    "cosh": Case(torch.cosh, one(special=KINKS)),
    "tanh": Case(torch.tanh, one(special=KINKS)),
    "arcsinh": Case(torch.asinh, one(special=KINKS)),
    "arccosh": Case(torch.acosh, one(1.1, 5.0)),
    "arctanh": Case(torch.atanh, one(-0.95, 0.95, special=(0.0,))),
    "erf": Case(torch.erf, one(-7.0, 7.0, special=KINKS)),
    "floor": Case(torch.floor, one(special=KINKS)),
    "ceil": Case(torch.ceil, one(special=KINKS)),
    "trunc": Case(torch.trunc, one(special=KINKS)),
    "round": Case(torch.round, one(special=KINKS + (1.5, 2.5, -0.5))),
    "round: decimals": Case(torch.round, one(decimals=st.integers(1, 3))),
    "isnan": Case(torch.isnan, one(special=SPECIAL), orders=0),
    "isinf": Case(torch.isinf, one(special=SPECIAL), orders=0),
    "isfinite": Case(torch.isfinite, one(special=SPECIAL), orders=0),
    "logical_not": Case(torch.logical_not, one(special=SPECIAL), orders=0),
    "bitwise_invert": Case(torch.bitwise_not, booleans(1), orders=0),
    "clone": Case(torch.clone, one(special=KINKS)),
}
ACTIVATIONS = {
    "sigmoid": Case(torch.sigmoid, one(-8.0, 8.0, special=KINKS)),
    "relu": Case(torch.relu, one(special=KINKS)),
    "leaky_relu": Case(F.leaky_relu, one(special=KINKS, negative_slope=slopes)),
    "elu": Case(F.elu, one(special=KINKS, alpha=st.sampled_from([1.0, 0.5, 2.0]))),
    "selu": Case(F.selu, one(special=KINKS)),
    "gelu": Case(F.gelu, one(special=KINKS, approximate=st.sampled_from(["none", "tanh"]))),
    "silu": Case(F.silu, one(-8.0, 8.0, special=KINKS)),
    "softplus": Case(F.softplus, one(-8.0, 8.0, special=KINKS)),
    "mish": Case(F.mish, one(special=KINKS)),
    "hardtanh": Case(F.hardtanh, one(special=KINKS)),
    "hardtanh: borders": Case(
        lambda a, low, high: F.hardtanh(a, low, high),
        borders(),
        ours=lambda a, low, high: mg.hardtanh(a, min_val=low, max_val=high),
    ),
    "hardsigmoid": Case(hardsigmoid, one(-5.0, 5.0, special=KINKS)),
    "logsigmoid": Case(F.logsigmoid, one(-8.0, 8.0, special=KINKS)),
    "softsign": Case(F.softsign, one(special=KINKS)),
}
BINARY = {
    "add": Case(torch.add, several()),
    "subtract": Case(torch.subtract, several()),
    "multiply": Case(torch.multiply, several(special=KINKS)),
    "divide": Case(torch.divide, several(low=0.3)),
    "floor_divide": Case(torch.floor_divide, several(special=KINKS), orders=0),
    "remainder": Case(torch.remainder, several(special=(-3.0, 2.0, 1.0, -0.5, 0.75))),
    "power": Case(torch.pow, several(low=0.2)),
    "power: whole exponents": Case(torch.pow, powers(), orders=1),
    "power: number as exponent": Case(
        lambda a, b: a**b, one(special=(0.0, 1.0, -2.0), b=exponents), ours=lambda a, b: a**b
    ),
    "power: number as base": Case(lambda a, b: b**a, one(special=KINKS, b=bases), ours=lambda a, b: b**a),
    "arctan2": Case(torch.atan2, several(low=0.2, special=(-1.0, 1.0))),
    "hypot": Case(torch.hypot, several(special=(0.0, 1.0)), orders=1),
    "logaddexp": Case(torch.logaddexp, several(special=(1.0,))),
    "maximum": Case(torch.maximum, several(special=KINKS)),
    "minimum": Case(torch.minimum, several(special=KINKS)),
    "clip: numbers": Case(
        lambda a, low, high: torch.clamp(a, low, high), borders(), ours=lambda a, low, high: mg.clip(a, low, high)
    ),
    "clip: one side": Case(
        lambda a, bound: torch.clamp(a, min=bound) if bound is not None else a.clone(),
        one(special=KINKS, bound=bounds),
        ours=lambda a, bound: mg.clip(a, min=bound),
    ),
    "clip: tensors": Case(torch.clamp, with_bounds(), ours=lambda a, low, high: mg.clip(a, low, high)),
    "clip: lower tensor": Case(
        lambda a, low: torch.clamp(a, min=low), several(special=KINKS), ours=lambda a, low: mg.clip(a, min=low)
    ),
    "clip: upper tensor": Case(
        lambda a, high: torch.clamp(a, max=high), several(special=KINKS), ours=lambda a, high: mg.clip(a, max=high)
    ),
    "where": Case(torch.where, with_mask()),
    "masked_fill": Case(
        lambda mask, a, b: torch.where(mask, b, a), with_mask(), ours=lambda mask, a, b: mg.masked_fill(a, mask, b)
    ),
    "logical_and": Case(torch.logical_and, several(special=KINKS), orders=0),
    "logical_or": Case(torch.logical_or, several(special=KINKS), orders=0),
    "logical_xor": Case(torch.logical_xor, several(special=KINKS), orders=0),
    "bitwise_and": Case(torch.bitwise_and, booleans(), orders=0),
    "bitwise_or": Case(torch.bitwise_or, booleans(), orders=0),
    "bitwise_xor": Case(torch.bitwise_xor, booleans(), orders=0),
    "equal": Case(torch.eq, several(special=SPECIAL), orders=0),
    "not_equal": Case(torch.ne, several(special=SPECIAL), orders=0),
    "less": Case(torch.lt, several(special=SPECIAL), orders=0),
    "less_equal": Case(torch.le, several(special=SPECIAL), orders=0),
    "greater": Case(torch.gt, several(special=SPECIAL), orders=0),
    "greater_equal": Case(torch.ge, several(special=SPECIAL), orders=0),
}
CASES = {**UNARY, **ACTIVATIONS, **BINARY}


@pytest.mark.parametrize("label", CASES)
@examples
@given(data=st.data())
def test_values_and_derivatives_equal_pytorchs(label: str, data: st.DataObject) -> None:
    compare_case(label.partition(":")[0], CASES[label], data)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", [n for n in {**UNARY, **ACTIVATIONS} if ":" not in n and n != "bitwise_invert"])
def test_zeros_infinities_and_nan_give_pytorchs_values_and_gradients(name: str, dtype: str) -> None:
    values = SPECIAL[:-1] if name in ("sign", "abs") else SPECIAL
    compare(getattr(mg, name), CASES[name].theirs, [np.array(values, dtype)], {}, min(CASES[name].orders, 1))


def test_the_sign_of_nan_is_nan_as_in_numpy_and_not_0_as_in_pytorch() -> None:
    x = mg.tensor(np.nan, requires_grad=True)
    assert np.isnan(mg.sign(x).item()) and torch.sign(torch.tensor(np.nan)).item() == 0
    assert np.isnan(mg.autograd.grad(mg.abs(x), x)[0].item())


@pytest.mark.parametrize(
    "name", [n for n, case in BINARY.items() if ":" not in n and case.orders and n not in ("where", "masked_fill")]
)
def test_pairs_of_zeros_infinities_and_nan_give_pytorchs_values_and_gradients(name: str) -> None:
    values = np.array([0.0, -0.0, 1.0, -1.0, 2.0, -2.5, 3.0, np.inf, -np.inf, np.nan])
    compare(
        getattr(mg, name), BINARY[name].theirs, [np.repeat(values, len(values)), np.tile(values, len(values))], {}, 1
    )


BLOCKING = {
    "relu": (lambda a: mg.relu(a), torch.relu),
    "hardtanh": (lambda a: mg.hardtanh(a) + 1, lambda a: F.hardtanh(a) + 1),
    "hardsigmoid": (lambda a: mg.hardsigmoid(a), hardsigmoid),
    "clip": (lambda a: mg.clip(a, 0.0, 1.0), lambda a: torch.clamp(a, 0.0, 1.0)),
    "maximum": (
        lambda a: mg.maximum(a, mg.tensor(np.zeros(4))),
        lambda a: torch.maximum(a, torch.zeros(4, dtype=torch.float64)),
    ),
    "minimum": (
        lambda a: -mg.minimum(-a, mg.tensor(np.zeros(4))),
        lambda a: -torch.minimum(-a, torch.zeros(4, dtype=torch.float64)),
    ),
    "where": (lambda a: mg.where(a > 0, a, 0.0), lambda a: torch.where(a > 0, a, 0.0)),
    "floor": (lambda a: mg.floor(a) * 0, lambda a: torch.floor(a) * 0),
    "sign": (lambda a: mg.sign(mg.relu(a)), lambda a: torch.sign(torch.relu(a))),
}


@pytest.mark.parametrize("name", BLOCKING)
def test_an_infinite_gradient_stops_where_pytorchs_does(name: str) -> None:
    """sqrt at 0 sends back infinity; an op whose slope is 0 there must not turn it into NaN unless PyTorch does."""
    ours, theirs = BLOCKING[name]
    compare(lambda a: mg.sqrt(ours(a)), lambda a: torch.sqrt(theirs(a)), [np.array([-4.0, -3.0, 0.25, 3.0])], {}, 1)
