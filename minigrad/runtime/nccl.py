"""Collectives of arrays on GPUs by NCCL, where every rank has a GPU of its own.

Arrays are flat, and results are on the device. Where ranks have unlike many elements, NCCL has no collective for it, and a group of
broadcasts or reductions, one for each rank, takes its place.

Single messages, `send` and `receive`, are not here: NCCL's wait in the stream for their counterpart, and two neighbours in a
pipeline that send to each other at the same time would wait for ever. They go over the host.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from ..engine.backend import backend_of

if TYPE_CHECKING:
    from .group import ProcessGroup

__all__ = ["NCCL", "nccl_of"]


def nccl_of(group: ProcessGroup, array: Any) -> NCCL | None:
    """The collectives of a group on the device of an array; None where NCCL cannot.

    NCCL refuses two ranks on one GPU, so the ranks first exchange where they are, and all decide the same.
    """
    cuda: Any = getattr(backend_of(array).xp, "cuda", None)
    nccl: Any = getattr(cuda, "nccl", None)
    available = nccl is not None and bool(nccl.available)
    place = [socket.gethostname(), cuda.runtime.deviceGetPCIBusId(array.device.id)] if available else None
    places = group.all_gather(place)
    if None in places or len(set(map(tuple, places))) < group.size:
        return None
    unique_id = group.broadcast(nccl.get_unique_id() if group.rank == 0 else None)
    communicator = nccl.NcclCommunicator(group.size, tuple(unique_id), group.rank)
    return NCCL(backend_of(array).xp, nccl, communicator, group.rank)


class NCCL:
    """The collectives of one communicator."""

    def __init__(self, xp: Any, nccl: Any, communicator: Any, rank: int):
        self.xp, self.nccl, self.communicator, self.rank = xp, nccl, communicator, rank

    def all_reduce(self, flat: Any) -> None:
        """The sum over all ranks, in place."""
        self.communicator.allReduce(_at(flat), _at(flat), flat.size, self._kind(flat), self.nccl.NCCL_SUM, self._stream)

    def broadcast(self, flat: Any, root: int) -> None:
        """The array of rank `root`, in place."""
        self.communicator.broadcast(_at(flat), _at(flat), flat.nbytes, self.nccl.NCCL_INT8, root, self._stream)

    def all_gather(self, flat: Any, counts: Sequence[int]) -> Any:
        """The arrays of all ranks one after the other; rank r has `counts[r]` elements."""
        whole, bytes_ = self.xp.empty(sum(counts), flat.dtype), self.nccl.NCCL_INT8
        if len(set(counts)) == 1:
            self.communicator.allGather(_at(flat), _at(whole), flat.nbytes, bytes_, self._stream)
            return whole
        pieces = _pieces(whole, counts)
        pieces[self.rank][...] = flat
        with self._together():
            for root, piece in enumerate(pieces):
                self.communicator.broadcast(_at(piece), _at(piece), piece.nbytes, bytes_, root, self._stream)
        return whole

    def reduce_scatter(self, flat: Any, counts: Sequence[int]) -> Any:
        """The sum over all ranks, of which rank r gets its `counts[r]` elements."""
        mine, kind, add = self.xp.empty(counts[self.rank], flat.dtype), self._kind(flat), self.nccl.NCCL_SUM
        if len(set(counts)) == 1:
            self.communicator.reduceScatter(_at(flat), _at(mine), mine.size, kind, add, self._stream)
            return mine
        with self._together():
            for root, piece in enumerate(_pieces(flat, counts)):
                into = mine if root == self.rank else piece  # which others do not write to
                self.communicator.reduce(_at(piece), _at(into), piece.size, kind, add, root, self._stream)
        return mine

    def all_to_all(self, flat: Any, given: Sequence[int], got: Sequence[int]) -> Any:
        """`given[r]` elements go to rank r, and `got[r]` come from it, one after the other."""
        result, bytes_ = self.xp.empty(sum(got), flat.dtype), self.nccl.NCCL_INT8
        with self._together():
            for rank, (out, back) in enumerate(zip(_pieces(flat, given), _pieces(result, got))):
                self.communicator.send(_at(out), out.nbytes, bytes_, rank, self._stream)
                self.communicator.recv(_at(back), back.nbytes, bytes_, rank, self._stream)
        return result

    @property
    def _stream(self) -> int:
        return int(self.xp.cuda.get_current_stream().ptr)

    def _kind(self, flat: Any) -> int:
        return int({"f": self.nccl.NCCL_FLOAT32, "d": self.nccl.NCCL_FLOAT64}[flat.dtype.char])

    @contextmanager
    def _together(self) -> Iterator[None]:
        """Inside, calls are one: none waits for another."""
        self.nccl.groupStart()
        yield
        self.nccl.groupEnd()


def _at(array: Any) -> int:
    return int(array.data.ptr)


def _pieces(flat: Any, counts: Sequence[int]) -> list[Any]:
    """The elements of each rank, as views."""
    ends = [*accumulate(counts)]
    return [flat[end - count : end] for count, end in zip(counts, ends)]
