"""A loop as CUDA C: a block of threads for each row, the elements of a row shared out among its threads.

Each phase is a loop of its own along the row. A thread meets the same elements in each, so that what is kept from one phase to the
next needs no barrier; only totals of the row are joined, over the block. What is done for the row is done by every thread alike, and
written by the first.

A loop over one axis, and one that needs no total of its rows, is divided among more blocks. Sums that are complete only after the
loop are partial sums here, one for each block along x.

CuPy compiles the source with NVRTC, and keeps what it compiled on disk. How a loop is divided among blocks depends on its sizes
alone, so that sums are the same on every card.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..ir.graph import Value, at_sizes
from . import loops as L
from .source import Call, Known, LoopCall, Writer, joined, number, short, wrong_index

__all__ = ["PRELUDE", "CudaLoopCall", "CudaWriter"]

PRELUDE = Path(__file__).with_name("prelude.cu").read_text(encoding="utf-8")
BLOCKS = 2**16  # of one loop, at most
KEEPING = 1024  # blocks, where each keeps rows between its phases
SUMMING = 256  # blocks, where each has sums of its own
SUMS = 2**22  # elements of all these sums
THREADS = 256  # of a block
WARP = 32


def joins_rows(loop: L.Loop) -> bool:
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
        return f"m::over_block<{short(s.dtype)}, m::{s.kind.function}>({super().finished(s)})"

    def write_place(self, s: L.Place) -> None:
        counts, self.checks = "true" if self.along else self.first_thread, True
        self.let(s.name, "int64", f"m::index(i8({s.index}), {self.size(s.size)}, wrong, {counts})")

    def loop(self, loop: L.Loop) -> None:
        """Write one loop."""
        n, rows = self.size(loop.row, "n"), math.prod(loop.outer)
        block, blocks = ("blockIdx.x", "gridDim.x") if loop.blocked else ("blockIdx.y", "gridDim.y")
        start, step = f"{block} * (i8)blockDim.x + threadIdx.x", f"{blocks} * (i8)blockDim.x"
        if joins_rows(loop) and not loop.blocked:
            start, step = "threadIdx.x", "blockDim.x"
        elif not loop.blocked:
            self.first_thread = "threadIdx.x == 0 && blockIdx.y == 0"
        for value in loop.sums:
            self.write(f"{self.array(value)} += blockIdx.x * (i8){self.size(value.size)};")
        for name in loop.slots:
            self.write(f"{name} += blockIdx.x * (i8){n};")
        self.statements(loop.parts.get((0, L.LOOP), ()))
        if loop.outer:
            self.write(f"for (i8 row = blockIdx.x; row < {self.size(rows)}; row += gridDim.x) {{")
            self.depth += 1
        top, inside = len(self.lines), "row"  # divided by the sizes of the axes so far
        self.phases(loop, f"for (i8 j = {start}; j < {n}; j += {step}) {{")
        body, places = "\n".join(self.lines[top:]), list[str]()
        for k in range(len(loop.outer) - 1, -1, -1):
            size = self.size(loop.outer[k])
            if re.search(rf"\bi{k}\b", body):
                places.append("    " * self.depth + f"const i8 i{k} = {inside}{f' % {size}' if k else ''};")
            inside += f" / {size}"
        self.lines[top:top] = places
        if loop.outer:
            self.depth -= 1
            self.write(self.end)

    def function(self, name: str, loop: L.Loop) -> str:
        """A loop as a kernel of arrays, sums of each block, scratch memory, sizes, numbers, and a count of wrong indices."""
        self.loop(loop)
        pointers = [(v.dtype, self.array(v), v in loop.writes) for v in self.arrays_of(loop)]
        pointers += [(s.dtype, self.array(v), True) for v, s in loop.sums.items()]
        pointers += [(dtype, name, True) for name, dtype in loop.slots.items()]
        given = [f"{'' if is_written else 'const '}{short(dtype)}* {name}" for dtype, name, is_written in pointers]
        given += [f"i8 {size}" for size in self.ints.values()]
        given += [f"{dtype} {number}" for number, _, dtype in self.numbers.values()]
        given += ["i4* wrong"] if self.checks else []
        return "\n".join([f'extern "C" __global__ void {name}({", ".join(given)}) {{', *self.lines, "}\n"])


@cache
def compiled(source: str) -> Callable[..., None]:
    """The kernel of this source, to be called with a grid, a block and arguments."""
    import cupy

    module = cupy.RawModule(code=source)
    module.compile()
    return module.get_function("loop")


class CudaLoopCall(LoopCall):
    """One loop on CuPy's arrays."""

    comment = "//"

    def __init__(self, loop: L.Loop, constants: dict[Value, Any]):
        super().__init__(loop, CudaWriter(constants), {})
        self.full = PRELUDE + self.text
        compiled(self.full)  # which fails now if at all

    def at(self, sizes: Mapping[str, int], ready: set[Value], xp: Any) -> Call:
        loop, new = self.loop, self.new(sizes, ready)
        ints, numbers, outer, row = at_sizes((self.ints, self.numbers, loop.outer, loop.row), sizes)
        shapes = [at_sizes(value.shape, sizes) for value in loop.sums]
        totals = [(math.prod(shape), s.first, s.dtype) for s, shape in zip(loop.sums.values(), shapes)]
        grid, threads = _division(loop, math.prod(outer), row, [count for count, _, _ in totals])

        def call(known: Known) -> None:
            known.update({value: xp.empty(shape, dtype) for value, shape, dtype in new})
            arrays = [xp.ascontiguousarray(known[v]) for v in self.arrays]
            sums = [xp.full((grid[0], n), first, dtype) for n, first, dtype in totals]  # (blocks, elements of the sum)
            rows = [xp.empty((grid[0], row), dtype) for dtype in loop.slots.values()]
            wrong = [xp.zeros(1, "int32")] if self.checks else []
            passed = [np.array(number(x, dtype, known)).astype(dtype)[()] for x, dtype in numbers]
            given = (*arrays, *sums, *rows, *map(np.int64, ints), *passed, *wrong)
            compiled(self.full)(grid, (threads,), given)
            for s, shape, parts in zip(loop.sums.values(), shapes, sums):
                known[s.value] = joined(s, parts).astype(s.value.dtype, copy=False).reshape(shape)
            if wrong and (count := int(wrong[0][0])):
                raise wrong_index(count)

        return call


def _division(loop: L.Loop, rows: int, row: int, sums: list[int]) -> tuple[tuple[int, int], int]:
    """The blocks, along x and y, and the threads of each: one for every four elements of a row."""
    pieces, most = -(-row // (4 * THREADS)), KEEPING if loop.slots else BLOCKS
    for size in sums:
        most = max(min(most, SUMMING, SUMS // size), 1)
    if loop.blocked:
        grid = min(pieces, most), 1
    else:
        x = min(rows, most)
        grid = x, 1 if joins_rows(loop) else min(pieces, -(-BLOCKS // x), 2**16 - 1)
    return grid, min(-(-row // (4 * WARP)) * WARP, THREADS)
