"""What packed rows stand for, number by number with Python's `struct`: an oracle that shares nothing with minigrad's table."""

from __future__ import annotations

import struct

import numpy as np

BLOCKS = {"q8_0": 34, "q4_0": 18, "q4_1": 20, "q5_0": 22, "q5_1": 24}  # bytes for 32 numbers


def numbers_of(row: bytes, format: str) -> list[float]:
    """The numbers of one row; of a last block that is not full, also what fills it."""
    if format == "f16":
        return list(struct.unpack(f"<{len(row) // 2}e", row))
    if format == "bf16":
        return [struct.unpack("<f", b"\0\0" + row[i : i + 2])[0] for i in range(0, len(row), 2)]
    if format == "i8":
        (scale,) = struct.unpack("<f", row[-4:])
        return [scale * q for q in struct.unpack(f"{len(row) - 4}b", row[:-4])]
    size = BLOCKS[format]
    return [x for i in range(0, len(row), size) for x in _block(row[i : i + size], format)]


def _block(block: bytes, format: str) -> list[float]:
    (d,) = struct.unpack("<e", block[:2])
    if format == "q8_0":
        return [d * q for q in struct.unpack("32b", block[2:])]
    has_offset, has_fifth = format.endswith("1"), format.startswith("q5")
    start = 4 if has_offset else 2
    (m,) = struct.unpack("<e", block[2:4]) if has_offset else (0.0,)
    (fifth,) = struct.unpack("<I", block[start : start + 4]) if has_fifth else (0,)
    pairs = block[-16:]
    whole = [(pairs[i % 16] >> 4 * (i // 16) & 15) + 16 * (fifth >> i & 1) for i in range(32)]
    middle = 0 if has_offset else 16 if has_fifth else 8
    return [d * (q - middle) + m for q in whole]


def floats_of(data: np.ndarray, format: str, columns: int) -> np.ndarray:
    """Rows of bytes as float64: (n, bytes of a row) -> (n, columns)."""
    return np.array([numbers_of(bytes(row), format)[:columns] for row in data]).reshape(len(data), columns)


def random_bytes(format: str, rows: int, columns: int, seed: int = 0) -> np.ndarray:
    """Rows of any whole numbers, with scales and offsets of the usual sizes: uint8 (rows, bytes of a row)."""
    rng = np.random.default_rng(seed)
    if format in ("f16", "bf16"):
        x = rng.standard_normal((rows, columns)).astype("<f4")
        return x.astype("<f2").view(np.uint8) if format == "f16" else (x.view("<u4") >> 16).astype("<u2").view(np.uint8)
    if format == "i8":
        scales = (rng.random((rows, 1)) + 0.1).astype("<f4") / 100
        return np.concatenate([rng.integers(0, 256, (rows, columns), np.uint8), scales.view(np.uint8)], axis=1)
    blocks = rng.integers(0, 256, (rows, -(-columns // 32), BLOCKS[format]), np.uint8)
    scales = (rng.standard_normal((*blocks.shape[:2], 2)) / 50).astype("<f2").view(np.uint8)  # (rows, blocks, 4)
    width = 4 if format.endswith("1") else 2
    blocks[..., :width] = scales[..., :width]
    return blocks.reshape(rows, -1)
