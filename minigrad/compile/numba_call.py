"""Calls of functions that numba compiled: one loop, divided among threads, or a whole graph with little work at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..engine.op import OPS
from ..errors import IndexingError, MinigradError, ShapeError
from ..ir.graph import Graph, Number, Step, Value, at_sizes
from ..runtime.memory import keep_freed_memory
from ..runtime.threads import all_cores_busy, run_parallel, thread_count
from .cache import load
from .group import Group, Layout, Schedule
from .loops import Loop, describe
from .numba_source import HEADER, Kernel, NumbaWriter, kind_of
from .views import c_strides

__all__ = ["HEADER", "LoopCall", "WholeCall", "whole"]

PARALLEL = 100_000  # points of a loop that are worth a second thread
GRAIN = 2048  # elements of one axis that a thread gets a multiple of
SMALL = 1 << 15  # additions and multiplications: below, calls cost more than the work
_JOIN: dict[str, np.ufunc] = {
    "+": np.add, "*": np.multiply, "maximum": np.maximum, "minimum": np.minimum, "or": np.logical_or, "and": np.logical_and,
}  # fmt: skip
empty = np.empty
Known = dict[Any, Any]


class LoopCall:
    """One compiled loop. `shared` says which of its outputs take the memory of an array that is read for the last time."""

    def __init__(self, loop: Loop, constants: dict[Value, Any], shared: Mapping[Value, Value]):
        keep_freed_memory()  # getting new pages for each result takes longer than many a loop
        self.loop, self.shared = loop, shared
        self.kernel: Kernel = NumbaWriter(constants, shared=shared).function("loop", loop)
        (made,) = load(HEADER + "\n\n" + self.kernel.text).loop.overloads.values()
        self.function = made.entry_point  # past the look at types, which are known

    @property
    def source(self) -> str:
        """The text, and the sizes that it is called with here."""
        arrays = ", ".join(f"a{k}: {v.dtype}{list(v.shape)}" for k, v in enumerate(self.kernel.arrays))
        return f"# Here over {list(self.loop.group.sizes)}, with {arrays}\n{self.kernel.text}"

    def at(self, sizes: Mapping[str, int], ready: set[Value]) -> Callable[[Known], None]:
        """The call for certain sizes: it takes its arrays from those that are known, and puts what it makes there.

        `ready` are the values that are there already: one that several loops write to is made by the first of them.
        """
        loop, kernel, function = self.loop, self.kernel, self.function
        new = [(v, at_sizes(v.shape, sizes), v.dtype) for v in loop.writes if v not in self.shared and v not in ready]
        taken = [(v, self.shared[v]) for v in loop.writes if v in self.shared]
        count = at_sizes(loop.outer[0] if loop.outer else loop.row if loop.blocked else 1, sizes)
        grain, row = GRAIN if loop.blocked else 1, at_sizes(loop.row, sizes)
        scratch = [(rows * row, np.dtype(dtype)) for dtype, rows in kernel.scratch.items()]
        sums = [(s, math.prod(at_sizes(s.value.shape, sizes)), s.dtype) for s in kernel.sums]
        shapes = [at_sizes(s.value.shape, sizes) for s in kernel.sums]
        ints = at_sizes(tuple(kernel.ints), sizes)
        numbers = [(at_sizes(x, sizes), kind) for x, kind in kernel.numbers]
        threads = min(thread_count(), -(-count // grain)) if at_sizes(loop.size, sizes) >= PARALLEL else 1

        def call(known: Known) -> None:
            for value, shape, dtype in new:
                known[value] = empty(shape, dtype)
            for value, source in taken:
                known[value] = known[source]
            given = [*ints, *[_number(x, kind, known) for x, kind in numbers], *[known[v] for v in kernel.arrays]]
            if threads == 1 or all_cores_busy():
                totals = [empty(size, dtype) for _, size, dtype in sums]
                wrong = function(0, count, *given, *totals, *[empty(size, dtype) for size, dtype in scratch])
            else:
                wrong, totals = divided(given)
            if wrong:
                raise _wrong_index(wrong)
            for (total, _, _), shape, made in zip(sums, shapes, totals):
                known[total.value] = made.astype(total.value.dtype, copy=False).reshape(shape)

        def divided(given: list[Any]) -> tuple[int, list[Any]]:
            share = -(-count // (threads * grain)) * grain
            edges = [*[min(k * share, count) for k in range(threads)], count]
            parts = [empty((threads, size), dtype) for _, size, dtype in sums]
            jobs = [
                partial(
                    function, edges[k], edges[k + 1], *given, *[part[k] for part in parts],
                    *[empty(size, dtype) for size, dtype in scratch],
                )
                for k in range(threads)
            ]  # fmt: skip
            wrong = sum(run_parallel(jobs))
            return wrong, [_JOIN[kind_of(s.member)].reduce(part, axis=0) for (s, _, _), part in zip(sums, parts)]

        return call


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
        self.targets = [(i, graph.inputs[i]) for i in into.values()]
        own = [(v, r) for i, (v, r) in enumerate(zip(graph.outputs, roots)) if i not in into]
        # In the memory of an output any shape will do; the function knows the number of its axes.
        self.outputs = [(v.shape if v.ndim == r.ndim else r.shape, r.dtype) for v, r in own]
        self.reshaped = [(i, v.shape) for i, (v, r) in enumerate(own) if v.ndim != r.ndim]

    def __call__(self, arrays: Sequence[np.ndarray], numbers: Mapping[Number, Any] | None) -> list[np.ndarray]:
        outs = [empty(shape, dtype) for shape, dtype in self.outputs]
        known = [_number(x, kind, numbers) for x, kind in self.kernel.numbers]
        wrong = self.function(
            *self.addresses(arrays), *[arrays[i] for i in self.places], *self.constants, *known, *outs
        )
        if wrong:
            raise self._error(wrong, arrays)
        for i, shape in self.reshaped:
            outs[i] = outs[i].reshape(shape)
        return outs

    def addresses(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Where the inputs are that are written to, as one array; TypeError, as from numba, for arrays of another kind."""
        for i, v in self.targets:
            if not (type(arrays[i]) is np.ndarray and arrays[i].dtype == v.dtype and arrays[i].flags.carray):
                raise TypeError("a compiled function writes into an array of another kind")
            if arrays[i].shape != v.shape:
                raise self._error(-1, arrays)
        return [np.array([arrays[i].ctypes.data for i, _ in self.targets], np.int64)] if self.targets else []

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
    writer = NumbaWriter(constants, literal=True)
    loops: dict[Group, Loop] = {}
    made: list[Value] = []
    read: list[Value] = []
    for k, (entry, values) in enumerate(zip(schedule, needed)):
        if isinstance(entry, Group):
            loop = loops[entry] = describe(entry, values, f"g{k}_", widen=False)
            writer.loop(loop)
            made += [v for v in (*loop.writes, *loop.sums) if v not in made]
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
    given = [v for v in graph.inputs if v in read and v not in targets]
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
