"""A partition spec: which shard of an array each tensor-parallel rank has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..engine.backend import backend_of

__all__ = ["PartitionSpec"]


@dataclass(frozen=True)
class PartitionSpec:
    """For each rank, the ranges along an axis that it has.

    >>> import numpy as np
    >>> spec = PartitionSpec(0, [[(0, 1), (2, 3)], [(1, 2), (3, 4)]])
    >>> spec.shard(np.arange(4), 1).tolist(), spec.local_shape((4,), 1)
    ([1, 3], (2,))
    """

    axis: int
    ranges: list[list[tuple[int, int]]]

    def local_shape(self, whole: tuple[int, ...], rank: int) -> tuple[int, ...]:
        """The shape of a rank's shard."""
        made = list(whole)
        made[self.axis] = sum(b - a for a, b in self.ranges[rank])
        return tuple(made)

    def shard(self, whole: Any, rank: int) -> Any:
        """A rank's shard, as an array of its own."""
        return backend_of(whole).xp.concatenate([whole[self._place(a, b)] for a, b in self.ranges[rank]], self.axis)

    def write(self, whole: Any, shard: Any, rank: int) -> None:
        """Write a rank's shard into the whole."""
        start = 0
        for a, b in self.ranges[rank]:
            whole[self._place(a, b)] = shard[self._place(start, start + b - a)]
            start += b - a

    def _place(self, a: int, b: int) -> tuple[slice, ...]:
        return (*[slice(None)] * self.axis, slice(a, b))
