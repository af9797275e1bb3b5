"""`mg.compile`: a function that is traced when it is first called with arguments of a kind, and runs its plan from then on.

A trace is used again only where everything it rests on is as it was: the shapes, dtypes and devices of the arguments, the
values of those that are no tensors, what the function refers to (surroundings.py), whether ops are recorded, and every
decision that was made by comparing a run-time number.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

from .. import tree
from ..engine.backend import Array, device_of, is_array
from ..engine.graph import Node
from ..engine.modes import local
from ..engine.tensor import Tensor, wrap
from ..engine.writes import writes
from ..errors import ArgumentError, describe
from ..kernels.selection import implementation
from ..ops.creation import get_default_dtype, ones
from ..tracer import tracing
from .graph import Graph
from .program import Program
from .quick import OTHERWISE, quick_way
from .sizes import with_symbols
from .surroundings import Surroundings, fingerprint_of, tensors_in
from .trace import Tracing

__all__ = ["Compiled", "compile", "trace"]

_TENSOR = object()  # stands for a tensor in the form of a result
Source = Callable[[Sequence[Any]], Any]  # from the leaves of the arguments to a Tensor or an array


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
        self._surroundings: Surroundings | None = None
        self._traces: dict[Any, list[Trace]] = {}
        self._tracing = threading.RLock()
        self._latest: Callable[[tuple[Any, ...]], Any] | None = None  # the quick way for what came last

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        mode = local.mode
        if mode.tracers:  # who watches sees every op; a compiled function within another becomes a part of it
            return self.function(*args, **kwargs)
        if self._latest is not None and not kwargs:
            result = self._latest(args)
            if result is not OTHERWISE:
                return result
        if self._surroundings is None:
            self._surroundings = Surroundings(self.function)
        given = (args, kwargs)
        leaves = list(tree.leaves(given))
        key = (
            mode.record,
            tuple([_kind(leaf) for leaf in leaves]),
            tuple(kwargs),
            self._surroundings.fingerprint(),
            get_default_dtype(),
            implementation(),
        )
        for trace in self._traces.get(key, ()):
            if all(holds() for holds in trace.decisions):
                result = trace.run(leaves)
                if not kwargs and len(leaves) == len(args):
                    self._latest = quick_way(trace, args, self._surroundings)
                return result
        with self._tracing:
            return self._trace(given, leaves, key)

    def _trace(self, given: Any, leaves: list[Any], key: Any) -> Any:
        """Run the function while it is watched; what it computes is its result, and the plan for the next call."""
        own = [_view_of(leaf) for leaf in leaves]
        sources, had_gradient = _sources(own, self._surroundings)
        tracer = Tracing(sources)
        args, kwargs = tree.unflatten(given, own)
        with tracing(tracer):
            result = self.function(*args, **kwargs)
            trace = Trace(self.name, tracer, result)
        trace.decisions += [
            _has_gradient(node, node in had_gradient) for node in tracer.grads if node not in tracer.cleared
        ]
        self._traces.setdefault(key, []).append(trace)
        return result

    def compiled_state(self) -> tuple[list[Any], Any]:
        """Nothing of its own: a function that calls this one depends on what this one refers to."""
        return [], ()

    @property
    def traces(self) -> list[Trace]:
        """All that was traced so far, the newest last."""
        return [trace for found in self._traces.values() for trace in found]

    def graph(self) -> Graph:
        """What the last trace computes."""
        return self._newest().program.graph

    def source(self) -> str:
        """The code that was written for the last trace."""
        return self._newest().source()

    def explain(self) -> str:
        """What of the last trace was fused, what was not, and why."""
        return self._newest().explain()

    def in_loops(self) -> tuple[Callable[..., Any], list[Tensor]]:
        """The last trace as a function of Tensors in which the ops of each loop are a call of their own, to be drawn; and inputs."""
        plan = next(iter(self._newest().program.plans().values()))
        inputs = [ones(*v.shape, dtype=v.dtype) for v in plan.graph.inputs]
        return named(self.name, lambda *tensors: tuple(plan.replay(tensors))), inputs

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
        values = [tracer.value_of(x.data, "the result") for x in leaves if isinstance(x, Tensor)]
        self.form = tree.map(lambda x: _TENSOR if isinstance(x, Tensor) else x, result)
        self.returned = len(values)
        self.returns_one = self.form is _TENSOR
        self.nodes: list[Node] = list(tracer.grads)
        written = [tracer.outside[key][1] for key in tracer.written]
        effects = [tracer.value_of(array, "a write") for array in tracer.written.values()]
        grads = [tracer.value_of(g, "a gradient") for g in tracer.grads.values()]
        graph = tracer.graph([*values, *effects, *grads])
        self.sources = [tracer.inputs[value] for value in graph.inputs if value in tracer.inputs]
        self.draws = tracer.draws
        self.drawn = [value for value in graph.inputs if value in tracer.draws]
        self.decisions = tracer.decisions
        self.counts = tracer.counts
        into = {self.returned + i: graph.inputs.index(value) for i, value in enumerate(written)}
        self.written = list(into.values())
        self.has_effects = bool(written or grads)
        self.program = Program(graph, name, into)

    def run(self, leaves: Sequence[Any]) -> Any:
        """The same again, for other arguments of the same kind."""
        drawn = {key: read() for key, read in self.draws.items()}
        inputs = [source(leaves) for source in self.sources] + [drawn[value] for value in self.drawn]
        numbers = self.program.numbers_from(drawn)
        made = self._run_with_effects(inputs, numbers) if self.has_effects else self.program(inputs, numbers)
        outs = iter(made)
        return tree.map(lambda x: next(outs) if x is _TENSOR else x, self.form)

    def _run_with_effects(self, inputs: Sequence[Any], numbers: dict[Any, Any]) -> list[Tensor]:
        arrays = [x.data if isinstance(x, Tensor) else x for x in inputs]
        made = self.program.plan.run(arrays, numbers)
        for state in self.counts:
            state["step"] += 1
        writes.mark_all([arrays[i] for i in self.written])
        for node, gradient in zip(self.nodes, made[self.returned :]):
            node.grad = gradient
        return [wrap(array) for array in made[: self.returned]]

    def source(self) -> str:
        """The code that was written."""
        return self.program.source()

    def explain(self) -> str:
        """What was fused, what was not, and why."""
        return self.program.explain()


def named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function under another name."""
    function.__name__ = name
    return function


