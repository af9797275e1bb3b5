"""Activations, dropout, the bias of a linear layer and the gradient of an embedding, compiled by numba for float32.

Wrappers hand over arrays in C order that may be written to, and numbers as float32, so that each kernel is compiled once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...engine.op import Function
from .. import definitions as d
from ..numpy import are_floating, embedding_forward, rows_of
from ..registry import Kernel
from .compiling import exact, kernel
from .maths import HALF, ONE, ZERO, F, exp, normal_cdf, sigmoid


def register(function: Function, forward: Any, backward: Any, accepts: Any = None) -> None:
    """For the arrays that `accepts`, or NumPy's kernel if there is one, takes, as far as they are float32."""
    by_numpy = function.kernels.get("numpy")
    accepts = accepts or (are_floating if by_numpy is None else by_numpy.accepts)

    def accepts_single(*arrays: Any, **attributes: Any) -> bool:
        return arrays[0].dtype == np.float32 and accepts(*arrays, **attributes)

    function.kernels["numba"] = Kernel(forward, backward, accepts_single)


def plain(x: np.ndarray) -> np.ndarray:
    """The array, or a copy where it is not in C order, aligned and writable: numba would compile for that anew."""
    return x if x.flags.carray else x.copy()


def plain_rows(x: np.ndarray) -> np.ndarray:
    """(…, C) -> (N, C)"""
    return rows_of(plain(x))


def activation(forward: Any, backward: Any) -> tuple[Any, Any]:
    """The two functions of a kernel from loops over flat arrays, `forward(x, out)` and `backward(g, x, out)`."""

    def run(x: np.ndarray) -> tuple[np.ndarray, None]:
        out = np.empty(x.shape, x.dtype)
        forward(plain(x).reshape(-1), out.reshape(-1))
        return out, None

    def run_backward(g: np.ndarray, kept: None, needs: Any, x: np.ndarray) -> tuple[np.ndarray]:
        out = np.empty(x.shape, x.dtype)
        backward(plain(g).reshape(-1), plain(x).reshape(-1), out.reshape(-1))
        return (out,)

    return run, run_backward


_SLOPE, _CUBIC = F(2 * math.sqrt(2 / math.pi)), F(2 * math.sqrt(2 / math.pi) * 0.044715)
_THREE = F(3)


@kernel
def _gelu_tanh(x, out):
    for i in range(x.size):
        v = x[i]
        out[i] = v * sigmoid(v * (_CUBIC * (v * v) + _SLOPE))


@kernel
def _gelu_tanh_backward(g, x, out):
    for i in range(x.size):
        v = x[i]
        square = _CUBIC * (v * v)
        s = sigmoid(v * (square + _SLOPE))
        out[i] = g[i] * (s + v * (_THREE * square + _SLOPE) * (s * (ONE - s)))


_DENSITY = F(1 / math.sqrt(2 * math.pi))


@kernel
def _gelu_exact(x, out):
    for i in range(x.size):
        v = x[i]
        out[i] = v * normal_cdf(v, exp(-HALF * (v * v)))


@kernel
def _gelu_exact_backward(g, x, out):
    for i in range(x.size):
        v = x[i]
        bell = exp(-HALF * (v * v))
        out[i] = g[i] * (normal_cdf(v, bell) + v * (_DENSITY * bell))


GELU = {"tanh": activation(_gelu_tanh, _gelu_tanh_backward), "none": activation(_gelu_exact, _gelu_exact_backward)}


def gelu_forward(a, *, approximate):
    return GELU[approximate][0](a)


def gelu_backward(g, kept, needs, a, *, approximate):
    return GELU[approximate][1](g, kept, needs, a)


register(d.gelu, gelu_forward, gelu_backward)


@exact
def _silu_slope(v, s):
    return s * (ONE + v * (ONE - s))


@kernel
def _silu(x, out):
    for i in range(x.size):
        out[i] = x[i] * sigmoid(x[i])


@kernel
def _silu_backward(g, x, out):
    for i in range(x.size):
        out[i] = g[i] * _silu_slope(x[i], sigmoid(x[i]))


register(d.silu, *activation(_silu, _silu_backward))


@kernel
def _swiglu(x, out):
    half = out.shape[1]
    for n in range(x.shape[0]):
        gate, up, to = x[n, :half], x[n, half:], out[n]
        for j in range(half):
            to[j] = gate[j] * sigmoid(gate[j]) * up[j]


@kernel
def _swiglu_backward(g, x, out):
    half = g.shape[1]
    for n in range(x.shape[0]):
        gate, up, slope = x[n, :half], x[n, half:], g[n]
        to_gate, to_up = out[n, :half], out[n, half:]
        for j in range(half):
            s = sigmoid(gate[j])
            to_gate[j] = slope[j] * up[j] * _silu_slope(gate[j], s)
            to_up[j] = slope[j] * (gate[j] * s)


