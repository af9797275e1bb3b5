"""Optimisers do what PyTorch's do, step for step; LAMB does what its paper says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.errors import GradientError, MinigradError
from minigrad.optim.optimizer import BLOCK

RANDOM = np.random.default_rng(0)
STARTS = [RANDOM.standard_normal(shape) for shape in ((3, 4), (4,), ())]
TARGETS = [RANDOM.standard_normal(array.shape) for array in STARTS]
OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "SGD": ("SGD", {"lr": 0.005}),
    "SGD, weight decay": ("SGD", {"lr": 0.005, "weight_decay": 0.1}),
    "SGD, momentum": ("SGD", {"lr": 0.005, "momentum": 0.9}),
    "SGD, dampening": ("SGD", {"lr": 0.005, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01}),
    "SGD, Nesterov": ("SGD", {"lr": 0.005, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    "RMSprop": ("RMSprop", {"lr": 0.01}),
    "RMSprop, all": ("RMSprop", {"alpha": 0.95, "eps": 1e-6, "momentum": 0.9, "centered": True, "weight_decay": 0.1}),
    "Adam": ("Adam", {"lr": 0.05}),
    "Adam, weight decay": ("Adam", {"lr": 0.05, "betas": (0.8, 0.98), "eps": 1e-6, "weight_decay": 0.1}),
    "Adam, AMSGrad": ("Adam", {"lr": 0.05, "amsgrad": True}),
    "AdamW": ("AdamW", {"lr": 0.05}),
    "AdamW, AMSGrad": ("AdamW", {"lr": 0.05, "weight_decay": 0.3, "amsgrad": True}),
    "SGD, maximize": ("SGD", {"lr": 0.005, "momentum": 0.9, "weight_decay": 0.01, "maximize": True}),
    "Adam, maximize": ("Adam", {"lr": 0.05, "weight_decay": 0.1, "maximize": True}),
    "Adam, decoupled": ("Adam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    "Adagrad": ("Adagrad", {"lr": 0.1}),
    "Adagrad, all": ("Adagrad", {"lr_decay": 0.01, "weight_decay": 0.1, "initial_accumulator_value": 0.2, "eps": 1e-6}),
    "Adadelta": ("Adadelta", {}),
    "Adadelta, all": ("Adadelta", {"lr": 5.0, "rho": 0.8, "eps": 1e-5, "weight_decay": 0.1}),
    "Adamax": ("Adamax", {"lr": 0.05}),
    "Adamax, all": ("Adamax", {"lr": 0.01, "betas": (0.8, 0.98), "eps": 1e-6, "weight_decay": 0.1, "maximize": True}),
    "NAdam": ("NAdam", {"lr": 0.01}),
    "NAdam, all": ("NAdam", {"betas": (0.8, 0.98), "eps": 1e-6, "weight_decay": 0.1, "momentum_decay": 0.1}),
    "NAdam, decoupled": ("NAdam", {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    "RAdam": ("RAdam", {"lr": 0.05}),
    "RAdam, all": ("RAdam", {"lr": 0.05, "betas": (0.8, 0.9), "eps": 1e-6, "weight_decay": 0.1}),
    "RAdam, decoupled": ("RAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    "ASGD": ("ASGD", {"lr": 0.005}),
    "ASGD, all": ("ASGD", {"lr": 0.005, "lambd": 0.1, "alpha": 0.6, "t0": 10.0, "weight_decay": 0.1}),
    "Rprop": ("Rprop", {}),
    "Rprop, all": ("Rprop", {"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (1e-3, 0.2)}),
    "Lion": ("Lion", {"lr": 0.01}),
    "Lion, all": ("Lion", {"lr": 0.01, "betas": (0.8, 0.95), "weight_decay": 0.3}),
    "Adafactor": ("Adafactor", {}),
    "Adafactor, all": (
        "Adafactor",
        {"lr": 0.02, "beta2_decay": -0.5, "eps": (1e-6, 0.1), "d": 1.5, "weight_decay": 0.1},
    ),
    "LAMB": ("LAMB", {"lr": 0.02}),
    "LAMB, no decay": ("LAMB", {"lr": 0.02, "weight_decay": 0.0}),
}
TORCH = [name for name, (kind, _) in OPTIMIZERS.items() if kind not in ("LAMB", "Lion")]
every_optimizer = pytest.mark.parametrize("name", OPTIMIZERS)


def make(name: str, params: Any, **changes: Any) -> optim.Optimizer:
    kind, options = OPTIMIZERS[name]
    return getattr(optim, kind)(params, **{**options, **changes})


def tensors(dtype: str = "float64", device: str = "cpu") -> list[mg.Tensor]:
    return [mg.tensor(array, dtype=dtype, device=device, requires_grad=True) for array in STARTS]


def bowl(params: Any, targets: Any, step: int) -> Any:
    """A loss with a curved and changing landscape: minigrad's and PyTorch's Tensors can both be put in."""
    return sum(((p - t) ** 4 + (1 + 0.1 * (step % 7)) * (p - t) ** 2).sum() for p, t in zip(params, targets))


def backward(optimizer: Any, loss: Any) -> None:
    (-loss if optimizer.param_groups[0].get("maximize") else loss).backward()


def train(optimizer: Any, params: Any, targets: Any, steps: range) -> list[np.ndarray]:
    """All weights after each step."""
    history = []
    for step in steps:
        optimizer.zero_grad()
        backward(optimizer, bowl(params, targets, step))
        optimizer.step()
        history.append(np.concatenate([p.detach().numpy().ravel().copy() for p in params]))
    return history


def train_ours(name: str, dtype: str = "float64", device: str = "cpu", steps: int = 100) -> list[np.ndarray]:
    params = tensors(dtype, device)
    targets = [mg.tensor(t, dtype=dtype, device=device) for t in TARGETS]
    return train(make(name, params), params, targets, range(steps))


def train_torch(name: str, dtype: str = "float64") -> list[np.ndarray]:
    import torch

    params = [torch.tensor(array, dtype=getattr(torch, dtype), requires_grad=True) for array in STARTS]
    targets = [torch.tensor(t, dtype=getattr(torch, dtype)) for t in TARGETS]
    kind, options = OPTIMIZERS[name]
    with torch_numbers_in(dtype):
        return train(getattr(torch.optim, kind)(params, **options), params, targets, range(100))


@contextmanager
def torch_numbers_in(dtype: str) -> Iterator[None]:
    """Inside, PyTorch keeps the numbers of an optimiser, such as NAdam's product of momenta, in this dtype, too."""
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, dtype))
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@pytest.mark.torch
@pytest.mark.parametrize("name", TORCH)
def test_every_one_of_100_steps_is_pytorchs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    ours, theirs = train_ours(name), train_torch(name)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)
    assert np.abs(ours[-1] - ours[0]).max() > 0.01
    single, other = train_ours(name, "float32"), train_torch(name, "float32")
    difference = np.abs(np.array(single) - np.array(other)).max()
    with capsys.disabled():
        print(f"\n{name}: largest float32 difference from PyTorch over 100 steps {difference:.1e}", end=" ")
    assert difference < 1e-5


