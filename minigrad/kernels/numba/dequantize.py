"""How 32 packed numbers become two vectors of floats: LLVM's instructions for each format of `maths.packing`, and for "f32"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir

from ...maths.packing import FORMATS
from .vectors import LANES, repeated

STEP = 2 * LANES  # numbers that are taken at a time
ITEM = 4
INT, _BYTE, _SHORT, WORD, FLOAT = ir.IntType(64), ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.FloatType()
FAST = ("contract",)


def vector(kind: Any, size: int = LANES) -> ir.VectorType:
    return ir.VectorType(kind, size)


def constant(kind: Any, number: float) -> ir.Constant:
    return ir.Constant(vector(kind), [number] * LANES)


def load(builder: ir.IRBuilder, address: ir.Value, kind: Any) -> ir.Value:
    """What is at an address, wherever that is."""
    return builder.load(builder.inttoptr(address, kind.as_pointer()), align=1)


def load_some(builder: ir.IRBuilder, address: ir.Value, kind: Any, count: ir.Value) -> ir.Value:
    """The first `count` lanes of what is at an address, zeros in the others; nothing behind them is touched."""
    wanted = vector(kind)
    numbers = ir.Constant(vector(INT), list(range(LANES)))
    lanes = builder.icmp_signed("<", numbers, repeated(builder, count))
    name = f"llvm.masked.load.v{LANES}{kind.intrinsic_name}.p0"
    signature = ir.FunctionType(wanted, [wanted.as_pointer(), WORD, vector(ir.IntType(1)), wanted])
    function = builder.module.globals.get(name) or ir.Function(builder.module, signature, name)
    place = builder.inttoptr(address, wanted.as_pointer())
    return builder.call(function, [place, WORD(1), lanes, ir.Constant(wanted, None)])


def plus(builder: ir.IRBuilder, address: ir.Value, offset: int) -> ir.Value:
    return builder.add(address, INT(offset))


def _whole(builder: ir.IRBuilder, bytes_: ir.Value, signed: bool) -> ir.Value:
    widen = builder.sext if signed else builder.zext
    return widen(bytes_, vector(WORD))


def _floats(builder: ir.IRBuilder, whole: ir.Value) -> ir.Value:
    return builder.sitofp(whole, vector(FLOAT))


def _halves(builder: ir.IRBuilder, address: ir.Value, count: int) -> list[ir.Value]:
    """One or two float16 from an address on, each in all lanes as float32: few instructions, since most blocks have both."""
    bits = builder.zext(load(builder, address, ir.IntType(16 * count)), INT)
    floats = builder.fpext(builder.bitcast(bits, vector(ir.HalfType(), 4)), vector(FLOAT, 4))
    return [builder.shuffle_vector(floats, floats, constant(WORD, i)) for i in range(count)]


# How 16 stored elements become floats, for the formats without blocks: the kind of an element, and what is done with it.
PLAIN: dict[str, tuple[Any, Callable[[ir.IRBuilder, ir.Value], ir.Value]]] = {
    "f32": (FLOAT, lambda builder, x: x),
    "f16": (ir.HalfType(), lambda builder, x: builder.fpext(x, vector(FLOAT))),
    "bf16": (
        _SHORT,
        lambda builder, x: builder.bitcast(
            builder.shl(builder.zext(x, vector(WORD)), constant(WORD, 16)), vector(FLOAT)
        ),
    ),
    "i8": (_BYTE, lambda builder, x: _floats(builder, _whole(builder, x, True))),
}
CODES = (*PLAIN, *[name for name in FORMATS if name not in PLAIN])
SIZES = {"f32": 4, "f16": 2, "bf16": 2, "i8": 1}


def step_bytes(format: str) -> int:
    """How many bytes 32 numbers take."""
    return STEP * SIZES[format] if format in PLAIN else FORMATS[format].bytes


def _plain_step(builder: ir.IRBuilder, format: str, address: ir.Value, count: ir.Value | None) -> list[ir.Value]:
    """Two vectors from an address on; only the first `count` numbers, if it is given."""
    kind, convert = PLAIN[format]
    halves = []
    for i in range(2):
        place = plus(builder, address, i * LANES * SIZES[format])
        if count is None:
            halves.append(load(builder, place, vector(kind)))
        else:
            halves.append(load_some(builder, place, kind, builder.sub(count, INT(i * LANES))))
    return [convert(builder, half) for half in halves]


class Block(NamedTuple):
    """32 numbers of one block of GGUF's: `scale · (whole - middle) + offset`, or `offset` None."""

    whole: list[ir.Value]
    scale: ir.Value
    middle: float
    offset: ir.Value | None


def block(builder: ir.IRBuilder, format: str, address: ir.Value) -> Block:
    has_offset, has_fifth = format.endswith("1"), format.startswith("q5")
    scale, *offset = _halves(builder, address, 2 if has_offset else 1)
    if format == "q8_0":
        places = [plus(builder, address, 2 + i * LANES) for i in range(2)]
        loaded = [load(builder, place, vector(_BYTE)) for place in places]
        return Block([_floats(builder, _whole(builder, x, True)) for x in loaded], scale, 0.0, None)
    pairs = load(builder, plus(builder, address, FORMATS[format].bytes - LANES), vector(_BYTE))
    nibbles = [builder.and_(pairs, constant(_BYTE, 15)), builder.lshr(pairs, constant(_BYTE, 4))]
    if has_fifth:
        fifths = [_fifth(builder, plus(builder, address, (4 if has_offset else 2) + 2 * i)) for i in range(2)]
        nibbles = [builder.or_(nibble, fifth) for nibble, fifth in zip(nibbles, fifths)]
    whole = [_floats(builder, _whole(builder, nibble, False)) for nibble in nibbles]
    return Block(whole, scale, 0.0 if has_offset else 16.0 if has_fifth else 8.0, offset[0] if offset else None)


def _numbers(builder: ir.IRBuilder, block: Block) -> list[ir.Value]:
    """What a block stands for."""
    numbers = block.whole
    if block.middle:
        numbers = [builder.fsub(q, constant(FLOAT, block.middle)) for q in numbers]
    numbers = [builder.fmul(q, block.scale, flags=FAST) for q in numbers]
    return numbers if block.offset is None else [builder.fadd(q, block.offset, flags=FAST) for q in numbers]


def step(builder: ir.IRBuilder, format: str, address: ir.Value, count: ir.Value | None = None) -> list[ir.Value]:
    """32 numbers from an address on, as two vectors; where there are no blocks, only the first `count` of them, if given."""
    if format in PLAIN:
        return _plain_step(builder, format, address, count)
    return _numbers(builder, block(builder, format, address))


def _fifth(builder: ir.IRBuilder, address: ir.Value) -> ir.Value:
    """16 bits at an address as 16 bytes, each 16 or 0."""
    bits = builder.bitcast(load(builder, address, _SHORT), vector(ir.IntType(1)))
    return builder.select(bits, constant(_BYTE, 16), constant(_BYTE, 0))
