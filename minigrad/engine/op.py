"""How an operation is declared.

    @op
    def multiply(xp, a, b):
        return a * b

    multiply.vjp(a=lambda g, b: g * b, b=lambda g, a: g * a)

The forward function gets the array module `xp`, then its inputs, then (after `*`) its attributes.
A rule gets the gradient `g` of the output and whatever it names: inputs, `out`, attributes, or the
stand-ins `a_shape` and `a_dtype`, which keep no data alive. What the needed rules name is what is saved.
Rules are made of operators and ops, which map arrays to arrays and Tensors to Tensors: the same line
runs fast in `backward()` and is itself recorded when a higher derivative is wanted.

A rule for all inputs at once is given as a decorator (`@concatenate.vjp`) and returns one gradient for
each input; it may also name `needs`, a tuple telling which of them are wanted.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from .. import tree
from ..errors import ArgumentError, MinigradError, nearest, no_derivative
from ..signature import Signature, check_rules, names_of, signature_of_op
from .backend import Array, backend_of, device_of, is_array
from .call import SCALARS, binary, call, copied, unary
from .graph import Node
from .modes import Arrays, Attrs, notify
from .tensor import Tensor, wrap

OPS: dict[str, Op] = {}
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_RAW = frozenset((np.ndarray, float, int, bool, np.float32, np.float64, type(None)))


class Function:
    """What an op and a function made of ops have in common: a name, arguments, kernels, and facts.

    The facts stand where the function is declared, as in `@op(view=True)`:
    """

    elementwise = False  # its inputs broadcast against each other
    several = False  # it returns a tuple
    expects: str | None = None  # what an error tells about the input it takes
    view = False  # its output may share memory with its first input
    random = False  # it draws random numbers
    public = True  # it is a function of the package, mg.NAME
    method = True  # it is also a method of Tensor, if it is public
    symbol: str | None = None  # how people write it, as in a + b
    formulas: dict[str, str] = {}  # what its rule does with the gradient g, for each input, in words
    # For the compiler: what it computes for one element, as "a * b", or the same made of other ops.
    lowering: Any = None
    cost: Any = 1  # floating-point operations for each element, or a function of (inputs, output, attrs); see viz
    # The reason why it cannot compute this.
    explain: Callable[..., tuple[str, str] | MinigradError | None] | None = None
    kernels: Any = None  # faster ways to compute it, by name; kept by minigrad.kernels
    forward: Callable[..., Any] | None = None
    mask = -1  # which inputs have a rule, as bits

    def __init__(self, function: Callable[..., Any], signature: Signature, facts: dict[str, Any]):
        self.name = self.__name__ = function.__name__.rstrip("_")
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.signature = signature
        self.arity = -1 if signature.variadic else len(signature.inputs)
        self.attributes = signature.defaults.keys()
        self.count = len(self.attributes)
        self.plans: dict[Any, Plan] = {}
        source = getattr(getattr(function, "__code__", None), "co_filename", "")
        self.own = source.startswith(PACKAGE)  # a user's op keeps the traceback of its forward
        for name in facts.keys() - FACTS:
            raise ArgumentError(f"{self.name}: an op has no property {name!r}", fix=nearest(name, FACTS))
        for name in FACTS:  # also the defaults: an attribute of the instance is found faster than one of the class
            setattr(self, name, facts.get(name, getattr(self, name)))

    def bind(self, args: Arrays, attrs: Attrs) -> tuple[Arrays, Attrs]:
        """The inputs and attributes of a call. Kernels get all attributes, with their defaults."""
        inputs, attrs = self.signature.bind(self.name, args, attrs)
        return inputs, attrs if self.kernels is None else {**self.signature.defaults, **attrs}

    def plan_for(self, mask: int, count: int, by_kernel: bool = False) -> Plan:
        """The plan for the inputs in `mask`, of `count`, that need a gradient."""
        key: Any = (mask, count) if self.signature.variadic else ~mask if by_kernel else mask
        plan = self.plans.get(key)
        if plan is None:
            plan = self.plans[key] = Plan(self, tuple([bool(mask >> i & 1) for i in range(count)]), by_kernel)
        return plan


FACTS = [name for name in vars(Function) if not name.startswith("_") and not callable(vars(Function)[name])]


class Op(Function):
    """An operation: a forward function and the rules of its derivative."""

    def __init__(self, forward: Callable[..., Any], **facts: Any):
        super().__init__(forward, signature_of_op(forward), facts)
        self.forward: Callable[..., Any] = forward
        self.rules: dict[str, Callable[..., Any]] = {}
        self.joint: Callable[..., Any] | None = None
        self.mask = 0
        self.output_plans: dict[int, Plan] = {}
        self.unary, self.binary = unary(self), binary(self)

    def __repr__(self) -> str:
        return f"<op {self.name}{self.signature}>"

    def vjp(self, joint: Callable[..., Any] | None = None, /, **rules: Callable[..., Any]) -> Any:
        """Give the derivative: `vjp(a=rule, b=rule)`, or `@op.vjp` on one rule for all inputs."""
        check_rules(self.name, self.signature, rules, joint)
        self.rules, self.joint = rules, joint
        self.mask = -1 if joint else sum(1 << self.signature.inputs.index(name) for name in rules)
        self.plans.clear()
        return joint

    def __call__(self, *args: Any, **attrs: Any) -> Any:
        """Compute; record if some input needs a gradient. Arrays give an array, any Tensor gives a Tensor."""
        if len(args) == self.arity:
            for arg in args:
                if type(arg) not in _RAW:
                    break
            else:  # arrays alone, as in most rules: nothing to record
                if self.kernels is None:
                    try:
                        return self.forward(np, *args, **attrs)
                    except Exception:
                        return call(self, args, attrs)
            if not attrs and not self.several and self.own:
                if self.arity == 2:
                    return self.binary(*args)
                if self.arity == 1:
                    return self.unary(*args)
        return call(self, args, attrs)

    def define(self, args: Arrays, attrs: Attrs) -> Any:
        return call(self, args, attrs, kernels=False)

    def output(self, array: Array, node: Node, index: int) -> Tensor:
        """Output number `index` of a node of this op, which has several."""
        if array.dtype.kind == "c":
            raise no_derivative(self.name, array.dtype)
        if array.dtype.kind != "f":
            return wrap(array)
        plan = self.output_plans.get(index)
        if plan is None:
            plan = self.output_plans[index] = Plan(_output, (True,), output_index=index)
        return wrap(array, Node(plan, (node,), (), {"index": index}, array.shape, array.dtype, node.scope))


class Plan:
    """What an op saves, and which rules run, for one set of inputs that need gradients."""

    def __init__(self, op: Any, needs: tuple[bool, ...], by_kernel: bool = False, output_index: int | None = None):
        self.op = op
        self.needs = needs
        self.keep: Any = None  # what to save, from (*arrays, out), if the rules ask for nothing else
        self.by_kernel = by_kernel  # whether a kernel computes the gradient
        self.output_index = output_index  # the number of the output that a node of `_output` stands for
        inputs = op.signature.inputs
        if by_kernel:
            self.names = [*inputs, "kernel", "out", "attrs"]  # a kernel keeps `out`, or what nobody else can write to
            self.rules: list[Any] = [(-1, partial(op.kernels.pull, op, needs), tuple)]
            return
        if op.joint is not None:
            rules = [(-1, op.joint)]
        else:
            rules = [(i, op.rules[name]) for i, name in enumerate(inputs) if needs[i]]
        asked = {i: names_of(rule) for i, rule in rules}
        self.names = list(dict.fromkeys(name for names in asked.values() for name in names))
        self.getters = [_getter(op, needs, name) for name in self.names]
        positions = [inputs.index(n) if n in inputs else len(inputs) for n in self.names if n in inputs or n == "out"]
        if not op.signature.variadic and len(positions) == len(self.names):
            self.keep = _pick(positions)
        picks = [_pick([self.names.index(n) for n in asked[i]]) for i, _ in rules]
        self.rules = [(i, rule if op.own else _users(rule), pick) for (i, rule), pick in zip(rules, picks)]

    def save(self, arrays: Arrays, out: Any, attrs: Attrs, kernel: Any = None, kept: Any = None) -> tuple[Any, ...]:
        """What the rules will ask for."""
        if self.keep is not None:
            return self.keep((*arrays, out))
        if self.by_kernel:
            return (*arrays, kernel, kept, attrs)
        getters = self.getters
        if len(getters) == 2:  # as for most reductions: quicker than a loop
            return getters[0](arrays, out, attrs), getters[1](arrays, out, attrs)
        return tuple([get(arrays, out, attrs) for get in getters])

    def as_tensors(self, node: Node) -> list[Any]:
        """The saved values as Tensors tied to the nodes that made them, so that rules on them are recorded."""
        inputs = self.op.signature.inputs
        values = list(node.saved)
        for k, (name, value) in enumerate(zip(self.names, values)):
            if name == "out" and not self.by_kernel:
                outs = value if self.op.several else ()
                values[k] = tuple([self.op.output(v, node, j) for j, v in enumerate(outs)]) or wrap(value, node)
            elif name in inputs and self.op.signature.variadic:
                values[k] = tuple(wrap(v, p) if hasattr(v, "shape") else v for v, p in zip(value, node.parents))
            elif name in inputs and is_array(value):
                values[k] = wrap(value, node.parents[inputs.index(name)])
        return values

    def fill(self, node: Node, parts: list[Any]) -> tuple[Any, ...]:
        """Zeros stand in for the outputs that nobody used; outputs that are not floating have no gradient."""
        some = next(part for part in parts if part is not None)
        is_tensor = isinstance(some, Tensor)
        array = np.asarray(some) if isinstance(some, SCALARS) else some.data if is_tensor else some
        backend = backend_of(array)
        for i, (part, shape, dtype) in enumerate(zip(parts, node.shape, node.dtype)):
            if part is None and dtype.kind == "f":
                zeros = backend.full(shape, 0, dtype, backend.device_of(array))
                notify("created", zeros)
                parts[i] = wrap(zeros) if is_tensor else zeros
        return tuple(parts)

    def rule_name(self, node: Node) -> str:
        """What an error calls the rules of a node."""
        if self.by_kernel and node.saved is not None:
            return f"{self.op.kernels.title(self.op.name, node.saved[-3])}: backward"
        return f"the gradient rule of {self.op.name}"


def _users(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A rule of a user's op: a gradient that is one of the saved values becomes a copy, since `.grad` may be written to."""

    def run(g: Any, *saved: Any) -> Any:
        kept = {id(value) for value in tree.leaves(saved) if hasattr(value, "dtype")}
        return tree.map(lambda made: copied(made) if id(made) in kept else made, rule(g, *saved))

    return run


