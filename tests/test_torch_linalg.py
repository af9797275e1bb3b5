"""Products, solvers and decompositions against PyTorch, in float64 and float32, to the second derivative."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.torch_oracle import (
    Case,
    arrays,
    axis_of,
    broadcastable,
    compare,
    compare_case,
    examples,
    numbers,
    seeds,
    shapes,
    torch,
)

import minigrad as mg

pytestmark = pytest.mark.torch
sizes = st.integers(0, 4)
full_sizes = st.integers(1, 4)
batches = shapes(max_axes=2, min_size=1, max_size=3)


@st.composite
def products(draw: Any) -> Any:
    """Vectors, matrices and stacks whose batch axes broadcast."""
    n, k, m = draw(sizes), draw(sizes), draw(sizes)
    left, right = draw(broadcastable(2))
    left, right = left[-2:], right[-2:]
    a = (k,) if draw(st.integers(0, 3)) == 0 else (*left, n, k)
    b = (k,) if draw(st.integers(0, 3)) == 0 else (*right, k, m)
    return [numbers(draw(seeds), a), numbers(draw(seeds), b)], {}


@st.composite
def dots(draw: Any) -> Any:
    k = draw(sizes)
    pairs = [
        ((), (2, 3)),
        ((k,), (k,)),
        ((2, k), (k,)),
        ((k,), (k, 3)),
        ((2, k), (k, 3)),
        ((2, 3, k), (k,)),
        ((2, k), (3, k, 2)),
    ]
    a, b = draw(st.sampled_from(pairs))
    return [numbers(draw(seeds), a), numbers(draw(seeds), b)], {}


def torch_dot(a: Any, b: Any) -> Any:
    """NumPy's dot, which for many axes is not a matrix product."""
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    return torch.tensordot(a, b, dims=([a.ndim - 1], [max(b.ndim - 2, 0)]))


@st.composite
def vecdots(draw: Any) -> Any:
    left, right = draw(broadcastable(2))
    k = draw(sizes)
    axes = [-1, len(left)] if len(left) == len(right) else [-1]
    return [numbers(draw(seeds), (*left, k)), numbers(draw(seeds), (*right, k))], {"axis": draw(st.sampled_from(axes))}


@st.composite
def outers(draw: Any) -> Any:
    return [draw(arrays(shapes(min_axes=1, max_axes=1))) for _ in range(2)], {}


@st.composite
def tensordots(draw: Any) -> Any:
    """Some axes of one with some of the other, in any order, or the last with the first."""
    shared = draw(st.lists(full_sizes, min_size=0, max_size=2))
    a_rest, b_rest = draw(shapes(max_axes=2)), draw(shapes(max_axes=2))
    count = len(shared)
    if draw(st.booleans()):
        return [numbers(draw(seeds), (*a_rest, *shared)), numbers(draw(seeds), (*shared, *b_rest))], {"axes": count}
    a = numbers(draw(seeds), (*shared, *a_rest))
    order = draw(st.permutations(range(count)))
    b = numbers(draw(seeds), (*b_rest, *(shared[i] for i in order)))
    return [a, b], {"axes": (list(order), [len(b_rest) + i - b.ndim for i in range(count)])}


def torch_tensordot(a: Any, b: Any, axes: Any) -> Any:
    return torch.tensordot(
        a, b, dims=axes if isinstance(axes, int) else ([i % a.ndim for i in axes[0]], [i % b.ndim for i in axes[1]])
    )


EINSUMS = [
    "ij,jk->ik",
    "ij,jk",
    "bij,bjk->bik",
    "i,i->",
    "i,j->ij",
    "ij->ji",
    "ij->",
    "ij->i",
    "ii->i",
    "ii",
    "iij->j",
    "iii->i",
    "bii->b",
    "ij,ij->",
    "ij,ij->ij",
    "bi,bi->b",
    "i,ij,j->",
    "ij,jk,kl->il",
    "bhqd,bhkd->bhqk",
    "...ij,...jk->...ik",
    "...i->...",
    "i...,i...->...",
    "...ii->...i",
    "ij,j",
    "i,->i",
    "ab,cd->acbd",
    "ii,i->i",
    "ij,kj->",
    "a...b,b->a...",
]


