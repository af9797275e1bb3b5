"""What all optimisers share: parameter groups, their options, the walk over the parameters, and state that can be saved."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ..engine.backend import Array, backend_of, device_of, on_device_of
from ..engine.errors import ArgumentError, CallError, GradientError, describe, nearest
from ..engine.tensor import Tensor, wrap
from ..engine.writes import writes
from ..kernels.steps import step_kernel
from ..kernels.threads import cores, run_all
from ..nn.module import Module, StateError
from .arena import Arena, can_move
from .options import checked
from .state import restored

__all__ = ["Optimizer"]

Group = dict[str, Any]
State = dict[str, Any]
BLOCK = (
    32_768  # elements: what a rule works on at a time should stay in the processor's cache from one pass to the next
)
SHARED = 500_000  # elements: what takes longer than waking another thread
LABELS = ("name", "initial_lr")  # what a group may say besides its options; the second is the schedules'


class Optimizer:
    """The base of every optimiser: a subclass gives its options, its `buffers` and its `update`.

    `params` are Tensors, or dicts with "params" and options of their own (parameter groups). A parameter
    without a gradient (frozen, or not used in the loss) is left as it is: no step, no decay.
    """

    elementwise: ClassVar[bool] = True  # whether an element's update depends on nothing but that element's values
    compiled: ClassVar[str | None] = None  # the name under which minigrad.kernels may have this rule compiled

    def __init_subclass__(cls) -> None:
        if "update" in vars(cls) and "compiled" not in vars(cls):
            cls.compiled = None  # another rule than the one that was compiled

    def __init__(self, params: Iterable[Any], options: Mapping[str, Any], unknown: Mapping[str, Any]):
        name = type(self).__name__
        for option in unknown:
            raise CallError(f"{name} has no option {option!r}", ", ".join(options), fix=nearest(option, options))
        self.defaults: Group = {key: checked(name, key, value) for key, value in options.items()}
        self.param_groups: list[Group] = []
        self.state: dict[Tensor, State] = {}  # Tensors hash by identity
        self._arenas: dict[int, Arena | list[Tensor]] = {}  # of each group; before there is one, who took the last step
        for group in _groups(name, params):
            self.add_param_group(group)

    def buffers(self, group: Group) -> tuple[str, ...]:
        """The names of the arrays, each like the parameter, that are kept for a parameter of this group."""
        raise NotImplementedError

    def update(self, xp: Any, p: Array, g: Array, state: State, group: Group) -> None:
        """Change the array `p` and the buffers in `state`, given the gradient `g`; `state["step"]` counts from 1.

        Arrays in, arrays written: a compiled kernel can take the place of a rule without anything else changing.
        An `elementwise` rule is given large arrays in pieces.
        """
        raise NotImplementedError

    def check_group(self, group: Group) -> None:
        """Refuse options that do not go together."""

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Train more parameters from now on: `{"params": [...], "lr": 1e-4}`, other options as the optimiser was given."""
        name = type(self).__name__
        if not isinstance(group, Mapping) or "params" not in group:
            raise CallError(
                f"{name}: this is not a parameter group",
                '{"params": [...], options …}',
                _told(group),
                "add its parameters",
            )
        params = _parameters(name, group["params"])
        options = {key: self._option(key, value) for key, value in group.items() if key != "params"}
        made = {"params": params, **self.defaults, **options}
        self.check_group(made)
        taken = {id(p) for known in self.param_groups for p in known["params"]}
        if any(id(p) in taken for p in params):
            raise ArgumentError(
                f"{name}: a parameter is in two groups", "each parameter in one", fix="leave it out of one of them"
            )
        self.param_groups.append(made)

    def _option(self, key: str, value: Any) -> Any:
        if key not in self.defaults and key not in LABELS:
            raise CallError(
                f"{type(self).__name__}: a parameter group has no option {key!r}",
                ", ".join(self.defaults),
                fix=nearest(key, self.defaults),
            )
        return checked(type(self).__name__, key, value)

    def zero_grad(self) -> None:
        """Forget the gradients of all parameters, so that the next backward starts from nothing."""
        for group in self.param_groups:
            for p in group["params"]:
                p.grad = None

    @np.errstate(all="ignore")
    def step(self, scale: float = 1.0) -> None:
        """Change every parameter that has a gradient; `scale` multiplies all gradients on the way, as clipping does."""
        for number, group in enumerate(self.param_groups):
            group["lr"] = float(group["lr"])  # a NumPy number, set by hand, would widen float32 arithmetic
            live = [p for p in group["params"] if p.node is not None and p.node.grad is not None]
            if not live:
                continue
            with on_device_of(live[0].data):
                arena, states = self._prepared(number, live, group)
                for state in states:
                    state["step"] += 1
                if arena is not None:
                    arena.gather()
                    self._change(arena.p, arena.g, {"step": states[0]["step"], **arena.state}, group, scale)
            for p, state in zip(live, states):
                if arena is None:
                    with on_device_of(p.data):
                        self._change(p.data, p.node.grad, state, group, scale)
                writes.mark(p.data)

    def _prepared(self, number: int, live: list[Tensor], group: Group) -> tuple[Arena | None, list[State]]:
        """The group's parameters side by side, if the same ones have gradients for the second time; and their states."""
        arena, buffers = self._arenas.get(number), self.buffers(group)
        if isinstance(arena, Arena) and arena.holds(live, self.state, buffers):
            return arena, arena.states
        states = [self._state_of(p, group) for p in live]
        again = isinstance(arena, list) and len(arena) == len(live) and all(map(operator.is_, arena, live))
        alike = len({state["step"] for state in states}) == 1
        if self.elementwise and again and alike and len(live) > 1 and can_move(live, states, buffers):
            arena = self._arenas[number] = Arena(live, states, buffers)
            return arena, states
        self._arenas[number] = live
        return None, states

    def _change(self, p: Array, g: Array, state: State, group: Group, scale: float) -> None:
        """Change the weights: large ones in pieces, by a compiled kernel or by the rule, on all cores."""
        kernel = step_kernel(self.compiled, p) if p.flags.c_contiguous else None
        if kernel is not None and type(p) is not np.ndarray:
            kernel(self, p, g, state, group, scale)
            return
        if not (self.elementwise and p.size > BLOCK and _is_flat(p)):
            self.update(backend_of(p).xp, p, g if scale == 1 else g * scale, state, group)
            return
        size = BLOCK if kernel is None else max(math.ceil(p.size / cores()), BLOCK)
        pieces = list(_pieces(p, g, state, size))

        @np.errstate(all="ignore")  # which each thread has for itself
        def change(own: list[Any]) -> None:
            for p, g, state in own:
                if kernel is not None:
                    kernel(self, p, g, state, group, scale)
                else:
                    self.update(np, p, g if scale == 1 else g * scale, state, group)

        shares = min(cores(), len(pieces)) if p.size >= SHARED else 1
        run_all([partial(change, pieces[i::shares]) for i in range(shares)])

    def _state_of(self, p: Tensor, group: Group) -> State:
        """The parameter's state, with the buffers its group needs now: new ones are zeros, and others are forgotten."""
        state = self.state.get(p)
        if state is None:
            state = self.state[p] = {"step": 0}
        needed = self.buffers(group)
        for name in [name for name in state if name != "step" and name not in needed]:
            del state[name]
        for name in needed:
            buffer = state.get(name)
            if buffer is None:
                state[name] = backend_of(p.data).xp.zeros(p.shape, p.dtype)
            elif buffer.dtype != p.dtype or device_of(buffer) != device_of(p.data):
                raise StateError(
                    f"{type(self).__name__}: a parameter was moved after its first step",
                    f"{describe(buffer)} on {device_of(buffer)}",
                    f"{describe(p)} on {p.device}",
                    "move the model first, then make the optimiser and load its state",
                )
        return state

    def state_dict(self) -> dict[str, dict[str, Any]]:
        """All that a later run needs: `{"arrays": {"0.exp_avg": Tensor, …}, "values": what JSON can hold}`.

        Parameters are numbered through all groups. The arrays share memory with the optimiser.
        """
        arrays: dict[str, Tensor] = {}
        steps: dict[str, int] = {}
        number = 0
        for group in self.param_groups:
            for p in group["params"]:
                if p in self.state:
                    with on_device_of(p.data):
                        state = self._state_of(p, group)
                    steps[str(number)] = state["step"]
                    arrays |= {f"{number}.{name}": wrap(state[name]) for name in self.buffers(group)}
                number += 1
        groups = [
            {**{k: list(v) if isinstance(v, tuple) else v for k, v in group.items()}, "params": len(group["params"])}
            for group in self.param_groups
        ]
        return {"arrays": arrays, "values": {"kind": type(self).__name__, "groups": groups, "steps": steps}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a state (options, step counts and buffers); if anything does not fit, nothing is changed."""
        groups, buffers = restored(self, state)
        for own, options in zip(self.param_groups, groups):
            params = own["params"]
            own.clear()
            own.update(params=params, **options)
        self.state = buffers
        self._arenas.clear()

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={self.param_groups[0][key]!r}" for key in self.defaults)
        count = sum(len(group["params"]) for group in self.param_groups)
        return f"{type(self).__name__}({count} parameters in {len(self.param_groups)} groups, {shown})"


def _told(value: Any) -> str:
    return f"a dict with {', '.join(map(str, value))}" if isinstance(value, Mapping) else type(value).__name__


def _groups(name: str, params: Any) -> list[Any]:
    """The groups that were given, or one group of all the tensors that were given."""
    if isinstance(params, (Tensor, Module, Mapping, str)) or not isinstance(params, Iterable):
        fix = "pass model.parameters()" if isinstance(params, Module) else "put it into a list"
        raise CallError(
            f"{name}: the parameters must come in a list", "Tensors, or dicts of groups", type(params).__name__, fix
        )
    given = list(params)
    if not given:
        raise ArgumentError(
            f"{name}: there are no parameters to train",
            "at least one",
            "an empty list",
            "check that the layers are attributes of the model: list(model.parameters())",
        )
    return given if isinstance(given[0], Mapping) else [{"params": given}]


def _parameters(name: str, params: Any) -> list[Tensor]:
    """The tensors of one group; each must be a leaf and come once."""
    found = [params] if isinstance(params, Tensor) else list(params)
    for p in found:
        if not isinstance(p, Tensor):
            raise CallError(f"{name}: only Tensors can be trained", "a Parameter or a Tensor", describe(p))
        if not p.is_leaf:
            raise GradientError(
                f"{name}: only leaves can be trained",
                "a Tensor that no recorded operation made",
                repr(p.node),
                "pass the tensor it was computed from, or x.detach().requires_grad_()",
            )
    if len({id(p) for p in found}) != len(found):
        raise ArgumentError(
            f"{name}: a parameter is given twice, and would be changed twice in each step",
            "each parameter once",
            fix="a model's own parameters() gives a tied one once",
        )
    return found


def _is_flat(array: Array) -> bool:
    """Whether pieces of it can be changed through a flat view. A GPU has no use for pieces."""
    return type(array) is np.ndarray and array.flags.c_contiguous


def _pieces(p: np.ndarray, g: np.ndarray, state: State, size: int) -> Iterable[tuple[np.ndarray, np.ndarray, State]]:
    """The same stretch of the parameter, its gradient and its buffers at a time, as views."""
    flat_p, flat_g = p.reshape(-1), np.ascontiguousarray(g).reshape(-1)
    flat = {name: value.reshape(-1) for name, value in state.items() if name != "step"}
    for i in range(math.ceil(p.size / size)):
        here = slice(i * size, (i + 1) * size)
        yield flat_p[here], flat_g[here], {"step": state["step"], **{k: v[here] for k, v in flat.items()}}