def trace(function: Callable[..., Any], *args: Any, other: Sequence[Any] | None = None) -> Graph:
    """The graph of what a function computes for these arguments: its inputs are the tensors among them, and those it refers to.

    With `other` arguments of other sizes, it is traced twice, and sizes that vary are written as symbols.
    """
    graphs = []
    for given in (args, *([other] if other is not None else [])):
        compiled = Compiled(function)
        compiled(*given)
        graphs.append(compiled.graph())
    return with_symbols(*graphs) if other is not None else graphs[0]


def _kind(leaf: Any) -> Any:
    """All of an argument that a trace depends on."""
    if isinstance(leaf, Tensor):
        return Tensor, leaf.shape, leaf.dtype, device_of(leaf.data), leaf.node is not None
    if is_array(leaf):
        return Array, leaf.shape, leaf.dtype, device_of(leaf)
    return fingerprint_of(leaf)


def _view_of(leaf: Any) -> Any:
    """An argument as an object of its own: one that is given twice is traced as two."""
    if isinstance(leaf, Tensor):
        return wrap(leaf.data.view(), leaf.node)
    return leaf.view() if is_array(leaf) else leaf


def _sources(leaves: Sequence[Any], surroundings: Surroundings | None) -> tuple[dict[int, Source], set[Node]]:
    """For each array that the function may use: how to get it, or the Tensor that holds it, at each call.

    Also the nodes that have a gradient before the call.
    """
    found: dict[int, Source] = {}
    having: set[Node] = set()
    outside = list(surroundings.tensors()) if surroundings is not None else []
    for leaf in leaves:
        if not isinstance(leaf, Tensor) and not is_array(leaf):
            outside += tensors_in(leaf)
    for t in outside:
        if isinstance(t, Tensor):
            found[id(t.data)] = _always(t)
            if t.node is not None and t.node.grad is not None:
                found[id(t.node.grad)] = _gradient_of(t.node)
                having.add(t.node)
        else:
            found[id(t)] = _always(t)
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor) and leaf.node is not None and leaf.node.grad is not None:
            found[id(leaf.node.grad)] = _gradient_of(leaf.node)
            having.add(leaf.node)
        if isinstance(leaf, Tensor) or is_array(leaf):
            found[id(leaf.data if isinstance(leaf, Tensor) else leaf)] = _argument(i)
    return found, having


def _has_gradient(node: Node, expected: bool) -> Callable[[], bool]:
    """Whether a node has a gradient before the call, to which the new one is added, just as when it was traced."""
    return lambda: (node.grad is not None) == expected


def _always(t: Any) -> Source:
    return lambda leaves: t


def _argument(i: int) -> Source:
    def get(leaves: Sequence[Any]) -> Any:
        return leaves[i]

    get.position = i  # type: ignore[attr-defined]
    return get


def _gradient_of(node: Node) -> Source:
    return lambda leaves: node.grad
