"""Models that the tests of modules share: nested parts with buffers, and a tied parameter."""

from __future__ import annotations

import numpy as np

import minigrad as mg
from minigrad import nn


class Block(nn.Module):
    def __init__(self, size: int = 3):
        self.fc = nn.Linear(size, size)
        self.norm = nn.BatchNorm1d(size)

    def forward(self, x):
        return mg.tanh(self.norm(self.fc(x)))


class Model(nn.Module):
    def __init__(self, size: int = 3):
        self.scale = nn.Parameter(mg.ones(size))
        self.blocks = nn.ModuleList([Block(size), Block(size)])
        self.head = nn.Linear(size, 2)
        self.register_buffer("seen", mg.zeros(1), persistent=False)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x * self.scale)


class Tied(nn.Module):
    """A table that is also the output layer, as in GPT."""

    def __init__(self):
        self.table = nn.Embedding(5, 3)
        self.out = nn.Linear(3, 5, bias=False)
        self.out.weight = self.table.weight

    def forward(self, x):
        return self.out(self.table(x))


BLOCK_STATE = ["fc.weight", "fc.bias", "norm.weight", "norm.bias", "norm.running_mean", "norm.running_var"]
BLOCK_STATE += ["norm.num_batches_tracked"]
STATE = ["scale", *(f"blocks.{i}.{name}" for i in (0, 1) for name in BLOCK_STATE), "head.weight", "head.bias"]


def values(module: nn.Module) -> dict[str, np.ndarray]:
    return {name: value.numpy().copy() for name, value in module.state_dict().items()}


def assert_same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> None:
    assert list(a) == list(b)
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)
