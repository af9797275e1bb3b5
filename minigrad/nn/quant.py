"""Quantization after training: the weights of Linear layers as integers of 8 or 4 bits, with a scale for each output."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..engine.backend import to_numpy
from ..engine.modes import no_grad
from ..engine.tensor import Tensor
from ..errors import ArgumentError, is_whole
from ..functions import stack
from ..ops.creation import tensor
from . import functional as F
from .layers import Linear
from .module import Module

__all__ = ["compare_quantized", "quantized"]

LARGEST = {8: 127, 4: 7}  # symmetric, so that 0 stays 0: -128 and -8 are not used


class QuantizedLinear(Module):
    """A Linear whose weight is kept as whole numbers, `weight = integers · scales`, with one scale for each output.

    They are the buffers `weight_int8` (out, in), or `weight_int4` (out, in/2) with two numbers a byte, and `scales`
    (out, 1). The weight is made of them anew in each forward, so this saves memory and disk, not time. Gradients reach
    the input and the bias.
    """

    weight_int8: Tensor
    weight_int4: Tensor
    scales: Tensor

    def __init__(self, linear: Linear, bits: int):
        self.in_features, self.out_features, self.bits = linear.in_features, linear.out_features, bits
        integers, scales = to_integers(to_numpy(linear.weight.data), bits)
        kept = integers if bits == 8 else packed_nibbles(integers)
        self.register_buffer(f"weight_int{bits}", tensor(kept, device=linear.weight.device))
        self.register_buffer("scales", tensor(scales, device=linear.weight.device))
        self.bias = linear.bias

    @property
    def weight(self) -> Tensor:
        """The weight (out, in) that the whole numbers stand for; not trained."""
        integers = self.weight_int8 if self.bits == 8 else unpacked_nibbles(self.weight_int4, self.in_features)
        return integers.astype(self.scales.dtype) * self.scales

    def forward(self, input: Any) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        bias = ", bias=False" if self.bias is None else ""
        return f"{self.in_features}, {self.out_features}, bits={self.bits}{bias}"


def to_integers(weight: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """(out, in) -> int8 (out, in) and scales (out, 1), so that no weight is farther than scale/2 from its stand-in."""
    largest = np.abs(weight).max(axis=1, keepdims=True)
    scales = (largest.astype("float64") / LARGEST[bits]).astype(weight.dtype)
    short = scales.astype("float64") * LARGEST[bits] < largest  # rounded down, the largest weight would not fit
    scales = np.where(short, np.nextafter(scales, weight.dtype.type(np.inf)), scales)
    scales = np.where(scales > 0, scales, weight.dtype.type(1))
    return np.rint(weight.astype("float64") / scales).astype("int8"), scales


def packed_nibbles(integers: np.ndarray) -> np.ndarray:
    """Two numbers from -8 to 7 a byte, the first in its lower half: int8 (out, in) -> uint8 (out, ceil(in/2))."""
    even = np.pad(integers, ((0, 0), (0, integers.shape[1] % 2)))
    nibbles = (even + 8).astype("uint8")
    return nibbles[:, ::2] | nibbles[:, 1::2] << 4


def unpacked_nibbles(packed: Tensor, columns: int) -> Tensor:
    """What `packed_nibbles` packed: uint8 (out, ceil(in/2)) -> int8 (out, in)."""
    pairs = stack([packed % 16, packed // 16], axis=-1)  # (out, ceil(in/2), 2)
    return pairs.reshape(packed.shape[0], -1)[:, :columns].astype("int8") - 8


def quantized(model: Module, bits: int = 8) -> Any:
    """A copy of a trained model whose Linear layers keep their weights as whole numbers of 8 or 4 bits.

    Each output has its own scale, the largest weight of its row divided by 127 (or 7). Biases, embeddings, norms and
    all other parameters are copied as they are, and so is a Linear that shares its weight with another layer, or that is
    of a class of its own. To load what was saved: `quantized(fresh_model, bits).load_state_dict(mg.load(path))`.

    >>> import minigrad as mg
    >>> small = mg.nn.quantized(mg.nn.Sequential(mg.nn.Linear(64, 8), mg.nn.ReLU()), bits=4)
    >>> small[0], small[0].weight_int4.shape
    (QuantizedLinear(64, 8, bits=4), (8, 32))
    """
    if not is_whole(bits) or bits not in LARGEST:
        raise ArgumentError("quantized: weights cannot have so many bits", "8 or 4", repr(bits))
    if not isinstance(model, Module):
        raise ArgumentError("quantized: this is no model", "a Module", type(model).__name__)
    owners = Counter(id(part) for module in model.modules() for _, part in module._parts())
    chosen = {
        path: module
        for path, module in model.named_modules()
        if type(module) is Linear and owners[id(module.weight)] == 1
    }
    if not chosen:
        raise ArgumentError("quantized: there is nothing to make smaller", "a model with Linear layers", repr(model))
    stand_ins: dict[int, Any] = {}  # what deepcopy finds here, it takes instead of copying
    for path, linear in chosen.items():
        if not np.isfinite(to_numpy(linear.weight.data)).all():
            raise ArgumentError(f"quantized: a weight of {path or 'the layer'} is infinite or not a number")
        stand_in = QuantizedLinear(linear, int(bits))
        own = {name: vars(linear)[name] for name in ("training", "_name", "_hooks", "_pre_hooks")}
        vars(stand_in).update(copy.deepcopy({**own, "bias": linear.bias}, stand_ins))
        stand_ins[id(linear)] = stand_in
    return copy.deepcopy(model, stand_ins)


def compare_quantized(
    model: Module, small: Module, evaluate: Callable[[Any], float | Mapping[str, float]]
) -> dict[str, tuple[float, float]]:
    """Print, and return, what a model and its quantised copy are: their bytes, and what `evaluate(model)` says of each.

    `evaluate` returns one number, or named numbers; both models are in evaluation mode for it, and nothing is recorded.
    """
    before, after = _scores(model, evaluate), _scores(small, evaluate)
    if before.keys() != after.keys():
        raise ArgumentError(
            "compare_quantized: evaluate names different numbers for the two models", list(before), list(after)
        )
    rows = {"bytes": (_bytes(model), _bytes(small)), **{name: (before[name], after[name]) for name in before}}
    width = max(len(name) for name in rows)
    print(f"{'':{width}}  {'model':>12}  {'quantised':>12}  {'change':>12}")
    for name, (old, new) in rows.items():
        if name == "bytes":
            print(f"{name:{width}}  {old:12,}  {new:12,}  {new / old - 1:12.1%}")
        else:
            print(f"{name:{width}}  {old:12.5f}  {new:12.5f}  {new - old:+12.5f}")
    return rows


def _scores(model: Module, evaluate: Callable[[Any], Any]) -> dict[str, float]:
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with no_grad():
            said = evaluate(model)
    finally:
        for module, training in modes.items():
            module.training = training
    named = said if isinstance(said, Mapping) else {"result": said}
    return {str(name): float(value) for name, value in named.items()}


def _bytes(model: Module) -> int:
    return sum(part.data.nbytes for part in (*model.parameters(), *model.buffers()))
