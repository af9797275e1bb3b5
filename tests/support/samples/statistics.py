"""Samples of quantiles, weighted means, covariance, interpolation, integration and distances."""

from __future__ import annotations

import numpy as np
import scipy.integrate
import scipy.spatial.distance

from . import AS_GIVEN, Fixed, add, spread

table = spread(3, 4)
METHODS = """
    linear hazen weibull median_unbiased normal_unbiased interpolated_inverted_cdf lower higher nearest inverted_cdf
    closest_observation midpoint averaged_inverted_cdf"""


def quantile(a, q, axis=None, method="linear", keepdims=False):
    return np.quantile(a, q, axis=axis, method=method, keepdims=keepdims)


def percentile(a, q, **options):
    return np.percentile(a, q, **options)


for method in METHODS.split():
    kwargs = {"q": Fixed(np.array([0.0, 0.3, 0.5, 1.0])), "axis": 1, "method": method}
    add("quantile", quantile, spread(2, 5), kwargs=kwargs, label=method, dtype_as_reference=False)
for label, kwargs in {
    "all": {"q": 0.4},
    "axes": {"q": 0.4, "axis": (0, -1), "keepdims": True},
    "several": {"q": [[0.1, 0.9]], "axis": (1,), "keepdims": True},
}.items():
    add("quantile", quantile, spread(3, 2, 2), kwargs=kwargs, label=label, dtype_as_reference=False)
    kwargs = {**kwargs, "q": np.multiply(kwargs["q"], 100).tolist()}
    add("percentile", percentile, spread(3, 2, 2), kwargs=kwargs, label=label, dtype_as_reference=False)
gaps = np.array([[1.0, np.nan, 2.0], [1.0, 3.0, 2.0]])
add("quantile", quantile, gaps, kwargs={"q": 0.25, "axis": 1}, gradient=False, label="NaN")
add("quantile", quantile, np.array([3, 1, 2, 7]), kwargs={"q": 0.4}, dtypes=AS_GIVEN, label="integers")
add(
    "quantile",
    quantile,
    np.array([3, 1, 2]),
    kwargs={"q": 0.4, "method": "lower"},
    dtypes=AS_GIVEN,
    label="one of them",
)

weights = spread(3, 4, low=0.5, high=2, seed=1)
for label, kwargs in {
    "plain": {"axis": 0},
    "whole": {"weights": weights},
    "along an axis": {"axis": 1, "weights": weights[0], "keepdims": True},
    "axes": {"axis": (-1, 0), "weights": weights.T},
    "with the weights": {"axis": 0, "weights": weights, "returned": True},
    "with the count": {"axis": 0, "returned": True},
}.items():
    add("average", np.average, table, kwargs=kwargs, label=label)


def cov(a, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None):
    return np.cov(a, y, rowvar, bias, ddof, fweights, aweights, dtype=a.dtype)


counts, matter = np.array([1, 2, 1, 3]), spread(4, low=0.5, high=2, seed=3)
for label, kwargs in {
    "plain": {},
    "biased": {"bias": True},
    "columns": {"rowvar": False, "ddof": 0},
    "two": {"y": spread(2, 4, seed=2)},
    "counts": {"fweights": Fixed(counts)},
    "importance": {"aweights": matter},
    "both": {"fweights": Fixed(counts), "aweights": matter, "ddof": 2},
}.items():
    add("cov", cov, table, kwargs=kwargs, label=label, dtype_as_reference=False)
add("cov", cov, spread(4), label="vector")
add("corrcoef", lambda a: np.corrcoef(a, dtype=a.dtype), table)
add("corrcoef", lambda a, y: np.corrcoef(a, y, dtype=a.dtype), spread(4), kwargs={"y": spread(4, seed=2)}, label="two")
add(
    "corrcoef",
    lambda a, rowvar: np.corrcoef(a, rowvar=rowvar, dtype=a.dtype),
    table.T,
    kwargs={"rowvar": False},
    label="columns",
)


def interp(x, xp, fp, **options):
    return np.interp(x, xp, fp, **options).astype(x.dtype)


knots, values = np.array([-1.5, -0.6, 0.3, 1.7]), spread(4, seed=4)
for label, kwargs in {"plain": {}, "ends": {"left": -7.0, "right": 9.0}, "period": {"period": 3.5}}.items():
    add("interp", interp, spread(3, 2), knots, values, kwargs=kwargs, label=label)
add("interp", interp, spread(3), knots[:1], values[:1], label="one point")

for name, reference in (("trapezoid", np.trapezoid), ("cumulative_trapezoid", scipy.integrate.cumulative_trapezoid)):
    for label, kwargs in {
        "plain": {},
        "dx": {"dx": 0.5, "axis": 0},
        "points": {"x": np.sort(spread(4, seed=1))},
        "points of each": {"x": spread(3, 4, seed=1), "axis": 0},
    }.items():
        add(name, reference, table, kwargs=kwargs, label=label)
add(
    "cumulative_trapezoid",
    scipy.integrate.cumulative_trapezoid,
    table,
    kwargs={"axis": 0, "initial": 0},
    label="initial",
)


def cdist(a, b, p=2.0):
    return (abs(a[..., :, None, :] - b[..., None, :, :]) ** p).sum(-1) ** (1 / p)


add("cdist", cdist, spread(3, 2), spread(4, 2, seed=1))
add("cdist", cdist, spread(2, 1, 3, 2), spread(2, 2, 2, seed=1), kwargs={"p": 3.0}, label="stacks")
add(
    "cdist",
    lambda a, b, p: abs(a[:, None] - b).max(-1),
    spread(3, 2),
    spread(2, 2, seed=1),
    kwargs={"p": np.inf},
    label="largest",
)
add("pdist", lambda a, p=2.0: scipy.spatial.distance.pdist(a, "minkowski", p=p).astype(a.dtype), spread(4, 2))
add(
    "pdist",
    lambda a, p: scipy.spatial.distance.pdist(a, "cityblock").astype(a.dtype),
    spread(4, 2),
    kwargs={"p": 1},
    label="blocks",
)
