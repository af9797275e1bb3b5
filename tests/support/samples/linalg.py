"""Samples of products and decompositions."""

from __future__ import annotations

import numpy as np

from . import ALL_FLOATS, AS_GIVEN, add, normal, spread

PRODUCTS = {
    "vectors": ((3,), (3,)),
    "matrix and vector": ((2, 3), (3,)),
    "vector and matrix": ((3,), (3, 2)),
    "matrices": ((2, 3), (3, 4)),
    "row and column": ((1, 3), (3, 1)),
    "stack and matrix": ((2, 2, 3), (3, 2)),
    "matrix and stack": ((2, 3), (2, 3, 2)),
    "stacks": ((2, 2, 3), (2, 3, 2)),
    "stretched stacks": ((2, 1, 2, 3), (3, 3, 2)),
    "stack and vector": ((2, 2, 3), (3,)),
    "vector and stack": ((3,), (2, 3, 2)),
    "deep stack and matrix": ((2, 1, 2, 3), (3, 2)),
}
for label, (left, right) in PRODUCTS.items():
    add("matmul", np.matmul, spread(*left), spread(*right, seed=1), label=label, dtypes=ALL_FLOATS)
    if label not in ("stretched stacks", "deep stack and matrix"):
        add("dot", np.dot, spread(*left), spread(*right, seed=1), label=label)
for left, right in (((2, 0), (0, 3)), ((0, 2), (2, 3)), ((2, 3, 0), (0, 4)), ((0, 2, 3), (3, 4))):
    add("matmul", np.matmul, spread(*left), spread(*right), label=f"empty {left} {right}")
add("matmul", np.matmul, np.array([[1, 2], [3, 4]]), np.array([1, 1]), dtypes=AS_GIVEN, label="integers")
add("dot", np.dot, spread(), spread(2, 2, seed=1), label="number")
add("dot", np.dot, spread(2, 2, 3), spread(2, 3, 2, seed=1), label="four axes")
add("vecdot", np.vecdot, spread(2, 3), spread(2, 3, seed=1))
add("vecdot", np.vecdot, spread(2, 1, 3), spread(4, 3, seed=1), label="stretched")
add("vecdot", np.vecdot, spread(3, 2), spread(3, 2, seed=1), kwargs={"axis": 0}, label="axis 0")
add("outer", np.outer, spread(3), spread(2, seed=1))
add("outer", np.outer, spread(2, 2), spread(3, seed=1), label="raveled")
for axes, left, right in (
    (1, (2, 3), (3, 2)),
    (0, (2,), (3, 2)),
    (2, (2, 3, 2), (3, 2, 2)),
    (((0, 2), (1, 0)), (2, 3, 3), (3, 2)),
    (([-1], [0]), (2, 3), (3, 2)),
    (((1,), (1,)), (2, 3), (2, 3)),
):
    add("tensordot", np.tensordot, spread(*left), spread(*right, seed=1), kwargs={"axes": axes}, label=str(axes))

EINSUMS = {
    "ij,jk->ik": ((2, 3), (3, 2)),
    "bij,bjk": ((2, 2, 3), (2, 3, 2)),
    "ij->ji": ((2, 3),),
    "ii->i": ((3, 3),),
    "ii": ((3, 3),),
    "ij->": ((2, 3),),
    "i,j->ij": ((2,), (3,)),
    "bhqd,bhkd->bhqk": ((2, 1, 2, 3), (2, 1, 2, 3)),
    "ij,ij,ij->": ((2, 3), (2, 3), (2, 3)),
    "...ij,...jk->...ik": ((2, 2, 3), (2, 3, 2)),
    "...i,i->...": ((2, 2, 3), (3,)),
    "iij->j": ((2, 2, 3),),
    "iii->i": ((2, 2, 2),),
    "ij,kj->": ((2, 3), (4, 3)),
    "ab,bc,cd->ad": ((2, 3), (3, 2), (2, 2)),
    "i,->i": ((3,), ()),
    "...->...": ((2, 3),),
    "ijk,k->ji": ((2, 3, 2), (2,)),
    "ij,k->k": ((2, 3), (2,)),
}
for spec, shapes in EINSUMS.items():
    add("einsum", np.einsum, spec, *[spread(*s, seed=i) for i, s in enumerate(shapes)], label=spec)
