"""Inverses, determinants, and systems of linear equations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...engine.op import op
from ...errors import ArgumentError, DtypeError, GradientError, ShapeError, broadcast_problem, describe
from ..composite import composite
from ..elementwise.arithmetic import where
from ..indexing.getitem import getitem
from ..layout.shape import moveaxis, reshape, tril, triu
from ..reductions.reduction import _eye
from ..results import SlogdetResult

_REGULAR = ("a matrix that is not singular", "add a little to its diagonal, or build a pseudo-inverse from the svd")


def square_needed(a: Any, otherwise: tuple[str, str] = _REGULAR) -> Any:
    """Why a function of square matrices cannot be computed."""
    if a.ndim < 2:
        return "a square matrix, or a stack of them", "give it two axes, as in x.reshape(n, n)"
    if a.shape[-1] != a.shape[-2]:
        return "a square matrix, or a stack of them", "cut or pad it so that its last two sizes are equal"
    if a.dtype.itemsize < 4 and a.dtype.kind == "f":
        return DtypeError(
            f"{a.dtype} is not supported here", "float32 or float64", describe(a), "convert with x.astype('float32')"
        )
    return ArgumentError("cannot be computed for these values", otherwise[0], describe(a), otherwise[1])


@op
def inv(xp, a):
    """The inverse of square matrices, as `numpy.linalg.inv`."""
    return xp.linalg.inv(a)


inv.explain = square_needed
inv.vjp(a=lambda g, out: -(out.swapaxes(-1, -2) @ g @ out.swapaxes(-1, -2)))


@op
def solve(xp, a, b):
    """The `x` with `a @ x = b`, as `numpy.linalg.solve`: `b` is a vector, or a stack of matrices."""
    if b.ndim > 1 and a.shape[:-2] != b.shape[:-2]:  # NumPy stretches one stack to the other, CuPy does not
        stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a, b = xp.broadcast_to(a, (*stack, *a.shape[-2:])), xp.broadcast_to(b, (*stack, *b.shape[-2:]))
    return xp.linalg.solve(a, b)


def _explain_solve(a, b):
    problem = square_needed(a)
    if isinstance(problem, tuple):
        return problem
    if b.ndim == 0 or b.shape[0 if b.ndim == 1 else -2] != a.shape[-1]:
        return (
            f"a vector b with {a.shape[-1]} elements, or matrices with so many rows",
            "the rows of b belong to the rows of a",
        )
    return broadcast_problem("solve: the stacks", [a.shape[:-2], b.shape[:-2]]) or problem


solve.explain = _explain_solve


def _solve_wrt_a(g, a, out, b_ndim):
    side = _solve_wrt_b(g, a, b_ndim)
    if b_ndim == 1:
        return -(side[..., :, None] * out[..., None, :])
    return -(side @ out.swapaxes(-1, -2))


def _solve_wrt_b(g, a, b_ndim):
    if b_ndim == 1:  # also with a stack of matrices, where g is a stack of vectors
        return solve(a.swapaxes(-1, -2), g[..., None])[..., 0]
    return solve(a.swapaxes(-1, -2), g)


solve.vjp(a=_solve_wrt_a, b=_solve_wrt_b)


@op
def det(xp, a):
    """The determinant of square matrices, as `numpy.linalg.det`; its gradient also holds for singular ones."""
    return xp.linalg.det(a)


det.explain = square_needed


def _det_rule(g, a, out):
    g = g[..., None, None]
    small = a.shape[-1] <= 32  # cofactors take n⁴ numbers
    if not (out == 0).any():
        inverse = inv(a)
        if not small or not _ill_conditioned(a, inverse).any():
            return g * out[..., None, None] * inverse.swapaxes(-1, -2)
    if not small:
        raise GradientError(
            "det: the gradient of a singular matrix this large is not computed",
            "32 rows at most",
            f"shape {a.shape}",
            "use slogdet",
        )
    return g * _cofactors(a)


det.vjp(a=_det_rule)


@op
def _ill_conditioned(xp, a, inverse):
    """Whether so many digits of the inverse are lost that a further derivative through it would have none left."""
    size = (a * a).sum(axis=(-2, -1)) * (inverse * inverse).sum(axis=(-2, -1))
    return ~(size < 1 / np.finfo(a.dtype).eps)


def _cofactors(a):
    """(…, n, n) -> (…, n, n): the signed determinants of what is left without a row and a column."""
    n = a.shape[-1]
    if n == 1:
        return a * 0 + 1
    kept = np.array([[j for j in range(n) if j != i] for i in range(n)])  # (n, n - 1)
    minors = getitem(a, index=(..., kept[:, None, :, None], kept[None, :, None, :]))  # (…, n, n, n - 1, n - 1)
    return det(minors) * _checkerboard(a, n=n)


@op
def _checkerboard(xp, a, *, n):
    """+1 and -1 in turn, n × n, with the dtype of `a`."""
    signs = xp.arange(n)
    return ((-1.0) ** (signs[:, None] + signs)).astype(a.dtype)


@op(several=True)
def _slogdet(xp, a):
    """The sign and the logarithm of the size of the determinant."""
    return tuple(xp.linalg.slogdet(a))


_slogdet.explain = square_needed
_slogdet.vjp(a=lambda g, a: g[1][..., None, None] * inv(a).swapaxes(-1, -2))


@composite(several=SlogdetResult)
def slogdet(a):
    """The sign and the logarithm of the size of the determinant, as `numpy.linalg.slogdet`."""
    return SlogdetResult(*_slogdet(a))


@composite
def logdet(a):
    """The logarithm of the determinant, NaN where that is negative, as PyTorch's."""
    sign, size = _slogdet(a)
    return where(sign < 0, math.nan, size)


