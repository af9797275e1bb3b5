"""Datasets: examples by number or one after the other, and others made of them, under PyTorch's names.

A dataset is anything with `__getitem__` and `__len__`. One that also has `batch(indices)`, which gives these examples
already collated, is asked for whole batches; one with `fingerprint()`, a number, is known again when a run is resumed.
"""

from __future__ import annotations

import math
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ..engine.backend import to_numpy
from ..engine.tensor import Tensor
from ..errors import ArgumentError, IndexingError, describe
from ..ops.creation import tensor
from .index_samplers import random_generator

__all__ = ["ConcatDataset", "Dataset", "IterableDataset", "Subset", "TensorDataset", "fingerprint", "random_split"]


class Dataset:
    """Examples by number: a subclass writes `__getitem__(index)` and `__len__()`. `first + second` joins two."""

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset:
    """Examples one after the other, as from a file that is read on the way: a subclass writes `__iter__()`.

    If it has a method `set_epoch(epoch)`, that is called before each epoch, for instance to shuffle by it.
    """

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError


class TensorDataset(Dataset):
    """The rows of one or several arrays: example i is a tuple of their rows i.

    >>> import minigrad as mg
    >>> x, y = mg.data.TensorDataset(mg.ones(3, 2), mg.arange(3))[1]
    >>> x.shape, y.item()
    ((2,), 1)
    """

    def __init__(self, *tensors: Any):
        self.tensors = tuple(x if isinstance(x, Tensor) else tensor(x) for x in tensors)
        sizes = {x.shape[0] if x.shape else None for x in self.tensors}
        if len(sizes) != 1 or None in sizes:
            raise ArgumentError(
                "TensorDataset: these arrays have no rows in common",
                "one or several arrays with equally many rows",
                describe(self.tensors),
            )

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(x[index] for x in self.tensors)

    def batch(self, indices: Sequence[int]) -> tuple[Tensor, ...]:
        """These examples as one batch: (N, …) -> (B, …) for each array."""
        chosen = np.asarray(indices, np.int64)
        return tuple(x[chosen] for x in self.tensors)

    def fingerprint(self) -> int:
        """A checksum of the numbers."""
        found = 0
        for x in self.tensors:
            found = zlib.crc32(to_numpy(x.data).tobytes(), found)
        return found


class Subset(Dataset):
    """Some examples of a dataset, chosen by their numbers.

    >>> list(Subset(["a", "b", "c"], [2, 0]))
    ['c', 'a']
    """

    def __init__(self, dataset: Any, indices: Sequence[int]):
        self.dataset, self.indices = dataset, indices
        if hasattr(dataset, "batch"):
            self.batch = lambda chosen: dataset.batch([self.indices[i] for i in chosen])

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self.indices[index]]

    def fingerprint(self) -> int:
        """A checksum of the chosen numbers and of the dataset."""
        return zlib.crc32(np.asarray(self.indices, np.int64).tobytes(), fingerprint(self.dataset))


class ConcatDataset(Dataset):
    """Several datasets, one behind the other.

    >>> list(ConcatDataset([["a", "b"], ["c"]]))
    ['a', 'b', 'c']
    """

    def __init__(self, datasets: Iterable[Any]):
        self.datasets = list(datasets)
        if not self.datasets or any(isinstance(part, IterableDataset) for part in self.datasets):
            raise ArgumentError(
                "ConcatDataset: these cannot be joined",
                "one or several datasets whose examples have numbers",
                describe(self.datasets),
                "write an IterableDataset whose __iter__ yields from each of them",
            )
        self.cumulative_sizes = list(accumulate(len(part) for part in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexingError("ConcatDataset: there is no such example", f"a number below {len(self)}", index)
        part = bisect_right(self.cumulative_sizes, place)
        before = self.cumulative_sizes[part - 1] if part else 0
        return self.datasets[part][place - before]

    def fingerprint(self) -> int:
        """A checksum of those of the parts."""
        return zlib.crc32(np.array([fingerprint(part) for part in self.datasets], np.int64).tobytes())


def fingerprint(dataset: Any) -> int:
    """A number that another dataset hardly has: its own `fingerprint()`, or else its length; 0 if it has neither."""
    if hasattr(dataset, "fingerprint"):
        return int(dataset.fingerprint())
    return len(dataset) if hasattr(dataset, "__len__") else 0


def random_split(
    dataset: Any,
    lengths: Sequence[float],
    seed: int | None = None,
    generator: np.random.Generator | None = None,
) -> list[Subset]:
    """The dataset in parts that have no example in common, as many as `lengths` says: numbers, or fractions of 1.

    >>> [len(part) for part in random_split(range(10), [0.75, 0.25])]
    [8, 2]
    """
    total, sizes = len(dataset), list(lengths)
    if math.isclose(sum(lengths), 1) and all(0 <= share <= 1 for share in lengths):
        sizes = [math.floor(total * share + 1e-9) for share in lengths]
        for i in range(total - int(sum(sizes))):  # what rounding left over, one to each part in turn
            sizes[i % len(sizes)] += 1
    if sum(sizes) != total or any(size < 0 or size != int(size) for size in sizes):
        raise ArgumentError(
            "random_split: the parts are not the whole",
            f"lengths that add up to {total:,}, or fractions that add up to 1",
            f"{list(lengths)}, which add up to {sum(lengths):g}",
        )
    counts = [int(size) for size in sizes]
    order = random_generator("random_split", seed, generator).permutation(total).tolist()
    return [Subset(dataset, order[end - count : end]) for count, end in zip(counts, accumulate(counts))]
