"""The fused operations on NumPy's arrays: in place on memory of their own, and block by block so that it stays in the cache."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..engine.op import Function
from ..ops.elementwise.unary import erf
from . import definitions as d
from .registry import Kernel

BLOCK = 32_768  # elements that fit into the second-level cache a few times over


def are_floating(*arrays: Any, **attributes: Any) -> bool:
    """Whether all arrays are float32, or all are float64; None stands for an input that was left out."""
    dtype = arrays[0].dtype
    for array in arrays:
        if array is not None and array.dtype != dtype:
            return False
    return dtype.char in "fd"


def register(function: Function, forward: Any, backward: Any, accepts: Any = are_floating) -> None:
    function.kernels["numpy"] = Kernel(forward, backward, accepts)


def rows_of(x: np.ndarray) -> np.ndarray:
    """(…, C) -> (N, C)"""
    return x.reshape(-1, x.shape[-1])


def blocks(count: int, width: int = 1) -> Iterator[slice]:
    """`count` rows of `width` elements, a block that fits the cache at a time."""
    step = max(BLOCK // max(width, 1), 1)
    return (slice(i, min(i + step, count)) for i in range(0, count, step))


def linear_forward(x, weight, bias):
    rows = x if x.ndim == 2 else rows_of(x)
    out = rows @ weight.T  # (N, in) @ (in, out)
    if bias is not None:
        out += bias
    return out if x.ndim == 2 else out.reshape(*x.shape[:-1], len(weight)), None


def linear_backward(g, kept, needs, x, weight, bias):
    rows, inner = (g, x) if x.ndim == 2 else (rows_of(g), rows_of(x))  # (N, out), (N, in)
    to_x = None
    if needs[0]:
        to_x = rows @ weight  # (N, out) @ (out, in)
        to_x = to_x if x.ndim == 2 else to_x.reshape(x.shape)
    return (
        to_x,
        rows.T @ inner if needs[1] else None,  # (out, N) @ (N, in)
        np.ones(len(rows), x.dtype) @ rows if needs[2] else None,  # BLAS adds up columns faster than NumPy
    )


def accepts_linear(x, weight, bias):
    dtype = x.dtype
    alike = dtype.char in "fd" and weight.dtype == dtype and (bias is None or bias.dtype == dtype)
    fits = weight.ndim == 2 and (bias is None or bias.shape == weight.shape[:1])  # no loop broadcasts a bias
    return alike and fits and x.size > 0 and weight.size > 0


register(d.linear, linear_forward, linear_backward, accepts_linear)

_SLOPE = 2 * math.sqrt(2 / math.pi)


def _gelu_share(x: np.ndarray, approximate: str) -> np.ndarray:
    """What gelu multiplies x by: Φ(x), or its approximation `sigmoid(2 √(2/π) (x + 0.044715 x³))`."""
    if approximate == "tanh":
        s = x * x
        s *= -0.044715 * _SLOPE
        s -= _SLOPE
        s *= x
        np.exp(s, out=s)
        s += 1
        return np.divide(1, s, out=s)
    s = erf.forward(np, x * math.sqrt(0.5))
    s += 1
    s *= 0.5
    return s


def _gelu_slope(x: np.ndarray, approximate: str) -> np.ndarray:
    share = _gelu_share(x, approximate)
    if approximate == "tanh":
        inner = x * x
        inner *= 3 * 0.044715 * _SLOPE
        inner += _SLOPE
        inner *= x
        inner *= share
        inner *= 1 - share
    else:
        inner = x * x
        inner *= -0.5
        np.exp(inner, out=inner)
        inner *= x
        inner *= 1 / math.sqrt(2 * math.pi)
    share += inner
    return share


def _elementwise(share: Any, slope: Any) -> tuple[Any, Any]:
    """Forward, `x · share(x)`, and backward, `g · slope(x)`, block by block."""

    def multiplied(by: np.ndarray, x: np.ndarray, factor: Any, attributes: dict[str, Any]) -> np.ndarray:
        by, flat = by.reshape(-1), x.reshape(-1)
        out = np.empty_like(flat)
        for b in blocks(flat.size):
            np.multiply(by[b], factor(flat[b], **attributes), out=out[b])
        return out.reshape(x.shape)

    @np.errstate(all="ignore")
    def forward(a, **attributes):
        return multiplied(a, a, share, attributes), None

    def backward(g, kept, needs, a, **attributes):
        return (multiplied(g, a, slope, attributes),)

    return forward, backward


def accepts_gelu(a, *, approximate):
    return approximate in ("none", "tanh") and are_floating(a)


gelu_forward, gelu_backward = _elementwise(_gelu_share, _gelu_slope)
register(d.gelu, gelu_forward, gelu_backward, accepts_gelu)


@np.errstate(all="ignore")
def linear_gelu_forward(x, weight, bias, *, approximate):
    """What is kept is the sum that gelu is taken of."""
    inner = rows_of(x) @ weight.T  # (N, in) @ (in, out)
    out = np.empty_like(inner)
    for b in blocks(*inner.shape):  # the bias and gelu while a block is in the cache
        if bias is not None:
            inner[b] += bias
        np.multiply(inner[b], _gelu_share(inner[b], approximate), out=out[b])
    return out.reshape(*x.shape[:-1], len(weight)), inner


def linear_gelu_backward(g, inner, needs, x, weight, bias, *, approximate):
    (g,) = gelu_backward(rows_of(g), None, needs, inner, approximate=approximate)
    return linear_backward(g.reshape(*x.shape[:-1], -1), None, needs, x, weight, bias)


def accepts_linear_gelu(x, weight, bias, *, approximate):
    return approximate in ("none", "tanh") and accepts_linear(x, weight, bias)


register(d.linear_gelu, linear_gelu_forward, linear_gelu_backward, accepts_linear_gelu)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    s = np.negative(x)
    np.exp(s, out=s)
    s += 1
    return np.divide(1, s, out=s)


def _silu_slope(x: np.ndarray, s: np.ndarray) -> np.ndarray:
    """`s (1 + x (1 - s))`, s the sigmoid of x."""
    slope = 1 - s
    slope *= x
    slope += 1
    slope *= s
    return slope


register(d.silu, *_elementwise(_sigmoid, lambda x: _silu_slope(x, _sigmoid(x))))


@np.errstate(all="ignore")
def swiglu_forward(x):
    rows, half = rows_of(x), x.shape[-1] // 2
    out = np.empty((len(rows), half), x.dtype)
    for b in blocks(len(rows), x.shape[-1]):
        gate, up = rows[b, :half], rows[b, half:]
        np.multiply(gate, _sigmoid(gate), out=out[b])
        out[b] *= up
    return out.reshape(*x.shape[:-1], half), None


def swiglu_backward(g, kept, needs, x):
    rows, half, g = rows_of(x), x.shape[-1] // 2, rows_of(g)
    out = np.empty_like(rows)
    for b in blocks(len(rows), x.shape[-1]):
        gate, up = rows[b, :half], rows[b, half:]
        s = _sigmoid(gate)
        np.multiply(_silu_slope(gate, s), up, out=out[b, :half])
        out[b, :half] *= g[b]
        np.multiply(gate, s, out=out[b, half:])
        out[b, half:] *= g[b]
    return (out.reshape(x.shape),)


def accepts_swiglu(x):
    return x.ndim > 0 and x.size > 0 and x.shape[-1] % 2 == 0 and are_floating(x)


register(d.swiglu, swiglu_forward, swiglu_backward, accepts_swiglu)


def dropout_forward(x, *, p, key, start):
    flat, out = x.reshape(-1), np.empty(x.size, x.dtype)
    factors = np.empty(x.size, x.dtype)
    for b in blocks(flat.size):
        factors[b] = d._dropout_factors.forward(np, flat[b], p=p, key=key, start=start + b.start)
        np.multiply(flat[b], factors[b], out=out[b])
    return out.reshape(x.shape), factors.reshape(x.shape)


def dropout_backward(g, factors, needs, x, **attributes):
    return (g * factors,)


register(d.dropout, dropout_forward, dropout_backward)


def embedding_forward(weight, index, *, padding_idx):
    return weight[index], None


def embedding_backward(g, kept, needs, weight, index, *, padding_idx):
    """Rows of the same number are brought together by sorting, and then added up in one pass."""
    numbers, rows = index.reshape(-1), rows_of(g)
    order = np.argsort(numbers, kind="stable")
    numbers = numbers[order]
    starts = np.flatnonzero(np.concatenate(([True], numbers[1:] != numbers[:-1])))
    out = np.zeros(weight.shape, weight.dtype)
    out[numbers[starts]] = np.add.reduceat(rows[order], starts)
    if padding_idx is not None:
        out[padding_idx] = 0
    return out, None


def accepts_embedding(weight, index, *, padding_idx):
    return index.size > 0 and weight.size > 0 and are_floating(weight)


register(d.embedding, embedding_forward, embedding_backward, accepts_embedding)
