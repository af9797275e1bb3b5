"""Samples of losses with margins, of likelihoods and of CTC, each with the formula written out in NumPy."""

from __future__ import annotations

import itertools
import math

import numpy as np

from . import Fixed, add, spread
from .neural import log_soft, reduced

REDUCTIONS = ("mean", "sum", "none")
a, b, c = spread(3, 4), spread(3, 4, low=-1.7, high=2.1, seed=1), spread(3, 4, low=-1.3, high=1.9, seed=2)
signs = np.where(spread(3, 4, seed=3) > 0, 1, -1)
share, positive = spread(3, 4, low=0.1, high=0.9, seed=4), spread(3, 4, low=0.3, high=3, seed=5)


def each_reduction(name, losses, *args, **kwargs):
    """One sample for each reduction of a formula that gives the losses."""
    for reduction in REDUCTIONS:
        add(
            name,
            lambda *given, reduction, **options: reduced(losses(*given, **options), reduction),
            *args,
            kwargs={**kwargs, "reduction": reduction},
            label=reduction,
            dtype_as_reference=False,
        )


def smooth(x, y, beta):
    d = abs(x - y)
    return np.where(d < beta, d**2 / 2 / beta, d - beta / 2)


def rows_norm(x, p=2):
    return (abs(x) ** p).sum(-1) ** (1 / p)


def cosine(x, y):
    return (x * y).sum(-1) / (rows_norm(x) * rows_norm(y))


each_reduction("smooth_l1_loss", smooth, a, b, beta=0.8)
each_reduction(
    "binary_cross_entropy",
    lambda x, y, w: -w * (y * np.log(x) + (1 - y) * np.log(1 - x)),
    share,
    share[::-1],
    positive,
)
add("_bernoulli_loss", lambda x, y: -y * np.log(x) - (1 - y) * np.log(1 - x), share, share[::-1])
add(
    "_bernoulli_loss",
    lambda x, y: np.array([100.0, 0.0, 0.0, 100.0], x.dtype),
    np.array([0.0, 0.0, 1.0, 1.0]),
    np.array([1.0, 0.0, 1.0, 0.0]),
    label="certain",
    gradient=False,
)
each_reduction(
    "gaussian_nll_loss", lambda x, y, var: (np.log(var) + (x - y) ** 2 / var) / 2, a, b, positive
)  # fmt: skip
add(
    "gaussian_nll_loss",
    lambda x, y, var, full: ((np.log(var) + (x - y) ** 2 / var + math.log(2 * math.pi)) / 2).mean(),
    a,
    b,
    positive[:, :1],
    kwargs={"full": True},
    label="full, one variance a row",
)
each_reduction("poisson_nll_loss", lambda x, y: np.exp(x) - y * x, a, positive)
add(
    "poisson_nll_loss",
    lambda x, y, log_input, full: (
        x - y * np.log(x + 1e-8) + np.where(y > 1, y * np.log(y) - y + np.log(2 * math.pi * y) / 2, 0)
    ).mean(),
    positive,
    positive[::-1],
    kwargs={"log_input": False, "full": True},
    label="rates, full",
)
for name in ("mse_loss", "l1_loss"):
    power = 2 if name == "mse_loss" else 1
    add(
        name,
        lambda x, y, weight, power=power: (abs(x - y) ** power * weight).sum() / weight.sum(),
        a,
        b,
        positive,
        label="weights",
    )
add(
    "huber_loss",
    lambda x, y, weight: (np.where(abs(x - y) < 1, (x - y) ** 2 / 2, abs(x - y) - 0.5) * weight).mean(),
    a,
    b,
    positive,
    label="weights",
)

