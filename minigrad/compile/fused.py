"""Kernels of fused ops and of optimisers' steps, written by the compiler from their definitions.

An op says which of its inputs have rows (`rows=("x",)`): their leading axes are taken together, (…, C) -> (N, C), and N is a
symbol of the graph, so that one plan serves every batch. All other sizes are as they come.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import functions
from ..engine.backend import Array
from ..engine.modes import local, no_grad
from ..engine.op import Function, _pick
from ..engine.tensor import Tensor, wrap
from ..ir import Graph, Number, Tracing, with_symbols
from ..ir.graph import without_unused
from ..ir.numbers import standing_for
from ..ir.surroundings import Argument
from ..kernels.registry import FUSED, STEPS, Kernel
from ..tracer import tracing
from .cut import cut
from .function import Trace
from .plan import MOST_SIZES, Plan
from .program import differentiated

__all__ = ["Generated", "GeneratedStep", "register"]

Options = dict[str, Any]
EXAMPLES = 67, 131  # rows that an op is traced with: what differs between the two traces is N


class Generated:
    """The kernel of a fused op: plans for its values and its gradients, made when arrays of a kind first come."""

    def __init__(self, op: Function, kinds: str, by_numba: bool = True):
        self.op, self.kinds, self.by_numba = op, kinds, by_numba
        self.rows, self.varying = op.kernels.rows, op.kernels.varying
        self.derived: dict[Any, _Derived] = {}
        self._runs: dict[Any, Kernel] = {}

    def accepts(self, *arrays: Any, **attrs: Any) -> Any:
        """The kernel for arrays of these shapes and dtypes; None unless they are floats of one dtype, and rows that are not broadcast."""
        fixed = {k: v for k, v in attrs.items() if k not in self.varying} if self.varying else attrs
        parts: list[Any] = [*fixed.items()]
        for a in arrays:
            parts.append(a if a is None else (a.shape, a.dtype))
        key = tuple(parts)
        kernel = self._runs.get(key)
        if kernel is None and self._fits(arrays, attrs):
            if len(self._runs) >= MOST_SIZES:
                self._runs.clear()
            run = _Run(self, arrays, attrs)
            kernel = self._runs[key] = Kernel(run.forward, run.backward, self.accepts)
        return kernel

    def _fits(self, arrays: Sequence[Any], attrs: Options) -> bool:
        dtypes = {a.dtype for a in arrays if a is not None and a.dtype.kind == "f"}
        lead, named = arrays[0].shape[:-1], zip(arrays, self.op.signature.inputs)
        alike = all(a.shape[: len(lead)] == lead for a, name in named if a is not None and name in self.rows)
        by_numpy = self.op.kernels.get("numpy")
        fits = len(dtypes) == 1 and dtypes <= {np.dtype(kind) for kind in self.kinds} and arrays[0].size > 0
        return fits and alike and (by_numpy is None or by_numpy.accepts(*arrays, **attrs))

    def forward(self, *arrays: Any, **attrs: Any) -> tuple[Array, Any]:
        """The output, and what the gradients need."""
        return self.accepts(*arrays, **attrs).forward(*arrays, **attrs)

    def backward(self, g: Array, kept: Any, needs: Sequence[bool], *arrays: Any, **attrs: Any) -> Sequence[Any]:
        """The gradient of each input that needs one."""
        return self.accepts(*arrays, **attrs).backward(g, kept, needs, *arrays, **attrs)


class _Run:
    """A fused op on arrays of certain shapes: how they become rows, and the calls of its plans."""

    def __init__(self, kernel: Generated, arrays: Sequence[Any], attrs: Options):
        lead = arrays[0].shape[:-1] if kernel.rows else ()
        kinds: list[Any] = []
        self.places: list[Any] = []  # the number of each array that is given, and its shape as rows, if it has another
        for i, (a, name) in enumerate(zip(arrays, kernel.op.signature.inputs)):
            rows = name in kernel.rows
            shape = () if a is None else (-1, *(a.shape[len(lead) :] if a.ndim else (1,))) if rows else a.shape
            kinds.append(None if a is None else (a.dtype.char, shape[rows:], rows))
            if a is not None:
                self.places.append((i, shape if a.ndim != len(shape) else None))
        if lead and "axis" in attrs:  # the last one, however it was counted
            attrs = {**attrs, "axis": -1}
        key = (*kinds, *[(k, v) for k, v in attrs.items() if k not in kernel.varying])
        if key not in kernel.derived:
            kernel.derived[key] = _Derived(kernel.op, kinds, attrs, kernel.by_numba)
        self.derived = kernel.derived[key]
        self.as_they_are = len(self.places) == len(arrays) and all(shape is None for _, shape in self.places)
        self.held, self.kept = [self.places[i] for i in self.derived.cut.held], _pick(self.derived.cut.kept)
        self.numbers = self.derived.numbers.items()
        _, *rest = self.derived.cut.forward.outputs[0].shape
        self.seed = (-1, *rest)  # the shape of the gradient of the output, as rows
        self.out = () if not arrays[0].ndim else (*lead, *rest) if kernel.rows and arrays[0].ndim != 2 else None
        self.calls: dict[Any, Any] = {}  # by what is wanted

    def forward(self, *arrays: Any, **attrs: Any) -> tuple[Array, Any]:
        """The output, and what the gradients need."""
        record, given, numbers = local.mode.record, arrays, {}
        if not self.as_they_are:
            given = tuple([arrays[i] if shape is None else arrays[i].reshape(shape) for i, shape in self.places])
        for name, number in self.numbers:
            numbers[number] = attrs[name]
        made = (self.calls.get(record) or self.bind(record, given))(given, numbers)
        kept = (numbers, *self.kept(made)) if record else None  # the engine looks at each
        return made[0] if self.out is None else made[0].reshape(self.out), kept

    def backward(self, g: Array, kept: Any, needs: Sequence[bool], *arrays: Any, **attrs: Any) -> Sequence[Any]:
        """The gradient of each input that needs one."""
        numbers, *made = kept
        given, wanted = [g if self.out is None else g.reshape(self.seed)], tuple(needs)
        for i, shape in self.held:
            given.append(arrays[i] if shape is None else arrays[i].reshape(shape))
        given += made
        grads = (self.calls.get(wanted) or self.bind(wanted, given))(given, numbers)
        if self.as_they_are and len(grads) == len(arrays):
            return grads
        found = iter(grads)
        shaped = [next(found) if need else None for need in needs]
        for i, shape in self.places:
            if shape is not None and needs[i]:
                shaped[i] = shaped[i].reshape(arrays[i].shape)
        return shaped

    def bind(self, wanted: bool | tuple[bool, ...], inputs: Sequence[Array]) -> Any:
        """The call of the plan for what is wanted, from inputs of the shapes of these."""
        self.calls[wanted] = call = self.derived.plan(wanted).bound(inputs)
        return call


class _Derived:
    """The plans of an op for inputs of certain kinds: (dtype, shape without the rows, whether it has rows), or None."""

    def __init__(self, op: Any, kinds: Sequence[Any], attrs: dict[str, Any], by_numba: bool):
        self.by_numba = by_numba
        self.numbers = {k: Number(lambda: 0, int, int(attrs[k])) for k in op.kernels.varying}
        given = {**attrs, **{name: standing_for(number) for name, number in self.numbers.items()}}
        self.floating = [i for i, kind in enumerate(kinds) if kind is not None and np.dtype(kind[0]).kind == "f"]

        def call(*tensors: Tensor) -> list[Tensor]:
            found = iter(tensors)
            return [op(*[None if kind is None else next(found) for kind in kinds], **given)]

        def traced(n: int) -> Graph:
            arrays = [np.zeros((n, *k[1]) if k[2] else k[1], k[0]) for k in kinds if k is not None]
            return differentiated(call, arrays, [a.dtype.kind == "f" for a in arrays])[0]

        graph = with_symbols(*map(traced, EXAMPLES)) if op.kernels.rows else traced(EXAMPLES[0])
        self.cut = cut(graph, outputs=1, seeds=1)
        self._plans: dict[Any, Plan] = {}

    def plan(self, wanted: bool | tuple[bool, ...]) -> Plan:
        """The plan for the output, alone or with what is kept; or for the gradients of the inputs that need one."""
        if wanted not in self._plans:
            graph = self.cut.forward if isinstance(wanted, bool) else self.cut.backward
            outputs = graph.outputs if wanted is True else graph.outputs[:1]
            if isinstance(wanted, tuple):
                outputs = [grad for i, grad in zip(self.floating, graph.outputs) if wanted[i]]
            graph = without_unused(graph, outputs, keep_inputs=True)
            self._plans[wanted] = Plan(graph, by_numba=self.by_numba)
        return self._plans[wanted]


class GeneratedStep:
    """The step of an optimiser in one loop over a parameter and its state, written from the optimiser's own rule."""

    def __init__(self, by_numba: bool = True) -> None:
        self.by_numba = by_numba
        self._plans: dict[Any, Plan] = {}
        self._now = threading.local()  # the rate, step count and scale of this call: threads share the plans

    def forward(self, optimizer: Any, p: Array, g: Array, state: Options, group: Options, scale: float) -> None:
        """Change `p` and the buffers in `state`, which lie without gaps, in place."""
        buffers = optimizer.buffers(group)
        options = tuple([(k, v) for k, v in group.items() if k not in ("lr", "params", "name", "initial_lr")])
        key = (type(optimizer), p.dtype.char, options, state["step"] == 1)
        self._now.values = group["lr"], float(state["step"]), scale
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._plan(optimizer, p.dtype, group, buffers)
        plan.run([a.reshape(-1) for a in (p, g, *[state[name] for name in buffers])])

    def _plan(self, optimizer: Any, dtype: Any, group: Options, buffers: Sequence[str]) -> Plan:
        values = enumerate(self._now.values)
        numbers = [Number(lambda i=i: self._now.values[i], float, value) for i, value in values]  # type: ignore[misc]
        lr, step, scale = [standing_for(number, dtype) for number in numbers]

        def traced(n: int) -> Trace:
            arrays = [np.ones(n, dtype) for _ in range(2 + len(buffers))]
            places: dict[int, Any] = {id(a): Argument(i) for i, a in enumerate(arrays)}
            tracer = Tracing(places)
            for a in arrays:  # also one that is not read
                tracer.value_of(a, "the step")
            with no_grad(), tracing(tracer):
                p, g, *state = [wrap(a) for a in arrays]
                kept = {**dict(zip(buffers, state)), "step": step}
                optimizer.update(functions, p, g * scale, kept, {**group, "lr": lr})
            return Trace("step", tracer, None)

        first, second = map(traced, EXAMPLES)
        graph = with_symbols(first.graph, second.graph)
        return Plan(graph, first.program.into, alone=True, by_numba=self.by_numba)


def register(implementation: str) -> None:
    """Let the fused ops that say what their rows are, and optimisers' steps, be computed by generated kernels."""
    by_numba = implementation == "numba"
    kinds = "f" if by_numba else "fd"  # in float64, which is not vectorised, NumPy's kernels are as fast
    for op in FUSED.values():
        if op.kernels.rows is not None and implementation not in op.kernels:
            made = Generated(op, kinds, by_numba)
            op.kernels[implementation] = Kernel(made.forward, made.backward, made.accepts)
    STEPS[implementation] = Kernel(GeneratedStep(by_numba).forward, None, lambda p: p.dtype.char in kinds)
