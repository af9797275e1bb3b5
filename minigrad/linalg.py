"""Linear algebra under the names of `numpy.linalg`, with what PyTorch's `torch.linalg` and SciPy add: `mg.linalg.svd(x)`.

Most of it is also there as `mg.NAME`. `cross`, `diagonal`, `trace`, `matrix_norm` and `vector_norm` have the forms that
`numpy.linalg` and the array API standard give them: matrices are the last two axes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from . import functions as _functions
from .engine.tensor import Tensor
from .errors import public
from .functions import (
    cholesky,
    cholesky_solve,
    cond,
    cross,
    det,
    eigh,
    eigvalsh,
    inv,
    logdet,
    lstsq,
    lu,
    lu_factor,
    lu_solve,
    matmul,
    matrix_exp,
    matrix_power,
    matrix_rank,
    multi_dot,
    norm,
    outer,
    pinv,
    qr,
    slogdet,
    solve,
    solve_triangular,
    svd,
    svdvals,
    tensordot,
    tensorinv,
    tensorsolve,
    vander,
    vecdot,
)
from .ops.results import EighResult, LUFactorResult, LUResult, QRResult, SlogdetResult, SVDResult

__all__ = [
    "EighResult",
    "LUFactorResult",
    "LUResult",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "cholesky",
    "cholesky_solve",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "expm",
    "inv",
    "logdet",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vander",
    "vecdot",
    "vector_norm",
]
expm = matrix_exp  # as SciPy calls it


def diagonal(x: Any, offset: int = 0) -> Tensor:
    """A diagonal of the last two axes, as `numpy.linalg.diagonal`: (…, n, n) -> (…, n)."""
    return _functions.diagonal(x, offset, -2, -1)


def trace(x: Any, offset: int = 0) -> Tensor:
    """The sum of a diagonal of the last two axes, as `numpy.linalg.trace`: (…, n, n) -> (…)."""
    return _functions.trace(x, offset, -2, -1)


def matrix_transpose(x: Any) -> Tensor:
    """The last two axes exchanged, as `numpy.linalg.matrix_transpose`."""
    return _functions.swapaxes(x, -1, -2)


def matrix_norm(x: Any, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """The norm of the matrices in the last two axes, as `numpy.linalg.matrix_norm`."""
    return norm(x, ord, (-2, -1), keepdims)


def vector_norm(x: Any, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    """The length of vectors along axes, or of all elements together, as `numpy.linalg.vector_norm`.

    >>> import minigrad as mg
    >>> mg.linalg.vector_norm([[3.0, 0.0], [0.0, 4.0]]).item()
    5.0
    """
    x = x if isinstance(x, Tensor) else Tensor(x)
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if not isinstance(axis, (tuple, list)) else tuple(axis)
    moved = _functions.moveaxis(x, axes, tuple(range(-len(axes), 0))) if len(axes) < x.ndim else x
    kept = x.ndim - len(axes)
    lines = _functions.reshape(moved, (*moved.shape[:kept], math.prod(moved.shape[kept:])))
    result = norm(lines, ord, -1)
    return _functions.expand_dims(result, tuple(sorted(i % x.ndim for i in axes))) if keepdims and axes else result


if not TYPE_CHECKING:  # a type checker knows what is here
    __getattr__, __dir__ = public(__name__, __all__, "arrays")
