"""What a thread is doing: recording or not, checking or not, and inside which module."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Mode:
    """Recording or not, checking every value or not, and inside which module. Replaced whole, never changed."""

    __slots__ = ("record", "debug", "scope")

    def __init__(self, record: bool = True, debug: bool = False, scope: str = ""):
        self.record = record
        self.debug = debug
        self.scope = scope


class _Local(threading.local):
    mode = Mode()


local = _Local()


class switch:
    """Change parts of the mode inside a `with`, or inside a decorated function; the old mode returns whatever happens."""

    __slots__ = ("changes", "previous")

    def __init__(self, record: bool | None = None, debug: bool | None = None, scope: str | None = None):
        self.changes = (record, debug, scope)
        self.previous: list[Mode] = []  # a stack, so that one object may be entered again inside itself

    def __enter__(self) -> None:
        record, debug, scope = self.changes
        old = local.mode
        local.__dict__.setdefault("previous", []).append(old)
        local.mode = Mode(
            old.record if record is None else record,
            old.debug if debug is None else debug,
            old.scope if scope is None else scope,
        )

    def __exit__(self, *_: object) -> None:
        local.mode = local.previous.pop()

    def __call__(self, function: F) -> F:
        @wraps(function)
        def switched(*args: Any, **kwargs: Any) -> Any:
            with switch(*self.changes):
                return function(*args, **kwargs)

        return switched  # type: ignore[return-value]


def no_grad(function: Any = None) -> Any:
    """Inside, nothing is recorded: `with mg.no_grad(): w -= 0.1 * w.grad`. Also a decorator."""
    return switch(record=False) if function is None else switch(record=False)(function)


def enable_grad(function: Any = None) -> Any:
    """Inside, operations are recorded again, even within `no_grad()`. Also a decorator."""
    return switch(record=True) if function is None else switch(record=True)(function)


def debug() -> switch:
    """Inside, the first NaN or infinity stops the program, forward or backward, naming op, module and source line."""
    return switch(debug=True)


def is_grad_enabled() -> bool:
    """Whether operations are being recorded in this thread."""
    return local.mode.record
