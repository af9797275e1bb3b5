"""Changes to modules in place that can be undone and done again: a wrapper around a forward method, another attribute.

Parameters keep their names and stay the same objects, so that state dicts, optimisers and checkpoints need not know.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..changes import changes
from ..engine.backend import backend_named
from ..engine.graph import leaf
from ..engine.tensor import Tensor, wrap
from ..nn import Module

__all__ = ["Patches", "placeholder", "set_data"]

_ABSENT = object()


class Patches:
    """A list of changes to attributes of modules; each is made from what was there before."""

    def __init__(self) -> None:
        self._planned: list[tuple[Module, str, Callable[[Any], Any]]] = []
        self._done: list[tuple[Module, str, Any]] = []

    def set(self, module: Module, name: str, value: Any) -> None:
        """Plan another value of an attribute."""
        self._planned.append((module, name, lambda old: value))

    def wrap(self, module: Module, wrapper: Callable[..., Any]) -> None:
        """Plan that `wrapper(forward, *args, **kwargs)` is called in the place of `forward(*args, **kwargs)`."""
        self._planned.append((module, "forward", lambda old: partial(wrapper, old)))

    def apply(self) -> None:
        """Do what was planned, in that order."""
        for module, name, make in self._planned:
            own = vars(module)
            self._done.append((module, name, own.get(name, _ABSENT)))
            own[name] = make(getattr(module, name))
        changes.note()

    def undo(self) -> None:
        """Undo it."""
        for module, name, old in reversed(self._done):
            if old is _ABSENT:
                del vars(module)[name]
            else:
                vars(module)[name] = old
        self._done.clear()
        changes.note()


def placeholder(shape: tuple[int, ...], dtype: Any, device: str) -> Tensor:
    """Zeros that take no memory, in the place of what another rank computes."""
    backend = backend_named(device)
    with backend.on(device):
        return wrap(backend.xp.broadcast_to(backend.xp.zeros((), dtype), shape))


def set_data(p: Tensor, array: Any) -> None:
    """Give a parameter another array, and forget its gradient."""
    p.data = array
    if p.node is not None:
        hooks, p.node = p.node.hooks, leaf(array)
        p.node.hooks = hooks
