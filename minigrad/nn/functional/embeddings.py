"""Embeddings: the rows of a table that numbers name, and the sum, mean or largest of those in a bag."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import kernels
from ...engine.tensor import Tensor
from ...errors import ArgumentError, DtypeError, IndexingError, ShapeError, describe, nearest
from ...kernels import Packed
from ...ops.creation import astype
from ...ops.elementwise.arithmetic import clip, where
from ...ops.layout.shape import expand_dims
from ...ops.reductions.reduction import any as any_
from ...ops.reductions.reduction import max as max_
from ...ops.reductions.reduction import mean
from ...ops.reductions.reduction import sum as sum_
from ...tracer import is_compiling
from .declaration import TensorLike, constant_like, function

__all__ = ["embedding", "embedding_bag"]
MODES = ("mean", "sum", "max")


@function
def embedding(input: TensorLike, weight: TensorLike, padding_idx: int | None = None) -> Tensor:
    """The rows of `weight`, which may be packed, that `input` numbers: whole numbers (…), (rows, size) -> (…, size).

    The row `padding_idx` gets no gradient.
    """
    if input.dtype.kind not in "iu":
        raise DtypeError(
            "embedding: row numbers must be whole numbers", "an integer dtype", describe(input), "input.astype('int64')"
        )
    if weight.ndim != 2:
        raise ShapeError("embedding: the weight must be a table", "(rows, size)", weight.shape)
    rows = weight.shape[0]
    if is_compiling():
        input = where(input < 0, rows, input)  # so that a compiled function refuses it: no index counts from the end
    elif (wrong := (input < 0) | (input >= rows)).any():
        expected = f"0 to {rows - 1}, for weight {weight.shape}"
        raise IndexingError("embedding: a row number is out of range", expected, int(input[wrong][0]))
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise IndexingError("embedding: padding_idx is out of range", f"{-rows} to {rows - 1}", padding_idx)
    if isinstance(weight, Packed):
        return weight.rows(input)
    return kernels.embedding(weight, input, padding_idx=None if padding_idx is None else padding_idx % rows)


@function
def embedding_bag(
    input: TensorLike,
    weight: TensorLike,
    offsets: TensorLike | None = None,
    *,
    mode: str = "mean",
    per_sample_weights: TensorLike | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The mean, sum or largest of the rows of `weight` that each bag numbers: (B, L) or (n,), (rows, size) -> (B, size).

    Row numbers (n,) are cut into bags before the places in `offsets` (B,), of which the first is 0; with
    `include_last_offset` the last one is n. `per_sample_weights`, of the input's shape, scale the rows of a sum.
    Rows `padding_idx` are left out. An empty bag gives zeros.
    """
    if mode not in MODES:
        raise ArgumentError(f"embedding_bag: unknown mode {mode!r}", " or ".join(MODES), fix=nearest(mode, MODES))
    if per_sample_weights is not None and (mode != "sum" or per_sample_weights.shape != input.shape):
        got = f"{per_sample_weights.shape} and mode={mode!r}"
        raise ArgumentError(
            "embedding_bag: per_sample_weights do not fit", f"the input's shape {input.shape} and mode='sum'", got
        )
    inside: Any = None
    if offsets is not None or input.ndim != 2:
        places, filled = _bags(input, offsets, include_last_offset)
        input, inside = input[places], constant_like(filled, weight)  # (B, L)
        per_sample_weights = per_sample_weights if per_sample_weights is None else per_sample_weights[places]
    if padding_idx is not None:
        is_row = input != padding_idx % weight.shape[0]
        inside = is_row if inside is None else inside & is_row
    return _reduced(embedding(input, weight, padding_idx), mode, inside, per_sample_weights)


def _reduced(rows: Any, mode: str, inside: Any, weights: Any) -> Any:
    """(B, L, size), of which `inside` (B, L) belong to their bag, if given -> (B, size)"""
    rows = rows if weights is None else rows * expand_dims(weights, axis=-1)
    if inside is None or not rows.shape[1]:
        how = {"mean": mean, "sum": sum_, "max": max_} if rows.shape[1] else dict.fromkeys(MODES, sum_)
        return how[mode](rows, axis=1)
    inside = expand_dims(inside, axis=-1)
    if mode == "max":
        return where(any_(inside, axis=1), max_(where(inside, rows, -math.inf), axis=1), 0)
    total = sum_(where(inside, rows, 0), axis=1)
    return total / clip(astype(sum_(inside, axis=1), dtype=rows.dtype), 1) if mode == "mean" else total


def _bags(input: Any, offsets: Any, include_last: bool) -> tuple[np.ndarray, np.ndarray]:
    """The places of the rows of each bag, those of a short one repeated, and which are no repetition: (B, L) both."""
    if input.ndim != 1 or offsets is None or offsets.ndim != 1:
        got = f"input {input.shape} and offsets {None if offsets is None else offsets.shape}"
        raise ShapeError("embedding_bag: input and offsets do not fit", "(B, L) alone, or (n,) and (B,)", got)
    starts = [int(n) for n in offsets]
    ends = [*starts[1:], input.size]
    if include_last:
        starts, ends = starts[:-1], ends[:-1]
    if starts[:1] != [0] or any(a > b for a, b in zip(starts, ends)):
        raise ArgumentError("embedding_bag: the offsets do not cut the input", "0, then places in order", starts)
    longest = max(b - a for a, b in zip(starts, ends))
    places = np.array(starts)[:, None] + np.arange(longest)
    return np.minimum(places, max(input.size - 1, 0)), places < np.array(ends)[:, None]
