"""Sums over ranks of what lies on graphics cards: by NCCL, from card to card, where every rank has a card of its own."""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial
from typing import Any

from ..engine.backend import backend_of
from .world import World

__all__ = ["between_cards"]


def between_cards(ranks: World, flat: Any) -> Callable[[Any], None] | None:
    """What adds up flat arrays on the device of `flat` in place; None where the sum must be taken on the host.

    NCCL refuses two ranks on one card, so all ranks first tell where they are, and decide alike.
    """
    cuda: Any = getattr(backend_of(flat).xp, "cuda", None)
    nccl: Any = getattr(cuda, "nccl", None)
    ready = nccl is not None and bool(nccl.available)
    place = [socket.gethostname(), cuda.runtime.deviceGetPCIBusId(flat.device.id)] if ready else None
    places = ranks.gather(place)
    if None in places or len(set(map(tuple, places))) < ranks.size:
        return None
    name = ranks.from_first(nccl.get_unique_id() if ranks.rank == 0 else None)
    link = nccl.NcclCommunicator(ranks.size, tuple(name), ranks.rank)
    return partial(_add_up, cuda, link)


def _add_up(cuda: Any, link: Any, flat: Any) -> None:
    kind = {"f": cuda.nccl.NCCL_FLOAT32, "d": cuda.nccl.NCCL_FLOAT64}[flat.dtype.char]
    stream = cuda.get_current_stream()
    link.allReduce(flat.data.ptr, flat.data.ptr, flat.size, kind, cuda.nccl.NCCL_SUM, stream.ptr)
