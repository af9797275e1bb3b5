"""A loop as source, as far as all languages agree: the names, the walk over formulas, the statements.

A language says how a name gets a value (`let`), how memory does (`assign`), and what its loops look like. The dtypes f4, f8, i4,
i8 and b1 are names that the source has for them; `f4(x)` is a cast.
"""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..ir.graph import Number, Value
from . import loops as L
from .lowering import DTYPES, work_dtype

_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
_COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_PLAIN = {0, 1, 2, 3, 4, -1, -2, 0.5, -0.5}  # in the source; other numbers are given to it, so that sizes may change
_OF_KEPT = {"element": "i8", "p": "f8", "key": "i8", "start": "i8"}
Names = dict[str, Any]  # of operands: a name and its dtype, or Known


def short(dtype: Any) -> str:
    """The name of a dtype in the source."""
    return DTYPES[np.dtype(dtype).name]


def cast(text: str, given: str, wanted: str) -> str:
    """An expression of one dtype as another."""
    return text if given == wanted else f"({text} != 0)" if wanted == "b1" else f"{wanted}({text})"


def kind_of(member: Any) -> str:
    """Which reduction it is: "+", "*", "maximum", "minimum", "or" or "and"."""
    tree = member.formula.tree
    if isinstance(tree, ast.BinOp):
        return _OPERATORS[type(tree.op)]
    return type(tree.op).__name__.lower() if isinstance(tree, ast.BoolOp) else tree.func.id


def identity(member: Any, dtype: Any) -> Any:
    """The number that a reduction begins with."""
    kind, dtype = kind_of(member), np.dtype(dtype)
    if kind in ("+", "*"):
        return int(kind == "*")
    if dtype == np.bool_:
        return kind in ("and", "minimum")
    sign = -1 if kind == "maximum" else 1
    if dtype.kind == "f":
        return sign * math.inf
    return np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min


def _is_test(node: ast.expr) -> bool:
    """Whether the text of an expression is a boolean, whatever dtype it is computed in."""
    is_not = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    return is_not or isinstance(node, (ast.Compare, ast.BoolOp)) or _called(node) == "kept"


def _called(node: ast.expr) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


@dataclass
class Kernel:
    """The text of one function, and what it is called with."""

    text: str
    ints: list[int] = field(default_factory=list)
    numbers: list[tuple[Any, str]] = field(default_factory=list)  # and a dtype
    arrays: list[Value] = field(default_factory=list)
    sums: list[L.Accumulate] = field(default_factory=list)
    scratch: dict[str, int] = field(default_factory=dict)
    checks: bool = False  # whether it counts wrong indices


