"""Stacks of products of small matrices, which all cores compute together.

A thread for each further core waits for work. It spins for a moment, so that the next stack of a busy program finds it
awake, and then sleeps without ever having taken Python's lock. A thread with a stack to multiply writes it on the board and
begins. Helpers that are awake take parts of it; sleeping ones are not waited for. Each product is computed in the same way
by whomever, so the result does not depend on it. By hand: to the compiler a product is a step of its own.
"""

from __future__ import annotations

import os
import sys
import threading

import numpy as np
from numba import types

from ...ops.products import matmul
from ...runtime import threads
from ..registry import Kernel
from ..stacks import LARGEST, accepts
from .atomics import WORD, add, look, pause, publish, replace, sched_yield, sem_init, sem_post, sem_wait, swap
from .compiling import kernel
from .tiles import COLUMNS, ITEM, PANEL_ROW, ROWS, tile, turn
from .vectors import load, store

F = np.float32
SHARED = 200_000  # multiplications from which others are let help, and those from which they are woken up
WAKING = 1_000_000
PARTS = 32  # that a stack is divided into, at most twice as many
SPINS = 3_000  # looks at the board before a helper sleeps: some 100 µs
PATIENCE = 10_000  # looks at the board, before a thread that waits for a helper lets other threads run

# The board: words on cache lines of their own, then the stack's description, 17 words:
# the left factor's address and its 4 distances, the right one's, the result's address, inner, m, k, n, count, size of a part
LOCK, TICKET, DONE, ASLEEP, SEMAPHORE, STACK = (i * 64 for i in range(6))
STACK_WORDS = 17
BOARD_WORDS = STACK // WORD + STACK_WORDS
LEFT_FACTOR, RIGHT_FACTOR, OUT, INNER, M, K, N, COUNT, PART = 0, 5, 10, 11, 12, 13, 14, 15, 16
LEFT = (1 << 32) - 1  # the bits of a ticket that count the parts not yet taken; those above number the stack


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
    rows, depth, columns = stack[M], stack[K], stack[N]
    outer, inner = number // stack[INNER], number % stack[INNER]
    left = stack[LEFT_FACTOR] + outer * stack[LEFT_FACTOR + 1] + inner * stack[LEFT_FACTOR + 2]
    right = stack[RIGHT_FACTOR] + outer * stack[RIGHT_FACTOR + 1] + inner * stack[RIGHT_FACTOR + 2]
    left_row, left_step = stack[LEFT_FACTOR + 3], stack[LEFT_FACTOR + 4]
    _pack(right, stack[RIGHT_FACTOR + 3], stack[RIGHT_FACTOR + 4], depth, columns, panels)
    out_row = columns * ITEM
    out = stack[OUT] + number * rows * out_row
    for j in range(0, columns, COLUMNS):
        panel, target = panels + j * depth * ITEM, out + min(j, columns - COLUMNS) * ITEM
        for i in range(0, rows, ROWS):
            source = left + i * left_row
            tile(source, left_row, left_step, panel, target + i * out_row, out_row, rows - i, depth, False)


@kernel
def _multiply_part(stack, part, panels):
    first = part * stack[PART]
    for number in range(first, min(first + stack[PART], stack[COUNT])):
        _multiply(stack, number, panels)


@kernel
def _parts(stack):
    return (stack[COUNT] + stack[PART] - 1) // stack[PART]


