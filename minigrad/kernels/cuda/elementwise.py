"""Linear layers, activations, dropout and embeddings on CuPy's arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...engine.backend import Array, backend_of
from ...engine.op import Function
from .. import definitions as d
from ..numpy import (
    accepts_embedding,
    accepts_gelu,
    accepts_linear,
    accepts_linear_gelu,
    accepts_swiglu,
    are_floating,
    rows_of,
)
from ..registry import FUSED
from .launching import dropout_arguments, each, register

Gradients = Sequence[Array | None]


def linear_forward(x: Array, weight: Array, bias: Array) -> tuple[Array, None]:
    xp = backend_of(x).xp
    out = xp.ascontiguousarray(rows_of(x) @ weight.T)  # (N, in) @ (in, out)
    if bias is not None:
        each("add_bias", out.size, xp.ascontiguousarray(bias), out, out.shape[1])
    return out.reshape(*x.shape[:-1], len(weight)), None


def linear_backward(g: Array, kept: None, needs: Sequence[bool], x: Array, weight: Array, bias: Array) -> Gradients:
    rows = rows_of(g)  # (N, out)
    return (
        (rows @ weight).reshape(x.shape) if needs[0] else None,  # (N, out) @ (out, in)
        rows.T @ rows_of(x) if needs[1] else None,  # (out, N) @ (N, in)
        rows.sum(0) if needs[2] else None,
    )


def _mapped(name: str, *arrays: Array) -> Array:
    """A new array of the shape of the last, each element made by a kernel from those of the arrays."""
    xp = backend_of(arrays[-1]).xp
    out = xp.empty(arrays[-1].shape, arrays[-1].dtype)
    each(name, out.size, *[xp.ascontiguousarray(a) for a in arrays], out)
    return out


def gelu_forward(a: Array, *, approximate: str) -> tuple[Array, None]:
    return _mapped(f"gelu_{approximate}_forward", a), None


def gelu_backward(g: Array, kept: None, needs: Sequence[bool], a: Array, *, approximate: str) -> Gradients:
    return (_mapped(f"gelu_{approximate}_backward", g, a),)


def linear_gelu_forward(x: Array, weight: Array, bias: Array, *, approximate: str) -> tuple[Array, Array]:
    """One pass over the product adds the bias, which is kept, and takes gelu."""
    xp = backend_of(x).xp
    inner = xp.ascontiguousarray(rows_of(x) @ weight.T)  # (N, in) @ (in, out)
    if bias is None:
        out = _mapped(f"gelu_{approximate}_forward", inner)
    else:
        out = xp.empty(inner.shape, inner.dtype)
        each(f"biased_gelu_{approximate}", out.size, xp.ascontiguousarray(bias), inner, out, out.shape[1])
    return out.reshape(*x.shape[:-1], len(weight)), inner


def linear_gelu_backward(
    g: Array, inner: Array, needs: Sequence[bool], x: Array, weight: Array, bias: Array, *, approximate: str
) -> Gradients:
    g = _mapped(f"gelu_{approximate}_backward", rows_of(g), inner)
    return linear_backward(g, None, needs, x, weight, bias)


def register_activation(function: Function) -> None:
    """The kernels NAME_forward(x, out, n) and NAME_backward(g, x, out, n) compute an op of one input, element by element."""

    def forward(x: Array) -> tuple[Array, None]:
        return _mapped(f"{function.name}_forward", x), None

    def backward(g: Array, kept: None, needs: Sequence[bool], x: Array) -> Gradients:
        return (_mapped(f"{function.name}_backward", g, x),)

    register(function, forward, backward, are_floating)


def swiglu_forward(x: Array) -> tuple[Array, None]:
    xp, half = backend_of(x).xp, x.shape[-1] // 2
    out = xp.empty((*x.shape[:-1], half), x.dtype)  # (…, 2h) -> (…, h)
    each("swiglu_forward", out.size, xp.ascontiguousarray(x), out, half)
    return out, None


def swiglu_backward(g: Array, kept: None, needs: Sequence[bool], x: Array) -> Gradients:
    xp = backend_of(x).xp
    out = xp.empty(x.shape, x.dtype)
    each("swiglu_backward", g.size, xp.ascontiguousarray(g), xp.ascontiguousarray(x), out, x.shape[-1] // 2)
    return (out,)


def dropout_forward(x: Array, *, p: float, key: int, start: int) -> tuple[Array, None]:
    xp = backend_of(x).xp
    out = xp.empty(x.shape, x.dtype)
    each("dropout", x.size, xp.ascontiguousarray(x), out, *dropout_arguments(p, key, start))
    return out, None


def dropout_backward(g: Array, kept: None, needs: Sequence[bool], x: Array, **attributes: Any) -> Gradients:
    return (dropout_forward(g, **attributes)[0],)


def embedding_forward(weight: Array, index: Array, *, padding_idx: int | None) -> tuple[Array, None]:
    return weight[index], None


def embedding_backward(
    g: Array, kept: None, needs: Sequence[bool], weight: Array, index: Array, *, padding_idx: int | None
) -> Gradients:
    xp = backend_of(g).xp
    numbers = index.reshape(-1).astype("int64") % len(weight)
    order = xp.argsort(numbers, kind="stable").astype("int64")
    out = xp.zeros(weight.shape, weight.dtype)
    padding = -1 if padding_idx is None else padding_idx
    arguments = (numbers[order], order, out, padding, index.size, weight.shape[1])
    each("embedding_backward", g.size, xp.ascontiguousarray(g), *arguments)
    return out, None


register(d.linear, linear_forward, linear_backward, accepts_linear)
register(d.gelu, gelu_forward, gelu_backward, accepts_gelu)
register(d.linear_gelu, linear_gelu_forward, linear_gelu_backward, accepts_linear_gelu)
register(d.swiglu, swiglu_forward, swiglu_backward, accepts_swiglu)
register(d.dropout, dropout_forward, dropout_backward, are_floating)
for _op in FUSED.values():
    if _op.own and _op.elementwise and _op.arity == 1 and not _op.attributes:
        register_activation(_op)
register(d.embedding, embedding_forward, embedding_backward, accepts_embedding)