add("einsum", np.einsum, "...ij,jk->...ik", spread(2, 2, 3), spread(3, 2, seed=1), label="ellipsis on one side")
add("einsum", np.einsum, "...i,...i->...", spread(2, 1, 3), spread(4, 3, seed=1), label="ellipsis stretched")
for spec, shapes in (("ij,jk->ik", ((2, 3), (3, 2))), ("ij,ij,j->i", ((2, 3), (2, 3), (3,)))):
    add(
        "_einsum",
        lambda operands, subscripts: np.einsum(subscripts, *operands),
        [spread(*s, seed=i) for i, s in enumerate(shapes)],
        kwargs={"subscripts": spec},
        label=spec,
    )

square, stack = normal(3, 3) + 2 * np.eye(3), normal(2, 3, 3, seed=1) + 2 * np.eye(3)
positive = square @ square.T / 3 + np.eye(3)


def symmetric(*given):
    return [(x + x.swapaxes(-1, -2)) / 2 for x in given]


for name in ("inv", "det", "slogdet"):
    reference = getattr(np.linalg, name)
    add(name, reference, square, label="one")
    add(name, reference, stack, label="stack")
    add(name, reference, -square[:1, :1], label="1 by 1")
add("slogdet", np.linalg.slogdet, square[[1, 0, 2]], label="negative")
add("det", np.linalg.det, np.array([[1.0, 2.0], [2.0, 4.0]]), label="singular")
add("det", np.linalg.det, normal(4, 3) @ normal(3, 4, seed=1), label="singular but for rounding", dtypes=("float64",))
add(
    "_ill_conditioned",
    lambda a, inverse: np.array([False, True, True]),
    np.stack([np.eye(2)] * 3),
    np.stack([np.eye(2), 1e9 * np.eye(2), np.full((2, 2), np.inf)]),
    dtypes=("float64",),
)
add(
    "det",
    np.linalg.det,
    np.stack([np.diag([1.0, 2.0, 0.0]), square, np.zeros((3, 3))]),
    label="stack with singular ones",
)
add("det", np.linalg.det, np.array([[0.0]]), label="1 by 1 zero")
add("det", np.linalg.det, np.zeros((1, 40, 1, 1)), label="many singular ones")
SOLVES = {
    "vector": (square, (3,)),
    "matrix": (square, (3, 2)),
    "stacks": (stack, (2, 3, 2)),
    "stack and matrix": (stack, (3, 2)),
    "matrix and stack": (square, (2, 3, 2)),
    "stack and vector": (stack, (3,)),
    "stack as large as a matrix": (np.stack([square, square.T, square @ square]), (3,)),
}
for label, (a, shape) in SOLVES.items():
    add("solve", np.linalg.solve, a, spread(*shape, seed=2), label=label)
add("_checkerboard", lambda a, n: np.array([[1.0, -1, 1], [-1, 1, -1], [1, -1, 1]], a.dtype), square, kwargs={"n": 3})
add("cholesky", np.linalg.cholesky, positive, via=symmetric)
add(
    "cholesky",
    np.linalg.cholesky,
    np.stack([positive, 2 * positive + np.diag([1.0, 0.5, 0.2])]),
    via=symmetric,
    label="stack",
)
for label, shape in {"tall": (4, 2), "square": (3, 3), "stack": (2, 3, 2)}.items():
    add("_qr", lambda a: tuple(np.linalg.qr(a)), normal(*shape, seed=3), label=label)
    add("qr", lambda a: tuple(np.linalg.qr(a)), normal(*shape, seed=3), label=label)
add("qr", lambda a: tuple(np.linalg.qr(a)), normal(2, 4, seed=3), label="wide")
add("qr", np.linalg.qr, normal(2, 4, seed=3), kwargs={"mode": "complete"}, label="complete")
add("qr", np.linalg.qr, normal(3, 2, seed=3), kwargs={"mode": "r"}, label="r")
for label, shape in {
    "tall": (4, 2),
    "square": (3, 3),
    "wide": (2, 4),
    "stack": (2, 3, 2),
    "wide stack": (2, 2, 3),
}.items():
    for name in ("svd", "_svd"):
        add(name, lambda a: tuple(np.linalg.svd(a, full_matrices=False)), normal(*shape, seed=3), label=label)
add(
    "svd",
    lambda a, full_matrices: tuple(np.linalg.svd(a)),
    normal(3, 3, seed=3),
    kwargs={"full_matrices": True},
    label="full square",
)