def _pick(positions: list[int]) -> Callable[[Any], tuple[Any, ...]]:
    """A fast function from a sequence to the tuple of its entries at `positions`."""
    if len(positions) < 2:
        return itemgetter(slice(positions[0], positions[0] + 1) if positions else slice(0, 0))
    return itemgetter(*positions)


def _getter(op: Op, needs: tuple[bool, ...], name: str) -> Callable[[Any, Any, Any], Any]:
    """How to find, when an op is recorded, the value that a rule calls `name`."""
    inputs, defaults = op.signature.inputs, op.signature.defaults
    stem, _, kind = name.rpartition("_")
    if name == "out":
        return lambda arrays, out, attrs: out
    if name == "needs":
        return lambda arrays, out, attrs: needs
    if name in defaults:
        return lambda arrays, out, attrs: attrs.get(name, defaults[name])
    if op.signature.variadic:
        if name in inputs:
            return lambda arrays, out, attrs: tuple(arrays)
        return lambda arrays, out, attrs: tuple([getattr(a, kind) for a in arrays])
    if name in inputs:
        i = inputs.index(name)
        return lambda arrays, out, attrs: arrays[i]
    i = inputs.index(stem)
    if kind == "device":
        return lambda arrays, out, attrs: device_of(arrays[i])
    fallback = () if kind == "shape" else None
    return lambda arrays, out, attrs: getattr(arrays[i], kind, fallback)


def op(forward: Callable[..., Any] | None = None, /, **facts: Any) -> Any:
    """Declare an operation. Use it as `@mg.op` on a function of `xp`, the inputs and, after `*`, the attributes.

    >>> import minigrad as mg
    >>> @mg.op
    ... def cube(xp, a):
    ...     return a ** 3
    >>> cube.vjp(a=lambda g, a: 3 * g * a ** 2)
    >>> mg.grad(cube)(mg.tensor(2.0)).item()
    12.0
    """
    if forward is None:
        return lambda f: op(f, **facts)
    result = Op(forward, **facts)
    if result.own:
        OPS[result.name] = result
    return result


@Op
def _output(xp: Any, a: Any) -> Any:
    """Stands in the graph for one output of an op that has several."""
    return a


_output.view = True
_output.vjp(a=lambda g: g)
