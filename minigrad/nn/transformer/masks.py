"""Masks of attention: boolean, True = may attend, or floating and added to the scores. B is the batch, L the queries, S the keys."""

from __future__ import annotations

import math
from typing import Any

from ...engine.tensor import Tensor
from ...errors import ArgumentError, ShapeError
from ...ops.creation import arange
from ...ops.elementwise.arithmetic import where
from ..functional.declaration import as_tensor

__all__ = ["causal_mask", "padding_mask"]


def causal_mask(size: int, past: int = 0, device: str | None = None, *, window: int | None = None) -> Tensor:
    """Which keys each query may attend to if none may look ahead: booleans (size, past + size), True = may attend.

    With a `window`, each sees itself and the `window - 1` before it.

    >>> import minigrad as mg
    >>> mg.nn.causal_mask(3).astype("int64")
    tensor([[1, 0, 0],
            [1, 1, 0],
            [1, 1, 1]])
    """
    keys = arange(past + size, device=device)
    own = keys[past:].reshape(size, 1)
    return keys <= own if window is None else (keys <= own) & (keys > own - window)


def padding_mask(given: Any, pad: int | None = None, *, size: int | None = None) -> Tensor:
    """Which keys are tokens and not padding: booleans (B, 1, 1, S), which fit any attention; True = may attend.

    `given` is either token numbers (B, S), with the number `pad` of the padding; or lengths (B,), with the padded
    `size` S, the greatest length unless given; or booleans (B, S), such as the mask of a `data.Padded`. Padding gets
    weight 0 and gradient 0 exactly; how much of it there is can change the last bit of a result all the same, since
    longer sums are added up in another order.

    >>> import minigrad as mg
    >>> mg.nn.padding_mask([[5, 6, 0], [7, 0, 0]], pad=0).tolist()
    [[[[True, True, False]]], [[[True, False, False]]]]
    >>> mg.nn.padding_mask([2, 1], size=3).tolist()
    [[[[True, True, False]]], [[[True, False, False]]]]
    """
    x = as_tensor(given)
    if x.dtype.kind == "b" and x.ndim == 2 and pad is None and size is None:
        return x.reshape(x.shape[0], 1, 1, x.shape[1])
    if x.dtype.kind not in "iu" or x.ndim != (1 if pad is None else 2):
        expected = "whole numbers: token numbers (B, S) with pad=…, or lengths (B,) without; or booleans (B, S) alone"
        raise ShapeError("padding_mask: these are neither token numbers nor lengths", expected, f"{x.shape} {x.dtype}")
    if pad is not None:
        if size is not None:
            raise ArgumentError(
                "padding_mask: token numbers have their size already", fix="give size with lengths only"
            )
        return (x != pad).reshape(x.shape[0], 1, 1, x.shape[1])
    lengths = [int(n) for n in x.numpy()]
    size = max(lengths, default=0) if size is None else size
    for length in lengths:
        if not 0 <= length <= size:
            raise ArgumentError("padding_mask: this cannot be a length", f"0 to {size}, the padded size", length)
    return arange(size, device=x.device) < x.reshape(-1, 1, 1, 1)  # (S,) < (B, 1, 1, 1) -> (B, 1, 1, S)


def restricted(mask: Tensor | None, allowed: Tensor) -> Tensor:
    """The mask, forbidding also what is not `allowed`, which is boolean."""
    return allowed if mask is None else where(allowed, mask, False if mask.dtype.kind == "b" else -math.inf)


def check_rows(mask: Tensor, batch: int, length: int) -> None:
    """Refuse a mask (B, S) where (L, S) is meant; where B = L, refuse what could be either, unless it looks causal."""
    rows, keys = mask.shape
    fix = "for padding, (B, S), give nn.padding_mask(mask), or mask[:, None, None, :]"
    if rows not in (1, length):
        raise ShapeError("MultiHeadAttention: a mask with two axes is (L, S)", f"({length}, S)", mask.shape, fix)
    if not 1 < rows == batch or not (mask != mask[:1]).any():
        return
    mask = mask if mask.dtype.kind == "b" else mask != -math.inf
    if keys < rows or (mask != causal_mask(rows, keys - rows, mask.device)).any():
        raise ShapeError(
            "MultiHeadAttention: with as many sentences as queries, this mask could be (L, S) or (B, S)",
            "(B, h, L, S) with 1 for axes that do not matter",
            mask.shape,
            f"{fix}; for (L, S) give mask[None, None]",
        )
