"""A curve: linear layers with ReLU between them, or a line if there is nothing between; and the line of least squares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import nn
from minigrad.nn import functional as F

REACH, POINTS = 10.0, 100  # sin(x) is learned at 100 points from -10 to 10
Function = Callable[[np.ndarray], np.ndarray]


class Curve(nn.Module):
    """(N, 1) -> (N, hidden[0]) -> … -> (N, 1), with ReLU after every layer but the last."""

    def __init__(self, hidden: Sequence[int]):
        sizes = [1, *hidden, 1]
        self.layers = nn.ModuleList([nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])])
        for layer in self.layers[:-1]:
            nn.init.he_normal_(layer.weight)
        if hidden:
            # Each unit of the first layer bends at -bias / weight. Spread evenly, they leave no wave without a bend near it.
            first = self.layers[0]
            with mg.no_grad():
                first.bias[...] = -first.weight[:, 0] * mg.linspace(-1, 1, hidden[0])

    def forward(self, x: Any) -> mg.Tensor:
        x = x / REACH  # to the range -1 to 1
        for layer in self.layers[:-1]:
            x = F.relu(layer(x))
        return self.layers[-1](x)


def points() -> tuple[np.ndarray, np.ndarray]:
    """What is learned: x and sin(x), each (100, 1)."""
    x = np.linspace(-REACH, REACH, POINTS, dtype="float32")[:, None]
    return x, np.sin(x)


def between() -> tuple[np.ndarray, np.ndarray]:
    """The validation data: the 99 places in the middle between two points, each (99, 1)."""
    x, _ = points()
    middle = (x[1:] + x[:-1]) / 2
    return middle, np.sin(middle)


def outside() -> tuple[np.ndarray, np.ndarray]:
    """Places up to 2 beyond the points on either side, each (40, 1)."""
    beyond = np.linspace(0.1, 2.0, 20, dtype="float32")[:, None]
    x = np.concatenate([-REACH - beyond, REACH + beyond])
    return x, np.sin(x)


def least_squares() -> tuple[float, float]:
    """Slope and offset of the line with the least squared error at the points: cov(x, y) / var(x), and what is left."""
    x, y = (side.astype("float64") for side in points())
    slope = ((x - x.mean()) * (y - y.mean())).mean() / x.var()
    return float(slope), float(y.mean() - slope * x.mean())


def function_of(model: Curve) -> Function:
    """The model as a function from array to array."""

    device = model.layers[0].weight.device

    def f(x: np.ndarray) -> np.ndarray:
        with mg.no_grad():
            return model(mg.tensor(x, device=device)).numpy()

    return f


def mean_squared_error(f: Function, where: tuple[np.ndarray, np.ndarray]) -> float:
    """How far a function is from sin at some places."""
    x, y = where
    return float(((f(x) - y) ** 2).mean())
