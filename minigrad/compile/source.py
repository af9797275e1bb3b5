"""A loop as source, and a call of it, as far as all languages agree: the names, the walk over formulas, the statements.

A language says how a name gets a value (`let`), how memory does (`assign`), and what its loops look like. The dtypes f4, f8, i4,
i8 and b1 are names that the source has for them; `f4(x)` is a cast.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..engine.backend import Array
from ..errors import IndexingError
from ..ir.graph import Number, Value, at_sizes
from ..ir.lowering import SHORT, SIGNS, work_dtype
from . import loops as L

_PLAIN = {0, 1, 2, 3, 4, -1, -2, 0.5, -0.5}  # in the source; other numbers are given to it, so that sizes may change
_OF_KEPT = {"element": "i8", "p": "f8", "key": "i8", "start": "i8"}
Names = dict[str, Any]  # of operands: a name and its dtype, or a number
Known = dict[Any, Any]  # arrays by Value, and numbers by Number
Call = Callable[[Known], None]
Run = Callable[[Sequence[Array], Mapping[Any, Any]], Sequence[Array]]  # from arrays and numbers to arrays


def short(dtype: Any) -> str:
    """The name of a dtype in the source."""
    return SHORT[np.dtype(dtype)]


def cast(text: str, given: str, wanted: str) -> str:
    """An expression of one dtype as another."""
    return text if given == wanted else f"({text} != 0)" if wanted == "b1" else f"{wanted}({text})"


def _infix(op: ast.AST, given: list[str]) -> str:
    return f"({f' {SIGNS[type(op)]} '.join(given)})"


class Writer:
    """Writes loops. With `literal`, sizes stand in the source, else they are arguments.

    What is different in each language are these templates, what totals are, and how loops and functions begin and end.
    """

    modules: dict[str, str]  # what stands before the name of a function, by the dtype of its arguments
    let_form: str  # a new name stands for a value
    total_form: str  # a total begins with a value
    end = ""  # what ends a loop
    booleans = ("False", "True")
    of_powers: str | None = None  # the dtype in which small whole powers are computed, if not their own

    def __init__(self, constants: dict[Value, Any], literal: bool = False, shared: Any = None):
        self.constants, self.literal = constants, literal
        self.shared: dict[Any, Value] = shared or {}  # values that lie in the memory of others
        self.ints: dict[int, str] = {}
        self.numbers: dict[Any, tuple[str, Any, str]] = {}  # a name, the number and a dtype
        self.arrays: dict[Value, str] = {}
        self.lines: list[str] = []
        self.depth = 1
        self.in_blocks = False  # whether a row begins at `lo`
        self.checks = False
        self.along = False  # whether statements are for an element of the row, not for the row

    def let(self, name: str, dtype: Any, text: str) -> None:
        """Write that a new name stands for this value."""
        self.write(self.let_form.format(name=name, dtype=short(dtype), text=text))

    def assign(self, place: str, text: str) -> None:
        """Write a value to a place in memory, or to a total."""
        self.write(f"{place} = {text}")

    def first(self, s: L.Reduce) -> str:
        """What a total begins with."""
        return self.known(s.first, short(s.dtype))

    def finished(self, s: L.Reduce) -> str:
        """What the total of a row is when the row has ended."""
        return f"{s.into}_total"

    # Names

    def write(self, line: str) -> None:
        self.lines += ["    " * self.depth + line] if line else []

    def size(self, value: int, name: str | None = None) -> str:
        """A size or stride: 0 and 1 as they are, others as arguments."""
        if value in (0, 1) or self.literal:
            return str(int(value))
        return self.ints.setdefault(value, name or f"n{len(self.ints)}")

    def array(self, root: Any) -> str:
        return self.arrays.setdefault(self.shared.get(root, root), f"a{len(self.arrays)}")

    def known(self, number: Any, dtype: str) -> str:
        """A number in the dtype that it is needed in."""
        if hasattr(number, "item"):
            number = number.item()
        number = int(number) if isinstance(number, bool) else number
        if not isinstance(number, Number):
            if dtype == "b1":
                return self.booleans[bool(number)]
            if isinstance(number, float) and not math.isfinite(number):
                return f"{dtype}({number})"
            if self.literal or number in _PLAIN:
                return f"{dtype}({number!r})"
        key = number if isinstance(number, Number) else repr(number), dtype
        return self.numbers.setdefault(key, (f"c{len(self.numbers)}", number, dtype))[0]

    # Expressions

    def expression(self, node: ast.AST, names: Names, work: str, wanted: str = "") -> str:
        """A formula as source, computed in dtype `work`, as dtype `wanted` if given."""
        return cast(*self.typed(node, names, work, wanted or work), wanted or work)

    def typed(self, node: ast.AST, names: Names, work: str, wanted: str) -> tuple[str, str]:
        """A formula as source, and its dtype: that of a number is `wanted`, that of a test b1, that of arithmetic `work`."""

        def given(nodes: Iterable[ast.AST], dtype: str = work) -> list[str]:
            return [self.expression(x, names, work, dtype) for x in nodes]

        match node:
            case ast.Constant(number):
                return self.known(number, wanted), wanted
            case ast.Name(name):
                known = names[name] if name in names else float(name)  # inf or nan
                return (known[0], short(known[1])) if isinstance(known, tuple) else (self.known(known, wanted), wanted)
            case ast.UnaryOp(op, x) if isinstance(op, ast.Not) or isinstance(op, ast.Invert) and work == "b1":
                return f"(not {given([x], 'b1')[0]})", "b1"
            case ast.BoolOp(op, values):
                return _infix(op, given(values, "b1")), "b1"
            case ast.Compare(left, [op], [right]):
                dtype = "i8" if "position" in [getattr(x, "id", "") for x in (left, right)] else work
                return _infix(op, [self.expression(x, names, dtype) for x in (left, right)]), "b1"
            case ast.Call(ast.Name("kept")):
                return self.call("kept", "f4", *[given([ast.Name(k)], dtype)[0] for k, dtype in _OF_KEPT.items()]), "b1"
            case ast.IfExp(test, body, orelse):
                return self.call("select", work, *given([test], "b1"), *given([body, orelse])), work
            case ast.BinOp(left, op, right):
                return self.wrapped(_infix(op, given([left, right])), work), work
            case ast.UnaryOp(op, x):
                return self.wrapped(f"({SIGNS[type(op)]}{given([x])[0]})", work), work
            case ast.Call(ast.Name("power"), [base, ast.Name(name)]) if names[name] in (3, 4):  # exact, and fast
                dtype = self.of_powers or work
                product = _infix(ast.Mult(), [cast(given([base])[0], work, dtype)] * int(names[name]))
                return cast(product, dtype, work), work
            case ast.Call(ast.Name(function), arguments):
                return self.wrapped(self.call(function, work, *given(arguments)), work), work
        raise AssertionError(node)

    def wrapped(self, text: str, work: str) -> str:
        """Arithmetic with whole numbers as their dtype: it may have become a wider one."""
        return text if work in ("f4", "f8") else cast(text, "", work)

    def call(self, function: str, work: str, *given: str) -> str:
        return f"{self.modules[work]}{function}({', '.join(given)})"

    # Memory

    def offset(self, access: L.Access, j: str = "") -> str:
        """The place of an element; without `j`, that where its row begins."""
        start = "lo" if self.in_blocks and j in ("", "j") else ""
        terms = [*[(f"i{k}", s) for k, s in enumerate(access.outer)], (start, access.inner), (j, access.inner)]
        parts = [self.size(access.offset)] if access.offset else []
        parts += [name if s == 1 else f"{name} * {self.size(s)}" for name, s in terms if name and s]
        return " + ".join(parts) or "0"

    def element(self, access: L.Access, at: str | None = None) -> str:
        """An element of an array at a point of the loop, or the number of that point."""
        if isinstance(access.root, L.Slot):
            return f"{access.root.name}[j]"
        offset = self.offset(access, at or "j")
        return offset if access.root is None else f"{self.array(access.root)}[{offset}]"

    # Statements

    def phases(self, loop: L.Loop, along: str) -> None:
        """Write what is done for one row, in which each phase goes `along` it."""
        for (_, level), part in loop.parts.items():
            if level == L.ROW:
                self.statements(part)
            elif level == L.ELEMENT:
                for s in L.totals(part):
                    self.write(self.total_form.format(name=f"{s.into}_total", dtype=short(s.dtype), text=self.first(s)))
                self.write(along)
                self.depth, self.along = self.depth + 1, True
                self.statements(part)
                self.depth, self.along = self.depth - 1, False
                self.write(self.end)
                for s in L.totals(part):
                    self.let(str(s.into), s.dtype, self.finished(s))

    def statements(self, given: Iterable[L.Statement]) -> None:
        for s in given:
            getattr(self, f"write_{type(s).__name__.lower()}")(s)

    def write_load(self, s: L.Load) -> None:
        root = s.access.root
        array: Any = self.constants.get(root)  # type: ignore[arg-type]
        is_number = array is not None and array.size == 1
        text = self.known(array.item(), short(array.dtype)) if is_number else self.element(s.access, s.at)
        self.let(s.name, np.int64 if root is None else root.dtype, text)

    def write_compute(self, s: L.Compute) -> None:
        step, out = s.member.step, s.member.step.out.dtype
        self.let(s.name, out, self.expression(s.member.formula.tree, s.names, short(work_dtype(step)), short(out)))

    def write_store(self, s: L.Store) -> None:
        self.assign(self.element(s.access), s.name)

    def write_reduce(self, s: L.Reduce) -> None:
        total = f"{s.into}_total" if isinstance(s.into, str) else self.element(s.into)
        function, dtype = s.kind.function, short(s.dtype)
        given = cast(s.name, short(s.given), dtype)
        if dtype == "b1":
            self.assign(total, f"{total} {'|' if function == 'maximum' else '&'} {given}")
        else:
            self.assign(total, self.wrapped(self.call(function, dtype, total, given), dtype))

    # What a function is called with

    def passed(self) -> list[tuple[Any, str]]:
        """The numbers, and the dtype that each is passed in."""
        return [(number, dtype) for _, number, dtype in self.numbers.values()]

    def arrays_of(self, loop: L.Loop) -> list[Value]:
        """What the loop reads and writes, without the numbers among the constants."""
        read = [v for v in loop.reads if v not in self.constants or self.constants[v].size > 1]
        return [*read, *[v for v in loop.writes if v not in self.shared]]


class LoopCall:
    """One compiled loop. `shared` says which of its outputs take the memory of an array that is read for the last time."""

    comment = "#"  # what begins one in the source

    def __init__(self, loop: L.Loop, writer: Any, shared: Mapping[Value, Value]):
        self.loop, self.shared = loop, shared
        self.text = writer.function("loop", loop)
        self.ints, self.numbers, self.arrays = tuple(writer.ints), tuple(writer.passed()), writer.arrays_of(loop)
        self.checks = writer.checks

    @property
    def source(self) -> str:
        """The text, and the sizes that it is called with here."""
        arrays = ", ".join(f"{v.dtype}{list(v.shape)}" for v in self.arrays)
        return f"{self.comment} Here over {list(self.loop.group.sizes)}, with {arrays}\n{self.text}"

    def at(self, sizes: Mapping[str, int], ready: set[Value], xp: Any) -> Call:
        """The call for certain sizes: it takes its arrays from those that are known, and puts what it makes there.

        `ready` are the values that are there already: one that several loops write to is made by the first of them.
        """
        raise NotImplementedError

    def new(self, sizes: Mapping[str, int], ready: set[Value]) -> list[tuple[Value, tuple[int, ...], Any]]:
        """The values that a call makes memory for, their shapes and their dtypes."""
        made = [v for v in self.loop.writes if v not in self.shared and v not in ready]
        return [(v, at_sizes(v.shape, sizes), v.dtype) for v in made]


def joined(total: L.Reduce, parts: Any) -> Any:
    """One sum of those that several threads or blocks made, (parts, elements) -> (elements,)."""
    return getattr(parts, total.kind.join)(axis=0).astype(total.dtype, copy=False)


def number(x: Any, dtype: str, known: Mapping[Any, Any]) -> Any:
    """A number as a compiled function takes it: whole ones as the 64 bits of an int64."""
    x = known[x] if isinstance(x, Number) else x
    return ((int(x) + 2**63) % 2**64) - 2**63 if dtype[0] == "i" else float(x)


def wrong_index(count: int) -> IndexingError:
    """The error for indices out of range."""
    return IndexingError("an index is out of range in a compiled function", got=f"{count} of them")


def in_pool(pool: Sequence[np.ndarray], start: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """A copy of the array that begins at this byte of the memory in `pool`."""
    return np.frombuffer(pool[0], dtype, math.prod(shape), start).reshape(shape).copy()
