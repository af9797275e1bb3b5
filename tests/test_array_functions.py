"""Functions of shape, indexing, statistics and linear algebra: what they refuse, and what no table of samples shows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import GradientError, MinigradError

REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "no list": (lambda: mg.hstack(mg.ones(2)), r"hstack: the first argument must be a sequence"),
    "unequal rows": (lambda: mg.vstack([mg.ones(2), mg.ones(3)]), "concatenate: cannot be computed"),
    "a stack as a block": (lambda: mg.block_diag(mg.ones(1, 2, 2)), r"block_diag: a block is no matrix"),
    "sizes that do not fit": (lambda: mg.unflatten(mg.ones(6), 0, (4, 2)), r"unflatten: the sizes do not make up"),
    "two unknown sizes": (lambda: mg.unflatten(mg.ones(6), 0, (-1, -1)), r"unflatten: the sizes do not make up"),
    "sizes that do not divide": (lambda: mg.unflatten(mg.ones(6), 0, (4, -1)), r"unflatten: the sizes do not make up"),
    "one axis twice": (lambda: mg.rot90(mg.ones(2, 2), axes=(0, 0)), "rot90: an axis is named twice"),
    "three axes of a plane": (lambda: mg.rot90(mg.ones(2, 2, 2), axes=(0, 1, 2)), "rot90: a plane has two axes"),
    "one new axis": (lambda: mg.diag_embed(mg.ones(2), 0, 1, 1), "diag_embed: an axis is named twice"),
    "vectors of the plane": (lambda: mg.cross(mg.ones(2), mg.ones(2)), "cross: a vector product needs three"),
    "a chain of one": (lambda: mg.multi_dot([mg.ones(2, 2)]), "multi_dot: a chain of matrices"),
    "a vector inside": (lambda: mg.multi_dot([mg.ones(2, 2), mg.ones(2), mg.ones(2)]), "multi_dot: a chain"),
    "a larger index": (lambda: mg.gather(mg.ones(2, 3), 1, np.zeros((3, 1), int)), "gather: the index does not fit"),
    "an index out of range": (lambda: mg.gather(mg.ones(2, 3), 1, [[3]]), "gather: an index is out of range"),
    "a floating index": (lambda: mg.scatter(mg.ones(2), 0, [0.5], 1.0), "must be made of whole numbers"),
    "a small source": (lambda: mg.scatter(mg.ones(4), 0, [0, 1], mg.ones(1)), "scatter: src is smaller than the index"),
    "an unknown reduction": (lambda: mg.scatter_reduce(mg.ones(4), 0, [0], 1.0, "max"), "unknown reduce 'max'"),
    "PyTorch's other names": (lambda: mg.scatter(mg.ones(4), 0, [0], 1.0, "sum"), "'add' or 'multiply'"),
    "a matrix of lines": (lambda: mg.index_add(mg.ones(2, 2), 0, [[0]], 1.0), "index_add: the index is no vector"),
    "a source of another shape": (
        lambda: mg.index_copy(mg.ones(2, 2), 0, [0], mg.ones(2, 1)),
        "index_copy: the source does not fit",
    ),
    "a mask of numbers": (lambda: mg.masked_select(mg.ones(2), [1, 0]), "masked_select: the mask is not made of"),
    "a short source": (lambda: mg.masked_scatter(mg.ones(2), [True, True], mg.ones(1)), "the source is too short"),
    "qr of a vector": (lambda: mg.qr(mg.ones(2)), "qr: a matrix is needed"),
    "a mode that is none": (lambda: mg.qr(mg.ones(2, 2), mode="raw"), "qr: unknown mode 'raw'"),
    "half a triangle": (lambda: mg.eigh(mg.eye(2), UPLO="X"), "eigh: UPLO names a triangle"),
    "eigenvalues of a row": (lambda: mg.eigh(mg.ones(1, 2)), "eigh"),
    "a triangle of a row": (lambda: mg.solve_triangular(mg.ones(1, 2), mg.ones(1)), "half of a square"),
    "an unknown transpose": (lambda: mg.solve_triangular(mg.eye(2), mg.ones(2), trans="X"), "unknown trans"),
    "a wide factor": (lambda: mg.lu_factor(mg.ones(1, 2)), "lu_factor: a square matrix is needed"),
    "half a power": (lambda: mg.matrix_power(mg.eye(2), 0.5), "matrix_power: the power must be a whole number"),
    "the power of a row": (lambda: mg.matrix_power(mg.ones(1, 2), 2), "matrix_power: a square matrix is needed"),
    "the exponential of a row": (lambda: mg.matrix_exp(mg.ones(1, 2)), "matrix_exp: cannot be computed"),
    "the inverse of a vector": (lambda: mg.pinv(mg.ones(2)), "pinv: a matrix is needed"),
    "equations that do not fit": (lambda: mg.lstsq(mg.ones(3, 2), mg.ones(2)), "lstsq"),
    "powers of a matrix": (lambda: mg.vander(mg.ones(2, 2)), "vander: a vector is needed"),
    "a part above 1": (lambda: mg.quantile(mg.ones(3), 1.5), r"quantile: q is out of range"),
    "a method that is none": (lambda: mg.quantile(mg.ones(3), 0.5, method="cubic"), "quantile: unknown method 'cubic'"),
    "the quantile of nothing": (lambda: mg.percentile(mg.zeros(0), 50), "percentile: nothing to choose from"),
    "the quantile of booleans": (lambda: mg.quantile(mg.ones(3) > 0, 0.5), "quantile: these have no order"),
    "a quantile to be learned": (lambda: mg.quantile(mg.ones(3), mg.tensor(0.5, requires_grad=True)), "cut the graph"),
    "weights of another shape": (lambda: mg.average(mg.ones(2, 3), 0, mg.ones(3)), "average: the weights do not fit"),
    "a stack of observations": (lambda: mg.cov(mg.ones(2, 2, 2)), "cov: a table of observations is needed"),
    "weights for others": (lambda: mg.cov(mg.ones(2, 3), aweights=[1.0, 2.0]), "cov: one weight for each observation"),
    "points without values": (lambda: mg.interp([0.0], [0.0, 1.0], [1.0]), "interp: the points are no two vectors"),
    "a period of 0": (lambda: mg.interp([0.0], [0.0, 1.0], [1.0, 2.0], period=0), "interp: the period cannot be 0"),
    "too many points": (lambda: mg.trapezoid(mg.ones(3), mg.ones(4)), "trapezoid: the points do not fit"),
    "an area to start with": (lambda: mg.cumulative_trapezoid(mg.ones(3), initial=5), "None or 0"),
    "points of two spaces": (lambda: mg.cdist(mg.ones(2, 3), mg.ones(2, 2)), "cdist: the points do not lie in one"),
    "a stack of points": (lambda: mg.pdist(mg.ones(2, 2, 2)), "pdist: a matrix of points is needed"),
    "no pieces": (lambda: mg.array_split(mg.ones(3), 0), "array_split: the number of pieces"),
    "rows of a vector": (lambda: mg.vsplit(mg.ones(4), 2), "vsplit: too few axes"),
    "planes of a matrix": (lambda: mg.dsplit(mg.ones(4, 4), 2), "dsplit: too few axes"),
    "columns of a vector": (lambda: mg.fliplr(mg.ones(4)), "flip"),
    "shapes apart": (lambda: mg.broadcast_arrays(mg.ones(2), mg.ones(3)), "broadcast_arrays: shapes do not broadcast"),
    "half a side": (lambda: mg.tril_indices(2.5), "tril_indices: the sides of a matrix are whole numbers"),
}


@pytest.mark.parametrize("label", REFUSED)
def test_a_wrong_argument_is_refused_by_name(label: str) -> None:
    call, told = REFUSED[label]
    with pytest.raises(MinigradError, match=told):
        call()


def test_a_list_beside_a_tensor_is_taken_by_functions_made_of_ops() -> None:
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    assert mg.inner(x, [3.0, 4.0]).item() == 11
    assert mg.kron(x, [1, 10]).tolist() == [1, 10, 2, 20]


def test_numpys_own_functions_give_tensors_with_a_graph() -> None:
    x = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for made in (np.hstack([x, x]), np.kron(x, x), np.cross(x, x + 1), np.linalg.multi_dot([x[None], x[:, None]])):
        assert isinstance(made, mg.Tensor) and made.requires_grad


def test_results_of_decompositions_have_numpys_field_names() -> None:
    x = np.array([[2.0, 1.0], [1.0, 3.0]])
    for name in ("slogdet", "qr", "svd", "eigh"):
        ours, numpys = getattr(mg.linalg, name)(x), getattr(np.linalg, name)(x)
        assert ours._fields == numpys._fields
        for field in ours._fields:
            np.testing.assert_allclose(getattr(ours, field).numpy(), getattr(numpys, field), rtol=1e-12)
    assert mg.lu(x)._fields == ("P", "L", "U") and mg.lu_factor(x)._fields == ("LU", "pivots")


def test_forms_without_a_derivative_have_values_and_refuse_a_graph() -> None:
    x = np.random.default_rng(0).standard_normal((3, 2))
    u, _, _ = mg.svd(x, full_matrices=True)
    q, _ = mg.qr(x, mode="complete")
    for square in (u, q):
        np.testing.assert_allclose((square @ square.T).numpy(), np.eye(3), atol=1e-12)
    leaf = mg.tensor(x, requires_grad=True)
    for call in (lambda: mg.svd(leaf, full_matrices=True), lambda: mg.qr(leaf, mode="complete")):
        with pytest.raises(GradientError, match="beyond the reduced form are arbitrary"):
            call()
        with mg.no_grad():
            call()


def test_equal_eigenvalues_have_a_gradient_and_their_vectors_have_none() -> None:
    for decompose in (mg.eigh, mg.svd):
        x = mg.tensor(np.eye(3), requires_grad=True)
        values = decompose(x)[0 if decompose is mg.eigh else 1]
        (gradient,) = mg.autograd.grad((values**2).sum(), [x])
        np.testing.assert_allclose(gradient.numpy(), 2 * np.eye(3), atol=1e-12)
        vectors = decompose(x)[1 if decompose is mg.eigh else 0]
        weights = mg.tensor(np.arange(9.0).reshape(3, 3))
        (gradient,) = mg.autograd.grad((vectors * weights).sum(), [x])
        assert np.isnan(gradient.numpy()).any()


def test_linalg_gathers_numpys_names() -> None:
    numpys = {name for name in np.linalg.__all__ if name not in ("LinAlgError", "eig", "eigvals")}
    assert numpys <= set(mg.linalg.__all__)
    assert all(getattr(mg.linalg, name).__doc__ for name in mg.linalg.__all__)
    x = np.random.default_rng(0).standard_normal((2, 3, 3))
    for name in ("diagonal", "trace", "matrix_transpose", "matrix_norm", "vector_norm", "svdvals", "pinv", "cond"):
        np.testing.assert_allclose(getattr(mg.linalg, name)(x).numpy(), getattr(np.linalg, name)(x), rtol=1e-12)
    for options in ({"axis": (0, 2)}, {"axis": 1, "keepdims": True, "ord": 3}, {"axis": (-1, 0), "keepdims": True}):
        expected = np.linalg.vector_norm(x, **options)
        np.testing.assert_allclose(mg.linalg.vector_norm(x, **options).numpy(), expected, rtol=1e-12)
    np.testing.assert_allclose(
        mg.linalg.matrix_norm(x, keepdims=True, ord=1).numpy(), np.linalg.matrix_norm(x, keepdims=True, ord=1)
    )


def test_an_lu_factor_solves_stacks_of_systems() -> None:
    a = np.random.default_rng(0).standard_normal((4, 5, 5))
    b = np.random.default_rng(1).standard_normal((4, 5, 2))
    np.testing.assert_allclose(mg.lu_solve(*mg.lu_factor(a), b).numpy(), np.linalg.solve(a, b), rtol=1e-9)


def test_a_condition_number_without_end_is_infinite() -> None:
    with np.errstate(divide="ignore"):
        assert mg.cond(mg.zeros(2, 2) + mg.diag(mg.tensor([1.0, 0.0]))).item() == np.inf


def test_a_wide_complex_matrix_is_the_product_of_its_factors():
    a = mg.tensor(np.random.default_rng(0).standard_normal((2, 3, 2)) @ np.array([1, 1j]))  # (2, 3)
    q, r = mg.qr(a)
    np.testing.assert_allclose((q @ r).numpy(), a.numpy(), atol=1e-12)


@pytest.mark.parametrize("axis", [0, -1, (0, 2), (2, 0)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_lengths_of_vectors_beside_an_empty_axis_are_numpys(axis, keepdims):
    x = np.ones((2, 0, 3))
    expected = np.linalg.vector_norm(x, axis=axis, keepdims=keepdims)
    assert mg.linalg.vector_norm(mg.tensor(x), axis=axis, keepdims=keepdims).shape == expected.shape


def test_an_axis_beside_an_empty_one_is_unflattened_with_an_unknown_size():
    assert mg.unflatten(mg.ones(4, 0, 3), 0, (2, -1)).shape == (2, 2, 0, 3)
    assert mg.unflatten(mg.ones(4, 0, 3), 1, (2, -1)).shape == (4, 2, 0, 3)