def bowl_gradient(x: list[np.ndarray], step: int) -> list[np.ndarray]:
    return [4 * (a - t) ** 3 + 2 * (1 + 0.1 * (step % 7)) * (a - t) for a, t in zip(x, TARGETS)]


def lamb_of_the_paper(gradient: Callable[..., list[np.ndarray]], lr: float, decay: float) -> list[np.ndarray]:
    """Algorithm 2 of You et al., "Large batch optimization for deep learning: training BERT in 76 minutes", phi(z) = z."""
    x = [array.copy() for array in STARTS]
    m, v = [np.zeros_like(a) for a in x], [np.zeros_like(a) for a in x]
    history = []
    for t in range(1, 101):
        g = gradient(x, t - 1)
        for i in range(len(x)):
            m[i] = 0.9 * m[i] + 0.1 * g[i]
            v[i] = 0.999 * v[i] + 0.001 * g[i] ** 2
            r = (m[i] / (1 - 0.9**t)) / (np.sqrt(v[i] / (1 - 0.999**t)) + 1e-6)
            u = r + decay * x[i]
            x[i] = x[i] - lr * np.linalg.norm(x[i]) / np.linalg.norm(u) * u
        history.append(np.concatenate([a.ravel() for a in x]))
    return history


@pytest.mark.parametrize(("name", "decay"), [("LAMB", 0.01), ("LAMB, no decay", 0.0)])
def test_lamb_follows_its_paper(name: str, decay: float) -> None:
    expected = lamb_of_the_paper(bowl_gradient, 0.02, decay)
    np.testing.assert_allclose(train_ours(name), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("name", "betas", "decay"), [("Lion", (0.9, 0.99), 0.0), ("Lion, all", (0.8, 0.95), 0.3)])
