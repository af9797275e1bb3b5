"""NCCL for the fake device: its communicator takes what CuPy's takes, pointers and whole numbers, and MPI carries the bytes.

`installed()` puts it into the fake device, and gives each rank a card of its own.
"""

from __future__ import annotations

import ctypes
import operator
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from .fake_device import xp

KINDS = {0: np.int8, 7: np.float32, 8: np.float64}  # NCCL's numbers
LENGTH = 128  # of a unique id


def _array(pointer: Any, count: Any, kind: int) -> np.ndarray:
    dtype = np.dtype(KINDS[operator.index(kind)])
    size = operator.index(count) * dtype.itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(operator.index(pointer)), dtype)


def _meeting(name: str, count: int, rank: int, place: int) -> list[int]:
    """The places in the world of all ranks that come with the same unique id."""
    folder = place_of_meetings / name[:40]
    folder.mkdir(exist_ok=True)
    (folder / f"{rank}.tmp").write_text(str(place))
    (folder / f"{rank}.tmp").rename(folder / str(rank))
    while not all((folder / str(other)).exists() for other in range(count)):
        time.sleep(1e-3)
    return [int((folder / str(other)).read_text()) for other in range(count)]


class Communicator:
    """`cupy.cuda.nccl.NcclCommunicator(ndev, commId, rank)`, with its methods' arguments in their order."""

    depth = 0  # of groups of calls
    calls: list[str] = []

    def __init__(self, ndev: int, commId: tuple[int, ...], rank: int):
        from mpi4py import MPI

        assert type(commId) is tuple and len(commId) == LENGTH and all(-128 <= one < 128 for one in commId)
        world = MPI.COMM_WORLD
        members = _meeting("".join(f"{one % 256:02x}" for one in commId), ndev, rank, world.rank)
        self.comm = world.Create_group(world.group.Incl(members))
        assert (self.comm.size, self.comm.rank) == (ndev, rank)
        self.sum = MPI.SUM
        self.messages: list[Any] = []

    def _begin(self, name: str, stream: Any, op: Any = 0) -> None:
        assert operator.index(stream) >= 0 and op == 0  # NCCL_SUM
        self.calls.append(name)

    def allReduce(self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, stream: int) -> None:
        self._begin("allReduce", stream, op)
        self.comm.Allreduce(_array(sendbuf, count, datatype).copy(), _array(recvbuf, count, datatype), self.sum)

    def reduce(self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, root: int, stream: int) -> None:
        self._begin("reduce", stream, op)
        into = _array(recvbuf, count, datatype) if self.comm.rank == root else None
        self.comm.Reduce(_array(sendbuf, count, datatype).copy(), into, self.sum, root)

    def broadcast(self, sendbuff: int, recvbuff: int, count: int, datatype: int, root: int, stream: int) -> None:
        self._begin("broadcast", stream)
        given = _array(sendbuff, count, datatype).copy()
        self.comm.Bcast(given, root)
        _array(recvbuff, count, datatype)[:] = given

    def reduceScatter(self, sendbuf: int, recvbuf: int, recvcount: int, datatype: int, op: int, stream: int) -> None:
        self._begin("reduceScatter", stream, op)
        given = _array(sendbuf, recvcount * self.comm.size, datatype).copy()
        self.comm.Reduce_scatter_block(given, _array(recvbuf, recvcount, datatype), self.sum)

    def allGather(self, sendbuf: int, recvbuf: int, count: int, datatype: int, stream: int) -> None:
        self._begin("allGather", stream)
        self.comm.Allgather(_array(sendbuf, count, datatype).copy(), _array(recvbuf, count * self.comm.size, datatype))

    def send(self, sendbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        self._begin("send", stream)
        assert Communicator.depth, "outside of a group of calls, it waits for its counterpart"
        given = _array(sendbuf, count, datatype).copy()
        self.messages.append((self.comm.Isend(given, peer), given))

    def recv(self, recvbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        self._begin("recv", stream)
        assert Communicator.depth, "outside of a group of calls, it waits for its counterpart"
        into = _array(recvbuf, count, datatype)
        self.messages.append((self.comm.Irecv(into, peer), into))
        _open.append(self)


_open: list[Communicator] = []


def _group_start() -> None:
    Communicator.depth += 1


def _group_end() -> None:
    Communicator.depth -= 1
    for communicator in _open:
        for request, _ in communicator.messages:
            request.Wait()
        communicator.messages.clear()
    _open.clear()


place_of_meetings = Path()


def installed(rank: int, folder: Path) -> type[Communicator]:
    """Put NCCL into the fake device of a rank; ranks meet in the folder. Returns the communicator, which notes its calls."""
    global place_of_meetings
    place_of_meetings = folder
    xp.cuda.nccl = SimpleNamespace(
        available=True, NcclCommunicator=Communicator, NCCL_SUM=0, NCCL_INT8=0, NCCL_FLOAT32=7, NCCL_FLOAT64=8,
        get_unique_id=lambda: tuple(np.frombuffer(os.urandom(LENGTH), np.int8).tolist()),
        groupStart=_group_start, groupEnd=_group_end,
    )  # fmt: skip
    xp.cuda.runtime.deviceGetPCIBusId = lambda device: f"0000:{rank:02x}:00.0"
    xp.cuda.get_current_stream = lambda: SimpleNamespace(ptr=0)
    return Communicator
