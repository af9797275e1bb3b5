"""Samples of reductions, running sums and products, sorting."""

from __future__ import annotations

import numpy as np

from . import ALL_FLOATS, AS_GIVEN, add, spread

cube = spread(2, 3, 2)
AXES = {
    "all": {},
    "first": {"axis": 0},
    "last": {"axis": -1},
    "two": {"axis": (0, -1)},
    "list order": {"axis": (2, 0)},
    "kept": {"axis": 1, "keepdims": True},
    "all kept": {"keepdims": True},
    "two kept": {"axis": (-1, 1), "keepdims": True},
}


def log_sum_exp(a, axis=None, keepdims=False):
    return np.log(np.sum(np.exp(a), axis=axis, keepdims=keepdims))


REDUCTIONS = {
    "sum": np.sum,
    "mean": np.mean,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
    "logsumexp": log_sum_exp,
    "var": np.var,
    "std": np.std,
}
for name, reference in REDUCTIONS.items():
    for label, kwargs in AXES.items():
        add(
            name,
            reference,
            cube,
            kwargs=kwargs,
            label=label,
            dtypes=ALL_FLOATS if name in ("sum", "max", "min") and label in ("all", "last") else ("float64", "float32"),
        )
    add(name, reference, spread(4), label="vector")
    add(name, reference, spread(2, 1, 3), kwargs={"axis": 1}, label="size 1")
    if name not in ("var", "std"):
        add(name, reference, np.array(0.7), label="0-d")
for name in ("sum", "prod", "mean"):
    add(name, REDUCTIONS[name], np.zeros((2, 0, 3)), kwargs={"axis": 0}, label="empty")
for name in ("sum", "prod", "max", "min", "mean", "any", "all"):
    add(
        name, getattr(np, name), np.array([[3, 0, 2], [5, 7, 1]]), kwargs={"axis": 1}, dtypes=AS_GIVEN, label="integers"
    )
    if name not in ("mean",):
        add(name, getattr(np, name), np.array([[3, 0, 2], [5, 7, 1]], dtype="int32"), dtypes=AS_GIVEN, label="int32")
        add(
            name,
            getattr(np, name),
            np.array([[True, False], [True, True]]),
            kwargs={"axis": 0},
            dtypes=AS_GIVEN,
            label="booleans",
        )
add("sum", np.sum, np.zeros((0, 3)), kwargs={"axis": 0}, label="sum of nothing")
add("var", np.var, cube, kwargs={"axis": 1, "ddof": 1}, label="ddof")
add("std", np.std, cube, kwargs={"axis": (0, 1), "ddof": 1, "keepdims": True}, label="ddof kept")
add(
    "logsumexp",
    log_sum_exp,
    np.array([[-np.inf, 0.5, 1.0], [-np.inf, -np.inf, -np.inf]]),
    kwargs={"axis": 1},
    label="masked",
    gradient=False,
)
add(
    "logsumexp",
    lambda a, axis: a.max(axis) + np.log(np.sum(np.exp(a - a.max(axis, keepdims=True)), axis=axis)),
    np.array([[800.0, 801.0], [-900.0, -902.0]]),
    kwargs={"axis": 1},
    label="far out",
)

one_zero, two_zeros = np.array([[1.5, 0.0, -0.7], [2.0, 0.3, 0.9]]), np.array([[0.0, 1.5, 0.0], [0.4, 0.0, 1.2]])
for label, array in {
    "one zero": one_zero,
    "two zeros": two_zeros,
    "three zeros": np.array([[0.0, 0.0, 0.0], [1.5, 2.0, 0.5]]),
}.items():
    add("prod", np.prod, array, kwargs={"axis": 1}, label=label)
    add("prod", np.prod, array, label=f"{label}, all")
    add("prod", np.prod, array, kwargs={"axis": ()}, label=f"{label}, no axis")
    add(
        "prod",
        np.prod,
        array[..., None] + np.zeros(2),
        kwargs={"axis": (-1, 0), "keepdims": True},
        label=f"{label}, two axes",
    )
    add("_cumprod", np.cumprod, array, kwargs={"axis": 1}, label=label)
    add("_cumprod", np.cumprod, array, kwargs={"axis": -2}, label=f"{label}, rows")
    add("cumprod", np.cumprod, array, label=f"{label}, all")
    add("_cumprod", np.cumprod, np.stack([array, array[::-1] + 0.5]), kwargs={"axis": 1}, label=f"{label}, three axes")
for name, reference in {"cumsum": np.cumsum, "cumprod": np.cumprod}.items():
    add(name, reference, cube, kwargs={"axis": 1}, label="middle")
    add(name, reference, cube, kwargs={"axis": -1}, label="last")
    add(name, reference, cube, label="all")
    add(name, reference, np.array(0.7), label="0-d")
    add(name, reference, np.zeros((0, 2)), kwargs={"axis": 0}, label="empty", gradient=False)
    add(f"_{name}", reference, cube, kwargs={"axis": 0}, label="first")
    add(f"_{name}", reference, cube, kwargs={"axis": -2}, label="middle")
