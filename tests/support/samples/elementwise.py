"""Samples of arithmetic, functions of one number, comparisons and activations."""

from __future__ import annotations

import math

import numpy as np

from . import ALL_FLOATS, AS_GIVEN, add, spread

erf = np.vectorize(math.erf, otypes=[float])
UNARY = {  # name -> reference and the domain
    "exp": (np.exp, -2, 2),
    "expm1": (np.expm1, -2, 2),
    "log": (np.log, 0.1, 3),
    "log1p": (np.log1p, -0.8, 2),
    "log2": (np.log2, 0.1, 3),
    "log10": (np.log10, 0.1, 3),
    "sqrt": (np.sqrt, 0.1, 4),
    "_safe_sqrt": (np.sqrt, 0.1, 4),
    "rsqrt": (lambda a: 1 / np.sqrt(a), 0.1, 4),
    "square": (np.square, -2, 2),
    "reciprocal": (np.reciprocal, 0.3, 2),
    "sin": (np.sin, -3, 3),
    "cos": (np.cos, -3, 3),
    "tan": (np.tan, -1.2, 1.2),
    "arcsin": (np.arcsin, -0.9, 0.9),
    "arccos": (np.arccos, -0.9, 0.9),
    "arctan": (np.arctan, -2, 2),
    "sinh": (np.sinh, -2, 2),
    "cosh": (np.cosh, -2, 2),
    "tanh": (np.tanh, -2, 2),
    "arcsinh": (np.arcsinh, -2, 2),
    "arccosh": (np.arccosh, 1.2, 3),
    "arctanh": (np.arctanh, -0.8, 0.8),
    "negative": (np.negative, -2, 2),
    "positive": (np.positive, -2, 2),
    "abs": (np.abs, -2, 2),
    "sign": (np.sign, -2, 2),
    "floor": (np.floor, -2, 2),
    "ceil": (np.ceil, -2, 2),
    "trunc": (np.trunc, -2, 2),
    "round": (np.round, -2, 2),
    "clone": (np.copy, -2, 2),
    "sigmoid": (lambda a: 1 / (1 + np.exp(-a)), -3, 3),
    "relu": (lambda a: np.where(a > 0, a, np.zeros_like(a)), -2, 2),
    "leaky_relu": (lambda a: np.where(a > 0, a, a * 0.01), -2, 2),
    "elu": (lambda a: np.where(a > 0, a, np.exp(a) - 1), -2, 2),
    "selu": (lambda a: 1.0507009873554805 * np.where(a > 0, a, 1.6732632423543772 * (np.exp(a) - 1)), -2, 2),
    "silu": (lambda a: a / (1 + np.exp(-a)), -3, 3),
    "_gelu_tanh": (lambda a: 0.5 * a * (1 + np.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a**3))), -3, 3),
    "softplus": (lambda a: np.log(1 + np.exp(a)), -3, 3),
    "_softplus": (lambda a: np.log(1 + np.exp(a)), -3, 3),
    "mish": (lambda a: a * np.tanh(np.log(1 + np.exp(a))), -3, 3),
    "hardtanh": (lambda a: np.clip(a, -1, 1), -2, 2),
    "hardsigmoid": (lambda a: np.clip(a / 6 + 0.5, 0, 1), -5, 5),
    "logsigmoid": (lambda a: -np.log(1 + np.exp(-a)), -3, 3),
    "softsign": (lambda a: a / (1 + np.abs(a)), -2, 2),
}
for name, (reference, low, high) in UNARY.items():
    add(name, reference, spread(2, 3, low=low, high=high), dtypes=ALL_FLOATS)
    add(name, reference, spread(low=low, high=high), label="0-d")
    add(name, reference, spread(0, 3), label="empty", gradient=False)

