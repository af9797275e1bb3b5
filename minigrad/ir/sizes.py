"""Sizes that vary: a function is traced twice, with other sizes, and what differs is written in terms of the inputs' sizes.

A batch of 4 and one of 6 become `n0`; a reshape to 4·3 and 6·3 rows becomes `3*n0`. A number that differs in any other way
cannot be told for a third size, and is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import combinations_with_replacement
from typing import Any

from ..errors import ShapeError
from .graph import Graph, Number, Size, Step, Value

__all__ = ["with_symbols"]

MOST = 3  # so many sizes are multiplied at most


def with_symbols(first: Graph, second: Graph) -> Graph:
    """The first graph, with symbols for the sizes that the second, a trace of the same function, has otherwise."""
    if [s.op for s in first.steps] != [s.op for s in second.steps] or len(first.inputs) != len(second.inputs):
        raise ShapeError(
            "trace: the function computes something else for other sizes",
            f"{len(first.steps)} steps both times",
            f"{len(second.steps)} steps",
            "give sizes between which it takes the same way",
        )
    pairs: dict[tuple[int, int], str] = {}
    for a, b in zip(first.inputs, second.inputs):
        for n, m in zip(a.shape, b.shape, strict=True):
            if n != m and (n, m) not in pairs:
                pairs[n, m] = f"n{len(pairs)}"
    made: dict[Value, Value] = {}
    for a, b in zip(_values(first), _values(second), strict=True):
        made[a] = Value(_general(a.shape, b.shape, pairs, "a shape"), a.dtype, a.name)
    steps = []
    for step, other in zip(first.steps, second.steps):
        inputs = tuple([_general(x, y, pairs, step.op.name, made) for x, y in zip(step.inputs, other.inputs)])
        attrs = {k: _general(v, other.attrs[k], pairs, step.op.name, made) for k, v in step.attrs.items()}
        outputs = tuple([made[v] for v in step.outputs])
        steps.append(Step(step.op, inputs, attrs, outputs, step.scope, step.line, step.constant))
    for a, b in zip(first.constants.values(), second.constants.values(), strict=True):
        if a.shape != b.shape or a.tobytes() != b.tobytes():
            raise ShapeError("trace: a constant depends on the sizes of the inputs", a.shape, b.shape)
    constants = {made[v]: array for v, array in first.constants.items()}
    return Graph([made[v] for v in first.inputs], steps, [made[v] for v in first.outputs], constants)


def _values(graph: Graph) -> Iterator[Value]:
    yield from graph.inputs
    yield from graph.constants
    for step in graph.steps:
        yield from step.outputs


def _general(
    a: Any, b: Any, pairs: Mapping[tuple[int, int], str], where: str, made: Mapping[Value, Value] | None = None
) -> Any:
    if isinstance(a, tuple):
        return tuple([_general(x, y, pairs, where, made) for x, y in zip(a, b, strict=True)])
    if isinstance(a, slice):
        parts = [_general(getattr(a, k), getattr(b, k), pairs, where) for k in ("start", "stop", "step")]
        return slice(*parts)
    if isinstance(a, Value):
        return made[a] if made else a
    if isinstance(a, Number) or a == b:
        return a
    found = _size(a, b, pairs) if isinstance(a, int) and isinstance(b, int) else None
    if found is None:
        raise ShapeError(
            f"trace: {where} has a number that varies in a way that cannot be told from the sizes of the inputs",
            "a size of an input, a product of some, or one of these times or plus a fixed number",
            f"{a} and {b}",
        )
    return found


def _size(a: int, b: int, pairs: Mapping[tuple[int, int], str]) -> Size | None:
    """The simplest expression of the symbols that is `a` in the first trace and `b` in the second."""
    found: list[Size] = []
    for count in range(1, MOST + 1):
        for chosen in combinations_with_replacement(pairs, count):
            n, m = math.prod([p[0] for p in chosen]), math.prod([p[1] for p in chosen])
            if n == m or (a - b) % (n - m):
                continue
            factor = (a - b) // (n - m)
            found.append(Size(a, [pairs[p] for p in chosen], factor, a - factor * n))
    return min(found, key=_length, default=None)


def _length(size: Size) -> tuple[int, ...]:
    """How much is written in an expression: one more than a size is simpler than twice the square of another."""
    terms = len(size.symbols) + (size.factor != 1) + min(abs(size.offset), 2)
    return terms, abs(size.offset), len(size.symbols), abs(size.factor)