add("cumsum", np.cumsum, np.array([[1, 2], [3, 4]]), kwargs={"axis": 0}, dtypes=AS_GIVEN, label="integers")

for name in ("argmax", "argmin"):
    reference = getattr(np, name)
    add(name, reference, cube, dtypes=ALL_FLOATS)
    add(name, reference, cube, kwargs={"axis": -1}, label="last")
    add(name, reference, cube, kwargs={"axis": 1, "keepdims": True}, label="kept")
    add(name, reference, np.array([3, 1, 3, 1]), dtypes=AS_GIVEN, label="ties")
for name in ("any", "all"):
    add(
        name,
        getattr(np, name),
        np.array([[1.0, 0.0], [2.0, 3.0]]),
        kwargs={"axis": (0, -1), "keepdims": True},
        label="two kept",
    )
    add(name, getattr(np, name), np.array([[1.0, 0.0], [2.0, 3.0]]), kwargs={"axis": -1}, label="last")

VECTOR_NORMS = (None, 2, 1, 3, 2.5, np.inf, -np.inf, -1)
for order in VECTOR_NORMS:
    add(
        "norm",
        lambda a, ord=None, axis=None, keepdims=False: np.linalg.norm(a, ord, axis, keepdims),
        cube,
        kwargs={"ord": order, "axis": 1},
        label=f"{order}",
    )
add("norm", lambda a: np.sqrt((a * a).sum()), cube, label="whole")
add(
    "norm",
    lambda a, keepdims: np.linalg.norm(a.ravel()).reshape(1, 1, 1),
    cube,
    kwargs={"keepdims": True},
    label="whole kept",
    dtype_as_reference=False,
)
add(
    "norm",
    lambda a, ord, axis: np.linalg.norm(a, ord, axis),
    cube,
    kwargs={"ord": 0, "axis": -1},
    label="count",
    gradient=False,
)
add(
    "norm",
    lambda a, ord, axis: np.linalg.norm(a, ord, axis),
    one_zero,
    kwargs={"ord": 4, "axis": 0},
    label="4, with a zero",
)
for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
    for axis, keepdims in (((0, 1), False), ((-1, 1), True)):
        add(
            "norm",
            lambda a, ord, axis, keepdims: np.linalg.norm(a, ord, axis, keepdims),
            spread(3, 2, 2, seed=4),
            kwargs={"ord": order, "axis": axis, "keepdims": keepdims},
            label=f"matrix {order}{' kept' * keepdims}",
        )
add("norm", lambda a, ord: np.linalg.norm(a, ord), spread(2, 3), kwargs={"ord": "nuc"}, label="matrix without axis")

for axis in (-1, 0, 1):
    add("sort", lambda a, axis: np.sort(a, axis=axis), cube, kwargs={"axis": axis}, label=f"axis {axis}")
    add("argsort", lambda a, axis: np.argsort(a, axis=axis), cube, kwargs={"axis": axis}, label=f"axis {axis}")
add(
    "sort",
    lambda a, axis, descending: -np.sort(-a, axis=axis),
    cube,
    kwargs={"axis": 1, "descending": True},
    label="falling",
)
add("sort", lambda a, axis: np.sort(a, axis=None), cube, kwargs={"axis": None}, label="all")
add("sort", np.sort, np.array([[3, 1, 2]]), dtypes=AS_GIVEN, label="integers")
add(
    "argsort",
    lambda a, axis, descending: np.argsort(-a, axis=axis, kind="stable"),
    np.array([[3.0, 1, 3, 1], [2, 2, 5, 0]]),
    kwargs={"axis": -1, "descending": True},
    label="falling with ties",
)
add("argsort", lambda a: np.argsort(a, kind="stable"), np.array([2, 1, 2, 1]), dtypes=AS_GIVEN, label="ties")


def top(a, k, axis=-1, largest=True):
    order = np.argsort(-a if largest else a, axis=axis, kind="stable")
    places = np.take(order, np.arange(k), axis=axis)
    return np.take_along_axis(a, places, axis=axis), places


for kwargs in ({"k": 2}, {"k": 1, "axis": 0}, {"k": 2, "axis": -2, "largest": False}, {"k": 0}):
    add("topk", top, spread(2, 4, 3), kwargs=kwargs, label=str(kwargs), gradient=kwargs["k"] > 0)
for kwargs in ({}, {"axis": 0}, {"axis": -1, "keepdims": True}, {"axis": (0, 2)}, {"keepdims": True}):
    add("median", np.median, spread(3, 4, 2), kwargs=kwargs, label=str(kwargs))
add("median", np.median, np.array([1.0, np.nan, 2.0]), label="NaN", gradient=False)
add("_eye", lambda a, n: np.eye(n, dtype=bool), spread(2), kwargs={"n": 3})
