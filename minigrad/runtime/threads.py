"""A thread pool, and a BLAS that keeps to one thread while the pool works.

NumPy and compiled kernels release Python's lock while they compute, so threads run in parallel. If BLAS started its own
threads inside each of ours, they would compete for the cores; `threadpoolctl` limits it to one thread. Where BLAS cannot be
limited, batches are not divided, and BLAS's own threads use the cores.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar, cast

from ..errors import ArgumentError

__all__ = [
    "all_cores_busy", "available_cores", "can_limit_blas", "limit_threads", "run_parallel", "single_threaded_blas",
    "thread_count",
]  # fmt: skip

T = TypeVar("T")
_pool: ThreadPoolExecutor | None = None
_controller: Any = None
_limit: int | None = None  # threads: set by `limit_threads`
_depth = 0  # how many callers are inside `single_threaded_blas`
_blas_limit: Any = None  # the limit that the first of them has set, and the last one lifts
_lock = threading.Lock()  # guards the two


def thread_count() -> int:
    """How many threads to use: `MINIGRAD_THREADS`, or the limit of this process, or all its cores."""
    asked = os.environ.get("MINIGRAD_THREADS")
    if not asked:
        return _limit or len(available_cores())
    if not asked.isdecimal() or int(asked) < 1:
        raise ArgumentError("MINIGRAD_THREADS is a number of threads", "a whole number from 1", repr(asked))
    return int(asked)


def available_cores() -> list[int]:
    """The numbers of the cores that this process may run on."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [*range(os.cpu_count() or 1)]


def limit_threads(count: int) -> None:
    """Use at most `count` threads (at least one) from now on, here and in BLAS; `MINIGRAD_THREADS` takes precedence."""
    global _limit
    _limit = max(count, 1)
    if can_limit_blas():
        for library in _controller.lib_controllers:
            if library.num_threads > thread_count():
                library.set_num_threads(thread_count())


def run_parallel(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Run all jobs at once, the last one in this thread, and return their results in order.

    If a job fails, the jobs that have started are waited for before the error is raised. A job that no thread has started
    by then runs in this thread: when jobs divide their own work, all threads of the pool may be waiting. Context variables
    have the same values in all jobs.
    """
    *others, own = [cast(Callable[[], T], partial(copy_context().run, job)) for job in jobs]
    futures: list[Future[T]] = [_workers(len(others)).submit(job) for job in others]
    try:
        last = own()
    finally:
        for future in futures:
            if not future.cancel():
                future.exception()
    return [*[job() if future.cancelled() else future.result() for job, future in zip(others, futures)], last]


def _workers(count: int) -> ThreadPoolExecutor:
    global _pool
    if _pool is None or _pool._max_workers < count:
        _pool = ThreadPoolExecutor(count, thread_name_prefix="minigrad")
    return _pool


def _reset_after_fork() -> None:
    """A forked process has none of its parent's threads."""
    global _pool, _depth, _lock
    _pool, _depth, _lock = None, 0, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def can_limit_blas() -> bool:
    """Whether the threads of NumPy's BLAS can be limited; warns once where they cannot."""
    global _controller
    if _controller is None:
        import threadpoolctl

        _controller = threadpoolctl.ThreadpoolController().select(user_api="blas")
        if not _controller.lib_controllers:
            warnings.warn(
                "the threads of NumPy's BLAS cannot be limited: batches are not divided among threads",
                RuntimeWarning,
                stacklevel=2,
            )
    return bool(_controller.lib_controllers)


def all_cores_busy() -> bool:
    """Whether other threads, or other processes of the same training, already use the other cores."""
    return _depth > 0 or _limit == 1


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Inside, BLAS uses one thread. It may be entered by several threads at once; the last one to leave lifts the limit."""
    global _depth, _blas_limit
    with _lock:
        if _depth == 0 and can_limit_blas():
            _blas_limit = _controller.limit(limits=1)
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0 and _blas_limit is not None:
                _blas_limit.restore_original_limits()
                _blas_limit = None
