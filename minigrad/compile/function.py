"""`mg.compile`: a function that is traced when it is first called with arguments of a kind, and runs its plan from then on.

A trace is used again only where everything it rests on is as it was: the shapes, dtypes and devices of the arguments, the
values of those that are no tensors, what the function refers to (surroundings.py), whether ops are recorded, and every
decision that was made by comparing a run-time number.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import update_wrapper
from types import MethodType
from typing import Any

import numpy as np

from .. import tree
from ..changes import changes
from ..engine.backend import is_array
from ..engine.graph import Node
from ..engine.modes import local
from ..engine.tensor import Tensor, wrap
from ..engine.writes import writes
from ..errors import ArgumentError, describe
from ..ir.graph import Graph
from ..ir.sizes import with_symbols
from ..ir.surroundings import Held, is_called, look, look_at_argument, random_states, reads_data, sources, together
from ..ir.trace import TraceError, Tracing
from ..kernels.selection import implementation
from ..ops.creation import get_default_dtype, ones
from ..runtime.memory import without_collection
from ..tracer import tracing
from .program import Program
from .quick import OTHERWISE, Quick, quick_way
from .recognize import recognize

__all__ = ["Compiled", "compile", "trace"]

_TENSOR = object()  # stands for a tensor in the form of a result


def compile(function: Callable[..., Any]) -> Compiled:
    """A function that computes the same, faster: its ops are fused into a few loops, and so are those of its gradients.

    `function` takes and returns Tensors, also nested in lists, tuples and dicts. Modules, tensors and numbers that it refers
    to may change between calls. Use it as a decorator, or as `fast = mg.compile(function)`.

    >>> import minigrad as mg
    >>> @mg.compile
    ... def squared_distance(x, y):
    ...     return ((x - y) ** 2).sum()
    >>> squared_distance(mg.tensor([1.0, 2.0]), mg.tensor([3.0, 5.0])).item()
    13.0
    """
    if not callable(function):
        raise ArgumentError("compile: only functions can be compiled", "a function of Tensors", describe(function))
    return Compiled(function)


class Compiled:
    """A compiled function; it is called like the one it was made from."""

    def __init__(self, function: Callable[..., Any]):
        update_wrapper(self, function, updated=())
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        self._traces: dict[Any, list[Trace]] = {}
        self._tracing = threading.RLock()
        self._quick: Quick | None = None  # the quick way for what came last

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)  # of a class, it is a method

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        mode = local.mode
        if mode.tracers:  # who watches sees every op; a compiled function within another becomes a part of it
            return self.function(*args, **kwargs)
        quick = self._quick  # which another thread may change
        if quick is not None and not kwargs:
            result = quick(args, mode.record)
            if result is not OTHERWISE:
                return result
        seen, given = changes.count, (args, kwargs)
        leaves = list(tree.leaves(given))
        looks = [look(self.function), *[look_at_argument(leaf) for leaf in leaves]]
        key = tree.form(given), together(looks).state, mode.record, get_default_dtype(), implementation()
        drawn = None
        with self._tracing:  # one thread traces, and others wait for it
            found = self._traces.setdefault(key, [])
            trace = next((t for t in found if all(holds() for holds in t.decisions)), None)
            if trace is None:
                trace, result = self._trace(given, leaves)
                found += [trace] if trace else []
                if trace is None or trace.has_effects:
                    return result
                drawn = trace.first_drawn  # so that the plan, which gives the first result too, draws nothing again
                del result
        result = trace.run(leaves, drawn)
        if not kwargs:
            self._quick = quick_way(trace, args, mode.record, seen, looks)
        return result

    def _trace(self, given: Any, leaves: list[Any]) -> tuple[Trace | None, Any]:
        """Run the function while it is watched: what was traced, and its result."""
        own = [_view_of(leaf) for leaf in leaves]
        functions: set[Any] = set()  # all that may be called
        found, had_gradient, recorded = sources(self.function, own, functions)
        itself = getattr(self.function, "__func__", self.function)
        called = [f for f in functions if f is itself or is_called(f)] if not _has_data(given) else []
        for function in [f for f in called if reads_data(f.__code__)]:
            raise TraceError(
                f"compile: {function.__qualname__} reads .data, of which the compiler sees nothing",
                fix="use the tensor itself, or its detach()",
            )
        states = random_states(functions)
        tracer = Tracing(found, recorded)
        args, kwargs = tree.unflatten(given, own)
        with tracing(tracer), without_collection():
            result = self.function(*args, **kwargs)
            trace = Trace(self.name, tracer, result)
        if random_states(functions) != states:
            raise TraceError(
                f"compile: {self.name} draws random numbers of NumPy or Python, which would be the same at each call",
                fix="draw with minigrad, as mg.rand() does, or pass them as arguments",
            )
        for node in tracer.grads.keys() - tracer.cleared:  # the new gradient is added to one that is there before
            had = node in had_gradient
            trace.decisions.append(lambda node=node, had=had: (node.grad is not None) == had)  # type: ignore[misc]
        return trace, result

    def compiled_state(self) -> tuple[list[Any], Any]:
        """Nothing of its own: a function that calls this one depends on what this one refers to."""
        return [], ()

    @property
    def traces(self) -> list[Trace]:
        """All that was traced so far, the newest last."""
        return [trace for found in self._traces.values() for trace in found]

    def graph(self) -> Graph:
        """What the last trace computes."""
        return self._newest().graph

    def source(self) -> str:
        """The code that was written for the last trace."""
        return self._newest().program.source()

    def explain(self) -> str:
        """What of the last trace was fused, what was not, and why."""
        return self._newest().program.explain()

    def in_loops(self) -> tuple[Callable[..., Any], list[Tensor]]:
        """The last trace as a function of Tensors in which the ops of each loop are a call of their own, to be drawn; and inputs."""
        plan = next(iter(self._newest().program.plans().values()))
        replay = update_wrapper(lambda *tensors: tuple(plan.replay(tensors)), self, updated=())
        return replay, [ones(*v.shape, dtype=v.dtype) for v in plan.graph.inputs]

    def _newest(self) -> Trace:
        if not self.traces:
            raise ArgumentError(
                f"compile: {self.name} has not been called yet",
                fix="call it once: it is traced with its first arguments",
            )
        return self.traces[-1]


class Trace:
    """One traced call: where the inputs of its program come from, what is returned, and what is changed outside."""

    def __init__(self, name: str, tracer: Tracing, result: Any):
        leaves = list(tree.leaves(result))
        values = [tracer.result(x) for x in leaves if isinstance(x, Tensor)]
        for x in [x for x in leaves if not isinstance(x, Tensor)]:
            inside = [tracer.sources.get(id(t.data)) for t in look(x).tensors if isinstance(t, Tensor)]
            if isinstance(x, Iterator) or not all(isinstance(source, Held) for source in inside):
                raise TraceError(
                    f"compile: {name} returns an object whose tensors would be those of the first call at each call",
                    "Tensors, also in lists, tuples, dicts and dataclasses",
                    describe(x),
                )
        tracer.check_writes()
        self.form = tree.map(lambda x: _TENSOR if isinstance(x, Tensor) else x, result)
        self.returned = len(values)
        self.returns_one = self.form is _TENSOR
        self.nodes: list[Node] = list(tracer.grads)
        self.cleared = [node for node in tracer.cleared if node not in tracer.grads]
        written = [tracer.outside[key][1] for key in tracer.written]
        effects = [tracer.value_of(array, "a write") for array in tracer.written.values()]
        grads = [tracer.value_of(g, "a gradient") for g in tracer.grads.values()]
        self.graph = graph = tracer.graph([*values, *effects, *grads])
        self.sources: list[Any] = [tracer.inputs[value] for value in graph.inputs if value in tracer.inputs]
        self.draws, self.first_drawn = tracer.draws, tracer.drawn
        self.drawn = [value for value in graph.inputs if value in tracer.draws]
        self.numbers = list(graph.numbers())  # of which those that are drawn are not asked for again
        self.decisions, self.counts = tracer.decisions, tracer.counts
        into = {self.returned + i: graph.inputs.index(value) for i, value in enumerate(written)}
        self.written = list(into.values())
        self.has_effects = bool(written or grads)
        if tracer.hooks and not self.has_effects:
            raise TraceError(
                f"compile: a hook on a tensor inside {name} would not be called ({tracer.hooks[0]})",
                fix="register it on an argument, a parameter or the result, or call backward() inside",
            )
        before = {value: array for array, value in tracer.outside.values()}
        self._before = [before.get(value) for value in graph.inputs]  # what is held, as it was when last checked
        on_cpu = all(type(known.array) is np.ndarray for known in tracer.known.values())
        self.program = Program(*(recognize(graph) if on_cpu else (graph, [])), name, into)

    def run(self, leaves: Sequence[Any], drawn: dict[Any, Any] | None = None) -> Any:
        """The same again, for other arguments of the same kind, with random numbers that are `drawn` already or now."""
        if drawn is None:
            drawn = {key: read() for key, read in self.draws.items()}
        inputs = [source(leaves) for source in self.sources] + [drawn[value] for value in self.drawn]
        numbers = {number: drawn[number] if number in drawn else number.read() for number in self.numbers}
        for node in self.cleared:
            node.grad = None
        if self.has_effects:
            arrays = [x.data if isinstance(x, Tensor) else x for x in inputs]
            self._check_apart(arrays)
            made = self.program.plan.run(arrays, numbers)
            outs = iter([wrap(array) for array in made[: self.returned]])
            for state in self.counts:
                state["step"] += 1
            writes.mark_all([arrays[i] for i in self.written])
            for node, gradient in zip(self.nodes, made[self.returned :]):
                node.grad = gradient
        else:
            outs = iter(self.program(inputs, numbers))
        return tree.map(lambda x: next(outs) if x is _TENSOR else x, self.form)

    def _check_apart(self, arrays: list[Any]) -> None:
        """Refuse an array that came to share memory with one that is written to: they were traced as two."""
        new = [k for k, (array, before) in enumerate(zip(arrays, self._before)) if array is not before]
        pairs = [(i, k) for i in self.written for k in (range(len(arrays)) if i in new else new) if i != k]
        for a, b in [(arrays[i], arrays[k]) for i, k in pairs]:
            if a is b or type(a) is type(b) is np.ndarray and np.may_share_memory(a, b):
                raise TraceError(
                    "compile: an array that the function writes to shares memory with another of its inputs",
                    "arrays apart, as when the function was traced",
                    f"{a.shape} and {b.shape} {b.dtype}",
                    "pass a copy: x.clone()",
                )
        self._before = [a if isinstance(s, Held) else None for a, s in zip(arrays, (*self.sources, *self.drawn))]


def trace(function: Callable[..., Any], *args: Any, other: Sequence[Any] | None = None) -> Graph:
    """The graph of what a function computes for these arguments: its inputs are the tensors among them, and those it refers to.

    With `other` arguments of other sizes, it is traced twice, and sizes that vary are written as symbols.
    """
    compiled = Compiled(function)
    compiled(*args)
    return compiled.graph() if other is None else with_symbols(compiled.graph(), trace(function, *other))


def _has_data(given: Any) -> bool:
    """Whether something in the arguments is called `data`: then not only Tensors have it."""
    return any("data" in path for path, _ in tree.paths(given))


def _view_of(leaf: Any) -> Any:
    """An argument as an object of its own: one that is given twice is traced as two.

    An array becomes a Tensor, so that no NumPy code can look at its values unseen.
    """
    if isinstance(leaf, Tensor):
        return wrap(leaf.data.view(), leaf.node)
    return wrap(leaf.view()) if is_array(leaf) else leaf
