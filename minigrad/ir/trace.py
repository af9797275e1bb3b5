"""Run a function once and write down what it computes: from Python code to a `Graph`.

The function runs for real, on real arrays. A tracer follows every array by its identity: what an op makes of known arrays
is a step of the graph. An array that nobody has accounted for, or a value that Python looks at, is refused: a graph in which
it stood as a constant would give yesterday's answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ..debug import user_line
from ..engine.backend import Array, device_of, is_array, on_device_of, owner_of
from ..engine.graph import Node
from ..engine.modes import local
from ..engine.op import OPS
from ..engine.tensor import Tensor
from ..engine.writes import tick, writes
from ..errors import GradientError
from ..tracer import Tracer
from .graph import Graph, Number, Step, Value
from .numbers import Scalar, WholeNumber, standing_for
from .surroundings import Held
from .whole import stays_whole

__all__ = ["TraceError", "Tracing"]


class TraceError(GradientError):
    """The function does something that cannot be compiled: the message says what, where, and what to do."""


class _Known:
    """What is known of one array: the value it holds now. The array is kept, so that no other gets its identity."""

    __slots__ = ("array", "value", "owner", "is_stale")

    def __init__(self, array: Array, value: Value, owner: int):
        self.array, self.value, self.owner, self.is_stale = array, value, owner, False


def may_overlap(a: Array, b: Array) -> bool:
    """Whether two views of the same memory may have an element in common."""
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
        return True
    (low, high), (other_low, other_high) = np.lib.array_utils.byte_bounds(a), np.lib.array_utils.byte_bounds(b)
    return low < other_high and other_low < high


class Tracing(Tracer):
    """Follows every array. `sources` says, for arrays from outside, how to get them again at each call.

    A source may have a `position`, that of the argument it gets: inputs of the graph come in this order.
    """

    symbolic = True
    notes_lines = True  # whether steps are told from which line of the user's code they come

    def __init__(self, sources: Mapping[int, Callable[[Any], Any]], recorded: Iterable[int] = ()):
        self.start = tick()  # an older node is from outside
        self.sources = sources
        self.recorded_outside = set(recorded)  # the arrays from outside, by identity, whose Tensors need a gradient
        self.recorded: set[Value] = set()  # values that a Tensor with a node has held
        self.known: dict[int, _Known] = {}
        self.by_owner: dict[int, list[_Known]] = {}
        self.steps: list[Step] = []
        self.inputs: dict[Value, Callable[[Any], Any]] = {}
        self.draws: dict[Value | Number, Callable[[], Any]] = {}  # what is asked for at each call, in this order
        self.drawn: dict[Value | Number, Any] = {}  # and what it was this time
        self.decisions: list[Callable[[], bool]] = []  # each must hold for the graph to be right
        self.counts: list[dict[str, Any]] = []  # whose "step" is one more after each run: of an optimiser
        self.cleared: set[Node] = set()  # whose gradient was set to None
        self.outside: dict[int, tuple[Array, Value]] = {}  # arrays from outside, and the values they held at first
        self.constants: dict[Value, Array] = {}
        self.written: dict[int, Array] = {}  # arrays from outside that were written to
        self.written_memory: set[int] = set()  # what owns the memory of all that was written to, by identity
        self.hooks: list[str] = []  # the lines that register one
        self.grads: dict[Node, Array] = {}  # what was stored into `.grad`

    # What the engine tells

    def called(self, op: Any, inputs: Any, attrs: dict[str, Any], outputs: Any, seconds: float) -> None:
        given = tuple([self._input(x, op.name) for x in inputs])
        noted = {name: self._attribute(x, op.name) for name, x in attrs.items()}
        made = outputs if isinstance(outputs, tuple) else (outputs,)
        values = tuple([Value(t.shape, t.dtype) for t in made])
        is_recorded = any(t.node is not None for t in made)
        constant = [
            i
            for i, (x, value) in enumerate(zip(inputs, given))
            if isinstance(x, Tensor) and value in self.recorded and (x.node is None or not is_recorded)
        ]
        line = user_line() if self.notes_lines else ""
        self.steps.append(Step(op, given, noted, values, local.mode.scope, line, tuple(constant)))
        for t, value in zip(made, values):
            if t.node is not None:
                self.recorded.add(value)
            if op is OPS["setitem"] and (id(t.data) in self.known or id(t.data) in self.sources):
                self._write(t.data, value)
            else:
                self.know(t.data, value)

    def instead(self, op: Any) -> Any:
        return stays_whole(op) or op.define

    def number(self, read: Callable[[], Any], dtype: Any) -> Any:
        value = read()
        number = Number(read, int if isinstance(value, int) else float, value)
        self.draws[number], self.drawn[number] = read, value
        return standing_for(number, dtype)

    def noticed(self, event: str, *details: Any) -> None:
        getattr(self, f"_{event}")(*details)

    def _created(self, array: Array) -> None:
        if id(array) not in self.known:
            value = Value(array.shape, array.dtype, "constant")
            with on_device_of(array):
                self.constants[value] = array.copy()  # since the function may write into it
            self.know(array, value)

    def _drawn(self, array: Array, draw: Callable[[], Array]) -> None:
        value = Value(array.shape, array.dtype, "random")
        self.draws[value], self.drawn[value] = draw, array.copy()
        self.know(array, value)

    def _copied(self, array: Array, copy: Array) -> None:
        value = self.value_of(array, "a copy")
        changes: list[tuple[str, dict[str, Any]]] = []
        if array.dtype != copy.dtype:
            changes.append(("astype", {"dtype": copy.dtype.name}))
        if device_of(array) != device_of(copy):
            changes.append(("to_device", {"device": device_of(copy)}))
        for name, attrs in changes:
            made = Value(copy.shape, copy.dtype)
            self.steps.append(Step(OPS[name], (value,), attrs, (made,)))
            value = made
        self.know(copy, value)

    def _writing(self, array: Array) -> None:
        """A tracer that does not compute refuses here what must not happen."""

    def _wrote(self, array: Array, values: Array) -> None:
        self._write(array, self.value_of(values, "a write"))

    def _storing(self, node: Node) -> None:
        """The same for `node.grad`."""

    def _stored(self, node: Node, gradient: Array) -> None:
        self.value_of(gradient, "a gradient")
        self.grads[node] = gradient

    def _hooked(self) -> None:
        self.hooks.append(user_line())

    def _cleared(self, node: Node) -> None:
        self.cleared.add(node)
        self.grads.pop(node, None)

    def _counted(self, state: dict[str, Any]) -> None:
        self.counts.append(state)

    def _decided(self, holds: Callable[[], bool]) -> None:
        self.decisions.append(holds)

    def _read(self, t: Tensor, how: str) -> None:
        raise TraceError(
            f"compile: {how} looks at the value of a tensor inside a compiled function ({user_line()})",
            "ops alone: what Python decides by a value would be decided once and for all",
            f"{t.shape} {t.dtype}",
            "use mg.where in place of a branch, return what is to be printed, or leave this part out of the function",
        )

    # Arrays and values

    def value_of(self, array: Array, where: str) -> Value:
        """The value that an array holds now."""
        found = self.known.get(id(array))
        if found is not None:
            if found.is_stale:
                raise TraceError(
                    f"compile: {where} uses a view of memory that was written to after the view was made ({user_line()})",
                    got=f"{array.shape} {array.dtype}",
                    fix="take the view again after the write, or clone() it before: y[1:] = y[1:] * 2 in place of y[1:] *= 2",
                )
            return found.value
        source = self.sources.get(id(array))
        if source is None:
            raise TraceError(
                f"compile: {where} uses an array that comes from nowhere the compiler can see ({user_line()})",
                "arguments, tensors and arrays that the function refers to, and what ops make of them",
                f"{array.shape} {array.dtype}",
                "pass it as an argument, or make it with a function of minigrad: mg.tensor([…]), mg.randn(…)",
            )
        value = Value(array.shape, array.dtype)
        self.inputs[value] = source
        self.outside[id(array)] = (array, value)
        self.know(array, value)
        if id(array) in self.recorded_outside:
            self.recorded.add(value)
        return value

    def result(self, t: Tensor) -> Value:
        """The value of a Tensor that is returned: one of its own, to which no gradient goes, where it was detached."""
        value = self.value_of(t.data, "the result")
        if t.node is not None or value not in self.recorded:
            return value
        copy = Value(value.shape, value.dtype)
        self.steps.append(Step(OPS["positive"], (value,), {}, (copy,), constant=(0,)))
        return copy

    def know(self, array: Array, value: Value) -> Value:
        """From now on this array holds that value."""
        known = self.known[id(array)] = _Known(array, value, id(owner_of(array)))
        self.by_owner.setdefault(known.owner, []).append(known)
        return value

    def _write(self, array: Array, value: Value) -> None:
        """The array holds another value now; what else looks at its memory can no longer be used."""
        before = self.known.get(id(array))
        if before is None:
            self.value_of(array, "a write")
            before = self.known[id(array)]
        for other in self.by_owner[before.owner]:
            other.is_stale = other.is_stale or other is not before and may_overlap(other.array, array)
        before.value = value
        owner = owner_of(array)
        self.written_memory.add(id(owner))
        if owner is not array and id(owner) in self.sources:
            raise TraceError(
                f"compile: a part of a tensor from outside is written to ({user_line()})",
                fix="write the whole tensor: x[...] = mg.where(…)",
            )
        if id(array) in self.outside:
            self.written[id(array)] = array

    def _input(self, x: Any, where: str) -> Any:
        if isinstance(x, Scalar):
            return x.number
        if isinstance(x, Tensor):
            return self.value_of(x.data, where)
        if isinstance(x, np.generic):
            return self._constant(np.asarray(x))
        return self.value_of(x, where) if is_array(x) else x

    def _constant(self, array: Array) -> Value:
        value = Value(array.shape, array.dtype, "constant")
        self.constants[value] = array
        return value

    def _attribute(self, x: Any, where: str) -> Any:
        if isinstance(x, WholeNumber):
            return x.number
        if isinstance(x, (list, tuple)):
            return tuple([self._attribute(part, where) for part in x])
        if isinstance(x, Scalar):
            self._read(x, where)
        if isinstance(x, Tensor) or is_array(x):
            array = x.data if isinstance(x, Tensor) else x
            if array.dtype.kind == "b" and where in ("getitem", "setitem", "place"):
                raise TraceError(
                    f"compile: a boolean index gives a shape that depends on values ({user_line()})",
                    fix="use mg.where(mask, x, 0) and divide by mask.sum()",
                )
            return self.value_of(array, where)
        return x

    def check_writes(self) -> None:
        """Refuse a write that no op made: it would happen only while tracing."""
        held = [source.holder for source in self.sources.values() if isinstance(source, Held)]
        for array in [x.data if isinstance(x, Tensor) else x for x in held] + [
            known.array for known in self.known.values()
        ]:
            if writes.time(array) > self.start and id(owner_of(array)) not in self.written_memory:
                raise TraceError(
                    "compile: an array is written to by something else than an op",
                    "in-place operations on Tensors, which are repeated at each call",
                    f"{array.shape} {array.dtype}",
                    "leave this part out of the compiled function",
                )

    def graph(self, outputs: Iterable[Value]) -> Graph:
        """What was traced, up to these outputs."""
        drawn = [value for value in self.draws if isinstance(value, Value)]
        inputs = sorted(self.inputs, key=lambda value: getattr(self.inputs[value], "position", len(self.inputs)))
        return Graph([*inputs, *drawn], list(self.steps), list(outputs), dict(self.constants))
