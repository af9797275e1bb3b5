"""The LU decomposition with partial pivoting, and systems of equations solved by it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...engine.op import op
from ...errors import ShapeError
from ..composite import composite
from ..creation import astype
from ..indexing.along import take_along_axis
from ..layout.joining import concatenate
from ..layout.shape import expand_dims, tril, triu
from ..results import LUFactorResult, LUResult
from .systems import inv, solve_triangular, square_needed


def _eliminate(xp: Any, a: Any, pivoting: bool) -> tuple[Any, Any, list[Any]]:
    """Gauss's elimination: both triangles in one array, the order of the rows, and which row each step exchanged with its own."""
    lu, (m, n) = a.astype(a.dtype if a.dtype.kind == "f" else np.float64), a.shape[-2:]
    rows = xp.arange(m)
    order, chosen = xp.broadcast_to(rows, a.shape[:-1]), []
    for k in range(min(m, n)):
        if pivoting:
            best = abs(lu[..., k:, k]).argmax(axis=-1)[..., None] + k
            swap = xp.where(rows == k, best, xp.where(rows == best, k, rows))  # (…, m)
            lu, order = xp.take_along_axis(lu, swap[..., None], -2), xp.take_along_axis(order, swap, -1)
            chosen.append(best)
        pivot = lu[..., k : k + 1, k]
        lu[..., k + 1 :, k] /= xp.where(pivot == 0, 1, pivot)
        lu[..., k + 1 :, k + 1 :] -= lu[..., k + 1 :, k, None] * lu[..., k, None, k + 1 :]
    return lu, order, chosen


@op(several=True)
def _pivots(xp, a):
    """The order in which elimination takes the rows, and LAPACK's pivots, counted from 1."""
    _, order, chosen = _eliminate(xp, a, pivoting=True)
    pivots = xp.concatenate(chosen, axis=-1) if chosen else xp.zeros((*a.shape[:-2], 0), np.int64)
    return order, (pivots + 1).astype(np.int32)


@op(several=True)
def _lu(xp, a):
    """The triangles of matrices whose rows are in order: (…, m, n) -> (…, m, k) with ones on the diagonal, (…, k, n)."""
    lu, _, _ = _eliminate(xp, a, pivoting=False)
    k = min(a.shape[-2:])
    lower = xp.tril(lu[..., :k], -1) + xp.eye(a.shape[-2], k, dtype=lu.dtype)
    return lower, xp.triu(lu[..., :k, :])


def _lu_rule(g, out):
    (gl, gu), (lower, upper) = g, out
    k, rest = lower.shape[-1], []
    square_l, square_u = lower[..., :k, :].swapaxes(-1, -2), upper[..., :k].swapaxes(-1, -2)
    before, after = inv(square_l), inv(square_u)
    if lower.shape[-2] > k:  # the rows below the square: L₂ = A₂ U⁻¹
        rest = [gl[..., k:, :] @ after]
        gu = gu - lower[..., k:, :].swapaxes(-1, -2) @ rest[0]
    if upper.shape[-1] > k:  # the columns beside the square: U₂ = L⁻¹ A₂
        rest = [before @ gu[..., k:]]
        gl = gl - rest[0] @ upper[..., k:].swapaxes(-1, -2)
    inner = tril(square_l @ gl[..., :k, :], k=-1) + triu(gu[..., :k] @ square_u)
    return concatenate([before @ inner @ after, *rest], axis=-2 if lower.shape[-2] > k else -1)


_lu.vjp(a=_lu_rule)
_lu.explain = _pivots.explain = lambda a: ("a matrix, or a stack of them", "give it two axes, as in x.reshape(1, n)")


@op
def _permutation(xp, order):
    """The matrix P with `P @ x[order] = x`, in float64."""
    return (xp.arange(order.shape[-1])[:, None] == order[..., None, :]).astype(np.float64)


@op
def _order_of(xp, pivots):
    """The order of rows that LAPACK's pivots stand for."""
    rows = xp.arange(pivots.shape[-1])
    order = xp.broadcast_to(rows, pivots.shape)
    for k in range(pivots.shape[-1]):
        best = pivots[..., k : k + 1] - 1
        order = xp.take_along_axis(order, xp.where(rows == k, best, xp.where(rows == best, k, rows)), -1)
    return order


def _rows(a, order):
    return take_along_axis(a, indices=expand_dims(order, axis=-1), axis=-2)


@composite(several=LUResult)
def lu(a):
    """A permutation and two triangles, `P @ L @ U = a`, by partial pivoting, as PyTorch's `linalg.lu`: (…, m, n)."""
    order, _ = _pivots(a)
    lower, upper = _lu(_rows(a, order))
    return LUResult(astype(_permutation(order), dtype=lower.dtype), lower, upper)


@composite(several=LUFactorResult)
def lu_factor(a):
    """The LU decomposition of square matrices in the form that `lu_solve` takes, as PyTorch's `linalg.lu_factor`."""
    if isinstance(problem := square_needed(a), tuple):
        raise ShapeError("lu_factor: a square matrix is needed", problem[0], f"shape {a.shape}", problem[1])
    order, pivots = _pivots(a)
    lower, upper = _lu(_rows(a, order))
    return LUFactorResult(tril(lower, k=-1) + upper, pivots)


@composite
def lu_solve(factors, pivots, b):
    """The `x` with `a @ x = b`, from what `lu_factor` gives for `a`, as PyTorch's `linalg.lu_solve`."""
    order = _order_of(pivots)
    rows = b[order] if b.ndim == 1 and order.ndim == 1 else _rows(b, order)
    inner = solve_triangular(factors, rows, lower=True, unit_diagonal=True)
    return solve_triangular(factors, inner)
