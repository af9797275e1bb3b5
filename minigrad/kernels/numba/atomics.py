"""What threads that compute without Python's lock agree by: words of memory that change as a whole, and a semaphore.

A word is given by its address. What was written before `publish`, `swap` or `add` is seen by every thread that then reads the word
with `look`, `swap` or `replace`.
"""

from __future__ import annotations

import platform
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

WORD = 8  # bytes
_INT = ir.IntType(64)
_HAS_PAUSE = platform.machine() in ("x86_64", "AMD64")

# A semaphore of the C library, for Linux, and its way to let other threads run. They take addresses and return 0.
_answer = types.int32
sem_init = types.ExternalFunction("sem_init", _answer(types.int64, types.int32, types.uint32))
sem_post = types.ExternalFunction("sem_post", _answer(types.int64))
sem_wait = types.ExternalFunction("sem_wait", _answer(types.int64))
sched_yield = types.ExternalFunction("sched_yield", _answer())


def _word(builder: ir.IRBuilder, address: ir.Value) -> ir.Value:
    return builder.inttoptr(address, _INT.as_pointer())


@intrinsic
def look(context, address):
    """The word at an address."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_word(builder, args[0]), "acquire", WORD)

    return types.int64(types.int64), generate


@intrinsic
def publish(context, address, value):
    """Write the word at an address."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        builder.store_atomic(args[1], _word(builder, args[0]), "release", WORD)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def swap(context, address, value):
    """Write the word at an address; returns what it was."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("xchg", _word(builder, args[0]), args[1], "seq_cst")

    return types.int64(types.int64, types.int64), generate


@intrinsic
def add(context, address, value):
    """Add to the word at an address; returns what it was."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _word(builder, args[0]), args[1], "seq_cst")

    return types.int64(types.int64, types.int64), generate


@intrinsic
def replace(context, address, old, new):
    """Write the word at an address if it still is `old`; returns whether it was."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        address, old, new = args
        pair = builder.cmpxchg(_word(builder, address), old, new, "seq_cst", "acquire")
        return builder.extract_value(pair, 1)

    return types.boolean(types.int64, types.int64, types.int64), generate


@intrinsic
def pause(context):
    """Hint to the processor that this thread is waiting."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        if _HAS_PAUSE:
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(builder.module.declare_intrinsic("llvm.x86.sse2.pause", (), kind), [])
        return context.get_dummy_value()

    return types.void(), generate
