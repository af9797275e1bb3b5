"""What compiled loops call for whole numbers and booleans."""

from __future__ import annotations

from typing import Any

from .float32 import exact, index, plus, select, times

__all__ = ["index", "plus", "select", "times"]


@exact
def maximum(a: Any, b: Any) -> Any:
    """The larger."""
    return a if a > b else b


@exact
def minimum(a: Any, b: Any) -> Any:
    """The smaller."""
    return a if a < b else b


@exact
def sign(a: Any) -> Any:
    """-1, 0 or 1."""
    return (a > 0) - (a < 0)
