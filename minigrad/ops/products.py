"""Products of vectors, matrices and tensors."""

from __future__ import annotations

import math
import string
from typing import Any

import numpy as np

from ..engine.op import op
from ..errors import ArgumentError, DtypeError, ShapeError, axes_of, axis_problem, describe, is_whole
from .composite import composite
from .reduction import sum as sum_
from .shape import diagonal, reshape, transpose

_HALF = np.dtype("float16")


@op(formulas={"a": "g @ bᵀ", "b": "aᵀ @ g"}, cost=lambda inputs, out, attrs: 2 * out.size * inputs[0].shape[-1])
def matmul(xp, a, b):
    """The matrix product of the last two axes, with vectors and broadcasting as NumPy's `@`."""
    if b.ndim == 2 and a.ndim > 2 and a.size:  # one large product is faster than a stack of small ones
        return _product(a.reshape(-1, a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[1])
    return _product(a, b)


def _product(a, b):
    """`a @ b`, through float32 if both are float16 on the CPU, for which there is no BLAS: 40 times faster, rounded once."""
    if _is_half(a) and _is_half(b):
        return (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)
    return a @ b


def _is_half(x):
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


def _einsum_cost(inputs, out, attrs):
    sizes = {}
    for term, array in zip(attrs["subscripts"].split("->")[0].split(","), inputs):
        sizes.update(zip(term, array.shape))
    return len(inputs) * math.prod(sizes.values())


@op(cost=_einsum_cost)
def _einsum(xp, *operands, subscripts):
    """An einsum in which no operand repeats a letter, and each letter is in the result or in another operand."""
    if all(map(_is_half, operands)):
        wide = [x.astype(np.float32) for x in operands]
        return np.einsum(subscripts, *wide, optimize=True).astype(np.float16)
    return xp.einsum(subscripts, *operands, optimize=True)


@_einsum.vjp
def _einsum_rule(g, needs, operands, subscripts):
    terms, result = subscripts.split("->")
    terms = terms.split(",")
    grads = []
    for i, needed in enumerate(needs):
        others = [k for k in range(len(terms)) if k != i]
        spec = ",".join([result, *(terms[k] for k in others)]) + "->" + terms[i]
        grads.append(_einsum([g, *(operands[k] for k in others)], subscripts=spec) if needed else None)
    return grads


@composite(method=False)
def einsum(subscripts, *operands):
    """Einstein's summation, as NumPy's: `einsum("bij,bjk->bik", x, y)`."""
    terms, result, sizes = _parse_einsum(subscripts, operands)
    ready = []
    for i, x in enumerate(operands):
        letters = terms[i]
        stretched = [k for k, c in enumerate(letters) if x.shape[k] == 1 != sizes[c]]
        if stretched:  # an axis of `...` that broadcasts
            x = reshape(x, shape=tuple([n for k, n in enumerate(x.shape) if k not in stretched]))
            letters = "".join(c for k, c in enumerate(letters) if k not in stretched)
        while len(set(letters)) < len(letters):  # a repeated letter means the diagonal
            twin = next(c for c in letters if letters.count(c) > 1)
            first, second = letters.index(twin), letters.index(twin, letters.index(twin) + 1)
            x = diagonal(x, axis1=first, axis2=second)
            letters = letters[:first] + letters[first + 1 : second] + letters[second + 1 :] + twin
        others = result + "".join(t for k, t in enumerate(terms) if k != i)
        alone = tuple([k for k, c in enumerate(letters) if c not in others])
        if alone:  # a letter of this term alone is summed at once
            x = sum_(x, axis=alone)
            letters = "".join(c for c in letters if c in others)
        terms[i] = letters
        ready.append(x)
    if len(ready) == 1:  # only the order of its axes is left to change, and NumPy makes a view
        return transpose(ready[0], axes=tuple([terms[0].index(c) for c in result]))
    return _einsum(ready, subscripts=",".join(terms) + "->" + result)


def _parse_einsum(subscripts: str, operands: Any) -> tuple[list[str], str, dict[str, int]]:
    """The letters of each operand and of the result, with `...` spelled out and the result made explicit, and the size of each letter."""
    if not isinstance(subscripts, str):
        raise ArgumentError(
            "einsum: the subscripts come first", "a string such as 'ij,jk->ik'", type(subscripts).__name__
        )
    left, arrow, result = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    if not all((set(part.replace("...", "", 1)) <= set(string.ascii_letters)) for part in (*terms, result)):
        raise ArgumentError(
            "einsum: the subscripts cannot be read", "letters, commas, '...' and one '->'", repr(subscripts)
        )
    if len(terms) != len(operands):
        raise ArgumentError(
            "einsum: as many operands as terms are needed",
            f"{len(terms)} for {subscripts!r}",
            len(operands),
            "give one term for each operand",
        )
    free = [c for c in string.ascii_letters if c not in subscripts]
    widest = max([x.ndim - len(t.replace("...", "")) for t, x in zip(terms, operands) if "..." in t], default=0)
    dots = "".join(free[: max(widest, 0)])
    spelled = [
        t.replace("...", dots[len(dots) - (x.ndim - len(t) + 3) :] if x.ndim > len(t) - 3 else "")
        for t, x in zip(terms, operands)
    ]
    letters = "".join(terms).replace(".", "")
    if not arrow:
        result = "..." * ("..." in left) + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    result = result.replace("...", dots)
    sizes = _letter_sizes(subscripts, spelled, dots, operands)
    if twice := {c for c in result if result.count(c) > 1}:
        raise ArgumentError(
            "einsum: the result has a letter twice", "each letter once", f"{', '.join(sorted(twice))} in {subscripts!r}"
        )
    if unknown := set(result) - set(sizes):
        raise ArgumentError(
            "einsum: the result has a letter that no operand has",
            f"letters of {subscripts!r}",
            ", ".join(sorted(unknown)),
        )
    return spelled, result, sizes


def _letter_sizes(subscripts: str, terms: list[str], dots: str, operands: Any) -> dict[str, int]:
    """The size of each letter; of those in `dots`, which stand for `...`, the size that others stretch to."""
    sizes: dict[str, int] = {}
    for term, x in zip(terms, operands):
        if len(term) != x.ndim:
            raise ShapeError(
                "einsum: a term does not have a letter for each axis",
                f"{len(term)} axes for {term!r}",
                f"shape {x.shape}",
                "write one letter for each axis, or '...' for all the others",
            )
        for c, n in zip(term, x.shape):
            if c in dots and sizes.get(c, 1) == 1:
                sizes[c] = n
            elif n != sizes.setdefault(c, n) and not (c in dots and n == 1):
                shapes = " and ".join(str(tuple(x.shape)) for x in operands)
                raise ShapeError(
                    f"einsum: letter {c!r} has two sizes",
                    "one size for each letter",
                    f"{sizes[c]} and {n}, for {subscripts!r} with shapes {shapes}",
                    "use another letter, or transpose an operand",
                )
    return sizes


@composite
def trace(a, *, offset=0, axis1=0, axis2=1):
    """The sum of a diagonal, as NumPy's."""
    return sum_(diagonal(a, offset=offset, axis1=axis1, axis2=axis2), axis=-1)
