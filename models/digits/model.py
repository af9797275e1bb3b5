"""The convolutional network, the linear softmax that it is measured against, and the table of what is taken for what."""

from __future__ import annotations

from typing import Any

import numpy as np

import minigrad as mg
from minigrad import nn

from .images import SIZE


class Net(nn.Module):
    """(N, 1, 16, 16) -> (N, 10): two convolutions, each with a pooling that halves the image, and two linear layers."""

    def __init__(self, channels: int, hidden: int):
        quarter = SIZE // 4
        self.layers = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1),  # (N, 1, 16, 16) -> (N, C, 16, 16)
            nn.MaxPool2d(2),  # -> (N, C, 8, 8)
            nn.ReLU(),
            nn.Conv2d(channels, 2 * channels, 3, padding=1),
            nn.MaxPool2d(2),  # -> (N, 2·C, 4, 4)
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(2 * channels * quarter * quarter, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 10),
        )

    def forward(self, images: Any) -> mg.Tensor:
        return self.layers(images)


class Softmax(nn.Module):
    """(N, 1, 16, 16) -> (N, 10): one weight for each pixel and digit, and nothing between."""

    def __init__(self) -> None:
        self.output = nn.Linear(SIZE * SIZE, 10)

    def forward(self, images: Any) -> mg.Tensor:
        return self.output(nn.Flatten()(images))


def confusions(model: nn.Module, images: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(10, 10): how many images of the row's digit are taken for the column's."""
    counts, where = np.zeros((10, 10), int), next(model.parameters()).device
    with mg.no_grad():
        for start in range(0, len(images), 500):
            taken = model(mg.tensor(images[start : start + 500], device=where)).argmax(axis=1).numpy()
            np.add.at(counts, (labels[start : start + 500], taken), 1)
    return counts


def accuracy(counts: np.ndarray) -> float:
    """The share of the diagonal."""
    return float(np.trace(counts) / counts.sum())


def as_table(counts: np.ndarray) -> str:
    """The confusions for reading: zeros are dots."""
    head = "drawn \\ read" + "".join(f"{digit:5}" for digit in range(10))
    rows = [f"{digit:12}" + "".join(f"{n or '·':>5}" for n in row) for digit, row in enumerate(counts)]
    return "\n".join([head, *rows])
