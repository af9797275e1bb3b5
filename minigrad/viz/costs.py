"""What an op costs: the operations on floating-point numbers that it needs, and the bytes that it reads and writes."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["bytes_of", "flops_of"]

# Ops that only look at or move numbers.
_FREE = frozenset(
    [
        "reshape",
        "transpose",
        "broadcast_to",
        "flip",
        "roll",
        "getitem",
        "setitem",
        "place",
        "clone",
        "astype",
        "to_device",
        "concatenate",
        "stack",
        "_split",
        "_unstack",
        "_take_along",
        "_put_along",
        "_pad_constant",
        "tril",
        "triu",
        "where",
        "embedding",
        "one_hot",
        "_unfold",
        "output",
    ]
)
# How many operations an element of the result takes in a fused op, roughly: a norm reads each number several times.
_PER_ELEMENT = {
    "gelu": 8,
    "silu": 5,
    "softmax": 5,
    "_masked_softmax": 5,
    "layer_norm": 8,
    "rms_norm": 5,
    "cross_entropy": 5,
    "swiglu": 6,
}


def bytes_of(inputs: Any, out: Any) -> int:
    """Of the inputs, read once, and of what came out."""
    arrays = [*inputs, *(out if isinstance(out, tuple) else (out,))]
    return sum(a.nbytes for a in arrays if hasattr(a, "nbytes"))


def flops_of(op: str, inputs: Any, out: Any, attrs: dict[str, Any]) -> int:
    """Multiplications and additions count as one each; a function of a number counts as one where nothing better is known."""
    arrays = [a for a in inputs if hasattr(a, "shape") and a is not None]
    results = out if isinstance(out, tuple) else (out,)
    written = sum(int(r.size) for r in results if hasattr(r, "size"))
    if op in _FREE or not arrays:
        return 0
    if op == "matmul":
        return 2 * written * arrays[0].shape[-1]
    if op in ("linear", "linear_gelu"):
        return 2 * written * arrays[0].shape[-1] + written * (len(arrays) - 2) + (8 * written if op != "linear" else 0)
    if op == "_einsum":
        sizes: dict[str, int] = {}
        for term, array in zip(attrs["subscripts"].split("->")[0].split(","), arrays):
            sizes.update(zip(term, array.shape))
        return len(arrays) * math.prod(sizes.values())
    if op == "attention":
        query, key, value = arrays[:3]
        pairs = math.prod(query.shape[:-1]) * key.shape[-2]
        return pairs * (2 * query.shape[-1] + 2 * value.shape[-1] + 5)
    if op == "packed_attention":
        batch, length, width = arrays[0].shape
        return batch * length * length * (4 * (width // 3) + 5 * attrs["heads"])
    if op.startswith("conv"):
        weight = arrays[1]  # (out, in, …)
        return 2 * written * math.prod(weight.shape[1:])
    read = max(int(a.size) for a in arrays)
    return _PER_ELEMENT.get(op, 1) * max(read, written)
