"""Samples of triangular solves, eigenvalues, LU, powers, exponentials and pseudo-inverses."""

from __future__ import annotations

import numpy as np

from . import AS_GIVEN, add, normal, spread
from .linalg import positive, square, stack, symmetric

# Far from equal eigenvalues, and from a change of sign.
rising = np.diag([1.0, 2.5, 4.5]) + symmetric(0.3 * normal(3, 3, seed=4))[0]
for label, given in {"one": rising, "stack": np.stack([rising, -2 * rising])}.items():
    add("eigh", np.linalg.eigh, given, via=symmetric, label=label)
    add(
        "_eigh",
        lambda a, triangle: tuple(np.linalg.eigh(a)),
        given,
        kwargs={"triangle": "L"},
        via=symmetric,
        label=label,
    )
    add("eigvalsh", np.linalg.eigvalsh, given, via=symmetric, label=label)
add("eigh", lambda a, UPLO: np.linalg.eigh(a, UPLO), rising + np.tril(square, -1), kwargs={"UPLO": "U"}, gradient=False)


def _slogdet(a):
    return tuple(np.linalg.slogdet(a))


for label, given in {"one": square, "negative": square[[1, 0, 2]], "stack": stack}.items():
    add("_slogdet", _slogdet, given, label=label)
add("logdet", lambda a: np.linalg.slogdet(a)[1], np.stack([positive, 2 * positive]))
add("logdet", lambda a: np.asarray(np.nan, a.dtype), np.diag([-1.0, 1.0]), gradient=False, label="negative")


def triangular(a, b, trans=0, lower=False, unit_diagonal=False):
    a = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        a = a - np.diag(np.diagonal(a)) + np.eye(len(a), dtype=a.dtype)
    return np.linalg.solve(a.T if trans else a, b)


for label, kwargs in {
    "upper": {},
    "lower": {"lower": True},
    "transposed": {"trans": 1},
    "unit": {"lower": True, "unit_diagonal": True, "trans": "T"},
    "unit upper": {"unit_diagonal": True},
}.items():
    add("solve_triangular", triangular, square, spread(3, 2, seed=2), kwargs=kwargs, label=label)
add("solve_triangular", triangular, square, spread(3, seed=2), label="vector")
factor = np.linalg.cholesky(positive)
add("cholesky_solve", lambda b, f: np.linalg.solve(np.tril(f) @ np.tril(f).T, b), spread(3, 2), factor)
add(
    "cholesky_solve",
    lambda b, f, upper: np.linalg.solve(np.triu(f).T @ np.triu(f), b),
    spread(3, 2),
    factor.T,
    kwargs={"upper": True},
    label="upper",
)
add("tensorinv", np.linalg.tensorinv, (normal(6, 6) + 2 * np.eye(6)).reshape(6, 2, 3), kwargs={"ind": 1})
add("tensorsolve", np.linalg.tensorsolve, (normal(6, 6) + 2 * np.eye(6)).reshape(2, 3, 6), spread(2, 3))
add(
    "tensorsolve",
    np.linalg.tensorsolve,
    (normal(4, 4) + 2 * np.eye(4)).reshape(2, 2, 4).transpose(2, 0, 1),
    spread(2, 2),
    kwargs={"axes": (0,)},
    label="axes",
)


def lu_of(a):
    """Elimination, one row after the other: P, L, U."""
    m, n = a.shape
    k = min(m, n)
    rows, u = list(range(m)), a.astype(np.float64)
    lower = np.zeros((m, m))
    for i in range(k):
        best = i + int(np.argmax(abs(u[i:, i])))
        for x in (u, lower):
            x[[i, best]] = x[[best, i]]
        rows[i], rows[best] = rows[best], rows[i]
        for j in range(i + 1, m):
            lower[j, i] = u[j, i] / u[i, i] if u[i, i] else 0.0
            u[j] -= lower[j, i] * u[i]
    lower = (lower + np.eye(m))[:, :k]
    return np.eye(m)[:, rows].astype(a.dtype), lower.astype(a.dtype), np.triu(u[:k]).astype(a.dtype)


def lu(a):
    if a.ndim == 2:
        return lu_of(a)
    return tuple(np.stack(parts) for parts in zip(*[lu_of(x) for x in a]))


uneven = normal(4, 3, seed=6)
tall = normal(2, 4, 3, seed=6)
for label, given in {
    "square": square,
    "tall": uneven,
    "wide": uneven.T,
    "stack": stack[:, ::-1],
    "tall stack": tall,
    "wide stack": tall.swapaxes(-1, -2),
}.items():
    add("lu", lu, given, label=label)
    add("_lu", lambda a: lu(a)[1:], lu(given)[1] @ lu(given)[2], label=label, tolerance=3)
