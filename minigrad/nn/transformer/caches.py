"""What blocks keep while a text is generated position by position, so that a new one costs one row and not the whole past."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...engine.backend import on_device_of
from ...engine.tensor import Tensor, wrap
from ...errors import GradientError, ShapeError
from ...ops.creation import empty, tensor
from ...ops.layout.joining import concatenate
from ...tracer import is_compiling

__all__ = ["KVCache", "StackCache", "StateCache"]

FEWEST = 16  # positions that a cache has room for as soon as it grows


class KVCache:
    """A key-value cache: what one attention has computed. h is the number of its key-value heads, E the width of one.

    In self-attention each call adds the rows of its tokens; in cross-attention the first call fills the cache, and
    later ones compute nothing. `keys` and `values` are (B, h, length, E), or None while the cache is empty. It starts with
    `room` for so many positions, and doubles it when it is full.

    To select rows copies nothing. `slots` then say in which row of the memory each row of the batch has each position,
    (B, at least length), or (B, 1) where that is the same for all; None where each has its own.
    """

    def __init__(self, room: int = 0) -> None:
        self.length, self.room = 0, room
        self.slots: np.ndarray | None = None
        self._stores: list[Tensor] = []  # keys and values, (at least B, h, at least length, E)

    @property
    def keys(self) -> Tensor | None:
        """What queries are compared with: (B, h, length, E)."""
        return self._settled()[0][:, :, : self.length] if self._stores else None

    @property
    def values(self) -> Tensor | None:
        """What is added up: (B, h, length, E)."""
        return self._settled()[1][:, :, : self.length] if self._stores else None

    @property
    def batch(self) -> int:
        """B; 0 while the cache is empty."""
        if self.slots is not None:
            return len(self.slots)
        return len(self._stores[0]) if self._stores else 0

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add the rows of new tokens, (B, h, new, E) each; returns all keys and all values."""
        _check_unrecorded(keys, values)
        start, stop = self.length, self.length + keys.shape[2]
        if is_compiling() and self.keys is not None and self.values is not None:  # which sees ops, and no writes
            joined = concatenate([self.keys, keys], axis=2), concatenate([self.values, values], axis=2)
            self._stores, self.length = list(joined), stop
            return joined
        if not self._stores and self.room <= stop:
            self._stores, self.length = [keys, values], stop
            return keys, values
        before = self._settled() or [x[:, :, :0] for x in (keys, values)]
        stores = [_with_rows(old, new, start, stop, self.room) for old, new in zip(before, (keys, values))]
        self._stores, self.length = stores, stop
        return wrap(stores[0].data[:, :, :stop]), wrap(stores[1].data[:, :, :stop])

    def reserve(self, positions: int) -> None:
        """Make room for so many more positions, and count them; who asks for it writes them into the stores himself.

        Of new positions each row of the batch has its own.
        """
        start, stop, batch = self.length, self.length + positions, self.batch
        self._stores = [_with_room(store, start, stop, self.room, batch) for store in self._stores]
        self.length = stop
        if self.slots is not None:
            if self.slots.shape[1] < stop:
                larger = np.empty((batch, 2 * stop), np.int64)
                larger[:, :start] = self.slots[:, :start]
                self.slots = larger
            self.slots[:, start:stop] = np.arange(batch)[:, None]

    def select(self, rows: Any) -> None:
        """Keep these rows of the batch, in this order, as a beam search does; a row may come more than once."""
        if self._stores:
            chosen = np.arange(self.batch)[rows.numpy() if isinstance(rows, Tensor) else rows]
            self.slots = chosen[:, None] if self.slots is None else self.slots[chosen]

    def join(self, other: KVCache) -> None:
        """Add the rows of another cache behind these, so that the last positions of all have the same number.

        A shorter row begins later than position 0. What is before its first position means nothing: a mask leaves it out.
        """
        if not self._stores:
            self._stores, self.length = list(other._settled()), other.length
            return
        if self.length < other.length:
            ours = [_moved(store, self.length, other.length) for store in self._settled()]
            self._stores, self.length = ours, other.length
        rows, start, stop = self.batch, self.length - other.length, self.length
        batch, room = rows + other.batch, len(self._stores[0])
        most = room if room >= batch else max(batch, 2 * room)  # rows, too, are doubled
        self._stores = [_with_room(store, stop, stop, self.room, most) for store in self._stores]
        slots = np.zeros((batch, 2 * stop), np.int64)
        slots[:rows, :stop] = np.arange(rows)[:, None] if self.slots is None else self.slots[:, :stop]
        free = _free_rows(slots[:rows, start:stop], most)[: other.batch]  # (new rows, length)
        slots[rows:, start:stop], self.slots = free, slots
        for store, new in zip(self._stores, other._settled()):
            places = tensor(free, device=store.device).data, tensor(np.arange(start, stop), device=store.device).data
            with on_device_of(store.data):  # (new rows, h, length, E) -> (new rows, length, h, E)
                store.data[places[0], :, places[1]] = new.data[:, :, : other.length].transpose(0, 2, 1, 3)

    def trim(self, positions: int) -> None:
        """Forget so many of the first positions; the memory goes when the cache grows."""
        self._stores = [store[:, :, positions:] for store in self._stores]
        self.length -= positions
        if self.slots is not None and self.slots.shape[1] > 1:
            self.slots = self.slots[:, positions:].copy()

    def _settled(self) -> list[Tensor]:
        """The keys and values, with the rows of the batch in their order, which are copied where they are not."""
        slots, self.slots = self.slots, None
        if slots is not None:
            self._stores = [_gathered(store, slots, self.length) for store in self._stores]
        return self._stores