add("erf", erf, spread(2, 3, low=-3, high=3), dtypes=ALL_FLOATS, dtype_as_reference=False)
add("erf", erf, spread(3, low=-0.4, high=0.4), dtype_as_reference=False, label="series")
add(
    "erf",
    erf,
    np.array([0.0, -0.0, 7.0, -30.0, np.inf, -np.inf, np.nan]),
    dtype_as_reference=False,
    label="ends",
    gradient=False,
)
add(
    "_normal_cdf",
    lambda a: 0.5 * (1 + erf(a / math.sqrt(2))),
    spread(2, 3, low=-3, high=3),
    dtypes=ALL_FLOATS,
    dtype_as_reference=False,
)
add(
    "gelu",
    lambda a: 0.5 * a * (1 + erf(a / math.sqrt(2))),
    spread(2, 3, low=-3, high=3),
    dtypes=ALL_FLOATS,
    dtype_as_reference=False,
)
add(
    "gelu",
    lambda a, approximate: 0.5 * a * (1 + np.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a**3))),
    spread(2, 3, low=-3, high=3),
    kwargs={"approximate": "tanh"},
    label="tanh",
)
add("round", np.round, spread(5) * 1.618, kwargs={"decimals": 1}, label="decimals")
add("round", np.round, np.array([0.5, 1.5, -0.5, -2.5]), label="halves", gradient=False)
add(
    "leaky_relu",
    lambda a, negative_slope: np.where(a > 0, a, negative_slope * a),
    spread(2, 3),
    kwargs={"negative_slope": 0.3},
    label="slope",
)
add(
    "elu",
    lambda a, alpha: np.where(a > 0, a, alpha * (np.exp(a) - 1)),
    spread(2, 3),
    kwargs={"alpha": 0.7},
    label="alpha",
)
add(
    "hardtanh",
    lambda a, min_val, max_val: np.clip(a, min_val, max_val),
    spread(2, 3),
    kwargs={"min_val": -0.3, "max_val": 1.1},
    label="limits",
)
for name, reference in {
    "sigmoid": lambda a: np.exp(-np.logaddexp(0, -a)),
    "softplus": lambda a: np.logaddexp(0, a),
    "logsigmoid": lambda a: -np.logaddexp(0, -a),
    "silu": lambda a: a * np.exp(-np.logaddexp(0, -a)),
}.items():
    add(name, reference, np.array([0.0, 40.0, -40.0, 800.0, -800.0]), label="far out")
add(
    "softplus",
    lambda a, beta, threshold: np.where(beta * a > threshold, a, np.log(1 + np.exp(beta * a)) / beta),
    spread(3, 4),
    kwargs={"beta": 2.5, "threshold": 3.0},
    label="beta and threshold",
)
add("to_device", lambda a, device: a.copy(), spread(2, 3), kwargs={"device": "cpu"})
for kind in ("float64", "float32", "float16", "int64", "bool"):
    add(
        "astype",
        lambda a, dtype: a.astype(dtype),
        spread(2, 3),
        kwargs={"dtype": kind},
        label=kind,
        gradient=kind == "float64",
    )

BINARY = {  # name -> reference and the domains of both
    "add": (np.add, (-2, 2), (-2, 2)),
    "subtract": (np.subtract, (-2, 2), (-2, 2)),
    "multiply": (np.multiply, (-2, 2), (-2, 2)),
    "divide": (np.divide, (-2, 2), (0.4, 2)),
    "remainder": (np.remainder, (-2.9, 2.9), (0.83, 1.73)),
    "power": (np.power, (0.2, 2), (-2, 2)),
    "logaddexp": (np.logaddexp, (-2, 2), (-2, 2)),
    "maximum": (np.maximum, (-2, 2), (-1.7, 2.1)),
    "minimum": (np.minimum, (-2, 2), (-1.7, 2.1)),
    "arctan2": (np.arctan2, (-2, 2), (0.3, 2)),
    "hypot": (np.hypot, (0.3, 2), (-2, 2)),
    "floor_divide": (np.floor_divide, (-2.9, 2.9), (0.83, 1.73)),
}
SHAPES = {
    "": ((2, 3), (2, 3)),
    "stretched": ((2, 1), (3,)),
    "0-d": ((), (2, 2)),
    "added axis": ((3,), (2, 1, 3)),
    "size 1": ((1,), (1, 1)),
}
for name, (reference, left, right) in BINARY.items():
    for label, (shape_a, shape_b) in SHAPES.items():
        a, b = spread(*shape_a, low=left[0], high=left[1]), spread(*shape_b, low=right[0], high=right[1], seed=1)
        add(
            name,
            reference,
            a,
            b,
            label=label,
            dtypes=("float64", "float32", "float16") if not label else ("float64", "float32"),
        )
    add(name, reference, spread(2, 2, low=left[0], high=left[1]), 1.3, label="number right")
    add(name, reference, 1.3, spread(2, 2, low=right[0], high=right[1]), label="number left")
    add(name, reference, np.zeros((0, 3)), spread(3, low=right[0], high=right[1]), label="empty", gradient=False)

for exponent in (0, 1, 2, 3, -1, 0.5, -1.5):
    add("power", np.power, spread(4, low=0.3, high=2), exponent, label=f"number {exponent}")
for exponent in (2, 3, 1):
    add("power", np.power, np.array([-1.3, 0.0, 0.7]), exponent, label=f"zero base, {exponent}")