@st.composite
def einsums(draw: Any) -> Any:
    spec = draw(st.sampled_from(EINSUMS))
    lengths = {c: draw(full_sizes) for c in sorted(set(spec) - set(".,->"))}
    terms = spec.split("->")[0].split(",")
    operands = []
    for term, dots_shape in zip(terms, draw(broadcastable(len(terms)))):
        shape: list[int] = []
        for c in term.replace("...", "."):
            shape += dots_shape[-2:] if c == "." else [lengths[c]]
        operands.append(numbers(draw(seeds), tuple(shape)))
    return operands, {"spec": spec}


def well_conditioned(seed: int, batch: tuple[int, ...], n: int, symmetric: bool = False) -> np.ndarray:
    """Matrices far from singular, and with eigenvalues far from each other, so that decompositions are stable."""
    a = np.random.default_rng(seed).uniform(-0.5, 0.5, (*batch, n, n))
    if symmetric:
        return a @ a.swapaxes(-1, -2) + np.eye(n)
    return a + np.diag(np.arange(1.0, n + 1) * 2)


@st.composite
def squares(draw: Any, symmetric: bool = False) -> Any:
    return [well_conditioned(draw(seeds), draw(batches), draw(full_sizes), symmetric)], {}


@st.composite
def systems(draw: Any) -> Any:
    """One matrix or a stack, with a right side that is a matrix, or a vector where the matrix is one, or a stack that broadcasts."""
    n = draw(full_sizes)
    left, right = (shape[-2:] for shape in draw(broadcastable(2)))
    a = well_conditioned(draw(seeds), tuple(left), n)
    b = (n,) if draw(st.booleans()) else (*right, n, draw(full_sizes))
    return [a, numbers(draw(seeds), b)], {}


def torch_solve(a: Any, b: Any) -> Any:
    """As NumPy's, where only a `b` with one axis is a vector; PyTorch takes some stacks of matrices for stacks of vectors."""
    columns = b.unsqueeze(-1) if b.ndim == 1 else b
    batch = torch.broadcast_shapes(a.shape[:-2], columns.shape[:-2])
    x = torch.linalg.solve(a, columns.expand(*batch, *columns.shape[-2:]))
    return x.squeeze(-1) if b.ndim == 1 else x


@st.composite
def traces(draw: Any) -> Any:
    a = draw(arrays(shapes(min_axes=2)))
    axis1 = draw(axis_of(a.ndim))
    axis2 = draw(st.sampled_from([i for i in range(a.ndim) if i != axis1 % a.ndim]))
    bounds = (-a.shape[axis1], a.shape[axis2])
    return [a], {"offset": draw(st.integers(*bounds)), "axis1": axis1, "axis2": axis2}


@st.composite
def talls_and_wides(draw: Any) -> Any:
    n, m = draw(full_sizes), draw(full_sizes)
    square = well_conditioned(draw(seeds), draw(batches), max(n, m))
    return [square[..., :n, :m]], {}


def gauge_free_qr(a: Any, qr: Any, sign: Any) -> Any:
    """q and r with the signs that make the diagonal of r positive, so that two libraries agree."""
    q, r = qr(a)
    k = min(a.shape[-2:])
    signs = sign(r[..., range(k), range(k)])
    return q * signs[..., None, :], r * signs[..., :, None]


def gauge_free_svd(a: Any, svd: Any) -> Any:
    """The singular values, and what does not depend on the signs of the singular vectors."""
    u, s, vh = svd(a)
    return s, u * u, vh * vh, (u * s[..., None, :]) @ vh


def torch_svd(a: Any) -> Any:
    return torch.linalg.svd(a, full_matrices=False)


