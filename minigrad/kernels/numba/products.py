"""Stacks of products of small matrices, which all cores compute together. By hand: to the compiler a product is a step of its own."""

from __future__ import annotations

from functools import cache

import numpy as np

from ...ops.linalg.products import matmul
from ..registry import Kernel
from ..stacks import LARGEST, accepts
from .compiling import kernel
from .thread_pool import FUNCTION, JOB_WORDS, OWN, PARTS, ROOM, address_of, pool_for, run_jobs, word
from .tiles import COLUMNS, ITEM, PANEL_ROW, ROWS, tile, turn
from .vectors import load, store

F = np.float32
SHARED = 200_000  # multiplications from which others are let help, and those from which they are woken up
WAKING = 1_000_000
MOST_PARTS = 32  # that a stack is divided into, at most twice as many
assert 2 * LARGEST <= ROOM  # a right factor in panels

# The words of a job: the left factor's address and its 4 distances, the right one's, the result's address, and sizes
LEFT_FACTOR, RIGHT_FACTOR = OWN, OWN + 5
OUT, INNER, M, K, N, COUNT, PART = range(OWN + 10, OWN + 17)


@kernel
def _pack(source, row, step, depth, columns, panels):
    """A right factor into panels, of which the last may begin within the one before: (k, n) -> (⌈n / 16⌉, k, 16)."""
    for j in range(0, columns, COLUMNS):
        first, panel = source + min(j, columns - COLUMNS) * step, panels + j * depth * ITEM
        if step == ITEM:
            for i in range(depth):
                store(load(first + i * row), panel + i * PANEL_ROW)
        else:
            for i in range(0, depth, 8):
                top = min(i, depth - 8)
                for half in range(0, COLUMNS, 8):
                    place = first + half * step + top * ITEM
                    turn(place, step, 8, panel + top * PANEL_ROW + half * ITEM, F(1))


@kernel
def _multiply(stack, number, panels):
    """One product of the stack."""
    rows, depth, columns = word(stack, M), word(stack, K), word(stack, N)
    outer, inner = number // word(stack, INNER), number % word(stack, INNER)
    left = word(stack, LEFT_FACTOR) + outer * word(stack, LEFT_FACTOR + 1) + inner * word(stack, LEFT_FACTOR + 2)
    right = word(stack, RIGHT_FACTOR) + outer * word(stack, RIGHT_FACTOR + 1) + inner * word(stack, RIGHT_FACTOR + 2)
    left_row, left_step = word(stack, LEFT_FACTOR + 3), word(stack, LEFT_FACTOR + 4)
    _pack(right, word(stack, RIGHT_FACTOR + 3), word(stack, RIGHT_FACTOR + 4), depth, columns, panels)
    out_row = columns * ITEM
    out = word(stack, OUT) + number * rows * out_row
    for j in range(0, columns, COLUMNS):
        panel, target = panels + j * depth * ITEM, out + min(j, columns - COLUMNS) * ITEM
        for i in range(0, rows, ROWS):
            source = left + i * left_row
            tile(source, left_row, left_step, panel, target + i * out_row, out_row, rows - i, depth, False)


@kernel
def _multiply_part(stack, part, panels):
    first = part * word(stack, PART)
    for number in range(first, min(first + word(stack, PART), word(stack, COUNT))):
        _multiply(stack, number, panels)


@kernel
def _run(a, b, out, part, function, pool, wake):
    """Fill `out`. Only this is compiled anew for arrays that lie in another way: it writes down where they are."""
    stack = np.zeros(JOB_WORDS, np.int64)
    for place, address, strides in ((LEFT_FACTOR, a.ctypes.data, a.strides), (RIGHT_FACTOR, b.ctypes.data, b.strides)):
        stack[place] = address
        stack[place + 1], stack[place + 2] = strides[0], strides[-3]
        stack[place + 3], stack[place + 4] = strides[-2], strides[-1]
    stack[OUT], stack[INNER] = out.ctypes.data, out.shape[-3]
    stack[M], stack[K], stack[N] = out.shape[-2], b.shape[-2], b.shape[-1]
    stack[COUNT], stack[PART] = out.size // (stack[M] * stack[N]), part
    stack[FUNCTION], stack[PARTS] = function, (stack[COUNT] + part - 1) // part
    run_jobs(stack.ctypes.data, 1, pool, wake)


@cache
def _function() -> int:
    return address_of(_multiply_part)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`a @ b` of two stacks that `stacks.accepts`: (…, m, k), (…, k, n) -> (…, m, n)."""
    out = np.empty((*a.shape[:-1], b.shape[-1]), F)
    work = out.size * a.shape[-1]
    count = out.size // (out.shape[-1] * out.shape[-2])
    _run(a, b, out, max(count // MOST_PARTS, 1), _function(), pool_for(work >= SHARED), work >= WAKING)
    return out


matmul.kernels["numba"] = Kernel(lambda a, b: (product(a, b), None), None, accepts)
