"""Keys for random numbers that depend on their place alone, and so not on how a batch is divided among threads.

A draw such as dropout's takes a key, and gives element number i of the whole batch a number that is a hash of the key
and i. Within `dividing`, all threads that share a step take the same keys in the same order, and each starts counting
its elements where its rows begin. That supposes that the first axis of what is drawn for is the batch.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from .backend import CPU

_GOLDEN = 0x9E3779B97F4A7C15
_WORD = (1 << 64) - 1


class _Place(threading.local):
    """Where in a step this thread is: the step's seed, how many keys it took, and which share of the rows it has."""

    seed: int | None = None
    taken = 0
    first, rows = 0, 1


_place = _Place()


def next_key(size: int) -> tuple[int, int]:
    """A key of 64 bits, and the number of the first of `size` elements."""
    if _place.seed is None:
        return new_seed(), 0
    _place.taken += 1
    return _mixed(_place.seed + _place.taken * _GOLDEN), size * _place.first // max(_place.rows, 1)


def position() -> dict[str, Any]:
    """Where in a step this thread is, for `going_back`."""
    return dict(vars(_place))


@contextmanager
def going_back(to: dict[str, Any]) -> Iterator[None]:
    """Inside, this thread takes the keys that it took when `position()` gave this."""
    before = position()
    vars(_place).clear()
    vars(_place).update(to)
    try:
        yield
    finally:
        vars(_place).clear()
        vars(_place).update(before)


def new_seed() -> int:
    """A seed from the generator that `manual_seed` sets."""
    return int(CPU.random.host.integers(1 << 63))


def dividing(seed: int, first: int, rows: int) -> AbstractContextManager[None]:
    """Inside, this thread computes `rows` rows of a batch, beginning with row `first`, of the step with this seed."""
    return going_back({"seed": seed, "taken": 0, "first": first, "rows": rows})


def _mixed(x: int) -> int:
    """The finaliser of splitmix64: neighbouring numbers become unlike each other."""
    x &= _WORD
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB & _WORD
    return x ^ x >> 31


def hashed(xp: Any, numbers: Any, key: int) -> Any:
    """32 random bits for each of the uint32 `numbers`."""
    for half in (key & 0xFFFFFFFF, key >> 32):
        numbers = numbers ^ xp.uint32(half)
        numbers ^= numbers >> xp.uint32(16)
        numbers *= xp.uint32(0x21F0AAAD)
        numbers ^= numbers >> xp.uint32(15)
        numbers *= xp.uint32(0x735A2D97)
        numbers ^= numbers >> xp.uint32(15)
    return numbers
