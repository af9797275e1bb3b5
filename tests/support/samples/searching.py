"""Samples of searching and counting; only weights are differentiated."""

from __future__ import annotations

from functools import partial

import numpy as np

from . import AS_GIVEN, add, spread

constant = partial(add, gradient=False)
edges = np.array([-1.5, -0.3, 0.2, 0.2, 1.1])
values = np.array([[-2.0, 0.2, 0.21], [1.1, 5.0, np.nan]])
for side in ("left", "right"):
    for name in ("searchsorted", "_places"):
        constant(name, np.searchsorted, edges, values, kwargs={"side": side}, label=side)
constant("searchsorted", np.searchsorted, edges, 0.2, label="number")
constant(
    "searchsorted",
    lambda a, v, sorter: np.searchsorted(a, v, sorter=sorter),
    edges[::-1],
    values,
    kwargs={"sorter": np.arange(5)[::-1].copy()},
    label="sorter",
)
constant(
    "searchsorted",
    lambda a, v: np.stack([np.searchsorted(line, one) for line, one in zip(a, v)]),
    np.stack([edges, edges + 0.5]),
    values,
    label="lines",
)
for right, side in ((False, "left"), (True, "right")):
    constant(
        "bucketize",
        lambda a, b, right, side=side: np.searchsorted(b, a, side=side),
        values,
        edges,
        kwargs={"right": right},
        label=side,
    )
    constant("digitize", np.digitize, values, edges, kwargs={"right": right}, label=side)
    constant("digitize", np.digitize, values, edges[::-1], kwargs={"right": right}, label=f"falling, {side}")

numbers = np.array([3, 1, 1, 5, 0])
add("bincount", np.bincount, numbers, dtypes=AS_GIVEN)
add("bincount", np.bincount, numbers, kwargs={"minlength": 9}, dtypes=AS_GIVEN, label="minlength")
add("bincount", np.bincount, numbers, spread(5), label="weights", dtype_as_reference=False)
add("_bincount", lambda a, count: np.bincount(a, minlength=count), numbers, kwargs={"count": 7}, dtypes=AS_GIVEN)
constant("count_nonzero", np.count_nonzero, np.array([[1.0, 0.0, np.nan], [0.0, -0.0, 2.0]]), kwargs={"axis": 1})
add("count_nonzero", np.count_nonzero, numbers, kwargs={"keepdims": True}, dtypes=AS_GIVEN, label="kept")

line = np.array([0.1, 0.4, 0.75, 0.75, 1.9, 2.0, -3.0])
constant("histogram", np.histogram, line)
constant("histogram", np.histogram, line, kwargs={"bins": 4, "range": (0.0, 2.0)}, label="range")
constant(
    "histogram",
    np.histogram,
    line,
    kwargs={"bins": [0.0, 0.4, 0.75, 2.0], "density": True},
    label="density",
    dtypes=("float64",),
)
add("histogram", np.histogram, numbers, kwargs={"bins": 3, "weights": spread(5)}, label="weights", dtypes=("float64",))
add("histogram", np.histogram, np.array([2, 2, 2]), dtypes=AS_GIVEN, label="one value")
