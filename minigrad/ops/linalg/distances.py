"""Distances between all pairs of points."""

from __future__ import annotations

import numpy as np

from ...errors import ShapeError, broadcast_problem
from ..composite import composite
from ..reductions.reduction import norm


@composite
def cdist(a, b, *, p=2.0):
    """The p-norm of the differences between each row of `a` and each of `b`, as PyTorch's: (…, n, d), (…, m, d) -> (…, n, m).

    Where a distance is 0, so is its gradient.
    """
    if min(a.ndim, b.ndim) < 2 or a.shape[-1] != b.shape[-1]:
        raise ShapeError(
            "cdist: the points do not lie in one space",
            "(…, n, d) and (…, m, d), one d",
            f"{tuple(a.shape)} and {tuple(b.shape)}",
        )
    if problem := broadcast_problem("cdist: the stacks", [tuple(a.shape[:-2]), tuple(b.shape[:-2])]):
        raise problem
    return norm(a[..., :, None, :] - b[..., None, :, :], ord=p, axis=-1)


@composite
def pdist(a, *, p=2.0):
    """The p-norm of the differences between each two rows, as PyTorch's and SciPy's: (n, d) -> (n (n - 1) / 2,)."""
    if a.ndim != 2:
        raise ShapeError("pdist: a matrix of points is needed", "2 axes", f"shape {tuple(a.shape)}")
    first, second = np.triu_indices(a.shape[0], 1)
    return norm(a[first] - a[second], ord=p, axis=-1)
