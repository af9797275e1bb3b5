"""A sampler that goes through the parts of the data one after the other."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from minigrad.data import BatchReport, PairBatches, Sampler


class InTurns(Sampler):
    """Samplers one after the other; an epoch goes through all of them.

    A sampler sorts all it has by length. If a short sentence is there twenty times, its copies would all be in one or two
    batches of a large one; in twenty small ones they are far apart.
    """

    def __init__(self, parts: Sequence[PairBatches], seed: int = 0):
        super().__init__(seed)
        self.parts = list(parts)
        self._ends = list(accumulate(map(len, self.parts)))
        self.report = _summed([part.report for part in self.parts])

    def __len__(self) -> int:
        return self._ends[-1]

    def batch(self, epoch: int, index: int) -> Any:
        which = bisect.bisect_right(self._ends, index)
        part = self.parts[which]
        return part.batch(epoch, index - self._ends[which] + len(part))

    def _identity(self) -> dict[str, Any]:
        return {"parts": [part._identity() for part in self.parts]}


def _summed(reports: list[BatchReport]) -> BatchReport:
    """One report of all; shares are means over the examples."""
    examples = sum(report.examples for report in reports)

    def mean(shares: list[float]) -> float:
        return sum(share * report.examples for share, report in zip(shares, reports)) / examples

    return BatchReport(
        examples=examples,
        batches=sum(report.batches for report in reports),
        padding=mean([report.padding for report in reports]),
        unknown=tuple(mean(list(shares)) for shares in zip(*(report.unknown for report in reports))),
        too_long=sum(report.too_long for report in reports),
        empty=sum(report.empty for report in reports),
        limit=reports[0].limit,
    )
