"""Functions of shape, indexing, statistics and linear algebra: what they refuse, and what no table of samples shows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import MinigradError

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
