"""Vectors of 16 float32 as a type of numba's, for rows that are too short to be left to LLVM's vectoriser.

It would do the last elements of each row one by one, and for the tens of elements that a row of attention has this takes
longer than the others together. Rows are given by their addresses, and end where a multiple of 16 elements does.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import models, overload, register_model

from ...maths import float32 as maths
from ...maths.float32 import exact
from .llvm import instructions

LANES = 16
BYTES = 4 * LANES
F = np.float32
_LEAST = F(-88)  # the sigmoid is taken of nothing below


class _Vector(types.Type):
    pass


VECTOR = _Vector("float32x16")
_FLOATS = ir.VectorType(ir.FloatType(), LANES)
_INTS = ir.VectorType(ir.IntType(32), LANES)


@register_model(_Vector)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any):
        super().__init__(manager, kind, _FLOATS)


def repeated(builder: ir.IRBuilder, scalar: ir.Value, size: int = LANES) -> ir.Value:
    """LLVM's instructions for a vector of equal numbers."""
    first = builder.insert_element(
        ir.Constant(ir.VectorType(scalar.type, size), ir.Undefined), scalar, ir.IntType(32)(0)
    )
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(ir.IntType(32), size), [0] * size))


def _pointer(builder: ir.IRBuilder, address: ir.Value) -> ir.Value:
    return builder.inttoptr(address, _FLOATS.as_pointer())


@instructions(VECTOR(types.float32))
def splat(builder, number):
    """16 times the same number."""
    return repeated(builder, number)


@instructions(types.void(types.int64))
def prefetch(builder, address):
    """Ask for the line of the cache at an address, which need not be memory of ours."""
    place, word = builder.inttoptr(address, ir.IntType(8).as_pointer()), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [place.type, word, word, word])
    asked = builder.module.declare_intrinsic("llvm.prefetch", (place.type,), kind)
    builder.call(asked, [place, word(0), word(3), word(1)])  # to read, to keep in all caches, of data


@instructions(VECTOR(types.int64))
def load(builder, address):
    """The 16 numbers from an address on."""
    return builder.load(_pointer(builder, address), align=4)


@instructions(types.void(VECTOR, types.int64))
def store(builder, vector, address):
    """Write the 16 numbers from an address on."""
    builder.store(vector, _pointer(builder, address), align=4)


@instructions(VECTOR(types.int32, VECTOR, VECTOR))
def up_to(builder, count, a, b):
    """`a` in the first `count` lanes, `b` in the others."""
    numbers = ir.Constant(_INTS, list(range(LANES)))
    return builder.select(builder.icmp_signed("<", numbers, repeated(builder, count)), a, b)


@instructions(VECTOR(VECTOR, VECTOR, VECTOR, VECTOR))
def where_less(builder, a, b, yes, no):
    """`yes` in the lanes where `a < b`, `no` in the others."""
    return builder.select(builder.fcmp_ordered("<", a, b), yes, no)


@instructions(VECTOR(VECTOR, VECTOR))
def masked(builder, a, mask):
    """`a + mask`, and -inf where the mask is, whatever `a` is there."""
    forbidden = ir.Constant(_FLOATS, [-math.inf] * LANES)
    return builder.select(builder.fcmp_unordered("!=", mask, forbidden), builder.fadd(a, mask), forbidden)


def _folded(builder: ir.IRBuilder, vector: ir.Value, combine: Any) -> ir.Value:
    """All lanes combined into one number, by halves."""
    for size in (8, 4, 2, 1):
        numbers = ir.Constant(_INTS, [(i + size) % LANES for i in range(LANES)])
        vector = combine(builder, vector, builder.shuffle_vector(vector, vector, numbers))
    return builder.extract_element(vector, ir.IntType(32)(0))


def _larger(builder: ir.IRBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    """The larger of each two; `b` if one is NaN."""
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


larger = instructions(VECTOR(VECTOR, VECTOR))(_larger)


@instructions(types.float32(VECTOR))
def largest(builder, vector):
    """The largest of the 16 numbers."""
    return _folded(builder, vector, _larger)


@instructions(types.float32(VECTOR))
def total(builder, vector):
    """The sum of the 16 numbers."""
    return _folded(builder, vector, ir.IRBuilder.fadd)


@instructions(VECTOR(VECTOR))
def _power(builder, n):
    """The 9 lowest bits of each, taken for those of an exponent."""
    bits = builder.shl(builder.bitcast(n, _INTS), ir.Constant(_INTS, [23] * LANES))
    return builder.bitcast(bits, _FLOATS)


def _define(symbol: Any, instruction: str) -> None:
    @instructions(VECTOR(VECTOR, VECTOR))
    def apply(builder, a, b):
        return getattr(builder, instruction)(a, b, flags=("contract",))

    @overload(symbol)
    def choose(a, b):
        return (lambda a, b: apply(a, b)) if a == b == VECTOR else None


for _symbol, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _define(_symbol, _instruction)


@exact
def exp(x):
    """As `maths.exp`, for numbers that are not above 88."""
    y = larger(splat(maths._LOWEST), x)  # NaN stays
    n = y * splat(maths._LOG2E) + splat(maths._ROUND)
    power = _power(n)
    n = n - splat(maths._ROUND)
    r = y - n * splat(maths._LN2_HIGH) - n * splat(maths._LN2_LOW)
    p = splat(maths._E6) * r + splat(maths._E5)
    p = p * r + splat(maths._E4)
    p = p * r + splat(maths._E3)
    p = p * r + splat(maths._E2)
    p = p * (r * r) + r
    return (p + p + splat(F(2))) * power


@exact
def sigmoid(x):
    """As `maths.sigmoid`."""
    return splat(F(1)) / (splat(F(1)) + exp(splat(F(0)) - larger(splat(_LEAST), x)))


@exact
def tanh(x):
    """As `maths.tanh`."""
    u = x * x
    p = splat(maths._T5) * u + splat(maths._T4)
    p = p * u + splat(maths._T3)
    p = p * u + splat(maths._T2)
    p = p * u + splat(maths._T1)
    near = x + x * (p * u)
    far = sigmoid(x + x)
    return where_less(u, splat(maths._NEAR * maths._NEAR), near, far + far - splat(F(1)))
