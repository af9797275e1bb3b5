"""Functions of matrices: powers, the exponential, the pseudo-inverse and what follows from singular values."""

from __future__ import annotations

import math

import numpy as np

from ...engine.op import op
from ...errors import ArgumentError, ShapeError, is_whole
from ..composite import composite
from ..creation import astype
from ..layout.joining import concatenate
from ..layout.shape import broadcast_to
from ..reductions.reduction import _eye, norm
from ..reductions.reduction import max as max_
from ..reductions.reduction import sum as sum_
from .decompositions import svdvals
from .products import matmul
from .systems import inv, square_needed


def _check_square(name, a):
    if isinstance(problem := square_needed(a), tuple):
        raise ShapeError(f"{name}: a square matrix is needed", problem[0], f"shape {tuple(a.shape)}", problem[1])


@composite
def matrix_power(a, *, n):
    """Square matrices multiplied `n` times with themselves, as `numpy.linalg.matrix_power`; a negative `n` takes the inverse."""
    _check_square("matrix_power", a)
    if not is_whole(n):
        raise ArgumentError("matrix_power: the power must be a whole number", "an int", repr(n))
    if n == 0:
        return broadcast_to(astype(_eye(a, n=a.shape[-1]), dtype=a.dtype), shape=a.shape) + a * 0
    square, result = inv(a) if n < 0 else a, None
    n = abs(n)
    while n:  # the bits of n, from the lowest
        if n & 1:
            result = square if result is None else matmul(result, square)
        n >>= 1
        square = matmul(square, square) if n else square
    return result[...]


# Padé's approximant of order 13, and the norm up to which it is exact to float64 (Higham 2005).
_PADE = (
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
    670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
)  # fmt: skip
_LARGEST = 5.371920351148152


@op
def matrix_exp(xp, a):
    """The exponential of square matrices, `1 + a + a²/2! + …`, as PyTorch's and SciPy's `expm`."""
    if a.shape[-1] != a.shape[-2]:
        raise ValueError
    a = a if a.dtype.kind == "f" else a.astype(np.float64)
    size = float(abs(a).sum(axis=-2).max()) if a.size else 0.0
    halvings = max(0, math.ceil(math.log2(size / _LARGEST))) if size > _LARGEST and math.isfinite(size) else 0
    a = a / 2**halvings
    one, a2 = xp.eye(a.shape[-1], dtype=a.dtype), a @ a
    a4 = a2 @ a2
    a6 = a4 @ a2
    b = [c / _PADE[0] for c in _PADE]
    odd = a @ (a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * one)
    even = a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * one
    result = xp.linalg.solve(even - odd, even + odd)
    for _ in range(halvings):
        result = result @ result
    return result


def _matrix_exp_rule(g, a):
    """The exponential of [[aᵀ, g], [0, aᵀ]] has the gradient in its upper right corner (Najfeld and Havel 1995)."""
    (n, _), at = a.shape[-2:], a.swapaxes(-1, -2)
    upper, lower = concatenate([at, g], axis=-1), concatenate([at * 0, at], axis=-1)
    return matrix_exp(concatenate([upper, lower], axis=-2))[..., :n, n:]


matrix_exp.vjp(a=_matrix_exp_rule)
matrix_exp.explain = lambda a: square_needed(
    a, ("finite numbers", "look for NaN or infinity with mg.isfinite(x).all()")
)


@op
def _pinv(xp, a, *, rcond):
    """The pseudo-inverse, without the singular values up to `rcond` times the largest."""
    return xp.linalg.pinv(a, rcond)


def _pinv_rule(g, a, out):
    """Golub and Pereyra's derivative (1973), which holds as long as the rank stays."""
    at, gt, pt = out.swapaxes(-1, -2), g.swapaxes(-1, -2), out
    left, right = gt - a @ (pt @ gt), gt - (gt @ pt) @ a  # (1 - a p) gᵀ and gᵀ (1 - p a)
    return -(at @ g @ at) + left @ pt @ at + at @ pt @ right


_pinv.vjp(a=_pinv_rule)


def _tolerance(name, a, rtol):
    """The size, relative to the largest, up to which a singular value counts as 0."""
    if a.ndim < 2:
        raise ShapeError(f"{name}: a matrix is needed", "at least 2 axes", f"shape {tuple(a.shape)}")
    dtype = a.dtype if a.dtype.kind in "fc" else np.dtype(np.float64)
    return max(a.shape[-2:]) * float(np.finfo(dtype).eps) if rtol is None else rtol


@composite
def pinv(a, *, rcond=None, rtol=None):
    """The pseudo-inverse of matrices, as `numpy.linalg.pinv`: (…, m, n) -> (…, n, m).

    Singular values up to `rtol`, or `rcond`, times the largest count as 0: max(m, n) · eps unless given, as PyTorch's. The derivative
    holds where the rank does not change.
    """
    return _pinv(a, rcond=_tolerance("pinv", a, rtol if rcond is None else rcond))


@composite(several=True)
def lstsq(a, b, *, rcond=None):
    """The `x` of least `|a @ x - b|`, the shortest if there are several, as `numpy.linalg.lstsq`.

    Gives x, the sums of squared residuals (empty unless `a` has more rows than columns and full rank), the rank, and the singular values.
    """
    x = matmul(_pinv(a, rcond=_tolerance("lstsq", a, rcond)), b)
    rank, (rows, columns) = matrix_rank(a, rtol=rcond), a.shape[-2:]
    left = matmul(a, x) - b
    squares = sum_(left * left, axis=0, keepdims=True) if b.ndim == 1 else sum_(left * left, axis=-2)
    full = rows > columns and bool((rank == columns).all())
    return x, squares if full else squares.reshape(-1)[:0], rank, svdvals(a)


lstsq.expects = "a matrix, and a vector or matrix with as many rows"


@composite
def matrix_rank(a, *, tol=None, rtol=None):
    """How many singular values are not 0, as `numpy.linalg.matrix_rank`: above `tol`, or `rtol` times the largest."""
    if a.ndim < 2:
        return astype((a != 0).any(), dtype="int64")
    values = svdvals(a)
    largest = max_(values, axis=-1, keepdims=True) if values.size else values
    return sum_(values > (largest * _tolerance("matrix_rank", a, rtol) if tol is None else tol), axis=-1)


@composite
def cond(a, *, p=None):
    """The condition number, `norm(a) · norm(inv(a))`, as `numpy.linalg.cond`; `p` is the `ord` of `norm`, 2 unless given."""
    if p in (None, 2, -2):
        values = svdvals(a)
        return values[..., -1] / values[..., 0] if p == -2 else values[..., 0] / values[..., -1]
    _check_square("cond", a)
    return norm(a, ord=p, axis=(-2, -1)) * norm(inv(a), ord=p, axis=(-2, -1))
