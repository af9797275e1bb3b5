"""Calls of functions that numba compiled: one loop, divided among threads, or a whole graph with little work at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..engine.op import OPS
from ..errors import IndexingError, MinigradError, ShapeError
from ..runtime.threads import all_cores_busy, run_parallel, thread_count
from .cache import load
from .graph import Graph, Number, Step, Value
from .group import Group, Layout, Schedule
from .loops import Loop, describe
from .numba_source import BLOCK, HEADER, Kernel, Writer, kind_of
from .views import c_strides

__all__ = ["HEADER", "LoopCall", "WholeCall", "whole"]

PARALLEL = 100_000  # points of a loop that are worth a second thread
SMALL = 1 << 15  # additions and multiplications: below, calls cost more than the work
_JOIN: dict[str, np.ufunc] = {
    "+": np.add, "*": np.multiply, "maximum": np.maximum, "minimum": np.minimum, "or": np.logical_or, "and": np.logical_and,
}  # fmt: skip
empty = np.empty


class LoopCall:
    """One compiled loop: it takes its arrays from those that are known, and puts what it makes there."""

    def __init__(self, loop: Loop, constants: dict[Value, Any]):
        self.loop = loop
        self.kernel: Kernel = Writer(constants).function("loop", loop)
        self.function = load(HEADER + "\n\n" + self.kernel.text).loop
        self.count = loop.outer[0] if loop.outer else loop.row if loop.blocked else 1
        self.grain = BLOCK if loop.blocked else 1
        row = BLOCK if loop.blocked else loop.row
        self.scratch = [(np.dtype(dtype), rows * row) for dtype, rows in self.kernel.scratch.items()]

    @property
    def source(self) -> str:
        """The text, and the sizes that it is called with here."""
        arrays = ", ".join(f"a{k}: {v.dtype}{list(v.shape)}" for k, v in enumerate(self.kernel.arrays))
        return f"# Here over {list(self.loop.group.sizes)}, with {arrays}\n{self.kernel.text}"

    def __call__(self, known: dict[Any, Any]) -> None:
        for value in self.loop.writes:
            known[value] = empty(value.shape, value.dtype)
        arrays = [known[v] for v in self.kernel.arrays]
        numbers = [_number(x, kind, known) for x, kind in self.kernel.numbers]
        threads = 1
        if self.loop.size >= PARALLEL and not all_cores_busy():
            threads = min(thread_count(), -(-self.count // self.grain))
        share = -(-self.count // (threads * self.grain)) * self.grain
        edges = [*[min(k * share, self.count) for k in range(threads)], self.count]
        sums = [empty((threads, math.prod(s.value.shape)), s.dtype) for s in self.kernel.sums]
        jobs = [
            partial(
                self.function, edges[k], edges[k + 1], *self.kernel.ints, *numbers, *arrays, *[s[k] for s in sums],
                *[empty(size, dtype) for dtype, size in self.scratch],
            )
            for k in range(threads)
        ]  # fmt: skip
        wrong = sum(run_parallel(jobs)) if threads > 1 else jobs[0]()
        if wrong:
            raise _wrong_index(wrong)
        for total, parts in zip(self.kernel.sums, sums):
            joined = parts[0] if threads == 1 else _JOIN[kind_of(total.member)].reduce(parts, axis=0)
            known[total.value] = joined.astype(total.value.dtype, copy=False).reshape(total.value.shape)


class WholeCall:
    """A whole graph as one compiled function with its sizes in the source: what takes longest of it is the call."""

    def __init__(
        self, kernel: Kernel, loops: dict[Group, Loop], graph: Graph, roots: list[Value], constants: list[Any],
        into: Mapping[int, int],
    ):  # fmt: skip
        self.loops, self.kernel, self.constants = loops, kernel, constants
        self.source = HEADER + "\n\n" + kernel.text
        self.function = load(self.source).whole
        self.shapes = [v.shape for v in graph.inputs]
        given = set(kernel.arrays)
        self.places = [i for i, v in enumerate(graph.inputs) if v in given]
        own = [(v, r) for i, (v, r) in enumerate(zip(graph.outputs, roots)) if i not in into]
        # In the memory of an output any shape will do; the function knows the number of its axes.
        self.outputs = [(v.shape if v.ndim == r.ndim else r.shape, r.dtype) for v, r in own]
        self.reshaped = [(i, v.shape) for i, (v, r) in enumerate(own) if v.ndim != r.ndim]
        self.simple = len(self.places) == len(graph.inputs) and not constants and not kernel.numbers

    def __call__(self, arrays: Sequence[np.ndarray], numbers: Mapping[Number, Any] | None) -> list[np.ndarray]:
        outs = [empty(shape, dtype) for shape, dtype in self.outputs]
        if self.simple:
            wrong = self.function(*arrays, *outs)
        else:
            known = [_number(x, kind, numbers) for x, kind in self.kernel.numbers]
            wrong = self.function(*[arrays[i] for i in self.places], *self.constants, *known, *outs)
        if wrong:
            raise self._error(wrong, arrays)
        for i, shape in self.reshaped:
            outs[i] = outs[i].reshape(shape)
        return outs

    def _error(self, wrong: int, arrays: Sequence[np.ndarray]) -> MinigradError:
        if wrong > 0:
            return _wrong_index(wrong)
        shapes = [a.shape for a in arrays]
        return ShapeError("a compiled graph got inputs of shapes that it was not made for", self.shapes, shapes)


def whole(
    graph: Graph, schedule: Schedule, layout: Layout, needed: list[set[Value]], constants: dict[Value, Any],
    into: Mapping[int, int],
) -> WholeCall | None:  # fmt: skip
    """The graph as one function; None if there is much to compute, or a step that only its op can compute."""
    if not schedule or _work(schedule) > SMALL:
        return None
    writer = Writer(constants, literal=True)
    loops: dict[Group, Loop] = {}
    made: list[Value] = []
    read: list[Value] = []
    for k, (entry, values) in enumerate(zip(schedule, needed)):
        if isinstance(entry, Group):
            loop = loops[entry] = describe(entry, values, f"g{k}_", widen=False)
            writer.loop(loop)
            made += [*loop.writes, *loop.sums]
            read += loop.reads
        else:
            left, right = (layout.place(x) for x in entry.inputs)
            writer.matmul(left, right, entry.out, entry.inputs[0].shape[1])
            made.append(entry.out)
            read += [left[0], right[0]]
    roots = [layout.place(v)[0] for v in graph.outputs]
    in_order = [
        layout.place(v)[1:] == (0, c_strides(v.shape)) and v.size == r.size for v, r in zip(graph.outputs, roots)
    ]
    if not all(in_order) or len(set(roots)) < len(roots) or not set(roots) <= set(made):
        return None  # an output is a view of something else, or an input
    fixed = [v for v in constants if v in read and constants[v].size > 1]
    written = [(graph.inputs[to], roots[i]) for i, to in into.items()]
    targets = {target for target, _ in written}
    given = [v for v in graph.inputs if v in read or v in targets]
    outputs = [root for i, root in enumerate(roots) if i not in into]
    inner = [v for v in made if v not in set(outputs)]
    kernel = writer.whole("whole", [*given, *fixed], outputs, inner, list(loops.values()), written)
    return WholeCall(kernel, loops, graph, roots, [constants[v] for v in fixed], into)


def _work(schedule: Schedule) -> float:
    """How many elements are computed; infinite if there is a step that is no loop."""
    work = 0
    for entry in schedule:
        if isinstance(entry, Group):
            work += math.prod(entry.sizes) * len(entry.members)
        elif _is_product(entry):
            work += entry.out.size * entry.inputs[0].shape[1]
        else:
            return math.inf
    return work


def _is_product(step: Step) -> bool:
    if step.op is not OPS["matmul"] or not all(isinstance(x, Value) and x.ndim == 2 and x.size for x in step.inputs):
        return False
    return all(x.dtype == step.out.dtype and x.dtype.name in ("float32", "float64") for x in step.inputs)


def _number(x: Any, kind: str, known: Mapping[Any, Any] | None) -> Any:
    """A number as a compiled function takes it: whole ones as the 64 bits of an int64."""
    if isinstance(x, Number):
        x = x.read() if known is None else known[x]
    return ((int(x) + 2**63) % 2**64) - 2**63 if kind == "i8" else float(x)


def _wrong_index(count: int) -> IndexingError:
    return IndexingError("an index is out of range in a compiled function", got=f"{count} of them")


Compiled = Callable[..., int]
