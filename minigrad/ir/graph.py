"""The traced graph: what a function computes, as a list of steps from inputs to outputs.

>>> import minigrad as mg
>>> from minigrad.compile import trace
>>> print(trace(lambda x, w: x @ w.T, mg.ones(4, 2), mg.ones(8, 2)))
inputs: v0: float32[4, 2], v1: float32[8, 2]
v2: float32[2, 8] = transpose(v1)
v3: float32[4, 8] = matmul(v0, v2)
return v3

A `Value` is an array that will exist when the graph runs; a `Step` makes values from values by one op. Whatever reads the
graph (the compiler, exports, pictures) finds the op itself in the step, with all that is true of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import zip_longest
from typing import Any

import numpy as np

from ..engine.backend import Array
from ..errors import ShapeError

__all__ = ["Graph", "Number", "Size", "Step", "Value"]


class Value:
    """An array that exists while the graph runs: its shape and dtype are known, its elements are not."""

    __slots__ = ("shape", "dtype", "name")

    def __init__(self, shape: tuple[int, ...], dtype: Any, name: str = ""):
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)
        self.name = name

    def __repr__(self) -> str:
        return f"{self.name or 'value'}: {self.dtype}[{', '.join(map(str, self.shape))}]"

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)


class Size(int):
    """A size that varies: `factor * symbols[0] * symbols[1] … + offset`; as a number, what it was in the first trace.

    It is equal to another only if both are the same expression: 4 as a batch is not 4 as a width.
    """

    symbols: tuple[str, ...]
    factor: int
    offset: int

    def __new__(cls, value: int, symbols: Sequence[str], factor: int = 1, offset: int = 0) -> Size:
        self = super().__new__(cls, value)
        self.symbols, self.factor, self.offset = tuple(symbols), factor, offset
        return self

    def __repr__(self) -> str:
        text = "*".join([*([str(self.factor)] if self.factor != 1 else []), *self.symbols])
        return text + (f"{self.offset:+}" if self.offset else "")

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and repr(self) == repr(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(repr(self))

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Size) and not self.offset and not other.offset:
            symbols = sorted(self.symbols + other.symbols)
            return Size(int(self) * int(other), symbols, self.factor * other.factor)
        if isinstance(other, int) and not isinstance(other, Size):
            return Size(int(self) * other, self.symbols, self.factor * other, self.offset * other) if other else 0
        return NotImplemented

    __rmul__ = __mul__

    def at(self, sizes: Mapping[str, int]) -> int:
        """The size, given those that the symbols stand for."""
        return self.factor * math.prod([sizes[name] for name in self.symbols]) + self.offset


def at_sizes(x: Any, sizes: Mapping[str, int]) -> Any:
    """`x` with every Size in it, also inside tuples and slices, as the number that it is for these sizes."""
    if isinstance(x, Size):
        return x.at(sizes)
    if isinstance(x, tuple):
        return tuple([at_sizes(part, sizes) for part in x])
    if isinstance(x, slice):
        return slice(*[at_sizes(part, sizes) for part in (x.start, x.stop, x.step)])
    return x


class Number:
    """A number that is asked for anew at each call: a learning rate, the key of a dropout. Its kind is float or int."""

    __slots__ = ("read", "kind", "example", "name", "derived")

    def __init__(self, read: Callable[[], Any], kind: type, example: Any, name: str = "number"):
        self.read = read
        self.kind = kind
        self.example = example  # what it was when the function was traced
        self.name = name
        self.derived: dict[Any, Number] = {}  # what arithmetic made of it

    def __repr__(self) -> str:
        return self.name


def replaced(x: Any, change: Callable[[Any], Any]) -> Any:
    """`x` with every Value and Number in it, also inside tuples, lists and dicts, put through `change`."""
    kind = type(x)
    if kind is Value or kind is Number:
        return change(x)
    if kind is tuple or kind is list:
        return kind([replaced(item, change) for item in x])
    if kind is dict:
        return {key: replaced(item, change) for key, item in x.items()}
    return x


@dataclass(eq=False)
class Step:
    """One op: its inputs are Values, Numbers, plain numbers or None; so are the values of its attributes."""

    op: Any
    inputs: tuple[Any, ...]
    attrs: dict[str, Any]
    outputs: tuple[Value, ...]
    scope: str = ""
    line: str = ""
    constant: tuple[int, ...] = ()  # the numbers of the inputs to which no gradient goes here: they were detached

    @cached_property
    def values(self) -> list[Value]:
        """The Values that it reads, each once: inputs, and the arrays in an index."""
        return [x for x in self._read() if isinstance(x, Value)]

    @cached_property
    def numbers(self) -> list[Number]:
        """The Numbers that it reads, each once."""
        return [x for x in self._read() if isinstance(x, Number)]

    def _read(self) -> list[Any]:
        found: dict[Any, None] = {}
        replaced((self.inputs, self.attrs), lambda x: found.setdefault(x))
        return list(found)

    @property
    def out(self) -> Value:
        """The only output."""
        (out,) = self.outputs
        return out

    def rewritten(self, change: Callable[[Any], Any]) -> Step:
        """The step with its Values and Numbers put through `change`; itself if none changes."""
        inputs, attrs = replaced(self.inputs, change), replaced(self.attrs, change)
        if all(a is b for a, b in zip(inputs, self.inputs)) and all(attrs[k] is v for k, v in self.attrs.items()):
            return self
        return replace(self, inputs=inputs, attrs=attrs)


@dataclass(eq=False)
class Graph:
    """Steps from `inputs` and `constants` to `outputs`, in an order in which they can run."""

    inputs: list[Value]
    steps: list[Step]
    outputs: list[Value]
    constants: dict[Value, Array] = field(default_factory=dict)

    def __str__(self) -> str:
        named = names(self)
        lines = [f"inputs: {', '.join(_typed(named, v) for v in self.inputs)}"]
        lines += [f"{_typed(named, v)} = constant" for v in self.constants]
        lines += [_line(named, step) for step in self.steps]
        return "\n".join([*lines, f"return {', '.join(named[v] for v in self.outputs)}"])

    def producers(self) -> dict[Value, Step]:
        """The step that makes each value; inputs and constants have none."""
        return {out: step for step in self.steps for out in step.outputs}

    def numbers(self) -> Iterator[Number]:
        """Each Number that a step reads, once."""
        yield from dict.fromkeys(number for step in self.steps for number in step.numbers)

    def replay(self, inputs: Sequence[Any], numbers: Callable[[Number], Any] | None = None) -> list[Any]:
        """Run the steps one by one: arrays give arrays, Tensors give Tensors, which can be differentiated again.

        `numbers` says what a Number stands for; unless given, each is read.
        """
        known: dict[Any, Any] = {**dict(zip(self.inputs, inputs)), **self.constants, **sizes_of(self, inputs)}
        read = {number: number.read() if numbers is None else numbers(number) for number in self.numbers()}
        known |= read
        for step in self.steps:
            known.update(zip(step.outputs, run_step(step, known)))
        return [known[v] for v in self.outputs]


def sizes_of(graph: Graph, inputs: Sequence[Any]) -> dict[str, int]:
    """What the symbols of a graph stand for, given arrays for its inputs."""
    found: dict[str, int] = {}
    for value, array in zip(graph.inputs, inputs):
        for n, actual in zip(value.shape, array.shape, strict=True):
            if isinstance(n, Size) and len(n.symbols) == 1 and n.factor == 1 and not n.offset:
                if found.setdefault(n.symbols[0], actual) != actual:
                    raise ShapeError(f"graph: {n} is two sizes at once", found[n.symbols[0]], actual)
            elif not isinstance(n, Size) and n != actual:
                raise ShapeError("graph: an input has another size", repr(value), f"{array.shape}")
    return found


def broadcast(shapes: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of arrays of these shapes together; sizes that vary stay what they are."""
    aligned = zip_longest(*[shape[::-1] for shape in shapes], fillvalue=1)
    return tuple([next((n for n in sizes if n != 1), 1) for sizes in aligned])[::-1]


