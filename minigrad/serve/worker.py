"""The thread that computes for all clients: texts are continued in one batch, and calls of a verb are answered together.

Each turn reads a part of one prompt, writes one token of every text, and makes one call. So a long prompt or a large
call makes nobody wait for its end, and a text that nobody waits for any more leaves the batch at the next turn.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any

from ..decode.rows import Rows
from ..errors import MinigradError, NonFiniteError, printable
from .text import Failure, Text

__all__ = ["Busy", "Call", "Worker"]

READ = 128  # tokens of a prompt that are read at once
CALLED = 16  # inputs that a verb is called with at once
BUSY_ANSWER = "the server could not begin to answer in time"


class Busy(Exception):
    """As many requests as may wait are waiting."""


class Call:
    """A verb with inputs for a client; `tell` is called with the list of the answers, or with a Failure."""

    def __init__(self, verb: str, inputs: Sequence[Any], tell: Callable[[Any], object], **options: Any):
        self.verb, self.inputs, self.options, self.tell = verb, list(inputs), options, tell
        self.answers: list[Any] = []
        self.is_cancelled, self.since = False, monotonic()

    @property
    def kind(self) -> tuple[Any, ...]:
        """Calls of one kind are made together."""
        return self.verb, *sorted(self.options.items())


class Worker:
    """Computes for a loaded model. At most `places` texts are written at once, and at most `queue` requests wait.

    `verbs` are functions of a list of inputs that return a list of answers. Whoever waited for `patience` seconds is told so.
    """

    def __init__(
        self,
        loaded: Any,
        verbs: Mapping[str, Callable[..., list[Any]]],
        *,
        places: int = 16,
        queue: int = 64,
        patience: float = 60.0,
    ):
        self.loaded, self.verbs = loaded, verbs
        self.places, self.queue, self.patience = places, queue, patience
        self.counts: Counter[str] = Counter()  # what has been done so far
        self._lock = threading.Condition()
        self._waiting: deque[Text] = deque()
        self._calls: deque[Call] = deque()
        self._reading: list[Text] = []
        self._writing: list[Text] = []  # in the order of the rows
        self._rows: Rows | None = None
        self._is_ending = False
        self._thread = threading.Thread(target=self._run, name="minigrad-serve", daemon=True)

    def start(self) -> None:
        """Begin to compute."""
        self._thread.start()

    def submit(self, *jobs: Text | Call) -> None:
        """Have them computed, all or none; Busy where too many wait."""
        with self._lock:
            if self._has_no_room(len(jobs)):
                self.counts["refused"] += len(jobs)
                raise Busy
            self._waiting += [job for job in jobs if isinstance(job, Text)]
            self._calls += [job for job in jobs if isinstance(job, Call)]
            self._lock.notify()

    def cancel(self, *jobs: Text | Call) -> None:
        """Nobody waits for them any more."""
        for job in jobs:
            self.counts["cancelled"] += not job.is_cancelled
            job.is_cancelled = True

    def stop(self, seconds: float) -> None:
        """Refuse what waits, and end when what is being written has ended, or after so many seconds."""
        with self._lock:
            self._is_ending = True
            self._lock.notify()
        self._thread.join(seconds)
        self.cancel(*self._reading, *self._writing)
        self._thread.join(10)

    @property
    def state(self) -> dict[str, int]:
        """How many texts wait, are read, are written, and how many calls wait."""
        return {
            "waiting": len(self._waiting), "reading": len(self._reading), "writing": len(self._writing),
            "calls": len(self._calls),
        }  # fmt: skip

    @property
    def is_full(self) -> bool:
        """Whether a request that comes now has to come back later."""
        with self._lock:
            return self._has_no_room(1)

    def _has_no_room(self, new: int) -> bool:
        taken = len(self._reading) + len(self._writing) + len(self._waiting)
        room = self.queue + max(self.places - taken, 0)
        return self._is_ending or len(self._waiting) + len(self._calls) + new > room

    def _run(self) -> None:
        while True:
            with self._lock:
                while not (self._waiting or self._calls or self._reading or self._writing or self._is_ending):
                    self._lock.wait()
                if self._is_ending:
                    self._refuse()
                    if not (self._reading or self._writing):
                        return
                self._admit()
            self._leave()
            if self._reading:
                self._guarded([self._reading[0]], self._read)
            if self._writing:
                self._guarded(self._writing, self._write)
            if self._calls:
                self._call()

    def _refuse(self) -> None:
        jobs: list[Text | Call] = [*self._waiting, *self._calls]
        for job in jobs:
            job.tell(Failure(503, "the server is stopping"))
        self._waiting.clear()
        self._calls.clear()

    def _admit(self) -> None:
        """Begin with those that have waited longest, as far as there are places, and send away who waited too long."""
        late = monotonic() - self.patience
        for text in [*self._waiting]:
            if text.is_cancelled or text.since < late:
                self._waiting.remove(text)
                self._sent_away(text)
        for call in [*self._calls]:
            if call.is_cancelled or (call.since < late and not call.answers):
                self._calls.remove(call)
                self._sent_away(call)
        while self._waiting and len(self._reading) + len(self._writing) < self.places:
            self._reading.append(self._waiting.popleft())

    def _sent_away(self, job: Text | Call) -> None:
        if not job.is_cancelled:
            self.counts["late"] += 1
            job.tell(Failure(503, BUSY_ANSWER))

    def _leave(self) -> None:
        """Let go of texts that nobody waits for."""
        self._reading = [text for text in self._reading if not text.is_cancelled]
        self._keep([not text.is_cancelled for text in self._writing])

    def _keep(self, stays: Sequence[bool]) -> None:
        if not all(stays) and self._rows is not None:
            self._writing = [text for text, kept in zip(self._writing, stays) if kept]
            self._rows.select([row for row, kept in enumerate(stays) if kept])

    def _guarded(self, texts: list[Text], act: Callable[[], None]) -> None:
        """Do what concerns these texts; if it fails, they have failed, and the others go on."""
        try:
            act()
        except Exception as error:
            failure = _failure(error)
            for text in texts:
                self.counts["failed"] += 1
                text.tell(failure)
                text.is_cancelled = True
            self._leave()

    def _read(self) -> None:
        """Read a part of the first prompt; a text that has been read joins those that are written."""
        text = self._reading[0]
        self.counts["read"] += min(READ, len(text.unread))
        scores = text.read(READ)
        if scores is None:
            self._reading.append(self._reading.pop(0))  # a short prompt need not wait for a long one
            return
        self._reading.pop(0)
        self.counts["written"] += 1
        if text.take(scores):
            assert text.reader is not None
            self._rows = self._rows or Rows(text.model)
            self._rows.join(text.reader)
            self._writing.append(text)
        text.reader = None

    def _write(self) -> None:
        """Write a token of each text; one that fills the context is read anew from the middle of what it had."""
        assert self._rows is not None
        context = self.loaded.model.context
        full = [length >= context for length in self._rows.lengths]
        for text, is_full in zip(self._writing, full):
            if is_full:
                text.read_anew(max(context // 2, 1))
                self._reading.append(text)
        self._keep([not is_full for is_full in full])
        if self._writing:
            scores = self._rows.step([text.ids[-1] for text in self._writing])  # (B, V)
            self.counts["written"] += len(scores)
            self.counts["steps"] += 1
            self._keep([text.take(row) for text, row in zip(self._writing, scores)])

    def _call(self) -> None:
        """Answer some inputs of the calls of one kind together; if that fails, each call by itself."""
        with self._lock:
            kind, chosen, room = self._calls[0].kind, list[tuple[Call, list[Any]]](), CALLED
            for call in self._calls:
                if call.kind == kind and room > 0 and not call.is_cancelled:
                    part = call.inputs[len(call.answers) :][:room]
                    chosen.append((call, part))
                    room -= len(part)
        if not chosen:
            return
        for group in [chosen] if len(chosen) == 1 else [chosen, *([one] for one in chosen)]:
            try:
                self._answer(group)
            except Exception as error:
                if len(group) == 1:
                    self.counts["failed"] += 1
                    group[0][0].tell(_failure(error))
                    group[0][0].is_cancelled = True
                continue
            if group is chosen:
                break
        with self._lock:
            for call, _ in chosen:  # who has more inputs waits behind the others
                self._calls.remove(call)
                if not call.is_cancelled and len(call.answers) < len(call.inputs):
                    self._calls.append(call)

    def _answer(self, group: Sequence[tuple[Call, list[Any]]]) -> None:
        first = group[0][0]
        inputs = [one for _, part in group for one in part]
        answers = iter(self.verbs[first.verb](inputs, **first.options)) if inputs else iter(())
        self.counts["answered"] += len(inputs)
        for call, part in group:
            call.answers += [next(answers) for _ in part]
            if len(call.answers) == len(call.inputs):
                call.tell(call.answers)


def _failure(error: Exception) -> Failure:
    """What a client is told of an error: all, if the input was wrong."""
    if isinstance(error, MinigradError) and not isinstance(error, NonFiniteError):
        return Failure(400, " ".join(line.strip() for line in str(error).splitlines())[:1000])
    print(printable(f"minigrad: {''.join(traceback.format_exception(error))}"), file=sys.stderr, flush=True)
    return Failure(500, "the model failed: what went wrong is in the server's terminal")
