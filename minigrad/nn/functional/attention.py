"""Attention: what each query takes from the values, by how well it fits their keys."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import kernels
from ...engine.tensor import Tensor
from ...errors import DtypeError, ShapeError, broadcast_problem
from ...random import next_key
from .declaration import TensorLike, function
from .dropouts import check_probability

__all__ = ["scaled_dot_product_attention"]


@function
def scaled_dot_product_attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    mask: TensorLike | None = None,
    *,
    is_causal: bool = False,
    dropout_p: float = 0.0,
    scale: float | None = None,
    enable_gqa: bool = False,
    softcap: float | None = None,
) -> Tensor:
    """`softmax(scale · query @ keyᵀ) @ value`: (…, L, E), (…, S, E), (…, S, V) -> (…, L, V); scale is `1 / sqrt(E)` unless given.

    A boolean mask (…, L, S) is True where a query may attend; a floating one is added to the scores, and -inf forbids.
    `is_causal` lets query i attend to keys 0 … i, together with the mask if both are given. A query that may attend to
    nothing gets zeros, and finite gradients. `dropout_p` drops attention weights whenever it is not 0.

    With `enable_gqa`, key and value (B, h, S, …) may have fewer heads than the query (B, H, L, E): each of them serves H / h
    neighbouring ones, and is not repeated in memory. A `softcap` c turns a score x into `c · tanh(x / c)` before the mask.
    """
    name = "scaled_dot_product_attention"
    check_probability(name, dropout_p)
    shape = _check_attention(name, query, key, value, mask, enable_gqa)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    draw, start = next_key(shape) if dropout_p else (0, 0)
    options = {"causal": is_causal, "scale": scale, "softcap": softcap}
    options |= {"dropout_p": dropout_p, "dropout_key": draw, "start": start}
    if getattr(mask, "requires_grad", False):  # which the kernels do not give
        return kernels.attention.define((query, key, value, mask), options)
    return kernels.attention(query, key, value, mask, **options)


def _check_attention(name: str, query: Any, key: Any, value: Any, mask: Any, grouped: bool) -> tuple[int, ...]:
    """Refuse what does not fit; returns the shape of the scores: (…, L, E), (…, S, E) -> (…, L, S)."""
    q, k, v = query.shape, key.shape, value.shape
    if grouped and 2 < len(q) == len(k) == len(v) and k[-3] == v[-3] and k[-3] > 0 and q[-3] % k[-3] == 0:
        k, v = ((*s[:-3], q[-3], *s[-2:]) for s in (k, v))
    alike = 1 < len(q) == len(k) == len(v) and q[:-2] == k[:-2] == v[:-2]
    if not alike or q[-1] != k[-1] or k[-2] != v[-2]:
        _check_shapes(name, q, k, v)
    scores = (*(q[:-2] if alike else np.broadcast_shapes(q[:-2], k[:-2])), q[-2], k[-2])
    if mask is not None:
        check_mask(name, mask, scores)
    return scores


def _check_shapes(name: str, *shapes: tuple[int, ...]) -> None:
    """Refuse those of a query, key and value that do not fit; axes before the last two may be broadcast."""
    query, key, value = shapes
    got = f"query {query}, key {key}, value {value}"
    if min(map(len, shapes)) < 2:
        raise ShapeError(f"{name}: each input needs two axes", "query (…, L, E), key (…, S, E), value (…, S, V)", got)
    if query[-1] != key[-1]:
        raise ShapeError(f"{name}: query and key differ in their last size", "query (…, L, E) and key (…, S, E)", got)
    if key[-2] != value[-2]:
        raise ShapeError(f"{name}: there is not one value for each key", "key (…, S, E) and value (…, S, V)", got)
    if problem := broadcast_problem(f"{name} (the axes before the last two)", [s[:-2] for s in shapes]):
        if min(map(len, shapes)) > 2 and key[-3] == value[-3] and key[-3] and query[-3] % key[-3] == 0:
            fix = "give enable_gqa=True if several heads of the query are to share one of key and value"
            raise ShapeError(f"{name}: there are more heads of the query", "as many heads of all three", got, fix)
        raise problem


def check_mask(name: str, mask: Any, scores: tuple[int, ...]) -> None:
    """Refuse a mask that is none, or does not broadcast to the shape of the scores."""
    if mask.dtype.kind not in "bf":
        raise DtypeError(
            f"{name}: a mask is boolean (True: may attend) or floating (added to the scores)",
            "bool or float",
            mask.dtype,
            "mask.astype('bool')",
        )
    if len(mask.shape) > len(scores) or any(m not in (1, n) for m, n in zip(mask.shape[::-1], scores[::-1])):
        raise ShapeError(
            f"{name}: the mask does not fit the scores", f"a shape that broadcasts to {scores}", mask.shape
        )
