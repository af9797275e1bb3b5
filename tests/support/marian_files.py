"""Small models and shortlists in Marian's own formats, written here as its C++ writes them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

FLOAT32, INT8, INTGEMM8, INTGEMM16 = 0x404, 0x101, 0x4101, 0x4102
Item = tuple[str, int, tuple[int, ...], bytes]  # name, type, shape, data


def model(items: Sequence[Item], version: int = 1) -> bytes:
    """A binary model of these items, whose data begin at a multiple of 256."""
    names = [name.encode() + b"\0" for name, *_ in items]
    head = struct.pack("<QQ", version, len(items))
    for name, (_, kind, shape, data) in zip(names, items, strict=True):
        head += struct.pack("<QQQQ", len(name), kind, len(shape), len(data))
    head += b"".join(names) + b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in items)
    padding = -(len(head) + 8) % 256
    return head + struct.pack("<Q", padding) + bytes(padding) + b"".join(data for *_, data in items)


def floats(name: str, array: np.ndarray) -> Item:
    """An item of plain numbers, filled up to 256 bytes."""
    data = array.astype("<f4").tobytes()
    return name, FLOAT32, array.shape, data + bytes(-len(data) % 256)


def quantised(name: str, weight: np.ndarray, bits: int = 8) -> Item:
    """A matrix (inputs, outputs) as integers, its multiplier behind them: transposed, but for embeddings."""
    multiplier = np.float32(127 / np.abs(weight).max()) if bits == 8 else np.float32(1024)
    numbers = np.rint(weight * multiplier).astype(f"<i{bits // 8}")
    data = (numbers if "Wemb" in name else numbers.T).tobytes() + multiplier.tobytes()
    return name, INTGEMM8 if bits == 8 else INTGEMM16, weight.shape, data + bytes(-len(data) % 256)


def options(text: str) -> Item:
    """The item with the options of the model."""
    data = text.encode() + b"\0"
    return "special:model.yml", INT8, (len(data),), data


def small_model() -> bytes:
    """A model with one item of each kind."""
    rng = np.random.default_rng(0)
    weights = quantised("W", rng.normal(size=(3, 2))), quantised("Wemb", rng.normal(size=(4, 3)))
    return model([*weights, floats("b", rng.normal(size=(1, 2))), options("dim-emb: 3\ndim-vocabs:\n  - 4\n  - 4\n")])


def shortlist(targets: Mapping[int, Sequence[int]], words: int, first: int, **header: Any) -> bytes:
    """A binary shortlist for source words 0 to `words` - 1; parts of its header can be replaced."""
    lists = [sorted(targets.get(word, ())) for word in range(words)]
    offsets = np.cumsum([0, *map(len, lists)])
    parts = {
        "magic": 0xF11A48D5013417F5,
        "checksum": 0,
        "first": first,
        "best": 9,
        "size": words + 1,
        "count": offsets[-1],
    }
    body = offsets.astype("<u8").tobytes() + np.array(sum(lists, []), "<u4").tobytes()
    return struct.pack("<6Q", *{**parts, **header}.values()) + body
