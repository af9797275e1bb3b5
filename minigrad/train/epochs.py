"""The batches of a run, epoch after epoch, and how many epochs are over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..data import DataLoader
from ..errors import ArgumentError
from .loss_terms import Totals

__all__ = ["Epochs"]


class Epochs:
    """Counts the epochs of some data, up to `limit` of them if there is one."""

    def __init__(self, data: Any, limit: int | None):
        self.data, self.limit = data, limit
        self.count = 0  # how many are over
        self.totals = Totals()  # the loss since the last one
        self._is_counted = False  # whether the end of this one was

    @property
    def are_over(self) -> bool:
        """Whether there are no more batches to come."""
        return self.limit is not None and self.count >= self.limit

    def begin(self) -> None:
        """Begin with a whole epoch, whatever somebody else took out of a loader before."""
        if isinstance(self.data, DataLoader):
            self.data.begin()

    def batches(self, ended: Callable[[], None]) -> Iterator[Any]:
        """Batches until all epochs are over. `ended` is called after an epoch whose last batch did not tell that it was that.

        A sampler that was saved after the last batch of an epoch begins with an empty one.
        """
        self.data.load_state_dict(self.data.state_dict())  # so that a loader goes on where it is
        self._is_counted = bool(getattr(self.data, "at_end", False))
        empty = 0
        while empty < 2 and not self.are_over:
            empty += 1
            for batch in self.data:
                empty = 0
                yield batch
            if not self._is_counted:
                self.count += 1
                ended()
            self._is_counted = False
        if not self.are_over:
            raise ArgumentError("Trainer: the data gives no batches", "at least one batch in each epoch")

    def has_ended(self) -> bool:
        """Count an epoch after its last batch, if the data tell that it was that."""
        if self._is_counted or not getattr(self.data, "at_end", False):
            return False
        self._is_counted = True
        self.count += 1
        return True

    def steps(self, accumulate: int) -> int | None:
        """How many steps all epochs come to; None without a limit, and for data of unknown length."""
        try:
            return None if self.limit is None else -(-self.limit * len(self.data) // accumulate)
        except TypeError:  # as of a loader of a stream
            return None
