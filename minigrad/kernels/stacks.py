"""Products of two stacks of matrices, which NumPy computes one by one on a single core: kernels of `matmul` for them.

They compute forward; the rules of `matmul` are products again. Whatever they leave to NumPy is refused before numba
is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ops.linalg.products import matmul
from .registry import Kernel, Kernels

SMALLEST = 4, 8, 16  # rows, depth and columns: below, most of a kernel's work would be for nothing
LARGEST = 1 << 16  # elements of a right factor, or of a left one: those of larger matrices are better moved by BLAS
_SINGLE = np.dtype("float32")
_ITEM = 4


def accepts(a: Any, b: Any) -> bool:
    """Whether these are equally long stacks of float32, with one or two axes, of matrices that are worth it.

    The right one's rows or columns are without gaps; the left one may lie in memory in any way.
    """
    if type(a) is not np.ndarray or type(b) is not np.ndarray or not 2 < a.ndim == b.ndim < 5:
        return False
    if a.dtype != _SINGLE or b.dtype != _SINGLE or a.shape[:-2] != b.shape[:-2]:
        return False
    rows, depth = a.shape[-2:]
    inner, columns = b.shape[-2:]
    if depth != inner or rows < SMALLEST[0] or depth < SMALLEST[1] or columns < SMALLEST[2]:
        return False
    fits = depth * columns <= LARGEST and depth * rows <= LARGEST and a.size > 0
    return fits and _ITEM in b.strides[-2:] and a.flags.aligned and b.flags.aligned


class StackKernels(Kernels):
    """The kernels of `matmul`. What no kernel takes is not looked at twice."""

    min_ndim = 3

    def choose(self, arrays: Sequence[Any], attrs: dict[str, Any], size: int = 0) -> Kernel | None:
        return super().choose(arrays, attrs, size) if accepts(*arrays) else None


matmul.kernels = StackKernels()
