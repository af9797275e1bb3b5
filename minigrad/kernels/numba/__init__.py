"""What numba compiles from hand-written loops: attention, convolution, pooling, stacks of products, products with packed
weights, the gradient of an embedding, a scan, recurrent layers.

All other fused operations are written by the compiler from their definitions (minigrad.compile.fused).
"""

import numpy as np

from .compiling import keeping

with keeping():
    from . import attention, convolution, embedding, packed, pooling, products, recurrent, scan  # noqa: F401  (importing them registers their kernels)


def try_out() -> None:
    """Compile and run one kernel, so that a numba that does not work here is noticed before anything depends on it."""
    rows = np.ones((2, 3), np.float32)
    out, _ = embedding.embedding_backward(rows, None, (True, False), rows, np.zeros(2, np.int64), padding_idx=None)
    if out.sum() != 6:
        raise ArithmeticError("numba's loops give wrong sums")
