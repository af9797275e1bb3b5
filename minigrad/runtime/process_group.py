"""The process group: the processes that train one model together, over MPI.

It is this process alone, unless `mpiexec -n 4 python train.py` started several. Each rank computes its rows of every batch;
an all-reduce sums the gradients, so every rank takes the same step. Besides, ranks exchange only small JSON values and the
state that they start from.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import TracebackType

from ..errors import install_hint
from .group import ProcessGroup
from .last_message import tell
from .mpi_group import MPIGroup
from .watchdog import watchdog

__all__ = ["ProcessGroup", "end_job", "launched_rank", "process_group", "single_process"]

LAUNCHERS = (  # the variables in which launchers give the rank of a process and the number of processes
    ("PMI_RANK", "PMI_SIZE"),  # MPICH, Intel MPI, MS-MPI
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("PMIX_RANK", "SLURM_STEP_NUM_TASKS"),
)


def launched_rank() -> tuple[int, int]:
    """The rank of this process and the number of processes, as the launcher's environment gives them."""
    for names in LAUNCHERS:
        rank, size = (os.environ.get(name, "") for name in names)
        if rank.isdecimal() and size.isdecimal():
            return int(rank), int(size)
    return 0, 1


_single = False


def process_group() -> ProcessGroup:
    """All processes that train together; inside `single_process`, a group of this one."""
    return ProcessGroup() if _single else _launched_group()


@contextmanager
def single_process() -> Iterator[None]:
    """Inside, this process does not wait for other ranks, which may be doing something else."""
    global _single
    before, _single = _single, True
    try:
        yield
    finally:
        _single = before


@lru_cache(maxsize=1)
def _launched_group() -> ProcessGroup:
    """The group that the launcher started; where its processes cannot reach each other, rank 0 alone."""
    rank, size = launched_rank()
    if size == 1:
        return ProcessGroup()
    try:
        with watchdog("the other ranks to start", rank, size):  # MPI waits for all of them, and cannot be interrupted
            from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # RuntimeError: mpi4py is installed, but no MPI library
        _leave_to_rank_0(rank, size, f"mpi4py cannot be used ({str(error).splitlines()[0]})")
    else:
        if MPI.COMM_WORLD.size == size:
            return MPIGroup(MPI)
        _leave_to_rank_0(rank, size, "mpi4py uses another MPI than the mpiexec that started them")
    return ProcessGroup()


def _leave_to_rank_0(rank: int, size: int, problem: str) -> None:
    """Exit, except on rank 0, which warns: several processes would only repeat the same training."""
    if rank:
        raise SystemExit(0)
    warnings.warn(
        f"{size} processes were started, but {problem}: this one trains alone, and the others exit. "
        f"`{install_hint('mpi')}` brings mpi4py, MPICH and its mpiexec.",
        RuntimeWarning,
        stacklevel=3,
    )


def end_job(message: str) -> None:
    """End all processes that the launcher started, with a message; if this is the only one, the caller goes on.

    A rank that has not joined the others cannot reach them. It dies of a signal, upon which launchers end the whole job;
    they would let it leave with any exit code.
    """
    rank, size = launched_rank()
    if _launched_group.cache_info().currsize:
        _launched_group().end(message)
    elif size > 1:
        tell(message, rank, size)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)


def _end_on_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """What becomes of an error that nobody catches."""
    end_job("".join(traceback.format_exception(kind, error, trace)))
    sys.__excepthook__(kind, error, trace)


if launched_rank()[1] > 1:
    sys.excepthook = _end_on_error