def test_lion_follows_its_paper(name: str, betas: tuple[float, float], decay: float) -> None:
    """Algorithm 2 of Chen et al., "Symbolic discovery of optimization algorithms"."""
    x, m = [array.copy() for array in STARTS], [np.zeros_like(array) for array in STARTS]
    expected = []
    for step in range(100):
        for i, g in enumerate(bowl_gradient(x, step)):
            c = betas[0] * m[i] + (1 - betas[0]) * g
            x[i] = x[i] - 0.01 * (np.sign(c) + decay * x[i])
            m[i] = betas[1] * m[i] + (1 - betas[1]) * g
        expected.append(np.concatenate([a.ravel() for a in x]))
    np.testing.assert_allclose(train_ours(name), expected, rtol=0, atol=1e-10)


def test_lamb_takes_adams_step_where_a_norm_is_zero(device: str) -> None:
    p = mg.zeros(3, dtype="float64", device=device, requires_grad=True)
    q = mg.zeros(3, dtype="float64", device=device, requires_grad=True)
    for x in (p, q):
        x.grad = mg.tensor([1.0, -2.0, 0.0], dtype="float64", device=device)
    optim.LAMB([p], lr=0.1, eps=1e-8).step()
    optim.Adam([q], lr=0.1, eps=1e-8).step()
    np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=0, atol=1e-12)


@every_optimizer
def test_the_fake_device_gives_the_cpus_weights(name: str) -> None:
    np.testing.assert_array_equal(train_ours(name, device="fake:1", steps=5), train_ours(name, steps=5))


@every_optimizer
@pytest.mark.parametrize("order", ["C", "F"])
def test_large_parameters_are_changed_as_small_ones_are(name: str, order: Any) -> None:
    """Large arrays go through the rules in pieces, which must not show, whatever the layout of weight and gradient."""
    rows = BLOCK // 8 + 3
    array, grads = RANDOM.standard_normal((rows, 16)), RANDOM.standard_normal((3, rows, 16))
    whole, parts = mg.tensor(array, requires_grad=True), [mg.tensor(a, requires_grad=True) for a in array.copy()[:5]]
    whole.data = np.asarray(whole.data, order=order)
    assert whole.size > BLOCK
    first, second = make(name, [whole]), make(name, parts)
    for g in grads:
        whole.grad = np.asfortranarray(g)
        for p, row in zip(parts, g):
            p.grad = row
        first.step()
        second.step()
    if first.elementwise:
        np.testing.assert_array_equal(whole.numpy()[:5], np.stack([p.numpy() for p in parts]))
    assert (whole.numpy() != array).all()


@every_optimizer
def test_float32_stays_float32_even_with_a_rate_that_numpy_made(name: str) -> None:
    def weights(number: type) -> np.ndarray:
        params = tensors("float32")
        optimizer = make(name, params)
        optimizer.param_groups[0]["lr"] = number(0.01)
        train(optimizer, params, [mg.tensor(t, dtype="float32") for t in TARGETS], range(3))
        arrays = optimizer.state_dict()["arrays"].values()
        assert all(a.dtype == np.float32 for a in (*params, *arrays))
        return np.concatenate([p.numpy().ravel() for p in params])

    np.testing.assert_array_equal(weights(np.float64), weights(float))