each_reduction("hinge_embedding_loss", lambda x, y: np.where(y == 1, x, np.maximum(0, 1 - x)), a, signs)
each_reduction("soft_margin_loss", lambda x, y: np.log(1 + np.exp(-y * x)), a, signs)
each_reduction(
    "margin_ranking_loss", lambda x, y, t, margin: np.maximum(0, margin - t * (x - y)), a, b, signs, margin=0.4
)
each_reduction(
    "cosine_embedding_loss",
    lambda x, y, t, margin: np.where(t == 1, 1 - cosine(x, y), np.maximum(0, cosine(x, y) - margin)),
    a,
    b,
    np.array([1, -1, -1]),
    margin=-0.9,
)
each_reduction(
    "triplet_margin_loss",
    lambda x, y, z, p, eps: np.maximum(0, 1 + rows_norm(x - y + eps, p) - rows_norm(x - z + eps, p)),
    a,
    b,
    c,
    p=3,
    eps=0.01,
)
add(
    "triplet_margin_loss",
    lambda x, y, z, swap, margin: np.maximum(
        0, margin + rows_norm(x - y + 1e-6) - np.minimum(rows_norm(x - z + 1e-6), rows_norm(y - z + 1e-6))
    ).mean(),
    a,
    b,
    c,
    kwargs={"swap": True, "margin": 9.0},
    label="swap",
)
add(
    "triplet_margin_with_distance_loss",
    lambda x, y, z, distance_function: np.maximum(0, 1 + abs(x - y).sum(-1) - abs(x - z).sum(-1)).mean(),
    a,
    b,
    c,
    kwargs={"distance_function": lambda x, y: abs(x - y).sum(axis=-1)},
)


def multi_margin(x, labels, weight, p, margin):
    losses = np.zeros(len(labels), x.dtype)
    for row, label in enumerate(labels):
        others = np.delete(x[row], label)
        losses[row] = weight[label] * (np.maximum(0, margin - x[row, label] + others) ** p).sum() / x.shape[1]
    return losses


for p in (1, 2):
    add(
        "multi_margin_loss",
        lambda x, t, w, p, margin: multi_margin(x, t, w, p, margin).mean(),
        a,
        np.array([3, 0, 1]),
        positive[0],
        kwargs={"p": p, "margin": 0.7},
        label=f"p={p}",
    )


def multilabel_margin(x, target):
    losses = np.zeros(len(x), x.dtype)
    for row, labels in enumerate(target.tolist()):
        labels = list(itertools.takewhile(lambda n: n >= 0, labels))
        for label in labels:
            others = np.delete(x[row], labels)
            losses[row] += np.maximum(0, 1 - x[row, label] + others).sum() / x.shape[1]
    return losses


each_reduction(
    "multilabel_margin_loss", multilabel_margin, a, np.array([[3, 0, -1, 1], [-1, 2, 2, 2], [0, 1, 2, -1]])
)  # fmt: skip
each_reduction(
    "multilabel_soft_margin_loss",
    lambda x, y, w: (w * (np.log(1 + np.exp(x)) - x * y)).mean(-1),
    a,
    share,
    positive[0],
)


def ctc(log_probs, labels, blank=0):
    """By trying every path: those that give the labels when repetitions and then blanks are dropped."""
    steps, classes = log_probs.shape
    total = 0.0
    for path in itertools.product(range(classes), repeat=steps):
        kept = [n for n, _ in itertools.groupby(path) if n != blank]
        if kept == list(labels):
            total = total + np.exp(sum(log_probs[t, n] for t, n in enumerate(path)))
    return -np.log(total)


frames = log_soft(spread(5, 2, 3))
add(
    "ctc_loss",
    lambda x, y, n, m: (ctc(x[:5, 0], [1, 1]) / 2 + ctc(x[:4, 1], [2]) / 1) / 2,
    frames,
    np.array([[1, 1], [2, 0]]),
    np.array([5, 4]),
    np.array([2, 1]),
    label="mean",
)
add(
    "ctc_loss",
    lambda x, y, n, m, blank, reduction: np.array([ctc(x[:, 0], [1, 0], 2), ctc(x[:, 1], [], 2)]),
    frames,
    np.array([1, 0]),
    np.array([5, 5]),
    np.array([2, 0]),
    kwargs={"blank": 2, "reduction": "none"},
    label="in a row",
    dtype_as_reference=False,
)

for axis, p in ((1, 2.0), (0, 3.0)):
    add(
        "normalize",
        lambda x, p, axis: x / (abs(x) ** p).sum(axis, keepdims=True) ** (1 / p),
        a,
        kwargs={"p": p, "axis": axis},
        label=f"p={p}",
    )
