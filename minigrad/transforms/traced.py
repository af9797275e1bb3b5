"""A function as a graph, traced by the shapes of its arguments alone: what forward mode and batching interpret."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from .. import tree
from ..engine.backend import backend_of, owner_of
from ..engine.graph import leaf
from ..engine.modes import Mode, local, notify
from ..engine.tensor import Tensor, wrap
from ..ir.graph import Graph, Number, Step, Value
from ..ir.shapes import Shapes, hollow
from ..ir.surroundings import reads_data, sources
from ..ir.trace import TraceError
from ..random import draws, rewind
from ..tracer import is_compiling, number

__all__ = ["Traced", "TraceError", "last_uses", "trace_by_shape"]


class Traced(NamedTuple):
    """A graph, what its inputs are now, the numbers it reads, and the form of its result."""

    graph: Graph
    inputs: list[Any]  # an argument by its number among the leaves, or a Tensor or array from outside
    numbers: dict[Number, Any]
    result: Any

    def rebuilt(self, outputs: Sequence[Any]) -> Any:
        """The result, with these in the places of its Tensors."""
        found = iter(outputs)
        return tree.map(lambda x: next(found) if isinstance(x, Tensor) else x, self.result)


class Place(int):
    """The number of an argument among the leaves of all."""


class _Whole(Shapes):
    """Functions made of ops are their ops: these have rules, kernels have none."""

    def instead(self, op: Any) -> Any:
        return op.define

    def _writing(self, array: Any) -> None:
        if id(array) not in self.known or id(owner_of(array)) in self.sources:
            raise TraceError("a function that writes to tensors from outside cannot be traced by shapes")

    def _storing(self, node: Any, gradient: Any = None) -> None:
        raise TraceError("a function that fills .grad cannot be traced by shapes")

    _stored = _storing


def trace_by_shape(f: Callable[..., Any], args: Any, shapes: Sequence[tuple[int, ...] | None], moving: bool) -> Traced:
    """Trace `f(*args)`, in which the Tensors among the leaves have these shapes; nothing is computed for NumPy's arrays.

    With `moving`, all floating arguments are differentiated, otherwise those that require a gradient.
    TraceError says why a function cannot be traced: what Python decides by a value, for example.
    """
    leaves = list(tree.leaves(args))
    own = [x if shape is None else _standing_for(x, shape, moving) for x, shape in zip(leaves, shapes)]
    called = set[Any]()
    found, _, recorded = sources(f, own, called)
    if any(reads_data(function.__code__) for function in called):
        raise TraceError("a function that reads .data, of which nothing is known by shapes, cannot be traced")
    tracer = _Whole(found, recorded)
    start = draws()
    try:
        with _alone(tracer, moving or local.mode.record), np.errstate(all="ignore"):
            result = f(*tree.unflatten(args, own))
            values = [tracer.result(x) for x in tree.leaves(result) if isinstance(x, Tensor)]
        if tracer.decisions:
            raise TraceError("a function that decides by a number that changes from call to call cannot be traced")
    except TraceError:
        rewind(start)
        raise
    graph = tracer.graph(values)
    places = range(len(leaves))  # a source gives the argument itself; asked with these, it gives its number
    inputs = [tracer.drawn[v] if v in tracer.drawn else tracer.inputs[v](places) for v in graph.inputs]
    inputs = [Place(x) if type(x) is int else x for x in inputs]
    return Traced(graph, inputs, _told(tracer, graph), result)


def _told(tracer: Shapes, graph: Graph) -> dict[Number, Any]:
    """The numbers of a graph. Who traces around it is told of its constants, and of what was drawn: that is drawn anew at each call."""
    if not is_compiling():
        return {n: tracer.drawn.get(n, n.example) for n in graph.numbers()}
    if any(n.kind is float or n not in tracer.drawn for n in graph.numbers()):
        raise TraceError("a function that computes with a number that changes from call to call cannot be traced twice")
    for array in graph.constants.values():
        notify("created", array)
    found = {}
    for key, read in tracer.draws.items():
        if isinstance(key, Number):
            found[key] = number(_following(tracer.drawn[key], read).__next__)
        else:
            notify("drawn", tracer.drawn[key], read)
    return found


def _following(first: Any, read: Callable[[], Any]) -> Iterator[Any]:
    """What was drawn already, then what is drawn."""
    yield first
    while True:
        yield read()


def _standing_for(x: Any, shape: tuple[int, ...], moving: bool) -> Tensor:
    """A Tensor of this shape, and of the dtype and the device of `x`; one that requires a gradient if `x` does, or is to move."""
    data = x.data
    if type(data) is np.ndarray:
        array = hollow(shape, data.dtype)
    elif 0 in data.shape:
        array = backend_of(data).full(shape, 1, data.dtype, x.device)
    else:
        array = data[(0,) * (data.ndim - len(shape))].view()
    needs = x.node is not None or moving and data.dtype.kind == "f"
    return wrap(array, leaf(array) if needs else None)


@contextmanager
def _alone(tracer: Shapes, record: bool) -> Iterator[None]:
    """Inside, nobody else watches: what is traced does not happen yet."""
    before = local.mode
    local.mode = Mode(record, (tracer,), before.scope)
    try:
        yield
    finally:
        local.mode = before


def last_uses(graph: Graph) -> dict[Step, list[Value]]:
    """For each step the values that nobody needs after it."""
    needed, found = set(graph.outputs), dict[Step, list[Value]]()
    for step in reversed(graph.steps):
        found[step] = [v for v in (*step.values, *step.outputs) if v not in needed]
        needed.update(found[step])
    return found