_TRANSPOSED = {0: False, "N": False, 1: True, "T": True, 2: True, "C": True}


@composite
def solve_triangular(a, b, *, trans=0, lower=False, unit_diagonal=False):
    """The `x` with `a @ x = b` for a triangular `a`, as SciPy's: the other triangle is not read.

    `trans=1` solves with the transpose; with `unit_diagonal` the diagonal counts as 1.
    """
    if trans not in _TRANSPOSED:
        raise ArgumentError("solve_triangular: unknown trans", "0, 1, 2, 'N', 'T' or 'C'", repr(trans))
    if isinstance(problem := square_needed(a), tuple):
        raise ShapeError("solve_triangular: a triangle is half of a square", problem[0], f"shape {a.shape}", problem[1])
    side = 1 if unit_diagonal else 0
    triangle = tril(a, k=-side) if lower else triu(a, k=side)
    if unit_diagonal:
        triangle = triangle + _eye(a, n=a.shape[-1])
    return solve(triangle.swapaxes(-1, -2) if _TRANSPOSED[trans] else triangle, b)


@composite
def cholesky_solve(b, factor, *, upper=False):
    """The `x` with `a @ x = b`, where `factor` is Cholesky's of `a`, as PyTorch's."""
    first, second = (1, 0) if upper else (0, 1)
    inner = solve_triangular(factor, b, trans=first, lower=not upper)
    return solve_triangular(factor, inner, trans=second, lower=not upper)


@composite
def tensorinv(a, *, ind=2):
    """The inverse of a tensor whose first `ind` axes count as rows and the others as columns, as `numpy.linalg.tensorinv`."""
    rows, columns = a.shape[:ind], a.shape[ind:]
    inverse = inv(reshape(a, shape=(math.prod(rows), math.prod(columns))))
    return reshape(inverse, shape=(*columns, *rows))


@composite
def tensorsolve(a, b, *, axes=None):
    """The `x` with `tensordot(a, x, x.ndim) = b`, as `numpy.linalg.tensorsolve`; `axes` of `a` are moved to its end first."""
    if axes is not None:
        moved = tuple([i % a.ndim for i in axes])
        a = moveaxis(a, source=moved, destination=tuple(range(a.ndim - len(moved), a.ndim)))
    rest = a.shape[b.ndim :]
    flat = reshape(a, shape=(math.prod(b.shape), math.prod(rest)))
    return reshape(solve(flat, reshape(b, shape=(-1,))), shape=rest)
