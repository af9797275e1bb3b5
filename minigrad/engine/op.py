"""How an operation is declared, called and recorded.

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

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from types import FrameType
from typing import Any

import numpy as np

from .backend import DTYPES, Array, backend_of, device_of, duplicate, is_array, on_device_of
from .errors import (
    ArgumentError,
    DeviceError,
    DtypeError,
    GradientError,
    MinigradError,
    NonFiniteError,
    explain,
    inside,
    nearest,
)
from .graph import Node, Seen, nonfinite
from .lanes import binary_lane, scalar_array, unary_lane
from .modes import STRICT, Call, Mode, local
from .plan import STAND_INS, Plan, Signature, names_of
from .tensor import Tensor, wrap
from .writes import writes

OPS: dict[str, Op] = {}
COMPOSITES: dict[str, Composite] = {}
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
ndarray = np.ndarray
_SCALARS = (bool, int, float, complex, np.generic, type(None))
# What an array library raises on input that does not fit.
EXPLAINED = (ValueError, TypeError, IndexError, OverflowError, AttributeError)
_RAW = frozenset((ndarray, float, int, bool, np.float32, np.float64, type(None)))


class Op:
    """An operation: a forward function and the rules of its derivative.

    `elementwise` says that its inputs broadcast, `several` that it returns a tuple of arrays, and `expects`
    is what an error tells about the input it takes.
    """

    def __init__(
        self, forward: Callable[..., Any], elementwise: bool = False, several: bool = False, expects: str | None = None
    ):
        if not callable(forward) or next(iter(inspect.signature(forward).parameters), None) != "xp":
            raise ArgumentError(
                "op: the forward function takes the array module first",
                "def name(xp, a, b, *, attribute=…)",
                getattr(forward, "__name__", type(forward).__name__),
            )
        self.forward = forward
        self.declare(forward, Signature(forward, skip=1), elementwise, several, expects)
        self.rules: dict[str, Callable[..., Any]] = {}
        self.joint: Callable[..., Any] | None = None
        self.mask = 0  # which inputs have a rule, as bits
        self.plans: dict[int, Plan] = {}
        self.picks: dict[int, Plan] = {}
        self.fused: Callable[..., Any] | None = None  # a faster way to compute it, kept by minigrad.kernels
        self.unary, self.binary = unary_lane(self), binary_lane(self)

    def declare(
        self,
        function: Callable[..., Any],
        signature: Signature,
        elementwise: bool = False,
        several: bool = False,
        expects: str | None = None,
    ) -> None:
        """Take over the name, the arguments and the properties of the function that says what this op computes."""
        self.name = function.__name__.rstrip("_")
        self.__name__ = self.name
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.signature = signature
        self.arity = -1 if signature.variadic else len(signature.inputs)
        self.attributes = signature.defaults.keys()
        self.elementwise = elementwise
        self.several = several
        self.expects = expects
        self.explain: Callable[..., tuple[str, str] | MinigradError | None] | None = None
        source = getattr(getattr(function, "__code__", None), "co_filename", "")
        self.own = source.startswith(PACKAGE)  # a user's op keeps the traceback of its forward

    def __repr__(self) -> str:
        return f"<op {self.name}{self.signature}>"

    def vjp(self, joint: Callable[..., Any] | None = None, /, **rules: Callable[..., Any]) -> Any:
        """Give the derivative: `vjp(a=rule, b=rule)`, or `@op.vjp` on one rule for all inputs."""
        inputs, defaults = self.signature.inputs, self.signature.defaults
        stand_ins = [f"{name}_{kind}" for name in inputs for kind in STAND_INS]
        known = ["out", *inputs, *defaults, *stand_ins]
        for name, rule in {**rules, **({"needs": joint} if joint else {})}.items():
            if name not in inputs and rule is not joint:
                raise ArgumentError(
                    f"{self.name}.vjp: there is no input {name!r}",
                    f"{self.name}{self.signature}",
                    fix=nearest(name, inputs),
                )
            for asked in names_of(rule):
                if asked not in known and not (rule is joint and asked == "needs"):
                    raise ArgumentError(
                        f"{self.name}.vjp: a rule asks for {asked!r}, which this op does not have",
                        fix=nearest(asked, known),
                    )
        if self.signature.variadic and rules:
            raise ArgumentError(
                f"{self.name}.vjp: an op with *{inputs[0]} takes one rule for all inputs",
                fix=f"write it as a decorator, @{self.name}.vjp",
            )
        self.rules, self.joint = rules, joint
        self.mask = -1 if joint else sum(1 << inputs.index(name) for name in rules)
        self.plans.clear()
        return joint

    def plan_for(self, mask: int, count: int) -> Plan:
        key = mask | 1 << count if self.signature.variadic else mask
        plan = self.plans.get(key)
        if plan is None:
            plan = self.plans[key] = Plan(self, tuple([bool(mask >> i & 1) for i in range(count)]))
        return plan

    def __call__(self, *args: Any, **attrs: Any) -> Any:
        """Compute; record if some input needs a gradient. Arrays give an array, any Tensor gives a Tensor."""
        if len(args) == self.arity:
            for arg in args:
                if type(arg) not in _RAW:
                    break
            else:  # arrays alone, as in most rules: nothing to record
                try:
                    return self.forward(np, *args, **attrs)
                except Exception:
                    return self.general(args, attrs)
            if self.fused is not None:
                return self.fused(*args, **attrs)
            if not attrs and not self.several and self.own:
                if self.arity == 2:
                    return self.binary(*args)
                if self.arity == 1:
                    return self.unary(*args)
        return self.general(args, attrs)

    def general(self, args: Sequence[Any], attrs: dict[str, Any]) -> Any:
        """Any number of inputs, attributes, devices; arrays alone; debugging; and all errors."""
        if len(args) != self.arity or attrs and not attrs.keys() <= self.attributes:
            args, attrs = self._bind(args, attrs)
        arrays: list[Any] = []
        parents: list[Node | None] = []
        mask, bit, tensors, foreign = 0, 1, False, False
        xp: Any = np
        for arg in args:
            if isinstance(arg, Tensor):
                tensors = True
                arrays.append(arg.data)
                parents.append(arg.node)
                if type(arg.data) is not ndarray:
                    xp = None
                if arg.node is not None:
                    mask |= bit
            else:
                arrays.append(arg)
                parents.append(None)
                if isinstance(arg, np.generic) and arg.dtype.name not in DTYPES:
                    as_operand(arg, self.name)
                if not isinstance(arg, _SCALARS):
                    foreign = True
                    if hasattr(arg, "dtype") and arg.dtype.name not in DTYPES:
                        as_operand(arg, self.name)
                    if type(arg) is not ndarray:
                        xp = None
            bit += bit
        here: Any = None
        if xp is None:
            xp, here = self.settle(arrays)
        mode = local.mode
        if writes.recorded and mode.record:
            self._check_fresh(arrays, parents)
        began = perf_counter() if mode.debug else 0.0
        try:
            if here is None:
                out = self.forward(xp, *arrays, **attrs)
            else:
                with here:
                    out = self.forward(xp, *arrays, **attrs)
        except MinigradError:
            raise
        except EXPLAINED as error:
            raise explain(self, arrays, attrs, mode.scope, error) from (None if self.own else error)
        seconds = perf_counter() - began if mode.debug else 0.0
        if mode.debug == STRICT:
            self._check_finite(out, mode.scope, (*arrays, *attrs.values()))
        if not tensors:
            return out
        recorded = bool(mask & self.mask) and mode.record
        if mask & ~self.mask and mode.record and not self.own:
            self._check_rules(mask)
        mask &= self.mask
        if foreign and recorded:  # somebody else's arrays may change before the backward
            arrays = [duplicate(a) if p is None and is_array(a) else a for a, p in zip(arrays, parents)]
        if self.several:
            return self._finish_several(xp, out, arrays, parents, mask if recorded else 0, attrs, seconds)
        if not is_array(out):
            out = scalar_array(self, out)
        if recorded and out.dtype.kind == "c":
            raise GradientError(
                f"{self.name}: complex results have no derivative here",
                got=str(out.dtype),
                fix="x.detach() says that the graph ends",
            )
        if not recorded or out.dtype.kind != "f":
            if local.apart is not None:
                self._keep_apart(out, arrays, parents, attrs, seconds)
            return wrap(out, None)
        return wrap(out, self.record(out, arrays, parents, mask, attrs, seconds))

    def record(
        self,
        out: Any,
        arrays: Sequence[Any],
        parents: Sequence[Node | None],
        mask: int,
        attrs: dict[str, Any],
        seconds: float = 0.0,
    ) -> Node:
        """The node of an output, or of several, just computed."""
        plan = self.plan_for(mask, len(arrays))
        attrs = {
            k: tuple(v) if type(v) is list else v for k, v in attrs.items()
        }  # a list may change before the backward
        mode = local.mode
        if self.several:
            shape, dtype = tuple([o.shape for o in out]), tuple([o.dtype for o in out])
        else:
            shape, dtype = out.shape, out.dtype
        node = Node(plan, parents, plan.save(arrays, out, attrs), attrs, shape, dtype, mode.scope)
        if mode.debug:
            watch(node, arrays, out, seconds)
        return node

    def _keep_apart(self, out: Any, arrays: Any, parents: Any, attrs: dict[str, Any], seconds: float) -> None:
        """For who draws it, the node of a result that needs no gradient."""
        if local.apart is not None and local.mode.debug:
            local.apart.append(self.record(out, arrays, parents, 0, attrs, seconds))

    def _finish_several(
        self,
        xp: Any,
        outs: Any,
        arrays: list[Any],
        parents: list[Node | None],
        mask: int,
        attrs: dict[str, Any],
        seconds: float,
    ) -> tuple[Tensor, ...]:
        """Several outputs share one node; each floating one gets a node of its own that picks it."""
        outs = tuple([xp.asarray(o) for o in outs])
        if not mask:
            self._keep_apart(outs, arrays, parents, attrs, seconds)
            return tuple([wrap(o) for o in outs])
        node = self.record(outs, arrays, parents, mask, attrs, seconds)
        return tuple([self.output(o, node, i) for i, o in enumerate(outs)])

    def output(self, array: Array, node: Node, index: int) -> Tensor:
        """Output number `index` of a node of this op, which has several."""
        if array.dtype.kind != "f":
            return wrap(array)
        plan = self.picks.get(index)
        if plan is None:
            plan = self.picks[index] = Plan(_output, (True,))
            plan.picks, plan.simple = index, False
        return wrap(array, Node(plan, (node,), (), {"index": index}, array.shape, array.dtype, node.scope))

    def _bind(self, args: Sequence[Any], attrs: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        inputs, attrs = self.signature.bind(self.name, args, attrs)
        if self.signature.variadic:
            if not isinstance(inputs[0], (list, tuple)) or not inputs[0]:
                raise ArgumentError(
                    f"{self.name}: the first argument must be a sequence of tensors",
                    "[a, b, …], not empty",
                    type(inputs[0]).__name__,
                )
            return inputs[0], attrs
        return inputs, attrs

    def settle(self, arrays: list[Any]) -> tuple[Any, Any]:
        """Turn lists into arrays, find the one device all arrays are on; its module, and the context to compute in there."""
        for i, value in enumerate(arrays):
            if not isinstance(value, _SCALARS) and (not is_array(value) or isinstance(value, ndarray)):
                arrays[i] = as_operand(value, self.name)  # also np.matrix, whose * is another
        there = {device_of(a): a for a in arrays if not isinstance(a, _SCALARS)}
        if len(there) > 1:
            raise DeviceError(
                f"{self.name}: arrays on different devices cannot be mixed",
                "every input on one device",
                " and ".join(sorted(there)),
                "move one with x.to(device)",
            )
        if not there or "cpu" in there:
            return np, None
        (array,) = there.values()
        return backend_of(array).xp, on_device_of(array)

    def _check_rules(self, mask: int) -> None:
        """A user's op must have a rule for each input that needs a gradient; forgetting one would cut the graph silently."""
        missing = [name for i, name in enumerate(self.signature.inputs) if mask >> i & 1 and name not in self.rules]
        if missing and self.joint is None:
            raise GradientError(
                f"{self.name}: there is no rule for the gradient of {missing[0]!r}",
                fix=f"give one with {self.name}.vjp({missing[0]}=lambda g: …), or pass {missing[0]}.detach()",
            )

    def _check_fresh(self, arrays: Sequence[Any], parents: Sequence[Node | None]) -> None:
        for array, node in zip(arrays, parents):
            if is_array(array) and writes.is_stale(array, node):
                raise GradientError(
                    f"{self.name}: an input shares memory with a tensor that was written to in place, and its own graph does not know of that write",
                    got=f"{array.shape} {array.dtype}",
                    fix="write through the whole tensor (x[i] = …) rather than a view of it, or clone() the view first",
                )

    def _check_finite(self, out: Any, scope: str, given: Sequence[Any] = ()) -> None:
        """Name this op if it made something that is not finite; minus infinity it may pass on, as masks put it in on purpose."""
        masked = any(has_minus_infinity(x) for x in given)
        for array in out if self.several else (out,):
            if hasattr(array, "dtype") and (found := nonfinite(array)) and not (masked and is_only_hidden(array)):
                where = ": ".join(filter(None, (scope, self.name)))
                raise NonFiniteError(f"{where} ({user_line()}): produced the first NaN or infinity", got=found)


