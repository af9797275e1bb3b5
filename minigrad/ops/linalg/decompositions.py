"""The classic decompositions of matrices: Cholesky's, QR, singular values, and eigenvalues of symmetric ones."""

from __future__ import annotations

import math
from typing import Any

from ...engine.modes import local
from ...engine.op import op
from ...errors import ArgumentError, GradientError, ShapeError, describe
from ..composite import composite
from ..elementwise.arithmetic import where
from ..elementwise.complex_parts import conj
from ..layout.joining import concatenate
from ..layout.shape import tril
from ..reductions.reduction import _eye
from ..results import EighResult, QRResult, SVDResult
from .systems import inv, square_needed


@op
def cholesky(xp, a):
    """The lower triangular `L` with `L @ L.T = a`, as `numpy.linalg.cholesky`; the gradient is symmetric."""
    return xp.linalg.cholesky(a)


_DEFINITE = ("a symmetric positive definite matrix", "add a little to its diagonal")
cholesky.explain = lambda a: square_needed(a, _DEFINITE)


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


@op(several=True)
def _qr_complete(xp, a):
    """The complete QR decomposition, which has no derivative where the matrix is taller than wide."""
    return tuple(xp.linalg.qr(a, mode="complete"))


@composite(several=QRResult)
def qr(a, *, mode="reduced"):
    """An orthogonal and an upper triangular factor, `Q @ R = a`, as `numpy.linalg.qr`.

    `mode` is "reduced", "complete" (without a derivative where the matrix is taller than wide) or "r", for R alone.
    """
    if a.ndim < 2:
        raise ShapeError(
            "qr: a matrix is needed", "at least 2 axes", f"shape {a.shape}", "give it two axes, as in x.reshape(1, n)"
        )
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(f"qr: unknown mode {mode!r}", "'reduced', 'complete' or 'r'")
    rows, columns = a.shape[-2:]
    if mode == "complete" and rows > columns:
        _refuse_graph("qr", a, "mode='reduced'")
        return QRResult(*_qr_complete(a))
    q, r = _qr(a[..., :rows] if rows < columns else a)
    if rows < columns:
        adjoint = (conj(q) if q.dtype.kind == "c" else q).swapaxes(-1, -2)
        r = concatenate([r, adjoint @ a[..., rows:]], axis=-1)
    return r if mode == "r" else QRResult(q, r)


def _refuse_graph(name: str, a: Any, fix: str) -> None:
    """Refuse to cut the graph where a form of a decomposition is not unique, and so has no derivative."""
    if local.mode.record and getattr(a, "node", None) is not None:
        raise GradientError(
            f"{name}: the columns beyond the reduced form are arbitrary, and have no derivative",
            got=describe(a),
            fix=f"use {fix}, or x.detach()",
        )


@op(several=True)
def _svd(xp, a):
    """Singular values and vectors, reduced."""
    return tuple(xp.linalg.svd(a, full_matrices=False))


@op(several=True)
def _svd_full(xp, a):
    """Singular values and vectors, with those that belong to no singular value."""
    return tuple(xp.linalg.svd(a, full_matrices=True))


def _svd_rule(g, out):
    (gu, gs, gvh), (u, s, vh) = g, out
    v, gv, ut = vh.swapaxes(-1, -2), gvh.swapaxes(-1, -2), u.swapaxes(-1, -2)
    gap = s[..., None, :] ** 2 - s[..., :, None] ** 2  # (…, k, k)
    utgu, vtgv = ut @ gu, vh @ gv
    turned_u = _over(utgu - utgu.swapaxes(-1, -2), gap)  # (…, k, k)
    turned_v = _over(vtgv - vtgv.swapaxes(-1, -2), gap)
    k = s.shape[-1]
    inner = turned_u * s[..., None, :] + s[..., :, None] * turned_v + gs[..., None, :] * _eye(s, n=k)
    result = u @ inner @ vh
    if u.shape[-2] > k:
        result = result + _over(gu - u @ utgu, s[..., None, :]) @ vh
    if v.shape[-2] > k:
        result = result + u @ _over(gv - v @ vtgv, s[..., None, :]).swapaxes(-1, -2)
    return result


def _over(x, gap):
    """`x / gap`; without a gap 0 where nothing flows back, and NaN, as PyTorch's, where no derivative exists."""
    closed = gap == 0
    return where(closed, where(x == 0, 0, math.nan), x / where(closed, 1, gap))


def _explain_svd(a):
    if a.ndim < 2:
        return "a matrix, or a stack of them", "give it two axes, as in x.reshape(1, n)"
    return "finite numbers, float32 or float64", "look for NaN or infinity with mg.isfinite(x).all()"


_svd.explain = _svd_full.explain = _explain_svd
_svd.vjp(a=_svd_rule)


@composite(several=SVDResult)
def svd(a, *, full_matrices=False):
    """Singular values and vectors, `(U * S) @ Vh = a`, as `numpy.linalg.svd`, but reduced unless asked otherwise.

    With `full_matrices`, a matrix that is not square has no derivative. The vectors of equal singular values have none either:
    where they are used, it is NaN, as PyTorch's.
    """
    if full_matrices and a.shape[-1] != a.shape[-2]:
        _refuse_graph("svd", a, "full_matrices=False")
        return SVDResult(*_svd_full(a))
    return SVDResult(*_svd(a))


@composite
def svdvals(a):
    """The singular values, from the largest to the smallest, as `numpy.linalg.svdvals`."""
    return _svd(a)[1]


@op(several=True)
def _eigh(xp, a, *, triangle):
    """Eigenvalues and eigenvectors of symmetric matrices."""
    return tuple(xp.linalg.eigh(a, triangle))


def _eigh_rule(g, out):
    (gw, gv), (w, v) = g, out
    vt = v.swapaxes(-1, -2)
    turned = vt @ gv
    turned = _over((turned - turned.swapaxes(-1, -2)) / 2, w[..., None, :] - w[..., :, None])  # (…, n, n), symmetric
    return v @ (turned + gw[..., None, :] * _eye(w, n=w.shape[-1])) @ vt


_eigh.explain = lambda a, triangle: square_needed(a, ("finite numbers", "look for NaN with mg.isfinite(x).all()"))
_eigh.vjp(a=_eigh_rule)


@composite(several=EighResult)
def eigh(a, *, UPLO="L"):
    """Eigenvalues, rising, and eigenvectors of symmetric matrices, as `numpy.linalg.eigh`; the gradient is symmetric.

    Only the triangle `UPLO` is read. The vectors of equal eigenvalues have no derivative: where they are used, it is NaN, as PyTorch's.
    """
    if UPLO not in ("L", "U"):
        raise ArgumentError("eigh: UPLO names a triangle", "'L' or 'U'", repr(UPLO))
    return EighResult(*_eigh(a, triangle=UPLO))


@composite
def eigvalsh(a, *, UPLO="L"):
    """The eigenvalues of symmetric matrices, rising, as `numpy.linalg.eigvalsh`."""
    return eigh(a, UPLO=UPLO)[0]
