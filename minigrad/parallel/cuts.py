"""A cut: which part of an array each tensor-parallel rank has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..engine.backend import backend_of

__all__ = ["Cut"]


@dataclass(frozen=True)
class Cut:
    """For each rank, the ranges along an axis that it has.

    >>> import numpy as np
    >>> cut = Cut(0, [[(0, 1), (2, 3)], [(1, 2), (3, 4)]])
    >>> cut.take(np.arange(4), 1).tolist(), cut.shape((4,), 1)
    ([1, 3], (2,))
    """

    axis: int
    ranges: list[list[tuple[int, int]]]

    def shape(self, whole: tuple[int, ...], rank: int) -> tuple[int, ...]:
        """The shape of a rank's part."""
        made = list(whole)
        made[self.axis] = sum(b - a for a, b in self.ranges[rank])
        return tuple(made)

    def take(self, whole: Any, rank: int) -> Any:
        """A rank's part, as an array of its own."""
        return backend_of(whole).xp.concatenate([whole[self._place(a, b)] for a, b in self.ranges[rank]], self.axis)

    def put(self, whole: Any, part: Any, rank: int) -> None:
        """Write a rank's part into the whole."""
        start = 0
        for a, b in self.ranges[rank]:
            whole[self._place(a, b)] = part[self._place(start, start + b - a)]
            start += b - a

    def _place(self, a: int, b: int) -> tuple[slice, ...]:
        return (*[slice(None)] * self.axis, slice(a, b))
