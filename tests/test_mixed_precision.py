"""Mixed precision: float16 models learn what float32 models learn, and survive overflow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.optim import LossScaler, MixedPrecision

RANDOM = np.random.default_rng(0)
INPUTS = RANDOM.standard_normal((64, 4)).astype(np.float32)
LABELS = np.argmax(INPUTS @ RANDOM.standard_normal((4, 3)), axis=1)
WEIGHTS = [(RANDOM.standard_normal(shape) / 2).astype(np.float32) for shape in ((4, 16), (16,), (16, 3), (3,))]


class Classifier(nn.Module):
    """Two layers, always with the same weights at the start; remembers the dtype of what lay between them."""

    def __init__(self, device: str) -> None:
        self.w1, self.b1, self.w2, self.b2 = (nn.Parameter(w, device=device) for w in WEIGHTS)
        self.register_buffer("table", mg.zeros(16, device=device), persistent=False)
        self.register_buffer("average", mg.zeros(16, device=device))
        self.between: Any = None

    def forward(self, x: mg.Tensor) -> mg.Tensor:
        hidden = mg.tanh(x @ self.w1 + self.b1 + self.table)
        self.between = hidden.dtype.name
        return hidden @ self.w2 + self.b2


def made(device: str = "cpu", scaler: LossScaler | None = None, lr: float = 0.02) -> MixedPrecision:
    model = Classifier(device)
    return MixedPrecision(model, optim.AdamW(model.parameters(), lr=lr), scaler)


def loss_of(model: Any, device: str) -> mg.Tensor:
    return nn.functional.cross_entropy(model(mg.tensor(INPUTS, device=device)), mg.tensor(LABELS, device=device))


def train(mixed: MixedPrecision, steps: int, device: str = "cpu") -> list[float]:
    losses = []
    for _ in range(steps):
        loss = loss_of(mixed, device)
        mixed.backward(loss)
        mixed.step()
        losses.append(loss.item())
    return losses


def train_in_float32(steps: int, device: str) -> list[float]:
    model = Classifier(device)
    optimizer = optim.AdamW(model.parameters(), lr=0.02)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, device)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def masters_of(mixed: MixedPrecision) -> list[np.ndarray]:
    return [m.numpy().copy() for m in mixed.masters]


def test_training_comes_close_to_float32(device: str) -> None:
    mixed, single = train(made(device), 100, device), train_in_float32(100, device)
    np.testing.assert_allclose(mixed, single, rtol=0, atol=0.01)
    assert mixed[-1] < 0.1 * mixed[0]


def test_the_model_is_stored_in_float16_and_its_masters_in_float32(device: str) -> None:
    mixed = made(device)
    loss = loss_of(mixed, device)
    mixed.backward(loss)
    assert mixed.model.between == "float16"
    assert loss.dtype == np.float32
    for parameter in mixed.model.parameters():
        assert (parameter.dtype.name, parameter.grad.dtype.name) == ("float16", "float16")
    assert (mixed.model.table.dtype.name, mixed.model.average.dtype.name) == ("float16", "float32")
    assert mixed.step()
    train(mixed, 3, device)
    for master, parameter in zip(mixed.masters, mixed.model.parameters()):
        assert master.dtype == np.float32
        np.testing.assert_array_equal(master.numpy().astype(np.float16), parameter.numpy())
    assert all(a.dtype == np.float32 for a in mixed.state_dict()["arrays"].values())


def test_the_masters_gradients_are_those_of_the_loss_itself() -> None:
    model = Classifier("cpu")
    loss_of(model, "cpu").backward()
    mixed = made()
    mixed.backward(loss_of(mixed, "cpu"))
    mixed.unscale()
    for parameter, master in zip(model.parameters(), mixed.masters):
        np.testing.assert_allclose(master.grad.numpy(), parameter.grad.numpy(), rtol=0.02, atol=2e-3)


def test_steps_too_small_for_float16_add_up_in_the_masters(device: str) -> None:
    weight = nn.Parameter([1.0], device=device)
    model = nn.Module()
    model.weight = weight
    mixed = MixedPrecision(model, optim.SGD([weight], lr=1e-4), LossScaler(init=1024))
    for _ in range(100):
        mixed.backward(weight.astype("float32").sum())
        assert mixed.step()
    assert weight.item() == pytest.approx(0.99, abs=1e-3)


def test_gradients_too_small_for_float16_survive_through_the_scale() -> None:
    weight = nn.Parameter([1.0])
    model = nn.Module()
    model.weight = weight
    mixed = MixedPrecision(model, optim.SGD([weight], lr=1.0))
    mixed.backward((weight.astype("float32") * 1e-8).sum())
    mixed.unscale()
    assert mixed.masters[0].grad.item() == pytest.approx(1e-8, rel=1e-3)


def test_a_step_that_overflows_is_skipped_and_recovered_from(device: str) -> None:
    mixed = made(device, LossScaler(init=2.0**24, interval=5))
    before = masters_of(mixed)
    losses, scales = [], []
    taken = []
    for _ in range(30):
        loss = loss_of(mixed, device)
        mixed.backward(loss)
        taken.append(mixed.step())
        scales.append(mixed.scaler.scale)
        losses.append(loss.item())
        if not any(taken):
            for master, start in zip(mixed.masters, before):
                np.testing.assert_array_equal(master.numpy(), start)
    assert taken[0] is False and scales[0] == 2.0**23
    assert sum(taken) >= 20 and mixed.scaler.skipped == taken.count(False)
    assert any(later > earlier for earlier, later in zip(scales, scales[1:]))
    assert np.isfinite(losses).all() and losses[-1] < losses[0]


def test_a_skipped_step_leaves_the_optimisers_state_alone() -> None:
    mixed = made()
    train(mixed, 2)
    before = mixed.optimizer.state_dict()
    moments = {key: a.numpy().copy() for key, a in before["arrays"].items()}
    mixed.backward(loss_of(mixed, "cpu") * np.inf)
    assert not mixed.step()
    after = mixed.optimizer.state_dict()
    assert after["values"] == before["values"]
    for key, array in after["arrays"].items():
        np.testing.assert_array_equal(array.numpy(), moments[key])
    assert all(p.grad is None for p in mixed.model.parameters())


def test_the_scale_grows_after_an_interval_and_falls_with_an_overflow() -> None:
    scaler = LossScaler(init=8.0, growth=2.0, backoff=0.25, interval=3)
    scales = []
    for overflow in (False, False, False, False, True, False, False, False):
        scaler.update(overflow)
        scales.append(scaler.scale)
    assert scales == [8, 8, 16, 16, 4, 4, 4, 8]


def test_the_scale_keeps_within_bounds() -> None:
    scaler = LossScaler(interval=1)
    for _ in range(100):
        scaler.update(overflow=False)
    assert scaler.scale == 2.0**24
    for _ in range(100):
        scaler.update(overflow=True)
    assert scaler.scale == 2.0**-24


def test_a_saved_and_resumed_run_ends_with_the_same_bits(tmp_path: Path, device: str) -> None:
    mixed = made(device, LossScaler(init=2.0**20, interval=4))
    train(mixed, 9, device)
    state = mixed.state_dict()
    mg.save(state["arrays"], tmp_path / "state.safetensors")
    text = json.dumps(state["values"], allow_nan=False)
    straight = train(mixed, 9, device)

    resumed = made(device, lr=7.0)
    resumed.load_state_dict({"arrays": mg.load(tmp_path / "state.safetensors"), "values": json.loads(text)})
    resumed.scaler.interval = 4
    assert train(resumed, 9, device) == straight
    for ours, theirs in zip(masters_of(resumed), masters_of(mixed)):
        np.testing.assert_array_equal(ours, theirs)
    assert resumed.state_dict()["values"] == mixed.state_dict()["values"]


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state["arrays"].pop("master.2"),
        lambda state: state["arrays"].update({"master.0": np.ones((2, 2), np.float32)}),
        lambda state: state["arrays"].update(stray=np.ones(2)),
        lambda state: state["arrays"].pop("optimizer.0.exp_avg"),
        lambda state: state["values"].pop("scaler"),
        lambda state: state["values"].update(scaler={"scale": -1.0, "good": 0, "skipped": 0}),
        lambda state: state["values"].update(scaler={"scale": float("nan"), "good": 0, "skipped": 0}),
        lambda state: state["values"].update(scaler={"scale": 1.0, "good": 0.5, "skipped": 0}),
        lambda state: state["values"].update(scaler=None),
        lambda state: state.pop("arrays"),
    ],
)
def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(change: Any) -> None:
    mixed = made()
    train(mixed, 2)
    state = mixed.state_dict()
    change(state)
    other = made()
    before = masters_of(other)
    with pytest.raises(nn.StateError):
        other.load_state_dict(state)
    for master, start in zip(masters_of(other), before):
        np.testing.assert_array_equal(master, start)
    assert other.optimizer.state == {} and other.scaler.state_dict() == LossScaler().state_dict()


def test_accumulated_gradients_give_nearly_the_step_of_the_large_batch() -> None:
    halves, whole = made(), made()
    for rows in (slice(0, 32), slice(32, 64)):
        logits = halves(mg.tensor(INPUTS[rows]))
        halves.backward(nn.functional.cross_entropy(logits, mg.tensor(LABELS[rows])) / 2)
    whole.backward(loss_of(whole, "cpu"))
    for mixed in (halves, whole):
        mixed.unscale()
    for first, second in zip(halves.masters, whole.masters):
        expected = second.grad.numpy()
        rounding = np.finfo(np.float16).eps * np.abs(expected).max()
        np.testing.assert_allclose(first.grad.numpy(), expected, rtol=0, atol=rounding)


def test_gradients_are_clipped_after_they_are_unscaled() -> None:
    weight = nn.Parameter([0.0, 0.0])
    model = nn.Module()
    model.weight = weight
    mixed = MixedPrecision(model, optim.SGD([weight], lr=1.0), LossScaler(init=64.0))
    mixed.backward((weight.astype("float32") * mg.tensor([30.0, 40.0])).sum())
    assert mixed.step(max_norm=1.0)
    np.testing.assert_allclose(mixed.masters[0].numpy(), [-0.6, -0.8], rtol=1e-5)


def test_frozen_and_late_parameters_are_left_alone_and_taken_in() -> None:
    model = Classifier("cpu")
    mixed = MixedPrecision(model, optim.AdamW([model.w1, model.b1], lr=0.02))
    model.w1.requires_grad_(False)
    before = [p.numpy().copy() for p in model.parameters()]
    train(mixed, 2)
    changed = [bool((p.numpy() != start).any()) for p, start in zip(model.parameters(), before)]
    assert changed == [False, True, False, False]
    mixed.add_param_group({"params": [model.w2, model.b2]})
    train(mixed, 2)
    changed = [bool((p.numpy() != start).any()) for p, start in zip(model.parameters(), before)]
    assert changed == [False, True, True, True]


def test_an_optimiser_that_has_already_learned_goes_on_with_its_state() -> None:
    model = Classifier("cpu")
    optimizer = optim.AdamW(model.parameters(), lr=0.02)
    loss_of(model, "cpu").backward()
    optimizer.step()
    mixed = MixedPrecision(model, optimizer)
    train(mixed, 1)
    assert set(optimizer.state_dict()["values"]["steps"].values()) == {2}


def test_parameters_added_behind_its_back_are_refused() -> None:
    model = Classifier("cpu")
    mixed = MixedPrecision(model, optim.SGD([model.w1]))
    mixed.optimizer.add_param_group({"params": [model.w2]})
    mixed.backward(loss_of(mixed, "cpu"))
    with pytest.raises(TypeError, match="add_param_group"):
        mixed.step()


def test_a_backward_between_unscale_and_step_is_refused() -> None:
    mixed = made()
    mixed.backward(loss_of(mixed, "cpu"))
    mixed.unscale()
    with pytest.raises(TypeError, match=r"step\(\) first"):
        mixed.backward(loss_of(mixed, "cpu"))


@pytest.mark.parametrize("settings", [{"init": 0}, {"growth": 0.5}, {"backoff": 1.0}, {"interval": 0}])
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="LossScaler"):
        LossScaler(**settings)


def test_a_backward_without_the_scale_is_refused_and_not_divided_by_it() -> None:
    mixed = made()
    loss_of(mixed, "cpu").backward()
    with pytest.raises(TypeError, match=r"mixed\.backward\(loss\)"):
        mixed.step()
    mixed.zero_grad()
    mixed.backward(loss_of(mixed, "cpu"))
    assert mixed.step()


def test_an_optimiser_of_another_model_is_refused_and_neither_is_changed() -> None:
    model, other = Classifier("cpu"), Classifier("cpu")
    with pytest.raises(ValueError, match="4 of 4 are of something else"):
        MixedPrecision(model, optim.SGD(other.parameters()))
    assert {p.dtype.name for p in (*model.parameters(), *other.parameters())} == {"float32"}


def test_what_it_has_not_itself_is_the_models() -> None:
    mixed = made()
    mixed.eval()
    assert not mixed.model.training and not mixed.training
    assert [p.dtype.name for p in mixed.parameters()] == ["float16"] * 4
    with pytest.raises(AttributeError, match="Classifier.*nothing_such"):
        _ = mixed.nothing_such
