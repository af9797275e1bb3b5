"""Five functions that are written in plain ops in both libraries: what they are given, and how what they compute compares.

They are in `plain_minigrad.py` and `plain_torch.py`, so that neither process imports the other's library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

ROWS, COLUMNS = SHAPE = (2048, 512)
EPSILON = 1e-5
TEMPERATURE = 0.7
SMOOTHING = 0.1


def inputs(function: str) -> dict[str, np.ndarray]:
    """The arguments by their names, in their order."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(SHAPE, np.float32), rng.standard_normal(SHAPE, np.float32)
    a, b = (rng.uniform(0.5, 1.5, COLUMNS).astype(np.float32) for _ in range(2))
    match function:
        case "layer_norm_gelu":
            return {"x": x, "weight": a, "bias": b}
        case "masked_softmax":
            mask = rng.random(SHAPE) < 0.7
            mask[:, 0] = True  # a row without any would be NaN
            return {"x": x, "mask": mask}
        case "focal_loss":
            return {"logits": 3 * x, "labels": rng.integers(0, COLUMNS, ROWS)}
        case "lotka_volterra":
            scalars = {"b": np.array(0.8, np.float32), "d": np.array(1.2, np.float32)}
            return {"x": np.abs(x), "y": np.abs(y), "a": a, "b": scalars["b"], "c": b, "d": scalars["d"]}
        case "rms_norm_gated":
            return {"x": x, "gate": y, "weight": a, "residual": rng.standard_normal(SHAPE, np.float32)}
    raise ValueError(f"there is no function {function!r}")


def cotangents(function: str) -> list[np.ndarray]:
    """What each result is multiplied with before their sum is differentiated: so these are the results' own gradients."""
    rng = np.random.default_rng(1)
    if function == "focal_loss":
        return [np.array(1.5, np.float32)]
    return [rng.standard_normal(SHAPE, np.float32) for _ in range(2 if function == "lotka_volterra" else 1)]


@dataclass(frozen=True)
class Computed:
    """The results and gradients of one step; `item()` says what they are in few numbers."""

    tensors: Sequence[object]

    def item(self) -> list[list[float]]:
        return [digest(np.asarray(tensor)) for tensor in self.tensors]


def digest(array: np.ndarray) -> list[float]:
    """The largest magnitude, and sums of each row and column with random signs, in which any wrong element shows."""
    matrix = np.atleast_2d(array.astype(np.float64))
    signs = [np.random.default_rng(2).choice((-1.0, 1.0), size) for size in matrix.shape]
    return [float(np.abs(matrix).max()), *(matrix @ signs[1]).tolist(), *(signs[0] @ matrix).tolist()]
