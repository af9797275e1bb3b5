"""A traced function that can run, and be differentiated: plans for its values, and for its gradients, made when first needed.

Gradients come from the very rules of the ops. The graph is replayed on Tensors and swept back while a tracer watches; what
it saw, forward and backward in one graph, is cut in two (cut.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from numpy import asarray, generic

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
        self.numbers = list(graph.numbers())
        self._plan: Plan | None = None
        self._derivatives: dict[int, Derivative] = {}

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
        if self._plan is None:
            self._plan = Plan(self.graph, self.into)
        return self._plan

    def numbers_from(self, drawn: dict[Any, Any]) -> Numbers:
        """The numbers of the graph, of which those that were just asked for are not asked for again."""
        return {number: drawn[number] if number in drawn else number.read() for number in self.numbers}

    def __call__(self, inputs: Sequence[Any], numbers: Numbers) -> list[Tensor]:
        """The outputs for Tensors or arrays, one for each input of the graph, and its numbers."""
        arrays = [x.data if isinstance(x, Tensor) else x for x in inputs]
        mask = 0
        if local.mode.record:
            for i, x in enumerate(inputs):
                if isinstance(x, Tensor) and x.node is not None:
                    mask |= 1 << i
        if not mask:
            return [wrap(out) for out in self.plan.run(arrays, numbers)]
        found = self._derivatives.get(mask)
        if found is None:
            found = self._derivatives[mask] = Derivative(self, mask, arrays)
        return found.forward(inputs, arrays, numbers)


class Derivative(EnginePlan):
    """The program for one set of inputs that need gradients: a plan forward, a plan backward, and what lies between."""

    def __init__(self, program: Program, mask: int, arrays: Sequence[Array]):
        self.op: Any = program
        self.needs = tuple([bool(mask >> i & 1) for i in range(len(program.graph.inputs))])
        self.names = ["inputs", "kept", "all inputs", "numbers"]
        self.keep, self.by_kernel, self.output_index = None, False, None
        self.rules = [(-1, self._pull, tuple)]
        self.joint, self.seeds, self.grads = differentiated(program.graph, self.needs, arrays)
        self.cut = cut(*joined(self.joint, self.seeds, self.grads))
        self.forward_plan, self.backward_plan = Plan(self.cut.forward), Plan(self.cut.backward)
        self._again: Program | None = None

    def forward(self, inputs: Sequence[Any], arrays: Sequence[Array], numbers: Numbers) -> list[Tensor]:
        """Compute and record."""
        made = self.forward_plan.run(arrays, numbers)
        count = len(self.op.graph.outputs)
        outs, kept = made[:count], tuple([made[i] for i in self.cut.kept])
        parents = tuple([x.node if need else None for x, need in zip(inputs, self.needs)])
        saved = (tuple([arrays[i] for i in self.cut.held]), kept, list(arrays), numbers)
        shapes, dtypes = tuple([o.shape for o in outs]), tuple([o.dtype for o in outs])
        several = self.op.several
        node = Node(
            self,
            parents,
            saved,
            {},
            shapes if several else shapes[0],
            dtypes if several else dtypes[0],
            local.mode.scope,
        )
        return [
            (_output.output(o, node, i) if several else wrap(o, node)) if self.seeds[i] is not None else wrap(o)
            for i, o in enumerate(outs)
        ]

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
            results: Any = self._gradient()([*inputs, *given], numbers)
        else:
            results = self.backward_plan.run([*given, *held, *kept], numbers)
        found = iter(results)
        return [None if grad is None else next(found) for grad in self.grads]

    def _gradient(self) -> Program:
        """The gradients as a program of the inputs and the gradients of the outputs, to be differentiated again."""
        if self._again is None:
            seeds = [seed for seed in self.seeds if seed is not None]
            whole = without_unused(self.joint, [grad for grad in self.grads if grad is not None])
            graph = Graph([*self.op.graph.inputs, *seeds], whole.steps, whole.outputs, whole.constants)
            self._again = Program(graph, (), f"the gradient of {self.op.name}")
        return self._again


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
        own = array.view()  # an array may be given twice
        tracer.know(own, value)
        tensors.append(wrap(own, leaf(own) if need else None))
        tracer.recorded.update([value] if need else [])
    constants = {value: wrap(array) for value, array in graph.constants.items()}  # an op of arrays alone is not traced
    for value, t in constants.items():
        tracer.know(t.data, value)
    with enable_grad(), tracing(tracer):
        outs = replace(graph, constants=constants).replay(tensors, standing_for)
        seeds: list[Value | None] = []
        pairs = []
        for out in outs:
            if not isinstance(out, Tensor) or out.node is None:
                seeds.append(None)
                continue
            g, seed = out.data * 0 + 1, Value(out.shape, out.dtype, "g")
            tracer.know(g, seed)
            seeds.append(seed)
            pairs.append((out.node, wrap(g, leaf(g))))
        targets = {t.node for t in tensors if t.node is not None}
        results = sweep(pairs, targets, create_graph=True) if pairs else {}
        grads = [results.get(t.node) if t.node is not None else None for t in tensors]
        made = [None if g is None else tracer.value_of(g.data, "a gradient") for g in grads]
        values = [tracer.value_of(out.data, "an output") for out in outs]
    return Graph(list(graph.inputs), tracer.steps, values, {**graph.constants, **tracer.constants}), seeds, made
