"""Linear algebra: the functions of the namespace, and those of its extension `linalg`."""

from __future__ import annotations

import math
from typing import Any

from .. import functions as f
from ..engine.tensor import Tensor
from ..errors import ArgumentError, axes_of
from ..ops.results import EighResult, QRResult, SlogdetResult, SVDResult
from .arrays import on_arrays, writable
from .dtypes import result_type
from .elementwise import conj
from .manipulation import matrix_transpose
from .statistics import sum as sum_

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The matrix product of the last two axes."""
    return f.matmul(x1, x2)


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """The sum of products over pairs of axes."""
    return f.tensordot(x1, x2, axes=axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The sum along an axis of products, with the first conjugated, in the dtype of the product."""
    if not -min(x1.ndim, x2.ndim) <= axis < 0 and x1.ndim != x2.ndim:
        raise ArgumentError("vecdot: this axis is not the same in both", "one counted from the end", f"axis={axis}")
    if x1.shape[axis] != x2.shape[axis]:
        raise ArgumentError("vecdot: the axis has two sizes", "equal sizes", f"{x1.shape} and {x2.shape}, axis {axis}")
    return sum_(conj(x1) * x2, axis=axis, dtype=result_type(x1, x2))


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Every element of one vector times every element of the other."""
    return f.outer(x1, x2)


@writable
def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangular factor of a positive definite matrix, lower unless `upper`."""
    lower = f.cholesky(x)
    return conj(lower.mT) if upper else lower


@writable
def det(x: Tensor, /) -> Tensor:
    """The determinant of square matrices."""
    return f.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """A diagonal of the last two axes."""
    return f.diagonal(x, offset=offset, axis1=-2, axis2=-1)


@writable
def inv(x: Tensor, /) -> Tensor:
    """The inverse of square matrices."""
    return f.inv(x)


@writable
def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """The norm of matrices in the last two axes."""
    if x.dtype.kind == "c":
        return on_arrays("matrix_norm", lambda xp, a: xp.linalg.norm(a, ord, (-2, -1), keepdims), x)
    return f.norm(x, ord=ord, axis=(-2, -1), keepdims=keepdims)


@writable
def vector_norm(x: Tensor, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    """The norm of vectors along one axis, or along several taken as one."""
    size = f.abs(x) if x.dtype.kind == "c" else x
    reduced = range(x.ndim) if axis is None else axes_of(axis)
    axes = tuple([i % x.ndim for i in reduced])
    if len(axes) == 1:
        return f.norm(size, ord=ord, axis=axes[0], keepdims=keepdims)
    rest = tuple([i for i in range(x.ndim) if i not in axes])
    last = f.permute_dims(size, (*rest, *axes)).reshape(
        *[x.shape[i] for i in rest], math.prod(x.shape[i] for i in axes)
    )
    result = f.norm(last, ord=ord, axis=-1)
    return result.reshape(tuple([1 if i in axes else n for i, n in enumerate(x.shape)])) if keepdims else result


@writable
def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The `x` with `x1 @ x = x2`."""
    return f.solve(x1, x2)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sum of a diagonal of the last two axes."""
    return sum_(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The vector product of vectors of three elements along an axis."""
    return f.cross(x1, x2, axis=axis)


def eigh(x: Tensor, /) -> EighResult:
    """Eigenvalues and eigenvectors of symmetric matrices."""
    return f.eigh(x)


@writable
def eigvalsh(x: Tensor, /) -> Tensor:
    """Eigenvalues of symmetric matrices, in rising order."""
    return f.eigvalsh(x)


@writable
def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """A square matrix multiplied by itself, `n` times in all; its inverse for negative `n`."""
    return f.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """How many singular values are larger than `rtol` times the largest."""
    return f.matrix_rank(x, rtol=_for_each_value(rtol))


def _for_each_value(rtol: Any) -> Any:
    """A tolerance for each matrix as one for each of its singular values: (…) -> (…, 1)."""
    return f.expand_dims(rtol, -1) if isinstance(rtol, Tensor) else rtol


@writable
def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The pseudo-inverse, in which singular values up to `rtol` times the largest count as 0."""
    return f.pinv(x, rtol=rtol.data if isinstance(rtol, Tensor) else rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """An orthogonal and an upper triangular factor; those of mode "complete" have no derivative."""
    if x.dtype.kind == "c":
        return QRResult(*on_arrays("qr", lambda xp, a: xp.linalg.qr(a, mode), x))
    return f.qr(x, mode=mode)


def slogdet(x: Tensor, /) -> SlogdetResult:
    """The sign of the determinant and the logarithm of its size."""
    return f.slogdet(x)


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """Singular values and vectors; only the reduced form, and that of square matrices, has a derivative."""
    return f.svd(x, full_matrices=full_matrices)


@writable
def svdvals(x: Tensor, /) -> Tensor:
    """Singular values, in falling order."""
    return f.svdvals(x)
