"""The state of a parameter while a step is traced: what depends on the step count is asked for at each call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..engine.modes import notify
from ..tracer import number

__all__ = ["State", "TracedState", "at_step"]

State = dict[str, Any]


class TracedState(dict[str, Any]):
    """The traced buffers of a parameter, and its step count. Parameters that have taken as many steps share their numbers."""

    def __init__(self, own: State, shared: dict[Any, Any], dtype: Any, buffers: dict[str, Any]):
        super().__init__(buffers)
        self.own, self.shared, self.dtype = own, shared, dtype

    def __missing__(self, key: str) -> Any:
        self[key] = step = self.number(float)  # the step, asked for by rules that need it
        return step

    def number(self, function: Callable[..., float], *args: Any) -> Any:
        """`function(step, *args)`, as a number that is computed anew for each step."""
        place = self.own["step"], self.dtype, function, args
        if place not in self.shared:
            states: list[State] = []
            self.shared[place] = states, number(partial(_at_next_step, self.own, function, args), self.dtype)
            notify("decided", partial(_are_in_step, states))
        states, found = self.shared[place]
        states.append(self.own)
        return found


def at_step(state: State, function: Callable[..., float], *args: Any) -> Any:
    """`function(step, *args)` of the step count in `state`, for what a rule cannot write with operators alone."""
    if isinstance(state, TracedState):
        return state.number(function, *args)
    return function(state["step"], *args)


def _at_next_step(state: State, function: Callable[..., float], args: tuple[Any, ...]) -> float:
    return function(state["step"] + 1, *args)


def _are_in_step(states: list[State]) -> bool:
    return len({state["step"] for state in states}) == 1
