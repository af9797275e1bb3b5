"""Calls of loops on CuPy's arrays: CuPy compiles them with NVRTC, and keeps what it compiled on disk.

How a loop is divided among blocks depends on its sizes alone, so that sums are the same on every card.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from ..ir.graph import Value, at_sizes
from .cuda_source import PRELUDE, CudaWriter, totals
from .loop_call import Call, Known, LoopCall, joined, number, wrong_index
from .loops import Loop
from .source import identity

__all__ = ["CudaLoopCall"]

BLOCKS = 2**16  # of one loop, at most
KEEPING = 1024  # blocks, where each keeps rows between its phases
SUMMING = 256  # blocks, where each has sums of its own
SUMS = 2**22  # elements of all these sums
THREADS = 256  # of a block
WARP = 32


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

    def __init__(self, loop: Loop, constants: dict[Value, Any]):
        super().__init__(loop, CudaWriter(constants).function("loop", loop), {})
        self.text = PRELUDE + self.kernel.text
        compiled(self.text)  # which fails now if at all

    def at(self, sizes: Mapping[str, int], ready: set[Value], xp: Any) -> Call:
        kernel, text = self.kernel, self.text
        new = self.new(sizes, ready)
        shapes = [at_sizes(s.value.shape, sizes) for s in kernel.sums]
        outer, row = at_sizes(self.loop.outer, sizes), at_sizes(self.loop.row, sizes)
        counts = [math.prod(shape) for shape in shapes]
        grid, threads = _division(self.loop, math.prod(outer), row, counts)
        zeros = [(n, identity(s.member, s.dtype), s.dtype) for n, s in zip(counts, kernel.sums)]
        ints = [np.int64(n) for n in at_sizes(tuple(kernel.ints), sizes)]
        numbers = [(at_sizes(x, sizes), dtype) for x, dtype in kernel.numbers]

        def call(known: Known) -> None:
            known.update({value: xp.empty(shape, dtype) for value, shape, dtype in new})
            arrays = [xp.ascontiguousarray(known[v]) for v in kernel.arrays]
            sums = [xp.full((grid[0], n), zero, dtype) for n, zero, dtype in zeros]  # (blocks, elements of the sum)
            rows = [xp.empty((grid[0], count, row), dtype) for dtype, count in kernel.scratch.items()]
            wrong = [xp.zeros(1, "int32")] if kernel.checks else []
            given = [np.array(number(x, dtype, known)).astype(dtype)[()] for x, dtype in numbers]
            compiled(text)(grid, (threads,), (*arrays, *sums, *rows, *ints, *given, *wrong))
            for s, shape, parts in zip(kernel.sums, shapes, sums):
                known[s.value] = joined(s, parts).astype(s.value.dtype, copy=False).reshape(shape)
            if wrong and (count := int(wrong[0][0])):
                raise wrong_index(count)

        return call


def _division(loop: Loop, rows: int, row: int, sums: list[int]) -> tuple[tuple[int, int], int]:
    """The blocks, along x and y, and the threads of each: one for every four elements of a row."""
    pieces, most = -(-row // (4 * THREADS)), KEEPING if loop.slots else BLOCKS
    for size in sums:
        most = max(min(most, SUMMING, SUMS // size), 1)
    if loop.blocked:
        grid = min(pieces, most), 1
    else:
        x = min(rows, most)
        grid = x, 1 if totals(loop) else min(pieces, -(-BLOCKS // x), 2**16 - 1)
    return grid, min(-(-row // (4 * WARP)) * WARP, THREADS)
