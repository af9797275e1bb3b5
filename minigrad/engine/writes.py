"""The clock that numbers the nodes of the graph, and when, by that clock, each piece of memory was written through a Tensor."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .backend import Array, owner_of

if TYPE_CHECKING:
    from .graph import Node

tick = itertools.count(1).__next__


class _Write:
    __slots__ = ("time", "recorded", "before", "owner")

    def __init__(self, owner: Any):
        # When the memory was last written; the time of the node of the last write that the graph knows of, and before that.
        self.time = self.recorded = self.before = 0
        self.owner = owner


class Writes:
    """When each piece of memory was last written through a Tensor. Entries die with their memory."""

    def __init__(self) -> None:
        self.latest = 0  # the last write into any memory
        self.since = 0  # the last recorded write into memory that is still alive; 0: there is none
        self._by_owner: dict[int, _Write] = {}
        self._recorded: set[int] = set()
        self._changing = threading.RLock()

    def mark(self, array: Array, node: Node | None = None) -> None:
        """Date a write to the memory of `array`; `node` is how the graph knows of it, if it does."""
        owner = array if array.base is None else owner_of(array)
        key = id(owner)
        with self._changing:  # so that no date goes back
            write = self._by_owner.get(key)
            if write is None:
                write = self._by_owner[key] = _Write(weakref.ref(owner, lambda _: self._forget(key)))
            write.time = self.latest = tick()
            if node is not None:
                write.before, write.recorded = write.recorded, node.time
                self._recorded.add(key)
                # After the entry is right: a node that another thread finds fresh is not looked at again.
                self.since = tick()

    def mark_all(self, arrays: Iterable[Array]) -> None:
        """Date one write to the memory of several arrays, which the graph does not know of."""
        with self._changing:
            now = tick()
            for array in arrays:
                write = self._by_owner.get(id(array))
                if write is not None:  # it owns its memory, and was written before
                    write.time = now
                else:
                    self.mark(array)
            self.latest = max(self.latest, now)

    def _forget(self, key: int) -> None:
        self._by_owner.pop(key, None)
        with self._changing:
            self._recorded.discard(key)
            if not self._recorded:
                self.since = 0

    def time(self, array: Array) -> int:
        return getattr(self.entry_of(array), "time", 0)

    def entry_of(self, array: Array) -> _Write | None:
        return self._by_owner.get(id(array) if array.base is None else id(owner_of(array)))

    def wrote_last(self, array: Array, node: Node | None, known: Node | None) -> bool:
        """Whether the op behind `node` made the last recorded write into this memory, and the only one that `known` does not know of."""
        write = self.entry_of(array)
        if write is None or node is None or write.recorded != node.time:
            return False
        return write.before <= (known.time if known is not None else 0)

    def is_stale(self, array: Array, node: Node | None) -> bool:
        """Whether a recorded write through another Tensor changed this memory, so that `node` no longer tells how it was made."""
        since = self.since
        if not since or node is not None and node.fresh >= since or not hasattr(array, "base"):
            return False  # a number is never stale
        write = self.entry_of(array)
        is_stale = write is not None and write.recorded > (0 if node is None else node.time)
        if node is not None and not is_stale:
            node.fresh = since
        return is_stale


writes = Writes()
