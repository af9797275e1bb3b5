"""The weights of the small networks of `mlp_step.py`, drawn once with NumPy, for twins that are not made of layers' names."""

from __future__ import annotations

import numpy as np

from ..mlp_step import SIZES


def weights(problem: str) -> dict[str, np.ndarray]:
    """What `mlp_step` draws: "0.weight" (out, in), "0.bias" (out), "2.weight", …: an activation is between two layers."""
    rng, sizes = np.random.default_rng(0), SIZES[problem]
    drawn = {}
    for i, (inner, outer) in enumerate(zip(sizes, sizes[1:])):
        drawn[f"{2 * i}.weight"] = rng.uniform(-0.5, 0.5, (outer, inner)).astype(np.float32)
        drawn[f"{2 * i}.bias"] = rng.uniform(-0.5, 0.5, (outer,)).astype(np.float32)
    return drawn
