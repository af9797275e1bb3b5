"""What a thread is doing: whether it records, who watches, and inside which module it is."""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from contextlib import ContextDecorator
from functools import wraps
from inspect import isgeneratorfunction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..tracer import Tracer
    from .graph import Node


Attrs = dict[str, Any]
Arrays = Sequence[Any]  # also numbers, and None for an input that was left out


class Mode:
    """Whether ops are recorded, and who watches. Immutable but for `scope`, the path of the running module, and `before`."""

    __slots__ = ("record", "tracers", "scope", "switch", "before")

    def __init__(self, record: bool = True, tracers: tuple[Tracer, ...] = (), scope: str = ""):
        self.record, self.tracers, self.scope = record, tracers, scope
        self.switch: switch | None = None  # what made it
        self.before: Any = None  # the mode that it was made from


class _Local(threading.local):
    def __init__(self) -> None:
        self.mode = Mode()


local = _Local()


class switch(ContextDecorator):
    """Change parts of the mode inside a `with`, or inside a decorated function; the old mode returns whatever happens."""

    def __init__(self, record: bool | None = None, tracer: Tracer | None = None):
        self.changes = (record, tracer)

    def __enter__(self) -> None:
        mode = self.changed(local.mode)
        mode.switch, mode.before, local.mode = self, local.mode, mode

    def __exit__(self, *_: object) -> None:
        local.mode = self._left(local.mode)

    def changed(self, mode: Mode) -> Mode:
        """A mode like `mode` but for the changes."""
        record, tracer = self.changes
        tracers = mode.tracers if tracer is None else (*mode.tracers, tracer)
        return Mode(mode.record if record is None else record, tracers, mode.scope)

    def _left(self, mode: Mode) -> Mode:
        """What `mode` is without the innermost one that this made, which a generator may leave before those inside of it."""
        if mode.switch is self:
            return mode.before
        if mode.before is not None:  # otherwise it was made in another thread, where a generator began that ends here
            mode.before = self._left(mode.before)
        return mode

    def __call__(self, function: Any) -> Any:
        if not isgeneratorfunction(function):
            return super().__call__(function)

        @wraps(function)
        def switched(*args: Any, **kwargs: Any) -> Any:
            return (yield from _Steps(function(*args, **kwargs), self))

        return switched


class _Steps(Generator[Any, Any, Any]):
    """A generator that goes on in a mode of its own after each yield, while its caller goes on in the caller's."""

    def __init__(self, steps: Any, switch: switch):
        self.steps, self.switch = steps, switch
        self.inside: Mode | None = None  # of a `with` that a yield left open

    def send(self, value: Any) -> Any:
        return self._go_on(self.steps.send, value)

    def throw(self, *error: Any) -> Any:
        return self._go_on(self.steps.throw, *error)

    def _go_on(self, act: Any, *given: Any) -> Any:
        outer, local.mode = local.mode, self.inside or self.switch.changed(local.mode)
        try:
            return act(*given)
        finally:
            self.inside, local.mode = local.mode if local.mode.switch else None, outer


def no_grad(function: Any = None) -> Any:
    """Inside, nothing is recorded: `with mg.no_grad(): w -= 0.1 * w.grad`. Also a decorator."""
    return switch(record=False) if function is None else switch(record=False)(function)


def enable_grad(function: Any = None) -> Any:
    """Inside, operations are recorded again, even within `no_grad()`. Also a decorator."""
    return switch(record=True) if function is None else switch(record=True)(function)


def is_grad_enabled() -> bool:
    """Whether operations are being recorded in this thread."""
    return local.mode.record


def notify(event: str, *details: Any) -> None:
    """Tell those who watch what no op shows.

    ("created", array) from numbers alone; ("drawn", array, draw), which draws another; ("copied", array, copy);
    ("writing", array), before, ("wrote", array, values); ("storing", node), before, ("stored", node, gradient) into `node.grad`;
    ("cleared", node) of its gradient; ("hooked",), where a tensor gets a hook; ("read", Tensor, how) by Python.
    """
    for tracer in local.mode.tracers:
        tracer.noticed(event, *details)


def reported(op: Any, inputs: Arrays, attrs: Attrs, error: Any, node: Node | None = None) -> Any:
    """An error of an op, told to those who watch."""
    for tracer in local.mode.tracers:
        tracer.failed(op, inputs, attrs, error, node)
    return error
