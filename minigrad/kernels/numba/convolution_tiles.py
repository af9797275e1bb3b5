"""The two inner loops of a convolution, in registers: outputs from rows of an image, and gradients of weights from two images.

By hand, since a compiler of loops neither keeps a tile of sums in registers nor reads one factor through a table of offsets.
Places are addresses, distances are bytes; an offset says where the row of the image that a weight meets begins.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core.cgutils import alloca_once_value, for_range, for_range_slice

from .llvm import instructions

WIDE = binding.get_host_cpu_features().get("avx512f", False)
LANES = 16 if WIDE else 8  # of a register
VECTORS = 4 if WIDE else 3  # of 32 registers, or of 16, as many as keep both multipliers busy
ROWS, ITEM = 4, 4
TILE, NARROW = (
    LANES * VECTORS,
    LANES * (VECTORS - 1),
)  # positions of a tile, and of one that wastes less where few are left

_INT, _LANE, _FLOAT = ir.IntType(64), ir.IntType(32), ir.FloatType()
_FLOATS, _LANES = ir.VectorType(_FLOAT, LANES), ir.VectorType(_LANE, LANES)
_CONTRACT = ("contract",)


def _pointer(builder: ir.IRBuilder, address: ir.Value, kind: ir.Type = _FLOATS) -> ir.Value:
    return builder.inttoptr(address, kind.as_pointer())


def _repeated(builder: ir.IRBuilder, number: ir.Value) -> ir.Value:
    kind = ir.VectorType(number.type, LANES)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), number, _LANE(0))
    return builder.shuffle_vector(first, first, ir.Constant(_LANES, [0] * LANES))


def _clamped(builder: ir.IRBuilder, count: ir.Value, size: int) -> list[ir.Value]:
    """The numbers from 0 below `size`, and the last one again where there are fewer, so that no case of its own is needed."""
    last = builder.sub(count, _INT(1))
    return [builder.select(builder.icmp_signed("<", _INT(i), last), _INT(i), last) for i in range(size)]


def _between(builder: ir.IRBuilder, first: ir.Value, low: ir.Value, high: ir.Value) -> ir.Value:
    """Which lanes, counted from `first` on, are at least `low` and below `high`."""
    numbers = [builder.trunc(x, _LANE) for x in (first, low, high)]
    lanes = builder.add(_repeated(builder, numbers[0]), ir.Constant(_LANES, list(range(LANES))))
    above = builder.icmp_signed(">=", lanes, _repeated(builder, numbers[1]))
    return builder.and_(above, builder.icmp_signed("<", lanes, _repeated(builder, numbers[2])))


def _load_where(builder: ir.IRBuilder, address: ir.Value, mask: ir.Value) -> ir.Value:
    """The lanes of a mask; the others are 0, and their memory is not touched."""
    place = _pointer(builder, address)
    kind = ir.FunctionType(_FLOATS, [place.type, _LANE, mask.type, _FLOATS])
    load = builder.module.declare_intrinsic(f"llvm.masked.load.v{LANES}f32.p0", (), kind)
    return builder.call(load, [place, _LANE(ITEM), mask, ir.Constant(_FLOATS, [0.0] * LANES)])


def _add_product(builder: ir.IRBuilder, total: Any, a: ir.Value, b: ir.Value) -> None:
    product = builder.fmul(a, b, flags=_CONTRACT)
    builder.store(builder.fadd(product, builder.load(total), flags=_CONTRACT), total)


@instructions(types.void(*[types.int64] * 6))
def copy_row(builder, source, low, high, first, count, target):
    """`target[i] = source[first + i]` for `count` numbers, and 0 where that is not from `low` below `high`.

    Whole vectors are written, so what lies behind is to be written later.
    """
    zero = ir.Constant(_FLOATS, [0.0] * LANES)
    row = alloca_once_value(builder, zero)
    with for_range_slice(builder, _INT(0), count, _INT(LANES)) as (i, _):
        start = builder.add(first, i)
        place = builder.add(source, builder.mul(start, _INT(ITEM)))
        begins = builder.icmp_signed(">=", start, low)
        ends = builder.icmp_signed("<=", builder.add(start, _INT(LANES)), high)
        with builder.if_else(builder.and_(begins, ends)) as (whole, cut):
            with whole:
                builder.store(builder.load(_pointer(builder, place), align=ITEM), row)
            with cut:
                builder.store(_load_where(builder, place, _between(builder, start, low, high)), row)
        builder.store(builder.load(row), _pointer(builder, builder.add(target, builder.mul(i, _INT(ITEM)))), align=ITEM)


@instructions(types.void(*[types.int64] * 6))
def copy_every_second(builder, source, low, high, first, count, target):
    """The same of `source[first + 2 · i]`."""
    evens = ir.Constant(_LANES, list(range(0, 2 * LANES, 2)))
    with for_range_slice(builder, _INT(0), count, _INT(LANES)) as (i, _):
        halves = []
        for ahead in (0, LANES):
            start = builder.add(builder.add(first, _INT(ahead)), builder.mul(i, _INT(2)))
            place = builder.add(source, builder.mul(start, _INT(ITEM)))
            halves.append(_load_where(builder, place, _between(builder, start, low, high)))
        place = _pointer(builder, builder.add(target, builder.mul(i, _INT(ITEM))))
        builder.store(builder.shuffle_vector(*halves, evens), place, align=ITEM)


def _correlate_of(vectors: int) -> Any:
    """What computes tiles of ROWS outputs and of so many vectors of positions."""

    @instructions(types.void(*[types.int64] * 9))
    def correlate(builder, weights, weights_row, source, offsets, depth, bias, result, result_row, rows):
        """`result[r, :width] = bias[r] + Σₖ weights[r, k] · source[offsets[k] :][:width]` for `rows` from 1 to ROWS."""
        numbers = _clamped(builder, rows, ROWS)
        lefts = [builder.add(weights, builder.mul(r, weights_row)) for r in numbers]
        sums = []
        for r in numbers:
            start = _repeated(
                builder, builder.load(_pointer(builder, builder.add(bias, builder.mul(r, _INT(ITEM))), _FLOAT))
            )
            sums.append([alloca_once_value(builder, start) for _ in range(vectors)])
            for total in sums[-1]:
                builder.store(start, total)
        with for_range(builder, depth) as k:
            offset = builder.load(builder.gep(_pointer(builder, offsets, _INT), [k.index]))
            place = _pointer(builder, builder.add(source, offset))
            columns = [builder.load(builder.gep(place, [_INT(v)]), align=ITEM) for v in range(vectors)]
            for left, row in zip(lefts, sums):
                factor = _repeated(builder, builder.load(builder.gep(_pointer(builder, left, _FLOAT), [k.index])))
                for total, column in zip(row, columns):
                    _add_product(builder, total, factor, column)
        for r, row in zip(numbers, sums):
            place = _pointer(builder, builder.add(result, builder.mul(r, result_row)))
            for v, total in enumerate(row):
                builder.store(builder.load(total), builder.gep(place, [_INT(v)]), align=ITEM)

    return correlate


correlate, correlate_narrow = _correlate_of(VECTORS), _correlate_of(VECTORS - 1)


@instructions(types.void(*[types.int64] * 11))
def products(builder, left, left_row, left_image, rows, right, offsets, right_image, columns, images, size, result):
    """`result[r, c] = Σ left[r] · right[offsets[c] :]` over `size` numbers of each of `images`, ROWS x VECTORS in whole vectors."""
    lefts = [builder.add(left, builder.mul(r, left_row)) for r in _clamped(builder, rows, ROWS)]
    table = _pointer(builder, offsets, _INT)
    rights = [builder.add(right, builder.load(builder.gep(table, [c]))) for c in _clamped(builder, columns, VECTORS)]
    zero = ir.Constant(_FLOATS, [0.0] * LANES)
    sums = [[alloca_once_value(builder, zero) for _ in range(VECTORS)] for _ in range(ROWS)]
    for total in sum(sums, []):
        builder.store(zero, total)
    full = builder.sub(size, builder.srem(size, _INT(LANES)))
    with for_range(builder, images) as image:
        to_left, to_right = builder.mul(image.index, left_image), builder.mul(image.index, right_image)
        others, ones = ([builder.add(x, y) for x in places] for places, y in ((rights, to_right), (lefts, to_left)))
        for first, last in ((_INT(0), full), (full, size)):
            with for_range_slice(builder, first, last, _INT(LANES)) as (i, _):
                mask = None if last is full else _between(builder, i, _INT(0), size)
                step = builder.mul(i, _INT(ITEM))
                many = [_load(builder, builder.add(x, step), mask) for x in others]
                for place, row in zip(ones, sums):
                    one = _load(builder, builder.add(place, step), mask)
                    for total, other in zip(row, many):
                        _add_product(builder, total, one, other)
    found = [builder.load(total) for total in sum(sums, [])]
    for start in range(0, len(found), LANES):
        some = found[start : start + LANES]
        place = builder.gep(_pointer(builder, result, _FLOAT), [_INT(start)])
        totals = _totals(builder, [*some, *some[-1:] * (LANES - len(some))])
        builder.store(totals, builder.bitcast(place, _FLOATS.as_pointer()), align=ITEM)


def _load(builder: ir.IRBuilder, address: ir.Value, mask: ir.Value | None) -> ir.Value:
    if mask is not None:
        return _load_where(builder, address, mask)
    return builder.load(_pointer(builder, address), align=ITEM)


def _totals(builder: ir.IRBuilder, vectors: list[ir.Value]) -> ir.Value:
    """The sums of as many vectors as one has lanes: halves of two are added until each has become one lane."""
    size = LANES
    while size > 1:
        size //= 2
        lower = [
            vector + start + i for vector in (0, LANES) for start in range(0, LANES, 2 * size) for i in range(size)
        ]
        halves = [ir.Constant(_LANES, [lane + shift for lane in lower]) for shift in (0, size)]
        pairs = zip(vectors[::2], vectors[1::2])
        vectors = [builder.fadd(*(builder.shuffle_vector(*pair, half) for half in halves)) for pair in pairs]
    return vectors[0]
