"""Hooks of modules: functions that see, and may change, what goes in, what comes out, and the gradients of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import tree
from ..engine.backend import as_array, duplicate
from ..engine.modes import local, notify
from ..engine.op import op
from ..engine.tensor import Tensor, wrap
from ..errors import GradientError, describe

if TYPE_CHECKING:
    from .module import Module

Gradients = tuple[Any, ...]  # a Tensor each, or None where there is no gradient


class WithKwargs(NamedTuple):
    """A hook that also gets the arguments by name."""

    hook: Callable[..., Any]


class OnBackward(NamedTuple):
    """A hook on gradients: of the outputs alone, before the backward of the module, or of inputs and outputs, after it."""

    hook: Callable[..., Any]
    before: bool


def forward_with_hooks(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`module.forward`, with its hooks around it."""
    for pre_hook in tuple(module._pre_hooks.values()):
        if isinstance(pre_hook, WithKwargs):
            args, kwargs = pre_hook.hook(module, args, kwargs) or (args, kwargs)
        elif (changed := pre_hook(module, args)) is not None:
            args = changed if isinstance(changed, tuple) else (changed,)
    on_backward = [hook for hook in module._hooks.values() if isinstance(hook, OnBackward)]
    passage = _Passage(module, on_backward) if on_backward and local.mode.record else None
    args = args if passage is None else passage.enter(args)
    result = module.forward(*args, **kwargs)
    for hook in tuple(module._hooks.values()):
        if isinstance(hook, OnBackward):
            continue
        changed = (
            hook.hook(module, args, kwargs, result) if isinstance(hook, WithKwargs) else hook(module, args, result)
        )
        result = result if changed is None else changed
    return result if passage is None else passage.leave(result)


@op(several=True, view=True)
def _crossing(xp, *tensors, run):
    """The tensors as they are; their gradients pass through `run`, all at once."""
    return tuple([x[...] for x in tensors])  # not `x` itself: what looks at memory of another is told by its base


_crossing.vjp(lambda g, needs, run: run(g))


class _Passage:
    """One call of a module: a node around all its inputs, and one around all its outputs, at which hooks see the gradients."""

    def __init__(self, module: Module, hooks: Sequence[OnBackward]):
        self.module = module
        self.before = [hook.hook for hook in hooks if hook.before]
        self.after = [hook.hook for hook in hooks if not hook.before]
        self.of_inputs: list[bool] = []  # which arguments have a gradient
        self.of_outputs: Gradients = ()

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        self.of_inputs = [_has_gradient(x) for x in args]
        return _across(args, self.of_inputs, self._leaving)

    def leave(self, result: Any) -> Any:
        outputs = list(tree.leaves(result))
        flags = [_has_gradient(x) for x in outputs]
        return tree.unflatten(result, _across(outputs, flags, lambda g: self._arriving(g, flags)))

    def _arriving(self, g: Sequence[Any], flags: list[bool]) -> list[Any]:
        """The gradients of all outputs are known, and nothing of the module's own yet."""
        given = _as_tensors(g, flags)
        for hook in self.before:
            given = _replaced(given, hook(self.module, given))
        self.of_outputs = given
        if not any(self.of_inputs):
            self._run_after(tuple([None for _ in self.of_inputs]))
        return _as_given(given, g)

    def _leaving(self, g: Sequence[Any]) -> list[Any]:
        """The gradients of all inputs are known: the backward of the module is done."""
        return _as_given(self._run_after(_as_tensors(g, self.of_inputs)), g)

    def _run_after(self, given: Gradients) -> Gradients:
        for hook in self.after:
            given = _replaced(given, hook(self.module, given, self.of_outputs))
        return given


def _has_gradient(x: Any) -> bool:
    return isinstance(x, Tensor) and x.node is not None


def _across(values: Sequence[Any], flags: list[bool], run: Callable[..., Any]) -> tuple[Any, ...]:
    """The values, those with a gradient behind one node."""
    if not any(flags):
        return tuple(values)
    for x in values:
        if isinstance(x, Tensor):
            notify("read", x, "a hook on gradients")  # which a compiled function would run while it is traced alone
    passed = iter(_crossing([x for x, flag in zip(values, flags) if flag], run=run))
    return tuple([next(passed) if flag else x for x, flag in zip(values, flags)])


def _as_tensors(g: Sequence[Any], flags: list[bool]) -> Gradients:
    """A gradient, in a copy that a hook may write into, or None for each value."""
    parts = iter([part.clone() if isinstance(part, Tensor) else wrap(duplicate(as_array(part))) for part in g])
    return tuple([next(parts) if flag else None for flag in flags])


def _as_given(gradients: Gradients, g: Sequence[Any]) -> list[Any]:
    """Back to what the sweep carries: arrays, or Tensors when it builds a graph."""
    is_graph = any(isinstance(part, Tensor) for part in g)
    return [part if is_graph else part.data for part in gradients if part is not None]


def _replaced(given: Gradients, result: Any) -> Gradients:
    """What a hook on gradients returned in their place; None keeps them."""
    if result is None:
        return given
    made = result if isinstance(result, tuple) else (result,)
    if len(made) != len(given) or any(
        new is not old and (not isinstance(new, Tensor) or not isinstance(old, Tensor) or _look(new) != _look(old))
        for new, old in zip(made, given)
    ):
        raise GradientError("a hook must return None or gradients like those it got", describe(given), describe(made))
    return made


def _look(t: Tensor) -> tuple[Any, ...]:
    return t.shape, t.dtype, t.device
