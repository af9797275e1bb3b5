"""Samplers of lists and arrays: a list of batches, or arrays that are cut into batches."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..data.batching import Sampler
from ..engine.backend import is_array, to_numpy
from ..engine.tensor import Tensor
from ..errors import ArgumentError, describe

__all__ = ["ArrayBatches", "ListBatches", "as_sampler", "on_host"]


class ListBatches(Sampler):
    """The batches of a list, in another order each epoch unless `shuffle=False`.

    >>> list(ListBatches(["a", "b", "c"], shuffle=False))
    ['a', 'b', 'c']
    """

    def __init__(self, batches: Sequence[Any], seed: int = 0, shuffle: bool = True):
        super().__init__(seed)
        if not len(batches):
            raise ArgumentError("the list of batches is empty", "at least one batch")
        self.batches, self.shuffle = batches, shuffle

    def __len__(self) -> int:
        return len(self.batches)

    def batch(self, epoch: int, index: int) -> Any:
        return self.batches[int(_order(self.seed, epoch, len(self), self.shuffle)[index])]

    def _identity(self) -> dict[str, Any]:
        return {"batches": len(self), "shuffle": self.shuffle}


class ArrayBatches(Sampler):
    """Batches of rows of one or several arrays: `ArrayBatches((x, y), batch_size=32)` gives tuples of arrays.

    >>> [x.tolist() for (x,) in ArrayBatches((np.arange(5),), batch_size=2, shuffle=False)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, arrays: Sequence[Any], batch_size: int, seed: int = 0, shuffle: bool = True):
        super().__init__(seed)
        alone = isinstance(arrays, Tensor) or is_array(arrays)  # its rows would be taken for arrays
        self.arrays = () if alone else tuple(on_host(array) for array in arrays)
        sizes = {len(array) if array.ndim else 0 for array in self.arrays}
        if len(sizes) != 1 or 0 in sizes or not isinstance(batch_size, (int, np.integer)) or batch_size < 1:
            raise ArgumentError(
                "ArrayBatches: these arrays cannot be cut into batches",
                "a tuple of arrays with equally many rows, and a batch_size of at least 1",
                f"{describe(arrays if alone else self.arrays)}, batch_size={batch_size!r}",
                "for a single array: ArrayBatches((x,), batch_size=32)",
            )
        self.rows, self.batch_size, self.shuffle = sizes.pop(), int(batch_size), shuffle
        self._crc = 0
        for array in self.arrays:
            self._crc = zlib.crc32(array.tobytes(), self._crc)

    def __len__(self) -> int:
        return -(-self.rows // self.batch_size)

    def batch(self, epoch: int, index: int) -> tuple[Any, ...]:
        order = _order(self.seed, epoch, self.rows, self.shuffle)
        rows = order[index * self.batch_size : (index + 1) * self.batch_size]
        return tuple(array[rows] for array in self.arrays)

    def _identity(self) -> dict[str, Any]:
        return {"data": self._crc, "batch_size": self.batch_size, "shuffle": self.shuffle}


def as_sampler(name: str, data: Any, seed: int) -> Any:
    """The data as a sampler, whose position can be saved."""
    if all(hasattr(data, method) for method in ("state_dict", "load_state_dict", "__iter__")):
        return data
    if isinstance(data, tuple) and data and all(isinstance(part, Tensor) or is_array(part) for part in data):
        raise ArgumentError(
            f"Trainer: {name} is a tuple of arrays, each of which would be taken for a batch",
            "a sampler, or a list of batches",
            describe(data),
            "minigrad.train.ArrayBatches((x, y), batch_size=32); or, for one batch, [(x, y)]",
        )
    if isinstance(data, (list, tuple)):
        return ListBatches(data, seed=seed)
    raise ArgumentError(
        f"Trainer: the position in {name} could not be saved",
        "a sampler with state_dict() and load_state_dict(), or a list of batches",
        type(data).__name__,
        "the order is Trainer(model, loss, data, optimizer)"
        if callable(data)
        else "for arrays: minigrad.train.ArrayBatches((x, y), batch_size=32)",
    )


def on_host(array: Any) -> np.ndarray:
    """A Tensor, or an array of any device, as a NumPy array."""
    values = array.data if isinstance(array, Tensor) else array
    return to_numpy(values) if is_array(values) else np.asarray(values)


@lru_cache(maxsize=4)
def _order(seed: int, epoch: int, count: int, shuffle: bool) -> np.ndarray:
    return np.random.default_rng([seed, epoch]).permutation(count) if shuffle else np.arange(count)
