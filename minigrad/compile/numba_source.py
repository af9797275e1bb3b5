"""A loop as the source of a function that numba compiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..ir.graph import Value
from . import loops as L
from .source import Writer, cast, short
from .views import c_strides

HEADER = '''"""Written by minigrad.compile; the file is named after its contents."""

import numpy as np
from numba import carray, types

from minigrad.maths import float32 as s, float64 as d, integers as i
from minigrad.maths.addresses import at, matmul, row, stack
from minigrad.compile.cache import kernel

f4, f8, i4, i8, b1 = np.float32, np.float64, np.int32, np.int64, np.bool_
inf, nan = np.inf, np.nan


def a(dtype, ndim):
    return types.Array(dtype, ndim, "C")
'''
Place = tuple[Value, int, tuple[int, ...]]
Values = list[Value]
Arguments = list[tuple[str, str]]  # names and types
LANES = 16  # columns of a small product that are a vector
_ORDERED = {"maximum": "", "minimum": "-"}  # the sign of numbers that makes it a maximum
_TYPES = {"f4": "types.float32", "f8": "types.float64", "i4": "types.int32", "i8": "types.int64", "b1": "types.boolean"}


def _is_ordered(s: L.Reduce) -> bool:
    """Whether a total is kept as an integer that is ordered as floats are, whose maximum is vectorised."""
    return isinstance(s.into, str) and s.kind.function in _ORDERED and s.dtype.kind == "f"


class NumbaWriter(Writer):
    """Python that numba compiles: functions of minigrad.maths for each dtype."""

    modules = {"f4": "s.", "f8": "d.", "i4": "i.", "i8": "i.", "b1": "i."}
    let_form = total_form = "{name} = {text}"
    of_powers = "f8"  # so that they are as exact as the power

    def __init__(self, constants: dict[Value, Any], literal: bool = False, shared: Any = None):
        super().__init__(constants, literal, shared)
        self.rows: dict[tuple[L.Loop | None, L.Access], str] = {}
        self.current: L.Loop | None = None
        self.turned: list[Value] = []  # matrices of small products, transposed
        self.counted: dict[str, str] = {}  # names of the numbers of elements, and the number where the row begins

    def call(self, function: str, work: str, *given: str) -> str:
        if function == "kept" and given[0] in self.counted:  # what is added to `j` alone is vectorised in 32 bits
            given = ("j", *given[1:3], f"{given[3]} + {self.counted[given[0]]}")
        return f"abs({given[0]})" if function == "abs" else super().call(function, work, *given)

    def write_load(self, s: L.Load) -> None:
        super().write_load(s)
        if s.access.root is None and s.access.inner == 1 and s.at is None:
            self.counted[s.name] = self.offset(s.access)

    def element(self, access: L.Access, at: str | None = None) -> str:
        if isinstance(access.root, Value) and access.inner == 1 and at is None:
            # One row for one memory, or it could not be vectorised.
            access = replace(access, root=self.shared.get(access.root, access.root))
            return self.rows.setdefault((self.current, access), f"r{len(self.rows)}") + "[j]"
        return super().element(access, at)

    # Reductions

    def first(self, s: L.Reduce) -> str:
        return f"{self.modules[short(s.dtype)]}LEAST" if _is_ordered(s) else super().first(s)

    def write_reduce(self, s: L.Reduce) -> None:
        if not _is_ordered(s):
            return super().write_reduce(s)
        dtype = short(s.dtype)
        given = self.call("ordered", dtype, _ORDERED[s.kind.function] + cast(s.name, short(s.given), dtype))
        return self.assign(f"{s.into}_total", f"max({s.into}_total, {given})")

    def finished(self, s: L.Reduce) -> str:
        total = super().finished(s)
        return _ORDERED[s.kind.function] + self.call("unordered", short(s.dtype), total) if _is_ordered(s) else total

    def write_place(self, s: L.Place) -> None:
        self.write(f"{s.name} = s.index(i8({s.index}), {self.size(s.size)})")
        self.write(f"wrong += {s.name} < 0")
        self.write(f"{s.name} = max({s.name}, 0)")

    # Loops

    def loop(self, loop: L.Loop) -> None:
        """Write one loop, from `lo` to `hi` of its outermost axis."""
        self.current = loop
        self.in_blocks = loop.blocked and not self.literal
        n = "n" if self.in_blocks else self.size(loop.row, "n")
        for value, total in loop.sums.items():
            self.write(f"for j in range({self.array(value)}.size):")
            self.write(f"    {self.array(value)}[j] = {self.first(total)}")
        self.statements(loop.parts.get((0, L.LOOP), ()))
        if self.in_blocks:
            self.write("n = hi - lo")
        top = len(self.lines)
        for k, size in enumerate(loop.outer):
            self.write(f"for i{k} in range({self.size(size)}):" if k or self.literal else "for i0 in range(lo, hi):")
            self.depth += 1
        mark = len(self.lines)
        self.phases(loop, f"for j in range({n}):")
        fixed: list[str] = []  # rows that are the same all the time
        moving: list[str] = []  # and those that are others for each row
        for access, row in [(access, row) for (of, access), row in self.rows.items() if of is loop]:
            text = f"{row} = row({self.array(access.root)}, {self.offset(access)}, {n})"
            (moving if any(access.outer) else fixed).append(text)
        if self.literal:
            fixed += [f"{k} = carray(stack({short(t)}, {loop.row}), {loop.row})" for k, t in loop.slots.items()]
        self.lines[mark:mark] = ["    " * self.depth + text for text in moving]
        self.depth = 1
        self.lines[top:top] = ["    " + text for text in fixed]

    def matmul(self, left: Place, right: Place, out: Value, inner: int) -> None:
        """A small product of two matrices, each its memory, offset and strides."""
        (a, a_at, (a_row, a_step)), (b, b_at, (b_step, b_column)) = left, right
        rows, columns = out.shape
        name, second = self.array(out), self.array(b)
        if b_column != 1 and columns > 1:
            self.turned.append(Value((inner, columns), out.dtype))
            turned = self.array(self.turned[-1])
            self.write(f"for k in range({inner}):")
            self.write(f"    for j in range({columns}):")
            self.write(f"        {turned}[k * {columns} + j] = {second}[{b_at} + k * {b_step} + j * {b_column}]")
            second, b_at, b_step = turned, 0, columns
        first = f"{self.array(a)}, ({a_at}, {a_row}, {a_step})"
        for j in range(0, columns, LANES):
            places = f"{first}, {second}, ({b_at + j}, {b_step}), {name}, ({j}, {columns})"
            self.write(f"matmul({places}, ({rows}, {inner}), {min(LANES, columns - j)})")

    # Functions

    def text(self, name: str, given: Arguments, arrays: Arguments, head: list[str], tail: Iterable[str] = ()) -> str:
        """A function of what is given, numbers and arrays: its first lines, all that was written, and its last."""
        kinds = zip(self.numbers.values(), self.passed())
        arguments = [*given, *[(f"{number}_", _TYPES[kind]) for (number, _, _), (_, kind) in kinds], *arrays]
        numbers = [f"{n} = {cast(f'{n}_', '', dtype)}" for n, _, dtype in self.numbers.values()]
        return "\n".join([
            f"@kernel(types.int64({', '.join([kind for _, kind in arguments])}))",
            f"def {name}({', '.join([argument for argument, _ in arguments])}):",
            *["    " + line for line in (*head, *numbers, "wrong = 0")],
            *self.lines, *tail, "    return wrong\n",
        ])  # fmt: skip

    def passed(self) -> list[tuple[Any, str]]:
        """The numbers, and the dtype that each is passed in."""
        return [(number, "i8" if dtype[0] == "i" else "f8") for _, number, dtype in self.numbers.values()]

    def whole(
        self, given: Values, outputs: Values, inner: Values, into: list[tuple[Value, Value]], pool: Mapping[Value, int]
    ) -> str:
        """All that was written as one function of addresses, inputs, numbers, a pool of memory and outputs.

        It returns the number of wrong indices, -1 for an input of another shape or order. If there are none, each input
        in `into`, which is given by its address, gets the value behind it at the end. `pool` says at which byte of it values
        are to be.
        """
        head = [f"if {test}:\n        return -1" for v in given if (test := self.unlike(v))]
        memory = {v: f"{self.array(v)}_.reshape({v.size})" for v in (*given, *outputs)}
        memory |= {v: f"carray(at(at_[{i}], {short(v.dtype)}), {v.size})" for i, (v, _) in enumerate(into)}
        memory |= {v: f"carray(at(pool_.ctypes.data + {k}, {short(v.dtype)}), {v.size})" for v, k in pool.items()}
        memory |= {v: f"carray(stack({short(v.dtype)}, {v.size}), {v.size})" for v in (*inner, *self.turned)}
        head += [f"{self.array(v)} = {text}  # {v.dtype}{list(v.shape)}" for v, text in memory.items()]
        tail = ["    if wrong:", "        return wrong"] if into else []
        for target, v in into:
            tail += [f"    for j in range({v.size}):", f"        {self.array(target)}[j] = {self.array(v)}[j]"]
        addresses = [("at_", "a(types.int64, 1)")] if into else []
        arrays = [("pool_", "a(types.uint8, 1)")] if pool else []
        arrays += map(self.argument, outputs)
        return self.text("whole", [*addresses, *map(self.argument, given)], arrays, head, tail)

    def argument(self, value: Value) -> tuple[str, str]:
        """The name and the type of an array that is given."""
        return f"{self.array(value)}_", f"a({_TYPES[short(value.dtype)]}, {value.ndim})"

    def unlike(self, value: Value) -> str:
        """The test whether an array has another shape than the value, or is not in C order."""
        array, strides = f"{self.array(value)}_", c_strides(value.shape)
        tests = [f"{array}.shape != {value.shape}"] if value.ndim else []
        tests += [f"{array}.strides[{k}] != {s * value.dtype.itemsize}" for k, s in enumerate(strides) if s]
        return " or ".join(tests)

    def function(self, name: str, loop: L.Loop) -> str:
        """A loop as a function of `lo`, `hi`, sizes, numbers, arrays, sums and scratch memory."""
        self.loop(loop)
        values = self.arrays_of(loop)
        ints = [(n, "types.int64") for n in ("lo", "hi", *self.ints.values())]
        own = [*[(self.array(v), s.dtype) for v, s in loop.sums.items()], *loop.slots.items()]
        arrays = [*map(self.argument, values), *[(array, f"a({_TYPES[short(dtype)]}, 1)") for array, dtype in own]]
        head = [f"{a} = {a}_.reshape({a}_.size)  # {v.dtype}, {v.ndim} axes" for v in values for a in [self.array(v)]]
        return self.text(name, ints, arrays, head)
