"""A loop as CUDA C: a block of threads for each row, the elements of a row shared out among its threads.

Each phase is a loop of its own along the row. A thread meets the same elements in each, so that what is kept from one phase to the
next needs no barrier; only totals of the row are joined, over the block. What is done for the row is done by every thread alike, and
written by the first.

A loop over one axis, and one that needs no total of its rows, is divided among more blocks. Sums that are complete only after the
loop are partial sums here, one for each block along x.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from . import loops as L
from .source import Kernel, Writer, identity, kind_of, short

__all__ = ["PRELUDE", "CudaWriter", "totals"]

PRELUDE = Path(__file__).with_name("prelude.cu").read_text(encoding="utf-8")
_JOINED = {"+": "plus", "*": "times", "or": "maximum", "and": "minimum"}


def totals(loop: L.Loop) -> bool:
    """Whether a number of elements along a row is joined: then one block must have all of the row."""
    return any(isinstance(s, L.Reduce) for body in loop.along.values() for s in body)


class CudaWriter(Writer):
    """CUDA C, with the functions of prelude.cu."""

    modules = dict.fromkeys(("f4", "f8", "i4", "i8", "b1"), "m::")
    booleans = ("false", "true")
    first = "threadIdx.x == 0"  # which thread writes what is done for the row

    def let(self, name: str, dtype: str | None, text: str) -> None:
        self.write(f"const {dtype or 'auto'} {name} = {text};")

    def assign(self, place: str, text: str) -> None:
        self.write(f"{place} = {text};" if self.along else f"if ({self.first}) {place} = {text};")

    def end(self) -> None:
        self.write("}")

    def total(self, s: L.Reduce) -> None:
        out = s.member.step.out.dtype
        self.write(f"{short(out)} {s.total} = {self.known(identity(s.member, out), short(out))};")

    def finished(self, member: Any, total: str) -> str:
        kind = kind_of(member)
        return f"m::over_block<{short(member.step.out.dtype)}, m::{_JOINED.get(kind, kind)}>({total})"

    def write_place(self, s: L.Place) -> None:
        counts, self.checks = "true" if self.along else self.first, True
        self.let(s.name, "i8", f"m::index(i8({s.index}), {self.size(s.size)}, wrong, {counts})")

    def loop(self, loop: L.Loop) -> None:
        """Write one loop."""
        self.row_axes = loop.row_axes
        n, rows = self.size(loop.row, "n"), math.prod(loop.outer)
        block, blocks = ("blockIdx.x", "gridDim.x") if loop.blocked else ("blockIdx.y", "gridDim.y")
        start, step = f"{block} * (i8)blockDim.x + threadIdx.x", f"{blocks} * (i8)blockDim.x"
        if totals(loop) and not loop.blocked:
            start, step = "threadIdx.x", "blockDim.x"
        elif not loop.blocked:
            self.first = "threadIdx.x == 0 && blockIdx.y == 0"
        for value in loop.sums:
            self.write(f"{self.array(value)} += blockIdx.x * (i8){self.size(value.size)};")
        for dtype, count in loop.slots.items():
            kept = f"k{short(dtype)}"
            for k in range(count):
                self.write(f"{short(dtype)}* {kept}_{k} = {kept} + (blockIdx.x * (i8){count} + {k}) * {n};")
        self.statements(loop.before)
        if loop.outer:
            row = "i0" if len(loop.outer) == 1 else "row"
            self.write(f"for (i8 {row} = blockIdx.x; {row} < {self.size(rows)}; {row} += gridDim.x) {{")
            self.depth += 1
            inside = ""  # the rows that all axes so far have been taken from
            for k in range(len(loop.outer) - 1, -1, -1) if row == "row" else ():
                place = f"row{inside}" + (f" % {self.size(loop.outer[k])}" if k else "")
                self.write(f"const i8 i{k} = {place};")
                inside += f" / {self.size(loop.outer[k])}"
        self.phases(loop, f"for (i8 j = {start}; j < {n}; j += {step}) {{")
        if loop.outer:
            self.depth -= 1
            self.end()

    def function(self, name: str, loop: L.Loop) -> Kernel:
        """A loop as a kernel of arrays, sums, scratch memory, sizes and numbers, and a count of wrong indices."""
        self.loop(loop)
        given = []
        for v in self.arrays_of(loop):
            const = "" if v in loop.writes else "const "
            given.append((f"{const}{short(v.dtype)}* {self.array(v)}", f"{v.dtype}, {v.ndim} axes"))
        for v, s in loop.sums.items():
            given.append((f"{short(s.dtype)}* {self.array(v)}", f"{s.dtype}, {v.ndim} axes, one for each block"))
        given += [(f"{short(dtype)}* k{short(dtype)}", "rows that are kept") for dtype in loop.slots]
        given += [(f"i8 {size}", "") for size in self.ints.values()]
        given += [(f"{dtype} {number}", "") for number, _, dtype in self.numbers.values()]
        given += [("i4* wrong", "how many indices are")] if self.checks else []
        lines = []
        for k, (parameter, comment) in enumerate(given):
            parameter += "," if k + 1 < len(given) else ")"
            lines.append(f"    {parameter}  // {comment}" if comment else f"    {parameter}")
        text = "\n".join([f'extern "C" __global__ void {name}(', *lines, "{", *self.lines, "}\n"])
        numbers = [(number, dtype) for _, number, dtype in self.numbers.values()]
        return self.made(text, loop, numbers)
