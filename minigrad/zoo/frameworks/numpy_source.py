"""A traced graph as a function of plain NumPy, in which blocks that repeat are one loop."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...ir import Graph, Size, Step, Value
from .numpy_ops import EXPRESSIONS, FUNCTIONS, SIGNS

__all__ = ["function_of"]

WIDEST = 88  # characters of a line that another is written into
LOOSE = {*SIGNS, "silu", "positive", "clone"}  # what needs brackets inside of something else
SYMBOLS = "BTSUV"
# Values that are called after what makes them, where a function of the file has that name.
CALLED = {
    "blocks": "x", "encoder": "x", "decoder": "x", "attention": "heads", "linear": "y", "layer_norm": "normed", "gelu": "h",
    "getitem": "part", "add": "x", "embedding": "x", "vocabulary": "logits",
}  # fmt: skip
RESERVED = {*FUNCTIONS, "W", "np", "i", "pair", "math", "in", "def", "not", "or", "and", "is", "for", "if", "range"}


def function_of(name: str, graph: Graph, inputs: Sequence[str], weights: Mapping[int, str]) -> str:
    """The source of `def name(inputs)`; `weights` are the names in the file by the identity of the array."""
    lines = [f"    {shortened(line)}" for line in _Body(graph, inputs, weights).lines()]
    return "\n".join([f"def {name}({', '.join(inputs)}):", *lines])


def shortened(line: str) -> str:
    """A line with weight and bias of a module as one, and without what NumPy does not need to be told.

    >>> shortened("y = linear(x, W['up.weight'], W['up.bias'])")
    "y = linear(x, *pair('up'))"
    """
    line = re.sub(r"W\[(f?)'([^']+)\.weight'\], W\[\1'\2\.bias'\]", r"*pair(\1'\2')", line)
    line = re.sub(r"W\[(f?)'([^']+)\.in_proj_weight'\], W\[\1'\2\.in_proj_bias'\]", r"*pair(\1'\2', '.in_proj_')", line)
    return re.sub(
        r"np\.where\(\((\w+) < 0\), \d+, \1\)", r"\1", line
    )  # a negative number of a token is refused elsewhere


class _Body:
    """The lines of a function while they are written."""

    def __init__(self, graph: Graph, inputs: Sequence[str], weights: Mapping[int, str]):
        self.graph, self.inputs = graph, inputs
        self.uses = Counter(v for step in graph.steps for v in _read(step))
        self.uses.update(graph.outputs)
        self.text: dict[Value, str] = dict(zip(graph.inputs, inputs))
        self.text |= {v: f"W[{weights[id(array)]!r}]" for v, array in graph.constants.items() if array.ndim}
        self.text |= {v: self._said(array.item()) for v, array in graph.constants.items() if not array.ndim}
        self.taken = {*inputs, *RESERVED}
        self.symbols: dict[str, str] = {}

    def lines(self) -> Iterator[str]:
        yield from self._sizes()
        for block in _blocks(self.graph.steps):
            yield from self._block(block)
        returned = ", ".join(self.text[value] for value in self.graph.outputs)
        yield f"return {returned}"

    def _sizes(self) -> Iterator[str]:
        for value, name in zip(self.graph.inputs, self.inputs):
            new = [str(n) for n in value.shape if isinstance(n, Size) and str(n) not in self.symbols]
            if not new or not any(str(n) in _said(self.graph) for n in value.shape):
                continue
            letters = []
            for n in value.shape:
                if isinstance(n, Size) and str(n) in new:
                    self.symbols[str(n)] = SYMBOLS[len(self.symbols)]
                    letters.append(self.symbols[str(n)])
                    new.remove(str(n))
                else:
                    letters.append("_")
            yield f"{', '.join(letters)}{',' * (len(letters) == 1)} = {name}.shape"

    def _block(self, parts: list[list[Step]]) -> Iterator[str]:
        """The lines of steps that stand alone, or of blocks that do the same one after the other: as a loop, if they do."""
        if len(parts) > 1 and (loop := self._loop(parts)) is not None:
            yield from loop
            return
        for steps in parts:
            yield from self._written(steps)

    def _written(self, steps: Sequence[Step], kept: set[Value] | frozenset[Value] = frozenset()) -> Iterator[str]:
        for step in steps:
            text = self._expression(step) + "[0]" * (step.op.name == "_unstack" and len(step.outputs) == 1)
            out = step.outputs[0]
            once = len(step.outputs) == 1 and self.uses[out] == 1 and out not in self.graph.outputs and out not in kept
            if once and len(text) <= WIDEST - 30:
                self.text[out] = f"({text})" if step.op.name in LOOSE else text
                continue
            names = [self._name(step) for _ in step.outputs]
            self.text.update(zip(step.outputs, names))
            yield f"{', '.join(names)} = {text}"

    def _loop(self, parts: list[list[Step]]) -> list[str] | None:
        """One body for all parts, where each reads what the one before it made in the same places."""
        reads, made = [_outside(steps) for steps in parts], [_made(steps) for steps in parts]
        if len({len(one) for one in reads}) > 1 or len({len(one) for one in made}) > 1:
            return None
        carried: dict[int, int] = {}  # the place among what is read -> the place among what the part before it made
        for place, values in enumerate(zip(*reads)):
            if all(value is values[0] for value in values) or all(value in self.graph.constants for value in values):
                continue
            places = {made[i].index(value) if value in made[i] else -1 for i, value in enumerate(values[1:])}
            if len(places) > 1 or -1 in places:
                return None
            carried[place] = places.pop()
        state = _Saved(self)
        bodies, finals = [], []
        for number, steps in enumerate(parts):
            state.restore()
            for place in carried:
                self.text[reads[number][place]] = "x" if len(carried) == 1 else f"x{place}"
            kept = {made[number][place] for place in carried.values()}
            lines = list(self._written(steps, kept))
            finals.append([self.text[made[number][place]] for place in carried.values()])
            bodies.append([_numbered(line, number, first) for line in lines for first in [_number(parts[0][0])]])
        later = {v for step in self.graph.steps[self._after(parts) :] for v in _read(step)} | {*self.graph.outputs}
        inside = {value for one in made for value in one} - {made[-1][place] for place in carried.values()}
        if any(body != bodies[0] for body in bodies) or any(final != finals[0] for final in finals) or later & inside:
            state.restore()
            return None
        names = ["x" if len(carried) == 1 else f"x{place}" for place in carried]
        before = [state.text[reads[0][place]] for place in carried]
        state.restore()
        self.text.update(zip([made[-1][place] for place in carried.values()], names))
        first = _number(parts[0][0])
        start = [f"{', '.join(names)} = {', '.join(before)}"] if names != before else []
        end = [f"{', '.join(names)} = {', '.join(finals[0])}"] if names != finals[0] else []
        last = f"{finals[0][0]} = "
        if len(names) == 1 and end and bodies[0][-1].startswith(last):  # no name for what is the next x
            bodies[0][-1], end = f"{names[0]} = {bodies[0][-1].removeprefix(last)}", []
        self.taken |= set(names)
        span = f"range({len(parts)})" if not first else f"range({first}, {first + len(parts)})"
        return [*start, f"for i in {span}:", *[f"    {line}" for line in [*bodies[0], *end]]]

    def _after(self, parts: list[list[Step]]) -> int:
        return self.graph.steps.index(parts[-1][-1]) + 1

    def _name(self, step: Step) -> str:
        """Called after the module that makes it."""
        parts = [part for part in step.scope.split(".") if not part.isdigit()]
        name = re.sub(r"\W", "_", parts[-1]) if parts[1:] else step.op.name.strip("_")
        name = CALLED.get(name, name)
        name = name if name.isidentifier() else f"v_{name}"
        number = 1
        while (found := name if number == 1 else f"{name}{number}") in self.taken:
            number += 1
        self.taken.add(found)
        return found

    def _expression(self, step: Step) -> str:
        written = EXPRESSIONS.get(step.op.name)
        if written is None or step.numbers or step.attrs.get("inside") is not None:
            where = f" in the module {step.scope!r}" if step.scope else ""
            raise ArgumentError(
                f"numpy: it is not known how the op {step.op.name!r}{where} is written",
                f"one of {', '.join(sorted(EXPRESSIONS))}",
                fix="write this part with other ops, or export it otherwise: --to onnx, or a folder",
            )
        attrs = {"op": step.op.name, "keepdims": "False", "axis": "None"}
        attrs |= {key: self._index(value) if key == "index" else self._said(value) for key, value in step.attrs.items()}
        inputs = [self._said(x) for x in step.inputs]
        try:
            return written(inputs, attrs)
        except (KeyError, IndexError) as error:
            raise ArgumentError(
                f"numpy: the op {step.op.name!r} is called in a way that is not known: {error}"
            ) from None

    def _said(self, x: Any) -> str:
        if isinstance(x, Value):
            return self.text[x]
        if isinstance(x, Size):
            product = "*".join([*([str(x.factor)] if x.factor != 1 else []), *[self.symbols[s] for s in x.symbols]])
            return product.replace("*", " * ") + (
                f" {'+' if x.offset > 0 else '-'} {abs(x.offset)}" if x.offset else ""
            )
        if isinstance(x, tuple):
            return f"({', '.join(map(self._said, x))}{',' * (len(x) == 1)})"
        if isinstance(x, list):
            return f"[{', '.join(map(self._said, x))}]"
        if isinstance(x, (np.dtype, type)):
            return repr(np.dtype(x).name)
        if isinstance(x, float) and not np.isfinite(x):
            return repr(float(x)).replace("inf", "np.inf").replace("nan", "np.nan")
        return repr(x)

    def _index(self, x: Any) -> str:
        if isinstance(x, tuple):
            return ", ".join(map(self._index, x))
        if isinstance(x, slice):
            parts = ["" if part is None else self._said(part) for part in (x.start, x.stop)]
            return ":".join(parts) + (f":{self._said(x.step)}" if x.step is not None else "")
        return "..." if x is Ellipsis else self._said(x)


class _Saved:
    """What a body has named so far, to try a loop."""

    def __init__(self, body: _Body):
        self.body, self.text, self.taken = body, dict(body.text), set(body.taken)

    def restore(self) -> None:
        self.body.text, self.body.taken = dict(self.text), set(self.taken)


def _read(step: Step) -> list[Value]:
    """The values that a step reads, as often as it does."""
    found = [x for x in step.inputs if isinstance(x, Value)]
    return [*found, *(v for v in step.values if v not in found)]


def _outside(steps: Sequence[Step]) -> list[Value]:
    made = {*_made(steps)}
    return list(dict.fromkeys(v for step in steps for v in _read(step) if v not in made))


def _made(steps: Sequence[Step]) -> list[Value]:
    return [out for step in steps for out in step.outputs]


def _number(step: Step) -> int | None:
    found = re.search(r"\.(\d+)(?=\.|$)", step.scope)
    return None if found is None else int(found[1])


def _numbered(line: str, number: int, first: int | None) -> str:
    """A line of one of the parts, with `i` for its number in the names of weights."""
    own = (first or 0) + number
    return re.sub(rf"W\['([^']*?\.){own}\.([^']*)'\]", r"W[f'\1{i}.\2']", line)


def _blocks(steps: Sequence[Step]) -> Iterator[list[list[Step]]]:
    """Steps in their order: alone, or together with the parts of the same name and other numbers that follow them."""
    runs: list[tuple[tuple[str, int] | None, list[Step]]] = []
    for step in steps:
        found = re.match(r"(.*?)\.(\d+)(?=\.|$)", step.scope)
        key = None if found is None else (found[1], int(found[2]))
        if runs and runs[-1][0] == key:
            runs[-1][1].append(step)
        else:
            runs.append((key, [step]))
    group: list[list[Step]] = []
    last: tuple[str, int] | None = None
    for key, part in runs:
        if group and key is not None and last is not None and key == (last[0], last[1] + 1):
            group.append(part)
        else:
            if group:
                yield group
            group = [part]
        last = key
    if group:
        yield group


def _said(graph: Graph) -> set[str]:
    """The symbols that a step says, in its attributes or inputs."""
    found: set[str] = set()

    def look(x: Any) -> None:
        if isinstance(x, Size):
            found.update(x.symbols)
        elif isinstance(x, (tuple, list)):
            for part in x:
                look(part)
        elif isinstance(x, slice):
            look((x.start, x.stop, x.step))

    for step in graph.steps:
        look((step.inputs, *step.attrs.values()))
    return found