def swiglu_forward(x):
    out = np.empty((*x.shape[:-1], x.shape[-1] // 2), x.dtype)
    _swiglu(plain_rows(x), rows_of(out))
    return out, None


def swiglu_backward(g, kept, needs, x):
    out = np.empty(x.shape, x.dtype)
    _swiglu_backward(plain_rows(g), plain_rows(x), rows_of(out))
    return (out,)


register(d.swiglu, swiglu_forward, swiglu_backward)

_MIX_1, _MIX_2, _16, _15 = np.uint32(0x21F0AAAD), np.uint32(0x735A2D97), np.uint32(16), np.uint32(15)


@exact
def _mixed(number, half):
    number = np.uint32(number ^ half)
    number = np.uint32(number ^ np.uint32(number >> _16))
    number = np.uint32(number * _MIX_1)
    number = np.uint32(number ^ np.uint32(number >> _15))
    number = np.uint32(number * _MIX_2)
    return np.uint32(number ^ np.uint32(number >> _15))


@exact
def hashed(number: np.uint32, low: np.uint32, high: np.uint32) -> np.uint32:
    """What minigrad.random.hashed gives for a uint32, the key in two halves."""
    return _mixed(_mixed(number, low), high)


@kernel
def _dropout(x, out, start, low, high, threshold, factor):
    for i in range(x.size):
        is_kept = hashed(np.uint32(start + np.uint32(i)), low, high) >= threshold
        out[i] = x[i] * (factor if is_kept else ZERO)


def dropout_key(p: float, key: int, start: int) -> tuple[Any, ...]:
    """The number of the first element, the halves of the key, the least hash that is kept, and the factor then."""
    threshold = min(int(p * 2**32), 2**32 - 1)
    words = [np.uint32(word & 0xFFFFFFFF) for word in (start, key, key >> 32, threshold)]
    return *words, np.float32(1 / (1 - p) if p < 1 else 0)


def dropout_forward(x, *, p, key, start):
    out = np.empty(x.shape, x.dtype)
    _dropout(plain(x).reshape(-1), out.reshape(-1), *dropout_key(p, key, start))
    return out, None


def dropout_backward(g, kept, needs, x, *, p, key, start):
    return (dropout_forward(g, p=p, key=key, start=start)[0],)


register(d.dropout, dropout_forward, dropout_backward)


@kernel
def _add_bias(rows, bias):
    for n in range(rows.shape[0]):
        row = rows[n]
        for j in range(row.size):
            row[j] += bias[j]


def linear_forward(x, weight, bias):
    out = rows_of(x) @ weight.T  # (N, in) @ (in, out)
    if bias is not None:
        _add_bias(out, plain(bias))
    return out.reshape(*x.shape[:-1], len(weight)), None


def linear_backward(g, kept, needs, x, weight, bias):
    rows = rows_of(g)  # (N, out)
    return (
        (rows @ weight).reshape(x.shape) if needs[0] else None,  # (N, out) @ (out, in)
        rows.T @ rows_of(x) if needs[1] else None,  # (out, N) @ (N, in)
        np.ones(len(rows), x.dtype) @ rows if needs[2] else None,  # BLAS adds up columns faster than NumPy
    )


register(d.linear, linear_forward, linear_backward)


@kernel
def _biased_gelu_tanh(rows, bias, out):
    for n in range(rows.shape[0]):
        row, to = rows[n], out[n]
        for j in range(row.size):
            v = row[j] + bias[j]
            row[j] = v
            to[j] = v * sigmoid(v * (_CUBIC * (v * v) + _SLOPE))


@kernel
def _biased_gelu_exact(rows, bias, out):
    for n in range(rows.shape[0]):
        row, to = rows[n], out[n]
        for j in range(row.size):
            v = row[j] + bias[j]
            row[j] = v
            to[j] = v * normal_cdf(v, exp(-HALF * (v * v)))


BIASED_GELU = {"tanh": _biased_gelu_tanh, "none": _biased_gelu_exact}


def linear_gelu_forward(x, weight, bias, *, approximate):
    """One pass over the product adds the bias, which is kept, and takes gelu."""
    inner = rows_of(x) @ weight.T  # (N, in) @ (in, out)
    if bias is None:
        out, _ = gelu_forward(inner, approximate=approximate)
    else:
        out = np.empty_like(inner)
        BIASED_GELU[approximate](inner, plain(bias), out)
    return out.reshape(*x.shape[:-1], len(weight)), inner


def linear_gelu_backward(g, inner, needs, x, weight, bias, *, approximate):
    (g,) = gelu_backward(rows_of(g), None, needs, inner, approximate=approximate)
    return linear_backward(g, None, needs, x, weight, bias)


register(d.linear_gelu, linear_gelu_forward, linear_gelu_backward)


@kernel
def _embedding_backward(g, index, padding, out):
    for n in range(index.size):
        number = index[n]
        if number == padding:
            continue
        slope, to = g[n], out[number]
        for j in range(slope.size):
            to[j] += slope[j]


def embedding_backward(g, kept, needs, weight, index, *, padding_idx):
    out = np.zeros(weight.shape, weight.dtype)
    numbers = plain(index.astype(np.int64, copy=False)).reshape(-1)
    _embedding_backward(plain_rows(g), numbers, len(weight) if padding_idx is None else padding_idx, out)
    return out, None


register(d.embedding, embedding_forward, embedding_backward)
