"""Inverses, determinants and the classic decompositions of matrices."""

from __future__ import annotations

import numpy as np

from ..engine.op import op
from ..errors import ArgumentError, DtypeError, GradientError, ShapeError, broadcast_problem, describe
from .arithmetic import where
from .composite import composite
from .indexing import getitem
from .joining import concatenate
from .reduction import _eye
from .shape import tril

_REGULAR = ("a matrix that is not singular", "add a little to its diagonal, or build a pseudo-inverse from the svd")


def _square_needed(a, otherwise=_REGULAR):
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


inv.explain = _square_needed
inv.vjp(a=lambda g, out: -(out.swapaxes(-1, -2) @ g @ out.swapaxes(-1, -2)))


@op
def solve(xp, a, b):
    """The `x` with `a @ x = b`, as `numpy.linalg.solve`: `b` is a vector, or a stack of matrices."""
    if b.ndim > 1 and a.shape[:-2] != b.shape[:-2]:  # NumPy stretches one stack to the other, CuPy does not
        stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a, b = xp.broadcast_to(a, (*stack, *a.shape[-2:])), xp.broadcast_to(b, (*stack, *b.shape[-2:]))
    return xp.linalg.solve(a, b)


def _explain_solve(a, b):
    problem = _square_needed(a)
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


det.explain = _square_needed


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
def slogdet(xp, a):
    """The sign and the logarithm of the size of the determinant, as `numpy.linalg.slogdet`."""
    return tuple(xp.linalg.slogdet(a))


slogdet.explain = _square_needed
slogdet.vjp(a=lambda g, a: g[1][..., None, None] * inv(a).swapaxes(-1, -2))


@op
def cholesky(xp, a):
    """The lower triangular `L` with `L @ L.T = a`, as `numpy.linalg.cholesky`; the gradient is symmetric."""
    return xp.linalg.cholesky(a)


_DEFINITE = ("a symmetric positive definite matrix", "add a little to its diagonal")
cholesky.explain = lambda a: _square_needed(a, _DEFINITE)


def _half_diagonal(a):
    """The lower triangle with half the diagonal."""
    return (tril(a) + tril(a, k=-1)) / 2


def _cholesky_rule(g, out):
    inverse = inv(out)
    inner = _half_diagonal(out.swapaxes(-1, -2) @ tril(g))
    full = inverse.swapaxes(-1, -2) @ inner @ inverse
    return (full + full.swapaxes(-1, -2)) / 2


cholesky.vjp(a=_cholesky_rule)


@op(several=True)
def _qr(xp, a):
    """The reduced QR decomposition of matrices that are not wider than tall."""
    return tuple(xp.linalg.qr(a))


def _qr_rule(g, out):
    (gq, gr), (q, r) = g, out
    m = r @ gr.swapaxes(-1, -2) - gq.swapaxes(-1, -2) @ q
    symmetric = tril(m, k=-1) + tril(m).swapaxes(-1, -2)
    return (gq + q @ symmetric) @ inv(r).swapaxes(-1, -2)


_qr.vjp(a=_qr_rule)


@composite(several=True)
def qr(a):
    """An orthogonal and an upper triangular factor, `q @ r = a`, reduced, as `numpy.linalg.qr`."""
    if a.ndim < 2:
        raise ShapeError(
            "qr: a matrix is needed", "at least 2 axes", f"shape {a.shape}", "give it two axes, as in x.reshape(1, n)"
        )
    rows, columns = a.shape[-2:]
    if rows >= columns:
        return _qr(a)
    q, r = _qr(a[..., :rows])
    return q, concatenate([r, q.swapaxes(-1, -2) @ a[..., rows:]], axis=-1)


@op(several=True)
def svd(xp, a, *, full_matrices=False):
    """Singular values and vectors, `u @ diag(s) @ vh = a`, reduced, as `numpy.linalg.svd(…, full_matrices=False)`."""
    if full_matrices and a.shape[-1] != a.shape[-2]:
        raise ArgumentError(
            "svd: only the reduced form has a derivative", "full_matrices=False, or square matrices", f"shape {a.shape}"
        )
    return tuple(xp.linalg.svd(a, full_matrices=False))


def _svd_rule(g, out):
    (gu, gs, gvh), (u, s, vh) = g, out
    v, gv, ut = vh.swapaxes(-1, -2), gvh.swapaxes(-1, -2), u.swapaxes(-1, -2)
    gap = s[..., None, :] ** 2 - s[..., :, None] ** 2  # (…, k, k)
    equal = gap == 0
    f = where(equal, 0, 1 / where(equal, 1, gap))
    utgu, vtgv = ut @ gu, vh @ gv
    turned_u = f * (utgu - utgu.swapaxes(-1, -2))  # (…, k, k)
    turned_v = f * (vtgv - vtgv.swapaxes(-1, -2))
    k = s.shape[-1]
    inner = turned_u * s[..., None, :] + s[..., :, None] * turned_v + gs[..., None, :] * _eye(s, n=k)
    result = u @ inner @ vh
    if u.shape[-2] > k:
        result = result + _over(gu - u @ utgu, s[..., None, :]) @ vh
    if v.shape[-2] > k:
        result = result + u @ _over(gv - v @ vtgv, s[..., None, :]).swapaxes(-1, -2)
    return result


def _over(x, s):
    still = x == 0  # where nothing flows back, a singular value of 0 does no harm
    return where(still, 0, x / where(still, 1, s))


def _explain_svd(a):
    if a.ndim < 2:
        return "a matrix, or a stack of them", "give it two axes, as in x.reshape(1, n)"
    return "finite numbers, float32 or float64", "look for NaN or infinity with mg.isfinite(x).all()"


svd.explain = _explain_svd
svd.vjp(a=_svd_rule)
