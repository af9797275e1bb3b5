"""Fused operations: each has a definition made of ordinary ops, and kernels for NumPy, numba and CUDA that compute it faster."""

from . import definitions, numpy, numpy_attention, numpy_recurrent, numpy_rows, numpy_scan, packed, recurrent, stacks  # noqa: F401  (importing them registers their kernels)
from .definitions import *  # noqa: F403
from .packed import *  # noqa: F403
from .recurrent import *  # noqa: F403
from .registry import FUSED, Kernel, fuse, fused
from .selection import implementation, use

__all__ = ["FUSED", "Kernel", "fuse", "fused", "implementation", "use"]
__all__ += definitions.__all__
__all__ += packed.__all__
__all__ += recurrent.__all__
