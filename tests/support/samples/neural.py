"""Samples of the functions of neural networks, each with the formula written out in NumPy."""

from __future__ import annotations

import numpy as np

import minigrad.nn  # noqa: F401  (which makes the functions of neural networks known)
from minigrad.maths.packing import FORMATS

from ..block_formats import floats_of, random_bytes
from . import AS_GIVEN, add, spread


def soft(a, axis=-1):
    e = np.exp(a)
    return e / e.sum(axis=axis, keepdims=True)


def log_soft(a, axis=-1):
    return np.log(soft(a, axis))


def masked_soft(a, allowed, axis=-1):
    e = np.exp(a) * allowed
    total = e.sum(axis=axis, keepdims=True)
    return e / np.where(total == 0, 1, total)


def draws(numbers, key):
    """The hash of dropout in whole numbers of Python, which know no overflow."""
    found = []
    for n in numbers.tolist():
        for half in (key & 0xFFFFFFFF, key >> 32):
            n ^= half
            for shift, factor in ((16, 0x21F0AAAD), (15, 0x735A2D97)):
                n = (n ^ n >> shift) * factor & 0xFFFFFFFF
            n ^= n >> 15
        found.append(n)
    return np.array(found)


for axis in (-1, 0, 1):
    add("softmax", soft, spread(2, 3, 2), kwargs={"axis": axis}, label=f"axis {axis}")
    add("log_softmax", log_soft, spread(2, 3, 2), kwargs={"axis": axis}, label=f"axis {axis}")
for name, reference in {"softmax": soft, "log_softmax": log_soft}.items():
    add(
        name, lambda a, f=reference: f(a - a.max(-1, keepdims=True)), np.array([[800.0, 801.0, 799.0]]), label="far out"
    )
    add(name, lambda a, f=reference: f(a), spread(2, 1), label="size 1")
rows = np.array([[True, False, True], [False, False, False], [False, True, True]])
add("_masked_softmax", masked_soft, spread(3, 3), rows, label="with a row of nothing")
add("_masked_softmax", masked_soft, spread(3, 3), rows, kwargs={"axis": 0}, label="columns")
add("_masked_softmax", masked_soft, spread(2, 3, 3), rows, label="mask stretched")
add(
    "_dropout_factors",
    lambda a, p, key, start: np.where(draws(np.arange(a.size) + start, key) >= p * 2**32, 1 / (1 - p), 0).reshape(
        a.shape
    ),
    spread(3, 4),
    kwargs={"p": 0.25, "key": 0x123456789ABCDEF, "start": 7},
    dtype_as_reference=False,
)
for name in FORMATS:
    add(
        "_dequantized",
        lambda data, format, columns: floats_of(data, format, columns).astype("float32"),
        random_bytes(name, 3, 37),
        kwargs={"format": name, "columns": 37},
        dtypes=AS_GIVEN,
        label=name,
    )
add("_causal_mask", lambda a: np.tril(np.ones(a.shape[-2:], bool)), spread(2, 3, 4))
add(
    "_logistic_loss",
    lambda a, t: -t * np.log(1 / (1 + np.exp(-a))) - (1 - t) * np.log(1 / (1 + np.exp(a))),
    spread(2, 3),
    spread(3, low=0, high=1, seed=1),
)
add(
    "_logistic_loss",
    lambda a, t: np.array([0.0, 800.0, 800.0, 0.0], a.dtype),
    np.array([800.0, 800.0, -800.0, -800.0]),
    np.array([1.0, 0.0, 1.0, 0.0]),
    label="far out",
)


def reduced(losses, reduction="mean"):
    return losses if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()


a, b = spread(2, 3), spread(2, 3, low=-1.7, high=2.1, seed=1)
share, probabilities = spread(2, 3, low=0.1, high=0.9, seed=2), soft(b)
for reduction in ("mean", "sum", "none"):
    how = {"reduction": reduction}
    add("mse_loss", lambda x, y, reduction: reduced((x - y) ** 2, reduction), a, b, kwargs=how, label=reduction)
    add("l1_loss", lambda x, y, reduction: reduced(abs(x - y), reduction), a, b, kwargs=how, label=reduction)
    add(
        "huber_loss",
        lambda x, y, reduction, delta: reduced(
            np.where(abs(x - y) <= delta, (x - y) ** 2 / 2, delta * (abs(x - y) - delta / 2)), reduction
        ),
        a,
        b,
        kwargs={**how, "delta": 0.8},
        label=reduction,
    )
    add(
        "kl_div",
        lambda x, y, reduction: reduced(y * (np.log(y) - x), reduction),
        a,
        probabilities,
        kwargs=how,
        label=reduction,
    )
    add(
        "kl_div",
        lambda x, y, reduction, log_target: reduced(np.exp(y) * (y - x), reduction),
        a,
        b,
        kwargs={**how, "log_target": True},
        label=f"{reduction}, log target",
    )
    add(
        "binary_cross_entropy_with_logits",
        lambda x, y, reduction: reduced(np.log(1 + np.exp(x)) - x * y, reduction),
        a,
        share,
        kwargs=how,
        label=reduction,
    )
