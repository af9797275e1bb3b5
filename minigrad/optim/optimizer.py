"""The base of all optimisers: parameter groups, their options, the loop over the parameters, and the saved state."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from .. import functions
from ..changes import changes
from ..engine.backend import Array, backend_of, device_of, on_device_of, owner_of
from ..engine.modes import enable_grad, local, no_grad, notify
from ..engine.tensor import Tensor, wrap
from ..engine.writes import writes
from ..errors import ArgumentError, CallError, describe, likely_argument, nearest
from ..kernels.registry import STEPS
from ..nn.module import StateError
from ..ops.creation import zeros_like
from ..runtime.threads import run_parallel, thread_count
from ..tracer import number
from .flat import SMALL, Flat
from .hyperparameters import checked_option
from .parameters import groups_of, parameters_of, shown
from .saved_state import restored
from .traced_state import State, TracedState

__all__ = ["Optimizer"]


class States(dict[Any, Any]):
    """The state of each parameter. Compiled steps that are bound to one learn that it was exchanged."""

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        changes.note()

    def __delitem__(self, key: Any) -> None:
        super().__delitem__(key)
        changes.note()

    def clear(self) -> None:
        super().clear()
        changes.note()


class ParameterGroup(dict[str, Any]):
    """Parameters and their options. A new learning rate is nothing new: compiled steps read it each time."""

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        if key != "lr":
            changes.note()


Group = dict[str, Any]
BLOCK = 32_768  # elements that a rule is given at a time, so that they stay in the cache between its passes
SHARED = 500_000  # elements: from here on a second thread saves time
UNOFFERED = {
    "foreach": "small parameters take their step together by themselves",
    "fused": "large parameters are changed by compiled kernels by themselves, if there are any",
    "capturable": "a step is compiled by mg.compile",
    "differentiable": "compute the step on tensors, with mg.autograd.grad(…, create_graph=True)",
}  # options of PyTorch's, and what there is in their place
LABELS = ("name", "initial_lr")  # keys of a group that are no options; schedules set `initial_lr`


class Optimizer:
    """The base of every optimiser: a subclass gives its options, its `buffers` and its `update`.

    `params` are Tensors, or dicts with "params" and options of their own (parameter groups). A parameter
    without a gradient (frozen, or not used in the loss) is left as it is: no step, no decay.
    """

    elementwise: ClassVar[bool] = True  # whether the update of an element depends on that element alone
    compiled: ClassVar[bool] = False  # whether the compiler can write a loop from `update`

    def __init_subclass__(cls) -> None:
        if "update" in vars(cls) and "compiled" not in vars(cls):
            cls.compiled = False  # nobody has said so of this rule

    def __init__(self, params: Iterable[Any], options: Mapping[str, Any], unknown: Mapping[str, Any]):
        name = type(self).__name__
        for option in unknown:
            if option in UNOFFERED:
                problem = f"{name}: the option {option!r} is not offered"
                raise CallError(problem, ", ".join(options), fix=f"leave it out: {UNOFFERED[option]}")
            likely = likely_argument(option, options)
            fix = f"write {likely}= instead" if likely else nearest(option, options)
            raise CallError(f"{name} has no option {option!r}", ", ".join(options), fix=fix)
        self.defaults: dict[str, Any] = {key: checked_option(name, key, value) for key, value in options.items()}
        self.param_groups: list[Group] = []
        self.state: dict[Tensor, State] = States()  # Tensors hash by identity
        self._flats: dict[int, Flat] = {}  # the small parameters of each group
        self._is_loaded = False  # whether the buffers came from a state that was loaded
        for group in groups_of(name, params):
            self.add_param_group(group)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        changes.note()

    def buffers(self, group: Group) -> tuple[str, ...]:
        """The names of the arrays, each of the shape of the parameter, that are kept for a parameter of this group."""
        return ()

    def buffer_shapes(self, p: Tensor, group: Group) -> dict[str, tuple[int, ...]]:
        """The buffers of one parameter, by name, with their shapes; an `elementwise` rule has those of `buffers` alone."""
        return dict.fromkeys(self.buffers(group), p.shape)

    def update(self, xp: Any, p: Array, g: Array, state: State, group: Group) -> None:
        """Change the array `p` and the buffers in `state`, given the gradient `g`; `state["step"]` counts from 1.

        Arrays in, arrays written: a compiled kernel can take the place of a rule without anything else changing.
        An `elementwise` rule is given large arrays in pieces.
        """
        raise NotImplementedError

    def check_group(self, group: Group) -> None:
        """Refuse options that exclude each other."""

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Train more parameters from now on: `{"params": [...], "lr": 1e-4}`, other options as the optimiser was given."""
        name = type(self).__name__
        if not isinstance(group, Mapping) or "params" not in group:
            raise CallError(
                f"{name}: this is not a parameter group",
                '{"params": [...], options …}',
                shown(group),
                "add its parameters",
            )
        params = parameters_of(name, group["params"])
        options = {key: self._option(key, value) for key, value in group.items() if key != "params"}
        made = ParameterGroup({"params": params, **self.defaults, **options})
        self.check_group(made)
        taken = {id(p) for known in self.param_groups for p in known["params"]}
        if any(id(p) in taken for p in params):
            raise ArgumentError(
                f"{name}: a parameter is in two groups", "each parameter in one", fix="leave it out of one of them"
            )
        self.param_groups.append(made)
        changes.note()

    def _option(self, key: str, value: Any) -> Any:
        if key not in self.defaults and key not in LABELS:
            raise CallError(
                f"{type(self).__name__}: a parameter group has no option {key!r}",
                ", ".join(self.defaults),
                fix=nearest(key, self.defaults),
            )
        return checked_option(type(self).__name__, key, value)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or, without `set_to_none`, those that there are to zeros."""
        watched = local.mode.tracers
        for group in self.param_groups:
            for p in group["params"]:
                if not set_to_none:
                    p.grad = None if p.grad is None else zeros_like(p)
                elif p.node is not None:
                    p.node.grad = None
                    if watched:
                        notify("cleared", p.node)

    def step(self, closure: Callable[[], Any] | None = None, *, scale: float = 1.0) -> Any:
        """Change every parameter that has a gradient; `scale` multiplies all gradients on the way, as clipping does.

        With `closure`, that computes the gradients first; the loss that it returns is returned.
        """
        if closure is None:
            return self._step(scale)
        if not callable(closure):
            raise CallError(
                f"{type(self).__name__}.step: this is no function",
                "a closure, or nothing",
                repr(closure),
                "step(scale=…)",
            )
        with enable_grad():
            loss = closure()
        self._step(scale)
        return loss

    @np.errstate(all="ignore")
    def _step(self, scale: float) -> None:
        if local.mode.tracers and any(tracer.symbolic for tracer in local.mode.tracers):
            self._traced_step(scale)
            return
        scale = float(scale)
        for index, group in enumerate(self.param_groups):
            if type(group["lr"]) is not float:  # a NumPy number, set by hand, would widen float32 arithmetic
                group["lr"] = float(group["lr"])
            live = [p for p in group["params"] if p.node is not None and p.node.grad is not None]
            if not live:
                continue
            flat = self._flat_of(index, live, group)
            with on_device_of(live[0].data):
                # Weights, gradient and state of each array that the rule is to change.
                items = [(flat.p, flat.g, flat.gather())] if flat is not None else []
                if flat is None or len(flat.params) < len(live):
                    items += [self._item(p, group) for p in live if flat is None or p.data.size > SMALL]
                self._change(items, group, -scale if group.get("maximize") else scale)
                if flat is not None:
                    flat.scatter()
            writes.mark_all([p.data for p in live])

    def _traced_step(self, scale: Any) -> None:
        """A step on Tensors, so that every op of the rule is seen; rate and step count are asked for at each call."""
        rates: dict[Any, Any] = {}
        steps: dict[Any, Any] = {}
        counted = []
        with no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.node is None or p.node.grad is None:
                        continue
                    own = self._state_of(p, group)
                    counted.append(own)
                    if (id(group), p.dtype) not in rates:
                        rates[id(group), p.dtype] = number(_rate_of(group), p.dtype)
                    state = TracedState(
                        own, steps, p.dtype, {name: wrap(own[name]) for name in self.buffer_shapes(p, group)}
                    )
                    gradient = wrap(p.node.grad)
                    gradient = gradient if isinstance(scale, (int, float)) and scale == 1 else gradient * scale
                    gradient = -gradient if group.get("maximize") else gradient
                    self.update(functions, wrap(p.data), gradient, state, {**group, "lr": rates[id(group), p.dtype]})
        for own in counted:
            own["step"] += 1
            notify("counted", own)

    def compiled_state(self) -> tuple[list[Any], Any]:
        """Its tensors and buffers, and what a compiled step depends on: all options but the learning rate."""
        params = [p for group in self.param_groups for p in group["params"]]
        for group in self.param_groups:
            for p in group["params"]:
                self._state_of(p, group)
        buffers = [b for p in params for name, b in self.state[p].items() if name != "step"]
        options = tuple([tuple([(k, v) for k, v in g.items() if k not in ("lr", "params")]) for g in self.param_groups])
        return [*params, *buffers], (options, tuple([id(x) for x in (*params, *buffers)]))

    def _item(self, p: Tensor, group: Group) -> tuple[Array, Array, State]:
        """One parameter, its gradient and its state, in which one more step is counted."""
        with on_device_of(p.data):
            state = self._state_of(p, group)
        state["step"] += 1
        return p.data, p.node.grad, state  # type: ignore[union-attr]

    def _flat_of(self, index: int, live: list[Tensor], group: Group) -> Flat | None:
        """The group's small parameters side by side; None if there are not several, or some have buffers of their own."""
        flat, buffers = self._flats.get(index), self.buffers(group)
        if flat is not None and flat.holds(live, self.state, buffers):  # which are all small
            return flat
        small = [p for p in live if p.data.size <= SMALL] if self.elementwise else []
        if len(small) < 2:
            return None
        if flat is not None and flat.holds(small, self.state, buffers):
            return flat
        is_new = all(p not in self.state for p in small) or self._is_loaded and flat is None
        is_shared = len({id(owner_of(p.data)) for p in live}) < len(live)  # one write would undo another
        are_contiguous = all(p.data.flags.c_contiguous for p in small)
        if not is_new or is_shared or not are_contiguous or len({(p.dtype, device_of(p.data)) for p in small}) > 1:
            return None
        with on_device_of(small[0].data):
            states = [self._state_of(p, group) for p in small]
            if len({state["step"] for state in states}) > 1:
                return None
            made = self._flats[index] = Flat(small, states, buffers)
        return made

    def _change(self, items: list[tuple[Array, Array, State]], group: Group, scale: float) -> None:
        """Change the weights by the rule: many of them in pieces, by a compiled kernel if there is one, on all cores."""
        total = sum([p.size for p, _, _ in items])
        if total <= BLOCK and type(items[0][0]) is np.ndarray:
            for p, g, state in items:
                self.update(np, p, g if scale == 1 else g * scale, state, group)
            return
        pieces: list[tuple[Any, ...]] = []
        for p, g, state in items:
            is_host = type(p) is np.ndarray
            kernel = None
            if self.compiled and p.flags.c_contiguous:
                kernel = STEPS.choose((p,), {}, total)
            if is_host and self.elementwise and p.flags.c_contiguous:
                size = BLOCK if kernel is None else max(math.ceil(total / thread_count()), BLOCK)
                pieces += [(kernel, *piece) for piece in _pieces(p, g, state, size)]
            else:
                with on_device_of(p):
                    self._change_one(kernel, p, g, state, group, scale)
        shares = min(thread_count(), len(pieces)) if total >= SHARED else 1

        @np.errstate(all="ignore")  # which each thread has for itself
        def change(own: list[Any]) -> None:
            for kernel, p, g, state in own:
                self._change_one(kernel, p, g, state, group, scale)

        if pieces:
            run_parallel([partial(change, own) for own in _divided(pieces, shares)])

    def _change_one(self, kernel: Any, p: Array, g: Array, state: State, group: Group, scale: float) -> None:
        if kernel is not None:
            kernel.forward(self, p, g, state, group, scale)
        else:
            self.update(backend_of(p).xp, p, g if scale == 1 else g * scale, state, group)

    def _state_of(self, p: Tensor, group: Group) -> State:
        """The parameter's state, with the buffers its group needs now: new ones are zeros, and others are forgotten."""
        state = self.state.get(p)
        if state is None:
            state = self.state[p] = {"step": 0}
        needed = self.buffer_shapes(p, group)
        for name in [name for name in state if name != "step" and name not in needed]:
            del state[name]
        for name, shape in needed.items():
            buffer = state.get(name)
            if buffer is None:
                state[name] = backend_of(p.data).xp.zeros(shape, p.dtype)
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
                    arrays |= {f"{number}.{name}": wrap(state[name]) for name in self.buffer_shapes(p, group)}
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
        self.state = States(buffers)
        self._flats.clear()
        self._is_loaded = True
        changes.note()

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={self.param_groups[0][key]!r}" for key in self.defaults)
        count = sum(len(group["params"]) for group in self.param_groups)
        return f"{type(self).__name__}({count} parameters in {len(self.param_groups)} groups, {shown})"


def _rate_of(group: Group) -> Callable[[], float]:
    return lambda: float(group["lr"])


def _divided(pieces: list[tuple[Any, ...]], shares: int) -> list[list[tuple[Any, ...]]]:
    """The pieces in shares of about the same number of elements."""
    shared: list[list[tuple[Any, ...]]] = [[] for _ in range(shares)]
    sizes = [0] * shares
    for piece in sorted(pieces, key=lambda piece: -piece[1].size):
        least = sizes.index(min(sizes))
        shared[least].append(piece)
        sizes[least] += piece[1].size
    return shared


def _pieces(p: np.ndarray, g: np.ndarray, state: State, size: int) -> Iterable[tuple[np.ndarray, np.ndarray, State]]:
    """The same stretch of the parameter, its gradient and its buffers at a time, as views."""
    flat_p, flat_g = p.reshape(-1), np.ascontiguousarray(g).reshape(-1)
    flat = {name: value.reshape(-1) for name, value in state.items() if name != "step"}
    for i in range(math.ceil(p.size / size)):
        here = slice(i * size, (i + 1) * size)
        yield flat_p[here], flat_g[here], {"step": state["step"], **{k: v[here] for k, v in flat.items()}}
