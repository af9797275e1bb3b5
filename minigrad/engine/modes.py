"""What a thread is doing: recording or not, checking or not, and inside which module."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import isgeneratorfunction
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


WATCHING, STRICT = 1, 2  # to keep all that ops compute, to be drawn; and besides to stop at the first NaN or infinity


class Call:
    """One call of a module or of a function made of ops; two calls of the same one are two of these."""

    __slots__ = ("name", "title")

    def __init__(self, name: str, title: str = ""):
        self.name = name
        self.title = title  # the class of the module; "" for a function


class Mode:
    """Recording or not, watching or not, and inside which module. Replaced whole, never changed."""

    __slots__ = ("record", "debug", "scope", "calls")

    def __init__(self, record: bool = True, debug: int = 0, scope: str = "", calls: tuple[Call, ...] = ()):
        self.record = record
        self.debug = debug  # 0, WATCHING or STRICT
        self.scope = scope
        self.calls = calls  # what is running, the outermost first, while watching


class _Local(threading.local):
    mode = Mode()
    apart: list[Any] | None = None  # where nodes go of ops that need no gradient, for who draws them


local = _Local()


class switch:
    """Change parts of the mode inside a `with`, or inside a decorated function; the old mode returns whatever happens."""

    __slots__ = ("changes",)

    def __init__(self, record: bool | None = None, debug: int | None = None, scope: str | None = None):
        self.changes = (record, debug, scope)

    def __enter__(self) -> None:
        record, debug, scope = self.changes
        old = local.mode
        local.__dict__.setdefault("previous", []).append(old)  # a stack: one object may be entered again inside itself
        local.mode = Mode(
            old.record if record is None else record,
            old.debug if debug is None else debug,
            old.scope if scope is None else scope,
            old.calls,
        )

    def __exit__(self, *_: object) -> None:
        local.mode = local.previous.pop()

    def __call__(self, function: F) -> F:
        @wraps(function)
        def switched(*args: Any, **kwargs: Any) -> Any:
            with switch(*self.changes):
                return function(*args, **kwargs)

        @wraps(function)
        def switched_between_yields(*args: Any, **kwargs: Any) -> Any:
            steps = function(*args, **kwargs)
            sent = None
            try:
                while True:
                    with switch(*self.changes):
                        item = steps.send(sent)
                    sent = yield item  # to who goes on in a mode of its own
            except StopIteration as end:
                return end.value
            finally:
                with switch(*self.changes):
                    steps.close()

        return switched_between_yields if isgeneratorfunction(function) else switched  # type: ignore[return-value]


def no_grad(function: Any = None) -> Any:
    """Inside, nothing is recorded: `with mg.no_grad(): w -= 0.1 * w.grad`. Also a decorator."""
    return switch(record=False) if function is None else switch(record=False)(function)


def enable_grad(function: Any = None) -> Any:
    """Inside, operations are recorded again, even within `no_grad()`. Also a decorator."""
    return switch(record=True) if function is None else switch(record=True)(function)


def debug() -> switch:
    """Inside, the first NaN or infinity stops the program, forward or backward, naming op, module and source line.

    All values are kept as well, so that `mg.viz.graph` shows every number.
    """
    return switch(debug=STRICT)


def watching() -> switch:
    """Inside, every op keeps its inputs, its result, its time and its source line with the node that it records."""
    return switch(debug=max(local.mode.debug, WATCHING))


@contextmanager
def keeping_apart() -> Iterator[list[Any]]:
    """Inside `watching()`, collect the nodes of ops that need no gradient too: nothing else points to them."""
    previous, local.apart = local.apart, []
    try:
        yield local.apart
    finally:
        local.apart = previous


def is_grad_enabled() -> bool:
    """Whether operations are being recorded in this thread."""
    return local.mode.record
