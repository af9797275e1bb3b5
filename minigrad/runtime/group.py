"""The interface of a process group, and the group of one process, in which every collective is the identity."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

__all__ = ["ProcessGroup"]


class ProcessGroup:
    """A group of one process, and the interface of all groups.

    `traffic` counts the bytes of the arrays that this rank gave to each kind of collective: all of the array for an
    all-reduce, a reduce-scatter, a broadcast or a send, and all of the result for an all-gather.
    """

    rank, size = 0, 1
    waited: ClassVar[float] = 0.0  # seconds that this process has waited for others, in all groups

    def __init__(self) -> None:
        self.traffic: dict[str, int] = {}

    def count(self, kind: str, size: int) -> None:
        """Count so many bytes of a kind of collective."""
        self.traffic[kind] = self.traffic.get(kind, 0) + int(size)

    def all_reduce(self, arrays: Sequence[Any]) -> None:
        """Replace each array by its sum over all ranks, in place; its shape is the same on every rank."""

    def all_gather(self, value: Any) -> list[Any]:
        """The values of all ranks, in the order of ranks; small ones, that JSON can hold."""
        return [value]

    def all_gather_array(self, part: Any, counts: Sequence[int]) -> Any:
        """The flat parts of all ranks one after the other; rank r has `counts[r]` elements."""
        return part.reshape(-1)

    def reduce_scatter(self, flat: Any, counts: Sequence[int]) -> Any:
        """The sum over all ranks of a flat array, of which rank r gets its `counts[r]` elements."""
        return flat.reshape(-1)

    def all_to_all(self, flat: Any, given: Sequence[int], got: Sequence[int]) -> Any:
        """`given[r]` elements go to rank r, and `got[r]` come from it, one after the other."""
        return flat.reshape(-1)

    def send(self, array: Any, to: int) -> None:
        """Send an array to a rank; returns at once."""
        raise NotImplementedError("a group of one process has nobody to send to")

    def receive(self, shape: tuple[int, ...], dtype: Any, source: int) -> np.ndarray:
        """The array that a rank sent to this one, in the order of sending."""
        raise NotImplementedError("a group of one process has nobody to receive from")

    def split(self, color: int) -> ProcessGroup:
        """The group of those ranks that give the same color, in the order of ranks; all ranks must call it."""
        return ProcessGroup()

    def broadcast(self, value: Any) -> Any:
        """The value of rank 0; what the other ranks give is ignored."""
        return self.all_gather(value if self.rank == 0 else None)[0]

    def broadcast_arrays(self, arrays: Sequence[Any], root: int = 0) -> None:
        """Overwrite each array with that of rank `root`."""

    def end(self, message: str) -> None:
        """End all processes with a message: the others would wait for this rank. In a group of one, the caller goes on."""

    @contextlib.contextmanager
    def abort_on_error(self) -> Iterator[None]:
        """Inside, an error on one rank ends all ranks."""
        try:
            yield
        except BaseException as error:
            self.end("".join(traceback.format_exception(type(error), error, error.__traceback__)))
            raise
