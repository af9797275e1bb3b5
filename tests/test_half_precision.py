"""float16: sums that it could not hold are computed in float32, and products as fast as those of float32."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad.nn import functional as F

EPS = float(np.finfo("float16").eps)
STEP = float(np.finfo("float16").smallest_subnormal)  # numbers near 0 are this far apart


def halves(*shape: int, scale: float = 1.0, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype("float16")


def outcome(function: Callable[..., Any], arrays: list[np.ndarray], dtype: str, device: str) -> list[np.ndarray]:
    """The result, and the gradient of each input for an upstream gradient that differs from place to place."""
    inputs = [mg.tensor(a, dtype=dtype, device=device, requires_grad=True) for a in arrays]
    result = function(*inputs)
    upstream = np.linspace(0.5, 1.5, result.size).reshape(result.shape)
    result.backward(mg.tensor(upstream, dtype=result.dtype, device=device))
    grads = [x.grad for x in inputs]
    assert all(g is not None for g in grads)
    assert {x.dtype.name for x in (result, *grads)} == {dtype}
    return [x.numpy() for x in (result, *grads)]


def assert_as_float64(function: Callable[..., Any], arrays: list[np.ndarray], device: str) -> None:
    exact = outcome(function, arrays, "float64", "cpu")
    for ours, theirs in zip(outcome(function, arrays, "float16", device), exact):
        largest = np.abs(theirs).max()
        assert 0 < largest < 65504, "the true result must be one that float16 can hold"
        np.testing.assert_allclose(ours, theirs, rtol=4 * EPS, atol=max(4 * EPS * largest, STEP))


PRODUCTS = {
    "matrices": (lambda a, b: a @ b, (5, 300), (300, 4)),
    "stack and matrix": (lambda a, b: a @ b, (2, 5, 300), (300, 4)),
    "stacks": (lambda a, b: a @ b, (2, 5, 300), (2, 300, 4)),
    "matrix and vector": (lambda a, b: a @ b, (5, 300), (300,)),
    "vector and matrix": (lambda a, b: a @ b, (300,), (300, 4)),
    "vectors": (lambda a, b: a @ b, (300,), (300,)),
    "einsum": (lambda a, b: mg.einsum("bij,bjk->bik", a, b), (2, 5, 300), (2, 300, 4)),
    "einsum of vectors": (lambda a, b: mg.einsum("i,i->", a, b), (300,), (300,)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_and_their_gradients_are_those_of_float64_rounded(name: str, device: str) -> None:
    function, first, second = PRODUCTS[name]
    assert_as_float64(function, [halves(*first), halves(*second, seed=1)], device)


def test_a_product_with_another_dtype_is_promoted_as_numpys() -> None:
    half = mg.tensor(halves(3, 3))
    for other in ("float32", "float64"):
        assert (half @ mg.ones(3, 3, dtype=other)).dtype == other


@pytest.mark.parametrize("name", ["matmul", "einsum"])
def test_products_of_float16_go_through_float32(name: str) -> None:
    """NumPy's own product of float16 takes about 80 times as long as that of float32, and so does its einsum."""
    function = {"matmul": mg.matmul, "einsum": lambda a, b: mg.einsum("ij,jk->ik", a, b)}[name]
    converted: list[str] = []

    def watch(frame: Any, event: str, called: Any) -> None:
        if event == "c_call" and called.__name__ == "astype":
            converted.append(str(called.__self__.dtype))

    x, w = (mg.tensor(halves(4, 4), dtype="float16", requires_grad=True) for _ in range(2))
    sys.setprofile(watch)
    try:
        function(x, w).sum().backward()
    finally:
        sys.setprofile(None)
    # The product, and those of the two gradients: two factors become wide, and the result narrow.
    assert (converted.count("float16"), converted.count("float32")) == (6, 3)


