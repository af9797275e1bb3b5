"""The process group: the processes that train one model together, over MPI.

It is this process alone, unless `mpiexec -n 4 python train.py` started several. Each rank computes its rows of every batch;
an all-reduce sums the gradients, so every rank takes the same step. Besides, ranks exchange only small JSON values and the
state that they start from.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..engine.backend import backend_of, device_of, on_device_of, to_numpy
from ..errors import install_hint
from .nccl import nccl_all_reduce
from .threads import available_cores, limit_threads

__all__ = ["ProcessGroup", "launched_rank", "process_group", "single_process"]

LAUNCHERS = (  # the variables in which launchers give the rank of a process and the number of processes
    ("PMI_RANK", "PMI_SIZE"),  # MPICH, Intel MPI, MS-MPI
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("PMIX_RANK", "SLURM_STEP_NUM_TASKS"),
)
_SLOT = 256  # bytes: a message up to this size takes one exchange
_LONGEST_PAUSE = 1e-3  # seconds between two tests whether a request is complete
_PRINTING = 0.5  # seconds for mpiexec to print a message, which it may lose once the job has ended
_PRECEDENCE = 1.0  # seconds: where all ranks fail alike, the first one's message is enough


def launched_rank() -> tuple[int, int]:
    """The rank of this process and the number of processes, as the launcher's environment gives them."""
    for names in LAUNCHERS:
        rank, size = (os.environ.get(name, "") for name in names)
        if rank.isdecimal() and size.isdecimal():
            return int(rank), int(size)
    return 0, 1


class ProcessGroup:
    """A group of one process, and the interface of all groups."""

    rank, size = 0, 1

    def all_reduce(self, arrays: Sequence[Any]) -> None:
        """Replace each array by its sum over all ranks, in place; its shape is the same on every rank."""

    def all_gather(self, value: Any) -> list[Any]:
        """The values of all ranks, in the order of ranks; small ones, that JSON can hold."""
        return [value]

    def broadcast(self, value: Any) -> Any:
        """The value of rank 0; what the other ranks give is ignored."""
        return self.all_gather(value if self.rank == 0 else None)[0]

    def broadcast_arrays(self, arrays: Sequence[np.ndarray]) -> None:
        """Overwrite each array with that of rank 0."""

    def abort(self, error: BaseException) -> None:
        """End all processes with a message: the others would wait for this rank forever."""

    @contextlib.contextmanager
    def abort_on_error(self) -> Iterator[None]:
        """Inside, an error on one rank ends all ranks."""
        try:
            yield
        except BaseException as error:
            self.abort(error)
            raise


class MPIGroup(ProcessGroup):
    """The processes that `mpiexec` started, through mpi4py."""

    def __init__(self, mpi: Any):
        self._mpi, self._comm = mpi, mpi.COMM_WORLD
        self.rank, self.size = self._comm.rank, self._comm.size
        self._buffers: dict[tuple[str, np.dtype], Any] = {}
        self._nccl: dict[str, Callable[[Any], None] | None] = {}  # from a device to its all-reduce, None: on the host
        sys.excepthook = lambda kind, error, trace: self.abort(error)
        limit_threads(self._fair_share())

    def _fair_share(self) -> int:
        """How many cores are left for this rank when each core is divided among the ranks that may run on it."""
        places = [(host, set(cores)) for host, cores in self.all_gather([socket.gethostname(), available_cores()])]
        host, mine = places[self.rank]
        neighbours = [cores for other, cores in places if other == host]
        return int(sum(1 / sum(core in cores for cores in neighbours) for core in mine) + 1e-9)

    def all_reduce(self, arrays: Sequence[Any]) -> None:
        kinds: dict[tuple[str, np.dtype], list[Any]] = {}
        for array in arrays:
            wide = np.result_type(array.dtype, np.float32)  # MPI has no float16, and its sums would overflow
            kinds.setdefault((device_of(array), wide), []).append(array)
        for kind, group in kinds.items():
            with on_device_of(group[0]), np.errstate(all="ignore"):
                flat = self._flattened(kind, group)
                self._all_reduce_flat(flat, kind[0])
                start = 0
                for array in group:
                    array[...] = flat[start : start + array.size].reshape(array.shape)
                    start += array.size

    def _flattened(self, kind: tuple[str, np.dtype], group: Sequence[Any]) -> Any:
        """All arrays one after the other, in a buffer that the next step uses again."""
        xp, size = backend_of(group[0]).xp, sum(array.size for array in group)
        if kind not in self._buffers or self._buffers[kind].size != size:
            self._buffers[kind] = xp.empty(size, kind[1])
        return xp.concatenate([array.reshape(-1) for array in group], out=self._buffers[kind])

    def _all_reduce_flat(self, flat: Any, device: str) -> None:
        if isinstance(flat, np.ndarray):
            self._wait(self._comm.Iallreduce(self._mpi.IN_PLACE, flat))
            return
        if device not in self._nccl:
            self._nccl[device] = nccl_all_reduce(self, flat)
        if (reduce := self._nccl[device]) is not None:
            reduce(flat)
            return
        host = to_numpy(flat)
        self._all_reduce_flat(host, "cpu")
        flat[...] = backend_of(flat).xp.asarray(host)

    def all_gather(self, value: Any) -> list[Any]:
        text = json.dumps(value).encode()
        slots = self._exchange(len(text).to_bytes(8, "little") + text[: _SLOT - 8], _SLOT)
        lengths = [int.from_bytes(slot[:8], "little") for slot in slots]
        longest = max(lengths)
        texts = [slot[8:] for slot in slots] if longest <= _SLOT - 8 else self._exchange(text, longest)
        return [json.loads(text[:length]) for text, length in zip(texts, lengths)]

    def _exchange(self, content: bytes, width: int) -> list[bytes]:
        """The bytes of every rank, padded to `width`."""
        received = bytearray(width * self.size)
        self._wait(self._comm.Iallgather(content.ljust(width, b"\0"), received))
        return [bytes(received[i * width : (i + 1) * width]) for i in range(self.size)]

    def broadcast_arrays(self, arrays: Sequence[np.ndarray]) -> None:
        for array in arrays:
            self._wait(self._comm.Ibcast(array.reshape(-1).view(np.uint8), root=0))

    def _wait(self, request: Any) -> None:
        """Wait for a request; sleep in between, so that other ranks get the core and Ctrl-C works."""
        pause = 0.0
        while not request.Test():
            time.sleep(pause)
            pause = min(pause + 1e-5, _LONGEST_PAUSE)

    def abort(self, error: BaseException) -> None:
        if self.rank:
            time.sleep(_PRECEDENCE)
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            os.write(2, f"rank {self.rank} of {self.size} failed, which ends the job\n{trace}".encode(errors="replace"))
        time.sleep(_PRINTING)
        self._comm.Abort(1)
        os._exit(1)  # Abort may return before the processes are killed


_single = False


def process_group() -> ProcessGroup:
    """All processes that train together; inside `single_process`, a group of this one."""
    return ProcessGroup() if _single else _launched_group()


@contextlib.contextmanager
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
