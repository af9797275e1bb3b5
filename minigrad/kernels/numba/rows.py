"""Norms, softmax and the cross-entropy along rows, compiled by numba for float32: each row is read once into the cache."""

from __future__ import annotations

import math

import numpy as np

from .. import definitions as d
from ..numpy import rows_of
from .compiling import exact, kernel
from .elementwise import plain, plain_rows, register
from .maths import INF, ONE, ZERO, F, exp, log

_POSITIVE = np.int32(0x7FFFFFFF)
_LEAST = np.int32(-0x80000000)


@exact
def _ordered(x):
    """The bits of a float, in an order of integers that is the order of floats; and back. Maxima of integers are vectorised."""
    bits = np.float32(x).view(np.int32)
    return np.int32(bits ^ np.int32(np.int32(bits >> 31) & _POSITIVE))


@exact
def _unordered(bits):
    return np.int32(bits ^ np.int32(np.int32(bits >> 31) & _POSITIVE)).view(np.float32)


@kernel
def top_of(row: np.ndarray) -> np.float32:
    """The greatest number of a row. NaN may be passed over: it shows in the sum of the exponentials."""
    top = _LEAST
    for j in range(row.size):
        top = max(top, _ordered(row[j]))
    return _unordered(top)


@kernel
def _layer_norm(x, weight, bias, eps, out, mean, scale):
    width = F(x.shape[1])
    for n in range(x.shape[0]):
        row, to = x[n], out[n]
        total = ZERO
        for j in range(row.size):
            total += row[j]
        m = total / width
        total = ZERO
        for j in range(row.size):
            total += (row[j] - m) * (row[j] - m)
        s = ONE / math.sqrt(total / width + eps)
        for j in range(row.size):
            to[j] = (row[j] - m) * s * weight[j] + bias[j]
        mean[n], scale[n] = m, s


@kernel
def _layer_norm_backward(g, x, weight, mean, scale, out, g_weight, g_bias):
    width = F(x.shape[1])
    for n in range(x.shape[0]):
        slope, row, to, m, s = g[n], x[n], out[n], mean[n], scale[n]
        along, across = ZERO, ZERO  # sums of the gradient of the normal numbers, and of it times them
        for j in range(row.size):
            normal = (row[j] - m) * s
            to[j] = slope[j] * weight[j]
            along += to[j]
            across += to[j] * normal
            g_weight[j] += slope[j] * normal
            g_bias[j] += slope[j]
        along /= width
        across /= width
        for j in range(row.size):
            to[j] = (to[j] - along - (row[j] - m) * s * across) * s


def layer_norm_forward(x, weight, bias, *, eps):
    rows = plain_rows(x)  # (N, C)
    out, mean, scale = np.empty(x.shape, x.dtype), np.empty(len(rows), x.dtype), np.empty(len(rows), x.dtype)
    _layer_norm(rows, _or_ones(weight, x), _or_zeros(bias, x), np.float32(eps), rows_of(out), mean, scale)
    return out, (mean, scale)


def layer_norm_backward(g, kept, needs, x, weight, bias, *, eps):
    out, g_weight, g_bias = np.empty(x.shape, x.dtype), np.zeros(x.shape[-1:], x.dtype), np.zeros(x.shape[-1:], x.dtype)
    _layer_norm_backward(plain_rows(g), plain_rows(x), _or_ones(weight, x), *kept, rows_of(out), g_weight, g_bias)
    return _needed(needs, out, g_weight, g_bias)


def _or_ones(weight: np.ndarray | None, x: np.ndarray) -> np.ndarray:
    return np.ones(x.shape[-1:], x.dtype) if weight is None else plain(weight)


def _or_zeros(bias: np.ndarray | None, x: np.ndarray) -> np.ndarray:
    return np.zeros(x.shape[-1:], x.dtype) if bias is None else plain(bias)


def _needed(needs: tuple[bool, ...], *grads: np.ndarray) -> list[np.ndarray | None]:
    return [g if need else None for g, need in zip(grads, needs)]


register(d.layer_norm, layer_norm_forward, layer_norm_backward)


@kernel
def _rms_norm(x, weight, eps, out, scale):
    width = F(x.shape[1])
    for n in range(x.shape[0]):
        row, to = x[n], out[n]
        total = ZERO
        for j in range(row.size):
            total += row[j] * row[j]
        s = ONE / math.sqrt(total / width + eps)
        for j in range(row.size):
            to[j] = row[j] * s * weight[j]
        scale[n] = s


@kernel
def _rms_norm_backward(g, x, weight, scale, out, g_weight):
    width = F(x.shape[1])
    for n in range(x.shape[0]):
        slope, row, to, s = g[n], x[n], out[n], scale[n]
        across = ZERO
        for j in range(row.size):
            normal = row[j] * s
            to[j] = slope[j] * weight[j]
            across += to[j] * normal
            g_weight[j] += slope[j] * normal
        across /= width
        for j in range(row.size):
            to[j] = (to[j] - row[j] * s * across) * s


def rms_norm_forward(x, weight, *, eps):
    rows = plain_rows(x)  # (N, C)
    out, scale = np.empty(x.shape, x.dtype), np.empty(len(rows), x.dtype)
    _rms_norm(rows, _or_ones(weight, x), np.float32(eps), rows_of(out), scale)
    return out, scale


