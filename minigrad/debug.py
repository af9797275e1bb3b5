"""Tracers for debugging: a record of every op, and the search for the first NaN or infinity."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from .engine.backend import Array, as_array, backend_of, is_array, on_device_of
from .engine.graph import Node
from .engine.modes import local, switch
from .engine.tensor import Tensor
from .engine.writes import tick
from .errors import NonFiniteError, describe
from .tracer import Tracer, tracing

__all__ = ["Call", "Failure", "Record", "Recorder", "debug", "nonfinite", "user_line"]


class Call:
    """One call of a module or of a function made of ops; two calls of the same one are two of these."""

    __slots__ = ("name", "kind")

    def __init__(self, name: str, kind: str = ""):
        self.name = name
        self.kind = kind  # the class of the module; "" for a function


class Record(NamedTuple):
    """What was kept of one call of an op. The node of its output has it as `node.note`."""

    op: Any
    inputs: tuple[Any, ...]  # arrays, numbers, None
    attrs: dict[str, Any]
    outputs: tuple[Array, ...]
    parents: tuple[Node | None, ...]  # the nodes of the inputs
    time: int  # by the clock of the graph
    seconds: float
    calls: tuple[Call, ...]  # the modules and functions it ran in, the outermost first
    line: str  # "file:line" of the user's code


class Failure(NamedTuple):
    """An op, or a function made of ops, that raised an error."""

    op: Any
    inputs: tuple[Any, ...]  # as they were given
    attrs: dict[str, Any]
    error: Exception
    calls: tuple[Call, ...]
    line: str
    node: Node | None  # whose rule failed, in a backward


class Recorder(Tracer):
    """Keeps a Record of every op, with the node of its output; `records` has them all in order, if they are to be kept."""

    def __init__(self, keep: bool = True):
        self.keep = keep
        self.records: list[tuple[Record, Node | None]] = []  # without a node: no gradient is needed
        self.failure: Failure | None = None
        self._running = threading.local()  # a tracer may be attached to several threads

    def called(self, op: Any, inputs: Sequence[Any], attrs: dict[str, Any], outputs: Any, seconds: float) -> None:
        arrays = tuple([x.data if isinstance(x, Tensor) else x for x in inputs])
        parents = tuple([x.node if isinstance(x, Tensor) else None for x in inputs])
        outs = outputs if isinstance(outputs, tuple) else (outputs,)
        record = Record(
            op, arrays, attrs, tuple([t.data for t in outs]), parents, tick(), seconds, self.calls, user_line()
        )
        nodes = [t.node for t in outs if t.node is not None]
        nodes += [node.parents[0] for node in nodes if node.plan.output_index is not None]
        for node in nodes:
            node.note = record
        if self.keep:
            self.records.append((record, nodes[-1] if nodes else None))

    def failed(
        self, op: Any, inputs: Sequence[Any], attrs: dict[str, Any], error: Exception, node: Node | None = None
    ) -> None:
        self.failure = Failure(op, tuple(inputs), attrs, error, self.calls, user_line(), node)

    @property
    def calls(self) -> tuple[Call, ...]:
        """What is running in this thread, the outermost first."""
        return getattr(self._running, "calls", ())

    def entered(self, name: str, kind: str) -> None:
        self._running.calls = (*self.calls, Call(name, kind))

    def left(self) -> None:
        self._running.calls = self.calls[:-1]


class NonFiniteSearch(Recorder):
    """Stops at the first NaN or infinity that an op makes, forward or backward."""

    def called(self, op: Any, inputs: Sequence[Any], attrs: dict[str, Any], outputs: Any, seconds: float) -> None:
        super().called(op, inputs, attrs, outputs, seconds)
        given = [x.data if isinstance(x, Tensor) else x for x in (*inputs, *attrs.values())]
        masked = any(_has_minus_infinity(x) for x in given)  # a mask puts it in on purpose, and ops may pass it on
        for t in outputs if isinstance(outputs, tuple) else (outputs,):
            if (found := nonfinite(t.data)) and not (masked and _is_only_hidden(t.data)):
                where, line = ": ".join(filter(None, (local.mode.scope, op.name))), user_line()
                raise NonFiniteError(
                    f"{where}{f' ({line})' if line else ''}: produced the first NaN or infinity", got=found
                )

    def failed(self, *failure: Any) -> None:
        """Not kept: an error refers to the frames it came through, so it would keep itself alive."""

    def pulled(self, node: Node, gradient: Any, parts: Sequence[tuple[int, Any, Any]]) -> None:
        for _, raw, _ in parts:
            if found := nonfinite(raw.data if isinstance(raw, Tensor) else raw):
                raise NonFiniteError(f"{node.where}: its backward produced the first NaN or infinity", got=found)


def debug() -> switch:
    """Inside, the first NaN or infinity stops the program, forward or backward, naming op, module and source line.

    All values are kept as well, so that `mg.viz.graph` shows every number.
    """
    return tracing(NonFiniteSearch(keep=False))


def nonfinite(array: Array) -> str | None:
    """How many elements are NaN or infinite, in words; None if there are none."""
    array = as_array(array)
    if array.dtype.kind not in "fc":
        return None
    xp = backend_of(array).xp
    with on_device_of(array):
        if xp.isfinite(array).all():
            return None
        return f"{int(xp.isnan(array).sum())} NaN and {int(xp.isinf(array).sum())} infinite of {array.size} in {describe(array)}"


def _has_minus_infinity(value: Any) -> bool:
    """Whether an input or attribute of an op holds minus infinity."""
    if not is_array(value):
        return isinstance(value, (float, np.floating)) and bool(value == -np.inf)
    if value.dtype.kind != "f":
        return False
    with on_device_of(value):
        return bool((value == -np.inf).any())


def _is_only_hidden(array: Any) -> bool:
    """Whether everything in an array is finite, or minus infinity."""
    xp = backend_of(array).xp if is_array(array) else np
    with on_device_of(array):
        return bool((xp.isfinite(array) | (array == -np.inf)).all())


_NOT_THE_USERS = ("minigrad", "numpy")
_COMMAND = "minigrad.cli"


def user_line() -> str:
    """`file:line` of the innermost frame outside minigrad, and outside of NumPy, which may stand in between.

    It is empty where the command `minigrad` began the computation: what called the command is not the user's code.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (module := frame.f_globals.get("__name__", "")).partition(".")[0] in _NOT_THE_USERS:
        if module.startswith(_COMMAND):
            return ""
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""
