"""Quantization after training: weights that stay packed, 8 or 4 bits a number with a scale for each block."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..engine.backend import to_numpy
from ..engine.modes import no_grad
from ..engine.tensor import wrap
from ..errors import ArgumentError, is_whole
from ..kernels import Packed
from ..maths.packing import row_bytes
from .layers.linear import Embedding, Linear
from .module import Module
from .summary import memory
from .transformer.attention import MultiHeadAttention

__all__ = ["Packed", "compare_quantized", "quantized"]

FORMATS = {8: "q8_0", 4: "q4_1"}  # by bits: of those with as many, the ones that change a model least
TABLE = FORMATS[8]  # of tables of vectors: whatever is wrong with these is in every token


def quantized(model: Module, bits: int = 8, embeddings: bool = False) -> Any:
    """A copy of a trained model whose Linear and attention layers keep their weights packed, 8 or 4 bits a number.

    With `embeddings`, tables of vectors are packed too, and heads that share one, always in 8 bits; a weight that is shared
    with anything else stays as it is. Biases, norms and all other parameters are copied, and so is what is in a layer of a
    class of its own. Each block of 32 numbers has a scale, 8 bits as GGUF's Q8_0 and 4 bits as its Q4_1, with an offset. A
    weight that is packed already, such as in float16, is packed anew where that is smaller. What was saved can be loaded
    into a fresh model: `fresh_model.load_state_dict(mg.load(path))`.

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
    for path, (weight, format) in _chosen(model, FORMATS[int(bits)], embeddings).items():
        floats = wrap(weight.dequantized()) if isinstance(weight, Packed) else weight
        if floats.dtype != "float32":
            fix = 'model.to("float32")'
            raise ArgumentError(f"quantized: {path} is not of single precision", "float32", str(floats.dtype), fix)
        if not np.isfinite(to_numpy(floats.data)).all():
            raise ArgumentError(f"quantized: a number of {path} is infinite or not a number")
        packed[id(weight)] = Packed.from_floats(floats, format)
    if not packed:
        raise ArgumentError("quantized: there is nothing to make smaller", "a model with Linear layers", repr(model))
    return copy.deepcopy(model, packed)


def _chosen(model: Module, format: str, embeddings: bool) -> dict[str, tuple[Any, str]]:
    """The weights, by path, of which every owner is a layer that takes a packed one, and the format of each."""
    owners = [(module, name, part) for module in model.modules() for name, part in module._parts()]
    kept = {id(part) for module, name, part in owners if not _takes_packed(module, name, embeddings)}
    tables = {id(part) for module, _, part in owners if type(module) is Embedding}
    weights = [*model.named_parameters(), *model.named_packed()]
    formats = {path: (weight, TABLE if id(weight) in tables else format) for path, weight in weights}
    return {
        path: (weight, format)
        for path, (weight, format) in formats.items()
        if id(weight) not in kept and _is_larger(weight, format)
    }


def _is_larger(weight: Any, format: str) -> bool:
    """Whether a weight has more bits a number than a format."""
    return not isinstance(weight, Packed) or weight.data.shape[1] > row_bytes(format, weight.shape[1])


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
