"""Scenes in noise: a time says how much of each, drawn anew whenever a scene comes."""

from __future__ import annotations

from typing import Any

import numpy as np
from minigrad_models.caption.scenes import PAD

from minigrad.train import ArrayBatches


def inked(shown: np.ndarray) -> np.ndarray:
    """Colours from 0 to 1 as they are painted: from 2, for black, to 0, for white, so that paper is nearly 0."""
    return 2 - 2 * shown


class NoisyScenes(ArrayBatches):
    """Batches of pictures in noise, times, words and pictures; a share `untold` of them has no words."""

    def __init__(self, arrays: Any, batch_size: int, untold: float, seed: int = 0, shuffle: bool = True):
        super().__init__(arrays, batch_size, seed, shuffle)
        self.untold = untold

    def batch(self, epoch: int, index: int) -> tuple[Any, ...]:
        shown, words = super().batch(epoch, index)
        rng = np.random.default_rng([self.seed, epoch if self.shuffle else 0, index])
        clean = inked(shown)
        times = rng.random(len(clean), "float32")
        weight = times[:, None, None, None]
        noisy = weight * clean + (1 - weight) * rng.standard_normal(clean.shape, "float32")
        told = rng.random(len(clean)) >= self.untold
        return noisy, times, np.where(told[:, None], words, PAD), clean
