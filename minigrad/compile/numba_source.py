"""A loop as the source of a function that numba compiles."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import loops as L
from .graph import Number, Value
from .lowering import DTYPES, work_dtype

HEADER = '''"""Written by minigrad.compile; the file is named after its contents."""

import numpy as np
from numba import types

from minigrad.compile import float32 as s, float64 as d, integers as i
from minigrad.compile.cache import kernel

f4, f8, i4, i8, b1 = np.float32, np.float64, np.int32, np.int64, np.bool_
inf, nan = np.inf, np.nan


def a(dtype, ndim):
    return types.Array(dtype, ndim, "C")
'''
Place = tuple[Value, int, tuple[int, ...]]
BLOCK = 2048  # elements of one axis that are a row at a time
_MODULES = {"f4": "s", "f8": "d", "i4": "i", "i8": "i", "b1": "i"}
_TYPES = {"f4": "types.float32", "f8": "types.float64", "i4": "types.int32", "i8": "types.int64", "b1": "types.boolean"}
_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
_COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_PLAIN = {
    0,
    1,
    2,
    3,
    4,
    -1,
    -2,
    0.5,
    -0.5,
}  # numbers that stand in the source; others are given to it, so that sizes may change


def short(dtype: Any) -> str:
    """The name of a dtype in the source."""
    return DTYPES[np.dtype(dtype).name]


def cast(text: str, given: str, wanted: str) -> str:
    """An expression of one dtype as another."""
    return text if given == wanted else f"({text} != 0)" if wanted == "b1" else f"{wanted}({text})"


@dataclass
class Kernel:
    """The text of one function, and what it is called with."""

    name: str
    text: str
    ints: list[int] = field(default_factory=list)
    numbers: list[tuple[Any, str]] = field(default_factory=list)
    arrays: list[Value] = field(default_factory=list)
    sums: list[L.Accumulate] = field(default_factory=list)
    scratch: dict[str, int] = field(default_factory=dict)
    checks: bool = False


class Writer:
    """Writes loops. With `literal`, sizes stand in the source, else they are arguments."""

    def __init__(self, constants: dict[Value, np.ndarray], literal: bool = False):
        self.constants, self.literal = constants, literal
        self.ints: dict[int, str] = {}
        self.numbers: dict[Any, tuple[str, Any, str]] = {}
        self.arrays: dict[Value, str] = {}
        self.head: list[str] = []
        self.lines: list[str] = []
        self.depth = 1
        self.checks = False
        self.row_count = 0

    def write(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def size(self, value: int, name: str | None = None) -> str:
        """A size or stride: 0 and 1 as they are, others as arguments."""
        if value in (0, 1) or self.literal:
            return str(value)
        if value not in self.ints:
            self.ints[value] = name or f"n{len(self.ints)}"
        return self.ints[value]

    def known(self, number: Any, dtype: str) -> str:
        """A number in the dtype that it is needed in."""
        if isinstance(number, (np.generic, np.ndarray)):
            number = number.item()
        if not isinstance(number, Number):
            if dtype == "b1":
                return str(bool(number))
            if isinstance(number, float) and not math.isfinite(number):
                text = "nan" if number != number else "inf" if number > 0 else "-inf"
                return f"{dtype}({text})"
            if self.literal or number in _PLAIN or isinstance(number, bool):
                return f"{dtype}({number!r})"
        kind = "i8" if isinstance(number, int) or isinstance(number, Number) and number.kind is int else "f8"
        key = (id(number) if isinstance(number, Number) else repr(number), dtype)
        if key not in self.numbers:
            name = f"c{len(self.numbers)}"
            self.numbers[key] = name, number, kind
            self.head.append(f"{name} = {dtype}({name}_)" if dtype != "b1" else f"{name} = {name}_ != 0")
        return self.numbers[key][0]

    def array(self, root: Value) -> str:
        if root not in self.arrays:
            self.arrays[root] = f"a{len(self.arrays)}"
        return self.arrays[root]

    # Expressions

    def operand(self, given: Any, wanted: str) -> str:
        if isinstance(given, L.Known):
            return self.known(given.number, wanted)
        return cast(given[0], short(given[1]), wanted)

    def truth(self, node: ast.expr, names: dict[str, Any], work: str) -> str:
        """A formula as a condition."""
        if isinstance(node, ast.Name) and node.id in names:
            given = names[node.id]
            return (
                str(bool(given.number))
                if isinstance(given, L.Known) and not isinstance(given.number, Number)
                else (
                    self.operand(given, "f8") + " != 0"
                    if isinstance(given, L.Known)
                    else cast(given[0], short(given[1]), "b1")
                )
            )
        if isinstance(node, ast.Compare):
            return self.expression(node, names, work)
        if isinstance(node, ast.BoolOp):
            sign = " & " if isinstance(node.op, ast.And) else " | "
            return "(" + sign.join(self.truth(v, names, work) for v in node.values) + ")"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return f"(not {self.truth(node.operand, names, work)})"
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "kept":
            return self.kept(names)
        return f"({self.expression(node, names, work)} != 0)"

    def kept(self, names: dict[str, Any]) -> str:
        element, p, key, start = [
            self.operand(names[k], kind) for k, kind in (("element", "i8"), ("p", "f8"), ("key", "i8"), ("start", "i8"))
        ]
        return f"s.kept({element}, {p}, {key}, {start})"

    def expression(self, node: ast.expr, names: dict[str, Any], work: str) -> str:
        """A formula as source, computed in dtype `work`; a condition gives a boolean."""
        if isinstance(node, ast.Constant):
            return self.known(node.value, work)
        if isinstance(node, ast.Name):
            if node.id in ("inf", "nan"):
                return f"{work}({node.id})"
            return self.operand(names[node.id], work)
        if isinstance(node, ast.BinOp):
            left, right = self.expression(node.left, names, work), self.expression(node.right, names, work)
            text = f"({left} {_OPERATORS[type(node.op)]} {right})"
            return text if work in ("f4", "f8") else cast(text, "", work)
        if isinstance(node, ast.UnaryOp):
            if isinstance(node.op, ast.Not) or isinstance(node.op, ast.Invert) and work == "b1":
                return self.truth(ast.UnaryOp(ast.Not(), node.operand), names, work)
            inner = self.expression(node.operand, names, work)
            if isinstance(node.op, ast.UAdd):
                return inner
            text = f"({'~' if isinstance(node.op, ast.Invert) else '-'}{inner})"
            return text if work in ("f4", "f8") else f"{work}{text}"
        if isinstance(node, ast.Compare):
            sides = [node.left, node.comparators[0]]
            if any(isinstance(x, ast.UnaryOp) and isinstance(x.op, ast.Not) for x in sides):
                left, right = (self.truth(x, names, work) for x in sides)
            elif "position" in {getattr(x, "id", "") for x in sides}:
                left, right = (self.expression(x, names, "i8") for x in sides)
            else:
                left, right = (self.expression(x, names, work) for x in sides)
            return f"({left} {_COMPARISONS[type(node.ops[0])]} {right})"
        if isinstance(node, ast.BoolOp):
            return self.truth(node, names, work)
        if isinstance(node, ast.IfExp):
            test = self.truth(node.test, names, work)
            return f"{_MODULES[work]}.select({test}, {self.expression(node.body, names, work)}, {self.expression(node.orelse, names, work)})"
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if node.func.id == "power" and (product := self.product(node, names, work)):
            return product
        given = ", ".join(self.expression(x, names, work) for x in node.args)
        text = f"abs({given})" if node.func.id == "abs" else f"{_MODULES[work]}.{node.func.id}({given})"
        return text if work in ("f4", "f8") else f"{work}({text})"

    def product(self, node: ast.Call, names: dict[str, Any], work: str) -> str | None:
        """A small whole power as a product, in double precision, so that it is as exact as the power."""
        exponent = names[node.args[1].id] if isinstance(node.args[1], ast.Name) else None
        if not isinstance(exponent, L.Known) or exponent.number not in (3, 4):
            return None
        base = cast(self.expression(node.args[0], names, work), work, "f8")
        return cast("(" + " * ".join([base] * int(exponent.number)) + ")", "f8", work)

    def compute(self, s: L.Compute) -> str:
        step = s.member.step
        work, out = short(work_dtype(step)), short(step.out.dtype)
        text = self.expression(s.member.formula.tree, s.names, work)
        is_test = isinstance(s.member.formula.tree, (ast.Compare, ast.BoolOp)) or (
            isinstance(s.member.formula.tree, ast.UnaryOp) and isinstance(s.member.formula.tree.op, ast.Not)
        )
        return text if is_test else cast(text, work, out)

    # Memory

    def base(self, access: L.Access) -> str:
        """The place where a row begins."""
        parts = [str(access.offset) if access.offset in (0, 1) else self.size(access.offset)] if access.offset else []
        for k, stride in enumerate(access.outer):
            if stride:
                parts.append(f"i{k}" if stride == 1 else f"i{k} * {self.size(stride)}")
        if self.blocked and access.inner:
            parts.append("start" if access.inner == 1 else f"start * {self.size(access.inner)}")
        return " + ".join(parts) or "0"

    def place(self, access: L.Access, loop: L.Loop, at: str | None = None) -> str:
        """An element of an array at a point of the loop."""
        name = self.array(access.root)  # type: ignore[arg-type]
        if access.inner == 1 and at is None:
            return f"{self.row_of(access, loop)}[j]"
        base = self.base(access)
        if access.inner:
            step = (at or "j") if access.inner == 1 else f"{at or 'j'} * {self.size(access.inner)}"
            base = step if base == "0" else f"{base} + {step}"
        return f"{name}[{base}]"

    def row_of(self, access: L.Access, loop: L.Loop) -> str:
        if access not in self.rows:
            self.rows[access] = f"r{self.row_count}"
            self.row_count += 1
        return self.rows[access]

    # Loops

    def loop(self, loop: L.Loop) -> None:
        """Write one loop, from `lo` to `hi` of its outermost axis."""
        self.rows: dict[L.Access, str] = {}
        self.blocked = loop.blocked and not self.literal
        n = "n" if self.blocked else self.size(loop.row, "n")
        for total in loop.sums.values():
            name, init = f"t{self.array(total.access.root)}", self.initial(total.member, total.dtype)  # type: ignore[arg-type]
            self.write(f"for j in range({name}.size):")
            self.write(f"    {name}[j] = {init}")
        for statement in loop.before:
            self.statement(statement, loop)
        start = self.depth
        if self.blocked:
            self.write(f"for start in range(lo, hi, {BLOCK}):")
            self.depth += 1
            self.write(f"n = min({BLOCK}, hi - start)")
        for k, size in enumerate(loop.outer):
            self.write(f"for i{k} in range({self.size(size)}):" if k or self.literal else "for i0 in range(lo, hi):")
            self.depth += 1
        mark, outer = len(self.lines), self.depth
        last = max([*loop.between, *loop.along, 0])
        for q in range(last + 1):
            for statement in loop.between.get(q, ()):
                self.statement(statement, loop)
            body = loop.along.get(q, ())
            for s in body:
                if isinstance(s, L.Reduce):
                    self.write(f"{s.total} = {self.first(s.member)}")
            if body:
                self.write(f"for j in range({n}):")
                self.depth += 1
                for s in body:
                    self.statement(s, loop)
                self.depth -= 1
        rows = []
        for access, row in self.rows.items():
            name = self.array(access.root)  # type: ignore[arg-type]
            name = f"t{name}" if access.root in loop.sums else name
            base = self.base(access)
            rows.append(
                "    " * outer + (f"{row} = {name}[{base} : {base} + {n}]" if base != "0" else f"{row} = {name}[:{n}]")
            )
        for dtype, count in loop.slots.items():
            for k in range(count):
                rows.append(
                    "    " * outer
                    + f"k{short(dtype)}_{k} = k{short(dtype)}[{k} * {self.stride_of_scratch(loop)} :][:{n}]"
                )
        self.lines[mark:mark] = rows
        self.depth = start

    def stride_of_scratch(self, loop: L.Loop) -> str:
        return str(BLOCK) if self.blocked else self.size(loop.row, "n")

    def statement(self, s: Any, loop: L.Loop) -> None:
        if isinstance(s, L.Load):
            self.write(f"{s.name} = {self.loaded(s, loop)}")
        elif isinstance(s, L.Compute):
            self.write(f"{s.name} = {self.compute(s)}")
        elif isinstance(s, L.Copy):
            self.write(f"{s.name} = {s.source}")
        elif isinstance(s, L.Store):
            self.write(f"{self.place(s.access, loop)} = {s.name}")
        elif isinstance(s, L.Keep):
            self.write(f"k{short(s.slot[0])}_{s.slot[1]}[j] = {s.name}")
        elif isinstance(s, L.Fetch):
            kept = self.place(s.slot, loop) if isinstance(s.slot, L.Access) else f"k{short(s.slot[0])}_{s.slot[1]}[j]"
            self.write(f"{s.name} = {kept}")
        elif isinstance(s, L.Reduce):
            self.write(f"{s.total} = {self.reduced(s.member, s.total, self.as_ordered(s.member, s.name))}")
        elif isinstance(s, L.Finish):
            self.write(f"{s.name} = {self.finished(s.member, s.total)}")
        elif isinstance(s, L.Accumulate):
            place = self.place(s.access, loop)
            place = place if place.startswith("r") else f"t{place}"
            dtype = short(s.dtype)
            given = cast(
                s.name,
                short(s.member.step.out.dtype) if s.member.reduced & _row_axes(loop) else short(_input(s.member).dtype),
                dtype,
            )
            self.write(f"{place} = {self.combined(s.member, place, given, dtype)}")
        elif isinstance(s, L.Place):
            self.checks = True
            self.write(f"{s.name} = s.index(i8({s.index}), {self.size(s.size)})")
            self.write(f"wrong += {s.name} < 0")
            self.write(f"{s.name} = max({s.name}, 0)")

    def loaded(self, s: L.Load, loop: L.Loop) -> str:
        access = s.access
        if access.root is None:
            base = self.base(access)
            along = (
                ""
                if not access.inner
                else (s.at or "j")
                if access.inner == 1
                else f"{s.at or 'j'} * {self.size(access.inner)}"
            )
            return along if base == "0" and along else f"{base} + {along}" if along else base
        array = self.constants.get(access.root)
        if array is not None and array.size == 1:
            return self.known(array.reshape(())[()], short(access.root.dtype))
        return self.place(access, loop, s.at)

    # Reductions: "out + a", "out * a", "maximum(out, a)", "minimum(out, a)", "out or a", "out and a"

    def first(self, member: Any) -> str:
        """What the total of a row begins with."""
        kind, dtype = kind_of(member), short(member.step.out.dtype)
        if kind in ("maximum", "minimum") and dtype in ("f4", "f8"):
            return f"{_MODULES[dtype]}.{'LEAST' if kind == 'maximum' else 'MOST'}"
        return self.initial(member, member.step.out.dtype)

    def initial(self, member: Any, dtype: Any) -> str:
        kind, name = kind_of(member), short(dtype)
        if kind in ("maximum", "minimum"):
            if name in ("f4", "f8"):
                return f"{name}({'-inf' if kind == 'maximum' else 'inf'})"
            if name == "b1":
                return str(kind == "minimum")
            info = np.iinfo(dtype)
            return f"{name}({info.min if kind == 'maximum' else info.max})"
        if kind in ("or", "and"):
            return str(kind == "and")
        return f"{name}({0 if kind == '+' else 1})"

    def as_ordered(self, member: Any, name: str) -> str:
        kind, out = kind_of(member), short(member.step.out.dtype)
        name = cast(name, short(_input(member).dtype), out)
        if kind in ("maximum", "minimum") and out in ("f4", "f8"):
            return f"{_MODULES[out]}.ordered_{'up' if kind == 'maximum' else 'down'}({name})"
        return name

    def reduced(self, member: Any, total: str, name: str) -> str:
        kind, out = kind_of(member), short(member.step.out.dtype)
        if kind in ("maximum", "minimum"):
            return (
                f"{kind[:3]}({total}, {name})" if out != "b1" else f"{total} {'|' if kind == 'maximum' else '&'} {name}"
            )
        return self.combined(member, total, name, out)

    def finished(self, member: Any, total: str) -> str:
        kind, out = kind_of(member), short(member.step.out.dtype)
        return (
            f"{_MODULES[out]}.unordered({total})" if kind in ("maximum", "minimum") and out in ("f4", "f8") else total
        )

    def combined(self, member: Any, total: str, name: str, dtype: str) -> str:
        kind = kind_of(member)
        if kind in ("or", "and") or dtype == "b1":
            return f"{total} {'|' if kind in ('or', 'maximum') else '&'} {name}"
        function = {"+": "plus", "*": "times"}.get(kind, kind)
        text = f"{_MODULES[dtype]}.{function}({total}, {name})"
        return text if dtype in ("f4", "f8") else f"{dtype}({text})"

    def matmul(self, left: Place, right: Place, out: Value, inner: int) -> None:
        """A small product of two matrices, each its memory, offset and strides, as three loops."""
        (a, a_at, (a_row, a_step)), (b, b_at, (b_step, b_column)) = left, right
        rows, columns = out.shape
        name = self.array(out)
        total = f"{name}_total"
        places = (
            f"{self.array(a)}[{a_at} + i0 * {a_row} + k * {a_step}]",
            f"{self.array(b)}[{b_at} + k * {b_step} + j * {b_column}]",
        )
        self.write(f"for i0 in range({rows}):")
        self.write(f"    for j in range({columns}):")
        self.write(f"        {total} = {short(out.dtype)}(0)")
        self.write(f"        for k in range({inner}):")
        self.write(f"            {total} = {_MODULES[short(out.dtype)]}.plus({total}, {places[0]} * {places[1]})")
        self.write(f"        {name}[i0 * {columns} + j] = {total}")

    # Functions

    def whole(
        self, name: str, given: list[Value], outputs: list[Value], scratch: list[Value], loops: list[L.Loop],
        into: list[tuple[Value, Value]],
    ) -> Kernel:  # fmt: skip
        """All that was written as one function of inputs, numbers and outputs; it returns the number of wrong indices, -1 for a wrong shape.

        At its end, each input in `into` gets the value behind it.
        """
        numbers = list(self.numbers.values())
        names = (
            [f"{self.array(v)}_" for v in given]
            + [f"{n}_" for n, _, _ in numbers]
            + [f"{self.array(v)}_" for v in outputs]
        )
        kinds = [f"a({_TYPES[short(v.dtype)]}, {v.ndim})" for v in given] + [_TYPES[k] for _, _, k in numbers]
        kinds += [f"a({_TYPES[short(v.dtype)]}, {v.ndim})" for v in outputs]
        head = [
            f"{self.array(v)} = {self.array(v)}_.reshape({v.size})  # {v.dtype}{list(v.shape)}"
            for v in (*given, *outputs)
        ]
        sizes: dict[str, int] = {}
        for value in scratch:
            kind = short(value.dtype)
            at = sizes.get(kind, 0)
            sizes[kind] = at + value.size
            head.append(f"{self.array(value)} = w{kind}[{at} : {at + value.size}]  # {value.dtype}{list(value.shape)}")
        for loop in loops:
            head += [f"t{self.array(v)} = {self.array(v)}" for v in loop.sums]
        for dtype in DTYPES:
            rows = max([loop.slots.get(dtype, 0) * loop.row for loop in loops], default=0)
            if rows:
                kind = short(dtype)
                at = sizes.get(kind, 0)
                sizes[kind] = at + rows
                head.append(f"k{kind} = w{kind}[{at} : {at + rows}]")
        head[:0] = [f"w{kind} = np.empty({size}, {kind})" for kind, size in sizes.items()]
        head[:0] = [f"if {self.array(v)}_.shape != {v.shape}:\n        return -1" for v in given if v.ndim]
        lines = [f"@kernel(types.int64({', '.join(kinds)}))", f"def {name}({', '.join(names)}):"]
        lines += ["    " + line for line in (*head, *self.head, "wrong = 0")] + self.lines
        for target, value in into:
            lines += [f"    for j in range({value.size}):", f"        {self.array(target)}[j] = {self.array(value)}[j]"]
        lines += ["    return wrong"]
        numbers_given = [(number, kind) for _, number, kind in numbers]
        return Kernel(name, "\n".join(lines) + "\n", [], numbers_given, [*given, *outputs], [], {}, self.checks)

    def function(self, name: str, loop: L.Loop) -> Kernel:
        """A loop as a function of `lo`, `hi`, sizes, numbers, arrays, sums and scratch memory."""
        self.loop(loop)
        read = [v for v in loop.reads if not (v in self.constants and self.constants[v].size == 1)]
        arrays = [*read, *loop.writes]
        sums = [*loop.sums.values()]
        ints = list(self.ints.items())
        numbers = list(self.numbers.values())
        names = ["lo", "hi", *[n for _, n in ints], *[f"{n}_" for n, _, _ in numbers]]
        kinds = ["types.int64"] * (2 + len(ints)) + [_TYPES[k] for _, _, k in numbers]
        head = []
        for value in arrays:
            array = self.array(value)
            names.append(f"{array}_")
            kinds.append(f"a({_TYPES[short(value.dtype)]}, {value.ndim})")
            head.append(f"{array} = {array}_.reshape({array}_.size)  # {value.dtype}, {value.ndim} axes")
        for total in sums:
            names.append(f"t{self.array(total.access.root)}")  # type: ignore[arg-type]
            kinds.append(f"a({_TYPES[short(total.dtype)]}, 1)")
        for dtype in loop.slots:
            names.append(f"k{short(dtype)}")
            kinds.append(f"a({_TYPES[short(dtype)]}, 1)")
        head += [*self.head, "wrong = 0"]
        lines = [f"@kernel(types.int64({', '.join(kinds)}))", f"def {name}({', '.join(names)}):"]
        lines += ["    " + line for line in head] + self.lines + ["    return wrong"]
        numbers_given = [(number, kind) for _, number, kind in numbers]
        return Kernel(
            name,
            "\n".join(lines) + "\n",
            [v for v, _ in ints],
            numbers_given,
            arrays,
            sums,
            dict(loop.slots),
            self.checks,
        )


def _row_axes(loop: L.Loop) -> frozenset[int]:
    """The axes of the domain that are the row."""
    return frozenset(range(loop.group.split, len(loop.group.sizes)))


def kind_of(member: Any) -> str:
    """Which reduction it is."""
    tree = member.formula.tree
    if isinstance(tree, ast.BinOp):
        return _OPERATORS[type(tree.op)]
    if isinstance(tree, ast.BoolOp):
        return "and" if isinstance(tree.op, ast.And) else "or"
    return tree.func.id


def _input(member: Any) -> Value:
    return member.step.inputs[0]
