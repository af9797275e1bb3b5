"""Samples of joining by rows and columns, diagonals, turned planes, and products that arrange their factors."""

from __future__ import annotations

import numpy as np

from . import AS_GIVEN, add, spread

for name, shapes in {
    "hstack": [((2, 3), (2, 1)), ((3,), (2,)), ((), (2,)), ((2, 2, 2), (2, 1, 2))],
    "vstack": [((2, 3), (1, 3)), ((3,), (2, 3)), ((), (1,))],
    "dstack": [((2, 3), (2, 3)), ((3,), (1, 3, 2)), ((), (1,))],
    "column_stack": [((3,), (3, 2)), ((2,), (2,))],
}.items():
    for given in shapes:
        parts = [spread(*shape, seed=i) for i, shape in enumerate(given)]
        add(name, getattr(np, name), parts, label=str(given))
add("hstack", np.hstack, [np.array([1, 2]), np.array([3])], dtypes=AS_GIVEN, label="integers")


def block_diag(*arrays):
    arrays = [np.atleast_2d(a) for a in arrays]
    out = np.zeros(np.sum([a.shape for a in arrays], axis=0), np.result_type(*arrays))
    row = column = 0
    for a in arrays:
        out[row : row + a.shape[0], column : column + a.shape[1]] = a
        row, column = row + a.shape[0], column + a.shape[1]
    return out


add("block_diag", block_diag, spread(2, 3), spread(2, seed=1), spread(seed=2))
add("block_diag", block_diag, spread(1, 2), label="one")

for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
    for shape in ((), (3,), (2, 3), (2, 1, 2), (1, 2, 1, 2)):
        add(name, getattr(np, name), spread(*shape), label=str(shape))
for axis, sizes in ((0, (2, 3)), (-1, (2, -1)), (1, (4,))):
    shape = tuple(sizes)
    add(
        "unflatten",
        lambda a, axis, sizes: a.reshape((*sizes, *a.shape[1:]) if axis == 0 else (*a.shape[:-1], *sizes)),
        spread(6, 4),
        kwargs={"axis": axis, "sizes": sizes},
        label=f"{axis} {sizes}",
    )
for k, axes in ((1, (0, 1)), (2, (0, 1)), (-1, (1, 0)), (4, (0, 1)), (3, (-1, 0))):
    add("rot90", np.rot90, spread(2, 3, 2), kwargs={"k": k, "axes": axes}, label=f"{k} {axes}")


def diag_embed(a, offset=0, axis1=-2, axis2=-1):
    planes = np.apply_along_axis(lambda line: np.diag(line, offset), -1, a) if a.ndim > 1 else np.diag(a, offset)
    if a.ndim > 1:
        planes = planes.reshape(*a.shape[:-1], *planes.shape[-2:])
    return np.moveaxis(planes, (-2, -1), (axis1, axis2))


for kwargs in ({}, {"offset": 1}, {"offset": -2, "axis1": 0, "axis2": 2}, {"axis1": -1, "axis2": 0}):
    add("diag_embed", diag_embed, spread(2, 3), kwargs=kwargs, label=str(kwargs))
add("diag_embed", diag_embed, spread(3), label="vector")
add("diagflat", np.diagflat, spread(2, 2), kwargs={"k": -1})

add("inner", np.inner, spread(2, 3), spread(4, 3, seed=1), label="matrices")
add("inner", np.inner, spread(3), spread(3, seed=1), label="vectors")
add("inner", np.inner, spread(2, 2, 3), spread(3, seed=1), label="stack and vector")
add("inner", np.inner, spread(), spread(3, seed=1), label="number")
for left, right in (((2,), (3,)), ((2, 2), (2, 3)), ((2, 1), (3,)), ((2,), (2, 1, 2)), ((), (2, 2))):
    add("kron", np.kron, spread(*left), spread(*right, seed=1), label=f"{left} {right}")
add("cross", np.cross, spread(3), spread(3, seed=1))
add("cross", np.cross, spread(2, 3), spread(3, seed=1), label="stretched")
add("cross", lambda a, b, axis: np.cross(a, b, axis=axis), spread(3, 2), spread(3, 2, seed=1), kwargs={"axis": 0})
for label, given in {
    "two": ((2, 3), (3, 2)),
    "three": ((2, 5), (5, 1), (1, 4)),
    "four": ((1, 3), (3, 2), (2, 4), (4, 1)),
    "vectors": ((3,), (3, 2), (2,)),
    "last a vector": ((2, 3), (3, 2), (2,)),
}.items():
    parts = [spread(*shape, seed=i) for i, shape in enumerate(given)]
    add("multi_dot", np.linalg.multi_dot, parts, label=label)
for kwargs in ({}, {"N": 2}, {"N": 4, "increasing": True}):
    add("vander", np.vander, spread(3), kwargs=kwargs, label=str(kwargs), dtype_as_reference=False)
for cuts in (2, 5, [1, 3]):
    options = {"indices_or_sections": cuts}
    add("array_split", np.array_split, spread(7, 2), kwargs=options, label=str(cuts))
add("array_split", np.array_split, spread(2, 5), kwargs={"indices_or_sections": 3, "axis": 1}, label="axis")
add("hsplit", np.hsplit, spread(2, 4), kwargs={"indices_or_sections": 2})
add("hsplit", np.hsplit, spread(4), kwargs={"indices_or_sections": [1]}, label="vector")
add("vsplit", np.vsplit, spread(4, 2), kwargs={"indices_or_sections": 2})
add("dsplit", np.dsplit, spread(1, 2, 4), kwargs={"indices_or_sections": 2})
add("append", np.append, spread(2, 2), spread(3, seed=1))
add("append", np.append, spread(2, 2), spread(2, 1, seed=1), kwargs={"axis": 1}, label="axis")
for name in ("flipud", "fliplr"):
    add(name, getattr(np, name), spread(2, 3))
add("broadcast_arrays", np.broadcast_arrays, spread(2, 1), spread(3, seed=1))
