"""The fused operations compiled by numba, for float32 on one core; training runs one thread for each part of a batch."""

from .compiling import keeping

with keeping():
    from . import attention, elementwise, optim, rows  # noqa: F401  (importing them registers their kernels)