CASES = {
    "matmul": Case(torch.matmul, products()),
    "dot": Case(torch_dot, dots()),
    "vecdot": Case(lambda a, b, axis: torch.linalg.vecdot(a, b, dim=axis), vecdots()),
    "outer": Case(torch.outer, outers()),
    "tensordot": Case(torch_tensordot, tensordots()),
    "einsum": Case(lambda *a, spec: torch.einsum(spec, *a), einsums(), ours=lambda *a, spec: mg.einsum(spec, *a)),
    "trace": Case(lambda a, offset, axis1, axis2: torch.diagonal(a, offset, axis1, axis2).sum(-1), traces()),
    "inv": Case(torch.linalg.inv, squares()),
    "solve": Case(torch_solve, systems()),
    "det": Case(torch.linalg.det, squares(), single=False),
    "slogdet": Case(torch.linalg.slogdet, squares()),
    "cholesky": Case(torch.linalg.cholesky, squares(symmetric=True)),
    "qr": Case(
        lambda a: gauge_free_qr(a, torch.linalg.qr, torch.sign),
        talls_and_wides(),
        ours=lambda a: gauge_free_qr(a, mg.qr, mg.sign),
        orders=1,
    ),
    "svd": Case(
        lambda a: gauge_free_svd(a, torch_svd),
        talls_and_wides(),
        ours=lambda a: gauge_free_svd(a, mg.svd),
        single=False,
    ),
}


@pytest.mark.parametrize("label", CASES)
@examples
@given(data=st.data())
def test_values_and_derivatives_equal_pytorchs(label: str, data: st.DataObject) -> None:
    compare_case(label.partition(":")[0], CASES[label], data)


@pytest.mark.parametrize("spec", EINSUMS)
def test_einsum_agrees_with_pytorchs_for_every_kind_of_subscripts(spec: str) -> None:
    lengths = dict(zip("abcdefghijklmnopqrstuvwxyz", [2, 3, 4] * 9))
    shapes_ = [
        [n for c in term.replace("...", ".") for n in ([2, 3] if c == "." else [lengths[c]])]
        for term in spec.split("->")[0].split(",")
    ]
    operands = [numbers(i, tuple(shape)) for i, shape in enumerate(shapes_)]
    compare(lambda *a: mg.einsum(spec, *a), lambda *a: torch.einsum(spec, *a), operands, {}, 2)


SINGULAR = {
    "rank 0": np.zeros((3, 3)),
    "rank 1": np.outer([1.0, 2.0, 3.0], [1.0, -1.0, 0.5]),
    "rank 2": np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]),
    "one zero row": np.array([[1.0, 2.0], [0.0, 0.0]]),
    "1 by 1": np.zeros((1, 1)),
    "one of a stack": np.stack([np.eye(2), np.ones((2, 2))]),
}


@pytest.mark.parametrize("a", SINGULAR.values(), ids=SINGULAR.keys())
def test_the_determinant_of_a_singular_matrix_has_the_gradient_of_its_cofactors(a: np.ndarray) -> None:
    """PyTorch's is inexact here, so the oracle is the definition: each cofactor is the determinant with one row and column replaced."""
    x = mg.tensor(a, requires_grad=True)
    mg.det(x).sum().backward()
    expected = np.empty_like(a)
    n = a.shape[-1]
    for i in range(n):
        for j in range(n):
            replaced = a.copy()
            replaced[..., i, :] = 0
            replaced[..., i, j] = 1
            expected[..., i, j] = np.linalg.det(replaced)
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-9, atol=1e-12)


def test_the_norm_of_a_matrix_by_its_singular_values_differentiates_through_ties() -> None:
    """All singular values of the identity are equal: the gradient of their sum is still the identity."""
    x = mg.tensor(np.eye(3), requires_grad=True)
    mg.norm(x, ord="nuc").backward()
    np.testing.assert_allclose(x.grad.numpy(), np.eye(3), atol=1e-12)
