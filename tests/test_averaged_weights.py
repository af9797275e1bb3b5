"""Averages of weights are PyTorch's, are kept by a Trainer, and are in its checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.nn import functional as F
from minigrad.optim import swa_utils
from minigrad.train import Trainer

RANDOM = np.random.default_rng(0)
INPUTS = RANDOM.standard_normal((24, 3))
FUNCTIONS: dict[str, Any] = {
    "mean": lambda m: {},
    "mean, given": lambda m: {"avg_fn": m.get_swa_avg_fn()},
    "EMA": lambda m: {"multi_avg_fn": m.get_ema_multi_avg_fn(0.9)},
    "EMA, one by one": lambda m: {"avg_fn": m.get_ema_avg_fn(0.75), "use_buffers": True},
    "mean, lists": lambda m: {"multi_avg_fn": m.get_swa_multi_avg_fn()},
    "own": lambda m: {"avg_fn": lambda average, new, count: (average + new) / 2},
}


def network(dtype: str = "float64") -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)).to(dtype)


@pytest.mark.torch
@pytest.mark.parametrize("name", FUNCTIONS)
def test_averages_of_weights_and_buffers_are_pytorchs(name: str) -> None:
    import torch
    from torch.optim import swa_utils as torch_utils

    ours, theirs = network(), torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
    theirs.double().load_state_dict({key: torch.tensor(value.numpy()) for key, value in ours.state_dict().items()})
    first = swa_utils.AveragedModel(ours, **FUNCTIONS[name](swa_utils))
    second = torch_utils.AveragedModel(theirs, **FUNCTIONS[name](torch_utils))
    steps = optim.SGD(ours.parameters(), lr=0.1), torch.optim.SGD(theirs.parameters(), lr=0.1)
    for i in range(6):
        for model, average, optimizer, make in (
            (ours, first, steps[0], mg.tensor),
            (theirs, second, steps[1], torch.tensor),
        ):
            optimizer.zero_grad()
            (model(make(INPUTS + i)) ** 2).mean().backward()
            optimizer.step()
            average.update_parameters(model)
    exact = 1e-8 if name == "mean, lists" else 1e-12  # PyTorch's share of one in n is a float32 there
    assert first.state_dict().keys() == second.state_dict().keys()
    for key, value in second.state_dict().items():
        np.testing.assert_allclose(first.state_dict()[key].numpy(), value.numpy(), rtol=0, atol=exact, err_msg=key)
    batches = [INPUTS[:9], INPUTS[9:]]
    swa_utils.update_bn([(x, None) for x in batches], first)
    torch_utils.update_bn([torch.tensor(x) for x in batches], second)
    for key, value in second.state_dict().items():
        np.testing.assert_allclose(first.state_dict()[key].numpy(), value.numpy(), rtol=0, atol=exact, err_msg=key)
    assert first.module[1].momentum == 0.1 and first.training


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:Detected call of")
@pytest.mark.parametrize("options", [{}, {"anneal_epochs": 3, "anneal_strategy": "linear"}, {"anneal_epochs": 0}])
def test_the_rates_of_swalr_after_another_schedule_are_pytorchs(options: dict[str, Any]) -> None:
    import torch

    def rates(optimizer: Any, schedules: Any, utils: Any) -> list[list[float]]:
        down, averaging = schedules.ExponentialLR(optimizer, 0.9), utils.SWALR(optimizer, [0.05, 0.2], **options)
        found = []
        for step in range(30):
            found.append([float(group["lr"]) for group in optimizer.param_groups])
            optimizer.step()
            (down if step < 8 else averaging).step()
        return found

    ours = optim.SGD([{"params": [mg.ones(1, requires_grad=True)], "lr": lr} for lr in (1.0, 0.5)])
    theirs = torch.optim.SGD([{"params": [torch.ones(1, requires_grad=True)], "lr": lr} for lr in (1.0, 0.5)])
    expected = rates(theirs, torch.optim.lr_scheduler, torch.optim.swa_utils)
    got = rates(ours, optim.lr_scheduler, swa_utils)
    start = 9 if options.get("anneal_epochs") == 0 else 0  # PyTorch's other schedule goes on from the rate of this one
    np.testing.assert_allclose(got[start:], expected[start:], rtol=1e-12)


def test_swalr_goes_on_as_it_was_saved() -> None:
    def make() -> swa_utils.SWALR:
        return swa_utils.SWALR(optim.SGD([mg.ones(1, requires_grad=True)], lr=1.0), 0.1)

    first, second = make(), make()
    for _ in range(4):
        first.step()
    second.optimizer.load_state_dict(first.optimizer.state_dict())
    second.load_state_dict(first.state_dict())
    first.step()
    second.step()
    assert first.get_last_lr() == second.get_last_lr()
    with pytest.raises(nn.StateError, match="starts is impossible"):
        second.load_state_dict({**first.state_dict(), "starts": ["fast"]})


def loss(model: Any, batch: Any) -> Any:
    return {
        "loss": (F.mse_loss(model(mg.tensor(batch)), np.ones((len(batch), 1), "float32"), reduction="sum"), len(batch))
    }


def trained(folder: Path | None, steps: int) -> tuple[nn.Module, optim.EMA]:
    mg.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    average = optim.EMA(model, decay=0.8)
    settings: dict[str, Any] = {"max_steps": steps, "progress": False, "callbacks": [average], "compile": "off"}
    data = [INPUTS[:12].astype("float32"), INPUTS[12:].astype("float32")]
    optimizer = optim.AdamW(model.parameters(), lr=0.05)
    made = (
        Trainer.resume(model, loss, data, optimizer, out=folder, **settings)
        if folder
        else Trainer(model, loss, data, optimizer, **settings)
    )
    made.train()
    return model, average


def test_a_trainer_keeps_an_average_through_a_checkpoint_to_the_same_bits(tmp_path: Path) -> None:
    model, straight = trained(None, 9)
    trained(tmp_path / "run", 4)
    _, resumed = trained(tmp_path / "run", 9)
    assert resumed.n_averaged.item() == straight.n_averaged.item() == 9
    for name, value in straight.state_dict().items():
        np.testing.assert_array_equal(resumed.state_dict()[name].numpy(), value.numpy(), err_msg=name)
    weights = straight.module[0].weight.numpy()
    assert (weights != model[0].weight.numpy()).any()


def test_an_average_on_another_device_and_in_a_wider_dtype(device: str) -> None:
    model = nn.Linear(2, 1).to(device)
    average = optim.EMA(model, decay=0.5)
    average.to("float64")
    start = model.weight.numpy().copy()
    average.update_parameters(model)
    with mg.no_grad():
        model.weight[...] = model.weight + 1
    average.update_parameters(model)
    assert average.module.weight.device == model.weight.device
    np.testing.assert_allclose(average.module.weight.numpy(), start + 0.5, rtol=1e-6)
    np.testing.assert_array_equal(average(mg.ones(1, 2, dtype="float64", device=device)).shape, (1, 1))
    assert optim.EMA(model, device="cpu").module.weight.device == "cpu"


def test_averages_that_cannot_be_made_are_refused() -> None:
    model = nn.Linear(2, 1)
    with pytest.raises(ValueError, match="two ways to average"):
        swa_utils.AveragedModel(model, avg_fn=swa_utils.get_swa_avg_fn(), multi_avg_fn=swa_utils.get_swa_multi_avg_fn())
    with pytest.raises(ValueError, match="another model"):
        swa_utils.AveragedModel(model).update_parameters(nn.Linear(3, 1))
    with pytest.raises(ValueError, match="decay"):
        optim.EMA(model, decay=1.5)
    with pytest.raises(ValueError, match="anneal_strategy"):
        swa_utils.SWALR(optim.SGD(model.parameters()), 0.1, anneal_strategy="steps")
