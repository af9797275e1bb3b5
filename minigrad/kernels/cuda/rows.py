"""Norms, softmax and cross-entropy on CuPy's arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...engine.backend import Array, backend_of
from .. import definitions as d
from ..numpy import rows_of
from ..numpy_rows import accepts_cross_entropy, accepts_masked_softmax, accepts_rows, accepts_softmax
from .launching import THREADS, WARP, each_row, register, start

Gradients = Sequence[Array | None]
STRIPS = THREADS // WARP  # as in rows.cu
SHARES = 64  # that the rows are divided into at most, to be added up for the gradient of a weight


def _contiguous(a: Array | None) -> Array | None:
    return None if a is None else backend_of(a).xp.ascontiguousarray(a)


def layer_norm_forward(x: Array, weight: Array, bias: Array, *, eps: float) -> tuple[Array, Any]:
    return _norm_forward(x, weight, bias, eps, centred=True)


def rms_norm_forward(x: Array, weight: Array, *, eps: float) -> tuple[Array, Any]:
    return _norm_forward(x, weight, None, eps, centred=False)


def _norm_forward(x: Array, weight: Array, bias: Array, eps: float, centred: bool) -> tuple[Array, Any]:
    xp, rows = backend_of(x).xp, rows_of(x)  # (N, C)
    out, scale = xp.empty(rows.shape, x.dtype), xp.empty(len(rows), x.dtype)
    mean = xp.empty(len(rows), x.dtype) if centred else None
    parameters = (_contiguous(weight), _contiguous(bias))
    each_row("norm_forward", rows.shape, _contiguous(rows), *parameters, out, mean, scale, float(eps))
    return out.reshape(x.shape), (mean, scale)


def layer_norm_backward(
    g: Array, kept: Any, needs: Sequence[bool], x: Array, weight: Array, bias: Array, *, eps: float
) -> Gradients:
    return *_norm_backward(g, kept, needs, x, weight), rows_of(g).sum(0) if needs[2] else None


def rms_norm_backward(g: Array, kept: Any, needs: Sequence[bool], x: Array, weight: Array, *, eps: float) -> Gradients:
    return _norm_backward(g, kept, needs, x, weight)


def _norm_backward(g: Array, kept: Any, needs: Sequence[bool], x: Array, weight: Array) -> Gradients:
    xp, (mean, scale) = backend_of(x).xp, kept
    g, x, shape = _contiguous(rows_of(g)), _contiguous(rows_of(x)), x.shape
    rows, width = x.shape
    out = g_weight = None
    if needs[0]:
        out = xp.empty(x.shape, x.dtype)
        each_row("norm_backward", x.shape, g, x, _contiguous(weight), mean, scale, out)
        out = out.reshape(shape)
    if needs[1]:
        grid = (-(-width // WARP), min(-(-rows // STRIPS), SHARES))
        parts = xp.empty((grid[1], width), x.dtype)
        start("norm_columns", x.dtype, grid, THREADS, g, x, mean, scale, parts, width, rows)
        g_weight = parts.sum(0)
    return out, g_weight


def softmax_forward(a: Array, *, axis: int) -> tuple[Array, Array]:
    return _softmax(a, None)


def masked_softmax_forward(a: Array, allowed: Array, *, axis: int) -> tuple[Array, Array]:
    return _softmax(a, _contiguous(backend_of(a).xp.broadcast_to(allowed, a.shape)))


def _softmax(a: Array, allowed: Array | None) -> tuple[Array, Array]:
    out = backend_of(a).xp.empty(a.shape, a.dtype)
    each_row("softmax_forward", rows_of(a).shape, _contiguous(a), allowed, out)
    return out, out


def softmax_backward(g: Array, out: Array, needs: Sequence[bool], a: Array, *rest: Any, axis: int) -> Gradients:
    result = backend_of(a).xp.empty(a.shape, a.dtype)
    each_row("softmax_backward", rows_of(out).shape, _contiguous(g), out, result)
    return (result, *[None for _ in rest])


def cross_entropy_forward(
    logits: Array, labels: Array, *, ignore_index: int, smoothing: float
) -> tuple[Array, tuple[Array, Array]]:
    xp = backend_of(logits).xp
    labels = xp.ascontiguousarray(labels.astype("int64"))
    losses, logs = xp.empty(len(logits), logits.dtype), xp.empty(len(logits), logits.dtype)
    scalars = (ignore_index, float(1 - smoothing), float(smoothing))
    each_row("cross_entropy_forward", logits.shape, _contiguous(logits), labels, losses, logs, *scalars)
    return losses, (labels, logs)


def cross_entropy_backward(
    g: Array, kept: Any, needs: Sequence[bool], logits: Array, labels: Array, *, ignore_index: int, smoothing: float
) -> Gradients:
    whole, logs = kept  # labels as whole numbers of 64 bits
    out = backend_of(logits).xp.empty(logits.shape, logits.dtype)
    scalars = (ignore_index, float(1 - smoothing), float(smoothing / logits.shape[1]))
    arrays = (_contiguous(g), _contiguous(logits), whole, logs, out)
    each_row("cross_entropy_backward", logits.shape, *arrays, *scalars)
    return out, None


register(d.layer_norm, layer_norm_forward, layer_norm_backward, accepts_rows)
register(d.rms_norm, rms_norm_forward, rms_norm_backward, accepts_rows)
register(d.softmax, softmax_forward, softmax_backward, accepts_softmax)
register(d.masked_softmax, masked_softmax_forward, softmax_backward, accepts_masked_softmax)
register(d.cross_entropy, cross_entropy_forward, cross_entropy_backward, accepts_cross_entropy)
