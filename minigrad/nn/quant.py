"""Quantization after training: weights that stay packed, 8 or 4 bits a number with a scale for each block."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..engine.backend import to_numpy
from ..engine.modes import no_grad
from ..errors import ArgumentError, is_whole
from ..kernels import Packed
from .layers.linear import Embedding, Linear
from .module import Module, Parameter
from .summary import memory
from .transformer.attention import MultiHeadAttention

__all__ = ["Packed", "compare_quantized", "quantized"]

FORMATS = {8: "q8_0", 4: "q4_1"}  # by bits: of those with as many, the ones that change a model least


def quantized(model: Module, bits: int = 8, embeddings: bool = False) -> Any:
    """A copy of a trained model whose Linear and attention layers keep their weights packed, 8 or 4 bits a number.

    With `embeddings`, tables of vectors are packed too, and heads that share one; a weight that is shared with anything
    else stays as it is. Biases, norms and all other parameters are copied, and so is what is in a layer of a class of its
    own. Each block of 32 numbers has a scale, 8 bits as GGUF's Q8_0 and 4 bits as its Q4_1, with an offset. What was
    saved can be loaded into a fresh model: `fresh_model.load_state_dict(mg.load(path))`.

    >>> import minigrad as mg
    >>> small = mg.nn.quantized(mg.nn.Sequential(mg.nn.Linear(64, 8), mg.nn.ReLU()), bits=4)
    >>> small[0].weight
    Packed(q4_1, (8, 64))
    """
    if not is_whole(bits) or bits not in FORMATS:
        raise ArgumentError("quantized: weights cannot have so many bits", "8 or 4", repr(bits))
    if not isinstance(model, Module):
        raise ArgumentError("quantized: this is no model", "a Module", type(model).__name__)
    packed: dict[int, Any] = {}  # what deepcopy finds here, it takes instead of copying
    for path, weight in _chosen(model, embeddings).items():
        if weight.dtype != "float32":
            fix = 'model.to("float32")'
            raise ArgumentError(f"quantized: {path} is not of single precision", "float32", weight.dtype, fix)
        if not np.isfinite(to_numpy(weight.data)).all():
            raise ArgumentError(f"quantized: a number of {path} is infinite or not a number")
        packed[id(weight)] = Packed.from_floats(weight, FORMATS[int(bits)])
    if not packed:
        raise ArgumentError("quantized: there is nothing to make smaller", "a model with Linear layers", repr(model))
    return copy.deepcopy(model, packed)


def _chosen(model: Module, embeddings: bool) -> dict[str, Parameter]:
    """The weights, by path, of which every owner is a layer that takes a packed one."""
    owners = [(module, name, part) for module in model.modules() for name, part in module._parts()]
    kept = {id(part) for module, name, part in owners if not _takes_packed(module, name, embeddings)}
    return {path: weight for path, weight in model.named_parameters() if id(weight) not in kept}


def _takes_packed(module: Module, name: str, embeddings: bool) -> bool:
    if type(module) is MultiHeadAttention:
        return name.endswith("proj_weight")
    return name == "weight" and (type(module) is Linear or embeddings and type(module) is Embedding)


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
    rows = {"bytes": (memory(model), memory(small)), **{name: (before[name], after[name]) for name in before}}
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
