"""The clock that numbers the nodes of the graph, and by that clock, when each piece of memory was written through a Tensor."""

from __future__ import annotations

import itertools
import weakref
from typing import TYPE_CHECKING, Any

from .backend import Array, owner_of

if TYPE_CHECKING:
    from .graph import Node

tick = itertools.count(1).__next__


class _Write:
    __slots__ = ("time", "recorded", "before", "owner")

    def __init__(self, owner: Any):
        self.time = 0  # when the memory was last written
        self.recorded = 0  # the time of the node of the last write that the graph knows of
        self.before = 0  # the same of the write before that one
        self.owner = owner


class Writes:
    """When each piece of memory was last written through a Tensor. Entries die with their memory."""

    def __init__(self) -> None:
        self.latest = 0
        self.recorded: set[int] = set()  # the memory that the graph itself has written to
        self._by_owner: dict[int, _Write] = {}

    def mark(self, array: Array, node: Node | None = None) -> None:
        """Date a write to the memory of `array`; `node` is how the graph knows of it, if it does."""
        owner = array if array.base is None else owner_of(array)
        key = id(owner)
        write = self._by_owner.get(key)
        if write is None:
            write = self._by_owner[key] = _Write(weakref.ref(owner, lambda _: self._forget(key)))
        self.latest = write.time = tick()
        if node is not None:
            self.recorded.add(key)
            write.before, write.recorded = write.recorded, node.time

    def _forget(self, key: int) -> None:
        self._by_owner.pop(key, None)
        self.recorded.discard(key)

    def time(self, array: Array) -> int:
        write = self._by_owner.get(id(owner_of(array)))
        return write.time if write else 0

    def wrote_last(self, array: Array, node: Node | None, known: Node | None) -> bool:
        """Whether the op behind `node` made the last recorded write into this memory, and the only one that `known` does not know of."""
        write = self._by_owner.get(id(owner_of(array)))
        if write is None or node is None or write.recorded != node.time:
            return False
        return write.before <= (known.time if known is not None else 0)

    def is_stale(self, array: Array, node: Node | None) -> bool:
        """Whether a write through another Tensor changed this memory behind the back of `node`."""
        write = self._by_owner.get(id(owner_of(array)))
        return write is not None and write.recorded > (node.time if node else 0)


writes = Writes()
