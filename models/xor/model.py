"""The network 2-hidden-1, the weights that solve XOR without learning, and many networks trained side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import minigrad as mg
from minigrad import nn
from minigrad.nn import functional as F
from minigrad.optim import AdamW

ACTIVATIONS = {"tanh": F.tanh, "sigmoid": F.sigmoid, "relu": F.relu}
ROWS = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
TARGETS = [[0.0], [1.0], [1.0], [0.0]]


class Net(nn.Module):
    """(N, 2) -> (N, hidden) -> (N, 1): the logit of "1"."""

    def __init__(self, hidden: int, activation: str, dtype: Any = None):
        self.hidden, self.output = nn.Linear(2, hidden, dtype=dtype), nn.Linear(hidden, 1, dtype=dtype)
        self.activation, self.squash = activation, ACTIVATIONS[activation]

    def forward(self, x: Any) -> mg.Tensor:
        return self.output(self.squash(self.hidden(x)))


# For each activation: the hidden layer's weight and bias, then the output's.
BY_HAND: dict[str, tuple[Any, Any, Any, Any]] = {
    # The units are OR and NOT AND, and the output is AND: all three are steep sigmoids.
    "sigmoid": ([[20.0, 20.0], [-20.0, -20.0]], [-10.0, 30.0], [[20.0, 20.0]], [-30.0]),
    # The units are a - b and b - a, where positive; the output is 0.5 where one of them is.
    "relu": ([[1.0, -1.0], [-1.0, 1.0]], [0.0, 0.0], [[1.0, 1.0]], [-0.5]),
}


def by_hand(activation: str) -> Net:
    """A network 2-2-1 in float64 whose weights were found by thinking, for "sigmoid" or "relu"."""
    net = Net(2, activation, dtype="float64")
    with mg.no_grad():
        for parameter, values in zip(net.parameters(), BY_HAND[activation]):
            parameter[...] = values
    return net


def answers_by_hand(activation: str) -> list[float]:
    """What that network says to the four rows; its output passes through the same activation as its hidden units.

    >>> [round(answer, 8) for answer in answers_by_hand("sigmoid")]
    [4.544e-05, 0.99995452, 0.99995452, 4.544e-05]
    >>> answers_by_hand("relu")
    [0.0, 0.5, 0.5, 0.0]
    """
    with mg.no_grad():
        logits = by_hand(activation)(mg.tensor(ROWS, dtype="float64"))
        return ACTIVATIONS[activation](logits).reshape(-1).tolist()


def right_answers(config: Any, seeds: Sequence[int]) -> list[int]:
    """How many of the four rows are right after training, for the networks of many seeds.

    All networks are trained at once, as slices of the same arrays, since each op costs as much for one as for hundreds.
    Their losses are added, so none feels the others, and each ends as `minigrad train xor --seed SEED` alone would end it,
    if that has all four rows in a batch and clips nothing, as by default.
    """
    nets = []
    for seed in seeds:
        mg.manual_seed(seed)
        nets.append(Net(config.hidden, config.activation))
    stacked = [mg.stack(same).detach() for same in zip(*(net.parameters() for net in nets))]
    w1, b1, w2, b2 = (nn.Parameter(t) for t in stacked)  # (n, h, 2), (n, h), (n, 1, h), (n, 1)
    x, y = mg.tensor(ROWS), mg.tensor(TARGETS)

    def logits() -> mg.Tensor:
        hidden = ACTIVATIONS[config.activation](x @ w1.mT + b1[:, None])  # (4, 2) @ (n, 2, h) -> (n, 4, h)
        return hidden @ w2.mT + b2[:, None]  # (n, 4, h) @ (n, h, 1) -> (n, 4, 1)

    optimizer = AdamW([w1, b1, w2, b2], lr=config.lr, weight_decay=config.weight_decay)
    for _ in range(config.steps):
        optimizer.zero_grad()
        z = logits()
        (F.softplus(z) - y * z).mean(axis=(1, 2)).sum().backward()  # the binary cross-entropy of each network
        optimizer.step()
    with mg.no_grad():
        return ((logits() > 0) == (y > 0.5)).sum(axis=(1, 2)).tolist()
