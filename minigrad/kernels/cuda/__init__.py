"""The fused operations and the optimisers' steps on CuPy's arrays, as CUDA kernels for float32 and float64."""

from . import attention, elementwise, rows  # noqa: F401  (importing them registers their kernels)
from .steps import adam_step, rmsprop_step, sgd_step

__all__ = ["adam_step", "rmsprop_step", "sgd_step"]
