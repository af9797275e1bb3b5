"""Samples of reading and writing by an index as PyTorch does it."""

from __future__ import annotations

import numpy as np

from . import AS_GIVEN, Fixed, add, spread

table = spread(3, 4)
INDEX = {
    "rows": (np.array([[0, 2, 2, 1], [2, 1, 2, -1]]), 0),
    "a corner": (np.array([[3, 3], [0, 3]]), 1),
    "longer": (np.array([[0, 0, 1, 1, 3, 0, 0]]), -1),
}
REDUCTIONS = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}


def gather(a, axis, index):
    out = np.empty(index.shape, a.dtype)
    for place in np.ndindex(index.shape):
        out[place] = a[_target(place, index, axis)]
    return out


def _target(place, index, axis):
    target = list(place)
    target[axis] = index[place]
    return tuple(target)


def scatter(a, axis, index, src, reduce=None):
    if reduce is not None:
        return scatter_reduce(a, axis, index, src, {"add": "sum", "multiply": "prod"}[reduce])
    out = a.copy()
    for place in np.ndindex(index.shape):
        out[_target(place, index, axis)] = np.broadcast_to(src, index.shape)[place] if np.ndim(src) == 0 else src[place]
    return out


def scatter_reduce(a, axis, index, src, reduce, include_self=True):
    """The definition: for each element a list of what it is reduced with."""
    found: dict[tuple[int, ...], list] = {}
    for place in np.ndindex(index.shape):
        target = tuple(np.array(_target(place, index, axis)) % a.shape)
        found.setdefault(target, [a[target]] if include_self else []).append(src[place] if np.ndim(src) else src)
    out = a.copy()
    for target, values in found.items():
        out[target] = np.floor(REDUCTIONS[reduce](values)) if a.dtype.kind == "i" else REDUCTIONS[reduce](values)
    return out


for label, (index, axis) in INDEX.items():
    given = {"axis": axis, "index": index}
    add("gather", gather, table, kwargs=given, label=label)
    add("scatter", scatter, table, kwargs={**given, "src": spread(*index.shape, seed=1)}, label=label)
    for reduce in REDUCTIONS:
        for include_self in (True, False):
            options = {"src": spread(*index.shape, seed=1), "reduce": reduce, "include_self": include_self}
            add(
                "scatter_reduce",
                scatter_reduce,
                table,
                kwargs={**given, **options},
                label=f"{label}, {reduce} {include_self}",
            )
index, axis = INDEX["a corner"]
add("scatter", scatter, table, kwargs={"axis": 1, "index": index, "src": spread(3, 3, seed=1)}, label="larger source")
add("scatter", scatter, table, kwargs={"axis": 1, "index": index, "src": 7.0}, label="number")
for reduce in ("add", "multiply"):
    options = {"axis": 1, "index": index, "src": spread(2, 2, seed=1), "reduce": reduce}
    add("scatter", scatter, table, kwargs=options, label=reduce)
zeros = np.array([[0.0, 2.0, 0.0], [0.0, 3.0, 0.5]])
add(
    "scatter_reduce",
    scatter_reduce,
    spread(2, 2),
    kwargs={"axis": 1, "index": np.array([[0, 0, 0], [1, 1, 1]]), "src": zeros, "reduce": "prod"},
    label="product with zeros",
)
for reduce in REDUCTIONS:
    options = {"axis": 0, "index": np.array([1, 1, 0]), "src": Fixed(np.array([-5, 2, 9])), "reduce": reduce}
    add(
        "scatter_reduce",
        scatter_reduce,
        np.array([3, 7, 1]),
        kwargs=options,
        dtypes=AS_GIVEN,
        label=f"integers {reduce}",
    )
    options = {**options, "include_self": False}
    add("scatter_reduce", scatter_reduce, np.array([3, 7, 1]), kwargs=options, dtypes=AS_GIVEN, label=f"{reduce} alone")


along = {"indices": INDEX["rows"][0], "axis": 0}
add(
    "_count_along",
    lambda a, indices, axis: np.array([[1, 0, 0, 0], [0, 1, 0, 1], [1, 1, 2, 1]], a.dtype),
    table,
    kwargs=along,
)
add("_turn_along", lambda a, indices, axis: np.array([[0, 0, 0, 0], [0, 0, 1, 0]]), table, kwargs=along)
for largest in (True, False):
    add(
        "_extreme_along",
        lambda a, values, indices, axis, largest: scatter_reduce(
            a, axis, indices, values, "amax" if largest else "amin"
        ),
        table,
        spread(2, 4, seed=1),
        kwargs={**along, "largest": largest},
        label="largest" if largest else "smallest",
    )


def index_add(a, axis, index, source, alpha=1):
    out = np.moveaxis(a.copy(), axis, 0)
    np.add.at(out, index, alpha * np.moveaxis(np.asarray(source), axis, 0) if np.ndim(source) else alpha * source)
    return np.moveaxis(out, 0, axis)


def index_copy(a, axis, index, source):
    out = np.moveaxis(a.copy(), axis, 0)
    out[index] = np.moveaxis(np.asarray(source), axis, 0) if np.ndim(source) else source
    return np.moveaxis(out, 0, axis)


lines = {"axis": 1, "index": np.array([3, 0, 3])}
add("index_add", index_add, table, kwargs={**lines, "source": spread(3, 3, seed=1)})
add("index_add", index_add, table, kwargs={**lines, "source": spread(3, 3, seed=1), "alpha": -2}, label="alpha")
add(
    "index_add",
    index_add,
    table,
    kwargs={"axis": 0, "index": np.array([1, 1]), "source": spread(2, 4, seed=1)},
    label="rows",
)
add("index_copy", index_copy, table, kwargs={**lines, "source": spread(3, 3, seed=1)})
add(
    "index_fill",
    lambda a, axis, index, value: index_copy(a, axis, index, value),
    table,
    kwargs={**lines, "value": spread()},
)


def index_put(a, indices, values, accumulate=False):
    out = a.copy()
    if accumulate:
        np.add.at(out, tuple(indices), values)
    else:
        out[tuple(indices)] = values
    return out


pair = (np.array([0, 2, 0]), np.array([1, 1, 1]))
for accumulate in (True, False):
    for label, indices, values in (
        ("pairs", pair, spread(3, seed=1)),
        ("rows", (np.array([2, 2]),), spread(4, seed=1)),
        ("mask", (table > 0,), spread(seed=1)),
    ):
        options = {"indices": indices, "values": values, "accumulate": accumulate}
        add("index_put", index_put, table, kwargs=options, label=f"{label}, {accumulate}")
mask = np.array([True, False, True, True])
add("masked_select", lambda a, mask: a[np.broadcast_to(mask, a.shape)], table, kwargs={"mask": mask})
add(
    "masked_select",
    lambda a, mask: np.broadcast_to(a, mask.shape)[mask],
    spread(4),
    kwargs={"mask": table > 0},
    label="larger mask",
)


def masked_scatter(a, mask, source):
    out = a.copy()
    mask = np.broadcast_to(mask, a.shape)
    out[mask] = source.ravel()[: mask.sum()]
    return out


add("masked_scatter", masked_scatter, table, kwargs={"mask": mask, "source": spread(2, 6, seed=1)})
