"""How a graph runs: compiled loops where steps could be fused, the ops themselves elsewhere."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..engine.backend import Array, backend_of, device_of
from ..engine.modes import local
from ..engine.tensor import Tensor, wrap
from ..errors import ShapeError
from ..kernels.selection import implementation
from .graph import Graph, Number, Step, Value
from .graph import run_step as graph_step
from .group import Group, Layout, Schedule, group
from .loops import Loop, describe
from .memory import last_uses, stored, with_own_outputs
from .simplify import simplify
from .steps import run_step, values_of

__all__ = ["Plan"]


class Plan:
    """A graph, simplified, grouped into loops and compiled: `run` takes arrays for its inputs and gives new ones for its outputs.

    >>> import numpy as np
    >>> import minigrad as mg
    >>> from minigrad.compile import trace
    >>> plan = Plan(trace(lambda x: mg.exp(x) + 1, mg.zeros(3)))
    >>> plan.run([np.zeros(3, np.float32)])
    [array([2., 2., 2.], dtype=float32)]
    """

    def __init__(self, graph: Graph, into: Mapping[int, int] | None = None):
        self.original = graph
        self.into = dict(into or {})  # outputs, by number, that are written into an input instead of being returned
        self.graph = with_own_outputs(simplify(graph))
        self.numbers = list(graph.numbers())
        self.constants = {v: _plain(a) if isinstance(a, np.ndarray) else a for v, a in self.graph.constants.items()}
        self.loops: dict[Group, Loop] = {}
        self.schedule: Schedule
        self.layout: Layout
        self.reasons: dict[Step, str] = {}
        self._calls: dict[Group, Any] = {}  # compiled loops
        self.whole: Any = None  # or all of them as one compiled function
        self._source = ""
        self._makers = {out: step for step in self.graph.steps for out in step.outputs}
        if implementation() == "numba":
            self.schedule, self.layout, self.reasons = group(self.graph)
            self._compile()
        else:
            self.layout = Layout(self.graph)
            self.schedule = [step for step in self.graph.steps if step.outputs[0] not in self.layout.views]
        self._last_uses = last_uses(self.schedule, self.layout, self.graph)

    def _compile(self) -> None:
        from . import numba_call  # which loads numba

        needed = stored(self.schedule, self.layout, self.graph)
        whole = self._attempt(
            numba_call.whole, self.graph, self.schedule, self.layout, needed, self.constants, self.into
        )
        if whole is not None:
            self.whole, self._source, self.loops = whole, whole.source, whole.loops
            return
        for entry, values in zip(self.schedule, needed):
            if isinstance(entry, Group):
                self.loops[entry] = describe(entry, values)
        made = {entry: self._attempt(numba_call.LoopCall, loop, self.constants) for entry, loop in self.loops.items()}
        self._calls = {entry: call for entry, call in made.items() if call is not None}
        texts = dict.fromkeys(call.source for call in self._calls.values())
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
        made = self._run(arrays, numbers)
        for output, target in self.into.items():
            arrays[target][...] = made[output]
        return [array for i, array in enumerate(made) if i not in self.into]

    def _run(self, arrays: Sequence[Array], numbers: Mapping[Number, Any] | None) -> list[Array]:
        """All outputs, by loops and ops."""
        self._check(arrays)
        known: dict[Any, Any] = dict(self.constants)
        known.update({x: x.read() for x in self.numbers} if numbers is None else numbers)
        if not self._calls or not all(type(a) is np.ndarray for a in arrays):
            return self._run_steps(known, arrays)
        known.update(zip(self.graph.inputs, map(_plain, arrays)))
        for entry, unused in zip(self.schedule, self._last_uses):
            if entry in self._calls:
                self._calls[entry](known)
            else:
                for step in [m.step for m in entry.members] if isinstance(entry, Group) else [entry]:
                    self._run_opaque(step, known)
            for value in unused:
                known.pop(value, None)
        return self._outputs(known)

    def replay(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The outputs, computed op by op; who watches is told which ops are one loop."""
        known: dict[Any, Any] = {v: wrap(a) for v, a in self.constants.items()}
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
                for value in values_of(step):
                    self._view(value, known)
                known.update(zip(step.outputs, graph_step(step, known)))
            if isinstance(entry, Group):
                for tracer in tracers:
                    tracer.left()
        return [self._view(value, known) for value in self.graph.outputs]

    def _check(self, arrays: Sequence[Array]) -> None:
        for value, array in zip(self.graph.inputs, arrays):
            if tuple(array.shape) != value.shape or array.dtype != value.dtype:
                got = f"{array.dtype}{list(array.shape)}"
                raise ShapeError("a compiled graph got an input that it was not made for", repr(value), got)

    def _run_steps(self, known: dict[Any, Any], arrays: Sequence[Array]) -> list[Array]:
        """Op by op: without numba, and for arrays of another device."""
        known.update(zip(self.graph.inputs, arrays))
        there = next((a for a in arrays if type(a) is not np.ndarray), None)
        if there is not None:
            backend, device = backend_of(there), device_of(there)
            known.update({v: backend.place(a, device) for v, a in self.constants.items() if type(a) is np.ndarray})
        with np.errstate(all="ignore"):
            for step in self.graph.steps:
                known.update(zip(step.outputs, run_step(step, known)))
        return self._outputs(known)

    def _run_opaque(self, step: Step, known: dict[Any, Any]) -> None:
        for value in values_of(step):
            self._view(value, known)
        with np.errstate(all="ignore"):
            made = run_step(step, known)
        for out, array in zip(step.outputs, made):
            known[out] = _plain(array) if type(array) is np.ndarray else array

    def _view(self, value: Value, known: dict[Any, Any]) -> Array:
        """A value, made from what it is a view of where it is one."""
        if value not in known:
            step = self._makers[value]
            for source in values_of(step):
                self._view(source, known)
            known[value] = run_step(step, known)[0]
        return known[value]

    def _outputs(self, known: dict[Any, Any]) -> list[Array]:
        """The outputs in memory that nobody else has: copied where they are an input, a constant, or part of another output."""
        taken = {id(known[v]) for v in (*self.graph.inputs, *self.constants) if v in known}
        outs = []
        for value in self.graph.outputs:
            root = self.layout.place(value)[0]
            maker = self._makers.get(root)
            array, memory = self._view(value, known), known.get(root)
            shared = memory is None or maker is None or maker.op.view or id(memory) in taken
            if shared or array.size != value.size or array.size != root.size or not array.flags.c_contiguous:
                array = array.copy()
            else:
                taken.add(id(memory))
            outs.append(array)
        return outs

    def source(self) -> str:
        """The source of the loops, as numba compiles it."""
        return self._source

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


def _plain(array: np.ndarray) -> np.ndarray:
    """The array, or a copy where it is not in C order, aligned and writable, as loops need it."""
    return array if array.flags.carray else array.copy()


def _moved(step: Step) -> int:
    return sum(v.size * v.dtype.itemsize for v in (*step.values, *step.outputs)) * (not step.op.view)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _bytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"
