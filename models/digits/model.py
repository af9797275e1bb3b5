"""The convolutional network, the linear softmax that it is measured against, and the table of what is taken for what."""

from __future__ import annotations

from typing import Any

import numpy as np

import minigrad as mg
from minigrad import nn

from .images import SIZE


class Net(nn.Module):
    """(N, 1, 16, 16) -> (N, classes): two convolutions, each with a pooling that halves the image, and two linear layers."""

    def __init__(self, channels: int, hidden: int, classes: int = 10):
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
            nn.Linear(hidden, classes),
        )

    def forward(self, images: Any) -> mg.Tensor:
        return self.layers(images)


class Softmax(nn.Module):
    """(N, 1, 16, 16) -> (N, classes): one weight for each pixel and class, and nothing between."""

    def __init__(self, classes: int = 10) -> None:
        self.output = nn.Linear(SIZE * SIZE, classes)

    def forward(self, images: Any) -> mg.Tensor:
        return self.output(nn.Flatten()(images))


def confusions(model: nn.Module, images: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(classes, classes): how many images of the row's class are taken for the column's."""
    counts, where = np.zeros((0, 0), int), next(model.parameters()).device
    with mg.no_grad():
        for start in range(0, len(images), 500):
            logits = model(mg.tensor(images[start : start + 500], device=where))  # (500, classes)
            if not counts.size:
                counts = np.zeros((logits.shape[1],) * 2, int)
            np.add.at(counts, (labels[start : start + 500], logits.argmax(axis=1).numpy()), 1)
    return counts


def accuracy(counts: np.ndarray) -> float:
    """The share of the diagonal."""
    return float(np.trace(counts) / counts.sum())


def as_table(counts: np.ndarray, classes: tuple[str, ...] = ()) -> str:
    """The confusions for reading: zeros are dots."""
    names = [name[:12] for name in classes] or [str(digit) for digit in range(len(counts))]
    wide = max(5, *(len(name) + 2 for name in names))
    head = "drawn \\ read" + "".join(f"{name:>{wide}}" for name in names)
    rows = [f"{name:>12}" + "".join(f"{n or '·':>{wide}}" for n in row) for name, row in zip(names, counts)]
    return "\n".join([head, *rows])