@kernel
def _room(stack):
    return np.empty((stack[N] + COLUMNS - 1) // COLUMNS * COLUMNS * stack[K], F)


@kernel
def _alone(stack):
    room = _room(stack)
    for part in range(_parts(stack)):
        _multiply_part(stack, part, room.ctypes.data)


@kernel
def _together(stack, board, wake):
    """Compute the stack with the helpers; without them if another thread is using them."""
    if swap(board + LOCK, 1):
        return _alone(stack)
    room = _room(stack)
    for i in range(STACK_WORDS):
        publish(board + STACK + i * WORD, stack[i])
    publish(board + DONE, 0)
    parts, done = _parts(stack), 0
    publish(board + TICKET, (((look(board + TICKET) >> 32) + 1) << 32) + parts)
    if wake:
        for _ in range(swap(board + ASLEEP, 0)):
            sem_post(board + SEMAPHORE)
    ticket = look(board + TICKET)
    while ticket & LEFT:
        if replace(board + TICKET, ticket, ticket - 1):
            _multiply_part(stack, (ticket & LEFT) - 1, room.ctypes.data)
            done += 1
        ticket = look(board + TICKET)
    looks = 0
    while done + look(board + DONE) < parts:
        pause()
        looks += 1
        if looks > PATIENCE:
            sched_yield()
    publish(board + LOCK, 0)


@kernel
def _help(board):
    """Compute parts of whatever is on the board, forever.

    The stack is read before a part of it is taken. That the ticket then is unchanged, and had parts left, says that it
    was this stack's: another is only written when the last one has no parts left, and gets another number.
    """
    stack, room = np.empty(STACK_WORDS, np.int64), np.empty(2 * LARGEST, F)
    while True:
        looks = 0
        while looks < SPINS:
            ticket = look(board + TICKET)
            if ticket & LEFT:
                for i in range(STACK_WORDS):
                    stack[i] = look(board + STACK + i * WORD)
                if replace(board + TICKET, ticket, ticket - 1):
                    _multiply_part(stack, (ticket & LEFT) - 1, room.ctypes.data)
                    add(board + DONE, 1)
                looks = 0
            pause()
            looks += 1
        add(board + ASLEEP, 1)
        sem_wait(board + SEMAPHORE)


@kernel
def _prepare(board):
    return sem_init(board + SEMAPHORE, 0, 0)


@kernel
def _run(a, b, out, part, board, wake):
    """Fill `out`. Only this is compiled anew for arrays that lie in another way: it writes down where they are."""
    stack = np.empty(STACK_WORDS, np.int64)
    for place, address, strides in ((LEFT_FACTOR, a.ctypes.data, a.strides), (RIGHT_FACTOR, b.ctypes.data, b.strides)):
        stack[place] = address
        stack[place + 1], stack[place + 2] = strides[0], strides[-3]
        stack[place + 3], stack[place + 4] = strides[-2], strides[-1]
    stack[OUT], stack[INNER] = out.ctypes.data, out.shape[-3]
    stack[M], stack[K], stack[N] = out.shape[-2], b.shape[-2], b.shape[-1]
    stack[COUNT], stack[PART] = out.size // (stack[M] * stack[N]), part
    if board:
        _together(stack, board, wake)
    else:
        _alone(stack)


class _Helpers:
    """The board's address, or 0 where there are no helpers; the first call starts them.

    The end of the process ends them.
    """

    def __init__(self) -> None:
        self.board: np.ndarray | None = None
        self.address = 0
        self.beginning = threading.Lock()

    def begin(self) -> None:
        with self.beginning:
            count = threads.thread_count() - 1 if sys.platform == "linux" else 0
            if self.board is not None:
                return
            board = np.zeros(BOARD_WORDS, np.int64)
            if count and _prepare(board.ctypes.data) == 0:
                _help.compile((types.int64,))  # here, since a fork must not find another thread compiling
                for i in range(count):
                    threading.Thread(target=_help, args=(board.ctypes.data,), name=f"minigrad-{i}", daemon=True).start()
                self.address = board.ctypes.data
            self.board = board


_helpers = _Helpers()


def _forget_helpers() -> None:
    """A forked process has none of its parent's threads, so the board is cleared."""
    global _helpers
    _helpers = _Helpers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_helpers)


def _board(work: int) -> int:
    """The address of the board that a stack of so many multiplications is to be written on; 0 if it is not to be shared."""
    if work < SHARED or threads.all_cores_busy():
        return 0
    if _helpers.board is None:
        _helpers.begin()
    return _helpers.address


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`a @ b` of two stacks that `stacks.accepts`: (…, m, k), (…, k, n) -> (…, m, n)."""
    out = np.empty((*a.shape[:-1], b.shape[-1]), F)
    work = out.size * a.shape[-1]
    count = out.size // (out.shape[-1] * out.shape[-2])
    _run(a, b, out, max(count // PARTS, 1), _board(work), work >= WAKING)
    return out


matmul.kernels["numba"] = Kernel(lambda a, b: (product(a, b), None), None, accepts)
