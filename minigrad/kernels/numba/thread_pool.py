"""Jobs that all cores compute together, one after the other and without Python between them.

A job is a row of words: the address of a compiled function, the number of parts it has, how many of them a thread takes at
once (0 for one), and what the function wants to know, mostly addresses. The function computes one part,
`function(job, part, room)`. Parts do not depend on each other, and are computed in the same way by whomever, so that the
result does not depend on it.

A thread for each further core waits for work. It spins for a moment, so that the next job of a busy program finds it
awake, and then sleeps without ever having taken Python's lock. A thread with jobs hands one to the pool and begins.
Workers that are awake take parts of it; sleeping ones are not waited for.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from ...maths.addresses import at
from ...runtime import threads
from .atomics import WORD, add, look, pause, publish, replace, sched_yield, sem_init, sem_post, sem_wait, swap
from .compiling import kernel
from .llvm import instructions

FUNCTION, PARTS, TAKEN, OWN = (
    0,
    1,
    2,
    3,
)  # places in a job: the function, how many parts, how many at once, and where its own words begin
JOB_WORDS = 32  # of which those that a job does not set are 0
ROOM = 1 << 17  # float32 that each thread has for itself while it computes a part

SPINS = 3_000  # looks at the pool before a worker sleeps: some 100 µs
PATIENCE = 10_000  # looks at the pool, before a thread that waits for a worker lets other threads run

# The pool: words on cache lines of their own. A ticket says how many parts of the job are not yet taken, and numbers the job.
LOCK, TICKET, DONE, ASLEEP, SEMAPHORE, JOB, AT_ONCE = (i * 64 for i in range(7))
LEFT = (1 << 32) - 1

_INT = ir.IntType(64)
PART = types.void(types.int64, types.int64, types.int64)


@instructions(types.void(types.int64, types.int64, types.int64, types.int64))
def _call(builder, function, job, part, room):
    """Call a compiled function by its address."""
    kind = ir.FunctionType(ir.VoidType(), [_INT] * 3)
    builder.call(builder.inttoptr(function, kind.as_pointer()), [job, part, room])


@kernel
def word(job, place):
    """One word of a job."""
    return look(job + place * WORD)


@kernel
def number(job, place):
    """One word of a job that holds the bits of a float64, as float32."""
    return np.float32(at(job, np.float64)[place])


@kernel
def _alone(job, room):
    for part in range(word(job, PARTS)):
        _call(look(job), job, part, room)


@kernel
def _taken(job, room, pool, ticket):
    """Take some parts of the job that has this ticket, and compute them; how many."""
    left = ticket & LEFT
    count = min(look(pool + AT_ONCE), left)
    if not replace(pool + TICKET, ticket, ticket - count):
        return 0
    for part in range(left - count, left):
        _call(look(job), job, part, room)
    return count


@kernel
def _together(job, room, pool):
    """Compute one job with the workers that are awake."""
    publish(pool + JOB, job)
    publish(pool + AT_ONCE, max(word(job, TAKEN), 1))
    publish(pool + DONE, 0)
    parts, done = word(job, PARTS), 0
    publish(pool + TICKET, (((look(pool + TICKET) >> 32) + 1) << 32) + parts)
    ticket = look(pool + TICKET)
    while ticket & LEFT:
        done += _taken(job, room, pool, ticket)
        ticket = look(pool + TICKET)
    looks = 0
    while done + look(pool + DONE) < parts:
        pause()
        looks += 1
        if looks > PATIENCE:
            sched_yield()


@kernel
def run_jobs(first, count, pool, wake):
    """Run `count` jobs from an address on; alone where there is no pool, or another thread is using it."""
    room = np.empty(ROOM, np.float32)
    held = pool != 0 and swap(pool + LOCK, 1) == 0
    if held and wake:
        for _ in range(swap(pool + ASLEEP, 0)):
            sem_post(pool + SEMAPHORE)
    for i in range(count):
        job = first + i * JOB_WORDS * WORD
        if held and word(job, PARTS) > 1:
            _together(job, room.ctypes.data, pool)
        else:
            _alone(job, room.ctypes.data)
    if held:
        publish(pool + LOCK, 0)


@kernel
def _help(pool):
    """Compute parts of whatever the pool has, forever.

    The job is read before parts of it are taken. That the ticket then is unchanged, and had parts left, says that it was
    this job's: another is only put there when the last one has no parts left, and gets another number.
    """
    room = np.empty(ROOM, np.float32)
    while True:
        looks = 0
        while looks < SPINS:
            ticket = look(pool + TICKET)
            if ticket & LEFT:
                job = look(pool + JOB)
                done = _taken(job, room.ctypes.data, pool, ticket)
                if done:
                    add(pool + DONE, done)
                looks = 0
            pause()
            looks += 1
        add(pool + ASLEEP, 1)
        sem_wait(pool + SEMAPHORE)


@kernel
def _prepare(pool):
    return sem_init(pool + SEMAPHORE, 0, 0)


class _Workers:
    """The pool's address, or 0 where there are no workers; the first call starts them.

    The end of the process ends them.
    """

    def __init__(self) -> None:
        self.pool: np.ndarray | None = None
        self.address = 0
        self.beginning = threading.Lock()

    def begin(self) -> None:
        with self.beginning:
            count = threads.thread_count() - 1 if sys.platform == "linux" else 0
            if self.pool is not None:
                return
            pool = np.zeros(AT_ONCE // WORD + 1, np.int64)
            if count and _prepare(pool.ctypes.data) == 0:
                _help.compile((types.int64,))  # here, since a fork must not find another thread compiling
                for i in range(count):
                    threading.Thread(target=_help, args=(pool.ctypes.data,), name=f"minigrad-{i}", daemon=True).start()
                self.address = pool.ctypes.data
            self.pool = pool


_workers = _Workers()


def _forget_workers() -> None:
    """A forked process has none of its parent's threads, so the pool is forgotten."""
    global _workers
    _workers = _Workers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)


def pool_for(is_large: bool) -> int:
    """The address of the pool for jobs; 0 if they are too small to be shared, or all cores are busy."""
    if not is_large or threads.all_cores_busy():
        return 0
    if _workers.pool is None:
        _workers.begin()
    return _workers.address


def address_of(part: Any) -> int:
    """The address of a kernel that computes a part of a job; it is compiled where it has not been."""
    part.compile(PART)
    made = part.overloads[PART.args]
    return int(made.library.get_pointer_to_function(made.fndesc.llvm_cfunc_wrapper_name))