@every_optimizer
def test_a_parameter_without_gradient_is_neither_moved_nor_decayed(name: str, device: str) -> None:
    used, unused, frozen = tensors(device=device)
    frozen.requires_grad_(False)
    decay = {} if name.startswith("Rprop") else {"weight_decay": 0.5}
    optimizer = make(name, [used, unused, frozen], **decay)
    before = [p.numpy().copy() for p in (used, unused, frozen)]
    (used**2).sum().backward()
    optimizer.step()
    assert (used.numpy() != before[0]).all()
    np.testing.assert_array_equal(unused.numpy(), before[1])
    np.testing.assert_array_equal(frozen.numpy(), before[2])
    assert optimizer.state_dict()["values"]["steps"] == {"0": 1}


@pytest.mark.torch
@pytest.mark.parametrize("name", TORCH)
def test_freezing_thawing_late_and_sometimes_unused_parameters_are_pytorchs(name: str) -> None:
    import torch

    def run(make_tensor: Callable[..., Any], optimizer_type: Any, options: dict[str, Any]) -> np.ndarray:
        params = [make_tensor(array) for array in STARTS]
        targets = [make_tensor(t).detach() for t in TARGETS]
        optimizer = optimizer_type(params[:2], **options)
        for step in range(30):
            optimizer.zero_grad()
            params[0].requires_grad_(not 5 <= step < 10)
            if step == 12:
                optimizer.add_param_group({"params": params[2], "lr": 0.01})
            used = slice(0, 1) if step % 6 == 5 and step > 10 else slice(0, 3)
            backward(optimizer, bowl(params[used], targets[used], step))
            optimizer.step()
        return np.concatenate([p.detach().numpy().ravel() for p in params])

    kind, options = OPTIMIZERS[name]
    ours = run(lambda a: mg.tensor(a, requires_grad=True), getattr(optim, kind), options)
    with torch_numbers_in("float64"):
        theirs = run(lambda a: torch.tensor(a, requires_grad=True), getattr(torch.optim, kind), options)
    assert np.isfinite(ours).all()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)


@pytest.mark.torch
def test_groups_with_options_of_their_own_are_pytorchs() -> None:
    import torch

    def groups(params: list[Any]) -> list[dict[str, Any]]:
        return [{"params": params[:1], "lr": 0.01, "betas": (0.5, 0.9)}, {"params": params[1:], "weight_decay": 0.5}]

    ours = tensors()
    theirs = [torch.tensor(array, requires_grad=True) for array in STARTS]
    first = train(optim.AdamW(groups(ours), lr=0.1), ours, [mg.tensor(t) for t in TARGETS], range(100))
    second = train(torch.optim.AdamW(groups(theirs), lr=0.1), theirs, [torch.tensor(t) for t in TARGETS], range(100))
    np.testing.assert_allclose(first, second, rtol=0, atol=1e-10)


def test_a_tied_parameter_is_changed_once() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            self.first = nn.Parameter([1.0, 2.0])
            self.second = self.first

        def forward(self, x: Any) -> Any:
            return (self.first * x + self.second * x).sum()

    model = Tied()
    optimizer = optim.SGD(model.parameters(), lr=0.5)
    model(mg.tensor([1.0, 10.0])).backward()
    optimizer.step()
    np.testing.assert_array_equal(model.second.numpy(), [0.0, -8.0])


