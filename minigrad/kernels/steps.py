"""Compiled steps of optimisers: `step(optimizer, p, g, state, group, scale)` changes flat arrays in place.

They are looked up by name, and by where the array is; an optimiser without one, or an array that none takes, is changed
by the optimiser's own rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..engine.backend import Array
from .selection import candidates

StepKernel = Callable[[Any, Array, Array, dict[str, Any], dict[str, Any], float], None]
STEPS: dict[str, dict[str, StepKernel]] = {}  # by the name of the implementation, then of the rule


def step_kernel(rule: str | None, p: Array) -> StepKernel | None:
    """The fastest step of this name for such an array; None if there is none."""
    if rule is not None and p.dtype == "float32":
        for name in candidates(type(p), p.size):
            kernel = STEPS.get(name, {}).get(rule)
            if kernel is not None:
                return kernel
    return None