def as_operand(value: Any, where: str) -> np.ndarray:
    """A list of numbers beside a Tensor becomes an array; anything else is refused by name."""
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):
        array = np.asarray(None)
    if array.dtype.name not in DTYPES:
        got = type(value).__name__ + (f" of dtype {value.dtype}" if hasattr(value, "dtype") else "")
        raise DtypeError(f"{where}: an operand is not a number or an array", "a Tensor, an array or a number", got)
    return array


def has_minus_infinity(value: Any) -> bool:
    """Whether an input or attribute of an op holds minus infinity."""
    if not is_array(value):
        return isinstance(value, (float, np.floating)) and bool(value == -np.inf)
    if value.dtype.kind != "f":
        return False
    with on_device_of(value):
        return bool((value == -np.inf).any())


def is_only_hidden(array: Any) -> bool:
    """Whether everything in an array is finite, or minus infinity."""
    xp = backend_of(array).xp if is_array(array) else np
    with on_device_of(array):
        return bool((xp.isfinite(array) | (array == -np.inf)).all())


def watch(node: Node, inputs: Sequence[Any], out: Any, seconds: float) -> None:
    """Keep with a node what `mg.viz` draws."""
    node.line = user_line()
    node.seen = Seen(tuple(inputs), out, seconds, local.mode.calls)