add("power", np.power, spread(3, low=0.3, high=2), np.array([0.0, 1.0, 2.0]), label="whole exponents")
add("divide", np.divide, spread(2, 3), -spread(3, low=0.4, high=2), label="negative divisor")
add(
    "remainder",
    np.remainder,
    spread(2, 3, low=-2.9, high=2.9),
    -spread(3, low=0.83, high=1.73),
    label="negative divisor",
)
add("arctan2", np.arctan2, spread(4), -spread(4, low=0.3, high=2, seed=1), label="left half")
add(
    "logaddexp", np.logaddexp, np.array([0.0, 800.0, -800.0, 50.0]), np.array([1.0, 0.5, 3.0, -60.0]), label="far apart"
)

clip = np.clip
add("clip", clip, spread(2, 5), -0.71, 1.03, dtypes=ALL_FLOATS)
add(
    "clip",
    lambda a, low, high: np.clip(a, low, high),
    spread(2, 5),
    np.array(-0.71),
    spread(5, low=0.6, high=1.4),
    label="array limits",
)
add(
    "clip", lambda a, low, high: np.maximum(a, low), spread(2, 5), np.array([[-0.71], [0.33]]), None, label="below only"
)
add(
    "clip",
    lambda a, low, high: np.minimum(a, high),
    spread(2, 5),
    None,
    np.array([[-0.71], [0.33]]),
    label="above only",
)
add(
    "clip",
    lambda a, low, high: np.minimum(np.maximum(a, low), high),
    spread(6),
    np.array(0.9),
    np.array(-0.33),
    label="crossed limits",
)
add("clip", lambda a: a, spread(2, 3), label="no limits")
near = np.array([-0.74, -0.68, 1.0, 1.06]), np.full(4, -0.71), np.full(4, 1.03)
add("clip", lambda a, low, high: np.minimum(np.maximum(a, low), high), *near, label="near the limits")
tight = np.array([-1.0, -1.0, 0.51, -1.0]), np.array([-0.52, 0.5, 0.5, 0.9]), np.array([-0.5, 0.8, 0.52, 0.3])
add("clip", lambda a, low, high: np.minimum(np.maximum(a, low), high), *tight, label="limits near each other")

choice = np.array([[True, False, True], [False, False, True]])
add("where", np.where, choice, spread(2, 3), spread(2, 3, seed=1), dtypes=ALL_FLOATS)
add("where", np.where, choice, spread(3), spread(2, 1, seed=1), label="stretched")
add("where", np.where, choice, spread(2, 3), 0.5, label="number right")
add("where", np.where, choice, 0.5, spread(2, 3), label="number left")
add("where", np.where, np.array([True, False]), spread(3, 2), spread(seed=1), label="condition stretched")
add("masked_fill", lambda a, mask, value: np.where(mask, value, a), spread(2, 3), choice, -9.0, label="number")
add(
    "masked_fill",
    lambda a, mask, value: np.where(mask, value, a),
    spread(2, 3),
    choice[0],
    np.array(0.5),
    label="array",
)

whole, other = np.array([[5, -3, 0], [2, 7, -1]]), np.array([2, 3, 4])
for name in (
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
):
    add(name, getattr(np, name), np.array([1.0, 0.0, 3.0]), np.array([[1.0], [0.0]]), dtypes=ALL_FLOATS)
    add(name, getattr(np, name), whole, other, dtypes=AS_GIVEN, label="integers")
for name in ("isnan", "isinf", "isfinite"):
    add(name, getattr(np, name), np.array([1.0, np.nan, np.inf, -np.inf]), dtypes=ALL_FLOATS)
add("logical_not", np.logical_not, np.array([1.0, 0.0, 3.0]), dtypes=ALL_FLOATS)
for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    add(name, getattr(np, name), whole, other, dtypes=AS_GIVEN, label="integers")
    add(name, getattr(np, name), choice, ~choice[0], dtypes=AS_GIVEN, label="booleans")
for name in ("bitwise_left_shift", "bitwise_right_shift"):
    add(name, getattr(np, name), whole, abs(other), dtypes=AS_GIVEN, label="integers")
add("bitwise_invert", np.invert, whole, dtypes=AS_GIVEN, label="integers")
add("bitwise_invert", np.invert, choice, dtypes=AS_GIVEN, label="booleans")
for name in ("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "maximum", "minimum"):
    add(name, getattr(np, name), whole, other, dtypes=AS_GIVEN, label="integers")
    add(name, getattr(np, name), whole.astype("int32"), spread(3), label="integer and floating", gradient=False)
for name in ("exp", "sqrt", "square", "negative", "abs", "sign", "floor", "clone"):
    add(name, getattr(np, name, np.copy), abs(whole) if name == "sqrt" else whole, dtypes=AS_GIVEN, label="integers")
add("power", np.power, whole, 2, dtypes=AS_GIVEN, label="integers")