def test_gradients_of_small_batches_add_up_to_that_of_the_large_one(device: str) -> None:
    inputs, outputs = RANDOM.standard_normal((12, 3)), RANDOM.standard_normal((12, 4))

    def run(batches: int) -> np.ndarray:
        weight = mg.tensor(STARTS[0], device=device, requires_grad=True)
        optimizer = optim.AdamW([weight], lr=0.1)
        for _ in range(5):
            optimizer.zero_grad()
            for x, y in zip(np.split(inputs, batches), np.split(outputs, batches)):
                error = mg.tensor(x, device=device) @ weight - mg.tensor(y, device=device)
                ((error**2).sum() / outputs.size).backward()
            optimizer.step()
        return weight.numpy()

    np.testing.assert_allclose(run(4), run(1), rtol=0, atol=1e-12)


def test_a_backward_through_weights_that_a_step_has_changed_is_refused(device: str) -> None:
    w = mg.ones(2, device=device, requires_grad=True)
    optimizer = optim.SGD([w], lr=0.1)
    loss = (w * w).sum()
    loss.backward(retain_graph=True)
    optimizer.step()
    with pytest.raises(GradientError, match="overwritten"):
        loss.backward()


def test_a_step_may_compute_the_gradients_by_a_closure() -> None:
    x = mg.tensor(2.0, requires_grad=True)
    optimizer = optim.SGD([x], lr=0.25)

    def closure() -> mg.Tensor:
        optimizer.zero_grad()
        loss = x * x
        loss.backward()
        return loss

    with mg.no_grad():  # inside the closure gradients are recorded all the same
        assert (optimizer.step(closure).item(), x.item()) == (4.0, 1.0)
    with pytest.raises(TypeError, match="scale="):
        optimizer.step(0.5)  # type: ignore[arg-type]


def test_zero_grad_forgets_all_gradients() -> None:
    params = tensors()
    optimizer = optim.SGD(params)
    bowl(params, [mg.tensor(t) for t in TARGETS], 0).backward()
    assert all(p.grad is not None for p in params)
    optimizer.zero_grad()
    assert all(p.grad is None for p in params)


def test_zero_grad_may_set_the_gradients_that_there_are_to_zeros() -> None:
    model = mg.nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters())
    for zero_grad in (optimizer.zero_grad, model.zero_grad):
        model.weight.sum().backward()
        zero_grad(set_to_none=False)
        assert model.weight.grad is not None and model.weight.grad.tolist() == [[0, 0]] and model.bias.grad is None
        zero_grad(set_to_none=True)
        assert model.weight.grad is None


@every_optimizer
def test_a_run_that_was_saved_and_resumed_ends_with_the_same_bits(name: str, tmp_path: Path, device: str) -> None:
    targets = [mg.tensor(t, dtype="float32", device=device) for t in TARGETS]
    params = tensors("float32", device)
    optimizer = make(name, [{"params": params[:2], "lr": 0.01}, {"params": params[2:], "name": "scalar"}])
    train(optimizer, params, targets, range(7))
    state = optimizer.state_dict()
    mg.save({**state["arrays"], "weight": params[0], "bias": params[1], "scalar": params[2]}, tmp_path / "s")
    text = json.dumps(state["values"], allow_nan=False)
    straight = train(optimizer, params, targets, range(7, 20))

    loaded = mg.load(tmp_path / "s")
    params = [mg.Tensor(loaded.pop(key), device=device, requires_grad=True) for key in ("weight", "bias", "scalar")]
    resumed = make(name, [{"params": params[:2], "lr": 9.0}, {"params": params[2:]}], lr=8.0)
    resumed.load_state_dict({"arrays": loaded, "values": json.loads(text)})
    np.testing.assert_array_equal(train(resumed, params, targets, range(7, 20)), straight)
    assert resumed.param_groups[1]["name"] == "scalar"
    assert json.dumps(resumed.state_dict()["values"]) == json.dumps(optimizer.state_dict()["values"])


