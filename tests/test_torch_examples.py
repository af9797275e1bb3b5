"""Functions of indexing, shape, statistics and linear algebra against PyTorch's, on a few fixed arrays, to the second derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.torch_oracle import compare, numbers, torch

import minigrad as mg

pytestmark = pytest.mark.torch
LA = torch.linalg


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [numbers(i, shape) for i, shape in enumerate(shapes)]


# What is computed here, what PyTorch computes, and the arrays.
ARRANGEMENT: dict[str, tuple[Callable[..., Any], Callable[..., Any], list[np.ndarray]]] = {
    "hstack": (lambda *a: mg.hstack(a), lambda *a: torch.hstack(a), arrays((2, 3), (2, 1))),
    "vstack": (lambda *a: mg.vstack(a), lambda *a: torch.vstack(a), arrays((3,), (2, 3))),
    "dstack": (lambda *a: mg.dstack(a), lambda *a: torch.dstack(a), arrays((2, 3), (2, 3))),
    "column_stack": (lambda *a: mg.column_stack(a), lambda *a: torch.column_stack(a), arrays((3,), (3, 2))),
    "atleast_1d": (mg.atleast_1d, torch.atleast_1d, arrays(())),
    "atleast_2d": (mg.atleast_2d, torch.atleast_2d, arrays((3,))),
    "atleast_3d": (mg.atleast_3d, torch.atleast_3d, arrays((3,))),
    "block_diag": (mg.block_diag, torch.block_diag, arrays((2, 3), (2,), ())),
    "unflatten": (lambda a: mg.unflatten(a, 1, (2, -1)), lambda a: torch.unflatten(a, 1, (2, -1)), arrays((2, 6))),
    "rot90": (lambda a: mg.rot90(a, 3, (0, 2)), lambda a: torch.rot90(a, 3, (0, 2)), arrays((2, 3, 2))),
    "roll of axes": (
        lambda a: mg.roll(a, (1, -2), (0, 1)),
        lambda a: torch.roll(a, (1, -2), (0, 1)),
        arrays((3, 4)),
    ),
    "diag_embed": (lambda a: mg.diag_embed(a, 1, 0, 2), lambda a: torch.diag_embed(a, 1, 0, 2), arrays((2, 3))),
    "diagonal": (lambda a: mg.diagonal(a, -1, 0, 2), lambda a: torch.diagonal(a, -1, 0, 2), arrays((3, 2, 4))),
    "diagflat": (lambda a: mg.diagflat(a, -1), lambda a: torch.diagflat(a, -1), arrays((2, 2))),
    "inner": (mg.inner, torch.inner, arrays((2, 3), (4, 3))),
    "kron": (mg.kron, torch.kron, arrays((2, 1), (2, 3))),
    "cross": (lambda a, b: mg.cross(a, b, axis=0), lambda a, b: LA.cross(a, b, dim=0), arrays((3, 2), (3, 2))),
    "multi_dot": (lambda *a: mg.multi_dot(a), lambda *a: LA.multi_dot(a), arrays((2, 5), (5, 1), (1, 4))),
}

INDEX = np.array([[3, 3, 0], [0, 3, 3]])
LINES = np.array([3, 0, 3])
MASK = np.array([True, False, True, True])


def written(name: str, *attrs: Any, source: tuple[int, ...] | None = None, **options: Any) -> Any:
    """A function of both libraries that PyTorch calls with (a, axis, index, source) or (a, axis, index)."""

    def ours(a: Any, *src: Any) -> Any:
        return getattr(mg, name)(a, *attrs, *src, **options)

    def theirs(a: Any, *src: Any) -> Any:
        given = [torch.tensor(x) if isinstance(x, np.ndarray) else x for x in attrs]
        return getattr(torch, name)(a, *given, *src, **options)

    return ours, theirs, arrays((3, 4), *([] if source is None else [source]))


INDEXING = {
    "gather": written("gather", 1, INDEX),
    "scatter": written("scatter", 1, np.array([[3, 1, 0], [0, 3, 2]]), source=(2, 3)),
    **{
        f"scatter_reduce {reduce} {own}": written(
            "scatter_reduce", 1, INDEX, source=(2, 3), reduce=reduce, include_self=own
        )
        for reduce in ("sum", "prod", "mean", "amax", "amin")
        for own in (True, False)
    },
    "index_add": written("index_add", 1, LINES, source=(3, 3), alpha=-2),
    "index_copy": written("index_copy", 1, np.array([3, 0, 1]), source=(3, 3)),
    "index_fill": written("index_fill", 1, LINES, 2.5),
    "index_put": (
        lambda a, v: mg.index_put(a, (np.array([0, 2, 0]), np.array([1, 1, 1])), v, accumulate=True),
        lambda a, v: torch.index_put(a, (torch.tensor([0, 2, 0]), torch.tensor([1, 1, 1])), v, accumulate=True),
        arrays((3, 4), (3,)),
    ),
    "masked_select": written("masked_select", MASK),
    "masked_scatter": written("masked_scatter", MASK, source=(3, 4)),
}
SQUARE = numbers(7, (3, 3)) + 5 * np.eye(3)
POSITIVE = SQUARE @ SQUARE.T


def halves(x: Any) -> Any:
    """The symmetric part, so that gradients do not depend on which triangle is read."""
    return (x + x.swapaxes(-1, -2)) / 2


MATRICES = {
    "eigvalsh": (lambda a: mg.eigvalsh(halves(a)), lambda a: LA.eigvalsh(halves(a)), [POSITIVE]),
    "eigh": (lambda a: mg.eigh(halves(a))[1] ** 2, lambda a: LA.eigh(halves(a))[1] ** 2, [POSITIVE]),
    "svdvals": (mg.svdvals, LA.svdvals, arrays((2, 4, 3))),
    "logdet": (mg.logdet, torch.logdet, [POSITIVE]),
    "lu": (lambda a: mg.lu(a)[1:], lambda a: LA.lu(a)[1:], [SQUARE[::-1].copy()]),
    "lu, tall": (lambda a: mg.lu(a)[1:], lambda a: LA.lu(a)[1:], arrays((2, 4, 3))),
    "lu, wide": (lambda a: mg.lu(a)[1:], lambda a: LA.lu(a)[1:], arrays((3, 4))),
    "lu_factor": (lambda a: mg.lu_factor(a), lambda a: LA.lu_factor(a), [SQUARE[::-1].copy()]),
    "lu_solve": (
        lambda a, b: mg.lu_solve(*mg.lu_factor(a), b),
        lambda a, b: LA.lu_solve(*LA.lu_factor(a), b),
        [SQUARE[::-1].copy(), *arrays((3, 2))],
    ),
    "solve_triangular": (
        lambda a, b: mg.solve_triangular(a, b, lower=True),
        lambda a, b: LA.solve_triangular(torch.tril(a), b, upper=False),
        [SQUARE, *arrays((3, 2))],
    ),
    "solve_triangular, unit": (
        lambda a, b: mg.solve_triangular(a, b, unit_diagonal=True),
        lambda a, b: LA.solve_triangular(torch.triu(a, 1) + torch.eye(3), b, upper=True, unitriangular=True),
        [SQUARE, *arrays((3, 2))],
    ),
    "cholesky_solve": (
        lambda b, a: mg.cholesky_solve(b, mg.tril(a)),
        lambda b, a: torch.cholesky_solve(b, torch.tril(a)),
        [*arrays((3, 2)), SQUARE],
    ),
    "matrix_power": (lambda a: mg.matrix_power(a, 3), lambda a: LA.matrix_power(a, 3), [SQUARE]),
    "matrix_power, negative": (lambda a: mg.matrix_power(a, -2), lambda a: LA.matrix_power(a, -2), [SQUARE]),
    "matrix_exp": (mg.matrix_exp, LA.matrix_exp, [SQUARE / 3]),
    "pinv": (mg.pinv, LA.pinv, arrays((2, 4, 3))),
    "lstsq": (lambda a, b: mg.lstsq(a, b)[0], lambda a, b: LA.lstsq(a, b)[0], arrays((4, 3), (4, 2))),
    "cond": (mg.cond, LA.cond, [SQUARE]),
    "cond, fro": (lambda a: mg.cond(a, "fro"), lambda a: LA.norm(a) * LA.norm(LA.inv(a)), [SQUARE]),
    "vander": (lambda a: mg.vander(a, 3, increasing=True), lambda a: LA.vander(a, N=3), arrays((4,))),
    "tensorinv": (
        lambda a: mg.tensorinv(a.reshape(3, 3, 1), 1),
        lambda a: LA.tensorinv(a.reshape(3, 3, 1), 1),
        [SQUARE],
    ),
    "tensorsolve": (
        lambda a, b: mg.tensorsolve(a.reshape(3, 1, 3), b.reshape(3, 1)),
        lambda a, b: LA.tensorsolve(a.reshape(3, 1, 3), b.reshape(3, 1)),
        [SQUARE, *arrays((3,))],
    ),
}
LEVELS = [0.1, 0.5, 0.8]
STATISTICS = {
    **{
        f"quantile {method}": (
            lambda a, method=method: mg.quantile(a, LEVELS, 1, method=method),
            lambda a, method=method: torch.quantile(a, torch.tensor(LEVELS, dtype=a.dtype), 1, interpolation=method),
            arrays((3, 5)),
        )
        for method in ("linear", "lower", "higher", "midpoint", "nearest")
    },
    "cov": (mg.cov, torch.cov, arrays((3, 5))),
    "cov, weighted": (
        lambda a: mg.cov(a, ddof=0, fweights=[1, 2, 1, 3, 1], aweights=np.arange(1.0, 6)),
        lambda a: torch.cov(
            a, correction=0, fweights=torch.tensor([1, 2, 1, 3, 1]), aweights=torch.arange(1.0, 6, dtype=a.dtype)
        ),
        arrays((3, 5)),
    ),
    "corrcoef": (mg.corrcoef, torch.corrcoef, arrays((3, 5))),
    "trapezoid": (mg.trapezoid, torch.trapezoid, arrays((3, 5))),
    "trapezoid at points": (
        lambda y, x: mg.trapezoid(y, x, axis=0),
        lambda y, x: torch.trapezoid(y, x, dim=0),
        arrays((5, 3), (5, 3)),
    ),
    "cumulative_trapezoid": (
        lambda y: mg.cumulative_trapezoid(y, dx=2.0, axis=0),
        lambda y: torch.cumulative_trapezoid(y, dx=2.0, dim=0),
        arrays((5, 3)),
    ),
    **{
        f"cdist {p}": (
            lambda a, b, p=p: mg.cdist(a, b, p),
            lambda a, b, p=p: torch.cdist(a, b, p, compute_mode="donot_use_mm_for_euclid_dist"),
            arrays((2, 3, 2), (2, 4, 2)),
        )
        for p in (1.0, 2.0, 3.0)
    },
    "pdist": (mg.pdist, torch.pdist, arrays((4, 3))),
}
FIRST_ONLY = {"cdist 1.0", "cdist 2.0", "cdist 3.0", "pdist"}  # PyTorch has no second derivative of these
CASES = {**ARRANGEMENT, **INDEXING, **MATRICES, **STATISTICS}
A, N = np.array([[-2.5, 0.0, 1.25, np.inf], [3.0, -np.inf, 0.5, 7.0]]), np.array([12, 18, 7, 0])
CUBE = np.arange(16.0).reshape(2, 4, 2)
# Functions whose values alone can be compared: (ours and theirs by name, or as pairs of functions; arguments)
VALUES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(
        ["angle", "imag", "real", "fix", "isneginf", "isposinf", "isreal", "fliplr", "flipud", "frexp"], (A,)
    ),
    **{name: (N, np.array([8, 27, 21, 4])) for name in ("gcd", "lcm")},
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), (N, 2)),
    "conj": (A[0] + 2j,),
    "imag": (A[0] + 2j,),
    "bincount": (np.array([3, 1, 1, 0]),),
    "float_power": (np.abs(A), 2.0),
    "ldexp": (A, np.array([1, -2, 3, 0])),
    "matrix_rank": (np.outer(A[1, [0, 2, 3]], [1.0, 2.0]),),
    "nextafter": (A, np.zeros(4)),
    "searchsorted": (np.array([1.0, 2.0, 4.0]), np.array([0.5, 2.0, 9.0])),
    "unique_consecutive": (np.array([1, 1, 2, 1]),),
    "histogram": (np.array([0.5, 2.5, 2.6, 4.0]), 4),
    "hsplit": (CUBE, 2),
    "vsplit": (CUBE, 2),
    "dsplit": (CUBE, 2),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_equal_pytorchs(name: str) -> None:
    given, theirs = VALUES[name], getattr(torch, name) if name != "matrix_rank" else torch.linalg.matrix_rank
    expected = theirs(*[torch.tensor(x) if isinstance(x, np.ndarray) else x for x in given])
    got = getattr(mg, name)(*[mg.tensor(x) if isinstance(x, np.ndarray) else x for x in given])
    pairs = zip(got, expected, strict=True) if isinstance(expected, tuple) else [(got, expected)]
    for a, b in pairs:
        np.testing.assert_allclose(a.numpy(), b.resolve_conj().numpy(), rtol=1e-12)


@pytest.mark.parametrize("label", CASES)
def test_values_and_derivatives_equal_pytorchs(label: str) -> None:
    ours, theirs, given = CASES[label]
    compare(ours, theirs, given, {}, 1 if label in FIRST_ONLY else 2)


def test_equal_extremes_share_the_gradient_as_pytorchs() -> None:
    a, index = np.array([1.0, 4.0, 2.0]), np.array([0, 0, 1, 1])
    for src in ([1.0, 1.0, 4.0, 3.0], [0.0, 0.0, 5.0, 5.0]):
        compare(
            lambda x, v: mg.scatter_reduce(x, 0, index, v, "amax"),
            lambda x, v: torch.scatter_reduce(x, 0, torch.tensor(index), v, "amax"),
            [a, np.array(src)],
            {},
            1,
        )


def test_indices_of_triangles_are_pytorchs() -> None:
    for n, k, m in ((3, 0, None), (3, 1, 4), (4, -2, 2), (0, 0, 3)):
        rows, columns = n, n if m is None else m
        for ours, theirs in ((mg.tril_indices, torch.tril_indices), (mg.triu_indices, torch.triu_indices)):
            np.testing.assert_array_equal(
                np.stack([x.numpy() for x in ours(n, k, m)]), theirs(rows, columns, k).numpy()
            )
