"""How a graph runs: compiled loops where steps could be fused, the ops themselves elsewhere."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..engine.backend import Array, backend_of, device_of, is_cupy
from ..engine.modes import local
from ..engine.op import OPS
from ..engine.tensor import Tensor, wrap
from ..errors import ShapeError
from ..ir.graph import Graph, Number, Size, Step, Value, at_sizes, run_step, sizes_of
from ..ir.sizes import without_symbols
from ..kernels.selection import implementation
from .group import Group, Layout, Schedule, group
from .loops import Loop, describe
from .memory import in_place, last_uses, stored, with_own_outputs
from .simplify import simplify

__all__ = ["Plan"]

MOST_SIZES = 256  # for which the calls are remembered
Known = dict[Any, Any]
Call = Callable[[Known], None]
Run = Callable[[Sequence[np.ndarray], Mapping[Number, Any]], list[np.ndarray]]


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
        self.schedule: Schedule
        self.layout: Layout
        self.reasons: dict[Step, str] = {}
        self.calls: dict[Group, Any] = {}  # compiled loops
        self.whole: Any = None  # or all of them as one compiled function
        self._source = ""
        self._dtypes = [v.dtype for v in self.graph.inputs]
        self._makers = {out: step for step in self.graph.steps for out in step.outputs}
        self._runs: dict[Any, Run] = {}  # for inputs of these shapes
        self._on_cuda: list[
            tuple[Any, Any, list[Value]]
        ] = []  # the schedule there: a call for each loop, and last uses
        self._at: dict[Any, Plan] = {}  # of a graph with symbols, for shapes of arrays on a card
        if by_numba and implementation() == "numba":
            self.schedule, self.layout, self.reasons = group(self.graph)
            self._compile()
        else:
            self.layout = Layout(self.graph)
            self.schedule = [step for step in self.graph.steps if step.outputs[0] not in self.layout.views]

    def _compile(self) -> None:
        from . import numba_call  # which loads numba

        needed = stored(self.schedule, self.layout, self.graph)
        whole = None
        if not self.is_symbolic:
            given = self.graph, self.schedule, self.layout, needed, self.constants, self.into
            whole = self._attempt(numba_call.whole, *given)
        if whole is not None:
            self.whole, self._source, self.loops = whole, whole.source, whole.loops
            return
        self.loops = {e: describe(e, values) for e, values in zip(self.schedule, needed) if isinstance(e, Group)}
        shared = in_place(self.schedule, self.loops, self.layout, self.graph, self.into if self.alone else {})
        for entry, loop in self.loops.items():
            call = self._attempt(numba_call.LoopCall, loop, self.constants, shared[entry])
            if call is not None:
                self.calls[entry] = call
        texts = dict.fromkeys(call.source for call in self.calls.values())
        self._source = "\n\n".join([numba_call.HEADER, *texts]) if texts else ""

    def _attempt(self, make: Callable[..., Any], *given: Any) -> Any:
        """What `make` compiles; None, with a warning, if numba refuses: then the ops themselves compute."""
        from numba.core.errors import NumbaError

        try:
            return make(*given)
        except NumbaError as error:
            text = f"a loop could not be compiled, and runs op by op: {' '.join(str(error).split())[:300]}"
            warnings.warn(text, RuntimeWarning, stacklevel=4)
            return None

    def run(self, arrays: Sequence[Array], numbers: Mapping[Number, Any] | None = None) -> list[Array]:
        """The outputs for these inputs, in memory of their own; numbers that are not given are asked for."""
        if self.whole is not None:
            try:
                return self.whole(arrays, numbers)
            except TypeError:  # arrays that it is not compiled for: of another device, another dtype, or not in C order
                self._check(arrays)
                if all(type(a) is np.ndarray for a in arrays):
                    own = [_plain(a) for a in arrays]
                    made = self.whole(own, numbers)
                    for i in self.into.values():
                        arrays[i][...] = own[i]
                    return made
        if numbers is None:
            numbers = {x: x.read() for x in self.numbers}
        if self._are_for_loops(arrays):
            made = self.bound(arrays)(arrays, numbers)
        else:
            self._check(arrays)
            made = (self._run_on_cuda if any(map(is_cupy, arrays)) else self._run_steps)(arrays, numbers)
        for output, target in self.into.items():
            if made[output] is not arrays[target]:
                arrays[target][...] = made[output]
        return [array for i, array in enumerate(made) if i not in self.into] if self.into else made

    def _are_for_loops(self, arrays: Sequence[Array]) -> bool:
        """Whether there are loops that numba compiled, for these arrays."""
        return bool(self.calls) and all(type(a) is np.ndarray for a in arrays)

    def bound(self, arrays: Sequence[np.ndarray]) -> Run:
        """What computes all outputs from inputs of the shapes and dtypes of these."""
        if not self._are_for_loops(arrays):
            return self.run
        shapes = tuple([a.shape for a in arrays])
        if any(a.dtype is not dtype for a, dtype in zip(arrays, self._dtypes)):
            self._check(arrays)
        found = self._runs.get(shapes)
        if found is None:
            self._check(arrays)
            if len(self._runs) >= MOST_SIZES:
                self._runs.clear()
            found = self._runs[shapes] = self._run_for(sizes_of(self.graph, arrays))
        return found

    def _run_for(self, sizes: Mapping[str, int]) -> Run:
        calls = self._calls_for(sizes)
        own = {v for entry in self.calls for v in (*self.loops[entry].writes, *self.loops[entry].sums)}
        own |= {step.out for step in self.graph.steps if _is_product(step)}
        are_own = own.issuperset(self.graph.outputs)  # and not an input that an op returned as it is
        constants, inputs, outputs, outputs_of = self.constants, self.graph.inputs, self.graph.outputs, self._outputs

        def run(arrays: Sequence[np.ndarray], numbers: Mapping[Number, Any]) -> list[np.ndarray]:
            known: Known = {**constants, **numbers}
            for value, array in zip(inputs, arrays):
                known[value] = array if array.flags.carray else array.copy()
            for call in calls:
                call(known)
            return [known[v] for v in outputs] if are_own else outputs_of(known)

        return run

    def _calls_for(self, sizes: Mapping[str, int]) -> list[Call]:
        """All that is to be done, in order, for certain sizes."""
        calls: list[Call] = []
        ready: set[Value] = {*self.graph.inputs, *self.constants}
        unused = last_uses(self.schedule, self.layout, self.graph)
        for entry, gone in zip(self.schedule, unused):
            if entry in self.calls:
                calls.append(self.calls[entry].at(sizes, ready))
                ready.update([*self.loops[entry].writes, *self.loops[entry].sums])
            else:
                for step in [m.step for m in entry.members] if isinstance(entry, Group) else [entry]:
                    calls += self._step_calls(step, sizes, ready)
            gone = [v for v in ready if self.layout.place(v)[0] in gone]
            if gone:
                calls.append(_forget(gone))
                ready.difference_update(gone)
        return calls + [call for value in self.graph.outputs for call in self._view_calls(value, sizes, ready)]

    def _view_calls(self, value: Value, sizes: Mapping[str, int], ready: set[Value]) -> list[Call]:
        """What makes a value from what it is a view of, where it is one that is not there yet."""
        if value in ready:
            return []
        return self._step_calls(self._makers[value], sizes, ready)

    def _step_calls(self, step: Step, sizes: Mapping[str, int], ready: set[Value]) -> list[Call]:
        calls = [call for value in step.values for call in self._view_calls(value, sizes, ready)]
        ready.update(step.outputs)
        return [*calls, _step_call(step, sizes, step.outputs[0] in self.layout.views)]

    def replay(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The outputs, computed op by op; who watches is told which ops are one loop."""
        known: Known = {v: wrap(a) for v, a in self.constants.items()}
        known.update({number: number.example for number in self.numbers})
        known.update(zip(self.graph.inputs, tensors))
        tracers = local.mode.tracers
        loops = 0
        for entry in self.schedule:
            if isinstance(entry, Group):
                loops += 1
                for tracer in tracers:
                    tracer.entered(f"loop {loops} over {' × '.join(map(str, entry.sizes)) or 'one element'}", "")
            for step in [m.step for m in entry.members] if isinstance(entry, Group) else [entry]:
                for value in step.values:
                    self._view(value, known)
                known.update(zip(step.outputs, run_step(step, known)))
            if isinstance(entry, Group):
                for tracer in tracers:
                    tracer.left()
        return [self._view(value, known) for value in self.graph.outputs]

    def _check(self, arrays: Sequence[Array]) -> None:
        for value, array in zip(self.graph.inputs, arrays):
            fits = array.shape == value.shape or self.is_symbolic and len(array.shape) == value.ndim and array.size
            if not fits or array.dtype != value.dtype:
                got = f"{array.dtype}{list(array.shape)}"
                raise ShapeError("a compiled graph got an input that it was not made for", repr(value), got)

    def _run_steps(self, arrays: Sequence[Array], numbers: Mapping[Number, Any]) -> list[Array]:
        """Op by op: without numba, and for arrays of another device."""
        known = self._known(arrays, numbers)
        with np.errstate(all="ignore"):
            for step in self.graph.steps:
                known.update(zip(step.outputs, run_step(step, known)))
        return self._outputs(known)

    def _known(self, arrays: Sequence[Array], numbers: Mapping[Number, Any]) -> Known:
        """Inputs, numbers, sizes, and the constants on the device where the inputs are."""
        known: Known = {**self.constants, **numbers, **dict(zip(self.graph.inputs, arrays))}
        known.update(sizes_of(self.graph, arrays))
        there = next((a for a in arrays if type(a) is not np.ndarray), None)
        if there is not None:
            backend, device = backend_of(there), device_of(there)
            known.update({v: backend.place(a, device) for v, a in self.constants.items() if type(a) is np.ndarray})
        return known

    def _run_on_cuda(self, arrays: Sequence[Array], numbers: Mapping[Number, Any]) -> list[Array]:
        """By loops in CUDA where steps could be fused, by ops elsewhere."""
        if self.is_symbolic:
            shapes = tuple([a.shape for a in arrays])
            if shapes not in self._at:
                if len(self._at) >= MOST_SIZES:
                    self._at.clear()
                graph = without_symbols(self.graph, sizes_of(self.graph, arrays))
                self._at[shapes] = Plan(graph, by_numba=False)
            return self._at[shapes]._run_on_cuda(arrays, numbers)
        if not self._on_cuda:
            from .cuda_call import CudaLoopCall

            schedule, self.layout, _ = group(self.graph)
            needed = stored(schedule, self.layout, self.graph)
            loops = [isinstance(g, Group) and describe(g, v, widen=False) for g, v in zip(schedule, needed)]
            calls = [CudaLoopCall(loop, self.constants) if loop else None for loop in loops]
            self._on_cuda = list(zip(schedule, calls, last_uses(schedule, self.layout, self.graph)))
        known = self._known(arrays, numbers)
        for entry, call, unused in self._on_cuda:
            if call is None or not call(known):
                for step in [m.step for m in entry.members] if isinstance(entry, Group) else [entry]:
                    for value in step.values:
                        self._view(value, known)
                    known.update(zip(step.outputs, run_step(step, known)))
            for value in unused:
                known.pop(value, None)
        return self._outputs(known)

    def _view(self, value: Value, known: Known) -> Array:
        """A value, made from what it is a view of where it is one."""
        if value not in known:
            step = self._makers[value]
            for source in step.values:
                self._view(source, known)
            known[value] = run_step(step, known)[0]
        return known[value]

    def _outputs(self, known: Known) -> list[Array]:
        """The outputs in memory that nobody else has: copied where they are an input, a constant, or part of another output."""
        taken = {id(known[v]) for v in (*self.graph.inputs, *self.constants) if v in known}
        outs = []
        for i, value in enumerate(self.graph.outputs):
            root = self.layout.place(value)[0]
            maker = self._makers.get(root)
            array, memory = self._view(value, known), known.get(root)
            shared = memory is None or maker is None or maker.op.view or id(memory) in taken
            in_place = i in self.into and array is known[self.graph.inputs[self.into[i]]]
            if not in_place and (shared or value.size != root.size or not array.flags.c_contiguous):
                array = array.copy()
            else:
                taken.add(id(memory))
            outs.append(array)
        return outs

    def source(self) -> str:
        """The source of the loops, as numba compiles it, and as CUDA does where they ran on a graphics card."""
        plans = [self, *self._at.values()]
        on_cuda = dict.fromkeys(call.source for plan in plans for _, call, _ in plan._on_cuda if call)
        return "\n\n".join([*filter(None, [self._source]), *on_cuda])

    def explain(self) -> str:
        """What was fused, what was not and why, and how much memory is read and written, against op by op."""
        lines, total = [], 0
        for entry in self.schedule:
            if isinstance(entry, Group):
                loop = self.loops[entry]
                moved = sum(v.size * v.dtype.itemsize for v in (*loop.reads, *loop.writes, *loop.sums))
                shape = " × ".join(map(str, entry.sizes)) or "1"
                names = ", ".join(m.step.op.name for m in entry.members)
                lines.append(f"one loop over {shape}, {_times(loop.phases)} along each row, {_bytes(moved)}: {names}")
                first = entry.members[0].step
                if first in self.reasons:
                    lines.append(f"    {first.op.name} is not in the loop before: {self.reasons[first]}")
            else:
                moved = _moved(entry)
                lines.append(
                    f"{entry.op.name} by itself, {_bytes(moved)}: {self.reasons.get(entry, 'numba is missing')}"
                )
            total += moved
        before = sum(_moved(step) for step in self.original.steps)
        passes = f"{len(self.schedule)} pass{'es' * (len(self.schedule) != 1)}"
        lines.append(f"{passes} over {_bytes(total)} of memory; op by op, ")
        lines[-1] += f"{len(self.original.steps)} over {_bytes(before)}"
        if self.whole is not None:
            lines.append("all of it is one compiled function, since there is little to compute")
        return "\n".join(lines)