class Writer:
    """Writes loops. With `literal`, sizes stand in the source, else they are arguments."""

    modules: dict[str, str]  # what stands before the name of a function, by the dtype of its arguments
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
        self.row_axes: frozenset[int] = frozenset()
        self.in_blocks = False  # whether a row begins at `lo`
        self.checks = False
        self.along = False  # whether statements are for an element of the row, not for the row

    # Language

    def let(self, name: str, dtype: str | None, text: str) -> None:
        """Write that a new name stands for this value."""
        raise NotImplementedError

    def assign(self, place: str, text: str) -> None:
        """Write a value to a place in memory, or to a total."""
        raise NotImplementedError

    def total(self, s: L.Reduce) -> None:
        """Write what a total begins with."""
        raise NotImplementedError

    def finished(self, member: Any, total: str) -> str:
        """What a total is when the row has ended."""
        raise NotImplementedError

    # Names

    def write(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

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
        key = (id(number) if isinstance(number, Number) else repr(number), dtype)
        return self.numbers.setdefault(key, (f"c{len(self.numbers)}", number, dtype))[0]

    # Expressions

    def operand(self, given: Any, wanted: str) -> str:
        if isinstance(given, L.Known):
            return self.known(given.number, wanted)
        return cast(given[0], short(given[1]), wanted)

    def truth(self, node: ast.expr, names: Names, work: str) -> str:
        """A formula as a condition."""
        if isinstance(node, ast.Name) and node.id in names:
            return self.operand(names[node.id], "b1")
        text = self.expression(node, names, work)
        return text if _is_test(node) else f"({text} != 0)"

    def expression(self, node: ast.expr, names: Names, work: str) -> str:
        """A formula as source, computed in dtype `work`; a condition gives a boolean."""
        if isinstance(node, ast.Constant):
            return self.known(node.value, work)
        if isinstance(node, ast.Name):
            return f"{work}({node.id})" if node.id in ("inf", "nan") else self.operand(names[node.id], work)
        if isinstance(node, ast.BinOp):
            sides = [self.expression(x, names, work) for x in (node.left, node.right)]
            return self.wrapped(f"({sides[0]} {_OPERATORS[type(node.op)]} {sides[1]})", work)
        if isinstance(node, ast.UnaryOp):
            return self.unary(node, names, work)
        if isinstance(node, ast.Compare):
            return self.comparison(node, names, work)
        if isinstance(node, ast.BoolOp):
            sign = " & " if isinstance(node.op, ast.And) else " | "
            return f"({sign.join([self.truth(x, names, work) for x in node.values])})"
        if isinstance(node, ast.IfExp):
            values = [self.expression(x, names, work) for x in (node.body, node.orelse)]
            return self.call("select", work, self.truth(node.test, names, work), *values)
        assert isinstance(node, ast.Call)
        name = _called(node)
        if name == "kept":
            return self.call(name, "f4", *[self.operand(names[k], dtype) for k, dtype in _OF_KEPT.items()])
        power = self.product(node, names, work) if name == "power" else None
        return power or self.wrapped(self.call(name, work, *[self.expression(x, names, work) for x in node.args]), work)

    def wrapped(self, text: str, work: str) -> str:
        """Arithmetic with whole numbers as their dtype: it may have become a wider one."""
        return text if work in ("f4", "f8") else cast(text, "", work)

    def call(self, function: str, work: str, *given: str) -> str:
        return f"{self.modules[work]}{function}({', '.join(given)})"

    def unary(self, node: ast.UnaryOp, names: Names, work: str) -> str:
        if isinstance(node.op, ast.Not) or isinstance(node.op, ast.Invert) and work == "b1":
            return f"(not {self.truth(node.operand, names, work)})"
        inner = self.expression(node.operand, names, work)
        sign = {ast.UAdd: "", ast.USub: "-", ast.Invert: "~"}[type(node.op)]
        return self.wrapped(f"({sign}{inner})", work) if sign else inner

    def comparison(self, node: ast.Compare, names: Names, work: str) -> str:
        sides = [node.left, node.comparators[0]]
        if any(_is_test(x) for x in sides):
            left, right = (self.truth(x, names, work) for x in sides)
        else:
            is_place = "position" in [getattr(x, "id", "") for x in sides]
            left, right = (self.expression(x, names, "i8" if is_place else work) for x in sides)
        return f"({left} {_COMPARISONS[type(node.ops[0])]} {right})"

    def product(self, node: ast.Call, names: Names, work: str) -> str | None:
        """A small whole power as a product."""
        exponent = names[node.args[1].id] if isinstance(node.args[1], ast.Name) else None
        if not isinstance(exponent, L.Known) or exponent.number not in (3, 4):
            return None
        dtype = self.of_powers or work
        base = cast(self.expression(node.args[0], names, work), work, dtype)
        return cast("(" + " * ".join([base] * int(exponent.number)) + ")", dtype, work)

    # Memory

    def times(self, name: str, stride: int) -> str:
        return name if stride == 1 else f"{name} * {self.size(stride)}"

    def offset(self, access: L.Access, j: str = "") -> str:
        """The place of an element; without `j`, that where its row begins."""
        parts = [self.size(access.offset)] if access.offset else []
        parts += [self.times(f"i{k}", stride) for k, stride in enumerate(access.outer) if stride]
        if access.inner:
            start = ["lo"] if self.in_blocks and j in ("", "j") else []
            parts += [self.times(name, access.inner) for name in (*start, j) if name]
        return " + ".join(parts) or "0"

    def element(self, access: L.Access, at: str | None = None) -> str:
        """An element of an array at a point of the loop."""
        return f"{self.array(access.root)}[{self.offset(access, at or 'j')}]"

    def loaded(self, s: L.Load) -> str:
        root = s.access.root
        if root is None:
            return self.offset(s.access, s.at or "j")
        array = self.constants.get(root)
        if array is not None and array.size == 1:
            return self.known(array.reshape(())[()], short(root.dtype))
        return self.element(s.access, s.at)

    # Statements

    def phases(self, loop: L.Loop, along: str) -> None:
        """Write what is done for one row, in which each phase goes `along` it."""
        for q in range(max([*loop.between, *loop.along, 0]) + 1):
            self.statements(loop.between.get(q, ()))
            body = loop.along.get(q, ())
            for s in body:
                if isinstance(s, L.Reduce):
                    self.total(s)
            if body:
                self.write(along)
                self.depth, self.along = self.depth + 1, True
                self.statements(body)
                self.depth, self.along = self.depth - 1, False
                self.end()

    def end(self) -> None:
        """Write what ends a loop."""

    def statements(self, given: Any) -> None:
        for s in given:
            getattr(self, f"write_{type(s).__name__.lower()}")(s)

    def write_load(self, s: L.Load) -> None:
        self.let(s.name, "i8" if s.access.root is None else short(s.access.root.dtype), self.loaded(s))

    def write_compute(self, s: L.Compute) -> None:
        step, tree = s.member.step, s.member.formula.tree
        work, out = short(work_dtype(step)), short(step.out.dtype)
        text = self.expression(tree, s.names, work)
        self.let(s.name, out, text if _is_test(tree) else cast(text, work, out))

    def write_copy(self, s: L.Copy) -> None:
        self.let(s.name, None, s.source)

    def write_store(self, s: L.Store) -> None:
        self.assign(self.element(s.access), s.name)

    def write_keep(self, s: L.Keep) -> None:
        self.assign(f"k{short(s.slot[0])}_{s.slot[1]}[j]", s.name)

    def write_fetch(self, s: L.Fetch) -> None:
        if isinstance(s.slot, L.Access):
            self.let(s.name, short(s.slot.root.dtype), self.element(s.slot))  # type: ignore[union-attr]
        else:
            dtype = short(s.slot[0])
            self.let(s.name, dtype, f"k{dtype}_{s.slot[1]}[j]")

    def write_reduce(self, s: L.Reduce) -> None:
        out = short(s.member.step.out.dtype)
        given = cast(s.name, short(s.member.step.inputs[0].dtype), out)
        self.assign(s.total, self.combined(s.member, s.total, given, out))

    def write_finish(self, s: L.Finish) -> None:
        self.let(s.name, short(s.member.step.out.dtype), self.finished(s.member, s.total))

    def write_accumulate(self, s: L.Accumulate) -> None:
        step, place, dtype = s.member.step, self.element(s.access), short(s.dtype)
        of_row = s.member.reduced & self.row_axes
        given = cast(s.name, short(step.out.dtype if of_row else step.inputs[0].dtype), dtype)
        self.assign(place, self.combined(s.member, place, given, dtype))

    def combined(self, member: Any, total: str, name: str, dtype: str) -> str:
        kind = kind_of(member)
        if dtype == "b1":
            return f"{total} {'|' if kind in ('or', 'maximum') else '&'} {name}"
        return self.wrapped(self.call({"+": "plus", "*": "times"}.get(kind, kind), dtype, total, name), dtype)

    # Functions

    def made(self, text: str, loop: L.Loop, numbers: list[tuple[Any, str]]) -> Kernel:
        """The text of a loop, with what it is called with."""
        sums = list(loop.sums.values())
        return Kernel(text, list(self.ints), numbers, self.arrays_of(loop), sums, dict(loop.slots), self.checks)

    def arrays_of(self, loop: L.Loop) -> list[Value]:
        """What the loop reads and writes, without the numbers among the constants."""
        read = [v for v in loop.reads if v not in self.constants or self.constants[v].size > 1]
        return [*read, *[v for v in loop.writes if v not in self.shared]]
