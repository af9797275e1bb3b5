"""What a rank does when: forwards, backwards and waiting, as measured, for the picture of a step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import NamedTuple

from ..runtime.process_group import ProcessGroup

__all__ = ["Span", "recorded", "spent"]


class Span(NamedTuple):
    """A stretch of time: of which microbatch, and how much of it was spent waiting for other ranks."""

    kind: str
    piece: int
    begin: float
    end: float
    waited: float


_spans: list[Span] | None = None


@contextmanager
def recorded() -> Iterator[list[Span]]:
    """Inside, what this rank does is noted in the list; the clock is that of the machine."""
    global _spans
    outer, _spans = _spans, []
    try:
        yield _spans
    finally:
        _spans = outer


@contextmanager
def spent(kind: str, index: int = -1) -> Iterator[None]:
    """Note what is done inside, if anybody records."""
    if _spans is None:
        yield
        return
    begin, before = monotonic(), ProcessGroup.waited
    try:
        yield
    finally:
        if _spans is not None:
            _spans.append(Span(kind, index, begin, monotonic(), ProcessGroup.waited - before))
