"""A traced function that can run, and be differentiated: plans for its values, and for its gradients, made when first needed.

Gradients come from the very rules of the ops. The graph is replayed on Tensors and swept back while a tracer watches; what
it saw, forward and backward in one graph, is cut in two (cut.py).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from numpy import asarray, errstate, generic, ndarray, zeros_like

from ..engine.backend import Array
from ..engine.graph import Node, leaf, sweep
from ..engine.modes import enable_grad, local
from ..engine.op import Plan as EnginePlan
from ..engine.op import _output
from ..engine.tensor import Tensor, wrap
from ..ir.graph import Graph, Number, Value, without_unused
from ..ir.numbers import standing_for
from ..ir.trace import Tracing
from ..tracer import tracing
from .cut import cut
from .plan import Plan

__all__ = ["Program"]

Numbers = dict[Number, Any]


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

    def __call__(self, inputs: Sequence[Any], numbers: Numbers) -> list[Tensor]:
        """The outputs for Tensors or arrays, one for each input of the graph, and its numbers."""
        arrays = [x.data if isinstance(x, Tensor) else x for x in inputs]
        needs = tuple([isinstance(x, Tensor) and x.node is not None for x in inputs])
        if not local.mode.record or not any(needs):
            return [wrap(out) for out in self.plan.run(arrays, numbers)]
        with self._planning:
            if needs not in self._derivatives:
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
        joint, self.seeds, self.grads = differentiated(program.graph, needs, arrays)
        self.whole, *counts = joined(joint, self.seeds, self.grads)
        self.cut = cut(self.whole, *counts)
        self.forward_plan, self.backward_plan = Plan(self.cut.forward), Plan(self.cut.backward)

    def forward(self, inputs: Sequence[Any], arrays: Sequence[Array], numbers: Numbers) -> list[Tensor]:
        """Compute and record."""
        made = self.forward_plan.run(arrays, numbers)
        outs, kept = made[: len(self.seeds)], tuple([made[i] for i in self.cut.kept])
        parents = tuple([x.node if need else None for x, need in zip(inputs, self.needs)])
        saved = (tuple([arrays[i] for i in self.cut.held]), kept, list(arrays), numbers)
        shapes, dtypes = tuple([o.shape for o in outs]), tuple([o.dtype for o in outs])
        if not self.op.several:
            node = Node(self, parents, saved, {}, shapes[0], dtypes[0], local.mode.scope)
            return [wrap(outs[0], None if self.seeds[0] is None else node)]
        node = Node(self, parents, saved, {}, shapes, dtypes, local.mode.scope)
        return [wrap(o) if self.seeds[i] is None else _output.output(o, node, i) for i, o in enumerate(outs)]

    def as_tensors(self, node: Node) -> list[Any]:
        held, kept, arrays, numbers = node.saved
        return [held, kept, [wrap(a, p) for a, p in zip(arrays, node.parents)], numbers]

    def rule_name(self, node: Node) -> str:
        """What an error calls it."""
        return f"the gradient of the compiled function {self.op.name}"

    def _pull(self, g: Any, held: Any, kept: Any, inputs: list[Any], numbers: Numbers) -> list[Any]:
        gs = g if isinstance(g, tuple) else (g,)
        given = [asarray(x) if isinstance(x, generic) else x for x, seed in zip(gs, self.seeds) if seed is not None]
        if isinstance(given[0], Tensor):
            results: Any = self._gradient([*inputs, *given], numbers)
        else:
            results = self.backward_plan.run([*given, *held, *kept], numbers)
        found = iter(results)
        return [None if grad is None else next(found) for grad in self.grads]

    @cached_property
    def _gradient(self) -> Program:
        """The gradients as a program of the inputs and the gradients of the outputs, to be differentiated again."""
        graph = without_unused(self.whole, self.whole.outputs[len(self.seeds) :], keep_inputs=True)
        return Program(graph, (), f"the gradient of {self.op.name}")


def joined(joint: Graph, seeds: Sequence[Value | None], grads: Sequence[Value | None]) -> tuple[Graph, int, int]:
    """One graph from inputs and gradients of outputs to outputs and gradients of inputs, and the numbers of outputs and seeds."""
    given = [seed for seed in seeds if seed is not None]
    outputs = [*joint.outputs, *[grad for grad in grads if grad is not None]]
    whole = Graph([*joint.inputs, *given], joint.steps, outputs, joint.constants)
    return whole, len(joint.outputs), len(given)


def differentiated(
    graph: Graph, needs: Sequence[bool], arrays: Sequence[Array]
) -> tuple[Graph, list[Value | None], list[Value | None]]:
    """The graph with its gradients: the gradient that each output is given, and the one that each input gets, or None."""
    tracer = Tracing({})
    tensors = []
    for value, array, need in zip(graph.inputs, arrays, needs):
        own = (
            zeros_like(array) if type(array) is ndarray else array.view()
        )  # no rule sees values; powers of 0 are quick
        tracer.know(own, value)
        tensors.append(wrap(own, leaf(own) if need else None))
        tracer.recorded.update([value] if need else [])
    constants = {value: wrap(array) for value, array in graph.constants.items()}  # an op of arrays alone is not traced
    for value, t in constants.items():
        tracer.know(t.data, value)
    seeds: list[Value | None] = []
    pairs = []
    with enable_grad(), tracing(tracer), errstate(all="ignore"):
        outs = replace(graph, constants=constants).replay(tensors, standing_for)
        for out in outs:
            is_recorded = isinstance(out, Tensor) and out.node is not None
            seeds.append(Value(out.shape, out.dtype, "g") if is_recorded else None)
            if seeds[-1] is not None:
                g = out.data * 0 + 1
                tracer.know(g, seeds[-1])
                pairs.append((out.node, wrap(g, leaf(g))))
        nodes = [t.node for t in tensors]
        found: Any = sweep(pairs, {node for node in nodes if node}, create_graph=True) if pairs else {}
        grads = [tracer.value_of(found[node].data, "a gradient") if node in found else None for node in nodes]
        values = [tracer.value_of(out.data, "an output") for out in outs]
    return Graph(list(graph.inputs), tracer.steps, values, {**graph.constants, **tracer.constants}), seeds, grads
