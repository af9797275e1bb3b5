"""Calls of loops on CuPy's arrays: CuPy compiles them with NVRTC, and keeps what it compiled on disk.

How a loop is divided among blocks depends on its sizes alone, so that sums are the same on every card.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..engine.backend import backend_of, is_array, on_device_of
from ..errors import IndexingError
from ..ir.graph import Number, Value
from .cuda_source import PRELUDE, CudaWriter, totals
from .loops import Loop
from .source import identity, kind_of

__all__ = ["CudaLoopCall"]

BLOCKS = 2**16  # of one loop, at most
KEEPING = 1024  # blocks, where each keeps rows between its phases
SUMMING = 256  # blocks, where each has sums of its own
SUMS = 2**22  # elements of all these sums
THREADS = 256  # of a block
WARP = 32
_JOIN = {"+": "sum", "*": "prod", "maximum": "max", "minimum": "min", "or": "any", "and": "all"}


@cache
def compiled(source: str) -> Callable[..., None]:
    """The kernel of this source, to be called with a grid, a block and arguments."""
    import cupy

    return cupy.RawModule(code=source).get_function("loop")


class CudaLoopCall:
    """One loop on CuPy's arrays: it takes its arrays from those that are known, and puts what it makes there."""

    def __init__(self, loop: Loop, constants: dict[Value, Any]):
        self.loop = loop
        self.kernel = CudaWriter(constants).function("loop", loop)
        self.grid, self.threads = _division(loop)

    @property
    def source(self) -> str:
        """The text, and the sizes that it is called with here."""
        shapes = ", ".join(f"{v.dtype}{list(v.shape)}" for v in self.kernel.arrays)
        return f"// Here over {list(self.loop.group.sizes)}, with {shapes}\n{self.kernel.text}"

    def __call__(self, known: dict[Any, Any]) -> bool:
        """Run; False, with a warning once, if it cannot be compiled: then the ops themselves must."""
        there = next(x for x in known.values() if is_array(x))
        xp, kernel = backend_of(there).xp, self.kernel
        with on_device_of(there):
            known.update({v: xp.empty(v.shape, v.dtype) for v in self.loop.writes if v not in known})
            arrays = [xp.ascontiguousarray(known[v]) for v in kernel.arrays]
            # (blocks, elements of the sum)
            sums = [xp.full((self.grid[0], s.value.size), identity(s.member, s.dtype), s.dtype) for s in kernel.sums]
            rows = [xp.empty((self.grid[0], count, self.loop.row), dtype) for dtype, count in kernel.scratch.items()]
            wrong = [xp.zeros(1, "int32")] if kernel.checks else []
            numbers = [_number(x, dtype, known) for x, dtype in kernel.numbers]
            arguments = (*arrays, *sums, *rows, *map(np.int64, kernel.ints), *numbers, *wrong)
            try:
                compiled(PRELUDE + kernel.text)(self.grid, (self.threads,), arguments)
            except Exception as error:
                if type(error).__name__ != "CompileException":  # of CuPy, which is not imported here
                    raise
                warnings.warn(f"a loop could not be compiled, and runs op by op: {error}", RuntimeWarning, stacklevel=4)
                return False
            for s, parts in zip(kernel.sums, sums):
                joined = getattr(parts, _JOIN[kind_of(s.member)])(axis=0)
                known[s.value] = joined.astype(s.value.dtype, copy=False).reshape(s.value.shape)
            if kernel.checks and (count := int(wrong[0][0])):
                raise IndexingError("an index is out of range in a compiled function", got=f"{count} of them")
        return True


def _division(loop: Loop) -> tuple[tuple[int, int], int]:
    """The blocks, along x and y, and the threads of each: one for every four elements of a row."""
    rows, pieces = math.prod(loop.outer), -(-loop.row // (4 * THREADS))
    most = KEEPING if loop.slots else BLOCKS
    for value in loop.sums:
        most = max(min(most, SUMMING, SUMS // value.size), 1)
    if loop.blocked:
        grid = min(pieces, most), 1
    else:
        x = min(rows, most)
        grid = x, 1 if totals(loop) else min(pieces, -(-BLOCKS // x), 2**16 - 1)
    return grid, min(-(-loop.row // (4 * WARP)) * WARP, THREADS)


def _number(x: Any, dtype: str, known: dict[Any, Any]) -> Any:
    """A number in the dtype that a kernel reads."""
    x = known[x] if isinstance(x, Number) else x
    return np.uint64(int(x) % 2**64).astype(np.int64).astype(dtype) if dtype[0] == "i" else np.dtype(dtype).type(x)
