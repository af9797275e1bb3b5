"""What blocks keep while a text is generated position by position, so that a new one costs one row and not the whole past."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...engine.backend import on_device_of
from ...engine.tensor import Tensor, wrap
from ...errors import GradientError, ShapeError
from ...ops.creation import empty
from ...ops.layout.joining import concatenate
from ...tracer import is_compiling

__all__ = ["KVCache", "StackCache", "StateCache"]


class KVCache:
    """A key-value cache: what one attention has computed. h is the number of its key-value heads, E the width of one.

    In self-attention each call adds the rows of its tokens; in cross-attention the first call fills the cache, and
    later ones compute nothing. `keys` and `values` are (B, h, length, E), or None while the cache is empty. It starts with
    `room` for so many positions, and doubles it when it is full.
    """

    def __init__(self, room: int = 0) -> None:
        self.length, self.room = 0, room
        self._stores: list[Tensor] = []  # keys and values, (B, h, at least length, E)

    @property
    def keys(self) -> Tensor | None:
        """What queries are compared with: (B, h, length, E)."""
        return self._stores[0][:, :, : self.length] if self._stores else None

    @property
    def values(self) -> Tensor | None:
        """What is added up: (B, h, length, E)."""
        return self._stores[1][:, :, : self.length] if self._stores else None

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add the rows of new tokens, (B, h, new, E) each; returns all keys and all values."""
        _check_unrecorded(keys, values)
        start, stop = self.length, self.length + keys.shape[2]
        if self.keys is not None and self.values is not None and is_compiling():  # which sees ops, and no writes
            joined = concatenate([self.keys, keys], axis=2), concatenate([self.values, values], axis=2)
            self._stores, self.length = list(joined), stop
            return joined
        if not self._stores and self.room <= stop:
            self._stores, self.length = [keys, values], stop
            return keys, values
        before = self._stores or [x[:, :, :0] for x in (keys, values)]
        stores = [_with_rows(old, new, start, stop, self.room) for old, new in zip(before, (keys, values))]
        self._stores, self.length = stores, stop
        return wrap(stores[0].data[:, :, :stop]), wrap(stores[1].data[:, :, :stop])

    def reserve(self, positions: int) -> None:
        """Make room for so many more positions, and count them; who asks for it writes them into the stores himself."""
        stop = self.length + positions
        self._stores = [_with_room(store, self.length, stop, self.room) for store in self._stores]
        self.length = stop

    def select(self, rows: Any) -> None:
        """Keep these rows of the batch, in this order, as a beam search does; a row may come more than once."""
        self._stores = [store[rows] for store in self._stores]


def _check_unrecorded(*kept: Tensor) -> None:
    if any(x.requires_grad for x in kept):
        raise GradientError(
            "KVCache: keys and values that are being recorded cannot be cached",
            fix="generate inside `with mg.no_grad():`",
        )


def _with_room(store: Tensor, start: int, stop: int, room: int) -> Tensor:
    """A buffer of `stop` rows or more, of which `start` are kept; a full one is doubled, so that a row costs the same on average."""
    batch, heads, size, width = store.shape
    if size >= stop:
        return store
    larger = empty(batch, heads, max(2 * stop, room), width, dtype=store.dtype, device=store.device)
    larger[:, :, :start] = store[:, :, :start]
    return larger


def _with_rows(store: Tensor, new: Tensor, start: int, stop: int, room: int) -> Tensor:
    """The buffer with new rows written in place.

    Only the cache knows the memory that is written to, and no graph does, so it is done without asking the engine.
    """
    batch, heads, _, width = store.shape
    if new.shape != (batch, heads, stop - start, width) or new.dtype != store.dtype:
        got = f"{new.shape} {new.dtype}"
        raise ShapeError("KVCache: new rows do not fit", f"({batch}, {heads}, new, {width}) {store.dtype}", got)
    store = _with_room(store, start, stop, room)
    with on_device_of(store.data):
        store.data[:, :, start:stop] = new.data
    return store


class StateCache:
    """What a recurrence has come to: its `state` (B, C), or None before the first position, and how many it has seen."""

    def __init__(self) -> None:
        self.length = 0
        self.state: Tensor | None = None

    def advance(self, state: Tensor, positions: int) -> None:
        """Keep the state after so many more positions."""
        _check_unrecorded(state)
        self.state, self.length = state, self.length + positions

    def reserve(self, positions: int) -> None:
        """Count so many more positions; who asks for it writes what they come to into the state himself."""
        self.length += positions

    def select(self, rows: Any) -> None:
        """Keep these rows of the batch, in this order, as a beam search does; a row may come more than once."""
        self.state = None if self.state is None else self.state[rows]


class BlockCache:
    """The caches of one block: of the positions before, and of the memory."""

    def __init__(self, own: KVCache | StateCache) -> None:
        self.own, self.memory = own, KVCache()


class StackCache:
    """The caches of a whole stack, made by `new_cache()` and handed to each call while generating."""

    def __init__(self, own: Sequence[KVCache | StateCache]) -> None:
        self.blocks = [BlockCache(cache) for cache in own]

    @property
    def length(self) -> int:
        """How many positions have been seen: the number of the next one."""
        return self.blocks[0].own.length

    def select(self, rows: Any) -> None:
        """Keep these rows of the batch, in this order, as a beam search does."""
        for block in self.blocks:
            block.own.select(rows)
            block.memory.select(rows)
