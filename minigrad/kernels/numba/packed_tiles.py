"""Products with packed weights in registers: 32 numbers of a row at a time become floats, and none of them is written back.

An input row is float32, without gaps, and 0 from its end to the next multiple of 32.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import alloca_once_value, for_range
from numba.core.errors import RequireLiteralValue
from numba.extending import intrinsic

from . import dequantize
from .dequantize import CODES, FAST, FLOAT, INT, ITEM, PLAIN, STEP, WORD
from .tiles import _rows
from .vectors import LANES, repeated

Vectors = list[ir.Value]


def _literals(*given: Any) -> list[int]:
    """The numbers that a caller wrote down."""
    if not all(isinstance(literal, types.IntegerLiteral) for literal in given):
        raise RequireLiteralValue(str(given))
    return [literal.literal_value for literal in given]


@intrinsic
def unpack(context, format, row, out, columns, blocks):
    """Write what one row stands for, with zeros to a multiple of 32 behind it; `format` is a literal as in `tile`."""
    name = CODES[_literals(format)[0]]

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        _, row, out, columns, blocks = given
        scale = _row_scale(builder, name, row, columns)

        def write(number: ir.Value, count: ir.Value | None) -> None:
            place = builder.add(row, builder.mul(number, INT(dequantize.step_bytes(name))))
            target = builder.add(out, builder.mul(number, INT(STEP * ITEM)))
            for i, numbers in enumerate(dequantize.step(builder, name, place, count)):
                numbers = numbers if scale is None else builder.fmul(numbers, repeated(builder, scale))
                _store(builder, numbers, dequantize.plus(builder, target, i * LANES * ITEM))

        with for_range(builder, blocks) as loop:
            write(loop.index, None)
        _for_the_rest(builder, name, columns, lambda rest: write(blocks, rest))
        return context.get_dummy_value()

    return types.void(format, *[types.int64] * 4), generate


@intrinsic
def tile(context, format, rows, inputs, weight, weight_row, count, x, x_row, x_count, out, out_row, columns, blocks):
    """`out[j, i] = weight[i] · x[j]` for `rows` rows of a weight and `inputs` of an input; where there are fewer, some twice.

    A row of `out` has room for `rows` numbers all the same. The first three are literals, `format` its place in `CODES`.
    `blocks` are the steps of 32 columns that can be read whole.
    """
    code, height, width = _literals(format, rows, inputs)
    name = CODES[code]

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        _, _, _, weight, weight_row, count, x, x_row, x_count, out, out_row, columns, blocks = given
        weights, places = _rows(builder, weight, weight_row, count, height), _rows(builder, x, x_row, x_count, width)
        zero = ir.Constant(dequantize.vector(FLOAT), None)
        sums = [alloca_once_value(builder, zero) for _ in range(height * width)]

        def add(number: ir.Value, rest: ir.Value | None) -> None:
            at, x_at = (builder.mul(number, INT(n)) for n in (dequantize.step_bytes(name), STEP * ITEM))
            stored = [builder.add(row, at) for row in weights]
            lines = [_pair(builder, builder.add(place, x_at)) for place in places]
            before = [builder.load(total) for total in sums]
            for total, made in zip(sums, _added(builder, name, before, stored, lines, rest)):
                builder.store(made, total)

        with for_range(builder, blocks) as loop:
            add(loop.index, None)
        _for_the_rest(builder, name, columns, lambda rest: add(blocks, rest))
        totals = _totals(builder, [builder.load(sums[i * width + j]) for j in range(width) for i in range(height)])
        scales = [_row_scale(builder, name, row, columns) for row in weights]
        for total, result in zip(_parted(builder, totals, width, height), _rows(builder, out, out_row, x_count, width)):
            _store(builder, total if scales[0] is None else builder.fmul(total, _joined(builder, scales)), result)
        return context.get_dummy_value()

    return types.void(format, rows, inputs, *[types.int64] * 10), generate


def _for_the_rest(builder: ir.IRBuilder, format: str, columns: ir.Value, act: Any) -> None:
    """Do something with the last columns, fewer than 32, of formats without blocks: nothing behind a row is read."""
    if format in PLAIN:
        rest = builder.srem(columns, INT(STEP))
        with builder.if_then(builder.icmp_signed(">", rest, INT(0))):
            act(rest)


def _row_scale(builder: ir.IRBuilder, format: str, row: ir.Value, columns: ir.Value) -> ir.Value | None:
    return dequantize.load(builder, builder.add(row, columns), FLOAT) if format == "i8" else None


def _pair(builder: ir.IRBuilder, address: ir.Value) -> Vectors:
    places = [dequantize.plus(builder, address, i * LANES * ITEM) for i in range(2)]
    return [dequantize.load(builder, place, dequantize.vector(FLOAT)) for place in places]


def _store(builder: ir.IRBuilder, value: ir.Value, address: ir.Value) -> None:
    builder.store(value, builder.inttoptr(address, value.type.as_pointer()), align=ITEM)


def _added(
    builder: ir.IRBuilder, format: str, sums: Vectors, stored: Vectors, lines: list[Vectors], rest: Any
) -> Vectors:
    """The sums with the products of 32 columns: of each row that is stored with each line of the input."""
    if len(lines) == 1 and format not in PLAIN:
        blocks = [dequantize.block(builder, format, place) for place in stored]
        return [_with_block(builder, total, block, lines[0]) for total, block in zip(sums, blocks)]
    pairs = [(w, x) for w in [dequantize.step(builder, format, place, rest) for place in stored] for x in lines]
    for half in range(2):
        sums = [_fused(builder, w[half], x[half], total) for (w, x), total in zip(pairs, sums)]
    return sums


def _fused(builder: ir.IRBuilder, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """`a · b + c`"""
    return builder.fadd(builder.fmul(a, b, flags=FAST), c, flags=FAST)


def _with_block(builder: ir.IRBuilder, total: ir.Value, block: dequantize.Block, x: Vectors) -> ir.Value:
    """A sum with a block's products with one line: the scale is applied to their sum, not to each."""
    both = builder.fadd(*x)
    inner = builder.fmul(block.whole[0], x[0], flags=FAST)
    if block.middle:
        inner = builder.fadd(builder.fmul(both, dequantize.constant(FLOAT, -block.middle)), inner)
    total = _fused(builder, _fused(builder, block.whole[1], x[1], inner), block.scale, total)
    return total if block.offset is None else _fused(builder, both, block.offset, total)


