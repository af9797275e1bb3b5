"""Callbacks: objects, or single functions, that are called while a Trainer trains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError, CallError, describe, nearest
from ..ops.creation import tensor
from ..saving.structure import described, restored

if TYPE_CHECKING:
    from .trainer import Trainer

__all__ = ["Callback", "Events", "callback_states", "load_callback_states"]

# An event of Trainer.on, and the method of a callback that is called at it.
METHODS = {"step": "on_step", "epoch": "on_epoch", "valid": "on_validation", "save": "on_checkpoint", "stop": "on_end"}
Handler = Callable[[Any, dict[str, Any]], Any]


class Callback:
    """What `Trainer(…, callbacks=[…])` takes: an object with some of these methods; this class need not be its base.

    Each method is given the trainer and a dict, and may call `trainer.stop(reason)`. If the callback also has
    `state_dict()` and `load_state_dict(state)`, its state is a part of every checkpoint.

    >>> class Every(Callback):
    ...     def on_epoch(self, trainer, info):
    ...         print(f"epoch {info['epoch']}: {info['loss']:.3f}")
    """

    def on_step(self, trainer: Trainer, info: dict[str, Any]) -> None:
        """After each step; `info` has `step`, `loss`, the other terms and metrics, `lr`, `grad_norm` and `taken`."""

    def on_epoch(self, trainer: Trainer, info: dict[str, Any]) -> None:
        """After the last step of an epoch; `info` has `epoch`, which counts from 1, `step` and the means of the epoch."""

    def on_validation(self, trainer: Trainer, info: dict[str, Any]) -> None:
        """After a validation; `info` has `step` and the means over the validation data."""

    def on_checkpoint(self, trainer: Trainer, info: dict[str, Any]) -> None:
        """After a checkpoint was written, on rank 0; `info` has `step`, `path` and `best`."""

    def on_end(self, trainer: Trainer, info: dict[str, Any]) -> None:
        """When training ends other than by an error; `info` has `reason`."""


class Events(dict[str, list[Handler]]):
    """The functions that are to be called at each event."""

    def __init__(self, callbacks: Iterable[Any]):
        super().__init__({event: [] for event in METHODS})
        for callback in callbacks:
            own = {event: getattr(callback, method, None) for event, method in METHODS.items()}
            if isinstance(callback, type) or not any(map(callable, own.values())):
                raise CallError(
                    "Trainer: this is no callback",
                    f"an object with a method of {', '.join(METHODS.values())}",
                    callback.__name__ if isinstance(callback, type) else describe(callback),
                    "for a function: trainer.on('step', function)",
                )
            for event, function in own.items():
                if callable(function) and getattr(type(callback), METHODS[event], None) is not _unchanged(event):
                    self[event].append(function)

    def on(self, event: str, function: Handler) -> None:
        """Call a function at an event."""
        if event not in self:
            raise ArgumentError(f"Trainer.on: there is no event {event!r}", fix=nearest(event, METHODS))
        self[event].append(function)

    def emit(self, event: str, trainer: Trainer, info: dict[str, Any]) -> None:
        """Call the functions of an event, in the order in which they were added."""
        for function in self[event]:
            function(trainer, info)


def _unchanged(event: str) -> Any:
    """The method that does nothing, which need not be called."""
    return getattr(Callback, METHODS[event])


def callback_states(callbacks: Sequence[Any], tensors: dict[str, Any]) -> list[dict[str, Any]]:
    """The states of the callbacks that have one, for a checkpoint, to whose tensors theirs are added."""
    kept = [callback for callback in callbacks if hasattr(callback, "state_dict")]
    return [
        {"kind": type(callback).__name__, "state": described(callback.state_dict(), f"callback.{i}", tensors)}
        for i, callback in enumerate(kept)
    ]


def load_callback_states(
    callbacks: Sequence[Any], saved: Any, tensors: dict[str, Any], say: Callable[[str], None]
) -> None:
    """Give the callbacks the states that `callback_states` returned; says so if the run had others."""
    kept = [callback for callback in callbacks if hasattr(callback, "state_dict")]
    known = saved if isinstance(saved, list) else []
    now, then = [type(callback).__name__ for callback in kept], [state["kind"] for state in known]
    if now != then:
        say(f"resume: the callbacks with a state were {', '.join(then) or 'none'}, and are {', '.join(now) or 'none'}")
        return
    for callback, state in zip(kept, known):
        callback.load_state_dict(restored(state["state"], lambda name: tensor(tensors[name])))
