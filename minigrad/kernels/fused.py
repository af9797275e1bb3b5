"""Fused operations: a definition made of ordinary ops, and kernels that compute the same faster.

    gelu = Fused(definition)                                     # the spec: any function of ops
    gelu.kernels["numba"] = Kernel(forward, backward, accepts)   # the speed

A kernel's `forward(*inputs, **attributes)` returns the output and whatever its own `backward` wants kept (a mean, a
mask); `backward(g, kept, needs, *inputs, **attributes)` returns one gradient for each input, None where `needs` says
that nobody asks. Where no kernel fits the arrays the definition runs instead. It is also what is differentiated when a
higher derivative is wanted: what a kernel keeps would be a constant there, and silently wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from time import perf_counter
from typing import Any, NamedTuple

from ..engine.backend import Array, duplicate, is_array
from ..engine.errors import ArgumentError, GradientError, MinigradError, describe, explain
from ..engine.graph import Node, sweep
from ..engine.modes import STRICT, enable_grad, local
from ..engine.op import EXPLAINED, Composite, Op, _output, inside_call, watch
from ..engine.plan import Signature
from ..engine.tensor import Tensor, wrap
from ..engine.writes import writes
from .selection import candidates

FUSED: dict[str, Fused] = {}
Attributes = dict[str, Any]


class Kernel(NamedTuple):
    """One way to compute a fused op: `accepts(*inputs, **attributes)` says whether it can, for these arrays."""

    forward: Callable[..., tuple[Array, Any]]
    backward: Callable[..., Sequence[Array | None]]
    accepts: Callable[..., bool]


class Kernels(dict[str, Kernel]):
    """The kernels of one op by their names. What each returns is checked the first time, and costs nothing later."""

    def __init__(self, op: str):
        super().__init__()
        self.op = op.lstrip("_")

    def __setitem__(self, name: str, kernel: Kernel) -> None:
        where = f"the {name} kernel of {self.op}"

        @wraps(kernel.forward)
        def forward(*inputs: Any, **attrs: Any) -> tuple[Array, Any]:
            result = kernel.forward(*inputs, **attrs)
            _check_forward(where, result)
            self._replace(name, "forward", forward, kernel.forward)
            return result

        @wraps(kernel.backward)
        def backward(g: Array, kept: Any, needs: Any, *inputs: Any, **attrs: Any) -> Sequence[Array | None]:
            grads = kernel.backward(g, kept, needs, *inputs, **attrs)
            _check_backward(where, grads, len(inputs))
            self._replace(name, "backward", backward, kernel.backward)
            return grads

        super().__setitem__(name, Kernel(forward, backward, kernel.accepts))

    def _replace(self, name: str, part: str, checked: Any, plain: Any) -> None:
        """Do without the check from now on, unless the kernel has been exchanged meanwhile."""
        known = self.get(name)
        if known is not None and getattr(known, part) is checked:
            super().__setitem__(name, known._replace(**{part: plain}))


def _check_forward(where: str, result: Any) -> None:
    if not isinstance(result, tuple) or len(result) != 2 or not hasattr(result[0], "shape"):
        raise ArgumentError(
            f"{where}: forward gave something else than its output and what it keeps",
            "two things: the output, an array, and what its backward wants kept, or None",
            describe(result),
            "return out, None",
        )


def _check_backward(where: str, grads: Any, count: int) -> None:
    inputs = "1 input" if count == 1 else f"{count} inputs"
    if not isinstance(grads, (tuple, list)):
        problem = f"{where}: backward gave no tuple of gradients for {inputs}"
    elif len(grads) != count:
        problem = f"{where}: backward gave {len(grads)} gradient{'s' * (len(grads) != 1)} for {inputs}"
    elif not all(grad is None or hasattr(grad, "shape") for grad in grads):
        problem = f"{where}: backward gave a gradient that is no array"
    else:
        return
    expected = f"a tuple with an array for {'it' if count == 1 else 'each'}, or None where `needs` is false"
    raise GradientError(problem, expected, describe(grads))


class Fused(Op):
    """An operation with a definition and kernels; called like any op."""

    def __init__(self, definition: Op | Composite | Callable[..., Any]):
        function: Any = (
            definition.forward if isinstance(definition, Op) else getattr(definition, "function", definition)
        )
        self.declare(function, Signature(function, skip=int(isinstance(definition, Op))))
        self.definition = definition
        self.kernels = Kernels(self.name)
        self.fused_plans: dict[int, FusedPlan] = {}
        FUSED[self.name] = self

    def __call__(self, *args: Any, **attrs: Any) -> Any:
        if len(args) != self.arity or attrs.keys() != self.attributes:
            args, attrs = self._complete(args, attrs)
        arrays: list[Any] = []
        parents: list[Node | None] = []
        mask, bit, tensors, foreign = 0, 1, False, False
        for arg in args:
            if isinstance(arg, Tensor):
                tensors = True
                arrays.append(arg.data)
                parents.append(arg.node)
                if arg.node is not None:
                    mask |= bit
            else:
                arrays.append(arg)
                parents.append(None)
                foreign |= arg is not None
            bit += bit
        kernel = self.kernel_for(arrays, attrs)
        if kernel is None:
            return self.watched_define(args, attrs) if local.mode.debug else self.define(args, attrs)
        mode = local.mode
        recorded = mask and mode.record
        if recorded and writes.recorded:
            self._check_fresh(arrays, parents)
        began = perf_counter() if mode.debug else 0.0
        try:
            out, kept = kernel.forward(*arrays, **attrs)
        except MinigradError:
            raise
        except EXPLAINED as error:
            raise explain(self, arrays, attrs, mode.scope, error) from None
        seconds = perf_counter() - began if mode.debug else 0.0
        if mode.debug == STRICT:
            self._check_finite(out, mode.scope, (*arrays, *attrs.values()))
        if not tensors:
            return out
        if not recorded and (local.apart is None or not mode.debug):
            return wrap(out)
        if foreign:  # somebody else's arrays may change before the backward
            arrays = [a if isinstance(x, Tensor) or not is_array(a) else duplicate(a) for a, x in zip(arrays, args)]
        node = self._node(out, arrays, parents, mask if recorded else 0, kernel, kept, attrs)
        if mode.debug:
            watch(node, arrays, out, seconds)
        if not recorded:
            local.apart.append(node)  # type: ignore[union-attr]
            return wrap(out)
        return wrap(out, node)

    def _node(
        self, out: Array, arrays: list[Any], parents: Any, mask: int, kernel: Kernel, kept: Any, attrs: Attributes
    ) -> Node:
        plan: Any = self.fused_plans.get(mask)
        if plan is None:
            needs = tuple([bool(mask >> i & 1) for i in range(self.arity)])
            plan = self.fused_plans[mask] = FusedPlan(self, needs)
        return Node(plan, parents, (*arrays, kernel, kept, attrs), attrs, out.shape, out.dtype, local.mode.scope)

    def kernel_for(self, arrays: Sequence[Any], attrs: Attributes) -> Kernel | None:
        """The first kernel, in the order of preference, for the place where all these arrays are; None if none fits."""
        kind, size = type(arrays[0]), 0
        if not hasattr(kind, "size"):
            return None
        for array in arrays:
            if array is not None:
                if type(array) is not kind:
                    return None
                if array.size > size:
                    size = array.size
        for name in candidates(kind, size):
            kernel = self.kernels.get(name)
            if kernel is not None and kernel.accepts(*arrays, **attrs):
                return kernel
        return None

    def _complete(self, args: Sequence[Any], attrs: Attributes) -> tuple[tuple[Any, ...], Attributes]:
        inputs, attrs = self.signature.bind(self.name, args, attrs)
        return tuple(inputs), {**self.signature.defaults, **attrs}

    def watched_define(self, args: Sequence[Any], attrs: Attributes) -> Any:
        """By the definition, whose ops belong to a call of this op."""
        with inside_call(self.name):
            return self.define(args, attrs)

    def define(self, args: Sequence[Any], attrs: Attributes) -> Any:
        """Compute by the definition."""
        if isinstance(self.definition, Op):
            return self.definition.general(args, attrs)
        return (self.definition.function if isinstance(self.definition, Composite) else self.definition)(*args, **attrs)


class FusedPlan:
    """How the gradient of a fused op is found, for one set of inputs that need one."""

    picks = None
    simple = False
    fused = True

    def __init__(self, op: Fused, needs: tuple[bool, ...]):
        self.op, self.needs = op, needs
        self.names = [
            *op.signature.inputs,
            "kernel",
            "out",
            "attrs",
        ]  # what is kept is out, or nobody else can write to it
        self.rules = [(-1, self.backward, tuple)]

    def backward(self, g: Any, *saved: Any) -> Sequence[Any]:
        """By the kernel that ran forward; on Tensors, which are to be differentiated again, by the definition."""
        *inputs, kernel, kept, attrs = saved
        if isinstance(g, Tensor):
            return self._by_definition(g, inputs, attrs)
        return kernel.backward(g, kept, self.needs, *inputs, **attrs)

    def as_tensors(self, node: Node) -> list[Any]:
        """The saved values, the inputs among them as Tensors tied to the nodes that made them."""
        count = len(node.parents)
        inputs = [wrap(v, p) if is_array(v) else v for v, p in zip(node.saved, node.parents)]
        return [*inputs, *node.saved[count:]]

    def _by_definition(self, g: Tensor, inputs: Sequence[Any], attrs: Attributes) -> list[Any]:
        """Each input gets a node of its own, so that one that is given twice has two gradients."""
        with enable_grad():
            apart = [_output(x) if need else x for x, need in zip(inputs, self.needs)]
            out = self.op.define(apart, attrs)
        wanted = [x.node if need else None for x, need in zip(apart, self.needs)]
        results = sweep([(out.node, g)], {node for node in wanted if node is not None}, create_graph=True, quiet=True)
        return [None if node is None else results.get(node) for node in wanted]


def fuse(definition: Op | Composite) -> Fused:
    """Let calls of an op or of a function made of ops go through kernels from now on."""
    fused = Fused(definition)
    definition.fused = fused
    return fused
