"""The named results of decompositions, with NumPy's field names; those that NumPy does not have are PyTorch's."""

from __future__ import annotations

from typing import NamedTuple

from ..engine.tensor import Tensor


class SlogdetResult(NamedTuple):
    """Of `slogdet`: `sign * exp(logabsdet)` is the determinant."""

    sign: Tensor
    logabsdet: Tensor


class QRResult(NamedTuple):
    """Of `qr`: `Q @ R` is the matrix."""

    Q: Tensor
    R: Tensor


class SVDResult(NamedTuple):
    """Of `svd`: `(U * S[..., None, :]) @ Vh` is the matrix."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class EighResult(NamedTuple):
    """Of `eigh`: `a @ eigenvectors = eigenvectors * eigenvalues`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class LUResult(NamedTuple):
    """Of `lu`: `P @ L @ U` is the matrix."""

    P: Tensor
    L: Tensor
    U: Tensor


class LUFactorResult(NamedTuple):
    """Of `lu_factor`, for `lu_solve`: both triangles in one matrix, and the row that each row was exchanged with."""

    LU: Tensor
    pivots: Tensor
