"""How a graph runs: compiled loops where steps could be fused, the ops themselves elsewhere."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..engine.backend import Array, backend_of, device_of, is_array, is_cupy, on_device_of
from ..engine.modes import local
from ..engine.op import OPS
from ..engine.tensor import Tensor, wrap
from ..errors import ShapeError
from ..ir.graph import Graph, Number, Size, Step, Value, at_sizes, run_step, sizes_of
from ..kernels.selection import implementation
from ..runtime.memory import without_collection
from .group import Group, Layout, Schedule, group, text_of
from .loops import Loop, describe
from .memory import in_place, last_uses, stored, with_own_outputs
from .numba_source import HEADER
from .simplify import simplify
from .source import Call, Known, LoopCall, Run

__all__ = ["Plan"]

MOST_SIZES = 256  # for which the calls are remembered


class Plan:
    """A graph, simplified, grouped into loops and compiled: `run` takes arrays for its inputs and gives new ones for its outputs.

    >>> import numpy as np
    >>> import minigrad as mg
    >>> from minigrad.compile import trace
    >>> plan = Plan(trace(lambda x: mg.exp(x) + 1, mg.zeros(3)))
    >>> plan.run([np.zeros(3, np.float32)])
    [array([2., 2., 2.], dtype=float32)]
    """

    def __init__(self, graph: Graph, into: Mapping[int, int] | None = None, alone: bool = False, by_numba: bool = True):
        self.original = graph
        self.alone = alone  # whether no two inputs ever share memory: then the loops themselves may write into them
        self.is_symbolic = any(isinstance(n, Size) for v in graph.inputs for n in v.shape)
        self.into = dict(into or {})  # outputs, by number, that are written into an input instead of being returned
        self.graph = with_own_outputs(simplify(graph))
        self.numbers = list(graph.numbers())
        self.constants = {v: _plain(a) if isinstance(a, np.ndarray) else a for v, a in self.graph.constants.items()}
        self.loops: dict[Group, Loop] = {}
        self.calls: dict[Group, Any] = {}  # these loops, as numba compiled them
        self.whole: Any = None  # or all of them as one compiled function
        self.reasons: dict[Step, str] = {}
        self.layout = Layout(self.graph)
        self.schedule: Schedule = [step for step in self.graph.steps if step.outputs[0] not in self.layout.views]
        self._on_cuda: tuple[Schedule, dict[Group, LoopCall]] | None = None
        self._dtypes = [v.dtype for v in self.graph.inputs]
        self._makers = self.graph.producers()
        self._runs: dict[Any, Run] = {}  # for inputs of these types and shapes
        if by_numba and implementation() == "numba":
            self.schedule, self.layout, self.reasons = group(self.graph)
            self._compile()

    def _compile(self) -> None:
        from . import numba_call  # which loads numba

        self.loops = self._described(self.schedule)
        try:
            self.whole = None if self.is_symbolic else numba_call.whole(self)
            if self.whole is None:
                shared = in_place(self.schedule, self.loops, self.layout, self.graph, self.into if self.alone else {})
                make = numba_call.NumbaLoopCall
                self.calls = {e: make(loop, self.constants, shared[e]) for e, loop in self.loops.items()}
        except numba_call.NumbaError as error:
            _warn(error)

    def _for_cuda(self) -> tuple[Schedule, dict[Group, LoopCall]]:
        """The schedule for CuPy's arrays, and its loops."""
        if self._on_cuda is None:
            from .cuda import CudaLoopCall

            schedule, _, _ = group(self.graph)
            loops = self._described(schedule, widen=False)
            calls: dict[Group, LoopCall] = {}
            try:
                calls = {e: CudaLoopCall(loop, self.constants) for e, loop in loops.items()}
            except Exception as error:
                if type(error).__name__ != "CompileException":  # of CuPy, which is not imported here
                    raise
                _warn(error)
            self._on_cuda = schedule, calls
        return self._on_cuda

    def _described(self, schedule: Schedule, widen: bool = True) -> dict[Group, Loop]:
        pairs = zip(schedule, stored(schedule, self.layout, self.graph))
        return {e: describe(e, values, widen=widen) for e, values in pairs if isinstance(e, Group)}

    def run(self, arrays: Sequence[Array], numbers: Mapping[Number, Any] | None = None) -> list[Array]:
        """The outputs for these inputs, in memory of their own; numbers that are not given are asked for."""
        if numbers is None:
            numbers = {x: x.read() for x in self.numbers}
        made = self.bound(arrays)(arrays, numbers)
        for output, target in self.into.items():
            if made[output] is not arrays[target]:
                arrays[target][...] = made[output]
        return [array for i, array in enumerate(made) if i not in self.into]

    def bound(self, arrays: Sequence[Array]) -> Run:
        """What computes all outputs from inputs of the types, shapes and dtypes of these."""
        key = tuple([(type(a), a.shape) for a in arrays])
        found = self._runs.get(key)
        if found is None or any(a.dtype is not dtype for a, dtype in zip(arrays, self._dtypes)):
            self._check(arrays)
        if found is None:
            if len(self._runs) >= MOST_SIZES:
                self._runs.clear()
            with without_collection():
                found = self._runs[key] = self._bind(arrays)
        return found

    def _check(self, arrays: Sequence[Array]) -> None:
        for value, array in zip(self.graph.inputs, arrays):
            fits = array.shape == value.shape or self.is_symbolic and len(array.shape) == value.ndim and array.size
            if not fits or array.dtype != value.dtype:
                got = f"{array.dtype}{list(array.shape)}"
                raise ShapeError("a compiled graph got an input that it was not made for", repr(value), got)

    def _bind(self, arrays: Sequence[Array]) -> Run:
        """All calls for arrays like these, in order: of loops for NumPy's and CuPy's, of ops alone for those of other devices."""
        there = next((a for a in arrays if type(a) is not np.ndarray), None)
        schedule, loops = self.schedule, self.calls if there is None else {}
        if any(map(is_cupy, arrays)):
            schedule, loops = self._for_cuda()
        xp = np if there is None else backend_of(there).xp
        sizes = sizes_of(self.graph, arrays)
        entries = self._entries(schedule, loops, sizes, xp)
        is_whole = self.whole is not None and there is None
        calls = [self.whole] if is_whole else [call for _, made in entries for call in made]
        constants, inputs, outputs = self.constants, self.graph.inputs, self.graph.outputs
        if there is None and len(schedule) == len(self.calls) == 1:
            (loop,) = self.calls.values()
            if (direct := loop.alone(sizes, inputs, outputs)) is not None:
                return direct

        def run(arrays: Sequence[Array], numbers: Mapping[Any, Any]) -> list[Array]:
            known: Known = {**constants, **numbers}
            for value, array in zip(inputs, arrays):
                known[value] = array if there is not None or array.flags.carray else array.copy()
            for call in calls:
                call(known)
            return [known[v] for v in outputs]

        def run_there(arrays: Sequence[Array], numbers: Mapping[Any, Any]) -> list[Array]:
            array = next(a for a in arrays if type(a) is not np.ndarray)
            backend, device = backend_of(array), device_of(array)
            own = {v: backend.place(a, device) for v, a in constants.items() if type(a) is np.ndarray}
            with on_device_of(array):
                return run(arrays, {**numbers, **own})

        return run if there is None else run_there

    def _entries(
        self, schedule: Schedule, loops: Mapping[Group, LoopCall], sizes: Mapping[str, int], xp: Any
    ) -> Iterator[tuple[Any, list[Call]]]:
        """The calls for each entry of a schedule: of its loop if there is one, else of its ops; last those that make outputs."""
        ready: set[Value] = {*self.graph.inputs, *self.constants}
        for entry, unused in zip(schedule, last_uses(schedule, self.layout, self.graph)):
            if isinstance(entry, Group) and entry in loops:
                calls = [loops[entry].at(sizes, ready, xp)]
                ready.update([*loops[entry].loop.writes, *loops[entry].loop.sums])
            else:
                made = [m.step.out for m in entry.members] if isinstance(entry, Group) else entry.outputs
                calls = self._calls_for(made, sizes, ready, xp)
            gone = [v for v in ready if self.layout.place(v)[0] in unused]
            if gone:
                calls.append(partial(_forget, gone))
                ready.difference_update(gone)
            yield entry, calls
        yield None, self._calls_for(self.graph.outputs, sizes, ready, xp)

    def _calls_for(self, values: Iterable[Value], sizes: Mapping[str, int], ready: set[Value], xp: Any) -> list[Call]:
        """The ops that make these values, and before them the views that they look at, where these are not there yet."""
        calls = []
        for value in values:
            if value not in ready:
                step = self._makers[value]
                calls += self._calls_for(step.values, sizes, ready, xp)
                calls.append(_step_call(step, sizes, value in self.layout.views, xp))
                ready.update(step.outputs)
        return calls

    def replay(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The outputs, computed op by op; who watches is told which ops are one loop."""
        known: Known = {number: number.example for number in self.numbers}
        known |= {**{v: wrap(a) for v, a in self.constants.items()}, **dict(zip(self.graph.inputs, tensors))}
        loops = 0
        for entry, calls in self._entries(self.schedule, {}, sizes_of(self.graph, tensors), None):
            loops += isinstance(entry, Group)
            tracers = local.mode.tracers if isinstance(entry, Group) else ()
            for tracer in tracers:
                tracer.entered(f"loop {loops} over {text_of(entry.sizes)}", "")
            for call in calls:
                call(known)
            for tracer in tracers:
                tracer.left()
        return [known[value] for value in self.graph.outputs]

    def source(self) -> str:
        """The source of the loops, as numba compiles it, and as CUDA does where they ran on a graphics card."""
        texts = [HEADER, *[call.source for call in self.calls.values()]] if self.calls else []
        texts += [] if self.whole is None else [self.whole.source]
        texts += [] if self._on_cuda is None else [call.source for call in self._on_cuda[1].values()]
        return "\n\n".join(dict.fromkeys(texts))

    def explain(self) -> str:
        """What was fused, what was not and why, and how much memory is read and written, against op by op."""
        lines, total = [], 0
        for entry in self.schedule:
            if isinstance(entry, Group):
                loop, first = self.loops[entry], entry.members[0].step
                moved = _size(*loop.reads, *loop.writes, *loop.sums)
                names = ", ".join(m.step.op.name for m in entry.members)
                times = "once" if loop.phases == 1 else f"{loop.phases} times"
                lines.append(f"one loop over {text_of(entry.sizes)}, {times} along each row, {_bytes(moved)}: {names}")
                if first in self.reasons:
                    lines.append(f"    {first.op.name} is not in the loop before: {self.reasons[first]}")
            else:
                moved, reason = _moved(entry), self.reasons.get(entry, "numba is missing")
                lines.append(f"{entry.op.name} by itself, {_bytes(moved)}: {reason}")
            total += moved
        before = sum(_moved(step) for step in self.original.steps)
        passes = f"{len(self.schedule)} pass{'es' * (len(self.schedule) != 1)} over {_bytes(total)} of memory"
        lines.append(f"{passes}; op by op, {len(self.original.steps)} over {_bytes(before)}")
        if self.whole is not None:
            lines.append("all of it is one compiled function, since there is little to compute")
        return "\n".join(lines)


def _warn(error: Exception) -> None:
    text = f"a loop could not be compiled, and all runs op by op: {' '.join(str(error).split())[:300]}"
    warnings.warn(text, RuntimeWarning, stacklevel=4)


def _forget(values: Sequence[Value], known: Known) -> None:
    for value in values:
        del known[value]


def _step_call(step: Step, sizes: Mapping[str, int], is_view: bool, xp: Any) -> Call:
    """The op of a step by itself. What is no view in the layout, as a piece of a split, gets memory that loops may write over."""
    inputs, attrs = at_sizes(step.inputs, sizes), {k: at_sizes(x, sizes) for k, x in step.attrs.items()}
    is_product = step.op is OPS["matmul"] and all(isinstance(x, Value) and x.ndim == 2 for x in inputs)
    if xp is np and (is_product or is_view and step.out.ndim and len(step.values) == 1 == len(inputs)):
        forward, out = step.op.forward, step.out

        def direct(known: Known) -> None:
            known[out] = forward(np, *[known[x] for x in inputs], **attrs)

        return direct
    step = Step(step.op, inputs, attrs, step.outputs)

    @np.errstate(all="ignore")
    def call(known: Known) -> None:
        for out, array in zip(step.outputs, run_step(step, known)):
            if not is_view and is_array(array):
                array = array.copy() if any(_may_share(array, known[v]) for v in step.values) else _plain(array)
            known[out] = array

    return call


def _may_share(a: Array, b: Array) -> bool:
    """Whether an array may lie in the memory of another."""
    both_numpy = type(a) is type(b) is np.ndarray
    return a is b or (np.may_share_memory(a, b) if both_numpy else getattr(a, "base", None) is not None)


def _plain(array: Array) -> Array:
    """The array, or, if it is NumPy's and not in C order, aligned and writable, as loops need it, a copy."""
    return array.copy() if type(array) is np.ndarray and not array.flags.carray else array


def _moved(step: Step) -> int:
    return 0 if step.op.view else _size(*step.values, *step.outputs)


def _size(*values: Value) -> int:
    return sum(v.size * v.dtype.itemsize for v in values)


def _bytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"