def _forget(values: Sequence[Value]) -> Call:
    def call(known: Known) -> None:
        for value in values:
            del known[value]

    return call


def _step_call(step: Step, sizes: Mapping[str, int], is_view: bool) -> Call:
    """The op of a step by itself. What is no view in the layout, as a piece of a split, gets memory that loops may write over."""
    inputs, attrs = at_sizes(step.inputs, sizes), {k: at_sizes(x, sizes) for k, x in step.attrs.items()}
    if _is_product(step) or is_view and step.out.ndim and len(step.values) == 1 == len(inputs):
        forward, out = step.op.forward, step.out

        def direct(known: Known) -> None:
            known[out] = forward(np, *[known[x] for x in inputs], **attrs)

        return direct
    step = Step(step.op, inputs, attrs, step.outputs)

    @np.errstate(all="ignore")
    def call(known: Known) -> None:
        for out, array in zip(step.outputs, run_step(step, known)):
            borrowed = step.op.view and not is_view and array.base is not None
            known[out] = (
                array if is_view or type(array) is not np.ndarray else array.copy() if borrowed else _plain(array)
            )

    return call


def _is_product(step: Step) -> bool:
    return step.op is OPS["matmul"] and all(isinstance(x, Value) and x.ndim == 2 for x in step.inputs)


def _plain(array: np.ndarray) -> np.ndarray:
    """The array, or a copy where it is not in C order, aligned and writable, as loops need it."""
    return array if array.flags.carray else array.copy()


def _moved(step: Step) -> int:
    return sum(v.size * v.dtype.itemsize for v in (*step.values, *step.outputs)) * (not step.op.view)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _bytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"
