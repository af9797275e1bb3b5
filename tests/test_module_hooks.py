"""Hooks of modules on arguments by name and on gradients: what they see, what they may change, and what they leave alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.functional_oracle import normal

import minigrad as mg
from minigrad import nn
from minigrad.errors import GradientError


class Scaled(nn.Module):
    def forward(self, x: Any, y: Any, scale: float = 1.0) -> Any:
        return x * y * scale, x + y


def test_hooks_may_see_and_change_arguments_by_name():
    layer, seen = Scaled(), []
    layer.register_forward_pre_hook(lambda m, args, kwargs: (args, {"scale": kwargs["scale"] * 2}), with_kwargs=True)
    handle = layer.register_forward_hook(lambda m, args, kwargs, out: seen.append(kwargs), with_kwargs=True)
    out, _ = layer(mg.tensor(3.0), mg.tensor(5.0), scale=1.0)
    assert out.item() == 30 and seen == [{"scale": 2.0}]
    handle.remove()
    layer(mg.tensor(3.0), mg.tensor(5.0), scale=1.0)
    assert len(seen) == 1


@pytest.mark.torch
def test_a_backward_hook_sees_pytorchs_gradients_and_may_replace_them():
    import torch

    class Theirs(torch.nn.Module):
        def forward(self, x, y, scale=1.0):
            return x * y * scale, x + y

    results = []
    for layer, tensor in ((Scaled(), mg.tensor), (Theirs(), torch.tensor)):
        seen: list[Any] = []

        def watch(module, grad_input, grad_output, seen=seen):
            seen.append([*grad_input, *grad_output])
            return grad_input[0] * 2, grad_input[1]

        layer.register_full_backward_hook(watch)
        x, y = tensor(normal(3)), tensor(normal(3, seed=1))
        x.requires_grad_()
        y.requires_grad_()
        first, second = layer(x, y, scale=3.0)
        (first.sum() + (second * second).sum()).backward()
        results.append([part.numpy() for part in (*seen[0], x.grad, y.grad)])
    for ours, theirs in zip(*results):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_a_pre_hook_changes_the_gradient_before_the_modules_own(device: str):
    layer = nn.Linear(3, 2, device=device)
    layer.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 0,))
    x = mg.ones(4, 3, device=device, requires_grad=True)
    layer(x).sum().backward()
    assert not x.grad.numpy().any() and not layer.weight.grad.numpy().any()


def test_without_a_gradient_of_the_input_the_hook_gets_none_for_it():
    layer, seen = nn.Linear(3, 2), []
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append((grad_input, grad_output)))
    layer(mg.ones(4, 3)).sum().backward()
    ((grad_input, grad_output),) = seen
    assert grad_input == (None,) and grad_output[0].tolist() == [[1, 1]] * 4
    with mg.no_grad():
        layer(mg.ones(4, 3))
    assert len(seen) == 1


def test_hooks_run_once_for_each_call_and_can_be_removed():
    layer, calls = nn.Tanh(), []
    handle = layer.register_full_backward_hook(lambda *_: calls.append(1))
    x = mg.tensor([0.5], requires_grad=True)
    (layer(x) + layer(2 * x)).sum().backward()
    assert len(calls) == 2
    handle.remove()
    layer(x).sum().backward()
    assert len(calls) == 2


def test_higher_derivatives_pass_through_a_hook():
    layer = nn.Tanh()
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 3,))
    x = mg.tensor([0.3, -0.7], dtype="float64", requires_grad=True)
    (first,) = mg.autograd.grad(layer(x).sum(), [x], create_graph=True)
    (second,) = mg.autograd.grad(first.sum(), [x])
    t = np.tanh(x.numpy())
    np.testing.assert_allclose(first.numpy(), 3 * (1 - t * t))
    np.testing.assert_allclose(second.numpy(), -9 * 2 * t * (1 - t * t))  # the second backward passes the hook as well


def test_a_hook_that_returns_something_else_is_refused():
    layer = nn.Tanh()
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: mg.ones(5))
    with pytest.raises(GradientError, match="gradients like those it got"):
        layer(mg.ones(2, requires_grad=True)).sum().backward()


def test_a_compiled_function_refuses_hooks_on_gradients_which_it_would_run_once():
    layer = nn.Linear(3, 3)
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    with pytest.raises(GradientError, match="Linear: compile: a hook on gradients"):
        mg.compile(lambda x: layer(x).sum())(mg.ones(2, 3, requires_grad=True))
