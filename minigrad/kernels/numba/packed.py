"""Products of a few rows with a weight, packed or not, which read each of its bytes once and share its rows among all cores.

By hand: to the compiler a product is a step of its own, and BLAS moves a weight before it multiplies, which takes longer than
a few rows do. Many rows are left to it, with panels of floats in the place of a packed weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from ...maths.addresses import at
from ...maths.packing import FORMATS
from ..definitions import linear
from ..numpy import accepts_linear, linear_backward
from ..packed import PANEL, accepts_packed, packed_linear, packed_linear_backward, packed_linear_forward
from ..registry import Kernel
from .atomics import look
from .compiling import kernel
from .dequantize import CODES, ITEM, PLAIN, STEP
from .packed_tiles import tile, unpack
from .thread_pool import FUNCTION, JOB_WORDS, OWN, PARTS, ROOM, address_of, pool_for, run_jobs, word
from .vectors import prefetch

F = np.float32
FEW = 64  # rows of an input; with so many BLAS is as fast
LEAST_WEIGHT = 1 << 15  # numbers of a weight that is not packed: smaller ones are left to the compiler's loops
HEIGHT, LOW, WIDTH = 4, 2, 4  # tiles: so many rows of the weight for one row of input; fewer for several of them
SHARED = 1 << 15  # bytes of a weight from which others are let help, and those from which they are woken up
WAKING = 1 << 18
LEAST = 1 << 13  # bytes of a part
AHEAD, LINE = 2048, 64  # bytes: how far in front of a product its weight is asked for, and of a line of the cache
MOST_PARTS = 16  # that a weight is divided into

# The words of a job: addresses (that of the number of input rows too; a bias of 0 is none), distances in bytes from row to
# row, sizes, and whether the product is added to what is there.
WEIGHT, WEIGHT_ROW, X, X_ROW, OUT, OUT_ROW, BIAS, COUNT, ROWS, COLUMNS, BLOCKS, PART, ADDS = range(OWN, OWN + 13)


@cache
def part_function(format: str) -> int:
    """The address of the function that computes a part of a product with a weight of this format."""
    code = CODES.index(format)

    @kernel
    def packed_part(job, part, room):
        weight_row, x, x_row, count = word(job, WEIGHT_ROW), word(job, X), word(job, X_ROW), look(word(job, COUNT))
        columns, blocks, size = word(job, COLUMNS), word(job, BLOCKS), word(job, PART)
        first = part * size
        last, row = min(first + size, word(job, ROWS)), word(job, WEIGHT) + first * weight_row
        if count == 1:
            for i in range(0, last - first, HEIGHT):
                at_i = row + i * weight_row
                for line in range(at_i + AHEAD, at_i + AHEAD + HEIGHT * weight_row, LINE):
                    prefetch(line)
                tile(
                    code, HEIGHT, 1, at_i, weight_row, last - first - i, x, x_row, 1, room + i * ITEM, 0, columns, blocks
                )  # fmt: skip
        else:
            for i in range(0, last - first, LOW):
                at_i = row + i * weight_row
                for j in range(0, count, WIDTH):
                    tile(
                        code, LOW, WIDTH, at_i, weight_row, last - first - i, x + j * x_row, x_row, count - j,
                        room + (j * size + i) * ITEM, size * ITEM, columns, blocks,
                    )  # fmt: skip
        for j in range(count):
            target = word(job, OUT) + j * word(job, OUT_ROW) + first * ITEM
            _finish(room + j * size * ITEM, target, word(job, BIAS), first, last - first, word(job, ADDS))

    return address_of(packed_part)


@kernel
def _finish(sums, out, bias, first, count, adds):
    """Write sums out, with the bias, if there is one, and what was there, if they are added to it."""
    for i in range(count):
        value = at(sums, F)[i]
        if bias:
            value += at(bias, F)[first + i]
        if adds:
            value += at(out, F)[i]
        at(out, F)[i] = value


@kernel
def _run(x, data, out, bias, columns, blocks, part, function, pool, wake):
    job, count = np.zeros(JOB_WORDS, np.int64), np.full(1, len(x))
    job[WEIGHT], job[WEIGHT_ROW] = data.ctypes.data, data.strides[0]
    job[X], job[X_ROW], job[OUT], job[OUT_ROW] = x.ctypes.data, x.strides[0], out.ctypes.data, out.strides[0]
    job[ROWS], job[COUNT], job[COLUMNS], job[BLOCKS], job[PART] = len(data), count.ctypes.data, columns, blocks, part
    job[BIAS] = bias.ctypes.data if len(bias) else 0
    job[FUNCTION], job[PARTS] = function, (len(data) + part - 1) // part
    run_jobs(job.ctypes.data, 1, pool, wake)


def rows_of_a_part(rows: int, row_bytes: int, count: int) -> int:
    """How many rows of a weight are a part, for so many rows of input: a multiple of a tile's."""
    wanted = max(-(-rows // MOST_PARTS), LEAST // row_bytes, 1)
    return min(-(-wanted // HEIGHT), ROOM // count // HEIGHT) * HEIGHT


def padded(x: np.ndarray) -> np.ndarray:
    """Rows without gaps and with zeros to a multiple of 32: (…, in) -> (N, at least in)."""
    columns = x.shape[-1]
    if columns % STEP == 0 and x.flags.c_contiguous and x.flags.aligned:
        return x.reshape(-1, columns)
    whole = np.zeros((x.size // columns, -(-columns // STEP) * STEP), F)
    whole[:, :columns] = x.reshape(-1, columns)
    return whole


def with_whole_rows(data: np.ndarray) -> np.ndarray:
    """The same bytes, where a row has no gaps."""
    return data if data.strides[1] == data.itemsize else np.ascontiguousarray(data)


def blocks_in(format: str, columns: int) -> int:
    """The steps of 32 columns that can be read without going beyond a row."""
    return columns // STEP if format in PLAIN else -(-columns // FORMATS[format].size)


NO_BIAS = np.empty(0, F)


def few_rows(x: np.ndarray, data: np.ndarray, bias: np.ndarray | None, format: str) -> np.ndarray:
    """`x @ weight.T + bias` for up to `FEW` rows: (…, in), bytes (out, bytes of a row), (out,) or None -> (…, out)."""
    columns, rows = x.shape[-1], padded(x)
    out = np.empty((len(rows), len(data)), F)
    data, blocks, size = with_whole_rows(data), blocks_in(format, columns), data.nbytes
    part = rows_of_a_part(len(data), size // len(data), len(rows))
    bias = NO_BIAS if bias is None else np.ascontiguousarray(bias)
    pool = pool_for(size >= SHARED)
    _run(rows, data, out, bias, columns, blocks, part, part_function(format), pool, size >= WAKING)
    return out.reshape(*x.shape[:-1], len(data))


@cache
def _unpacker(format: str) -> Any:
    code = CODES.index(format)

    @kernel
    def unpack_rows(data, out, columns, blocks):
        for i in range(len(data)):
            row, target = data.ctypes.data + i * data.strides[0], out.ctypes.data + i * out.strides[0]
            unpack(code, row, target, columns, blocks)

    return unpack_rows


def panels(data: np.ndarray, format: str, columns: int) -> Iterator[tuple[slice, np.ndarray]]:
    """As `..packed.panels`, in memory that is used again and again."""
    width = -(-columns // STEP) * STEP
    data, room = with_whole_rows(data), np.empty((max(PANEL // width, 1), width), F)
    for first in range(0, len(data), len(room)):
        rows = slice(first, min(first + len(room), len(data)))
        _unpacker(format)(data[rows], room, columns, blocks_in(format, columns))
        yield rows, room[: rows.stop - first, :columns]


def _forward(x: np.ndarray, data: np.ndarray, bias: Any, *, format: str) -> tuple[np.ndarray, None]:
    if x.size > FEW * x.shape[-1]:
        return packed_linear_forward(x, data, bias, format=format, panels=panels)
    return few_rows(x, data, bias, format), None


def _accepts_linear(x: np.ndarray, weight: np.ndarray, bias: Any) -> bool:
    is_small = x.size <= FEW // 2 * x.shape[-1] and weight.size >= LEAST_WEIGHT and weight.dtype == F
    return is_small and weight.flags.c_contiguous and weight.flags.aligned and accepts_linear(x, weight, bias)


def _linear_forward(x: np.ndarray, weight: np.ndarray, bias: Any) -> tuple[np.ndarray, None]:
    return few_rows(x, weight, bias, "f32"), None


linear.kernels["few rows"] = Kernel(_linear_forward, linear_backward, _accepts_linear)
packed_linear.kernels["numba"] = Kernel(_forward, partial(packed_linear_backward, panels=panels), accepts_packed)
