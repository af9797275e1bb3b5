"""GGUF's quantised blocks as numbers: 32 or 256 of a row are small integers with a common scale.

Blocks of 32, which weights may also be computed with, are decoded by `maths.packing`. The 256 numbers of a K-quant ("q4_k", …)
form groups, each of which has a small integer as the scale of its scale: `_RECORDS` has their layout, as a record of NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ..maths.packing import FORMATS

__all__ = ["BLOCKS", "dequantize"]

_AT_ONCE = 1 << 14  # blocks: what is computed on the way stays small
_RECORDS = {
    "q2_k": np.dtype([("scales", "u1", 16), ("q", "u1", (2, 32)), ("d", "<f2"), ("m", "<f2")]),
    "q3_k": np.dtype([("high", "u1", 32), ("q", "u1", (2, 32)), ("scales", "u1", 12), ("d", "<f2")]),
    "q4_k": np.dtype([("d", "<f2"), ("m", "<f2"), ("scales", "u1", (3, 4)), ("q", "u1", (4, 32))]),
    "q5_k": np.dtype([("d", "<f2"), ("m", "<f2"), ("scales", "u1", (3, 4)), ("high", "u1", 32), ("q", "u1", (4, 32))]),
    "q6_k": np.dtype([("q", "u1", (2, 64)), ("high", "u1", (2, 32)), ("scales", "i1", 16), ("d", "<f2")]),
}
# How many numbers and bytes a block has.
BLOCKS = {name: (layout.size, layout.bytes) for name, layout in FORMATS.items() if layout.size > 1}
BLOCKS |= {name: (256, record.itemsize) for name, record in _RECORDS.items()}


def dequantize(format: str, data: np.ndarray) -> np.ndarray:
    """The numbers of blocks in float32: (…, bytes of a row) -> (…, numbers of a row)."""
    size, nbytes = BLOCKS[format]
    decode = partial(_decode_k, format) if format in _RECORDS else partial(FORMATS[format].decode, np)
    blocks = data.reshape(-1, nbytes)
    out = np.empty((len(blocks), size), np.float32)
    with np.errstate(invalid="ignore", over="ignore"):  # a damaged scale may be infinite
        for start in range(0, len(blocks), _AT_ONCE):
            out[start : start + _AT_ONCE] = decode(blocks[start : start + _AT_ONCE])
    return out.reshape(*data.shape[:-1], data.shape[-1] // nbytes * size)


def _decode_k(format: str, blocks: np.ndarray) -> np.ndarray:
    """K-quants: (n, bytes of a block) -> (n, 256)"""
    return _K_QUANTS[format](np.ascontiguousarray(blocks).view(_RECORDS[format])[:, 0]).reshape(-1, 256)


def _float(x: np.ndarray) -> np.ndarray:
    """A number of each block: (n,) -> (n, 1)"""
    return x.astype(np.float32)[:, None]


def _digits(x: np.ndarray, bits: int) -> np.ndarray:
    """The digits of bytes, lowest first: (…, k) -> (…, 8 / bits, k)"""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)[:, None]
    return (x[..., None, :] >> shifts) & np.uint8((1 << bits) - 1)


def _signed(q: np.ndarray, zero: int) -> np.ndarray:
    return q.astype(np.float32) - np.float32(zero)


def _six_bit_scales(b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The scales and offsets of eight groups, of which the last four are in the upper bits: (n, 3, 4) -> (n, 8, 1) twice"""
    low, mins, last = np.moveaxis(b["scales"], 1, 0)
    scales = np.concatenate([low & 63, last & 15 | low >> 6 << 4], axis=-1)
    offsets = np.concatenate([mins & 63, last >> 4 | mins >> 6 << 4], axis=-1)
    return (_float(b["d"]) * scales)[..., None], (_float(b["m"]) * offsets)[..., None]


def _q2_k(b: np.ndarray) -> np.ndarray:
    scales, offsets = _float(b["d"]) * (b["scales"] & 15), _float(b["m"]) * (b["scales"] >> 4)
    return scales[..., None] * _digits(b["q"], 2).reshape(-1, 16, 16) - offsets[..., None]


def _q3_k(b: np.ndarray) -> np.ndarray:
    low, high = _digits(b["scales"][:, :8], 4), _digits(b["scales"][:, 8:], 2)
    scales = _signed(low.reshape(-1, 16) | high.reshape(-1, 16) << 4, 32)
    q = _digits(b["q"], 2).reshape(-1, 16, 16) | _digits(b["high"], 1).reshape(-1, 16, 16) << 2
    return (_float(b["d"]) * scales)[..., None] * _signed(q, 4)


def _q4_k(b: np.ndarray) -> np.ndarray:
    scales, offsets = _six_bit_scales(b)
    return scales * _digits(b["q"], 4).reshape(-1, 8, 32) - offsets


def _q5_k(b: np.ndarray) -> np.ndarray:
    scales, offsets = _six_bit_scales(b)
    return scales * (_digits(b["q"], 4).reshape(-1, 8, 32) | _digits(b["high"], 1) << 4) - offsets


def _q6_k(b: np.ndarray) -> np.ndarray:
    q = _digits(b["q"], 4).reshape(-1, 16, 16) | _digits(b["high"], 2).reshape(-1, 16, 16) << 4
    return (_float(b["d"]) * b["scales"])[..., None] * _signed(q, 32)


_K_QUANTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "q2_k": _q2_k,
    "q3_k": _q3_k,
    "q4_k": _q4_k,
    "q5_k": _q5_k,
    "q6_k": _q6_k,
}
