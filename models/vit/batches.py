"""Batches of pictures that are moved, turned and stretched a little, so that a model without convolutions learns that this does not matter."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.train import ArrayBatches


class MovedBatches(ArrayBatches):
    """Batches of pictures (N, C, H, W) and labels, each picture moved by up to `most` pixels in both directions.

    It is also turned by up to `turned` degrees, and stretched or shrunk by up to the share `stretched`.
    """

    def __init__(
        self, arrays: Any, batch_size: int, most: int, turned: float = 0.0, stretched: float = 0.0, seed: int = 0
    ):
        super().__init__(arrays, batch_size, seed)
        self.most, self.turned, self.stretched = most, turned, stretched

    def batch(self, epoch: int, index: int) -> tuple[Any, ...]:
        pictures, *rest = super().batch(epoch, index)
        rng, count = np.random.default_rng([self.seed, epoch, index]), len(pictures)
        down, right = rng.integers(-self.most, self.most + 1, (2, count))
        turn = np.radians(rng.uniform(-self.turned, self.turned, count))
        stretch = rng.uniform(1 - self.stretched, 1 + self.stretched, count)
        return warped(pictures, down, right, turn, stretch), *rest


def warped(
    pictures: np.ndarray, down: np.ndarray, right: np.ndarray, turn: np.ndarray, stretch: np.ndarray
) -> np.ndarray:
    """Pictures (N, C, H, W), each stretched and turned (clockwise, in radians) around its middle, and moved; what comes in is 0.

    A pixel that comes from between four others is their mean, by how near they are.
    """
    count, channels, high, wide = pictures.shape
    y, x = (np.arange(n, dtype="float32") - (n - 1) / 2 for n in (high, wide))
    y, x = y[:, None] - _apart(down), x - _apart(right)  # (N, H, 1), (N, 1, W): before it was moved
    cos, sin = _apart(np.cos(turn) / stretch), _apart(np.sin(turn) / stretch)
    rows = np.clip(cos * y - sin * x + (high + 1) / 2, 0, high + 1)  # (N, H, W), in pictures with a 0 around them
    columns = np.clip(sin * y + cos * x + (wide + 1) / 2, 0, wide + 1)
    top, left = np.minimum(rows.astype(int), high), np.minimum(columns.astype(int), wide)
    lower, further = (rows - top)[..., None], (columns - left)[..., None]
    around = np.pad(np.moveaxis(pictures, 1, -1), ((0, 0), (1, 1), (1, 1), (0, 0)))  # (N, H + 2, W + 2, C)
    pixels = around.reshape(-1, channels)
    at = (np.arange(count)[:, None, None] * (high + 2) + top) * (wide + 2) + left
    above = pixels[at] * (1 - further) + pixels[at + 1] * further
    below = pixels[at + wide + 2] * (1 - further) + pixels[at + wide + 3] * further
    return np.ascontiguousarray(np.moveaxis(above * (1 - lower) + below * lower, -1, 1), dtype="float32")


def _apart(numbers: np.ndarray) -> np.ndarray:
    """A number for each picture: (N,) -> (N, 1, 1)"""
    return np.asarray(numbers, "float32")[:, None, None]
