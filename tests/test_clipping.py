"""Clipping makes gradients shorter exactly as PyTorch's does, and says when their norm is no number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import CallError, GradientError, NonFiniteError
from minigrad.optim import clip_grad_norm_, clip_grad_value_

RANDOM = np.random.default_rng(0)
GRADIENTS = [RANDOM.standard_normal(shape) * 3 for shape in ((3, 4), (5,), ())]


def parameters(gradients: list[np.ndarray], device: str = "cpu") -> list[mg.Tensor]:
    params = []
    for g in gradients:
        p = mg.zeros(g.shape, dtype=g.dtype, device=device, requires_grad=True)
        p.grad = mg.tensor(g, dtype=g.dtype, device=device)
        params.append(p)
    return [*params, mg.ones(2, device=device, requires_grad=True), mg.ones(2, device=device)]


def gradients_of(params: list[Any]) -> np.ndarray:
    return np.concatenate([np.ravel(p.grad.numpy()) for p in params if p.grad is not None])


def torch_parameters(gradients: list[np.ndarray]) -> list[Any]:
    import torch

    params = [torch.zeros(g.shape, dtype=torch.tensor(g).dtype, requires_grad=True) for g in gradients]
    for p, g in zip(params, gradients):
        p.grad = torch.tensor(g)
    return params


@pytest.mark.torch
@pytest.mark.parametrize("norm_type", [2.0, 1.0, 3.0, math.inf])
@pytest.mark.parametrize("max_norm", [0.0, 0.5, 1e6])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_norm_and_the_gradients_are_pytorchs(norm_type: float, max_norm: float, dtype: str, device: str) -> None:
    import torch

    arrays = [g.astype(dtype) for g in GRADIENTS]
    ours, theirs = parameters(arrays, device), torch_parameters(arrays)
    norm = clip_grad_norm_(ours, max_norm, norm_type)
    expected = torch.nn.utils.clip_grad_norm_(theirs, max_norm, norm_type)
    tolerance = 1e-12 if dtype == "float64" else 1e-6
    assert norm == pytest.approx(float(expected), rel=tolerance)
    np.testing.assert_allclose(gradients_of(ours), gradients_of(theirs), rtol=tolerance, atol=0)


@pytest.mark.torch
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("norm_type", [2.0, math.inf])
def test_a_norm_that_is_no_number_is_returned_as_pytorch_returns_it(bad: float, norm_type: float, device: str) -> None:
    import torch

    arrays = [g.copy() for g in GRADIENTS]
    arrays[0][1, 1] = bad
    ours, theirs = parameters(arrays, device), torch_parameters(arrays)
    norm = clip_grad_norm_(ours, 1.0, norm_type)
    np.testing.assert_equal(norm, float(torch.nn.utils.clip_grad_norm_(theirs, 1.0, norm_type)))
    np.testing.assert_array_equal(gradients_of(ours), gradients_of(theirs))


def test_a_norm_that_is_no_number_is_refused_on_request_and_nothing_changes(device: str) -> None:
    arrays = [g.copy() for g in GRADIENTS]
    arrays[1][0] = math.nan
    params = parameters(arrays, device)
    before = gradients_of(params)
    with pytest.raises(NonFiniteError, match="nan(.|\n)*1 of 3 parameters"):
        clip_grad_norm_(params, 1.0, error_if_nonfinite=True)
    np.testing.assert_array_equal(gradients_of(params), before)


def test_short_gradients_keep_every_bit(device: str) -> None:
    params = parameters(GRADIENTS, device)
    before = gradients_of(params)
    assert clip_grad_norm_(params, 1e6) == pytest.approx(np.linalg.norm(before), rel=1e-12)
    np.testing.assert_array_equal(gradients_of(params), before)


def test_the_norm_of_float16_gradients_does_not_overflow(device: str) -> None:
    params = parameters([np.full(100, 300, np.float16)], device)
    assert clip_grad_norm_(params, 1.0) == pytest.approx(3000)
    np.testing.assert_allclose(gradients_of(params), 0.1, rtol=1e-3)


def test_gradients_in_any_layout_are_clipped_in_place() -> None:
    p = mg.zeros(4, 3, dtype="float64", requires_grad=True)
    gradient = np.arange(12.0).reshape(3, 4).T
    expected = gradient / np.linalg.norm(gradient)
    p.grad = gradient
    clip_grad_norm_([p], 1.0)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6)


def test_no_gradients_have_the_norm_zero() -> None:
    assert clip_grad_norm_([mg.ones(2, requires_grad=True)], 1.0) == 0.0
    assert clip_grad_norm_([], 1.0, math.inf) == 0.0


def test_a_parameter_given_twice_counts_once() -> None:
    p = parameters([np.array([3.0, 4.0])])[0]
    assert clip_grad_norm_([p, p], 1.0) == pytest.approx(5.0)
    np.testing.assert_allclose(p.grad.numpy(), [0.6, 0.8], rtol=1e-6)


@pytest.mark.torch
def test_values_are_clipped_as_pytorch_clips_them(device: str) -> None:
    import torch

    arrays = [*GRADIENTS, np.array([math.nan, math.inf, -math.inf, 0.25])]
    ours, theirs = parameters(arrays, device), torch_parameters(arrays)
    clip_grad_value_(ours, 0.5)
    torch.nn.utils.clip_grad_value_(theirs, 0.5)
    np.testing.assert_array_equal(gradients_of(ours), gradients_of(theirs))


def test_a_backward_that_needs_the_unclipped_gradient_is_refused(device: str) -> None:
    p = parameters([np.array([3.0, 4.0])], device)[0]
    w = mg.ones(2, dtype="float64", device=device, requires_grad=True)
    loss = (w * p.grad).sum()
    clip_grad_norm_(p, 1.0)
    with pytest.raises(GradientError, match="overwritten"):
        loss.backward()


@pytest.mark.parametrize(("max_norm", "norm_type"), [(-1.0, 2.0), (math.nan, 2.0), (1.0, 0.0), (1.0, -2.0)])
def test_a_negative_norm_is_refused(max_norm: float, norm_type: float) -> None:
    with pytest.raises(ValueError, match="cannot be negative"):
        clip_grad_norm_([], max_norm, norm_type)


@pytest.mark.parametrize("clip", [clip_grad_norm_, clip_grad_value_])
def test_a_model_or_numbers_in_the_place_of_parameters_are_refused(clip: Any) -> None:
    with pytest.raises(CallError, match=r"(?s)clipping needs parameters.*Linear.*model\.parameters\(\)"):
        clip(mg.nn.Linear(2, 2), 1.0)
    with pytest.raises(CallError, match=r"(?s)clipping needs parameters.*Tensors"):
        clip([1.0], 1.0)


def test_a_negative_bound_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be negative"):
        clip_grad_value_([], -1.0)
