"""What a thread is doing: whether it records, who watches, and inside which module it is."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ContextDecorator
from functools import wraps
from inspect import isgeneratorfunction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .graph import Node


Attrs = dict[str, Any]
Arrays = Sequence[Any]  # also numbers, and None for an input that was left out


class Tracer:
    """Watches what one thread computes while it is attached: `with tracing(tracer): …`. Each method may do nothing."""

    def called(self, op: Any, inputs: Arrays, attrs: Attrs, outputs: Any, seconds: float) -> None:
        """An op computed `outputs`, a Tensor or a tuple of them, from `inputs`: Tensors, arrays, numbers, None."""

    def failed(self, op: Any, inputs: Arrays, attrs: Attrs, error: Exception, node: Node | None = None) -> None:
        """An op, or a function made of ops, raised `error`; in a backward, `node` is the one whose rule did."""

    def pulled(self, node: Node, gradient: Any, parts: Sequence[tuple[int, Any, Any]]) -> None:
        """The rules of `node` ran on its gradient: for each input its number, the rule's result, and that after un-broadcasting."""

    def entered(self, name: str, kind: str) -> None:
        """A call begins: of a module, whose class is `kind`, or of a function made of ops, where `kind` is empty."""

    def left(self) -> None:
        """The call that was entered last ends."""


class Mode:
    """Whether ops are recorded, and who watches: replaced whole, never changed. The path of the running module is."""

    __slots__ = ("record", "tracers", "scope")

    def __init__(self, record: bool = True, tracers: tuple[Tracer, ...] = (), scope: str = ""):
        self.record = record
        self.tracers = tracers
        self.scope = scope


class _Local(threading.local):
    def __init__(self) -> None:
        self.mode = Mode()


local = _Local()


class switch(ContextDecorator):
    """Change parts of the mode inside a `with`, or inside a decorated function; the old mode returns whatever happens."""

    def __init__(self, record: bool | None = None, tracer: Tracer | None = None):
        self.changes = (record, tracer)

    def __enter__(self) -> None:
        record, tracer = self.changes
        old = local.mode
        local.__dict__.setdefault("previous", []).append(old)  # a stack: one object may be entered again inside itself
        local.mode = Mode(
            old.record if record is None else record,
            old.tracers if tracer is None else (*old.tracers, tracer),
            old.scope,
        )

    def __exit__(self, *_: object) -> None:
        local.mode = local.previous.pop()

    def __call__(self, function: Any) -> Any:
        if not isgeneratorfunction(function):
            return super().__call__(function)

        @wraps(function)
        def switched(*args: Any, **kwargs: Any) -> Any:  # between two yields; the caller goes on in its own mode
            steps, sent = function(*args, **kwargs), None
            send, close = self(steps.send), self(steps.close)
            try:
                while True:
                    sent = yield send(sent)
            except StopIteration as end:
                return end.value
            finally:
                close()

        return switched


def no_grad(function: Any = None) -> Any:
    """Inside, nothing is recorded: `with mg.no_grad(): w -= 0.1 * w.grad`. Also a decorator."""
    return switch(record=False) if function is None else switch(record=False)(function)


def enable_grad(function: Any = None) -> Any:
    """Inside, operations are recorded again, even within `no_grad()`. Also a decorator."""
    return switch(record=True) if function is None else switch(record=True)(function)


def tracing(tracer: Tracer) -> switch:
    """Inside, `tracer` is told of every op, besides the tracers that are attached already."""
    return switch(tracer=tracer)


def is_grad_enabled() -> bool:
    """Whether operations are being recorded in this thread."""
    return local.mode.record


def reported(op: Any, inputs: Arrays, attrs: Attrs, error: Any, node: Node | None = None) -> Any:
    """An error of an op, told to those who watch."""
    for tracer in local.mode.tracers:
        tracer.failed(op, inputs, attrs, error, node)
    return error
