"""What no token can be cheaper than: reading each byte of the weights once, by all cores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

READING = "reading"


def reading(size: int) -> Callable[[], np.float64]:
    """A worker's step: read so many bytes, as fast as PyTorch adds them up."""
    import torch

    numbers = torch.ones(size // 4)
    return lambda: np.float64(numbers.sum())
