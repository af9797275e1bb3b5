"""Einstein's summation."""

from __future__ import annotations

import math
import string
from typing import Any

import numpy as np

from ...engine.op import op
from ...errors import ArgumentError, ShapeError
from ..composite import composite
from ..layout.diagonals import diagonal
from ..layout.shape import reshape, transpose
from ..reductions.reduction import sum as sum_
from .products import is_half


def _einsum_cost(inputs, out, attrs):
    sizes = {}
    for term, array in zip(attrs["subscripts"].split("->")[0].split(","), inputs):
        sizes.update(zip(term, array.shape))
    return len(inputs) * math.prod(sizes.values())


@op(cost=_einsum_cost)
def _einsum(xp, *operands, subscripts):
    """An einsum in which no operand repeats a letter, and each letter is in the result or in another operand."""
    if all(map(is_half, operands)):
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
