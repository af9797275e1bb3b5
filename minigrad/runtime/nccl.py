"""All-reduce of arrays on GPUs by NCCL, where every rank has a GPU of its own."""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ..engine.backend import backend_of

if TYPE_CHECKING:
    from .process_group import ProcessGroup

__all__ = ["nccl_all_reduce"]


def nccl_all_reduce(group: ProcessGroup, flat: Any) -> Callable[[Any], None] | None:
    """A function that sums flat arrays on the device of `flat` over all ranks, in place; None where NCCL cannot.

    NCCL refuses two ranks on one GPU, so the ranks first exchange where they are, and all decide the same.
    """
    cuda: Any = getattr(backend_of(flat).xp, "cuda", None)
    nccl: Any = getattr(cuda, "nccl", None)
    available = nccl is not None and bool(nccl.available)
    place = [socket.gethostname(), cuda.runtime.deviceGetPCIBusId(flat.device.id)] if available else None
    places = group.all_gather(place)
    if None in places or len(set(map(tuple, places))) < group.size:
        return None
    unique_id = group.broadcast(nccl.get_unique_id() if group.rank == 0 else None)
    communicator = nccl.NcclCommunicator(group.size, tuple(unique_id), group.rank)
    return partial(_all_reduce, cuda, communicator)


def _all_reduce(cuda: Any, communicator: Any, flat: Any) -> None:
    kind = {"f": cuda.nccl.NCCL_FLOAT32, "d": cuda.nccl.NCCL_FLOAT64}[flat.dtype.char]
    stream = cuda.get_current_stream()
    communicator.allReduce(flat.data.ptr, flat.data.ptr, flat.size, kind, cuda.nccl.NCCL_SUM, stream.ptr)
