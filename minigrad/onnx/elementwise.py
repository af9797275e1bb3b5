"""Ops of one element, and reductions, as nodes of ONNX."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..ir import Step
from .writer import Writer, maps

UNARY = {
    "abs": "Abs", "negative": "Neg", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "_safe_sqrt": "Sqrt", "tanh": "Tanh",
    "sigmoid": "Sigmoid", "relu": "Relu", "erf": "Erf", "sin": "Sin", "cos": "Cos", "tan": "Tan", "arcsin": "Asin",
    "arccos": "Acos", "arctan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "arcsinh": "Asinh", "arccosh": "Acosh",
    "arctanh": "Atanh", "floor": "Floor", "ceil": "Ceil", "sign": "Sign", "reciprocal": "Reciprocal", "isnan": "IsNaN",
    "isinf": "IsInf", "_softplus": "Softplus", "positive": "Identity", "clone": "Identity",
}  # fmt: skip
BINARY = {
    "add": "Add", "subtract": "Sub", "multiply": "Mul", "maximum": "Max", "minimum": "Min", "equal": "Equal",
    "greater": "Greater", "greater_equal": "GreaterOrEqual", "less": "Less", "less_equal": "LessOrEqual",
}  # fmt: skip
LOGICAL = {
    "logical_and": "And", "logical_or": "Or", "logical_xor": "Xor", "bitwise_and": "And", "bitwise_or": "Or", "bitwise_xor": "Xor",
}  # fmt: skip
REDUCTIONS = {"sum": "ReduceSum", "mean": "ReduceMean", "max": "ReduceMax", "min": "ReduceMin", "prod": "ReduceProd"}


@maps(*UNARY)
def unary(w: Writer, step: Step) -> Any:
    (x,) = step.inputs
    return w.node(UNARY[step.op.name], w.get(x, x.dtype if step.op.name in ("isnan", "isinf") else step.out.dtype))


@maps(*BINARY)
def binary(w: Writer, step: Step) -> Any:
    given, dtype = w.both(step)
    if dtype == np.bool_ and step.op.name == "multiply":
        return w.node("And", *given)
    if dtype == np.bool_ and step.op.name in ("add", "maximum"):
        return w.node("Or", *given)
    return w.node(BINARY[step.op.name], *given)


@maps("not_equal")
def not_equal(w: Writer, step: Step) -> Any:
    return w.node("Not", w.node("Equal", *w.both(step)[0]))


@maps("divide", "power")
def in_result_dtype(w: Writer, step: Step) -> Any:
    a, b = (w.get(x, step.out.dtype) for x in step.inputs)
    return w.node("Div" if step.op.name == "divide" else "Pow", a, b)


@maps("remainder", "floor_divide")
def whole_division(w: Writer, step: Step) -> Any:
    (a, b), dtype = w.both(step)
    if dtype.kind == "f":
        quotient = w.node("Floor", w.node("Div", a, b))
        return quotient if step.op.name == "floor_divide" else w.node("Sub", a, w.node("Mul", quotient, b))
    rest = w.node("Mod", a, b)
    return rest if step.op.name == "remainder" else w.node("Div", w.node("Sub", a, rest), b)


@maps(*LOGICAL)
def logical(w: Writer, step: Step) -> Any:
    if step.out.dtype != np.bool_:
        return NotImplemented  # of whole numbers, bit by bit
    return w.node(LOGICAL[step.op.name], *[w.get(x, "bool") for x in step.inputs])


@maps("logical_not", "bitwise_invert")
def inverted(w: Writer, step: Step) -> Any:
    return w.node("Not", w.get(step.inputs[0], "bool")) if step.out.dtype == np.bool_ else NotImplemented


@maps("where")
def where(w: Writer, step: Step) -> Any:
    condition, a, b = step.inputs
    return w.node("Where", w.get(condition, "bool"), w.get(a, step.out.dtype), w.get(b, step.out.dtype))


@maps("astype")
def astype(w: Writer, step: Step) -> Any:
    return w.get(step.inputs[0], step.out.dtype)


@maps("square", "rsqrt", "silu", "log1p", "log2", "log10", "expm1", "_normal_cdf")
def composed(w: Writer, step: Step) -> Any:
    dtype = step.out.dtype
    x, one = w.get(step.inputs[0], dtype), w.constant(1, dtype)
    if step.op.name == "square":
        return w.node("Mul", x, x)
    if step.op.name == "rsqrt":
        return w.node("Reciprocal", w.node("Sqrt", x))
    if step.op.name == "silu":
        return w.node("Mul", x, w.node("Sigmoid", x))
    if step.op.name == "log1p":
        return w.node("Log", w.node("Add", x, one))
    if step.op.name in ("log2", "log10"):
        return w.node("Mul", w.node("Log", x), w.constant(1 / math.log(int(step.op.name[3:])), dtype))
    if step.op.name == "expm1":
        return w.node("Sub", w.node("Exp", x), one)
    return normal_cdf(w, x, dtype)


def normal_cdf(w: Writer, x: str, dtype: Any) -> str:
    """How likely a normal number is below x."""
    spread = w.node("Erf", w.node("Mul", x, w.constant(math.sqrt(0.5), dtype)))
    return str(w.node("Mul", w.node("Add", spread, w.constant(1, dtype)), w.constant(0.5, dtype)))


def gelu(w: Writer, x: str, dtype: Any, approximate: str) -> str:
    """GELU, or the form of it with tanh: x · sigmoid(1.5957… · (x + 0.0447… x³))."""
    if approximate == "none":
        return str(w.node("Mul", x, normal_cdf(w, x, dtype)))
    inner = w.node("Mul", w.node("Mul", x, x), w.constant(0.044715 * math.sqrt(8 / math.pi), dtype))
    inner = w.node("Mul", w.node("Add", inner, w.constant(math.sqrt(8 / math.pi), dtype)), x)
    return str(w.node("Mul", x, w.node("Sigmoid", inner)))


@maps("gelu", "_gelu_tanh")
def gelus(w: Writer, step: Step) -> Any:
    kind = "tanh" if step.op.name == "_gelu_tanh" else step.attrs.get("approximate", "none")
    return gelu(w, w.get(step.inputs[0]), step.out.dtype, kind)


@maps("elu", "leaky_relu")
def sloped(w: Writer, step: Step) -> Any:
    if step.op.name == "elu":
        return w.node("Elu", w.get(step.inputs[0]), alpha=float(step.attrs.get("alpha", 1.0)))
    return w.node("LeakyRelu", w.get(step.inputs[0]), alpha=float(step.attrs.get("negative_slope", 0.01)))


@maps("clip", "hardtanh")
def clip(w: Writer, step: Step) -> Any:
    given = [*step.inputs, None, None][:3]
    if step.op.name == "hardtanh":
        given[1:] = step.attrs.get("min_val", -1.0), step.attrs.get("max_val", 1.0)
    x, least, most = given
    made = w.get(x, step.out.dtype)
    made = made if least is None else w.node("Max", made, w.get(least, step.out.dtype))
    return made if most is None else w.node("Min", made, w.get(most, step.out.dtype))


def axes_in(step: Step) -> list[int]:
    """The axes of a reduction as a list: all of them for None."""
    axis, count = step.attrs.get("axis"), step.inputs[0].ndim
    return list(range(count)) if axis is None else [i % count for i in (axis if isinstance(axis, tuple) else (axis,))]


@maps(*REDUCTIONS, "logsumexp", "any", "all")
def reduction(w: Writer, step: Step) -> Any:
    name, axes = step.op.name, w.constant(axes_in(step), "int64")
    keeps = int(step.attrs.get("keepdims", False))
    if name in ("any", "all"):
        kind = "ReduceMax" if name == "any" else "ReduceMin"
        return w.cast(w.node(kind, w.cast(w.get(step.inputs[0], "bool"), "int32"), axes, keepdims=keeps), "bool")
    kind = REDUCTIONS.get(name, "ReduceLogSumExp")
    return w.node(kind, w.get(step.inputs[0], step.out.dtype), axes, keepdims=keeps)


@maps("argmax", "argmin")
def arg(w: Writer, step: Step) -> Any:
    axis, x = step.attrs.get("axis"), w.get(step.inputs[0])
    if axis is None:
        if step.attrs.get("keepdims"):
            return NotImplemented
        x, axis = w.node("Reshape", x, w.constant([-1], "int64")), 0
    keeps = int(step.attrs.get("keepdims", False))
    return w.node("ArgMax" if step.op.name == "argmax" else "ArgMin", x, axis=int(axis), keepdims=keeps)


@maps("_cumsum")
def cumsum(w: Writer, step: Step) -> Any:
    return w.node("CumSum", w.get(step.inputs[0], step.out.dtype), w.constant(step.attrs["axis"], "int64"))
