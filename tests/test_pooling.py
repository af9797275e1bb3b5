"""Pooling of every kind: PyTorch's numbers for every option, the gradient of ties, and refusals that name the shapes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support.functional_oracle import assert_as_torch, normal

import minigrad as mg
from minigrad.errors import ArgumentError, IndexingError, ShapeError

F = mg.nn.functional
SHAPES = {1: (2, 3, 9), 2: (2, 3, 6, 7), 3: (1, 2, 4, 5, 6)}
POOLS: list[dict[str, Any]] = [
    {"kernel_size": 2},
    {"kernel_size": 3, "stride": 1},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 2, "stride": 3, "ceil_mode": True},
    {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
    {"kernel_size": 4, "stride": 3, "padding": 2, "ceil_mode": True},
]
PAIRS: list[dict[str, Any]] = [
    {"kernel_size": (3, 2), "stride": (1, 2)},
    {"kernel_size": (2, 4), "stride": 1, "padding": (1, 2)},
]
DILATED: list[dict[str, Any]] = [
    {"kernel_size": 2, "dilation": 2},
    {"kernel_size": 2, "dilation": 3, "padding": 1, "stride": 2, "ceil_mode": True},
]
by_axes = pytest.mark.parametrize("axes", [1, 2, 3])


def unique(*shape: int) -> np.ndarray:
    """Numbers in random order, no two of them equal."""
    return np.random.default_rng(0).permutation(math.prod(shape)).reshape(shape).astype("float64")


def whole(*shape: int) -> np.ndarray:
    """Whole numbers, many of them equal."""
    return np.random.default_rng(0).integers(-1, 2, shape).astype("float64")


def compare_with_indices(name: str, values: np.ndarray, **options: Any) -> None:
    """Values, positions and gradients of a pooling that also gives positions."""
    import torch

    x, y = mg.tensor(values, requires_grad=True), torch.tensor(values, requires_grad=True)
    ours, places = getattr(F, name)(x, **options, return_indices=True)
    theirs, expected = getattr(torch.nn.functional, name)(y, **options, return_indices=True)
    assert places.dtype == np.int64
    np.testing.assert_array_equal(places.numpy(), expected.numpy())
    np.testing.assert_array_equal(ours.numpy(), theirs.detach().numpy())
    ours.backward(mg.tensor(normal(*ours.shape)))
    theirs.backward(torch.tensor(normal(*ours.shape)))
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-12)


@pytest.mark.torch
@by_axes
@pytest.mark.parametrize("options", [*POOLS, *DILATED], ids=str)
def test_max_pooling_and_its_positions_agree_with_pytorch(options: dict[str, Any], axes: int):
    for values in (unique(*SHAPES[axes]), whole(*SHAPES[axes])):
        compare_with_indices(f"max_pool{axes}d", values, **options)


@pytest.mark.torch
@pytest.mark.parametrize("options", [*POOLS[:3], *PAIRS, *DILATED], ids=str)
def test_second_derivatives_of_max_pool2d_agree_with_pytorch(options: dict[str, Any]):
    assert_as_torch("max_pool2d", normal(2, 3, 6, 7), **options)


@pytest.mark.torch
@by_axes
@pytest.mark.parametrize("count_include_pad", [True, False])
@pytest.mark.parametrize("options", POOLS, ids=str)
def test_average_pooling_agrees_with_pytorch(options: dict[str, Any], count_include_pad: bool, axes: int):
    assert_as_torch(f"avg_pool{axes}d", normal(*SHAPES[axes]), count_include_pad=count_include_pad, **options)


@pytest.mark.torch
@pytest.mark.parametrize("options", [*PAIRS, {**POOLS[4], "divisor_override": 5}], ids=str)
def test_avg_pool2d_with_pairs_and_a_divisor_agrees_with_pytorch(options: dict[str, Any]):
    assert_as_torch("avg_pool2d", normal(2, 3, 6, 7), **options)


@pytest.mark.torch
@by_axes
@pytest.mark.parametrize("norm_type", [1.0, 2.5])
@pytest.mark.parametrize("options", [POOLS[0], POOLS[1], POOLS[3]], ids=str)
def test_pooling_by_a_norm_agrees_with_pytorch(options: dict[str, Any], norm_type: float, axes: int):
    assert_as_torch(f"lp_pool{axes}d", abs(normal(*SHAPES[axes])) + 0.1, norm_type=norm_type, **options)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("axes", "size"), [(1, 1), (1, 4), (1, 12), (2, (4, 5)), (2, (None, 3)), (2, 3), (3, (3, 2, 4)), (3, (1, None, 2))]
)
def test_adaptive_pooling_agrees_with_pytorch(axes: int, size: Any):
    assert_as_torch(f"adaptive_avg_pool{axes}d", normal(*SHAPES[axes]), output_size=size)
    for values in (unique(*SHAPES[axes]), whole(*SHAPES[axes])):
        compare_with_indices(f"adaptive_max_pool{axes}d", values, output_size=size)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("axes", "options", "output_size"),
    [(1, {"kernel_size": 2}, (9,)), (2, {"kernel_size": 2}, (6, 7)), (2, {"kernel_size": 3, "stride": 2}, (2, 3, 6, 7)),
     (3, {"kernel_size": (2, 1, 2), "padding": (1, 0, 0)}, None)],
)  # fmt: skip
def test_what_was_pooled_goes_back_as_in_pytorch(axes: int, options: dict[str, Any], output_size: Any):
    import torch

    values = unique(*SHAPES[axes])
    y, places = getattr(torch.nn.functional, f"max_pool{axes}d")(torch.tensor(values), **options, return_indices=True)
    expected = getattr(torch.nn.functional, f"max_unpool{axes}d")(y, places, **options, output_size=output_size)
    back = getattr(F, f"max_unpool{axes}d")(y.numpy(), mg.tensor(places.numpy()), **options, output_size=output_size)
    np.testing.assert_array_equal(back.numpy(), expected.numpy())


def test_the_first_of_equal_elements_gets_the_whole_gradient(device):
    x = mg.ones(1, 1, 4, 4, device=device, requires_grad=True)
    F.max_pool2d(x, 2).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy()[0, 0], [[1, 0, 1, 0], [0, 0, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]])


def test_of_elements_with_one_position_the_last_is_put_back_and_gets_the_gradient():
    x = mg.tensor([[[1.0, 2.0, 3.0]]], requires_grad=True)
    back = F.max_unpool1d(x, mg.tensor([[[1, 1, 4]]]), 2)
    assert back.tolist() == [[[0.0, 2.0, 0.0, 0.0, 3.0, 0.0]]]
    back.sum().backward()
    assert x.grad.tolist() == [[[0.0, 1.0, 1.0]]]


def test_padding_never_wins_in_max_pool2d():
    low = mg.full((1, 1, 2, 2), -math.inf, requires_grad=True)
    pooled = F.max_pool2d(low, 2, padding=1)
    assert (pooled.numpy() == -math.inf).all()
    pooled.backward(mg.ones(1, 1, 2, 2))
    np.testing.assert_array_equal(low.grad.numpy(), np.ones((1, 1, 2, 2)))
    assert (F.max_pool2d(mg.full((1, 1, 2, 2), -5), 2, padding=1).numpy() == -5).all()


def test_nan_goes_through_max_pool2d():
    image = np.arange(16.0).reshape(1, 1, 4, 4)
    image[0, 0, 0, 0] = math.nan
    pooled = F.max_pool2d(image, 2).numpy()[0, 0]
    assert math.isnan(pooled[0, 0]) and pooled[1, 1] == 15


def test_pooling_with_padding_is_not_stopped_by_debug(device):
    x = mg.tensor(normal(1, 2, 5, 5), device=device, requires_grad=True)
    with mg.debug():
        F.max_pool2d(x, 3, padding=1).sum().backward()
    assert np.isfinite(x.grad.numpy()).all()


def test_pooling_compiles_to_the_same_numbers():
    def loss(x):
        values, places = F.max_pool2d(x, 3, 2, 1, return_indices=True)
        back = F.max_unpool2d(values, places, 3, 2, 1, output_size=(6, 7))
        return (F.adaptive_avg_pool2d(values, (2, 3)) ** 2).sum() + (back**3).sum()

    x = mg.tensor(normal(2, 3, 6, 7))
    value, gradient = mg.value_and_grad(loss)(x)
    compiled_value, compiled_gradient = mg.compile(mg.value_and_grad(loss))(x)
    np.testing.assert_allclose(compiled_value.numpy(), value.numpy(), rtol=1e-12)
    np.testing.assert_allclose(compiled_gradient.numpy(), gradient.numpy(), rtol=1e-12)


@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d"])
def test_pooling_refuses_what_does_not_fit(name):
    pool = getattr(F, name)
    with pytest.raises(ShapeError, match=r"axes(?s:.*)\(4, 4\)"):
        pool(mg.zeros(4, 4), 2)
    with pytest.raises(ShapeError, match="kernel is larger"):
        pool(mg.zeros(1, 1, 2, 2), 3)
    with pytest.raises(ArgumentError, match="half the kernel"):
        pool(mg.zeros(1, 1, 4, 4), 2, padding=2)
    with pytest.raises(ArgumentError, match="kernel_size"):
        pool(mg.zeros(1, 1, 4, 4), 0)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: F.avg_pool2d(mg.zeros(1, 4, 4), 2, divisor_override=0), ArgumentError, "divisor_override"),
        (lambda: F.adaptive_avg_pool2d(mg.zeros(1, 4, 4), (1, 2, 3)), ArgumentError, "output_size"),
        (lambda: F.adaptive_max_pool1d(mg.zeros(1, 0), 1), ShapeError, "no elements"),
        (lambda: F.max_pool1d(mg.zeros(1, 1), 2, padding=2, dilation=4), ShapeError, "nothing but padding"),
        (lambda: F.max_unpool1d(mg.zeros(1, 3), mg.tensor([[0, 1]]), 2), ShapeError, r"\(1, 3\)(?s:.*)\(1, 2\)"),
        (lambda: F.max_unpool1d(mg.zeros(1, 2), mg.tensor([[0, 9]]), 2), IndexingError, "out of range"),
        (lambda: F.max_unpool1d(mg.zeros(1, 2), mg.tensor([[0, 1]]), 2, output_size=(9,)), ShapeError, "about"),
    ],
)
def test_bad_arguments_are_refused_by_name(call: Any, error: type[Exception], words: str):
    with pytest.raises(error, match=words):
        call()
