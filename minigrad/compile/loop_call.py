"""What calls of compiled loops have in common, whoever compiled them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import IndexingError
from ..ir.graph import Number, Value, at_sizes
from .loops import Loop, Reduce

__all__ = ["Call", "Known", "LoopCall", "joined", "number", "wrong_index"]

Known = dict[Any, Any]  # arrays by Value, and numbers by Number
Call = Callable[[Known], None]


class LoopCall:
    """One compiled loop. `shared` says which of its outputs take the memory of an array that is read for the last time."""

    comment = "#"  # what begins one in the source

    def __init__(self, loop: Loop, writer: Any, shared: Mapping[Value, Value]):
        self.loop, self.shared = loop, shared
        self.text = writer.function("loop", loop)
        self.ints, self.numbers, self.arrays = tuple(writer.ints), tuple(writer.passed()), writer.arrays_of(loop)
        self.checks = writer.checks

    @property
    def source(self) -> str:
        """The text, and the sizes that it is called with here."""
        arrays = ", ".join(f"{v.dtype}{list(v.shape)}" for v in self.arrays)
        return f"{self.comment} Here over {list(self.loop.group.sizes)}, with {arrays}\n{self.text}"

    def at(self, sizes: Mapping[str, int], ready: set[Value], xp: Any) -> Call:
        """The call for certain sizes: it takes its arrays from those that are known, and puts what it makes there.

        `ready` are the values that are there already: one that several loops write to is made by the first of them.
        """
        raise NotImplementedError

    def new(self, sizes: Mapping[str, int], ready: set[Value]) -> list[tuple[Value, tuple[int, ...], Any]]:
        """The values that a call makes memory for, their shapes and their dtypes."""
        made = [v for v in self.loop.writes if v not in self.shared and v not in ready]
        return [(v, at_sizes(v.shape, sizes), v.dtype) for v in made]


def joined(total: Reduce, parts: Any) -> Any:
    """One sum of those that several threads or blocks made, (parts, elements) -> (elements,)."""
    return getattr(parts, total.kind.join)(axis=0).astype(total.dtype, copy=False)


def number(x: Any, dtype: str, known: Mapping[Any, Any]) -> Any:
    """A number as a compiled function takes it: whole ones as the 64 bits of an int64."""
    x = known[x] if isinstance(x, Number) else x
    return ((int(x) + 2**63) % 2**64) - 2**63 if dtype[0] == "i" else float(x)


def wrong_index(count: int) -> IndexingError:
    """The error for indices out of range."""
    return IndexingError("an index is out of range in a compiled function", got=f"{count} of them")
