"""Kernels of fused ops and of optimisers' steps, written by the compiler from their definitions.

An op says which of its inputs have rows (`rows=("x",)`): their leading axes are taken together, (…, C) -> (N, C), and N is a
symbol of the graph, so that one plan serves every batch. All other sizes are as they come.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from .. import functions
from ..engine.backend import Array
from ..engine.graph import leaf
from ..engine.modes import enable_grad, local, no_grad
from ..engine.op import Function
from ..engine.tensor import wrap
from ..ir import Graph, Number, Tracing, Value, with_symbols
from ..ir.graph import without_unused
from ..ir.numbers import standing_for
from ..kernels.registry import FUSED, STEPS, Kernel
from ..tracer import tracing
from .cut import cut
from .plan import MOST_SIZES, Plan
from .program import differentiated, joined

__all__ = ["Generated", "GeneratedStep", "register"]

EXAMPLES = 67, 131  # rows that an op is traced with: what differs between the two traces is N


class Generated:
    """The kernel of a fused op: plans for its values and its gradients, made when arrays of a kind first come."""

    def __init__(self, op: Function, by_numba: bool = True):
        self.op, self.by_numba = op, by_numba
        self.derived: dict[Any, _Derived] = {}
        self._runs: dict[Any, _Run] = {}

    def forward(self, *arrays: Any, **attrs: Any) -> tuple[Array, tuple[Array, ...]]:
        """The output, and what the gradients need."""
        run = self._run(arrays, attrs)
        given, numbers = run.given(arrays), run.derived.numbers_from(attrs)
        kept = run.derived.cut.kept if local.mode.record else ()
        made = (run.forward if kept else run.values(given))(given, numbers)
        return made[0] if run.out is None else made[0].reshape(run.out), tuple([made[i] for i in kept])

    def backward(self, g: Array, kept: Sequence[Array], needs: Sequence[bool], *arrays: Any, **attrs: Any) -> list[Any]:
        """The gradient of each input that needs one."""
        run = self._run(arrays, attrs)
        given = run.given(arrays)
        seed = g if run.out is None else g.reshape(run.rows)
        inputs = [seed, *[given[i] for i in run.derived.cut.held], *kept]
        grads = iter(run.backward(tuple(needs), inputs)(inputs, run.derived.numbers_from(attrs)))
        return [next(grads).reshape(a.shape) if need else None for a, need in zip(arrays, needs)]

    def _run(self, arrays: Sequence[Any], attrs: dict[str, Any]) -> _Run:
        """What computes it for arrays of these shapes and dtypes."""
        fixed = (
            attrs.values()
            if not self.op.kernels.varying
            else [v for k, v in attrs.items() if k not in self.op.kernels.varying]
        )
        key = (*[None if a is None else (a.shape, a.dtype.char) for a in arrays], *fixed)
        found = self._runs.get(key)
        if found is None:
            if len(self._runs) >= MOST_SIZES:
                self._runs.clear()
            found = self._runs[key] = _Run(self, arrays, attrs)
        return found


class _Run:
    """A fused op on arrays of certain shapes: how they become rows, and the calls of its plans."""

    def __init__(self, kernel: Generated, arrays: Sequence[Any], attrs: dict[str, Any]):
        op, lead = kernel.op, arrays[0].shape[:-1] if kernel.op.kernels.rows else ()
        kinds: list[Any] = []
        self.places: list[Any] = []  # the number of each array that is given, and its shape as rows, if it has another
        for i, (a, name) in enumerate(zip(arrays, op.signature.inputs)):
            rows = name in (op.kernels.rows or ())
            shape = () if a is None else (-1, *(a.shape[len(lead) :] if a.ndim else (1,))) if rows else a.shape
            kinds.append(None if a is None else (a.dtype.char, shape[rows:], rows))
            if a is not None:
                self.places.append((i, shape if a.ndim != len(shape) else None))
        if lead and "axis" in attrs:  # the last one, however it was counted
            attrs = {**attrs, "axis": -1}
        key = (*kinds, *[(k, v) for k, v in attrs.items() if k not in op.kernels.varying])
        if key not in kernel.derived:
            kernel.derived[key] = _Derived(op, kinds, attrs, kernel.by_numba)
        self.derived = kernel.derived[key]
        given = self.given(arrays)
        self.forward = self.derived.forward.bound(given)
        _, *rest = self.derived.cut.forward.outputs[0].shape
        self.rows, self.out = (-1, *rest), (*lead, *rest) if op.kernels.rows and arrays[0].ndim != 2 else None
        self.out = self.out if arrays[0].ndim else ()
        self._values: Any = None
        self._backward: dict[Any, Any] = {}

    def given(self, arrays: Sequence[Any]) -> list[Any]:
        """The arrays as the plans take them."""
        return [arrays[i] if shape is None else arrays[i].reshape(shape) for i, shape in self.places]

    def values(self, inputs: Sequence[Array]) -> Any:
        """The call of the plan for the output alone, where no gradient will be asked for."""
        if self._values is None:
            self._values = self.derived.values.bound(inputs)
        return self._values

    def backward(self, needs: tuple[bool, ...], inputs: Sequence[Array]) -> Any:
        """The call of the plan for the gradients of some inputs."""
        found = self._backward.get(needs)
        if found is None:
            found = self._backward[needs] = self.derived.backward(needs).bound(inputs)
        return found


class _Derived:
    """The plans of an op for inputs of certain kinds: (dtype, shape without the rows, whether it has rows), or None."""

    def __init__(self, op: Any, kinds: Sequence[Any], attrs: dict[str, Any], by_numba: bool):
        self.plan = partial(Plan, by_numba=by_numba)
        self.numbers = {k: Number(lambda: 0, int, int(attrs[k])) for k in op.kernels.varying}
        traced = [self._traced(op, kinds, attrs, n) for n in (EXAMPLES if op.kernels.rows else EXAMPLES[:1])]
        graph = with_symbols(*traced) if op.kernels.rows else traced[0]
        self.cut = cut(graph, outputs=1, seeds=1)
        self.forward = self.plan(self.cut.forward)
        self.floating = [i for i, kind in enumerate(kinds) if kind is not None and np.dtype(kind[0]).kind == "f"]
        self._plans: dict[tuple[bool, ...], Plan] = {}

    def _traced(self, op: Any, kinds: Sequence[Any], attrs: dict[str, Any], n: int) -> Graph:
        """The op and its gradients: from the inputs and the gradient of the output to the output and those of the inputs."""
        arrays = [None if k is None else np.zeros((n, *k[1]) if k[2] else k[1], k[0]) for k in kinds]
        tracer, given = Tracing({}), [a for a in arrays if a is not None]
        inputs = [tracer.know(a, Value(a.shape, a.dtype)) for a in given]
        tracer.recorded.update([v for v in inputs if v.dtype.kind == "f"])
        varying = {name: standing_for(number) for name, number in self.numbers.items()}
        tensors = [None if a is None else wrap(a, leaf(a) if a.dtype.kind == "f" else None) for a in arrays]
        with enable_grad(), tracing(tracer):
            out = op(*tensors, **{**attrs, **varying})
        graph = Graph(inputs, tracer.steps, [tracer.value_of(out.data, "the result")], tracer.constants)
        return joined(*differentiated(graph, [a.dtype.kind == "f" for a in given], given))[0]

    @cached_property
    def values(self) -> Plan:
        """The plan for the output alone."""
        return self.plan(without_unused(self.cut.forward, self.cut.forward.outputs[:1], keep_inputs=True))

    def backward(self, needs: tuple[bool, ...]) -> Plan:
        """The plan for the gradients of the inputs that need one."""
        plan = self._plans.get(needs)
        if plan is None:
            wanted = [grad for i, grad in zip(self.floating, self.cut.backward.outputs) if needs[i]]
            plan = self._plans[needs] = self.plan(without_unused(self.cut.backward, wanted, keep_inputs=True))
        return plan

    def numbers_from(self, attrs: dict[str, Any]) -> dict[Number, Any]:
        """What the numbers of the graph are in a call."""
        return {number: attrs[name] for name, number in self.numbers.items()}


class GeneratedStep:
    """The step of an optimiser in one loop over a parameter and its state, written from the optimiser's own rule."""

    def __init__(self, by_numba: bool = True) -> None:
        self.by_numba = by_numba
        self._plans: dict[Any, tuple[Plan, list[Number]]] = {}
        self._now = threading.local()  # the rate, step count and scale of this call: threads share the plans

    def forward(
        self, optimizer: Any, p: Array, g: Array, state: dict[str, Any], group: dict[str, Any], scale: float
    ) -> None:
        """Change `p` and the buffers in `state`, which lie without gaps, in place."""
        buffers = optimizer.buffers(group)
        options = tuple([(k, v) for k, v in group.items() if k not in ("lr", "params", "name", "initial_lr")])
        key = (type(optimizer), p.dtype.char, options, state["step"] == 1)
        self._now.values = group["lr"], float(state["step"]), scale
        found = self._plans.get(key)
        if found is None:
            found = self._plans[key] = self._plan(optimizer, p.dtype, group, buffers)
        plan, numbers = found
        arrays = [a.reshape(-1) for a in (p, g, *[state[name] for name in buffers])]
        plan.run(arrays, {number: number.read() for number in numbers})

    def _plan(
        self, optimizer: Any, dtype: Any, group: dict[str, Any], buffers: Sequence[str]
    ) -> tuple[Plan, list[Number]]:
        numbers = [Number(self._reader(i), float, value) for i, value in enumerate(self._now.values)]
        graphs = [self._traced(optimizer, np.dtype(dtype), group, buffers, n, numbers) for n in EXAMPLES]
        graph, into = with_symbols(*[graph for graph, _ in graphs]), graphs[0][1]
        return Plan(graph, into, alone=True, by_numba=self.by_numba), list(graph.numbers())

    def _reader(self, i: int) -> Callable[[], float]:
        return lambda: self._now.values[i]

    def _traced(
        self, optimizer: Any, dtype: Any, group: Any, buffers: Sequence[str], n: int, numbers: Sequence[Number]
    ) -> tuple[Graph, dict[int, int]]:
        arrays = [np.ones(n, dtype) for _ in range(2 + len(buffers))]
        tracer = Tracing({id(a): _nowhere for a in arrays})
        inputs = [tracer.value_of(a, "the step") for a in arrays]
        lr, step, scale = [standing_for(number, dtype) for number in numbers]
        with no_grad(), tracing(tracer):
            p, g, *state = [wrap(a) for a in arrays]
            kept = {**dict(zip(buffers, state)), "step": step}
            optimizer.update(functions, p, g * scale, kept, {**group, "lr": lr})
        written = [i for i, a in enumerate(arrays) if id(a) in tracer.written]
        outputs = [tracer.value_of(arrays[i], "a write") for i in written]
        graph = Graph(inputs, tracer.steps, outputs, tracer.constants)
        return graph, dict(enumerate(written))


