"""Products of vectors, matrices and tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...engine.op import op
from ...errors import ArgumentError, DtypeError, ShapeError, axes_of, axis_problem, describe, is_whole
from ..composite import composite
from ..elementwise.arithmetic import power
from ..indexing.getitem import take
from ..layout.joining import stack
from ..layout.shape import reshape, transpose
from ..reductions.reduction import sum as sum_

_HALF = np.dtype("float16")


@op(formulas={"a": "g @ bᵀ", "b": "aᵀ @ g"}, cost=lambda inputs, out, attrs: 2 * out.size * inputs[0].shape[-1])
def matmul(xp, a, b):
    """The matrix product of the last two axes, with vectors and broadcasting as NumPy's `@`."""
    if b.ndim == 2 and a.ndim > 2 and a.size:  # one large product is faster than a stack of small ones
        return _product(a.reshape(-1, a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[1])
    return _product(a, b)


def _product(a, b):
    """`a @ b`, through float32 if both are float16 on the CPU, for which there is no BLAS: 40 times faster, rounded once."""
    if is_half(a) and is_half(b):
        return (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)
    return a @ b


def is_half(x: Any) -> bool:
    """Whether it is an array of float16 on the CPU."""
    return type(x) is np.ndarray and x.dtype == _HALF


def _explain_matmul(a, b):
    if not hasattr(a, "ndim") or not hasattr(b, "ndim"):
        got = f"{describe(a)}, {describe(b)}"
        return DtypeError("matmul: a number is no matrix", "vectors or matrices", got, "multiply by a number with *")
    if min(np.ndim(a), np.ndim(b)) == 0:
        return "vectors or matrices", "multiply by a number with *"
    inner = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if a.shape[-1] != inner:
        place = "second to last" if b.ndim > 1 else "only"
        fix = "transpose or reshape one of them: x.mT exchanges the last two axes"
        if a.ndim == b.ndim == 1:
            fix = "make the vectors equally long"
        return f"the last size of the first ({a.shape[-1]}) equal to the {place} size of the second ({inner})", fix
    return (
        f"batch axes that broadcast, not {a.shape[:-2]} and {b.shape[:-2]}",
        "make the sizes before the last two equal, or 1",
    )


matmul.explain = _explain_matmul


def _matmul_wrt_a(g, b, a_ndim):
    if b.ndim == 1:
        return g[..., None] * b  # (…, m), (n,) -> (…, m, n)
    if a_ndim == 1:
        return matmul(b, g[..., None])[..., 0]  # (…, n, m) @ (…, m, 1) -> (…, n)
    if b.ndim == 2:
        return _product(g, b.T) if g.ndim == 2 else matmul(g, b.T)
    return matmul(g, b.swapaxes(-1, -2))


def _matmul_wrt_b(g, a, b_ndim):
    if a.ndim == 1:
        return g * a if b_ndim == 1 else a[:, None] * g[..., None, :]  # (n, 1), (…, 1, m) -> (…, n, m)
    if b_ndim == 1:
        return matmul(a.swapaxes(-1, -2), g[..., None])[..., 0]  # (…, n, m) @ (…, m, 1) -> (…, n)
    if b_ndim == 2:
        if a.ndim > 2:
            rows = math.prod(a.shape[:-1])
            a, g = a.reshape(rows, a.shape[-1]), g.reshape(rows, g.shape[-1])
        return _product(a.T, g)
    return matmul(a.swapaxes(-1, -2), g)


matmul.vjp(a=_matmul_wrt_a, b=_matmul_wrt_b)


@composite
def dot(a, b):
    """NumPy's `dot`: a number of vectors, `@` of matrices, and for more axes the last of `a` with the second to last of `b`."""
    if not getattr(a, "ndim", 0) or not getattr(b, "ndim", 0):
        return a * b
    if a.ndim <= 2 and b.ndim <= 2:
        return matmul(a, b)
    return tensordot(a, b, axes=([-1], [-1 if b.ndim == 1 else -2]))


@composite
def vecdot(a, b, *, axis=-1):
    """The sum of products along an axis, as NumPy's."""
    if "c" in (a.dtype.kind, b.dtype.kind):
        raise ArgumentError("vecdot: complex tensors are not supported", "real numbers", f"{a.dtype} and {b.dtype}")
    return sum_(a * b, axis=axis)


@composite
def outer(a, b):
    """Every element of one vector times every element of the other, as NumPy's."""
    return reshape(a, shape=(-1, 1)) * reshape(b, shape=(1, -1))


@composite(method=False)
def tensordot(a, b, *, axes=2):
    """The sum of products over pairs of axes, as NumPy's."""
    if is_whole(axes):
        left, right = list(range(-axes, 0)), list(range(axes))
    else:
        left, right = [list(axes_of(side)) for side in axes]
    for side, x in ((left, a), (right, b)):
        if problem := axis_problem("tensordot", side, x.ndim, x.shape):
            raise problem
    left, right = [i % a.ndim for i in left], [i % b.ndim for i in right]
    if len(left) != len(right) or [a.shape[i] for i in left] != [b.shape[i] for i in right]:
        raise ShapeError(
            "tensordot: the summed axes differ",
            f"equal sizes of axes {left} and {right}",
            f"{a.shape} and {b.shape}",
            "name the pairs of axes to sum over, as in axes=([-1], [0])",
        )
    rest_a, rest_b = [i for i in range(a.ndim) if i not in left], [i for i in range(b.ndim) if i not in right]
    inner = math.prod(a.shape[i] for i in left)
    rows = reshape(transpose(a, axes=(*rest_a, *left)), shape=(math.prod(a.shape[i] for i in rest_a), inner))
    columns = reshape(transpose(b, axes=(*right, *rest_b)), shape=(inner, math.prod(b.shape[i] for i in rest_b)))
    return reshape(matmul(rows, columns), shape=(*(a.shape[i] for i in rest_a), *(b.shape[i] for i in rest_b)))


tensordot.expects = "how many axes to sum over, or a pair of lists of axes"


@composite
def inner(a, b):
    """The sum of products over the last axes, as NumPy's: (…, n), (…, n) -> (…, …)."""
    if not getattr(a, "ndim", 0) or not getattr(b, "ndim", 0):
        return a * b
    return tensordot(a, b, axes=([-1], [-1]))


@composite
def kron(a, b):
    """Kronecker's product, every element of `a` times all of `b`, as NumPy's: (n, m), (p, q) -> (n p, m q)."""
    ndim = max(a.ndim, b.ndim)
    left, right = [(1,) * (ndim - x.ndim) + tuple(x.shape) for x in (a, b)]
    grid = reshape(a, shape=tuple([m for n in left for m in (n, 1)]))  # (n, 1, m, 1) and (1, p, 1, q)
    tiles = reshape(b, shape=tuple([m for n in right for m in (1, n)]))
    return reshape(grid * tiles, shape=tuple([n * m for n, m in zip(left, right)]))


@composite
def cross(a, b, *, axis=-1):
    """The vector product of vectors with 3 elements along an axis, as NumPy's."""
    for x in (a, b):
        if problem := axis_problem("cross", axis, x.ndim, x.shape):
            raise problem
    if a.shape[axis] != 3 or b.shape[axis] != 3:
        raise ShapeError(
            "cross: a vector product needs three dimensions",
            f"size 3 on axis {axis} of both",
            f"{tuple(a.shape)} and {tuple(b.shape)}",
            "append a 0 to vectors of the plane, with mg.pad",
        )
    after, before = np.array([1, 2, 0]), np.array([2, 0, 1])
    first, second = [[take(x, indices=i, axis=axis) for i in (after, before)] for x in (a, b)]
    return first[0] * second[1] - first[1] * second[0]


@composite
def vander(a, *, N=None, increasing=False):
    """The powers of a vector as columns, the highest first unless `increasing`, as NumPy's: (n,) -> (n, N)."""
    if a.ndim != 1:
        raise ShapeError("vander: a vector is needed", "1 axis", f"shape {tuple(a.shape)}")
    powers = range(a.shape[0] if N is None else N)
    return stack([power(a, k) for k in (powers if increasing else reversed(powers))], axis=1)


@composite(listed=True, method=False)
def multi_dot(*arrays):
    """The product of several matrices in the order that takes fewest multiplications, as `numpy.linalg.multi_dot`.

    The first and the last may be vectors.
    """
    last = len(arrays) - 1
    if last < 1 or any(x.ndim != 2 and not (x.ndim == 1 and i in (0, last)) for i, x in enumerate(arrays)):
        raise ShapeError(
            "multi_dot: a chain of matrices is needed",
            "at least 2 matrices; the first and the last may be vectors",
            " and ".join(str(tuple(x.shape)) for x in arrays),
        )
    rows = [x.shape[0] if x.ndim == 2 else 1 if i == 0 else x.shape[0] for i, x in enumerate(arrays)]
    sizes = [*rows, arrays[-1].shape[1] if arrays[-1].ndim == 2 else 1]
    return _chain(arrays, _cuts(sizes), 0, last)


def _cuts(sizes):
    """For each part (i, j) of a chain of matrices, matrix k being sizes[k] × sizes[k + 1], the best place to cut it."""
    n = len(sizes) - 1
    cost, cut = {(i, i): 0 for i in range(n)}, {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            ways = [(cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            cost[i, j], cut[i, j] = min(ways)
    return cut


def _chain(arrays, cut, i, j):
    if i == j:
        return arrays[i]
    return matmul(_chain(arrays, cut, i, cut[i, j]), _chain(arrays, cut, cut[i, j] + 1, j))
