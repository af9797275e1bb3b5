"""The fused operations that work along rows, norms, softmax and losses, on NumPy's arrays."""

from __future__ import annotations

import math

import numpy as np

from . import definitions as d
from .numpy import are_floating, blocks, register, rows_of


def accepts_rows(x, *parameters, **attributes):
    """Rows that are not empty, and parameters as long as they are: no loop broadcasts them."""
    fits = all(parameter is None or parameter.shape == x.shape[-1:] for parameter in parameters)
    return x.ndim > 0 and x.size > 0 and fits and are_floating(x, *parameters)


@np.errstate(all="ignore")
def _norm_forward(x, weight, bias, eps, centred):
    """Rows divided by their root mean square, after their mean is taken away if `centred`: both are kept."""
    rows, width = rows_of(x), x.shape[-1]  # (N, C)
    out, (mean, scale) = np.empty_like(rows), np.zeros((2, len(rows), 1), x.dtype)
    for b in blocks(*rows.shape):
        if centred:
            np.add.reduce(rows[b], -1, keepdims=True, out=mean[b])  # which for few rows is twice as fast as mean()
            mean[b] /= width
        normal = np.subtract(rows[b], mean[b], out=out[b]) if centred else rows[b]
        square = np.einsum("nc,nc->n", normal, normal)[:, None] / width
        square += eps
        np.divide(1, np.sqrt(square, out=square), out=scale[b])
        normal = np.multiply(normal, scale[b], out=out[b])
        if weight is not None:
            normal *= weight
        if bias is not None:
            normal += bias
    return out.reshape(x.shape), (mean, scale)


def _norm_backward(g, kept, needs, x, weight, centred):
    mean, scale = kept
    rows, g, width = rows_of(x), rows_of(g), x.shape[-1]
    out = np.empty_like(rows) if needs[0] else None
    g_weight = np.zeros(width, x.dtype) if needs[1] else None
    for b in blocks(*rows.shape):
        normal = rows[b] - mean[b] if centred else rows[b] * scale[b]
        if centred:
            normal *= scale[b]
        if g_weight is not None:
            g_weight += np.einsum("nc,nc->c", g[b], normal)
        if out is not None:
            along = g[b] if weight is None else g[b] * weight
            normal *= np.einsum("nc,nc->n", along, normal)[:, None] / -width
            normal += along
            if centred:
                normal -= along.mean(-1, keepdims=True)
            np.multiply(normal, scale[b], out=out[b])
    return None if out is None else out.reshape(x.shape), g_weight


def layer_norm_forward(x, weight, bias, *, eps):
    return _norm_forward(x, weight, bias, eps, centred=True)


def layer_norm_backward(g, kept, needs, x, weight, bias, *, eps):
    return *_norm_backward(g, kept, needs, x, weight, centred=True), rows_of(g).sum(0) if needs[2] else None


def rms_norm_forward(x, weight, *, eps):
    return _norm_forward(x, weight, None, eps, centred=False)


def rms_norm_backward(g, kept, needs, x, weight, *, eps):
    return _norm_backward(g, kept, needs, x, weight, centred=False)


register(d.layer_norm, layer_norm_forward, layer_norm_backward, accepts_rows)
register(d.rms_norm, rms_norm_forward, rms_norm_backward, accepts_rows)


def accepts_softmax(a, *, axis):
    return axis in (-1, a.ndim - 1) and accepts_rows(a)


def accepts_masked_softmax(a, allowed, *, axis):
    return allowed.dtype == bool and is_mask(allowed, a.shape) and accepts_softmax(a, axis=axis)


def is_mask(mask: np.ndarray, shape: tuple[int, ...]) -> bool:
    """Whether it is broadcast to arrays of this shape without making them larger."""
    return mask.ndim <= len(shape) and all(m in (1, n) for m, n in zip(mask.shape[::-1], shape[::-1]))


def softmax_in_place(rows: np.ndarray, masked: bool = True) -> np.ndarray:
    """Turn each row into its softmax; if `masked`, one that is all -inf becomes zeros. Returns the log of each row's sum, or inf."""
    top = rows.max(-1, keepdims=True)
    if masked:
        top[top == -math.inf] = 0
    rows -= top
    np.exp(rows, out=rows)
    total = rows.sum(-1, keepdims=True)
    empty = total == 0
    total[empty] = 1
    rows /= total
    np.log(total, out=total)
    total += top
    total[empty] = math.inf
    return total


@np.errstate(all="ignore")
def softmax_forward(a, *, axis):
    rows = rows_of(a).copy()
    for b in blocks(*rows.shape):
        part = rows[b]
        part -= part.max(-1, keepdims=True)
        np.exp(part, out=part)
        part /= part.sum(-1, keepdims=True)
    out = rows.reshape(a.shape)
    return out, out


def softmax_backward(g, out, needs, a, *rest, axis):
    rows, g = rows_of(out), rows_of(g)
    result = np.empty_like(rows)
    for b in blocks(*rows.shape):
        np.subtract(g[b], np.einsum("nc,nc->n", g[b], rows[b])[:, None], out=result[b])
        result[b] *= rows[b]
    return (result.reshape(a.shape), *[None for _ in rest])


register(d.softmax, softmax_forward, softmax_backward, accepts_softmax)


@np.errstate(all="ignore")
def masked_softmax_forward(a, allowed, *, axis):
    out = np.ascontiguousarray(np.where(allowed, a, a.dtype.type(-math.inf)))
    rows = rows_of(out)
    for b in blocks(*rows.shape):
        softmax_in_place(rows[b])
    return out, out


register(d.masked_softmax, masked_softmax_forward, softmax_backward, accepts_masked_softmax)


@np.errstate(all="ignore")
def cross_entropy_forward(logits, labels, *, ignore_index, smoothing):
    count, classes = logits.shape
    valid = labels != ignore_index
    tops, logs = np.empty((2, count, 1), logits.dtype)  # the largest logits, and the logarithms of sums of exponentials
    losses = np.empty(count, logits.dtype)
    for b in blocks(count, classes):
        below = logits[b] - logits[b].max(-1, keepdims=True, out=tops[b])
        logs[b] = np.log(np.exp(below).sum(-1, keepdims=True))
        at_labels = np.take_along_axis(below, np.where(valid[b], labels[b], 0)[:, None], -1)
        losses[b] = ((1 - smoothing) * (logs[b] - at_labels))[:, 0]
        if smoothing:
            losses[b] += smoothing * (logs[b, 0] - below.mean(-1))
    losses[~valid] = 0
    return losses, (tops, logs)


def cross_entropy_backward(g, kept, needs, logits, labels, *, ignore_index, smoothing):
    tops, logs = kept
    count, classes = logits.shape
    valid = labels != ignore_index
    g = np.where(valid, g, 0).astype(logits.dtype)
    out = np.empty_like(logits)
    for b in blocks(count, classes):
        part = np.subtract(logits[b], tops[b], out=out[b])
        part -= logs[b]
        np.exp(part, out=part)
        if smoothing:
            part -= smoothing / classes
        part[np.arange(len(part)), np.where(valid[b], labels[b], 0)] -= 1 - smoothing
        part *= g[b, None]
        part[~valid[b]] = 0
    return out, None


def accepts_cross_entropy(logits, labels, **attributes):
    return logits.ndim == 2 and labels.shape == logits.shape[:1] and accepts_rows(logits)


register(d.cross_entropy, cross_entropy_forward, cross_entropy_backward, accepts_cross_entropy)
