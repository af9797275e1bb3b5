"""Samples of tensors as sets; NumPy's functions are the references."""

from __future__ import annotations

import numpy as np

from . import AS_GIVEN, add, spread

few = np.array([[3, 1, 3], [2, 1, 7]])
rows = np.array([[1.0, 2.0], [0.0, 5.0], [1.0, 2.0]])
ALL = {"return_index": True, "return_inverse": True, "return_counts": True}
add("unique", np.unique, spread(2, 3))
add("unique", np.unique, few, kwargs=ALL, dtypes=AS_GIVEN, label="all")
add("unique", np.unique, rows, kwargs={"axis": 0, **ALL}, label="rows", gradient=False)
add("unique", np.unique, np.array([np.nan, 1.0, np.nan]), label="NaN", gradient=False)
add("unique", np.unique, np.array([np.nan, 1.0, np.nan]), kwargs={"equal_nan": False}, label="each NaN", gradient=False)
add(
    "_unique",
    lambda a, axis, equal_nan: np.unique(a, *[True] * 3, axis=axis, equal_nan=equal_nan)[1:],
    few,
    kwargs={"axis": None, "equal_nan": True},
    dtypes=AS_GIVEN,
)
runs = np.array([2.0, 2.0, 1.0, 2.0, 2.0, 2.0])
add("unique_consecutive", lambda a: a[np.r_[True, a[1:] != a[:-1]]], runs, gradient=False)
add("unique_consecutive", lambda a: a.ravel(), spread(2, 2), label="all different")
add(
    "unique_consecutive",
    lambda a, return_inverse, return_counts: (np.array([2, 1, 2]), np.array([0, 0, 1, 2, 2, 2]), np.array([2, 1, 3])),
    runs.astype("int64"),
    kwargs={"return_inverse": True, "return_counts": True},
    dtypes=AS_GIVEN,
    label="all",
)
add("isin", np.isin, few, np.array([1, 7]), dtypes=AS_GIVEN)
add("isin", np.isin, few, np.array([1, 7]), kwargs={"invert": True}, dtypes=AS_GIVEN, label="invert")
add("isin", np.isin, rows, np.array([5.0, np.nan]), label="floats", gradient=False)
add("_isin", lambda a, b, invert: np.isin(a, b), few, np.array([1, 7]), kwargs={"invert": False}, dtypes=AS_GIVEN)
for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
    add(name, getattr(np, name), few, np.array([3, 4, 2, 2]), dtypes=AS_GIVEN)
    if name != "intersect1d":  # whose result would change with every step of a finite difference
        add(name, getattr(np, name), spread(3), np.append(spread(3)[:2], 9.0), label="floats", gradient=False)
add("union1d", np.union1d, spread(3), spread(2, low=5, high=6), label="apart")
add("setdiff1d", lambda a, b: np.sort(a), spread(3), spread(2, low=5, high=6), label="apart")
add("setxor1d", np.union1d, spread(3), spread(2, low=5, high=6), label="apart")
