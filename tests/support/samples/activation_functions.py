"""Samples of activation functions and of dropout, each with the formula written out in NumPy."""

from __future__ import annotations

import numpy as np

from . import add, spread
from .neural import soft


def logistic(a):
    return 1 / (1 + np.exp(-a))


wide = spread(3, 4, low=-8, high=8)
add("relu6", lambda a: np.minimum(np.maximum(a, 0), 6), wide)
add("hardswish", lambda a: a * np.clip(a + 3, 0, 6) / 6, wide)
add("celu", lambda a, alpha: np.where(a > 0, a, alpha * (np.exp(a / alpha) - 1)), wide, kwargs={"alpha": 0.7})
add(
    "threshold",
    lambda a, threshold, value: np.where(a > threshold, a, a * 0 + value),
    wide,
    kwargs={"threshold": 0.3, "value": 9.0},
)
add("prelu", lambda a, w: np.where(a > 0, a, w * a), spread(2, 3), spread(1, seed=1), label="one slope")
add("prelu", lambda a, w: np.where(a > 0, a, w[:, None] * a), spread(2, 3, 2), spread(3, seed=1), label="channels")
add("rrelu", lambda a, lower, upper: np.where(a > 0, a, 0.5 * a), wide, kwargs={"lower": 0.25, "upper": 0.75})
add(
    "rrelu",
    lambda a, lower, upper, training: np.where(a > 0, a, 0.25 * a),
    wide,
    kwargs={"lower": 0.25, "upper": 0.25, "training": True},
    label="training, one slope",
)
add("glu", lambda a: a[..., :2] * logistic(a[..., 2:]), spread(2, 4))
add("glu", lambda a, axis: a[:1] * logistic(a[1:]), spread(2, 3), kwargs={"axis": 0}, label="axis 0")
add("softmin", lambda a: soft(-a), spread(2, 3))
add("softmin", lambda a, axis: soft(-a, 0), spread(2, 3), kwargs={"axis": 0}, label="axis 0")
add("tanhshrink", lambda a: a - np.tanh(a), spread(2, 3))
add("softshrink", lambda a: np.sign(a) * np.maximum(abs(a) - 0.5, 0), wide)
add("hardshrink", lambda a, lambd: np.where(abs(a) > lambd, a, 0), wide, kwargs={"lambd": 1.5})
add("gumbel_softmax", lambda a: a * 0 + 1, spread(3, 1), label="one class")
add("gumbel_softmax", lambda a, hard: a * 0 + 1, spread(3, 1), kwargs={"hard": True}, label="one class, hard")

for name, shape in {"dropout1d": (2, 3, 2), "dropout2d": (1, 3, 2, 2), "dropout3d": (2, 1, 2, 2)}.items():
    add(name, lambda a, training: a, spread(*shape), kwargs={"training": False}, label="not training")
    add(name, lambda a, p: a * 0, spread(*shape), kwargs={"p": 1.0}, label="all dropped")
for name in ("alpha_dropout", "feature_alpha_dropout"):
    add(name, lambda a: a, spread(2, 3), label="not training")
    add(name, lambda a, p, training: a * 0, spread(2, 3), kwargs={"p": 1.0, "training": True}, label="all dropped")
