"""Tensors as sets: the different elements, and which of them are elsewhere, too."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...engine.op import op
from ...engine.tensor import Tensor
from ..composite import composite
from ..creation import full, tensor
from ..elementwise.arithmetic import isnan, not_equal
from ..layout.joining import concatenate
from ..layout.shape import one_axis, ravel


@op(several=True)
def _unique(xp, a, *, axis, equal_nan):
    """Where each different element (or slice along an axis) is first, which of them each element is, and how often each comes."""
    _, first, inverse, counts = xp.unique(
        a, return_index=True, return_inverse=True, return_counts=True, axis=axis, equal_nan=equal_nan
    )
    return first, inverse.reshape(a.shape if axis is None else -1), counts


@composite
def unique(a, *, return_index=False, return_inverse=False, return_counts=False, axis=None, equal_nan=True, sorted=True):
    """The different elements (or slices along an axis), always sorted, as NumPy's; the gradient of each goes to where it is first."""
    axis = axis if axis is None else one_axis("unique", axis, a.ndim, a.shape)
    first, inverse, counts = _unique(a, axis=axis, equal_nan=equal_nan)
    values = ravel(a)[first] if axis is None else a[(slice(None),) * axis + (first,)]
    asked = ((return_index, first), (return_inverse, inverse), (return_counts, counts))
    extra = [part for wanted, part in asked if wanted]
    return (values, *extra) if extra else values


@composite
def unique_consecutive(a, *, return_inverse=False, return_counts=False):
    """The elements of the raveled tensor without those that repeat the one before, as PyTorch's."""
    line = ravel(a)
    new = concatenate([full((min(line.size, 1),), True, device=a.device), not_equal(line[1:], line[:-1])])
    (starts,) = new.nonzero()
    ends = concatenate([starts[1:], full((min(line.size, 1),), line.size, dtype="int64", device=a.device)])
    asked = ((return_inverse, new.cumsum().reshape(a.shape) - 1), (return_counts, ends - starts))
    extra = [part for wanted, part in asked if wanted]
    return (line[starts], *extra) if extra else line[starts]


@composite
def isin(a, test_elements, *, assume_unique=False, invert=False):
    """Whether each element is among `test_elements` (or, with `invert`, is not), as NumPy's."""
    return _isin(a, test_elements, invert=bool(invert))


@op
def _isin(xp, a, test_elements, *, invert):
    """Whether each element is among others."""
    return xp.isin(xp.asarray(a), xp.asarray(test_elements), invert=invert)


@composite(method=False)
def union1d(a, b):
    """The different elements of both, sorted, as NumPy's."""
    return unique(concatenate([ravel(a), ravel(b)]))


@composite(method=False)
def intersect1d(a, b):
    """The different elements that are in both, sorted, as NumPy's."""
    mine = unique(a)
    return mine[isin(mine, b)]


@composite(method=False)
def setdiff1d(a, b):
    """The different elements of `a` that are not in `b`, sorted, as NumPy's."""
    mine = unique(a)
    return mine[isin(mine, b, invert=True)]


@composite(method=False)
def setxor1d(a, b):
    """The different elements that are in exactly one of both, sorted, as NumPy's."""
    return unique(concatenate([setdiff1d(a, b), setdiff1d(b, a)]))


def _both(a: Any, b: Any) -> tuple[Tensor, Tensor]:
    first = a if isinstance(a, Tensor) else tensor(a, device=b.device if isinstance(b, Tensor) else None)
    return first, b if isinstance(b, Tensor) else tensor(b, device=first.device)


def allclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close, `|a - b| <= atol + rtol * |b|`, as NumPy's: True or False."""
    first, second = _both(a, b)
    return bool(first.isclose(second, rtol=rtol, atol=atol, equal_nan=equal_nan).all())


def array_equal(a: Any, b: Any, equal_nan: bool = False) -> bool:
    """Whether both have the same shape and the same elements, as NumPy's: True or False."""
    first, second = _both(a, b)
    return first.shape == second.shape and _same(first, second, equal_nan)


def array_equiv(a: Any, b: Any) -> bool:
    """Whether both have the same elements once they are broadcast to one shape, as NumPy's: True or False."""
    first, second = _both(a, b)
    try:
        np.broadcast_shapes(first.shape, second.shape)
    except ValueError:
        return False
    return _same(first, second, False)


def _same(a: Tensor, b: Tensor, equal_nan: bool) -> bool:
    same = a == b
    if equal_nan and a.dtype.kind in "fc" and b.dtype.kind in "fc":
        same = same | (isnan(a) & isnan(b))
    return bool(same.all())
