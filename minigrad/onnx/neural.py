"""Products, norms, softmax and attention as nodes of ONNX."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..ir import Size, Step
from .elementwise import gelu
from .writer import Writer, maps


@maps("matmul")
def matmul(w: Writer, step: Step) -> Any:
    return w.node("MatMul", *w.both(step)[0])


@maps("_einsum")
def einsum(w: Writer, step: Step) -> Any:
    return w.node("Einsum", *w.both(step)[0], equation=step.attrs["subscripts"])


@maps("linear", "linear_gelu")
def linear(w: Writer, step: Step) -> Any:
    x, weight, bias = [*step.inputs, None][:3]
    made = w.node("MatMul", w.get(x), w.node("Transpose", w.get(weight), perm=[1, 0]))  # (…, in) @ (in, out)
    made = made if bias is None else w.node("Add", made, w.get(bias))
    return made if step.op.name == "linear" else gelu(w, made, step.out.dtype, step.attrs["approximate"])


@maps("layer_norm")
def layer_norm(w: Writer, step: Step) -> Any:
    x, weight, bias = step.inputs
    scale = w.constant(np.ones(x.shape[-1:], x.dtype)) if weight is None else w.get(weight)
    shift = () if bias is None else (w.get(bias),)
    return w.node("LayerNormalization", w.get(x), scale, *shift, axis=-1, epsilon=float(step.attrs["eps"]))


@maps("rms_norm")
def rms_norm(w: Writer, step: Step) -> Any:
    x, weight = step.inputs
    given = w.get(x)
    mean = w.node("ReduceMean", w.node("Mul", given, given), w.constant([-1], "int64"), keepdims=1)
    made = w.node("Div", given, w.node("Sqrt", w.node("Add", mean, w.constant(step.attrs["eps"], x.dtype))))
    return made if weight is None else w.node("Mul", made, w.get(weight))


@maps("swiglu")
def swiglu(w: Writer, step: Step) -> Any:
    gate, up = w.node("Split", w.get(step.inputs[0]), count=2, axis=-1, num_outputs=2)
    return w.node("Mul", w.node("Mul", gate, w.node("Sigmoid", gate)), up)


@maps("softmax", "log_softmax")
def softmax(w: Writer, step: Step) -> Any:
    axis = int(step.attrs.get("axis", -1))
    return w.node("Softmax" if step.op.name == "softmax" else "LogSoftmax", w.get(step.inputs[0]), axis=axis)


@maps("_masked_softmax")
def masked_softmax(w: Writer, step: Step) -> Any:
    scores, allowed = step.inputs
    return guarded_softmax(w, w.get(scores), w.get(allowed, "bool"), scores.dtype, int(step.attrs.get("axis", -1)))


def guarded_softmax(w: Writer, scores: str, allowed: str, dtype: Any, axis: int = -1) -> str:
    """The softmax over what is allowed; a line in which nothing is, where ONNX's own is NaN, becomes zeros."""
    zero, axes = w.constant(0, dtype), w.constant([axis], "int64")
    bounded = w.node("Where", allowed, scores, w.constant(np.finfo(dtype).min, dtype))
    top = w.node("ReduceMax", bounded, axes, keepdims=1)
    e = w.node("Where", allowed, w.node("Exp", w.node("Sub", bounded, top)), zero)
    total = w.node("ReduceSum", e, axes, keepdims=1)
    return str(w.node("Div", e, w.node("Where", w.node("Greater", total, zero), total, w.constant(1, dtype))))


@maps("attention")
def attention(w: Writer, step: Step) -> Any:
    query, key, value, mask = step.inputs
    if step.attrs["dropout_p"]:
        return NotImplemented
    q, k, v = w.get(query), w.get(key), w.get(value)
    group = 1 if query.ndim < 3 else query.shape[-3] // key.shape[-3]
    if group > 1:
        k, v = (_repeated(w, w.get(x), x.shape, group) for x in (key, value))
    lead = [*range(key.ndim - 2), key.ndim - 1, key.ndim - 2]
    return attended(w, step, q, w.node("Transpose", k, perm=lead), v, mask, (query.shape[-2], key.shape[-2]))


