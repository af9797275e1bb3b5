"""Calls of functions that numba compiled: one loop, divided among threads, or a whole graph with little work at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from operator import itemgetter
from typing import Any

import numpy as np
from numba.core.errors import NumbaError

from ..engine.backend import Array
from ..engine.op import OPS
from ..ir.graph import Number, Step, Value, at_sizes
from ..runtime.memory import keep_freed_memory
from ..runtime.threads import all_cores_busy, run_parallel, thread_count
from .cache import load
from .group import Group
from .loops import Loop, describe
from .memory import stored
from .numba_source import HEADER, NumbaWriter
from .source import Call, Known, LoopCall, Run, in_pool, joined, number, wrong_index

__all__ = ["NumbaError", "NumbaLoopCall", "WholeCall", "whole"]

PARALLEL = 100_000  # points of a loop that are worth a second thread
GRAIN = 2048  # elements of one axis that a thread gets a multiple of
SMALL = 1 << 15  # additions and multiplications: below, calls cost more than the work
ALIGNED = 64  # bytes at a multiple of which a value in a pool begins
empty = np.empty


class NumbaLoopCall(LoopCall):
    """One loop as numba compiles it, for NumPy's arrays; a large one is divided among threads."""

    def __init__(self, loop: Loop, constants: dict[Value, Any], shared: Mapping[Value, Value]):
        keep_freed_memory()  # getting new pages for each result takes longer than many a loop
        super().__init__(loop, NumbaWriter(constants, shared=shared), shared)
        (made,) = load(HEADER + "\n\n" + self.text).loop.overloads.values()
        self.function = made.entry_point  # past the look at types, which are known

    def at(self, sizes: Mapping[str, int], ready: set[Value], xp: Any) -> Call:
        run, arrays, new = self.bound(sizes, [], None), _picked(self.arrays), self.new(sizes, ready)
        sums, taken = list(self.loop.sums), [(v, self.shared[v]) for v in self.loop.writes if v in self.shared]

        def call(known: Known) -> None:
            for value, shape, dtype in new:
                known[value] = empty(shape, dtype)
            for value, source in taken:
                known[value] = known[source]
            known.update(zip(sums, run(arrays(known), known)))

        return call

    def alone(self, sizes: Mapping[str, int], inputs: Sequence[Value], outputs: Sequence[Value]) -> Run | None:
        """The call as a function from all inputs of a graph to its outputs; None if it takes more, or makes others."""
        new, read = self.new(sizes, set()), [v for v in self.arrays if v in inputs]
        made = [*[v for v, _, _ in new], *self.loop.sums]
        if self.arrays != [*read, *[v for v, _, _ in new]] or {*made} != {*outputs}:
            return None
        run, in_order = self.bound(sizes, new, [inputs.index(v) for v in read]), _picked([*map(made.index, outputs)])
        return run if made == outputs else lambda arrays, numbers: in_order(run(arrays, numbers))

    def bound(self, sizes: Mapping[str, int], new: Sequence[Any], places: Sequence[int] | None) -> Run:
        """What fills arrays, in the order of `self.arrays`; it makes those that are `new`, the last, and returns them and the sums.

        With `places`, it takes the others from there, in whatever order of memory they are.
        """
        loop, function = self.loop, self.function
        count = at_sizes(loop.outer[0] if loop.outer else loop.row if loop.blocked else 1, sizes)
        grain = GRAIN if loop.blocked else 1
        sums = [(at_sizes(v.size, sizes), s.dtype) for v, s in loop.sums.items()]
        memory = [*[(shape, dtype) for _, shape, dtype in new], *sums]
        rows = [(at_sizes(loop.row, sizes), dtype) for dtype in loop.slots.values()]
        final = [(v.dtype, at_sizes(v.shape, sizes)) for v in loop.sums]
        as_they_are = all(len(shape) == 1 and s.dtype == dtype for s, (dtype, shape) in zip(loop.sums.values(), final))
        ints, numbers = at_sizes((self.ints, self.numbers), sizes)
        varies = any(isinstance(x, Number) for x, _ in numbers)
        fixed = ints if varies else (*ints, *[number(x, kind, {}) for x, kind in numbers])
        threads = min(thread_count(), -(-count // grain)) if at_sizes(loop.size, sizes) >= PARALLEL else 1

        def run(arrays: Sequence[Array], known: Mapping[Any, Any]) -> Sequence[Array]:
            given = [*fixed, *[number(x, kind, known) for x, kind in numbers]] if varies else [*fixed]
            made: list[Array] = []
            if places is None:
                given += arrays
            else:
                for i in places:
                    array = arrays[i]
                    given.append(array if array.flags.carray else array.copy())
            for shape, dtype in memory:
                made.append(empty(shape, dtype))
            if threads > 1 and not all_cores_busy():
                wrong, made[len(new) :] = divided([*given, *made[: len(new)]])
            else:
                given += made
                for size, dtype in rows:
                    given.append(empty(size, dtype))
                wrong = function(0, count, *given)
            if wrong:
                raise wrong_index(wrong)
            if not as_they_are:
                totals = [t.astype(dtype, copy=False).reshape(s) for t, (dtype, s) in zip(made[len(new) :], final)]
                made[len(new) :] = totals
            return made

        def divided(given: list[Any]) -> tuple[int, list[Any]]:
            share = -(-count // (threads * grain)) * grain
            edges = [*[min(k * share, count) for k in range(threads)], count]
            parts = [empty((threads, size), dtype) for size, dtype in sums]

            def job(k: int) -> Callable[[], int]:
                own = [*[part[k] for part in parts], *[empty(size, dtype) for size, dtype in rows]]
                return partial(function, edges[k], edges[k + 1], *given, *own)

            wrong = sum(run_parallel([job(k) for k in range(threads)]))
            return wrong, [joined(s, part) for s, part in zip(loop.sums.values(), parts)]

        return run


class WholeCall:
    """A whole graph as one compiled function with its sizes in the source: what takes longest of it is the call."""

    def __init__(self, plan: Any):
        graph, layout, into = plan.graph, plan.layout, plan.into
        writer = NumbaWriter(plan.constants, literal=True)
        made, read = dict[Value, None](), set[Value]()
        for k, (entry, values) in enumerate(zip(plan.schedule, stored(plan.schedule, layout, graph))):
            if isinstance(entry, Group):
                loop = describe(entry, values, f"g{k}_", widen=False)
                writer.loop(loop)
                made.update(dict.fromkeys((*loop.writes, *loop.sums)))
                read.update(writer.arrays_of(loop))
            else:
                left, right = (layout.place(x) for x in entry.inputs)
                writer.matmul(left, right, entry.out, entry.inputs[0].shape[1])
                made[entry.out] = None
                read.update((left[0], right[0]))
        places = [(v, layout.place(v)[0]) for v in graph.outputs]
        own = [pair for i, pair in enumerate(places) if i not in into]
        constants = {v: array for v, array in plan.constants.items() if v in read}
        self.inputs, self.constants = graph.inputs, list(constants.values())
        self.written = [(graph.outputs[i], target) for i, target in into.items()]
        self.places = [i for i, v in enumerate(graph.inputs) if v in read and i not in into.values()]
        # In the memory of an output any shape will do; the function knows the number of its axes.
        shapes = [(v.shape if v.ndim == r.ndim else r.shape, r.dtype) for v, r in own]
        self.made, self.reshaped = [v for v, _ in own], any(v.ndim != r.ndim for v, r in own)
        # Gradients, which come after what is written, share memory until someone asks for them.
        alone = min(into, default=len(own))
        self.outputs, pooled = shapes[:alone], shapes[alone:]
        ends = [*accumulate([-(-math.prod(shape) * dtype.itemsize // ALIGNED) * ALIGNED for shape, dtype in pooled])]
        self.pool = [(start, *kind) for start, kind in zip([0, *ends], pooled)]
        self.pool_size = max(ends, default=0)
        roots = [root for _, root in own]
        given, outputs = [*[graph.inputs[i] for i in self.places], *constants], roots[:alone]
        copied = [(graph.inputs[to], places[i][1]) for i, to in into.items()]
        inner = [v for v in made if v not in roots]
        pool = {root: start for root, (start, _, _) in zip(roots[alone:], self.pool)}
        self.source = HEADER + "\n\n" + writer.whole(given, outputs, inner, copied, pool)
        self.numbers = writer.passed()
        self.function = load(self.source).whole

    def __call__(self, known: Known) -> None:
        """Make all outputs from inputs in C order; one that belongs into an input is that input."""
        arrays = [known[v] for v in self.inputs]
        outs = [empty(shape, dtype) for shape, dtype in self.outputs]
        numbers = [number(x, kind, known) for x, kind in self.numbers]
        given = [arrays[i] for i in self.places]
        pool = [empty(self.pool_size, np.uint8)] if self.pool else []
        wrong = self.function(*self.addresses(arrays), *given, *self.constants, *numbers, *pool, *outs)
        if wrong:
            raise wrong_index(wrong)
        for value, out in zip(self.made, outs + [in_pool(pool, *place) for place in self.pool]):
            known[value] = out.reshape(value.shape) if self.reshaped else out
        for value, target in self.written:
            known[value] = arrays[target]

    def addresses(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Where the inputs are that are written to, as one array."""
        return [np.array([arrays[i].ctypes.data for _, i in self.written], np.int64)] if self.written else []


def whole(plan: Any) -> WholeCall | None:
    """A plan as one function; None if there is much to compute, or a step that only its op can compute."""
    return WholeCall(plan) if plan.schedule and sum(map(_work, plan.schedule)) <= SMALL else None


def _work(entry: Group | Step) -> float:
    """How many elements are computed; infinite for a step that is neither a loop nor a product of matrices."""
    if isinstance(entry, Group):
        return math.prod(entry.sizes) * len(entry.members)
    given, out = entry.inputs, entry.outputs[0]
    is_product = entry.op is OPS["matmul"] and out.dtype.name in ("float32", "float64")
    if is_product and all(isinstance(x, Value) and x.ndim == 2 and x.size and x.dtype == out.dtype for x in given):
        return out.size * given[0].shape[1]
    return math.inf


def _picked(keys: Sequence[Any]) -> Callable[[Any], Sequence[Any]]:
    """A fast function from all that is known to some of it."""
    return itemgetter(*keys) if len(keys) > 1 else lambda known: [known[key] for key in keys]
