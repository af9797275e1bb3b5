"""Samples of running sums and extremes, differences, reductions that skip NaN, and results in another dtype."""

from __future__ import annotations

import numpy as np

from . import AS_GIVEN, add, spread

cube = spread(2, 3, 2)
for name in ("sum", "prod", "mean", "cumsum", "cumprod"):
    reference = getattr(np, name)
    add(name, reference, cube, kwargs={"axis": 1, "dtype": "float64"}, label="dtype")
    add(
        name,
        reference,
        np.array([[1, 2], [3, 4]]),
        kwargs={"axis": 0, "dtype": "float32"},
        dtypes=AS_GIVEN,
        label="dtype of integers",
    )
for name in ("cumulative_sum", "cumulative_prod"):
    reference = getattr(np, name)
    add(name, reference, spread(4))
    add(name, reference, cube, kwargs={"axis": 1, "include_initial": True}, label="initial")
    add(name, reference, np.zeros((2, 0)), kwargs={"axis": 1, "include_initial": True}, label="empty", gradient=False)
    add(name, reference, np.array([[1, 2]]), kwargs={"axis": -1, "dtype": "float64"}, dtypes=AS_GIVEN, label="dtype")


def log_cum_sum_exp(a, axis):
    return np.logaddexp.accumulate(a, axis=axis)


add("logcumsumexp", log_cum_sum_exp, cube, kwargs={"axis": 1})
add("logcumsumexp", log_cum_sum_exp, spread(5), kwargs={"axis": -1}, label="vector")
add(
    "logcumsumexp",
    log_cum_sum_exp,
    np.array([-1000.0, -np.inf, 0.5, 900.0]),
    kwargs={"axis": 0},
    label="far out",
    gradient=False,
)


def running(accumulate):
    def reference(a, axis):
        values = accumulate(a, axis=axis)
        index = np.zeros(a.shape, dtype=np.int64)
        for place in np.ndindex(*a.shape):
            line = [tuple(i if j == axis % a.ndim else k for j, k in enumerate(place)) for i in range(place[axis] + 1)]
            index[place] = max(i for i, at in enumerate(line) if a[at] == values[place] or a[at] != a[at])
        return values, index

    return reference


for name, accumulate in (("cummax", np.maximum.accumulate), ("cummin", np.minimum.accumulate)):
    add(name, running(accumulate), cube, kwargs={"axis": 1})
    add(
        name,
        running(accumulate),
        np.array([[1.0, 3.0, 3.0, 2.0, np.nan, 4.0]]),
        kwargs={"axis": -1},
        label="ties and NaN",
        gradient=False,
    )
    add(name, running(accumulate), np.array([3, 1, 3, 1]), kwargs={"axis": 0}, dtypes=AS_GIVEN, label="integers")
for name, accumulate in (("max", np.maximum.accumulate), ("min", np.minimum.accumulate)):
    add(
        "_winners_so_far",
        lambda a, axis, largest, accumulate=accumulate: running(accumulate)(a, axis)[1],
        cube,
        kwargs={"axis": 1, "largest": name == "max"},
        label=name,
    )

add("diff", np.diff, cube)
add("diff", np.diff, cube, kwargs={"n": 2, "axis": 1}, label="twice")
add(
    "diff",
    np.diff,
    spread(3),
    kwargs={"prepend": 0.5, "append": spread(2, seed=1)},
    label="ends",
    dtype_as_reference=False,
)
add("diff", np.diff, np.array([True, False, False]), dtypes=AS_GIVEN, label="booleans")
add("diff", np.diff, np.array([[1, 4, 9]]), kwargs={"n": 0}, dtypes=AS_GIVEN, label="none")
add("ediff1d", np.ediff1d, cube)
add("ediff1d", np.ediff1d, spread(4), kwargs={"to_begin": [-9.0], "to_end": spread(2, seed=1)}, label="ends")

holes = np.where(spread(2, 3, 2, seed=3) > 1, np.nan, cube)
holes[0, 0], holes[1, 1] = np.nan, 0.7
AXES = {"all": {}, "last": {"axis": -1}, "kept": {"axis": (0, 1), "keepdims": True}}
for name in ("nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin", "nanmedian"):
    for label, kwargs in AXES.items():
        add(name, getattr(np, name), cube, kwargs=kwargs, label=label)
        add(name, getattr(np, name), holes, kwargs=kwargs, label=f"{label}, NaN", gradient=False)
    add(
        name, getattr(np, name), np.array([[3, 0, 2], [5, 7, 1]]), kwargs={"axis": 1}, dtypes=AS_GIVEN, label="integers"
    )
add("nanvar", np.nanvar, holes, kwargs={"axis": 1, "ddof": 1}, label="ddof", gradient=False)
for name in ("nanargmax", "nanargmin"):
    add(name, getattr(np, name), np.array([[np.nan, 2.0, 3.0], [1.0, np.nan, 0.5]]), kwargs={"axis": 1}, gradient=False)
    add(name, getattr(np, name), holes, label="all", gradient=False)
for name in ("nancumsum", "nancumprod"):
    add(name, getattr(np, name), cube, kwargs={"axis": 1})
    add(name, getattr(np, name), holes, label="NaN", gradient=False)


def top(a, k, axis=-1, largest=True):
    order = np.argsort(-a if largest else a, axis=axis, kind="stable")
    places = np.take(order, np.arange(k), axis=axis)
    return np.take_along_axis(a, places, axis=axis), places


many = spread(2, 40)
for largest in (True, False):
    options = {"k": 3, "largest": largest}
    add("topk", top, many, kwargs=options, label=f"few of many, {largest}")
    add("topk", top, np.round(many), kwargs=options, label=f"ties, {largest}", gradient=False)
    add(
        "_top_positions",
        lambda a, k, axis, largest: top(a, k, axis, largest)[1],
        many.T,
        kwargs={**options, "axis": 0},
        label=f"{largest}",
    )
add("sort", lambda a, stable: np.sort(a), cube, kwargs={"stable": False}, label="unstable")