@pytest.mark.parametrize(
    ("kind", "option", "values"),
    [
        (optim.SGD, "momentum", (0.9, 0.0, 0.5)),
        (optim.SGD, "momentum", (0.0, 0.9, 0.0)),
        (optim.RMSprop, "centered", (False, True, False)),
        (optim.Adam, "amsgrad", (True, False, True)),
    ],
)
def test_a_run_whose_options_were_changed_on_the_way_can_be_saved_and_resumed_at_any_step(
    kind: Any, option: str, values: tuple[Any, ...]
) -> None:
    def run(saved_before: int | None) -> np.ndarray:
        w = mg.ones(4, dtype="float64", requires_grad=True)
        optimizer = kind([w], lr=0.1, **{option: values[0]})
        for step in range(9):
            optimizer.param_groups[0][option] = values[step // 3]
            if step == saved_before:
                state, w = optimizer.state_dict(), w.detach().clone().requires_grad_()
                optimizer = kind([w], lr=0.1)
                optimizer.load_state_dict(state)
            w.grad = mg.tensor(np.random.default_rng(step).standard_normal(4))
            optimizer.step()
        return w.numpy()

    for step in range(9):
        np.testing.assert_array_equal(run(step), run(None))


def test_a_state_is_copied_when_it_is_loaded() -> None:
    params = tensors()
    optimizer = optim.Adam(params)
    train(optimizer, params, [mg.tensor(t) for t in TARGETS], range(1))
    state = optimizer.state_dict()
    twin = optim.Adam(tensors())
    twin.load_state_dict(state)
    kept = state["arrays"]["0.exp_avg"].numpy().copy()
    twin.state_dict()["arrays"]["0.exp_avg"].data[...] = 7.0
    np.testing.assert_array_equal(optimizer.state_dict()["arrays"]["0.exp_avg"].numpy(), kept)


def _without(key: str) -> Callable[[dict[str, Any]], Any]:
    return lambda state: state["arrays"].pop(key)


def _set(*path: Any) -> Callable[[dict[str, Any]], Any]:
    *keys, last, value = path

    def change(state: dict[str, Any]) -> None:
        for key in keys:
            state = state[key]
        state[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set("values", "kind", "SGD"), "another optimiser"),
        (_set("values", "groups", []), "other groups"),
        (_set("values", "groups", 3), "no list of dicts"),
        (_set("values", "groups", 0, "params", 2), "other groups"),
        (_set("values", "groups", 0, "lr", -1.0), "lr"),
        (_set("values", "groups", 0, "lr", "1"), "lr"),
        (_set("values", "groups", 0, "speed", 1.0), "speed"),
        (lambda state: state["values"]["groups"][0].pop("betas"), "lacks betas"),
        (_set("values", "steps", "7", 3), "no parameter '7'"),
        (_set("values", "steps", "0", 0), "impossible step count"),
        (_set("values", "steps", "0", 1.5), "impossible step count"),
        (_set("values", "steps", None), "no step counts"),
        (_without("1.exp_avg"), "missing: 1.exp_avg"),
        (_set("arrays", "0.square", np.ones(3)), "unexpected: 0.square"),
        (_set("arrays", "0.exp_avg", np.ones((4, 3))), "0.exp_avg does not look like"),
        (_set("arrays", "0.exp_avg", np.ones((3, 4), int)), "0.exp_avg does not look like"),
        (_set("arrays", "0.exp_avg", "text"), "0.exp_avg does not look like"),
        (_set("arrays", None), "not what state_dict"),
    ],
)
def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(change: Any, message: str) -> None:
    params = tensors()
    optimizer = optim.Adam(params, lr=0.1)
    train(optimizer, params, [mg.tensor(t) for t in TARGETS], range(2))
    before = json.dumps(optimizer.state_dict()["values"])
    arrays = {key: a.numpy().copy() for key, a in optimizer.state_dict()["arrays"].items()}
    state = json.loads(json.dumps({"values": optimizer.state_dict()["values"]}))
    state["arrays"] = optimizer.state_dict()["arrays"]
    change(state)
    with pytest.raises(nn.StateError, match=message):
        optimizer.load_state_dict(state)
    assert json.dumps(optimizer.state_dict()["values"]) == before
    for key, array in optimizer.state_dict()["arrays"].items():
        np.testing.assert_array_equal(array.numpy(), arrays[key])


