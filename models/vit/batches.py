"""Batches of pictures that are moved by a few pixels, so that a model without convolutions learns that places do not matter."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.train import ArrayBatches


class MovedBatches(ArrayBatches):
    """Batches of pictures (N, C, H, W) and labels, each picture moved by up to `most` pixels in both directions."""

    def __init__(self, arrays: Any, batch_size: int, most: int, seed: int = 0):
        super().__init__(arrays, batch_size, seed)
        self.most = most

    def batch(self, epoch: int, index: int) -> tuple[Any, ...]:
        pictures, *rest = super().batch(epoch, index)
        draws = np.random.default_rng([self.seed, epoch, index]).integers(0, 2 * self.most + 1, (2, len(pictures)))
        return moved(pictures, *draws, self.most), *rest


def moved(pictures: np.ndarray, down: np.ndarray, right: np.ndarray, most: int) -> np.ndarray:
    """Pictures (N, C, H, W), each moved down and right by its numbers less `most`; what comes in is 0."""
    count, _, high, wide = pictures.shape
    around = np.pad(pictures, ((0, 0), (0, 0), (most, most), (most, most)))
    rows = (np.arange(high) + 2 * most - down[:, None])[:, None, :, None]  # (N, 1, H, 1)
    columns = (np.arange(wide) + 2 * most - right[:, None])[:, None, None, :]  # (N, 1, 1, W)
    numbers, channels = np.arange(count)[:, None, None, None], np.arange(pictures.shape[1])[:, None, None]
    return around[numbers, channels, rows, columns]