FUNCTIONS = {
    "softmax of many": (F.softmax, [halves(70_000, scale=0.1)]),
    "softmax of large numbers": (F.softmax, [halves(3, 40, scale=2)]),
    "layer_norm": (lambda x: F.layer_norm(x, 50), [halves(4, 50, scale=600)]),
    "rms_norm": (lambda x: F.rms_norm(x, 50), [halves(4, 50, scale=600)]),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), [halves(9, 4, 5, scale=600)]),
    "cosine_similarity": (F.cosine_similarity, [halves(3, 40, scale=300), halves(3, 40, scale=300, seed=1)]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_sum_inside_a_function_overflows(name: str, device: str) -> None:
    function, arrays = FUNCTIONS[name]
    assert_as_float64(function, arrays, device)


def test_the_logarithm_of_a_softmax_of_many_is_finite(device: str) -> None:
    equal = mg.zeros(70_000, dtype="float16", device=device)
    np.testing.assert_allclose(F.log_softmax(equal).numpy(), -math.log(70_000), rtol=EPS)


def test_attention_to_very_many_keys_is_their_mean(device: str) -> None:
    query, keys = (mg.zeros(n, 4, dtype="float16", device=device) for n in (1, 70_000))
    values, mask = mg.ones(70_000, 2, dtype="float16", device=device), mg.ones(1, 70_000, dtype="bool", device=device)
    for given in (None, mask):
        result = F.scaled_dot_product_attention(query, keys, values, given)
        assert result.dtype == "float16"
        np.testing.assert_allclose(result.numpy(), 1, rtol=2 * EPS)


def test_vectors_of_zeros_have_similarity_zero(device: str) -> None:
    """The least length, 1e-8, is itself 0 in float16."""
    zeros = mg.zeros(2, 3, dtype="float16", device=device)
    np.testing.assert_array_equal(F.cosine_similarity(zeros, zeros).numpy(), 0)


def test_similarity_to_a_wider_vector_is_as_wide() -> None:
    assert F.cosine_similarity(mg.tensor(halves(2, 3)), mg.ones(2, 3)).dtype == "float32"
    assert F.cosine_similarity(mg.ones(2, 3), mg.tensor(halves(2, 3))).dtype == "float32"


def test_batch_norm_in_float16_learns_exact_statistics_and_uses_them(device: str) -> None:
    values = halves(9, 4, scale=600)
    x = mg.tensor(values, device=device)
    statistics = [mg.zeros(4, device=device), mg.ones(4, device=device)]
    F.batch_norm(x, *statistics, training=True, momentum=1.0)
    wide = values.astype("float64")
    np.testing.assert_allclose(statistics[0].numpy(), wide.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(statistics[1].numpy(), wide.var(axis=0, ddof=1), rtol=1e-5)
    after = F.batch_norm(x, *statistics)
    assert after.dtype == "float16"
    expected = (wide - wide.mean(axis=0)) / wide.std(axis=0, ddof=1)
    np.testing.assert_allclose(after.numpy(), expected, rtol=2 * EPS, atol=2 * EPS)


@pytest.mark.torch
@pytest.mark.parametrize("scale", [1e-3, 1.0, 600.0])
def test_rms_norm_takes_pytorchs_eps_also_in_float16(scale: float) -> None:
    import torch

    values = halves(4, 50, scale=scale)
    theirs = torch.nn.functional.rms_norm(torch.tensor(values), (50,)).numpy()
    np.testing.assert_allclose(F.rms_norm(mg.tensor(values), 50).numpy(), theirs, rtol=EPS)


HALVES = np.array([[200.0, -200.0, 200.0, -200.0], [150.0, 160.0, -170.0, 180.0]], "float16")
SUMS_OF_SQUARES = {
    "var": (mg.var, np.var),
    "std": (mg.std, np.std),
    "norm": (mg.norm, lambda a, axis: np.linalg.norm(a, axis=axis)),
    "norm of order 3": (lambda a, axis: mg.norm(a, 3, axis), lambda a, axis: np.linalg.norm(a, 3, axis)),
    "nanvar": (mg.nanvar, np.nanvar),
    "nanstd": (mg.nanstd, np.nanstd),
}


@pytest.mark.parametrize("name", SUMS_OF_SQUARES)
def test_squares_that_float16_cannot_hold_are_added_up_in_float32(name):
    ours, theirs = SUMS_OF_SQUARES[name]
    half, wide = mg.tensor(HALVES, requires_grad=True), mg.tensor(HALVES, dtype="float64", requires_grad=True)
    result = ours(half, axis=1)
    assert result.dtype == np.float16
    np.testing.assert_allclose(result.numpy(), theirs(HALVES.astype("float64"), axis=1), rtol=2e-3)
    found, expected = mg.autograd.grad(result.sum(), half)[0], mg.autograd.grad(ours(wide, axis=1).sum(), wide)[0]
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=5e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["mean", "nanmean", "logsumexp"])
def test_more_elements_than_float16_can_count_are_reduced_in_float32(name):
    x = mg.zeros(70_000, dtype="float16", requires_grad=True)
    result = getattr(mg, name)(x + 1.0)
    expected = 1 + np.log(70_000) if name == "logsumexp" else 1.0
    assert result.dtype == np.float16 and abs(result.item() - expected) < 0.01
    np.testing.assert_allclose(mg.autograd.grad(result, x)[0].numpy(), 1 / 70_000, rtol=0.05)
