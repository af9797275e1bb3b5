"""Functions that are called with the gradient of a tensor, whenever a backward computes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .changes import changes
from .engine.backend import as_array, duplicate
from .engine.modes import notify
from .engine.tensor import Tensor, node_of, wrap
from .engine.writes import tick
from .errors import ArgumentError, GradientError, describe

__all__ = ["HookHandle", "register_hook"]


class HookHandle:
    """What `register_hook` returns: `remove()` takes the hook away again."""

    def __init__(self, hooks: dict[int, Any]):
        self._hooks, self.key = hooks, tick()
        changes.note()

    def remove(self) -> None:
        self._hooks.pop(self.key, None)
        changes.note()


def _hook_on_gradient(hook: Callable[[Tensor], Tensor | None]) -> Callable[[Any], Any]:
    """What a sweep calls: it has arrays, or Tensors when it builds a graph; the hook gets a copy, which it may write into."""

    def run(g: Any) -> Any:
        given = g.clone() if isinstance(g, Tensor) else wrap(duplicate(as_array(g)))
        result = hook(given)
        if result is None:
            result = given
        elif not isinstance(result, Tensor) or _look(result) != _look(given):
            raise GradientError(
                "a hook must return None or a gradient like the one it got",
                f"a Tensor, {describe(given)}, on device {given.device}",
                describe(result) + (f" on device {result.device}" if isinstance(result, Tensor) else ""),
            )
        return result if isinstance(g, Tensor) else duplicate(result.data)

    return run


def _look(t: Tensor) -> tuple[Any, ...]:
    return t.shape, t.dtype, t.device


def register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> HookHandle:
    """Call `hook(gradient)` whenever a backward computes this tensor's gradient; what it returns replaces it."""
    if not callable(hook):
        raise ArgumentError("register_hook: a hook is a function of the gradient", "a callable", type(hook).__name__)
    node = node_of(self, "register_hook")
    notify("hooked")
    if node.hooks is None:
        node.hooks = {}
    handle = HookHandle(node.hooks)
    node.hooks[handle.key] = _hook_on_gradient(hook)
    return handle


setattr(Tensor, "register_hook", register_hook)  # noqa: B010  (a type checker knows it from methods.pyi)
