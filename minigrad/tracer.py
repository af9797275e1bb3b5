"""Who watches what a thread computes: the interface of a tracer, and how the engine speaks to those that are attached.

Debugging, the search for NaN, graphs, costs, `on_error`, step-through and the compiler are tracers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .engine.modes import Arrays, Attrs, local, switch

if TYPE_CHECKING:
    from .engine.graph import Node

__all__ = ["Tracer", "is_compiling", "is_exporting", "number", "tracing"]


class Tracer:
    """Watches what one thread computes while it is attached: `with tracing(tracer): …`. Each method may do nothing."""

    symbolic = (
        False  # whether it follows every value: then the rules of a backward run on Tensors, so that it sees their ops
    )

    exporting = False  # whether what it writes down runs elsewhere: then values cannot be looked at to refuse them

    def instead(self, op: Any) -> Any:
        """What is to be called, with inputs and attributes, in place of the kernels of `op`; None: nothing else."""

    def forward(self, op: Any) -> Any:
        """The function of arrays that computes `op`; the tracer that was attached last is asked."""
        return op.forward

    def number(self, read: Callable[[], Any], dtype: Any) -> Any:
        """What `read()` gives, as something that stands for whatever it will give; asked of symbolic tracers alone."""

    def noticed(self, event: str, *details: Any) -> None:
        """Something happened outside of any op, such as ("copied", array, copy): see `notify`."""

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


def tracing(tracer: Tracer) -> switch:
    """Inside, `tracer` is told of every op, besides the tracers that are attached already."""
    return switch(tracer=tracer)


def is_compiling() -> bool:
    """Whether a symbolic tracer follows this thread: then Python cannot look at the values of Tensors."""
    return any(tracer.symbolic for tracer in local.mode.tracers)


def is_exporting() -> bool:
    """Whether a tracer follows this thread whose graph is to run elsewhere, where no Python refuses a value."""
    return any(tracer.exporting for tracer in local.mode.tracers)


def number(read: Callable[[], Any], dtype: Any = None) -> Any:
    """A number that changes from call to call, such as a learning rate: a symbolic tracer reads it anew each time.

    Where it is floating, `dtype` is that of the tensors it will meet.
    """
    for tracer in local.mode.tracers:
        if tracer.symbolic:
            return tracer.number(read, dtype)
    return read()