def _gathered(store: Tensor, slots: np.ndarray, length: int) -> Tensor:
    """The rows of a buffer that the slots name: (n, h, size, E) -> (B, h, size, E)."""
    if slots.shape[1] == 1:
        return store[tensor(slots[:, 0], device=store.device)]
    _, heads, size, width = store.shape
    made = empty(len(slots), heads, size, width, dtype=store.dtype, device=store.device)
    rows, places = tensor(slots[:, :length], device=store.device), tensor(np.arange(length), device=store.device)
    made[:, :, :length] = store.transpose(0, 2, 1, 3)[rows, places].transpose(
        0, 2, 1, 3
    )  # (n, size, h, E) -> (B, length, h, E)
    return made


def _moved(store: Tensor, length: int, wanted: int) -> Tensor:
    """A buffer whose first positions are moved to the end of so many: (B, h, at least length, E) -> (B, h, wanted, E)."""
    batch, heads, _, width = store.shape
    made = empty(batch, heads, wanted, width, dtype=store.dtype, device=store.device)
    made[:, :, : wanted - length] = 0  # a mask leaves it out, but NaN would go through
    made[:, :, wanted - length :] = store[:, :, :length]
    return made


def _free_rows(slots: np.ndarray, rows: int) -> np.ndarray:
    """The rows of a buffer that no slot names, position by position: (B, n) -> (rows - B or more, n), the first of which are free."""
    taken = np.zeros((rows, slots.shape[1]), bool)
    taken[slots, np.arange(slots.shape[1])] = True
    return np.argsort(taken, axis=0, kind="stable")


def _check_unrecorded(*kept: Tensor) -> None:
    if any(x.requires_grad for x in kept):
        raise GradientError(
            "KVCache: keys and values that are being recorded cannot be cached",
            fix="generate inside `with mg.no_grad():`",
        )


def _with_room(store: Tensor, start: int, stop: int, room: int, batch: int) -> Tensor:
    """A buffer of `stop` positions and `batch` rows or more, of which `start` positions are kept.

    A full one is doubled, so that a position costs the same on average.
    """
    rows, heads, size, width = store.shape
    if size >= stop and rows >= batch:
        return store
    positions = size if size >= stop else max(2 * stop, room, FEWEST)
    larger = empty(max(rows, batch), heads, positions, width, dtype=store.dtype, device=store.device)
    larger[:rows, :, :start] = store[:, :, :start]
    return larger


def _with_rows(store: Tensor, new: Tensor, start: int, stop: int, room: int) -> Tensor:
    """The buffer with new rows written in place.

    Only the cache knows the memory that is written to, and no graph does, so it is done without asking the engine.
    """
    batch, heads, _, width = store.shape
    if new.shape != (batch, heads, stop - start, width) or new.dtype != store.dtype:
        got = f"{new.shape} {new.dtype}"
        raise ShapeError("KVCache: new rows do not fit", f"({batch}, {heads}, new, {width}) {store.dtype}", got)
    store = _with_room(store, start, stop, room, batch)
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

    def join(self, other: StateCache) -> None:
        """Add the rows of another cache behind these."""
        if self.state is None or other.state is None:
            self.state = other.state if self.state is None else self.state
        else:
            self.state = concatenate([self.state, other.state], axis=0)
        self.length = max(self.length, other.length)

    def trim(self, positions: int) -> None:
        """Count so many positions less."""
        self.length -= positions


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

    def join(self, other: StackCache) -> None:
        """Add the rows of another cache behind these, with their last positions at the same place: see KVCache."""
        for block, new in zip(self.blocks, other.blocks):
            block.own.join(new.own)  # type: ignore[arg-type]  # blocks of one stack have caches of one kind

    def trim(self, positions: int) -> None:
        """Forget so many of the first positions."""
        for block in self.blocks:
            block.own.trim(positions)