def _repeated(w: Writer, x: str, shape: Any, group: int) -> str:
    """Each head for `group` neighbours: (…, h, S, E) -> (…, h·group, S, E)."""
    *lead, heads, _, width = shape
    apart = w.node("Unsqueeze", x, w.constant([len(lead) + 1], "int64"))
    spread = w.node("Expand", apart, w.constant([group, 1, 1], "int64"))  # (…, h, S, E) -> (…, h, group, S, E)
    return str(w.node("Reshape", spread, w.constant([*[0 for _ in lead], heads * group, -1, width], "int64")))


def attended(w: Writer, step: Step, q: str, k: str, v: str, mask: Any, sizes: tuple[int, int]) -> str:
    """`softmax(scale · q @ k) @ v` under a mask: (…, L, E), (…, E, S), (…, S, V) -> (…, L, V)."""
    dtype, attrs = step.out.dtype, step.attrs
    scores = w.node("MatMul", w.node("Mul", q, w.constant(attrs["scale"], dtype)), k)  # (…, L, S)
    if attrs["softcap"] is not None:
        cap = w.constant(attrs["softcap"], dtype)
        scores = w.node("Mul", w.node("Tanh", w.node("Div", scores, cap)), cap)
    allowed = None
    if mask is not None and mask.dtype.kind == "f":
        given = w.get(mask, dtype)
        allowed = w.node("Not", w.node("Equal", given, w.constant(-math.inf, dtype)))
        scores = w.node("Add", scores, w.node("Where", allowed, given, w.constant(0, dtype)))
    elif mask is not None:
        allowed = w.get(mask, "bool")
    if attrs["causal"]:
        ones = w.node("Expand", w.constant(1, "int64"), w.sizes(sizes))
        below = w.cast(w.node("Trilu", ones, upper=0), "bool")
        allowed = below if allowed is None else w.node("And", allowed, below)
    weights = w.node("Softmax", scores, axis=-1) if allowed is None else guarded_softmax(w, scores, allowed, dtype)
    return str(w.node("MatMul", weights, v))


@maps("packed_attention")
def packed_attention(w: Writer, step: Step) -> Any:
    packed, mask = step.inputs
    if step.attrs["dropout_p"]:
        return NotImplemented
    (batch, length, width), heads = packed.shape, step.attrs["heads"]
    if isinstance(width, Size):
        return NotImplemented
    apart = w.node("Reshape", w.get(packed), w.sizes([batch, length, 3, heads, width // (3 * heads)]))
    # Queries and values (B, h, L, E), keys turned for the product: (B, h, E, L).
    orders = ([2, 0, 3, 1, 4], [2, 0, 3, 4, 1], [2, 0, 3, 1, 4])
    q, k, v = (
        w.node("Gather", w.node("Transpose", apart, perm=order), w.constant(i, "int64"), axis=0)
        for i, order in enumerate(orders)
    )
    seen = attended(w, step, q, k, v, mask, (length, length))
    return w.node("Reshape", w.node("Transpose", seen, perm=[0, 2, 1, 3]), w.sizes(step.out.shape))


@maps("convolution")
def convolution(w: Writer, step: Step) -> Any:
    """Images (N, C, …) and weights (O, C / groups, …) -> (N, O, …)."""
    attrs, given = step.attrs, [w.get(x) for x in step.inputs if x is not None]
    ends = [int(pair[side]) for side in (0, 1) for pair in attrs["padding"]]
    options: dict[str, Any] = {
        "strides": list(attrs["stride"]),
        "dilations": list(attrs["dilation"]),
        "group": int(attrs["groups"]),
    }
    return w.node("Conv", *given, pads=ends, **options)
