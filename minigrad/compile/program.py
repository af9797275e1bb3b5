"""A traced function that can run, and be differentiated: plans for its values, and for its gradients, made when first needed.

Gradients come from the very rules of the ops. The graph is replayed on Tensors and swept back while a tracer watches; what
it saw, forward and backward in one graph, is cut in two (cut.py).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import compress
from typing import Any

from numpy import asarray, errstate, generic, ndarray

from ..engine.backend import Array
from ..engine.graph import Node, leaf, sweep
from ..engine.modes import enable_grad, local, notify
from ..engine.op import Plan as EnginePlan
from ..engine.op import _output
from ..engine.tensor import Tensor, wrap
from ..ir.graph import Graph, Number, Value, without_unused
from ..ir.numbers import standing_for
from ..ir.shapes import Shapes, hollow
from ..runtime.memory import without_collection
from ..tracer import tracing
from .cut import cut
from .plan import Plan

__all__ = ["Program"]

Numbers = dict[Number, Any]
Joint = tuple[Graph, list[bool], list[bool]]


class Program:
    """A graph as a function of Tensors: `program(inputs)` gives its outputs, recorded if an input needs a gradient."""

    view = False

    def __init__(self, graph: Graph, notes: Sequence[str], name: str, into: dict[int, int] | None = None):
        self.graph = graph
        self.notes = notes  # what `explain` says before all else
        self.into = into or {}
        self.name = name
        self.several = len(graph.outputs) > 1
        self._plan: Plan | None = None
        self._derivatives: dict[tuple[bool, ...], Derivative] = {}
        self._planning = threading.RLock()  # one thread makes a plan, and others wait for it

    def plans(self) -> dict[str, Plan]:
        """All plans that were made, by what they compute."""
        found = {} if self._plan is None else {"values": self._plan}
        for number, derivative in enumerate(self._derivatives.values()):
            which = f" {number + 1}" if number else ""
            found |= {f"forward{which}": derivative.forward_plan, f"backward{which}": derivative.backward_plan}
        return found or {"values": self.plan}

    def source(self) -> str:
        """The code of all plans."""
        return "\n\n".join(f"# {name} of {self.name}\n{plan.source()}" for name, plan in self.plans().items())

    def explain(self) -> str:
        """What each plan fuses, what it does not, and why."""
        parts = [f"{name} of {self.name}\n{plan.explain()}" for name, plan in self.plans().items()]
        return "\n\n".join(["\n".join(self.notes), *parts] if self.notes else parts)

    @property
    def plan(self) -> Plan:
        """What computes the outputs where nothing is recorded."""
        with self._planning:
            if self._plan is None:
                self._plan = Plan(self.graph, self.into)
        return self._plan

    def replay(self, *tensors: Tensor) -> list[Any]:
        """The outputs, op by op, for who watches."""
        constants = {v: wrap(array) for v, array in self.graph.constants.items()}  # an op of arrays alone is not traced
        for t in constants.values():
            notify("created", t.data)
        return replace(self.graph, constants=constants).replay(tensors, standing_for)

    def __call__(self, inputs: Sequence[Any], numbers: Numbers) -> list[Tensor]:
        """The outputs for Tensors or arrays, one for each input of the graph, and its numbers."""
        arrays = [x.data if isinstance(x, Tensor) else x for x in inputs]
        needs = tuple([isinstance(x, Tensor) and x.node is not None for x in inputs])
        if not local.mode.record or not any(needs):
            return [wrap(out) for out in self.plan.run(arrays, numbers)]
        with self._planning:
            if needs not in self._derivatives:
                with without_collection():
                    self._derivatives[needs] = Derivative(self, needs, arrays)
        return self._derivatives[needs].forward(inputs, arrays, numbers)


class Derivative(EnginePlan):
    """The program for one set of inputs that need gradients: a plan forward, a plan backward, and what lies between."""

    def __init__(self, program: Program, needs: tuple[bool, ...], arrays: Sequence[Array]):
        self.op: Any = program
        self.needs = needs
        self.names = ["inputs", "kept", "all inputs", "numbers"]
        self.keep, self.by_kernel, self.output_index = None, False, None
        self.rules = [(-1, self._pull, tuple)]
        self.graph, self.seeded, self.reached = differentiated(program.replay, arrays, needs)
        self.cut = cut(self.graph, len(self.seeded), sum(self.seeded))
        self.forward_plan, self.backward_plan = Plan(self.cut.forward), Plan(self.cut.backward)

    def forward(self, inputs: Sequence[Any], arrays: Sequence[Array], numbers: Numbers) -> list[Tensor]:
        """Compute and record."""
        made, seeded = self.forward_plan.run(arrays, numbers), self.seeded
        outs, kept = made[: len(seeded)], tuple([made[i] for i in self.cut.kept])
        parents = tuple([x.node if need else None for x, need in zip(inputs, self.needs)])
        saved = (tuple([arrays[i] for i in self.cut.held]), kept, list(arrays), numbers)
        shapes, dtypes = tuple([o.shape for o in outs]), tuple([o.dtype for o in outs])
        if not self.op.several:
            node = Node(self, parents, saved, {}, shapes[0], dtypes[0], local.mode.scope)
            return [wrap(outs[0], node if seeded[0] else None)]
        node = Node(self, parents, saved, {}, shapes, dtypes, local.mode.scope)
        return [_output.output(o, node, i) if seeded[i] else wrap(o) for i, o in enumerate(outs)]

    def as_tensors(self, node: Node) -> list[Any]:
        held, kept, arrays, numbers = node.saved
        return [held, kept, [wrap(a, p) for a, p in zip(arrays, node.parents)], numbers]

    def rule_name(self, node: Node) -> str:
        """What an error calls it."""
        return f"the gradient of the compiled function {self.op.name}"

    def _pull(self, g: Any, held: Any, kept: Any, inputs: list[Any], numbers: Numbers) -> list[Any]:
        gs = g if isinstance(g, tuple) else (g,)
        given = [asarray(x) if isinstance(x, generic) else x for x in compress(gs, self.seeded)]
        if isinstance(given[0], Tensor):
            results: Any = self._gradient([*inputs, *given], numbers)
        else:
            results = self.backward_plan.run([*given, *held, *kept], numbers)
        found = iter(results)
        return [next(found) if is_reached else None for is_reached in self.reached]

    @cached_property
    def _gradient(self) -> Program:
        """The gradients as a program of the inputs and the gradients of the outputs, to be differentiated again."""
        graph = without_unused(self.graph, self.graph.outputs[len(self.seeded) :], keep_inputs=True)
        return Program(graph, (), f"the gradient of {self.op.name}")


def differentiated(function: Callable[..., Any], arrays: Sequence[Array], needs: Sequence[bool]) -> Joint:
    """A function with its gradients: from inputs and gradients of outputs to outputs and gradients of inputs.

    Also for each output whether its gradient is given, and for each input whether it gets one.
    """
    tracer = Shapes({})
    tensors, inputs, seeds, pairs = [], [], [], []
    for array, need in zip(arrays, needs):
        own = hollow(array.shape, array.dtype) if type(array) is ndarray else array.view()
        inputs.append(tracer.know(own, Value(own.shape, own.dtype)))
        tensors.append(wrap(own, leaf(own) if need else None))
        tracer.recorded.update(inputs[-1:] if need else [])
    with enable_grad(), tracing(tracer), errstate(all="ignore"):
        outs = function(*tensors)
        seeded = [isinstance(out, Tensor) and out.node is not None for out in outs]
        for out in compress(outs, seeded):
            g = hollow(out.shape, out.dtype) if type(out.data) is ndarray else out.data * 0 + 1
            seeds.append(tracer.know(g, Value(g.shape, g.dtype, "g")))
            pairs.append((out.node, wrap(g, leaf(g))))
        nodes = [t.node for t in tensors]
        found: Any = sweep(pairs, {node for node in nodes if node}, create_graph=True) if pairs else {}
        grads = [tracer.value_of(found[node].data, "a gradient") for node in nodes if node in found]
        values = [tracer.value_of(out.data, "an output") for out in outs]
    graph = Graph([*inputs, *seeds], tracer.steps, [*values, *grads], tracer.constants)
    return graph, seeded, [node in found for node in nodes]
