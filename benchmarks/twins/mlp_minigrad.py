"""A step of the small networks of `mlp_step.py` in minigrad, as a function of its data that can be compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import minigrad as mg
from minigrad.nn import functional as F

from ..mlp_step import OPTIMIZERS, examples, layers
from .mlp import weights


def minigrad_step(task: str, wrap: Callable[[Any], Any]) -> Callable[[], mg.Tensor]:
    """A step of "XOR, SGD", say; `wrap` is `mg.compile`, or leaves the step as it is. It returns the loss before the step."""
    problem, optimizer_name = task.split(", ")
    net = mg.nn.Sequential(*layers(mg, problem))
    net.load_state_dict({name: mg.tensor(array) for name, array in weights(problem).items()})
    optimizer = getattr(mg.optim, optimizer_name)(net.parameters(), **OPTIMIZERS[optimizer_name])

    def step(x: mg.Tensor, y: mg.Tensor) -> mg.Tensor:
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return partial(wrap(step), *map(mg.tensor, examples(problem)))
