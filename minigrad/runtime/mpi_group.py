"""The processes that `mpiexec` started, through mpi4py: arrays on the host by MPI, on GPUs by NCCL where it can."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..engine.backend import backend_of, device_of, on_device_of, to_numpy
from .group import ProcessGroup
from .last_message import tell
from .nccl import NCCL, nccl_of
from .threads import available_cores, limit_threads
from .watchdog import USUAL, timeout, waited, watchdog

__all__ = ["MPIGroup"]

_SLOT = 256  # bytes: a message up to this size takes one exchange
_LONGEST_PAUSE = 1e-3  # seconds between two tests whether a request is complete


class MPIGroup(ProcessGroup):
    """The processes that `mpiexec` started, through mpi4py, or those of a communicator."""

    def __init__(self, mpi: Any, comm: Any = None):
        super().__init__()
        self._mpi, self._comm = mpi, mpi.COMM_WORLD if comm is None else comm
        self.rank, self.size = self._comm.rank, self._comm.size
        self._sent: list[tuple[Any, Any]] = []  # requests that are under way, with what they send
        self._buffers: dict[tuple[str, np.dtype], Any] = {}
        self._nccl: dict[str, NCCL | None] = {}  # by device; None: on the host
        if comm is None:
            atexit.register(self._finalize)  # the first one, which is called last
        atexit.register(self._finish_sending)
        if comm is None:
            limit_threads(self._fair_share())

    def split(self, color: int) -> ProcessGroup:
        part = self._comm.Split(color, self.rank)
        return MPIGroup(self._mpi, part) if part.size > 1 else ProcessGroup()

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
                self.count("all_reduce", flat.nbytes)
                self._sum(flat)
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

    def _sum(self, flat: Any) -> None:
        if isinstance(flat, np.ndarray):
            self._wait(self._comm.Iallreduce(self._mpi.IN_PLACE, flat))
            return
        if (nccl := self._nccl_for(flat)) is not None:
            nccl.all_reduce(flat)
            return
        host = to_numpy(flat)
        self._sum(host)
        flat[...] = backend_of(flat).xp.asarray(host)

    def _nccl_for(self, array: Any) -> NCCL | None:
        """NCCL where it can, else None: the host. All ranks come here with their first array on a device."""
        if isinstance(array, np.ndarray):
            return None
        device = device_of(array)
        if device not in self._nccl:
            self._nccl[device] = nccl_of(self, array)
        return self._nccl[device]

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

    def broadcast_arrays(self, arrays: Sequence[Any], root: int = 0) -> None:
        for array in arrays:
            self.count("broadcast", array.nbytes)
            if not isinstance(array, np.ndarray):
                self._broadcast_on_device(array, root)
                continue
            self._wait(self._comm.Ibcast(array.reshape(-1).view(np.uint8), root=root))

    def _broadcast_on_device(self, array: Any, root: int) -> None:
        with on_device_of(array):
            flat = array.reshape(-1).copy()
            if (nccl := self._nccl_for(flat)) is not None:
                nccl.broadcast(flat, root)
            else:
                host = to_numpy(flat)
                self._wait(self._comm.Ibcast(_raw(host), root=root))
                flat = backend_of(array).xp.asarray(host)
            array[...] = flat.reshape(array.shape)

    def all_gather_array(self, part: Any, counts: Sequence[int]) -> Any:
        if (nccl := self._nccl_for(part)) is not None:
            self.count("all_gather", sum(counts) * part.dtype.itemsize)
            with on_device_of(part):
                return nccl.all_gather(backend_of(part).xp.ascontiguousarray(part).reshape(-1), counts)
        mine = np.ascontiguousarray(to_numpy(part)).reshape(-1)
        whole = np.empty(sum(counts), mine.dtype)
        self.count("all_gather", whole.nbytes)
        sizes = [count * mine.itemsize for count in counts]
        self._wait(self._comm.Iallgatherv(_raw(mine), (_raw(whole), sizes)))
        return _beside(whole, part)

    def reduce_scatter(self, flat: Any, counts: Sequence[int]) -> Any:
        wide = np.result_type(flat.dtype, np.float32)
        if (nccl := self._nccl_for(flat)) is not None:
            self.count("reduce_scatter", flat.size * wide.itemsize)
            with on_device_of(flat):
                whole = backend_of(flat).xp.ascontiguousarray(flat).reshape(-1).astype(wide)
                return nccl.reduce_scatter(whole, counts).astype(flat.dtype, copy=False)
        whole = np.ascontiguousarray(to_numpy(flat), wide).reshape(-1)
        self.count("reduce_scatter", whole.nbytes)
        mine = np.empty(counts[self.rank], wide)
        with np.errstate(all="ignore"):
            self._wait(self._comm.Ireduce_scatter(whole, mine, list(counts)))
        return _beside(mine.astype(flat.dtype, copy=False), flat)

    def all_to_all(self, flat: Any, given: Sequence[int], got: Sequence[int]) -> Any:
        if (nccl := self._nccl_for(flat)) is not None:
            self.count("all_to_all", flat.nbytes)
            with on_device_of(flat):
                return nccl.all_to_all(backend_of(flat).xp.ascontiguousarray(flat).reshape(-1), given, got)
        mine = np.ascontiguousarray(to_numpy(flat)).reshape(-1)
        result = np.empty(sum(got), mine.dtype)
        self.count("all_to_all", mine.nbytes)
        out, back = ([count * mine.itemsize for count in counts] for counts in (given, got))
        self._wait(self._comm.Ialltoallv((_raw(mine), out), (_raw(result), back)))
        return _beside(result, flat)

    def send(self, array: Any, to: int) -> None:
        mine = np.array(to_numpy(array), order="C")  # a copy, since the sender goes on at once
        self.count("send", mine.nbytes)
        self._sent = [(request, kept) for request, kept in self._sent if not request.Test()]
        self._sent.append((self._comm.Isend(_raw(mine), to), mine))

    def _finish_sending(self) -> None:
        with contextlib.suppress(Exception):
            for request, _ in self._sent:
                self._wait(request)

    def _finalize(self) -> None:
        """Wait for the others to leave, too, at the end of the process; one that was lost does not keep this one for ever."""
        with watchdog("the other ranks to end", self.rank, self.size, USUAL):
            self._mpi.Finalize()

    def receive(self, shape: tuple[int, ...], dtype: Any, source: int) -> np.ndarray:
        result = np.empty(shape, dtype)
        self._wait(self._comm.Irecv(_raw(result), source))
        return result

    def _wait(self, request: Any) -> None:
        """Wait for a request; sleep in between, so that other ranks get the core and Ctrl-C works."""
        if request.Test():
            return
        pause, begin, most = 0.0, time.monotonic(), timeout()
        while not request.Test():
            time.sleep(pause)
            pause = min(pause + 1e-5, _LONGEST_PAUSE)
            if time.monotonic() > begin + most:
                raise TimeoutError(waited("the other ranks", most))
        ProcessGroup.waited += time.monotonic() - begin

    def end(self, message: str) -> None:
        tell(message, self.rank, self.size)
        self._comm.Abort(1)
        os._exit(1)  # Abort may return before the processes are killed


def _raw(array: np.ndarray) -> np.ndarray:
    """Its bytes: MPI need not know the dtype."""
    return array.reshape(-1).view(np.uint8)


def _beside(host: np.ndarray, like: Any) -> Any:
    """An array of the host on the device of another."""
    if isinstance(like, np.ndarray):
        return host
    with on_device_of(like):
        return backend_of(like).xp.asarray(host)
