"""Trace by shapes alone: ops are called, but where one element shows what their result is, nothing is computed.

An array of one element, repeated by strides of 0, stands for the values. No rule of a derivative looks at values, so gradients are
traced in the same way.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy import ndarray

from ..engine.backend import Array
from ..engine.op import OPS
from .lowering import loop_kind, result_of
from .trace import Tracing

__all__ = ["Shapes", "hollow"]


class Shapes(Tracing):
    """Traces what is computed on NumPy's arrays without computing it."""

    notes_lines = False  # they are ours

    def forward(self, op: Any) -> Any:
        return partial(_shaped, op)


def hollow(shape: tuple[int, ...], dtype: Any) -> Array:
    """An array of one element, which it repeats."""
    return ndarray(shape, dtype, np.zeros(1, dtype), strides=(0,) * len(shape))


def _shaped(op: Any, xp: Any, *inputs: Any, **attrs: Any) -> Any:
    """What an op makes of these inputs, as far as its shape and dtype go."""
    is_product = op is OPS["matmul"] and min(x.ndim for x in inputs) >= 2
    is_known = is_product or loop_kind(op) in ("elementwise", "reduction") and "indices" not in attrs
    if xp is not np or op.view:
        return op.forward(xp, *inputs, **attrs)
    if not is_known:
        given = [_example(x) if type(x) is ndarray else x for x in inputs]
        return op.forward(xp, *given, **{k: x.copy() if type(x) is ndarray else x for k, x in attrs.items()})
    if is_product:
        (*lead, rows, _), (*others, _, columns) = inputs[0].shape, inputs[1].shape
        return hollow((*np.broadcast_shapes(tuple(lead), tuple(others)), rows, columns), np.result_type(*inputs))
    return hollow(*result_of(op, inputs, attrs))


def _example(x: Array) -> Array:
    """An array like a hollow one that every op takes: its matrices have an inverse, and eigenvalues of their own."""
    if x.dtype.kind != "f" or x.ndim < 2:
        return x.copy()
    matrix = np.eye(*x.shape[-2:], dtype=x.dtype) * np.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    return np.broadcast_to(matrix, x.shape).copy()
