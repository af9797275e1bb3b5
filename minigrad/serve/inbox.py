"""What the thread that computes tells a client, as an asynchronous iterator."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from .http import Refusal
from .text import End, Failure, Text
from .worker import Busy, Call, Worker

__all__ = ["Events", "answers_of", "check_room"]

RETRY = 1  # seconds


def _teller(queue: asyncio.Queue[Any], number: int) -> Callable[[Any], None]:
    """A function for another thread that puts what it is called with into the queue."""
    loop = asyncio.get_running_loop()

    def tell(event: Any) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(queue.put_nowait, (number, event))

    return tell


def check_room(worker: Worker) -> None:
    """Refuse a request for now before anything is done for it, where too many wait."""
    if worker.is_full:
        worker.counts["refused"] += 1
        raise _busy()


def _busy() -> Refusal:
    return Refusal(429, "too many requests wait: try again later", code="busy", retry=RETRY)


def submitted(worker: Worker, *jobs: Text | Call) -> None:
    """Have them computed, or refuse the request for now."""
    try:
        worker.submit(*jobs)
    except Busy:
        raise _busy() from None


async def answers_of(worker: Worker, verb: str, inputs: list[Any], **options: Any) -> list[Any]:
    """What a verb of the model answers to inputs; cancelled with the task that waits."""
    queue: asyncio.Queue[Any] = asyncio.Queue()
    call = Call(verb, inputs, _teller(queue, 0), **options)
    submitted(worker, call)
    found = None
    try:
        _, found = await queue.get()
    finally:
        if found is None:
            worker.cancel(call)
    if isinstance(found, Failure):
        raise Refusal(found.status, found.message)
    return list(found)


class Events:
    """What is told of some texts: (number of the text, Piece or End), until all have ended. One that fails raises a Refusal.

    `make(tell, number)` makes each of the texts. After `close`, what has not ended is not computed any more.
    """

    def __init__(self, worker: Worker, make: Callable[[Callable[[Any], None], int], Text], count: int = 1):
        self._worker, self._queue = worker, asyncio.Queue[Any]()
        self._going = {number: make(_teller(self._queue, number), number) for number in range(count)}
        submitted(worker, *self._going.values())

    def close(self) -> None:
        """Nobody listens any more."""
        self._worker.cancel(*self._going.values())
        self._going = {}

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> tuple[int, Any]:
        if not self._going:
            raise StopAsyncIteration
        number, event = await self._queue.get()
        if isinstance(event, (End, Failure)):
            del self._going[number]
        if isinstance(event, Failure):
            raise Refusal(event.status, event.message)
        return number, event
