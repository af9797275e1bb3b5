"""Samples of reading and writing some of the elements."""

from __future__ import annotations

import numpy as np

from . import ALL_FLOATS, AS_GIVEN, add, spread

cube = spread(3, 4, 2)
mask = spread(3, 4, seed=5) > 0
INDICES = {
    "number": 1,
    "negative": -1,
    "slice": slice(None, None, 2),
    "backwards": slice(None, None, -1),
    "ellipsis": (..., 0),
    "newaxis": (None, 1, slice(1, 3), None),
    "numbers": (2, -1, 0),
    "array": np.array([2, 0, 2]),
    "matrix": np.array([[0, 1], [2, 0]]),
    "negative array": np.array([-1, -3, -1]),
    "array second": (slice(None), np.array([3, 3, 0])),
    "two arrays": (np.array([0, 2, 0]), np.array([1, 1, 1])),
    "apart": (np.array([0, 2]), slice(None), np.array([1, 0])),
    "stretched arrays": (np.array([[0], [2]]), np.array([1, 3])),
    "mask": mask,
    "mask first": np.array([True, False, True]),
    "mask and number": (mask, 1),
    "array and newaxis": (np.array([1, 1]), None),
    "number and array": (1, slice(None), np.array([0, 0, 1])),
    "empty slice": slice(2, 2),
    "empty array": np.array([], dtype=int),
    "no element": np.zeros((3, 4), dtype=bool),
    "list beside slice": (slice(1, 3), [0, 0]),
}


def put(a, value, index):
    a = np.array(a)
    a[index] = value
    return a


def add_at(a, index, shape):
    out = np.zeros(shape, a.dtype)
    np.add.at(out, index, a)
    return out


for label, index in INDICES.items():
    picked = cube[index]
    some = picked.size > 0
    add(
        "getitem",
        lambda a, index: a[index],
        cube,
        kwargs={"index": index},
        label=label,
        gradient=some,
        dtypes=ALL_FLOATS,
    )
    add(
        "place", add_at, spread(*picked.shape), kwargs={"index": index, "shape": cube.shape}, label=label, gradient=some
    )
    add("setitem", put, cube, spread(*picked.shape, seed=2), kwargs={"index": index}, label=label, gradient=some)
    add("setitem", put, cube, spread(seed=2), kwargs={"index": index}, label=f"{label}, one value", gradient=some)
add("getitem", lambda a, index: a[index], spread(), kwargs={"index": ()}, label="0-d")
add(
    "getitem",
    lambda a, index: a[index],
    np.arange(6).reshape(2, 3),
    kwargs={"index": (slice(None), 1)},
    dtypes=AS_GIVEN,
    label="integers",
)
add("setitem", put, cube, 0.5, kwargs={"index": 0}, label="number")
add("setitem", put, cube, spread(4, 1, seed=2), kwargs={"index": (slice(0, 2),)}, label="stretched value")
add("setitem", put, cube, spread(1, 1, 2, seed=2), kwargs={"index": (0, slice(1, 3))}, label="value with more axes")
add("setitem", put, np.arange(4), 7, kwargs={"index": slice(1, 3)}, dtypes=AS_GIVEN, label="integers")

for indices, axis in (
    (np.array([0, 2, 0]), 1),
    (np.array([[1, -1], [0, 0]]), -2),
    (2, 0),
    (np.array([5, 5, 0]), None),
    ([1, 0], -1),
):
    add(
        "take",
        lambda a, indices, axis=None: np.take(a, indices, axis=axis),
        cube,
        kwargs={"indices": indices, "axis": axis},
        label=f"{np.shape(indices)} on {axis}",
    )

table = spread(3, 4)
ALONG = {
    "rows": (np.array([[0, 2, 2, 1], [1, 1, 0, -1]]), 0),
    "columns": (np.array([[3, 3], [0, 1], [-1, 2]]), 1),
    "negative axis": (np.array([[0], [0], [3]]), -1),
}
for label, (indices, axis) in ALONG.items():
    kwargs = {"indices": indices, "axis": axis}
    for name in ("take_along_axis", "_take_along"):
        add(
            name,
            lambda a, indices, axis: np.take_along_axis(a, indices, axis),
            table,
            kwargs=kwargs,
            label=label,
            dtypes=ALL_FLOATS,
        )


def put_along(a, values, indices, axis):
    a = a.copy()
    np.put_along_axis(a, indices, values, axis)
    return a


def add_along(a, values, indices, axis):
    out = a.copy()
    for place in np.ndindex(indices.shape):
        target = list(place)
        target[axis] = indices[place]
        out[tuple(target)] += np.broadcast_to(values, indices.shape)[place]
    return out


for label, (indices, axis) in ALONG.items():
    for shape in (indices.shape, ()):
        values, note = spread(*shape, seed=3), label if shape else f"{label}, one value"
        given = {"indices": indices, "axis": axis}
        add("_add_along", add_along, table, values, kwargs=given, label=note)
        add("_put_along", put_along, table, values, kwargs=given, label=note)
        add(
            "scatter_add",
            lambda a, indices, values, axis: add_along(a, values, indices, axis),
            table,
            kwargs={"indices": indices, "values": values, "axis": axis},
            label=note,
        )
        add(
            "put_along_axis",
            lambda a, indices, values, axis: put_along(a, values, indices, axis),
            table,
            kwargs={"indices": indices, "values": values, "axis": axis},
            label=note,
        )
add(
    "put_along_axis",
    lambda a, indices, values, axis: put_along(a, values, indices, axis),
    table,
    kwargs={"indices": np.array([[1], [0], [2]]), "values": 9.0, "axis": 1},
    label="number",
)
add(
    "scatter_add",
    lambda a, indices, values, axis: add_along(a, values, indices, axis),
    table,
    kwargs={"indices": np.array([[1, 1], [0, 1], [2, 2]]), "values": 0.5, "axis": 1},
    label="number",
)

add("nonzero", np.nonzero, np.array([[0.0, 1.5], [2.0, 0.0]]))
add("nonzero", np.nonzero, np.array([0, 3, 0, 1]), dtypes=AS_GIVEN, label="integers")
add("one_hot", lambda indices: np.eye(4, dtype=int)[indices], np.array([[0, 3], [1, 1]]), dtypes=AS_GIVEN)
add(
    "one_hot",
    lambda indices, num_classes, dtype: np.eye(num_classes, dtype=dtype)[indices],
    np.array([0, 2]),
    kwargs={"num_classes": 5, "dtype": "float32"},
    dtypes=AS_GIVEN,
    label="dtype",
)
add(
    "_one_hot",
    lambda a, count, dtype: np.eye(count, dtype=dtype)[a],
    np.array([0, 2]),
    kwargs={"count": 3, "dtype": "float64"},
    dtypes=AS_GIVEN,
)
add(
    "_not_overwritten",
    lambda a, index: np.array([[False] * 4, [True] * 4, [True] * 4]),
    table,
    kwargs={"index": np.array([2, 0, 2])},
)
add(
    "_not_overwritten_along",
    lambda a, indices, axis: np.array([[False, True], [True, True]]),
    table[:2],
    kwargs={"indices": np.array([[3, 3], [0, 1]]), "axis": 1},
)
add("_zeros", lambda a, shape: np.zeros(shape, a.dtype), spread(2), kwargs={"shape": (2, 3)})