def user_line() -> str:
    """`file:line` of the innermost frame outside minigrad, and outside of NumPy, which may stand in between."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("minigrad", "numpy"):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""


def op(forward: Callable[..., Any] | None = None, /, **options: Any) -> Any:
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
        return lambda f: op(f, **options)
    result = Op(forward, **options)
    if result.own:
        OPS[result.name] = result
    return result


@op
def _output(xp: Any, a: Any) -> Any:
    """Stands in the graph for one output of an op that has several."""
    return a


_output.vjp(a=lambda g: g)
del OPS["_output"]  # nobody calls it


class Composite:
    """A function made of ops: its derivatives, of any order, follow from theirs."""

    def __init__(self, function: Callable[..., Any]):
        self.name = function.__name__.rstrip("_")
        self.__name__ = self.name
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.function = function
        self.signature = Signature(function)
        self.elementwise = False
        self.expects: str | None = None
        self.explain: Callable[..., tuple[str, str] | MinigradError | None] | None = None
        self.fused: Callable[..., Any] | None = None  # a faster way to compute it, kept by minigrad.kernels
        COMPOSITES[self.name] = self

    def __repr__(self) -> str:
        return f"<function {self.name}{self.signature}>"

    def __call__(self, *args: Any, **attrs: Any) -> Any:
        if local.mode.debug:
            with inside_call(self.name):
                return self._computed(args, attrs)
        return self._computed(args, attrs)

    def _computed(self, args: Sequence[Any], attrs: dict[str, Any]) -> Any:
        if self.signature.variadic:
            count = len(self.signature.inputs) - 1
            inputs, attrs = self.signature.bind(
                self.name, [*args[:count], *([args[count:]] if len(args) > count else [])], attrs
            )
            inputs = [*inputs[:-1], *inputs[-1]]
        else:
            inputs, attrs = self.signature.bind(self.name, args, attrs)
        first = next((x.data for x in inputs if isinstance(x, Tensor)), None)
        try:
            if self.fused is not None and first is not None:
                return self.fused(*inputs, **attrs)
            if first is None or type(first) is ndarray:
                return self.function(*inputs, **attrs)
            with on_device_of(first):  # its body may look at arrays outside of any op
                return self.function(*inputs, **attrs)
        except MinigradError as error:
            inside(self.name, local.mode.scope, error)
            raise
        except EXPLAINED as error:
            raise explain(self, inputs, attrs, local.mode.scope, error) from None


@contextmanager
def inside_call(name: str) -> Iterator[None]:
    """Inside, ops belong to a call of a function made of ops; for those who watch."""
    outer = local.mode
    local.mode = Mode(outer.record, outer.debug, outer.scope, (*outer.calls, Call(name)))
    try:
        yield
    finally:
        local.mode = outer


def composite(function: Callable[..., Any]) -> Composite:
    """Declare a function made of ops; its inputs stand before `*`, its attributes after."""
    return Composite(function)
