"""What threads that compute without Python's lock agree by: words of memory that change as a whole, and a semaphore.

A word is given by its address. What was written before `publish`, `swap` or `add` is seen by every thread that then reads the word
with `look`, `swap` or `replace`.
"""

from __future__ import annotations

import platform

from llvmlite import ir
from numba import types

from .llvm import instructions

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


@instructions(types.int64(types.int64))
def look(builder, address):
    """The word at an address."""
    return builder.load_atomic(_word(builder, address), "acquire", WORD)


@instructions(types.void(types.int64, types.int64))
def publish(builder, address, value):
    """Write the word at an address."""
    return builder.store_atomic(value, _word(builder, address), "release", WORD)


@instructions(types.int64(types.int64, types.int64))
def swap(builder, address, value):
    """Write the word at an address; returns what it was."""
    return builder.atomic_rmw("xchg", _word(builder, address), value, "seq_cst")


@instructions(types.int64(types.int64, types.int64))
def add(builder, address, value):
    """Add to the word at an address; returns what it was."""
    return builder.atomic_rmw("add", _word(builder, address), value, "seq_cst")


@instructions(types.boolean(types.int64, types.int64, types.int64))
def replace(builder, address, old, new):
    """Write the word at an address if it still is `old`; returns whether it was."""
    return builder.extract_value(builder.cmpxchg(_word(builder, address), old, new, "seq_cst", "acquire"), 1)


@instructions(types.void())
def pause(builder):
    """Hint to the processor that this thread is waiting."""
    if _HAS_PAUSE:
        kind = ir.FunctionType(ir.VoidType(), [])
        builder.call(builder.module.declare_intrinsic("llvm.x86.sse2.pause", (), kind), [])
