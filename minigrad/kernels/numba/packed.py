"""Products of a few rows with a weight, packed or not, which read each of its bytes once and share its rows among all cores.

By hand: to the compiler a product is a step of its own, and BLAS moves a weight before it multiplies, which takes longer than
a few rows do. Many rows are left to it, with panels of floats in the place of a packed weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from ...engine.modes import local
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
from .tiles import HAS_AVX512, LARGE_PANELS, LARGE_ROWS, large_tile, pack_transposed
from .vectors import LANES, load, prefetch, splat, store

F = np.float32
FEW = 64  # rows of an input that are multiplied while a part of the weight is near; with so many BLAS is as fast
FEWEST = 16  # rows of an input, up to which a weight is read as it lies; for more it is brought into panels first
WIDEST = 2016  # columns that panels have room for
PANELS = LARGE_PANELS * LANES  # rows of a weight
MOST, SMALL = 1024, 1 << 18  # rows of an input that is small all the same, and numbers of such a one
LEAST_WEIGHT = 1 << 15  # numbers of a weight that is not packed: smaller ones are left to the compiler's loops,
LEAST_WORK = 1 << 19  # or to BLAS, unless so many products are added up
HEIGHT, WIDTH = 4, 4  # tiles: so many rows of the weight for one row of input, or for so many
LOW = 4 if HAS_AVX512 else 2  # of the weight for several rows of input: as many as the registers hold
SHARED = 1 << 15  # bytes of a weight from which others are let help, and those from which they are woken up
WAKING = 1 << 18
LEAST = 1 << 13  # bytes of a part
AHEAD, LINE = 2048, 64  # bytes: how far in front of a product its weight is asked for, and of a line of the cache
MOST_PARTS = 16  # that a weight is divided into

FLOATS = CODES.index("f32")

# The words of a job: addresses (that of the number of input rows too; a bias of 0 is none), distances in bytes from row to
# row, sizes, and whether the product is added to what is there.
WEIGHT, WEIGHT_ROW, X, X_ROW, OUT, OUT_ROW, BIAS, COUNT, ROWS, COLUMNS, BLOCKS, PART, ADDS = range(OWN, OWN + 13)


@cache
def part_function(format: str) -> int:
    """The address of the function that computes a part of a product with a weight of this format.

    It closes over a number alone: numba would not find it again among what it has kept if it closed over a function.
    """
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
            _finish(job, room, 0, first, last - first)
            return
        if count > FEWEST and (columns + STEP - 1) // STEP <= WIDEST // STEP:
            depth = (columns + STEP - 1) // STEP * STEP
            floats = room + LARGE_ROWS * PANELS * ITEM
            for i in range(0, last - first, PANELS):
                height, source, source_row = min(PANELS, last - first - i), row + i * weight_row, weight_row
                if code != FLOATS or columns < depth:
                    for k in range(height):
                        unpack(code, source + k * weight_row, floats + k * depth * ITEM, columns, blocks)
                    source, source_row = floats, depth * ITEM
                _many_rows(
                    job, room, source, source_row, floats + PANELS * depth * ITEM, depth, first + i, height, count
                )
            return
        for begin in range(0, count, FEW):
            end = min(begin + FEW, count)
            for i in range(0, last - first, LOW):
                at_i = row + i * weight_row
                for j in range(begin, end, WIDTH):
                    tile(
                        code, LOW, WIDTH, at_i, weight_row, last - first - i, x + j * x_row, x_row, end - j,
                        room + ((j - begin) * size + i) * ITEM, size * ITEM, columns, blocks,
                    )  # fmt: skip
            for j in range(begin, end):
                _finish(job, room + (j - begin) * size * ITEM, j, first, last - first)

    return address_of(packed_part)


@kernel
def _many_rows(job, sums, weight, weight_row, panels, depth, first, height, count):
    """The products of so many rows of input with these of the weight, which are floats and are brought into panels."""
    x, x_row, out_row, bias = word(job, X), word(job, X_ROW), word(job, OUT_ROW), word(job, BIAS)
    out, adds = word(job, OUT) + first * ITEM, word(job, ADDS) != 0
    pack_transposed(weight, weight_row, height, depth, panels, F(1))
    is_direct = height == PANELS and not adds  # then sums are written where they belong
    for j in range(0, count, LARGE_ROWS):
        rows, place = min(LARGE_ROWS, count - j), out + j * out_row
        target, target_row = (place, out_row) if is_direct else (sums, PANELS * ITEM)
        large_tile(x + j * x_row, x_row, ITEM, panels, target, target_row, rows, depth, False)
        if height < PANELS:
            for k in range(rows):
                _finish(job, sums + k * PANELS * ITEM, j + k, first, height)
        elif adds or bias:
            _finish_panels(target, target_row, bias + first * ITEM if bias else 0, place, out_row, rows, adds)


@kernel
def _finish_panels(sums, sums_row, bias, out, out_row, rows, adds):
    """The same as `_finish` for some rows of `PANELS` sums."""
    for c in range(0, PANELS * ITEM, LANES * ITEM):
        numbers = load(bias + c) if bias else splat(F(0))
        for k in range(rows):
            value = load(sums + k * sums_row + c) + numbers
            place = out + k * out_row + c
            store(value + load(place) if adds else value, place)


@kernel
def _finish(job, sums, row, first, count):
    """Write some sums of a row of input out, with the bias, if there is one, and what was there, if they are added to it."""
    out, bias = word(job, OUT) + row * word(job, OUT_ROW) + first * ITEM, word(job, BIAS)
    whole = count // LANES * LANES
    for i in range(0, whole, LANES):
        value = load(sums + i * ITEM)
        if bias:
            value = value + load(bias + (first + i) * ITEM)
        if word(job, ADDS):
            value = value + load(out + i * ITEM)
        store(value, out + i * ITEM)
    for i in range(whole, count):
        value = at(sums, F)[i]
        if bias:
            value += at(bias, F)[first + i]
        if word(job, ADDS):
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
    """How many rows of a weight are a part, for so many rows of input: a multiple of a tile's, or of panels'."""
    wanted, step = max(-(-rows // MOST_PARTS), LEAST // row_bytes, 1), PANELS if count > FEWEST else HEIGHT
    return min(-(-wanted // step), ROOM // min(count, FEW) // step) * step


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
    if not _are_few(x, FEW):
        return packed_linear_forward(x, data, bias, format=format, panels=panels)
    return few_rows(x, data, bias, format), None


def _are_few(x: np.ndarray, rows: int) -> bool:
    """Whether an input has so few rows, or, where nothing is recorded, is so small that handing it to BLAS's threads would take longer."""
    return x.size <= rows * x.shape[-1] or (not local.mode.record and x.size <= min(SMALL, MOST * x.shape[-1]))


def _accepts_linear(x: np.ndarray, weight: np.ndarray, bias: Any) -> bool:
    if weight.dtype != F or not (weight.flags.c_contiguous and weight.flags.aligned) or not _are_few(x, FEW // 2):
        return False
    is_worth_it = weight.size >= LEAST_WEIGHT or (not local.mode.record and x.size * len(weight) >= LEAST_WORK)
    return is_worth_it and accepts_linear(x, weight, bias)


def _linear_forward(x: np.ndarray, weight: np.ndarray, bias: Any) -> tuple[np.ndarray, None]:
    return few_rows(x, weight, bias, "f32"), None


linear.kernels["few rows"] = Kernel(_linear_forward, linear_backward, _accepts_linear)
packed_linear.kernels["numba"] = Kernel(_forward, partial(packed_linear_backward, panels=panels), accepts_packed)