add(
    "kl_div",
    lambda x, y, reduction: (y * (np.log(y) - x)).sum() / 2,
    a,
    probabilities,
    kwargs={"reduction": "batchmean"},
    label="batchmean",
)
add(
    "kl_div",
    lambda x, y: np.where(y == 0, 0, y * (np.log(np.where(y == 0, 1, y)) - x)).mean(),
    a,
    np.array([[0.0, 0.4, 0.6], [1.0, 0.0, 0.0]]),
    label="zeros",
    gradient=False,
)
add(
    "binary_cross_entropy_with_logits",
    lambda x, y, w, pos_weight: (
        w * (pos_weight * y * np.log(1 + np.exp(-x)) + (1 - y) * np.log(1 + np.exp(x)))
    ).mean(),
    a,
    share,
    spread(3, low=0.5, high=2, seed=3),
    kwargs={"pos_weight": spread(3, low=0.5, high=2, seed=4)},
    label="weights",
)


def label_loss(scores, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    """Label by label: scores are log-probabilities with the classes on axis 1, or on the only axis."""
    axis = min(scores.ndim - 1, 1)
    scores, classes = np.moveaxis(scores, axis, -1), scores.shape[axis]
    weight = np.ones(classes, scores.dtype) if weight is None else weight
    losses, total = np.zeros(target.shape, scores.dtype), 0
    for place in np.ndindex(target.shape):
        label = target[place]
        if label != ignore_index:
            losses[place] = (
                -(1 - label_smoothing) * weight[label] * scores[place][label]
                - label_smoothing / classes * (weight * scores[place]).sum()
            )
            total += weight[label]
    return losses.sum() / total if reduction == "mean" else reduced(losses, reduction)


def entropy(scores, target, weight=None, **options):
    axis = min(scores.ndim - 1, 1)
    if target.dtype.kind != "f":
        return label_loss(log_soft(scores, axis), target, weight, **options)
    smoothing = options.get("label_smoothing", 0.0)
    target = target * (1 - smoothing) + smoothing / scores.shape[axis]
    weights = 1 if weight is None else weight.reshape([-1 if i == axis else 1 for i in range(scores.ndim)])
    return reduced(-(log_soft(scores, axis) * target * weights).sum(axis), options.get("reduction", "mean"))


logits, labels = spread(4, 3), np.array([2, 0, -1, 1])
deep, deep_labels = spread(2, 3, 2), np.array([[0, 2], [1, 1]])
class_weights = spread(3, low=0.3, high=2, seed=5)
for name, reference in {"cross_entropy": entropy, "nll_loss": label_loss}.items():
    add(name, reference, spread(3), np.array(1), label="one example")
    add(name, reference, deep, deep_labels, label="more axes")
    add(name, reference, deep, deep_labels, class_weights, kwargs={"ignore_index": 1}, label="more axes, weights")
    for reduction in ("mean", "sum", "none"):
        add(
            name,
            reference,
            logits,
            labels,
            kwargs={"reduction": reduction, "ignore_index": -1},
            label=f"{reduction}, ignored",
        )
        add(
            name,
            reference,
            logits,
            labels,
            class_weights,
            kwargs={"reduction": reduction, "ignore_index": -1},
            label=f"{reduction}, weights",
        )
for reduction in ("mean", "sum", "none"):
    add(
        "cross_entropy",
        entropy,
        logits,
        labels,
        class_weights,
        kwargs={"label_smoothing": 0.2, "ignore_index": -1, "reduction": reduction},
        label=f"{reduction}, smoothed",
    )
    add(
        "cross_entropy",
        entropy,
        logits,
        soft(spread(4, 3, seed=6)),
        class_weights,
        kwargs={"reduction": reduction},
        label=f"{reduction}, probabilities",
    )
add(
    "cross_entropy",
    entropy,
    deep,
    soft(spread(2, 3, 2, seed=6), 1),
    kwargs={"label_smoothing": 0.1},
    label="probabilities, smoothed",
)


def attention(q, k, v, mask=None, is_causal=False, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) * (1 / np.sqrt(q.shape[-1]).astype(q.dtype) if scale is None else scale)
    allowed = np.tri(*scores.shape[-2:], dtype=bool) if is_causal else np.ones(scores.shape[-2:], bool)
    if mask is not None and mask.dtype == bool:
        allowed = allowed & mask
    elif mask is not None:
        allowed, scores = allowed & (mask != -np.inf), scores + np.where(mask == -np.inf, 0, mask)
    return masked_soft(scores, allowed) @ v


q, k, v = spread(2, 3, 2), spread(2, 3, 2, seed=1), spread(2, 3, 2, seed=2)
name = "scaled_dot_product_attention"
add(name, attention, q, k, v)
add(name, attention, q, k, v, kwargs={"is_causal": True}, label="causal")
add(name, attention, q, k, v, rows, label="mask with a row of nothing")
add(name, attention, q, k, v, rows, kwargs={"is_causal": True, "scale": 0.3}, label="mask and causal")
add(name, attention, q, k, v, spread(2, 3, 3, seed=3), label="added mask")
add(name, attention, q, k, v, np.where(rows, 0.5, -np.inf), label="added mask with infinities", gradient=False)
add(name, attention, spread(2, 1, 2, 3), spread(3, 4, 3, seed=1), spread(4, 2, seed=2), label="stretched")


def cosine(x, y, axis=1):
    return (x * y).sum(axis) / (np.sqrt((x * x).sum(axis)) * np.sqrt((y * y).sum(axis)))


add("cosine_similarity", cosine, spread(2, 3), spread(2, 3, seed=1))
add("cosine_similarity", cosine, spread(3, 1, 2), spread(4, 2, seed=1), kwargs={"axis": -1}, label="stretched")
add(
    "cosine_similarity",
    lambda x, y: np.zeros(2, x.dtype),
    np.zeros((2, 3)),
    spread(2, 3),
    label="zero vectors",
    gradient=False,
)
