"""The order in which a DataLoader takes examples, under PyTorch's names.

The order is computed from a seed and the number of the epoch, so it can be found again in the middle of an epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..engine.backend import CPU
from ..errors import ArgumentError, describe
from ..random import new_seed, source_of

__all__ = [
    "BatchSampler", "IndexSampler", "RandomSampler", "SequentialSampler", "SubsetRandomSampler", "WeightedRandomSampler",
    "batch_count", "innermost", "order_of", "random_generator",
]  # fmt: skip


class IndexSampler:
    """The base of these samplers: a subclass writes `indices(epoch)`, the same whenever it is asked, and `__len__`.

    Each `for index in sampler` goes through one more epoch. Without a `seed` or a `generator`, a seed is drawn from the
    generator that `mg.manual_seed` sets.
    """

    def __init__(self, seed: int | None = None, generator: np.random.Generator | None = None):
        self.seed = _seed(type(self).__name__, seed, generator)
        self.epoch = 0

    def indices(self, epoch: int) -> Any:
        """The indices of an epoch, as an array or a list."""
        raise NotImplementedError

    def set_epoch(self, epoch: int) -> None:
        """Let the next iteration be this epoch."""
        self.epoch = epoch

    def __len__(self) -> int:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        order = self.indices(self.epoch)
        self.epoch += 1
        return iter(order.tolist() if isinstance(order, np.ndarray) else order)

    def _random(self, epoch: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, epoch])


class SequentialSampler(IndexSampler):
    """All examples, in their order.

    >>> list(SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Any):
        super().__init__(seed=0)
        self.data_source = data_source

    def __len__(self) -> int:
        return len(self.data_source)

    def indices(self, epoch: int) -> np.ndarray:
        return np.arange(len(self))


class RandomSampler(IndexSampler):
    """All examples in random order; with `replacement`, `num_samples` of them, each drawn from all."""

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        seed: int | None = None,
        generator: np.random.Generator | None = None,
    ):
        super().__init__(seed, generator)
        self.data_source, self.replacement = data_source, replacement
        self.num_samples = len(data_source) if num_samples is None else _count("RandomSampler", num_samples)
        if not len(data_source):
            raise ArgumentError("RandomSampler: there is nothing to draw from", "at least one example")

    def __len__(self) -> int:
        return self.num_samples

    def indices(self, epoch: int) -> np.ndarray:
        random, count = self._random(epoch), len(self.data_source)
        if self.replacement:
            return random.integers(0, count, self.num_samples)
        rounds = [random.permutation(count) for _ in range(-(-self.num_samples // count))]
        return np.concatenate(rounds)[: self.num_samples]


class SubsetRandomSampler(IndexSampler):
    """The given indices, in random order."""

    def __init__(self, indices: Sequence[int], seed: int | None = None, generator: np.random.Generator | None = None):
        super().__init__(seed, generator)
        self.chosen = np.asarray(indices, np.int64)

    def __len__(self) -> int:
        return len(self.chosen)

    def indices(self, epoch: int) -> np.ndarray:
        return self._random(epoch).permutation(self.chosen)


class WeightedRandomSampler(IndexSampler):
    """`num_samples` indices, each drawn with a probability in proportion to its weight.

    >>> list(WeightedRandomSampler([0.0, 3.0], num_samples=3))
    [1, 1, 1]
    """

    def __init__(
        self,
        weights: Any,
        num_samples: int,
        replacement: bool = True,
        seed: int | None = None,
        generator: np.random.Generator | None = None,
    ):
        super().__init__(seed, generator)
        self.weights = np.asarray(weights, np.float64)
        self.num_samples, self.replacement = _count("WeightedRandomSampler", num_samples), replacement
        fit = self.weights.ndim == 1 and np.isfinite(self.weights).all() and (self.weights >= 0).all()
        if not fit or not self.weights.sum() > 0:
            expected = "a sequence of finite numbers from 0, not all 0"
            raise ArgumentError("WeightedRandomSampler: these are no weights", expected, describe(self.weights))
        if not replacement and num_samples > np.count_nonzero(self.weights):
            raise ArgumentError(
                "WeightedRandomSampler: there are not so many examples to draw without replacement",
                f"at most {np.count_nonzero(self.weights)}, the number of weights above 0",
                num_samples,
            )

    def __len__(self) -> int:
        return self.num_samples

    def indices(self, epoch: int) -> np.ndarray:
        shares = self.weights / self.weights.sum()
        return self._random(epoch).choice(len(shares), self.num_samples, replace=self.replacement, p=shares)


class BatchSampler(IndexSampler):
    """The indices of another sampler in lists of `batch_size`; the last one may be shorter, or is dropped.

    >>> list(BatchSampler(SequentialSampler("abcde"), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool = False):
        super().__init__(seed=0)
        self.sampler, self.batch_size, self.drop_last = sampler, _count("BatchSampler", batch_size), drop_last

    def __len__(self) -> int:
        return batch_count(len(self.sampler), self.batch_size, self.drop_last)  # type: ignore[arg-type]

    def indices(self, epoch: int) -> list[list[Any]]:
        order = list(order_of(self.sampler, epoch))
        batches = [order[i : i + self.batch_size] for i in range(0, len(order), self.batch_size)]
        return batches[:-1] if self.drop_last and batches and len(batches[-1]) < self.batch_size else batches


def order_of(sampler: Any, epoch: int) -> Sequence[Any]:
    """What a sampler gives in an epoch. One that is not of this module is told the epoch by `set_epoch`, if it has that."""
    if isinstance(sampler, IndexSampler):
        order = sampler.indices(epoch)
        return order.tolist() if isinstance(order, np.ndarray) else order
    if hasattr(sampler, "set_epoch"):
        sampler.set_epoch(epoch)
    return list(sampler)


def innermost(sampler: Any) -> Any:
    """The sampler that decides on the order: that of a BatchSampler, or itself."""
    return innermost(sampler.sampler) if isinstance(sampler, BatchSampler) else sampler


def batch_count(examples: int, batch_size: int, drop_last: bool) -> int:
    """How many batches there are of so many examples."""
    return examples // batch_size if drop_last else -(-examples // batch_size)


def random_generator(where: str, seed: int | None, generator: np.random.Generator | None) -> np.random.Generator:
    """The generator that was given, or one with this seed; without either, that of `mg.manual_seed`."""
    if seed is None and generator is None:
        return source_of(CPU).host
    return np.random.default_rng(_seed(where, seed, None)) if generator is None else generator


def _seed(where: str, seed: int | None, generator: np.random.Generator | None) -> int:
    if generator is not None and (seed is not None or not isinstance(generator, np.random.Generator)):
        got = "both" if seed is not None else describe(generator)
        raise ArgumentError(f"{where}: one source of random numbers", "seed=0, or a numpy.random.Generator", got)
    if generator is not None:
        return int(generator.integers(1 << 63))
    if seed is None:
        return new_seed()
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ArgumentError(f"{where}: this is no seed", "a whole number from 0", repr(seed))
    return int(seed)


def _count(where: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ArgumentError(f"{where}: this is no count", "a whole number from 1", repr(value))
    return int(value)