def _nowhere(leaves: Any) -> Any:
    raise AssertionError("arrays of a step are given to it")


def register(implementation: str) -> None:
    """Let the fused ops that say what their rows are, and optimisers' steps, be computed by generated kernels."""
    by_numba = implementation == "numba"
    kinds = "f" if by_numba else "fd"  # in float64, which is not vectorised, NumPy's kernels are as fast
    for op in FUSED.values():
        if op.kernels.rows is not None and implementation not in op.kernels:
            made = Generated(op, by_numba)
            op.kernels[implementation] = Kernel(made.forward, made.backward, _accepts(op, kinds))
    STEPS[implementation] = Kernel(GeneratedStep(by_numba).forward, None, lambda p: p.dtype.char in kinds)


def _accepts(op: Any, kinds: str) -> Callable[..., bool]:
    by_numpy = op.kernels.get("numpy")
    have_rows = [i for i, name in enumerate(op.signature.inputs) if name in (op.kernels.rows or ())]

    def accepts(*arrays: Any, **attrs: Any) -> bool:
        dtypes = {a.dtype.char for a in arrays if a is not None and a.dtype.kind == "f"}
        fits = len(dtypes) == 1 and dtypes <= set(kinds) and arrays[0].size > 0
        lead = arrays[0].shape[:-1]  # rows that are to be broadcast are left to the definition
        alike = all(arrays[i] is None or arrays[i].shape[: len(lead)] == lead for i in have_rows)
        return fits and alike and (by_numpy is None or by_numpy.accepts(*arrays, **attrs))

    return accepts
