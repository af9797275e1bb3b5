"""Compiled steps of optimisers: `STEPS["adam"]["numba"].forward(optimizer, p, g, state, group, scale)` changes arrays in place.

They are chosen like the kernels of an op. An optimiser without one, or an array that none takes, is changed by the
optimiser's own rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..engine.backend import Array
from .registry import Kernel, Kernels

StepKernel = Callable[[Any, Array, Array, dict[str, Any], dict[str, Any], float], None]
STEPS = {"adam": Kernels(), "rmsprop": Kernels(), "sgd": Kernels()}  # by the name of the rule


def register_step(rule: str, implementation: str, step: StepKernel) -> None:
    """Let float32 parameters take the steps of a rule by a kernel."""
    STEPS[rule][implementation] = Kernel(step, None, lambda p: p.dtype == "float32")
