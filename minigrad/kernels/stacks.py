"""Products of two stacks of matrices, which NumPy computes one by one on a single core.

`product(a, b)` is what `minigrad.ops` asks first. Whatever it leaves to NumPy it answers with None, and it does so
before numba is loaded if no kernel could take these arrays anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .selection import candidates

PRODUCTS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {}  # by the name of the implementation
SMALLEST = 4, 8, 16  # rows, depth and columns: below, most of a kernel's work would be for nothing
LARGEST = 1 << 16  # elements of a right factor, or of a left one: those of larger matrices are better moved by BLAS
_SINGLE = np.dtype("float32")
_ITEM = 4


def product(a: Any, b: Any) -> np.ndarray | None:
    """`a @ b` for two stacks (…, m, k), (…, k, n) -> (…, m, n) by the best kernel, or None if there is none for them."""
    if type(a) is not np.ndarray or type(b) is not np.ndarray or not accepts(a, b):
        return None
    for name in candidates(np.ndarray, a.size if a.size > b.size else b.size):
        if name in PRODUCTS:
            return PRODUCTS[name](a, b)
    return None


def accepts(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether these are equally long stacks of float32, with one or two axes, of matrices that are worth it.

    The right one's rows or columns are without gaps; the left one may lie in memory in any way.
    """
    if a.dtype != _SINGLE or b.dtype != _SINGLE or not 2 < a.ndim == b.ndim < 5 or a.shape[:-2] != b.shape[:-2]:
        return False
    rows, depth = a.shape[-2:]
    inner, columns = b.shape[-2:]
    if depth != inner or rows < SMALLEST[0] or depth < SMALLEST[1] or columns < SMALLEST[2]:
        return False
    fits = depth * columns <= LARGEST and depth * rows <= LARGEST and a.size > 0
    return fits and _ITEM in b.strides[-2:] and a.flags.aligned and b.flags.aligned
