"""What a pass through a divided model knows of itself."""

from __future__ import annotations

from typing import Any

__all__ = ["PassState"]


class PassState:
    """Whether this rank computes at the moment, or another stage; what it received, and what it sent.

    A rank runs the whole of `loss(model, batch)`. What belongs to other stages works on zeros that take no memory.
    """

    def __init__(self, is_first: bool = True):
        self.is_first = is_first
        self.active = is_first
        self.length = 0  # of the sequence, of which a tensor-parallel rank may have a part
        self.memory: Any = None  # of an encoder on an earlier stage
        self.token: Any = None  # what a send made: its backward waits for the gradient

    def begin(self) -> None:
        """Begin another pass."""
        self.active, self.memory, self.token = self.is_first, None, None
