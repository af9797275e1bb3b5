"""Muon and L-BFGS, which look at more than one element at a time, do what PyTorch's do, step for step."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.errors import CallError

RANDOM = np.random.default_rng(0)
STARTS = [RANDOM.standard_normal(shape) for shape in ((3, 5), (6, 2), (4, 4))]
TARGETS = [RANDOM.standard_normal(array.shape) for array in STARTS]
MUON: dict[str, dict[str, Any]] = {
    "defaults": {"lr": 0.02},
    "plain": {"lr": 0.02, "nesterov": False, "momentum": 0.8, "weight_decay": 0.0},
    "all": {"ns_steps": 3, "ns_coefficients": (2.0, -1.5, 0.5), "adjust_lr_fn": "match_rms_adamw", "eps": 1e-3},
}


def bowl(params: Any, targets: Any) -> Any:
    return sum(((p - t) ** 4 + (p - t) ** 2).sum() for p, t in zip(params, targets))


def train(optimizer: Any, params: Any, targets: Any, steps: int) -> list[np.ndarray]:
    history = []
    for _ in range(steps):
        optimizer.zero_grad()
        bowl(params, targets).backward()
        optimizer.step()
        history.append(np.concatenate([p.detach().numpy().ravel().copy() for p in params]))
    return history


def tensors(dtype: str = "float64", device: str = "cpu") -> tuple[list[mg.Tensor], list[mg.Tensor]]:
    params = [mg.tensor(array, dtype=dtype, device=device, requires_grad=True) for array in STARTS]
    return params, [mg.tensor(t, dtype=dtype, device=device) for t in TARGETS]


@pytest.mark.torch
@pytest.mark.parametrize("name", MUON)
def test_muon_is_pytorchs_with_its_products_in_full_precision(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    params = [torch.tensor(array, requires_grad=True) for array in STARTS]
    ours, targets = tensors()
    monkeypatch.setattr(torch.Tensor, "bfloat16", torch.Tensor.clone)
    theirs = train(torch.optim.Muon(params, **MUON[name]), params, [torch.tensor(t) for t in TARGETS], 30)
    np.testing.assert_allclose(train(optim.Muon(ours, **MUON[name]), ours, targets, 30), theirs, rtol=0, atol=1e-10)


@pytest.mark.torch
def test_muon_is_near_pytorchs_in_bfloat16() -> None:
    import torch

    params = [torch.tensor(array, requires_grad=True) for array in STARTS]
    ours, targets = tensors()
    theirs = train(torch.optim.Muon(params, lr=0.02), params, [torch.tensor(t) for t in TARGETS], 20)
    np.testing.assert_allclose(train(optim.Muon(ours, lr=0.02), ours, targets, 20), theirs, rtol=0, atol=0.02)


def test_muon_gives_the_same_on_the_fake_device_in_a_compiled_step_and_after_it_was_saved() -> None:
    params, targets = tensors()
    expected = train(optim.Muon(params, lr=0.02), params, targets, 6)
    params, targets = tensors(device="fake")
    np.testing.assert_allclose(train(optim.Muon(params, lr=0.02), params, targets, 6), expected, rtol=0, atol=1e-13)
    params, targets = tensors()
    optimizer = optim.Muon(params, lr=0.02)

    def step() -> mg.Tensor:
        optimizer.zero_grad()
        loss = bowl(params, targets)
        loss.backward()
        optimizer.step()
        return loss

    compiled = mg.compile(step)
    for i in range(6):
        compiled()
        if i == 2:
            state = json.loads(json.dumps(optimizer.state_dict()["values"]))
            arrays = {name: a.clone() for name, a in optimizer.state_dict()["arrays"].items()}
            halfway = [p.detach().clone().requires_grad_() for p in params]
    np.testing.assert_allclose(np.concatenate([p.numpy().ravel() for p in params]), expected[-1], rtol=0, atol=1e-12)
    resumed = optim.Muon(halfway, lr=1.0)
    resumed.load_state_dict({"arrays": arrays, "values": state})
    np.testing.assert_allclose(train(resumed, halfway, targets, 3), expected[3:], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"adjust_lr_fn": "none"}, "adjust_lr_fn"),
        ({"ns_steps": 0}, "ns_steps"),
        ({"ns_coefficients": (1, 2)}, "ns_coeff"),
    ],
)
def test_muon_refuses_options_that_cannot_work(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        optim.Muon([mg.ones(2, 2, requires_grad=True)], **options)


def test_muon_refuses_what_is_no_matrix() -> None:
    with pytest.raises(ValueError, match="only matrices can be trained[^$]*AdamW"):
        optim.Muon([mg.ones(3, requires_grad=True)])


# L-BFGS: on Rosenbrock's valley, and on a regression with several parameters.
LBFGS: dict[str, dict[str, Any]] = {
    "fixed steps": {"lr": 0.05, "max_iter": 4},
    "short history": {"lr": 0.1, "max_iter": 5, "history_size": 2},
    "line search": {"line_search_fn": "strong_wolfe"},
    "line search, few evaluations": {"line_search_fn": "strong_wolfe", "max_iter": 3, "max_eval": 4, "lr": 2.0},
    "line search, short history": {"line_search_fn": "strong_wolfe", "history_size": 1, "max_iter": 2},
}
INPUTS, OUTPUTS = RANDOM.standard_normal((20, 3)), RANDOM.standard_normal((20, 2))
LAYERS = [0.5 * RANDOM.standard_normal(shape) for shape in ((3, 4), (4,), (4, 2), ())]


def valley(params: Any, make: Any) -> Any:
    x, y = params[1][0], params[1][1]
    return (1 - x) ** 2 + 100 * (y - x**2) ** 2 + (params[3] - 2) ** 2


def regression(params: Any, make: Any) -> Any:
    hidden = (make(INPUTS) @ params[0] + params[1]).tanh()
    return ((hidden @ params[2] + params[3] - make(OUTPUTS)) ** 2).mean()


def minimise(optimizer: Any, params: Any, loss: Any, make: Any, steps: int = 5) -> tuple[list[float], list[np.ndarray]]:
    losses, weights = [], []

    def closure() -> Any:
        optimizer.zero_grad()
        value = loss(params, make)
        value.backward()
        return value

    for _ in range(steps):
        losses.append(float(optimizer.step(closure)))
        weights.append(np.concatenate([p.detach().numpy().ravel().copy() for p in params]))
    return losses, weights


def layers(dtype: str = "float64", device: str = "cpu") -> list[mg.Tensor]:
    return [mg.tensor(array, dtype=dtype, device=device, requires_grad=True) for array in LAYERS]


@pytest.mark.torch
@pytest.mark.parametrize("loss", [valley, regression])
@pytest.mark.parametrize("name", LBFGS)
def test_every_step_of_lbfgs_is_pytorchs(name: str, loss: Any) -> None:
    import torch

    params, ours = [torch.tensor(array, requires_grad=True) for array in LAYERS], layers()
    theirs = minimise(torch.optim.LBFGS(params, **LBFGS[name]), params, loss, torch.tensor)
    optimizer = optim.LBFGS(ours, **LBFGS[name])
    got = minimise(optimizer, ours, loss, mg.tensor)
    np.testing.assert_allclose(got[1][:2], theirs[1][:2], rtol=0, atol=1e-10)  # up to forty moves
    np.testing.assert_allclose(got[0], theirs[0], rtol=1e-6, atol=1e-10)
    assert got[0][-1] < got[0][0]


def test_lbfgs_finds_the_minimum_of_the_valley_on_either_device(device: str) -> None:
    params = layers(device=device)
    minimise(optim.LBFGS(params, line_search_fn="strong_wolfe"), params, valley, mg.tensor, 4)
    np.testing.assert_allclose(params[1].numpy()[:2], 1.0, atol=1e-4)
    np.testing.assert_allclose(params[3].numpy(), 2.0, atol=1e-4)
    np.testing.assert_array_equal(params[0].numpy(), LAYERS[0])  # which the loss does not use


@pytest.mark.parametrize("name", LBFGS)
def test_lbfgs_that_was_saved_and_resumed_ends_with_the_same_bits(name: str) -> None:
    params = layers("float32")
    optimizer = optim.LBFGS(params, **LBFGS[name])
    minimise(optimizer, params, regression, mg.tensor, 3)
    state = optimizer.state_dict()
    values = json.loads(json.dumps(state["values"], allow_nan=False))
    arrays = {key: array.clone() for key, array in state["arrays"].items()}
    copies = [p.detach().clone().requires_grad_() for p in params]
    straight = minimise(optimizer, params, regression, mg.tensor, 3)
    resumed = optim.LBFGS(copies, lr=9.0)
    resumed.load_state_dict({"arrays": arrays, "values": values})
    again = minimise(resumed, copies, regression, mg.tensor, 3)
    assert again[0] == straight[0]
    np.testing.assert_array_equal(again[1], straight[1])


def test_a_state_of_lbfgs_that_does_not_fit_is_refused() -> None:
    params = layers()
    optimizer = optim.LBFGS(params)
    minimise(optimizer, params, regression, mg.tensor, 1)
    state = optimizer.state_dict()
    with pytest.raises(nn.StateError, match="does not look like"):
        optim.LBFGS([mg.ones(2, requires_grad=True) for _ in range(4)]).load_state_dict(state)
    state["arrays"].pop("changes.0")
    with pytest.raises(nn.StateError, match="other arrays"):
        optim.LBFGS(layers()).load_state_dict(state)
    with pytest.raises(nn.StateError, match="no memory"):
        optimizer.load_state_dict({"arrays": {}, "values": {**state["values"], "memory": None}})


def test_lbfgs_says_what_it_needs() -> None:
    p = mg.ones(2, requires_grad=True)
    with pytest.raises(CallError, match="closure"):
        optim.LBFGS([p]).step()
    with pytest.raises(ValueError, match="only one group"):
        optim.LBFGS([{"params": [p]}, {"params": [mg.ones(2, requires_grad=True)]}])
    with pytest.raises(ValueError, match="strong_wolfe"):
        optim.LBFGS([p], line_search_fn="armijo")
    with pytest.raises(ValueError, match="one dtype"):
        optim.LBFGS([p, mg.ones(2, dtype="float64", requires_grad=True)])
    optimizer = optim.LBFGS([p])
    with pytest.raises(CallError, match="cannot be compiled"):
        mg.compile(lambda: optimizer.step(lambda: (p * p).sum()))()
