"""Weights in fewer bits than float32: how each format lays a row of numbers out in bytes, and makes numbers of them again.

A row is a run of blocks, and the last one is filled up with zeros. "f16" and "bf16" are numbers of two bytes, "i8" is a
row of int8 with one float32 scale behind it; the others are GGUF's blocks of 32 numbers, byte by byte as its files have
them: a scale `d` (float16), for some an offset `m` (float16) or the fifth bits (32 of them), then the numbers, of which
the lower halves of 16 bytes are the first 16.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["FORMATS", "Layout", "decoded", "encoded", "row_bytes"]


class Layout(NamedTuple):
    """One format. `decode(xp, rows)` makes float32 (n, blocks · size) of bytes (n, row_bytes); `encode` is the way back."""

    size: int  # numbers in a block
    bytes: int  # of a block
    decode: Callable[[Any, Any], Any]
    encode: Callable[[np.ndarray], np.ndarray] | None = None
    tail: int = 0  # bytes of a row behind its blocks


def row_bytes(format: str, columns: int) -> int:
    """How many bytes a row of so many numbers takes."""
    layout = FORMATS[format]
    return -(-columns // layout.size) * layout.bytes + layout.tail


def decoded(xp: Any, rows: Any, format: str, columns: int) -> Any:
    """What packed rows stand for: uint8 (n, row_bytes) -> float32 (n, columns)."""
    return FORMATS[format].decode(xp, rows)[:, :columns]


def encoded(numbers: np.ndarray, format: str) -> np.ndarray:
    """Rows of numbers, packed: (n, columns) -> uint8 (n, row_bytes)."""
    layout = FORMATS[format]
    assert layout.encode is not None
    whole = np.zeros((len(numbers), -(-numbers.shape[1] // layout.size) * layout.size), np.float32)
    whole[:, : numbers.shape[1]] = numbers
    return layout.encode(whole)


def _as(xp: Any, piece: Any, dtype: str) -> Any:
    """Bytes (…, k) taken for numbers (…, k / size of one)."""
    return xp.ascontiguousarray(piece).view(dtype)


def _scales(xp: Any, piece: Any) -> Any:
    """float16 numbers as float32: bytes (…, 2) -> (…, 1)"""
    return _as(xp, piece, "<f2").astype("float32")


def _halves_decoded(xp: Any, rows: Any) -> Any:
    return _as(xp, rows, "<f2").astype("float32")


def _halves_encoded(numbers: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return numbers.astype("<f2").view(np.uint8)


def _brain_decoded(xp: Any, rows: Any) -> Any:
    return (_as(xp, rows, "<u2").astype("uint32") << 16).view("float32")  # bfloat16 is the upper half of a float32


def _brain_encoded(numbers: np.ndarray) -> np.ndarray:
    """Rounded to the nearest, to even ones in the middle; NaN stays NaN."""
    bits = numbers.view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(numbers), bits >> 16 | 0x40, rounded).astype("<u2").view(np.uint8)


def _rows_decoded(xp: Any, rows: Any) -> Any:
    return _as(xp, rows[:, :-4], "int8").astype("float32") * _as(xp, rows[:, -4:], "<f4")


def _rows_encoded(numbers: np.ndarray) -> np.ndarray:
    scales = _nonzero(np.abs(numbers).max(axis=1, keepdims=True) / np.float32(127))
    whole = np.clip(np.rint(numbers / scales), -127, 127).astype(np.int8)
    return np.concatenate([whole.view(np.uint8), scales.astype("<f4").view(np.uint8)], axis=1)


def _nonzero(scales: np.ndarray) -> np.ndarray:
    """1 in the place of 0, the scale of a block of zeros."""
    return np.where(scales != 0, scales, np.float32(1))


def _blocks(rows: Any, size: int) -> Any:
    return rows.reshape(len(rows), -1, size)  # (n, row_bytes) -> (n, blocks, bytes)


def _bytes_decoded(xp: Any, rows: Any) -> Any:
    blocks = _blocks(rows, 34)
    return (_as(xp, blocks[..., 2:], "int8") * _scales(xp, blocks[..., :2])).reshape(len(rows), -1)


def _bytes_encoded(numbers: np.ndarray) -> np.ndarray:
    blocks = _blocks(numbers, 32)
    scales, d = _half(np.abs(blocks).max(axis=-1, keepdims=True) / np.float32(127))
    whole = np.clip(np.rint(blocks / d), -127, 127).astype(np.int8)
    return np.concatenate([scales, whole.view(np.uint8)], axis=-1).reshape(len(numbers), -1)


def _half(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scales (…, 1) as the bytes of float16, (…, 2), and what these stand for, or 1 where that is 0."""
    stored = np.clip(numbers, -65504, 65504).astype("<f2")
    return stored.view(np.uint8), _nonzero(stored.astype(np.float32))