def leaf() -> mg.Tensor:
    return mg.ones(2, requires_grad=True)


SHARED = leaf()


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: optim.SGD([]), ValueError, "no parameters"),
        (lambda: optim.SGD(leaf()), TypeError, "in a list"),
        (lambda: optim.SGD(nn.Sequential()), TypeError, r"model\.parameters\(\)"),
        (lambda: optim.SGD([np.ones(2)]), TypeError, "only Tensors"),
        (lambda: optim.SGD([leaf() * 2]), RuntimeError, "only leaves"),
        (lambda: optim.SGD([SHARED, SHARED]), ValueError, "twice"),
        (lambda: optim.SGD([{"params": [SHARED]}, {"params": [SHARED]}]), ValueError, "in two groups"),
        (lambda: optim.SGD([{"lr": 1.0}]), TypeError, "not a parameter group"),
        (lambda: optim.SGD([leaf()], lr=-1), ValueError, "lr"),
        (lambda: optim.SGD([leaf()], lr=float("nan")), ValueError, "lr"),
        (lambda: optim.SGD([leaf()], lr="fast"), ValueError, "lr"),
        (lambda: optim.SGD([leaf()], nesterov=True), ValueError, "nesterov needs a momentum"),
        (lambda: optim.SGD([leaf()], momentum=0.9, nesterov=1), ValueError, "nesterov"),
        (lambda: optim.SGD([leaf()], momentun=0.9), TypeError, "did you mean 'momentum'"),
        (lambda: optim.Adam([{"params": [leaf()], "weight_dekay": 0}]), TypeError, "did you mean 'weight_decay'"),
        (lambda: optim.Adam([leaf()], betas=(0.9, 1.0)), ValueError, "betas"),
        (lambda: optim.Adam([leaf()], betas=0.9), ValueError, "betas"),
        (lambda: optim.AdamW([leaf()], eps=-1e-8), ValueError, "eps"),
        (lambda: optim.RMSprop([leaf()], alpha=1.0), ValueError, "alpha"),
        (lambda: optim.LAMB([leaf()], weight_decay=-0.1), ValueError, "weight_decay"),
        (lambda: optim.Adam([leaf()], fused=True), TypeError, "'fused' is not offered[^$]*leave it out"),
        (lambda: optim.NAdam([leaf()], foreach=None), TypeError, "'foreach' is not offered"),
        (lambda: optim.Rprop([leaf()], etas=(1.2, 0.5)), ValueError, "etas"),
        (lambda: optim.Rprop([leaf()], step_sizes=(2, 1)), ValueError, "step_sizes"),
        (lambda: optim.Adafactor([leaf()], eps=1e-8), ValueError, "eps"),
        (lambda: optim.Adadelta([leaf()], rho=1.5), ValueError, "rho"),
    ],
)
def test_mistakes_are_refused_where_they_are_made(build: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        build()
    assert isinstance(caught.value, MinigradError)


def test_a_model_that_moved_after_the_first_step_is_refused() -> None:
    p = mg.ones(3, requires_grad=True)
    optimizer = optim.Adam([p])
    p.grad = mg.ones(3)
    optimizer.step()
    moved = mg.ones(3, device="fake", requires_grad=True)
    p.data, p.node = moved.data, moved.node
    p.grad = mg.ones(3, device="fake")
    with pytest.raises(nn.StateError, match="moved after its first step"):
        optimizer.step()


def test_the_benchmark_prints_one_json_object_last() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.optim", "--quick", "--alone", "--json", "--size", "small"],
        cwd=Path(__file__).resolve().parent.parent,
        text=True,
        capture_output=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    steps = json.loads(done.stdout.splitlines()[-1])["steps"]["small"]
    assert list(steps) == ["SGD", "SGD with momentum", "RMSprop", "Adam", "AdamW", "LAMB"]
    assert all(one["peers"]["minigrad"].keys() == {"median", "minimum"} for one in steps.values())