add("pairwise_distance", lambda x, y: rows_norm(x - y + 1e-6), a, b)
add(
    "pairwise_distance",
    lambda x, y, p, keepdims: rows_norm(x - y + 1e-6, p)[:, None],
    a,
    b[0],
    kwargs={"p": 1.0, "keepdims": True},
    label="stretched",
)


def grouped(x, groups, eps=1e-5):
    rows = x.reshape(len(x), groups, -1)
    centred = rows - rows.mean(-1, keepdims=True)
    return (centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps)).reshape(x.shape)


picture, scale, shift = spread(2, 4, 3), spread(4, seed=1), spread(4, seed=2)
add("group_norm", lambda x, num_groups: grouped(x, 2), picture, kwargs={"num_groups": 2})
add(
    "group_norm",
    lambda x, w, bias, num_groups, eps: grouped(x, 1, eps) * w[:, None] + bias[:, None],
    picture,
    scale,
    shift,
    kwargs={"num_groups": 1, "eps": 0.1},
    label="weights",
)
add("instance_norm", lambda x: grouped(x, 4), picture)
add(
    "instance_norm",
    lambda x, w, bias, eps, **_: grouped(x, 4, eps) * w[:, None] + bias[:, None],
    picture,
    scale,
    shift,
    kwargs={"eps": 0.1},
    label="weights",
)
add(
    "instance_norm",
    lambda x, running_mean, running_var, use_input_stats: (
        (x - running_mean[:, None]) / np.sqrt(running_var[:, None] + 1e-5)
    ),
    picture,
    kwargs={
        "running_mean": Fixed(scale),
        "running_var": Fixed(spread(4, low=0.5, high=2)),
        "use_input_stats": False,
    },
    label="running",
    dtypes=("float64",),
)


def local_response(x, size, alpha, beta, k):
    out = np.zeros_like(x)
    for channel in range(x.shape[1]):
        near = x[:, max(channel - size // 2, 0) : channel + (size - 1) // 2 + 1]
        out[:, channel] = x[:, channel] / (k + alpha * (near**2).sum(1) / size) ** beta
    return out


for size in (2, 3):
    add(
        "local_response_norm",
        local_response,
        picture,
        kwargs={"size": size, "alpha": 0.5, "beta": 0.6, "k": 0.8},
        label=f"size {size}",
    )
add(
    "bilinear",
    lambda x, y, w, bias: np.stack([(x @ m * y).sum(-1) for m in w], -1) + bias,
    spread(2, 3),
    spread(2, 4, seed=1),
    spread(5, 3, 4, seed=2),
    spread(5, seed=3),
)
table = spread(5, 3)
add(
    "embedding_bag",
    lambda i, w, mode: w[i].sum(1),
    np.array([[0, 2], [4, 4]]),
    table,
    kwargs={"mode": "sum"},
    label="rows",
)
for mode, how in {"sum": np.sum, "mean": np.mean, "max": np.max}.items():
    add(
        "embedding_bag",
        lambda i, w, offsets, mode, how=how: np.stack([how(w[[0, 2, 4]], 0), w[0] * 0, how(w[[1]], 0)]),
        np.array([0, 2, 4, 1]),
        table,
        np.array([0, 3, 3]),
        kwargs={"mode": mode},
        label=f"bags, {mode}",
    )
add(
    "embedding_bag",
    lambda i, w, offsets, per_sample_weights, **_: np.stack(
        [per_sample_weights[0] * w[0] + per_sample_weights[1] * w[2], per_sample_weights[2] * w[4]]
    ),
    np.array([0, 2, 4]),
    table,
    np.array([0, 2, 3]),
    spread(3, seed=4),
    kwargs={"mode": "sum", "include_last_offset": True},
    label="weights",
)
add(
    "embedding_bag",
    lambda i, w, padding_idx: np.stack([w[0], w[4]]),
    np.array([[0, 2], [4, 4]]),
    table,
    kwargs={"padding_idx": 2},
    label="padding",
    gradient=False,
)
