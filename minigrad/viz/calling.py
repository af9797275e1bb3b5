"""What a model or function that is to be drawn can be called with, told before it is called."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..engine.errors import ArgumentError, nearest
from ..nn.module import Module

__all__ = ["check_inputs", "check_options", "input_words"]

OPTIONS = ("name", "depth", "direction", "color", "fused", "seed")  # of `graph` itself
ONE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def check_options(what: Any, options: Iterable[str]) -> None:
    """Refuse a keyword that was meant for `graph`, and that neither it nor the model knows."""
    signature = _signature(what) if callable(what) else inspect.Signature()
    if signature is None or any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
        return
    for option in options:
        if option not in signature.parameters and difflib.get_close_matches(option, OPTIONS):
            raise ArgumentError(f"graph: unknown option {option!r}", ", ".join(OPTIONS), fix=nearest(option, OPTIONS))


def check_inputs(what: Any, inputs: Sequence[Any], options: Mapping[str, Any]) -> None:
    """Refuse to call without any input what needs one."""
    signature = _signature(what)
    if signature is None or inputs or options:
        return
    try:
        signature.bind()
    except TypeError:
        kind, name = ("model", type(what).__name__) if isinstance(what, Module) else ("f", _name(what))
        raise ArgumentError(f"graph: {name} needs an input", str(signature), "none", f"graph({kind}, x)") from None


def input_words(what: Any, amount: int) -> list[str]:
    """What a function calls its first inputs; they are numbered where it has no names for them."""
    signature = _signature(what)
    words = [] if signature is None else [p.name for p in signature.parameters.values() if p.kind in ONE][:amount]
    rest = range(len(words), amount)
    return words + [f"input {i}" if amount > 1 else "input" for i in rest]


def _signature(what: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(what.forward if isinstance(what, Module) else what)
    except (TypeError, ValueError, AttributeError):
        return None


def _name(what: Any) -> str:
    return str(getattr(what, "__name__", type(what).__name__))