def run_step(step: Step, known: Mapping[Any, Any]) -> tuple[Any, ...]:
    """What one step makes of the arrays, Tensors and numbers that `known` has for its Values, Numbers and the names of sizes."""
    given = [_bound(x, known) for x in step.inputs]
    for i in step.constant:
        given[i] = given[i].detach() if hasattr(given[i], "node") else given[i]
    attrs = {name: _bound(x, known, in_index=True) for name, x in step.attrs.items()}
    made = step.op(given, **attrs) if step.op.signature.variadic else step.op(*given, **attrs)
    made = tuple(made) if step.op.several else (made,)
    return tuple([np.asarray(x) if isinstance(x, (np.generic, int, float)) else x for x in made])


def _bound(x: Any, known: Mapping[Any, Any], in_index: bool = False) -> Any:
    if isinstance(x, (Value, Number)):
        found = known[x]
        return getattr(found, "data", found) if in_index and hasattr(found, "node") else found
    if isinstance(x, tuple):
        return tuple([_bound(part, known, in_index) for part in x])
    return at_sizes(x, known)


def names(graph: Graph) -> dict[Value, str]:
    """A short name for each value: its own where it has one that is still free, otherwise v0, v1, …"""
    found: dict[Value, str] = {}
    taken: set[str] = set()
    steps = (out for step in graph.steps for out in step.outputs)
    for value in (*graph.inputs, *graph.constants, *steps):
        name = value.name if value.name and value.name not in taken else f"v{len(found)}"
        found[value] = name
        taken.add(name)
    return found


def _typed(named: dict[Value, str], value: Value) -> str:
    return f"{named[value]}: {value.dtype}[{', '.join(map(str, value.shape))}]"


def _line(named: dict[Value, str], step: Step) -> str:
    given = [named[x] if isinstance(x, Value) else repr(x) for x in step.inputs]
    given += [f"{name}={value!r}" for name, value in step.attrs.items()]
    made = ", ".join(_typed(named, out) for out in step.outputs)
    return f"{made} = {step.op.name}({', '.join(given)})"


def without_unused(graph: Graph, outputs: Iterable[Value], keep_inputs: bool = False) -> Graph:
    """The steps that the given outputs need, and the constants and, unless all are kept, the inputs that these read."""
    outputs = list(outputs)
    needed = set(outputs)
    steps = []
    for step in reversed(graph.steps):
        if any(out in needed for out in step.outputs):
            needed.update(step.values)
            steps.append(step)
    constants = {v: array for v, array in graph.constants.items() if v in needed}
    inputs = [v for v in graph.inputs if keep_inputs or v in needed]
    return Graph(inputs, steps[::-1], outputs, constants)
