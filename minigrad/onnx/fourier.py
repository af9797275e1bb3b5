"""The Fourier transform of real numbers, and complex numbers, as nodes of ONNX: they have their two parts along a last axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir import Size, Step
from .layout import whole
from .writer import Writer, maps


@maps("_rfft")
def rfft(w: Writer, step: Step) -> Any:
    """Products with cosines and sines, of rows whose length is known: (…, n) -> (…, n // 2 + 1), twice."""
    (x,) = step.inputs
    if step.attrs["axis"] % x.ndim != x.ndim - 1 or isinstance(x.shape[-1], Size):
        return NotImplemented
    turns = np.outer(np.arange(x.shape[-1]), np.arange(x.shape[-1] // 2 + 1)) % x.shape[-1]
    angles = 2 * np.pi * turns / x.shape[-1]
    return [w.node("MatMul", w.get(x), w.constant(part.astype(x.dtype))) for part in (np.cos(angles), -np.sin(angles))]


@maps("_join")
def join(w: Writer, step: Step) -> Any:
    dtype = np.zeros(0, step.out.dtype).real.dtype
    parts = [w.node("Unsqueeze", w.get(part, dtype), whole(w, -1)) for part in step.inputs]
    return w.node("Concat", *parts, axis=-1)


@maps("real", "imag")
def part(w: Writer, step: Step) -> Any:
    (x,) = step.inputs
    if x.dtype.kind != "c":
        return NotImplemented
    return w.node("Gather", w.get(x), w.constant(int(step.op.name == "imag"), "int64"), axis=-1)