def _nibbles(xp: Any, blocks: Any, has_offset: bool, has_fifth: bool) -> Any:
    """The whole numbers of blocks, from 0 to 15 or 31: bytes (n, blocks, …) -> (n, blocks, 32)"""
    first = 4 if has_offset else 2
    pairs = blocks[..., first + 4 * has_fifth :]
    whole = xp.concatenate([pairs & 15, pairs >> 4], axis=-1)
    if has_fifth:
        bits = blocks[..., first : first + 4, None] >> xp.arange(8, dtype="uint8") & 1  # (n, blocks, 4, 8)
        whole = whole | bits.reshape(whole.shape) << 4
    return whole


def _decoder(size: int, has_offset: bool, has_fifth: bool) -> Callable[[Any, Any], Any]:
    middle = 0 if has_offset else 16 if has_fifth else 8

    def decode(xp: Any, rows: Any) -> Any:
        blocks = _blocks(rows, size)
        whole = _nibbles(xp, blocks, has_offset, has_fifth).astype("float32")
        numbers = (whole - middle) * _scales(xp, blocks[..., :2])
        numbers = numbers + _scales(xp, blocks[..., 2:4]) if has_offset else numbers
        return numbers.reshape(len(rows), -1)

    return decode


def _encoder(has_offset: bool, has_fifth: bool) -> Callable[[np.ndarray], np.ndarray]:
    """Without an offset the number farthest from 0 becomes the lowest; with one, the smallest and the largest are exact."""
    highest = 31 if has_fifth else 15

    def encode(numbers: np.ndarray) -> np.ndarray:
        blocks = _blocks(numbers, 32)
        if has_offset:
            lowest = blocks.min(axis=-1, keepdims=True)
            scales, d = _half((blocks.max(axis=-1, keepdims=True) - lowest) / np.float32(highest))
            offsets, _ = _half(lowest)
            whole = (blocks - offsets.view("<f2").astype(np.float32)) / d
        else:
            farthest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=-1, keepdims=True), axis=-1)
            scales, d = _half(farthest / np.float32(-(highest + 1) // 2))
            offsets, whole = scales[..., :0], blocks / d + (highest + 1) // 2
        kept = np.clip(np.rint(whole), 0, highest).astype(np.uint8)
        fifth = np.packbits(kept >> 4, axis=-1, bitorder="little")[..., : 4 * has_fifth]
        pairs = kept[..., :16] & 15 | (kept[..., 16:] & 15) << 4
        return np.concatenate([scales, offsets, fifth, pairs], axis=-1).reshape(len(numbers), -1)

    return encode


FORMATS = {
    "f16": Layout(1, 2, _halves_decoded, _halves_encoded),
    "bf16": Layout(1, 2, _brain_decoded, _brain_encoded),
    "i8": Layout(1, 1, _rows_decoded, _rows_encoded, tail=4),
    "q8_0": Layout(32, 34, _bytes_decoded, _bytes_encoded),
    "q4_0": Layout(32, 18, _decoder(18, False, False), _encoder(False, False)),
    "q4_1": Layout(32, 20, _decoder(20, True, False), _encoder(True, False)),
    "q5_0": Layout(32, 22, _decoder(22, False, True), _encoder(False, True)),
    "q5_1": Layout(32, 24, _decoder(24, True, True), _encoder(True, True)),
}
