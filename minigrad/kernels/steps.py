"""Compiled steps of optimisers: `STEPS["numba"].forward(optimizer, p, g, state, group, scale)` changes flat arrays in place.

They are chosen like the kernels of an op. An array that none takes is changed by the optimiser's own rule.
"""

from __future__ import annotations

from .registry import Kernels

STEPS = Kernels()