def _totals(builder: ir.IRBuilder, vectors: Vectors) -> ir.Value:
    """The sum of the lanes of each of up to 16 vectors, all in one vector: LANES / count lanes for each, in their order."""
    for size in (8, 4, 2, 1):
        half = len(vectors) // 2
        pairs = zip(vectors[:half], vectors[half:]) if half else zip(vectors, vectors)
        vectors = [_halved(builder, a, b, size) for a, b in pairs]
    (totals,) = vectors
    return totals


def _halved(builder: ir.IRBuilder, a: ir.Value, b: ir.Value, size: int) -> ir.Value:
    """Each 2·size lanes of a and of b added up to `size` lanes, those of a before those of b."""
    lows = [2 * size * (i // (2 * size)) + i % size + LANES * (i // size % 2) for i in range(LANES)]
    picks = [ir.Constant(dequantize.vector(WORD), [low + offset for low in lows]) for offset in (0, size)]
    return builder.fadd(*[builder.shuffle_vector(a, b, picked) for picked in picks])


def _parted(builder: ir.IRBuilder, totals: ir.Value, count: int, height: int) -> Vectors:
    """The sums of `count` times `height` vectors in `count` vectors."""
    step = LANES // (count * height)
    picks = [[(j * height + i) * step for i in range(height)] for j in range(count)]
    return [builder.shuffle_vector(totals, totals, ir.Constant(dequantize.vector(WORD, height), p)) for p in picks]


def _joined(builder: ir.IRBuilder, numbers: list[ir.Value]) -> ir.Value:
    """Numbers as a vector."""
    vector = ir.Constant(dequantize.vector(FLOAT, len(numbers)), ir.Undefined)
    for i, number in enumerate(numbers):
        vector = builder.insert_element(vector, number, WORD(i))
    return vector