def rms_norm_backward(g, scale, needs, x, weight, *, eps):
    out, g_weight = np.empty(x.shape, x.dtype), np.zeros(x.shape[-1:], x.dtype)
    _rms_norm_backward(plain_rows(g), plain_rows(x), _or_ones(weight, x), scale, rows_of(out), g_weight)
    return _needed(needs, out, g_weight)


register(d.rms_norm, rms_norm_forward, rms_norm_backward)


@kernel
def _softmax(x, out):
    for n in range(x.shape[0]):
        row, to = x[n], out[n]
        top = top_of(row)
        total = ZERO
        for j in range(row.size):
            e = exp(row[j] - top)
            total += e
            to[j] = e
        share = ONE / total
        for j in range(row.size):
            to[j] *= share


@kernel
def _softmax_backward(g, y, out):
    for n in range(y.shape[0]):
        slope, row, to = g[n], y[n], out[n]
        total = ZERO
        for j in range(row.size):
            total += slope[j] * row[j]
        for j in range(row.size):
            to[j] = (slope[j] - total) * row[j]


def softmax_forward(a, *, axis):
    out = np.empty(a.shape, a.dtype)
    _softmax(plain_rows(a), rows_of(out))
    return out, out


def softmax_backward(g, out, needs, a, *rest, axis):
    grad = np.empty(a.shape, a.dtype)
    _softmax_backward(plain_rows(g), plain_rows(out), rows_of(grad))
    return (grad, *[None for _ in rest])


register(d.softmax, softmax_forward, softmax_backward)


@kernel
def _masked_softmax(x, masks, which, out):
    """Row n may look where row `which[n]` of the masks is True; one that may look nowhere becomes zeros."""
    for n in range(x.shape[0]):
        row, allowed, to = x[n], masks[which[n]], out[n]
        for j in range(row.size):
            to[j] = row[j] if allowed[j] else -INF
        top = top_of(to)
        top = ZERO if top == -INF else top
        total = ZERO
        for j in range(row.size):
            e = exp(to[j] - top)
            total += e
            to[j] = e
        share = ONE if total == ZERO else ONE / total
        for j in range(row.size):
            to[j] *= share


def masked_softmax_forward(a, allowed, *, axis):
    out = np.empty(a.shape, a.dtype)
    _masked_softmax(plain_rows(a), *mask_rows(allowed, a.shape), rows_of(out))
    return out, out


def mask_rows(allowed: np.ndarray, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The different rows of a mask, (M, C), and which of them each row of the array has, (N,): nothing is repeated."""
    allowed = allowed.reshape((1,) * (len(shape) - allowed.ndim) + allowed.shape)
    rows = plain_rows(np.broadcast_to(allowed, (*allowed.shape[:-1], shape[-1])))
    numbers = np.arange(len(rows)).reshape(allowed.shape[:-1])
    return rows, plain(np.broadcast_to(numbers, shape[:-1])).reshape(-1)


register(d.masked_softmax, masked_softmax_forward, softmax_backward)


@exact
def _loss(norm, x, top):
    """`norm + top - x` in the order that loses nothing where the logits are large."""
    return norm - (x - top)


@kernel
def _cross_entropy(logits, labels, ignored, smoothing, losses, tops, sums):
    classes = F(logits.shape[1])
    for n in range(logits.shape[0]):
        if labels[n] == ignored:
            losses[n] = ZERO
            continue
        row = logits[n]
        top = top_of(row)
        total = ZERO
        for j in range(row.size):
            total += exp(row[j] - top)
        norm = log(total)
        losses[n] = (ONE - smoothing) * _loss(norm, row[labels[n]], top)
        if smoothing != ZERO:
            mean = ZERO
            for j in range(row.size):
                mean += _loss(norm, row[j], top) / classes
            losses[n] += smoothing * mean
        tops[n], sums[n] = top, total


@kernel
def _cross_entropy_backward(g, logits, labels, ignored, smoothing, tops, sums, out):
    classes = F(logits.shape[1])
    for n in range(logits.shape[0]):
        row, to, slope, top = logits[n], out[n], g[n], tops[n]
        if labels[n] == ignored:
            to[:] = ZERO
            continue
        factor, uniform = slope / sums[n], slope * smoothing / classes
        for j in range(row.size):
            to[j] = exp(row[j] - top) * factor - uniform
        to[labels[n]] -= slope * (ONE - smoothing)


def _labels(labels: np.ndarray) -> np.ndarray:
    return plain(labels.astype(np.int64, copy=False))


def cross_entropy_forward(logits, labels, *, ignore_index, smoothing):
    losses, *kept = [np.empty(len(logits), logits.dtype) for _ in range(3)]  # kept: maxima, and sums of exponentials
    _cross_entropy(plain(logits), _labels(labels), ignore_index, np.float32(smoothing), losses, *kept)
    return losses, kept


def cross_entropy_backward(g, kept, needs, logits, labels, *, ignore_index, smoothing):
    out = np.empty(logits.shape, logits.dtype)
    _cross_entropy_backward(plain(g), plain(logits), _labels(labels), ignore_index, np.float32(smoothing), *kept, out)
    return out, None


register(d.cross_entropy, cross_entropy_forward, cross_entropy_backward)
