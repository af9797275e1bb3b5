"""Mixed precision: weights, activations and gradients in float16, and master weights in float32 for the optimiser.

float16 has 11 bits of precision, so that a small step would be lost in a large weight: the optimiser changes float32 master
weights, and the model has float16 copies of them. Its smallest number is 6e-8, so that small gradients would become 0: the
loss is multiplied by a large scale before backward, and the gradients are divided by it after.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import tree
from ..debug import nonfinite
from ..engine.backend import Array, on_device_of
from ..engine.graph import leaf
from ..engine.tensor import Tensor, wrap
from ..engine.writes import writes
from ..errors import ArgumentError, CallError
from ..nn.clipping import clip_grad_norm_
from ..nn.module import Module, Parameter
from ..signature import Constructed
from .optimizer import Optimizer
from .saved_state import like, misfit, parts

__all__ = ["LossScaler", "MixedPrecision"]

LARGEST, SMALLEST = 2.0**24, 2.0**-24


class LossScaler(Constructed):
    """The scale of the loss: halved when gradients overflow, doubled after `interval` steps without overflow."""

    def __init__(self, init: float = 2.0**16, growth: float = 2.0, backoff: float = 0.5, interval: int = 2000):
        if not (SMALLEST <= init <= LARGEST and growth >= 1 and 0 < backoff < 1 and interval >= 1):
            raise ArgumentError(
                "LossScaler: these settings cannot work",
                f"init from {SMALLEST:g} to {LARGEST:g}, growth from 1, backoff between 0 and 1, interval from 1",
                f"init={init}, growth={growth}, backoff={backoff}, interval={interval}",
            )
        self.scale, self.growth, self.backoff, self.interval = float(init), growth, backoff, interval
        self.good = 0  # steps since the scale last changed
        self.skipped = 0  # steps lost to overflow so far

    def update(self, overflow: bool) -> None:
        """Adapt the scale after a step."""
        if overflow:
            self.skipped += 1
            self.scale, self.good = max(self.scale * self.backoff, SMALLEST), 0
            return
        self.good += 1
        if self.good == self.interval:
            self.scale, self.good = min(self.scale * self.growth, LARGEST), 0

    def state_dict(self) -> dict[str, Any]:
        """The state, in JSON values."""
        return {"scale": self.scale, "good": self.good, "skipped": self.skipped}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state."""
        if not isinstance(state, Mapping) or state.keys() != self.state_dict().keys():
            raise misfit("LossScaler", "it is not what state_dict() gives")
        scale, good, skipped = state["scale"], state["good"], state["skipped"]
        counts = all(type(n) is int and n >= 0 for n in (good, skipped))
        if type(scale) not in (int, float) or not SMALLEST <= scale <= LARGEST or not counts:
            raise misfit("LossScaler", "it holds impossible values", got=dict(state))
        self.scale, self.good, self.skipped = float(scale), good, skipped