add("lu", lu, np.array([[0.0, 0.0], [0.0, 1.0]]), gradient=False, label="singular")
first = np.array([[1.0, 4.0, 2.0], [3.0, 1.0, 1.0], [2.0, 5.0, 9.0]])  # takes the second row, then the third
add("_pivots", lambda a: (np.array([1, 2, 0]), np.array([2, 3, 3], np.int32)), first)
add("_order_of", lambda pivots: np.array([1, 2, 0]), np.array([2, 3, 3], np.int32), dtypes=AS_GIVEN)
add("_permutation", lambda order: np.eye(3)[:, order], np.array([1, 2, 0]), dtypes=AS_GIVEN)


def lu_factor(a):
    _, lower, upper = lu(a)
    return np.tril(lower, -1) + upper, np.array([2, 3, 3], np.int32)


add("lu_factor", lu_factor, first)


def lu_solve(factors, pivots, b):
    lower, upper = np.tril(factors, -1) + np.eye(3, dtype=factors.dtype), np.triu(factors)
    return np.linalg.solve(upper, np.linalg.solve(lower, b[[1, 2, 0]]))


add("lu_solve", lu_solve, lu_factor(first)[0], np.array([2, 3, 3], np.int32), spread(3, 2))
add("lu_solve", lu_solve, lu_factor(first)[0], np.array([2, 3, 3], np.int32), spread(3), label="vector")

for n in (0, 1, 2, 3, 5, -1, -3):
    add("matrix_power", np.linalg.matrix_power, square / 2, kwargs={"n": n}, label=str(n), tolerance=3)
add("matrix_power", np.linalg.matrix_power, stack / 2, kwargs={"n": 2}, label="stack")


def series(a):
    """The exponential by its definition, for a small part of the matrix, squared back."""
    parts, term, total = a / 1024, np.eye(a.shape[-1]), np.eye(a.shape[-1])
    for k in range(1, 20):
        term = term @ parts / k
        total = total + term
    for _ in range(10):
        total = total @ total
    return total.astype(a.dtype)


add("matrix_exp", series, square / 2, tolerance=10)
add("matrix_exp", series, stack / 2, label="stack", tolerance=10)
add("matrix_exp", series, 4 * np.eye(2) + spread(2, 2), label="halved", tolerance=100, dtypes=("float64",))
add("matrix_exp", series, np.zeros((2, 2)), label="zeros")

flat = normal(3, 2, seed=2) @ normal(2, 4, seed=3)
for label, given in {"tall": normal(4, 2, seed=5), "wide": normal(2, 4, seed=5), "stack": tall}.items():
    add("pinv", lambda a: np.linalg.pinv(a, rtol=1e-7), given, label=label, tolerance=3)
    add("_pinv", lambda a, rcond: np.linalg.pinv(a, rcond), given, kwargs={"rcond": 1e-7}, label=label, tolerance=3)
add("pinv", lambda a: np.linalg.pinv(a, rtol=1e-6), flat, label="rank 2", gradient=False, tolerance=10)
add(
    "pinv",
    lambda a, rtol: np.linalg.pinv(a, rtol=rtol),
    np.diag([5.0, 1.0]),
    kwargs={"rtol": 0.5},
    gradient=False,
    label="cut",
)


def lstsq(a, b):
    x, residuals, rank, values = np.linalg.lstsq(a, b, rcond=None)
    return x, residuals, np.asarray(rank, np.int64), values


for label, (a, b) in {
    "tall": ((4, 2), (4, 3)),
    "vector": ((4, 2), (4,)),
    "square": ((3, 3), (3, 1)),
    "wide": ((2, 4), (2, 2)),
}.items():
    add("lstsq", lstsq, normal(*a, seed=5), spread(*b), label=label, tolerance=5)
for label, given in {
    "full": square,
    "stack": np.stack([np.eye(3), np.ones((3, 3)), np.zeros((3, 3))]),
    "wide": np.array([[1.0, 2, 3, 4], [2, 4, 6, 8], [0, 1, 0, 1]]),
}.items():
    add("matrix_rank", lambda a: np.linalg.matrix_rank(a), given, label=label, gradient=False)
add("matrix_rank", np.linalg.matrix_rank, np.diag([5.0, 1.0]), kwargs={"tol": 2.0}, label="tol", gradient=False)
add(
    "matrix_rank",
    lambda a, rtol: np.linalg.matrix_rank(a, rtol=rtol),
    np.diag([5.0, 1.0]),
    kwargs={"rtol": 0.1},
    label="rtol",
    gradient=False,
)
add("matrix_rank", lambda a: np.asarray(np.linalg.matrix_rank(a)), spread(3), label="vector", gradient=False)
for p in (None, 2, -2, "fro", 1, -1, np.inf):
    add("cond", np.linalg.cond, square, kwargs={"p": p}, label=str(p))
add("cond", np.linalg.cond, stack, label="stack")
add("cond", np.linalg.cond, uneven, label="tall")
for label, shape in {"tall": (4, 2), "wide stack": (2, 2, 3)}.items():
    add("svdvals", np.linalg.svdvals, normal(*shape, seed=3), label=label)
    add("_svd_full", lambda a: tuple(np.linalg.svd(a)), normal(*shape, seed=3), label=label)
add("_qr_complete", lambda a: tuple(np.linalg.qr(a, mode="complete")), normal(4, 2, seed=3))
