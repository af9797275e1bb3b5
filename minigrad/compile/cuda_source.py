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

from . import loops as L
from .source import Kernel, Writer, kind_of, short

__all__ = ["PRELUDE", "CudaWriter", "totals"]

PRELUDE = Path(__file__).with_name("prelude.cu").read_text(encoding="utf-8")
_JOINED = {"+": "plus", "*": "times", "or": "maximum", "and": "minimum"}


def totals(loop: L.Loop) -> bool:
    """Whether a number of elements along a row is joined: then one block must have all of the row."""
    return any(L.totals(body) for body in loop.parts.values())


class CudaWriter(Writer):
    """CUDA C, with the functions of prelude.cu."""

    modules = dict.fromkeys(("f4", "f8", "i4", "i8", "b1"), "m::")
    booleans = ("false", "true")
    let_form, total_form = "const {dtype} {name} = {text};", "{dtype} {name} = {text};"
    end = "}"
    first_thread = "threadIdx.x == 0"  # it writes what is done for the row

    def assign(self, place: str, text: str) -> None:
        super().assign(place if self.along else f"if ({self.first_thread}) {place}", f"{text};")

    def finished(self, s: L.Reduce) -> str:
        kind = kind_of(s.member)
        return f"m::over_block<{short(s.dtype)}, m::{_JOINED.get(kind, kind)}>({super().finished(s)})"

    def write_place(self, s: L.Place) -> None:
        counts, self.checks = "true" if self.along else self.first_thread, True
        self.let(s.name, "int64", f"m::index(i8({s.index}), {self.size(s.size)}, wrong, {counts})")

    def loop(self, loop: L.Loop) -> None:
        """Write one loop."""
        n, rows = self.size(loop.row, "n"), math.prod(loop.outer)
        block, blocks = ("blockIdx.x", "gridDim.x") if loop.blocked else ("blockIdx.y", "gridDim.y")
        start, step = f"{block} * (i8)blockDim.x + threadIdx.x", f"{blocks} * (i8)blockDim.x"
        if totals(loop) and not loop.blocked:
            start, step = "threadIdx.x", "blockDim.x"
        elif not loop.blocked:
            self.first_thread = "threadIdx.x == 0 && blockIdx.y == 0"
        for value in loop.sums:
            self.write(f"{self.array(value)} += blockIdx.x * (i8){self.size(value.size)};")
        for dtype, count in loop.slots.items():
            kept = f"k{short(dtype)}"
            for k in range(count):
                self.write(f"{short(dtype)}* {kept}_{k} = {kept} + (blockIdx.x * (i8){count} + {k}) * {n};")
        self.statements(loop.parts.get((0, L.LOOP), ()))
        if loop.outer:
            self.write(f"for (i8 row = blockIdx.x; row < {self.size(rows)}; row += gridDim.x) {{")
            self.depth += 1
            inside = "row"  # divided by the sizes of the axes so far
            for k in range(len(loop.outer) - 1, -1, -1):
                size = self.size(loop.outer[k])
                self.write(f"const i8 i{k} = {inside}{f' % {size}' if k else ''};")
                inside += f" / {size}"
        self.phases(loop, f"for (i8 j = {start}; j < {n}; j += {step}) {{")
        if loop.outer:
            self.depth -= 1
            self.write(self.end)

    def function(self, name: str, loop: L.Loop) -> Kernel:
        """A loop as a kernel of arrays, sums of each block, scratch memory, sizes, numbers, and a count of wrong indices."""
        self.loop(loop)
        pointers = [(v.dtype, self.array(v), v in loop.writes) for v in self.arrays_of(loop)]
        pointers += [(s.dtype, self.array(v), True) for v, s in loop.sums.items()]
        pointers += [(dtype, f"k{short(dtype)}", True) for dtype in loop.slots]
        given = [f"{'' if is_written else 'const '}{short(dtype)}* {name}" for dtype, name, is_written in pointers]
        given += [f"i8 {size}" for size in self.ints.values()]
        given += [f"{dtype} {number}" for number, _, dtype in self.numbers.values()]
        given += ["i4* wrong"] if self.checks else []
        text = "\n".join([f'extern "C" __global__ void {name}({", ".join(given)}) {{', *self.lines, "}\n"])
        return self.made(text, loop, [(number, dtype) for _, number, dtype in self.numbers.values()])
