"""Products of small matrices in registers: what BLAS does, without its cost for every call, and with any part left out.

A right factor lies in panels of 16 columns, `panels[columns / 16, depth, 16]`, so that a row of a panel is one vector. A
left factor and a result lie anywhere. Places are addresses and distances are bytes, so one compiled function serves all
layouts. numba has no vectors of its own: these functions write LLVM's.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import types

from .compiling import kernel
from .llvm import instructions
from .vectors import BYTES, LANES, load, repeated, store

ROWS, COLUMNS = 4, LANES  # of a tile: 8 of the 16 registers of AVX2 hold it, as many as keep both multipliers busy
ITEM, PANEL_ROW = 4, BYTES  # of a float32, and of 16
HAS_AVX512 = bool(get_host_cpu_features().get("avx512f"))
LARGE_ROWS, LARGE_PANELS = (8, 2) if HAS_AVX512 else (ROWS, 1)  # as many as its 32 wide registers hold

_INT, _FLOAT, _INDEX = ir.IntType(64), ir.FloatType(), ir.IntType(32)


def _vector(size: int) -> ir.VectorType:
    return ir.VectorType(_FLOAT, size)


def _load(builder: ir.IRBuilder, address: ir.Value, kind: ir.Type) -> ir.Value:
    return builder.load(builder.inttoptr(address, kind.as_pointer()), align=ITEM)


def _store(builder: ir.IRBuilder, value: ir.Value, address: ir.Value) -> None:
    builder.store(value, builder.inttoptr(address, value.type.as_pointer()), align=ITEM)


def _rows(builder: ir.IRBuilder, first: ir.Value, distance: ir.Value, rows: ir.Value, count: int) -> list[ir.Value]:
    """Addresses of `count` rows; where there are fewer, the last one again, so that no case of its own is needed."""
    last = builder.sub(rows, _INT(1))
    numbers = [builder.select(builder.icmp_signed("<", _INT(i), last), _INT(i), last) for i in range(count)]
    return [builder.add(first, builder.mul(number, distance)) for number in numbers]


def tile_of(height: int, vectors: int, apart: bool = False) -> Any:
    """What multiplies tiles of so many rows and of 16 columns for each vector.

    A row of a panel then has as many, or, where they are `apart`, there are panels of 16 columns one behind the other.
    """
    places = [_INT(i * BYTES) for i in range(vectors)]
    row_step = _INT(PANEL_ROW if apart else vectors * PANEL_ROW)

    @instructions(types.void(*[types.int64] * 8, types.boolean))
    def tile(builder, left, left_row, left_step, right, result, result_row, rows, depth, add):
        """`result[:rows] = left[:rows, :depth] @ right[:depth]`, or `+=` where `add`; `rows` from 1 on, of which `height` at most count."""
        lefts = _rows(builder, left, left_row, rows, height)
        results = [
            builder.add(row, place) for row in _rows(builder, result, result_row, rows, height) for place in places
        ]
        zero = ir.Constant(_vector(COLUMNS), [0.0] * COLUMNS)
        starts = [builder.select(add, _load(builder, place, zero.type), zero) for place in results]
        panels = [builder.mul(depth, place) for place in places] if apart else places
        before = builder.block
        head, body, done = [builder.append_basic_block(name) for name in ("head", "body", "done")]
        builder.branch(head)
        builder.position_at_end(head)
        carried = [builder.phi(start.type) for start in (depth, _INT(0), right, *starts)]
        todo, offset, row, *sums = carried
        builder.cbranch(builder.icmp_signed(">", todo, _INT(0)), body, done)
        builder.position_at_end(body)
        lines = [_load(builder, builder.add(row, panel), zero.type) for panel in panels]
        steps = [
            builder.sub(todo, _INT(1)), builder.add(offset, left_step), builder.add(row, row_step),
        ]  # fmt: skip
        for place in lefts:
            factor = repeated(builder, _load(builder, builder.add(place, offset), _FLOAT), COLUMNS)
            for line in lines:
                product = builder.fmul(factor, line, flags=("contract",))
                steps.append(builder.fadd(product, sums[len(steps) - 3], flags=("contract",)))
        for phi, start, step in zip(carried, (depth, _INT(0), right, *starts), steps):
            phi.add_incoming(start, before)
            phi.add_incoming(step, body)
        builder.branch(head)
        builder.position_at_end(done)
        for place, total in zip(results, sums):
            _store(builder, total, place)

    return tile


tile = tile_of(ROWS, 1)
large_tile = tile_of(LARGE_ROWS, LARGE_PANELS, apart=True)


@instructions(types.void(*[types.int64] * 4, types.float32))
def turn(builder, source, source_row, rows, target, scale):
    """Transpose 8 rows of 8 floats, times `scale`, into 8 rows of a panel; `rows` says how many there are."""
    lines = [_load(builder, place, _vector(8)) for place in _rows(builder, source, source_row, rows, 8)]
    for bit in (1, 2, 4):  # exchange this bit of the row's number with that of the column's
        upper = ir.Constant(ir.VectorType(_INDEX, 8), [8 + x - bit if x & bit else x for x in range(8)])
        lower = ir.Constant(ir.VectorType(_INDEX, 8), [8 + x if x & bit else x + bit for x in range(8)])
        for i in range(8):
            if not i & bit:
                pair = lines[i], lines[i | bit]
                lines[i] = builder.shuffle_vector(*pair, upper)
                lines[i | bit] = builder.shuffle_vector(*pair, lower)
    factor = repeated(builder, scale, 8)
    for i, line in enumerate(lines):
        _store(builder, builder.fmul(line, factor), builder.add(target, _INT(i * PANEL_ROW)))


@kernel
def pack(source, source_row, rows, columns, panels):
    """A matrix into panels: (rows, columns) -> (columns / 16, rows, 16)."""
    for j in range(0, columns, COLUMNS):
        for i in range(rows):
            store(load(source + i * source_row + j * ITEM), panels + (j * rows + i * COLUMNS) * ITEM)


@kernel
def pack_transposed(source, source_row, rows, columns, panels, scale):
    """The transpose of a matrix, times `scale`, into panels; its last one may end in any numbers: (rows, columns) -> (⌈rows / 16⌉, columns, 16)."""
    for i in range(0, rows, 8):
        panel = panels + (i // COLUMNS * columns * COLUMNS + i % COLUMNS) * ITEM
        for j in range(0, columns, 8):
            turn(source + i * source_row + j * ITEM, source_row, rows - i, panel + j * PANEL_ROW, scale)
