"""Tensors as a file stores them: still packed, still on the disk, until they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import blocks

__all__ = ["DTYPES", "StoredTensor", "Weights"]

# Names of formats, and how NumPy holds them. NumPy has no bfloat16, and takes a byte of 7 as a strange kind of True.
DTYPES = {
    "f64": "<f8", "f32": "<f4", "f16": "<f2", "bf16": "<u2", "i64": "<i8", "i32": "<i4", "i16": "<i2", "i8": "i1",
    "u64": "<u8", "u32": "<u4", "u16": "<u2", "u8": "u1", "bool": "u1", "c64": "<c8",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class StoredTensor:
    """One tensor of a file. `data` is the memory-mapped, read-only content, exactly as it is stored.

    `format` is a name of DTYPES, and `data` an array of `shape`; or it names blocks of GGUF ("q4_0", "q6_k", …), and `data` has
    the bytes of each row in the place of its numbers. Integers with a `scale` stand for themselves times the scale.
    """

    name: str
    format: str
    shape: tuple[int, ...]
    data: np.ndarray = field(repr=False)
    scale: float | None = None

    def array(self) -> np.ndarray:
        """The numbers: float32 for floats of 32 bits or fewer and for what is quantised, else as stored.

        What needs no conversion is not copied: it is a read-only view of the file.
        """
        if self.format in blocks.BLOCKS:
            return blocks.dequantize(self.format, self.data)
        if self.format == "bf16":  # the upper half of a float32
            return np.left_shift(self.data, 16, dtype=np.uint32).view(np.float32)
        if self.format == "bool":
            return self.data != 0
        if self.scale is not None:
            return self.data.astype(np.float32) * np.float32(self.scale)
        widened = self.data.astype(np.float32) if self.format == "f16" else self.data
        return np.require(widened, widened.dtype.newbyteorder("="), ["C", "A"])


class Weights(Mapping[str, StoredTensor]):
    """The tensors of one or more files by name, what else the files say, and which format they have."""

    def __init__(self, format: str, tensors: Mapping[str, StoredTensor], metadata: Mapping[str, Any]):
        self.format = format
        self.tensors = dict(tensors)
        self.metadata = dict(metadata)

    def __getitem__(self, name: str) -> StoredTensor:
        return self.tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def __repr__(self) -> str:
        return f"<Weights {self.format}: {len(self)} tensors>"
