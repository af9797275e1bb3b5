"""Every core busy: work that is divided among threads, each with a BLAS that keeps to its own.

NumPy and compiled kernels let go of Python's lock while they compute, so threads compute side by side. A BLAS that
started threads of its own inside each of ours would only be in the way; `threadpoolctl` tells it not to. Where BLAS
cannot be told, nothing is divided, and its own threads do what they can.
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

from ..engine.errors import ArgumentError

T = TypeVar("T")
_pool: ThreadPoolExecutor | None = None
_controller: Any = None
_share: int | None = None  # of the cores, where other processes of the same training have the rest
_depth = 0  # how many are inside `single_blas`, of whom only the first and the last speak to BLAS
_limit: Any = None  # what the first has told it
_speaking = threading.Lock()
LAUNCHERS = (  # what the programs that start several processes call the number of this one, and of all
    ("PMI_RANK", "PMI_SIZE"),  # MPICH, Intel MPI, MS-MPI
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("PMIX_RANK", "SLURM_STEP_NUM_TASKS"),
)


def cores() -> int:
    """How many threads may be used: `MINIGRAD_THREADS`, or this process's share of the cores it may run on."""
    asked = os.environ.get("MINIGRAD_THREADS")
    if not asked:
        return _share or len(own_cores())
    if not asked.isdecimal() or int(asked) < 1:
        raise ArgumentError("MINIGRAD_THREADS is a number of threads", "a whole number from 1", repr(asked))
    return int(asked)


def own_cores() -> list[int]:
    """The numbers of the cores that this process may run on."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [*range(os.cpu_count() or 1)]


def launched() -> tuple[int, int]:
    """This process's rank and their number, as whatever started them says."""
    for names in LAUNCHERS:
        rank, size = (os.environ.get(name, "") for name in names)
        if rank.isdecimal() and size.isdecimal():
            return int(rank), int(size)
    return 0, 1


def keep_to(count: int) -> None:
    """Use no more than `count` cores (at least one) from now on, neither here nor in BLAS, unless `MINIGRAD_THREADS` says so."""
    global _share
    _share = max(count, 1)
    if blas_obeys():
        for library in _controller.lib_controllers:
            if library.num_threads > cores():
                library.set_num_threads(cores())


def run_all(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Run all jobs at once, the last one in this thread. If one fails, those that began are waited for first.

    A job that no thread was free to begin is done here in the end: they may all be waiting, as when jobs divide their
    own work. Context variables, as `kernels.use` sets, have the same values in all jobs.
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


def _forget_pool() -> None:
    """A forked process has none of its parent's threads."""
    global _pool, _depth, _speaking
    _pool, _depth, _speaking = None, 0, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def blas_obeys() -> bool:
    """Whether BLAS can be told to keep to one thread; where not, one warning says so."""
    global _controller
    if _controller is None:
        import threadpoolctl

        _controller = threadpoolctl.ThreadpoolController().select(user_api="blas")
        if not _controller.lib_controllers:
            warnings.warn(
                "NumPy's BLAS cannot be told how many threads to use: batches are not divided among threads",
                RuntimeWarning,
                stacklevel=2,
            )
    return bool(_controller.lib_controllers)


def divided() -> bool:
    """Whether all cores have work already: threads that divide it among them, or other processes of the same training."""
    return _depth > 0 or _share == 1


@contextmanager
def single_blas() -> Iterator[None]:
    """Inside, BLAS uses one thread. Several threads may be inside at once, and the last one to leave undoes it."""
    global _depth, _limit
    with _speaking:
        if _depth == 0 and blas_obeys():
            _limit = _controller.limit(limits=1)
        _depth += 1
    try:
        yield
    finally:
        with _speaking:
            _depth -= 1
            if _depth == 0 and _limit is not None:
                _limit.restore_original_limits()
                _limit = None