class MixedPrecision(Constructed):
    """A model in float16 whose optimiser works on float32 masters of its weights.

    Call it as the model: floating inputs become float16, and outputs float32, so that the loss is computed in float32.
    Then `backward(loss)`, and `step()`, which says whether the weights were changed: a step whose gradients overflowed
    is skipped, and the scale of the loss lowered. All other attributes, such as `eval()` or `encode`, are the model's.

    It halves the memory of weights, activations and gradients. It saves time only on a GPU: a CPU converts to float32 to
    compute.

    >>> import minigrad as mg
    >>> model = mg.nn.Linear(2, 1)
    >>> optimizer, scaler = mg.optim.SGD(model.parameters(), lr=0.1), mg.optim.LossScaler(init=1024)
    >>> mixed = mg.optim.MixedPrecision(model, optimizer, scaler)
    >>> mixed.backward((mixed(mg.ones(3, 2)) ** 2).mean())
    >>> mixed.step(), model.weight.dtype.name
    (True, 'float16')
    """

    def __init__(self, model: Module, optimizer: Optimizer, scaler: LossScaler | None = None):
        self.model, self.optimizer, self.scaler = model, optimizer, scaler or LossScaler()
        self._copies: dict[Tensor, Tensor] = {}  # from each master to the parameter of the model
        self._scaled = self._unscaled = False  # whether gradients are of the scaled loss; whether the masters have them
        self._adopt()
        for tensor in (*model.parameters(), *_tables(model)):
            _to_half(tensor)

    @property
    def masters(self) -> list[Tensor]:
        """The float32 weights, in the order of the optimiser's groups."""
        return [master for group in self.optimizer.param_groups for master in group["params"]]

    def _adopt(self) -> None:
        """Replace every parameter of the optimiser that has no float32 master yet by one."""
        own = {id(p) for p in self.model.parameters()}
        given = [p for p in self.masters if p not in self._copies]
        if others := [p for p in given if id(p) not in own]:
            raise ArgumentError(
                "MixedPrecision: the optimiser has parameters that are not the model's",
                "parameters of this model",
                f"{len(others)} of {len(given)} are of something else",
                "make the optimiser with model.parameters() of the same model, once",
            )
        for group in self.optimizer.param_groups:
            for i, p in enumerate(group["params"]):
                if p in self._copies:
                    continue
                master = Parameter(p.detach(), dtype="float32")
                group["params"][i] = master
                if p in self.optimizer.state:
                    self.optimizer.state[master] = self.optimizer.state.pop(p)
                self._copies[master] = p
                _to_half(p)

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Train more parameters from now on, with masters of their own."""
        self.optimizer.add_param_group(group)
        self._adopt()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = self.model(*[_cast(a, "float16") for a in args], **{k: _cast(a, "float16") for k, a in kwargs.items()})
        return _cast(result, "float32")

    def __getattr__(self, name: str) -> Any:
        if name == "model":  # not set before __init__ has run
            raise AttributeError(name)
        return getattr(self.model, name)

    def backward(self, loss: Tensor) -> None:
        """Backward of the loss, multiplied by the scale."""
        if self._unscaled:
            raise CallError(
                "MixedPrecision: backward after unscale would mix scaled and unscaled gradients",
                fix="call step() first",
            )
        self._scaled = True
        with np.errstate(over="ignore"):  # step() handles an overflow
            (loss.astype("float32") * self.scaler.scale).backward()

    def unscale(self) -> None:
        """Give the masters the gradients, in float32 and divided by the scale. `step()` calls it if you do not."""
        if self._unscaled:
            return
        for master in self.masters:
            copy = self._copies.get(master)
            if copy is None:
                raise CallError(
                    "MixedPrecision: the optimiser has a parameter without a master",
                    fix="add parameter groups through MixedPrecision.add_param_group",
                )
            g = None if copy.node is None else copy.node.grad
            if g is not None:
                if not self._scaled:
                    raise CallError(
                        "MixedPrecision: the gradients are not of a scaled loss, and would be made far too small",
                        "mixed.backward(loss)",
                        "loss.backward()",
                        "call mixed.zero_grad(), then mixed.backward(loss) and mixed.step()",
                    )
                with on_device_of(g):
                    g = g.astype("float32") * (1 / self.scaler.scale)
            master.grad = g
        self._unscaled = True

    def step(self, max_norm: float | None = None) -> bool:
        """Clip to `max_norm`, if given, and take a step, unless a gradient overflowed; then clear the gradients."""
        self.unscale()
        gradients = [master.node.grad for master in self.masters if master.node and master.node.grad is not None]
        finite = not any(map(nonfinite, gradients))
        if finite:
            if max_norm is not None:
                clip_grad_norm_(self.masters, max_norm)
            self.optimizer.step()
            for master in self.masters:
                if master.grad is not None:
                    _write(master.data, self._copies[master])
        self.scaler.update(overflow=not finite)
        self.zero_grad()
        return finite

    def zero_grad(self) -> None:
        """Set the gradients of the model and of the masters to None."""
        self.optimizer.zero_grad()
        for copy in self._copies.values():
            copy.grad = None
        self._scaled = self._unscaled = False

    def state_dict(self) -> dict[str, dict[str, Any]]:
        """Masters, optimiser and scale: `{"arrays": {"master.0": Tensor, …}, "values": what JSON can hold}`."""
        inner = self.optimizer.state_dict()
        arrays = {f"master.{i}": wrap(master.data) for i, master in enumerate(self.masters)}
        arrays |= {f"optimizer.{name}": array for name, array in inner["arrays"].items()}
        return {"arrays": arrays, "values": {"optimizer": inner["values"], "scaler": self.scaler.state_dict()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load masters, optimiser and scale, and copy the masters to the model; if anything does not fit, nothing is changed."""
        values, arrays = parts("MixedPrecision", state)
        masters = self.masters
        names = [f"master.{i}" for i in range(len(masters))]
        inner = {name.removeprefix("optimizer."): a for name, a in arrays.items() if name.startswith("optimizer.")}
        if (
            values.keys() != {"optimizer", "scaler"}
            or len(inner) + len(names) != len(arrays)
            or not {*names} <= arrays.keys()
        ):
            raise misfit(
                "MixedPrecision", "it has other arrays or values", f"{len(names)} masters, an optimiser, a scaler"
            )
        loaded = [like("MixedPrecision", name, master, arrays[name]) for name, master in zip(names, masters)]
        scaler = LossScaler()
        scaler.load_state_dict(values["scaler"])
        self.optimizer.load_state_dict({"arrays": inner, "values": values["optimizer"]})
        self.scaler.load_state_dict(values["scaler"])
        for master, array in zip(masters, loaded):
            _write(array, master)
            _write(array, self._copies[master])


def _tables(model: Module) -> list[Tensor]:
    """The buffers that are constants, such as tables of positions; running means, which are saved, stay in float32."""
    saved = {id(tensor.data) for tensor in model.state_dict().values()}
    return [buffer for buffer in model.buffers() if id(buffer.data) not in saved]


def _to_half(tensor: Tensor) -> None:
    """Store a floating tensor of the model in float16, as the same object."""
    if tensor.dtype.kind == "f":
        with np.errstate(over="ignore"):
            tensor.data = wrap(tensor.data).astype("float16").data
        if tensor.node is not None:
            tensor.node = leaf(tensor.data)


def _write(array: Array, target: Tensor) -> None:
    with on_device_of(array), np.errstate(over="ignore"):
        target.data[...] = array
    writes.mark(target.data)


def _cast(value: Any, dtype: str) -> Any:
    """Floating tensors in another dtype, also inside tuples, lists and dicts; anything else, such as a cache, as it is."""

    def cast(leaf: Any) -> Any:
        return leaf.astype(dtype) if isinstance(leaf, Tensor) and leaf.dtype.kind == "f" else leaf

    return tree.map(cast, value, is_leaf=dataclasses.is_dataclass)
