"""The fused operations compiled by numba, for float32 on one core; training runs one thread for each part of a batch.

Stacks of products are computed by all cores where no training divides its batch.
"""

import numpy as np

from ..definitions import silu
from .compiling import keeping

with keeping():
    from . import attention, elementwise, optim, products, rows  # noqa: F401  (importing them registers their kernels)


def try_out() -> None:
    """Compile and run one kernel, so that a numba that does not work here is noticed before anything depends on it."""
    out, _ = silu.kernels["numba"].forward(np.zeros(3, np.float32))
    if out.any():
        raise ArithmeticError("silu(0) is not 0")
