"""DataLoader: batches of a dataset, as PyTorch's, from a position that can be saved."""

from __future__ import annotations

import inspect
import math
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import cached_property, partial
from itertools import islice, repeat, takewhile
from typing import Any

import numpy as np

from ..errors import ArgumentError, CallError, describe, is_whole, nearest
from .batching import Sampler
from .collation import default_collate, default_convert
from .datasets import Dataset, IterableDataset, fingerprint
from .errors import DataError
from .index_samplers import IndexSampler, RandomSampler, SequentialSampler, batch_count, innermost, order_of

__all__ = ["DataLoader"]

Batches = Generator[tuple[Any, bool], None, None]  # each with whether it is known to be the last

_END = object()
NOT_OFFERED = {
    "pin_memory": "arrays of NumPy are not pinned; a batch goes to the GPU by x.to(device)",
    "multiprocessing_context": "workers are threads",
    "persistent_workers": "workers are threads, which begin at once",
    "worker_init_fn": "workers are threads, and share all state",
    "timeout": "a worker that hangs is waited for",
    "pin_memory_device": "arrays of NumPy are not pinned",
    "in_order": "batches come in order, so that a position can be saved",
}


class DataLoader(Sampler):
    """Batches of a dataset: `DataLoader(dataset, batch_size=32, shuffle=True)`, as PyTorch's.

    `dataset` has `__getitem__` and `__len__`, or is an IterableDataset. `sampler` gives indices, `batch_sampler` lists of
    them; `batch_size=None` gives single examples. `collate_fn(examples)` makes a batch of a list of examples. With
    `num_workers`, so many threads make batches ahead, `prefetch_factor` each; NumPy lets them work at the same time.

    Every `for batch in loader` is a new epoch, in another order if it shuffles. The order follows from `seed` (or
    `generator`, a NumPy one), or else from `mg.manual_seed`. After `load_state_dict` the next loop goes on with the
    batches that were left, whatever the number of workers.

    >>> import minigrad as mg
    >>> data = mg.data.TensorDataset(mg.arange(5), mg.zeros(5, 2))
    >>> [x.tolist() for x, y in mg.data.DataLoader(data, batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool = False,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        drop_last: bool = False,
        prefetch_factor: int = 2,
        seed: int | None = None,
        generator: np.random.Generator | None = None,
        **options: Any,
    ):
        _check_options(options)
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.shuffle, self.num_workers, self.prefetch_factor = bool(shuffle), num_workers, prefetch_factor
        self.collate_fn = collate_fn or (default_convert if batch_size is None else default_collate)
        self._whole = collate_fn is None and batch_size is not None and hasattr(dataset, "batch")
        self._streams = _is_stream(dataset)
        self._check(sampler, batch_sampler)
        if sampler is None and not self._streams:
            sampler = RandomSampler(dataset, seed=seed, generator=generator) if shuffle else SequentialSampler(dataset)
        self.sampler, self.batch_sampler = sampler, batch_sampler
        self._source = innermost(sampler if batch_sampler is None else batch_sampler)
        self._order: tuple[Any, Sequence[Any]] | None = None  # the last one that was asked for, and of which epoch
        self._goes_on = True  # at the position, in the place of a new epoch
        self._ended = False  # whether a stream has nothing left in this epoch
        self.epoch = self.index = 0

    @property
    def seed(self) -> int:
        """The seed that orders and epochs are made from: that of the sampler."""
        return self._source.seed if isinstance(self._source, IndexSampler) else 0

    @seed.setter
    def seed(self, seed: int) -> None:
        if isinstance(self._source, IndexSampler):
            self._source.seed = seed

    def __len__(self) -> int:
        source: Any = (
            self.dataset if self._streams else self.sampler if self.batch_sampler is None else self.batch_sampler
        )
        known = self._streams or hasattr(source, "__len__")
        count = len(source) if known else len(self._order_of(self.epoch))
        if self.batch_sampler is not None or self.batch_size is None:
            return count
        return batch_count(count, self.batch_size, self.drop_last)

    @property
    def at_end(self) -> bool:
        """Whether no batch of the epoch is left."""
        return self._ended if self._streams else self.index >= len(self)

    def begin(self) -> None:
        """Leave an epoch that a loop, or a look at its first batch, has begun; a position that was loaded stays."""
        if self.index and not self._goes_on:
            self.epoch, self.index = self.epoch + 1, 0

    def __iter__(self) -> Iterator[Any]:
        self.begin()
        self._goes_on, self._ended = False, False
        epoch, index = self.epoch, self.index
        with closing(self._streamed(epoch, index) if self._streams else self._numbered(epoch, index)) as batches:
            for made, is_last in batches:
                index += 1
                self.epoch, self.index, self._ended = epoch, index, is_last
                yield made
        self.epoch, self.index, self._ended = epoch + 1, 0, False

    def restart(self) -> None:
        """Go back to the first batch of this epoch, as for validating again."""
        self.index, self._goes_on, self._ended = 0, True, False

    def batch(self, epoch: int, index: int) -> Any:
        """The batch at a place, whatever the position is; not of an IterableDataset."""
        order = self._order_of(epoch)
        if self.batch_sampler is not None:
            return self._made(order[index], index)
        if self.batch_size is None:
            return self._converted(self._example(order[index]), index)
        return self._made(order[index * self.batch_size : (index + 1) * self.batch_size], index)

    def state_dict(self) -> dict[str, Any]:
        """The position, as plain numbers and strings that JSON can hold."""
        state = super().state_dict()
        if self._streams:
            state["ended"] = self._ended
        elif not isinstance(self._source, IndexSampler):
            state["order"] = zlib.crc32(repr(self._order_of(self.epoch)).encode())
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Let the next loop go on where another loader over the same data stood."""
        known = {name: value for name, value in state.items() if name not in ("ended", "order")}
        super().load_state_dict(known)
        self._goes_on, self._ended = True, state.get("ended") is True
        if "order" in state and state["order"] != zlib.crc32(repr(self._order_of(self.epoch)).encode()):
            raise ArgumentError(
                "DataLoader: the sampler gives another order than when the position was saved",
                "the same order whenever it is asked for an epoch",
                type(self._source).__name__,
                "give it a method set_epoch(epoch) that seeds it, or use minigrad.data.RandomSampler",
            )

    def _most(self) -> float:
        return math.inf if self._streams else len(self)

    @cached_property
    def _fingerprint(self) -> int:
        return fingerprint(self.dataset)  # which reads all of a TensorDataset: once is enough

    def _identity(self) -> dict[str, Any]:
        kinds = [type(sampler).__name__ for sampler in (self.sampler, self.batch_sampler) if sampler is not None]
        size, last = self.batch_size, self.drop_last
        return {"data": self._fingerprint, "samplers": kinds, "batch_size": size, "drop_last": last}

    def _order_of(self, epoch: int) -> Sequence[Any]:
        """The indices of an epoch, or its lists of them."""
        key = (epoch, self.seed)
        if self._order is None or self._order[0] != key:
            self._order = key, order_of(self.sampler if self.batch_sampler is None else self.batch_sampler, epoch)
        return self._order[1]

    def _numbered(self, epoch: int, index: int) -> Batches:
        """The batches of an epoch from a place on."""
        self._order_of(epoch)  # before several threads ask for it
        places = range(index, len(self))
        made: Iterator[Any] = map(partial(self.batch, epoch), places)
        if self.num_workers:
            jobs = (partial(self.batch, epoch, place) for place in places)
            made = _ahead(jobs, self.num_workers, self.num_workers * self.prefetch_factor)
        return ((batch, False) for batch in made)

    def _streamed(self, epoch: int, index: int) -> Batches:
        """The batches of a stream from a place on, and whether each is the last; so one is always read ahead."""
        made: Iterator[Any] = self._read(epoch, index)
        if self.num_workers:  # one thread, since a stream is read in its order
            jobs = repeat(partial(next, made, _END))
            ahead = _ahead(jobs, 1, self.num_workers * self.prefetch_factor)
            made = takewhile(lambda batch: batch is not _END, ahead)
        following = next(made, _END)
        while following is not _END:
            current, following = following, next(made, _END)
            yield current, following is _END

    def _read(self, epoch: int, index: int) -> Iterator[Any]:
        if hasattr(self.dataset, "set_epoch"):
            self.dataset.set_epoch(epoch)
        size = self.batch_size or 1
        stream = _explained(islice(self.dataset, index * size, None), index * size)
        while examples := list(islice(stream, size)):
            if self.batch_size is None:
                yield self._converted(examples[0], index)
            elif len(examples) == size or not self.drop_last:
                yield self._collated(examples, index)
            index += 1

    def _made(self, indices: Sequence[Any], index: int) -> Any:
        if not self._whole:
            return self._collated([self._example(i) for i in indices], index)
        try:
            return self.dataset.batch(indices)
        except Exception as error:
            raise _failed(f"the examples {str(list(indices))[:80]}", error) from error

    def _example(self, index: Any) -> Any:
        try:
            return self.dataset[index]
        except Exception as error:
            raise _failed(f"example {index!r}", error) from error

    def _collated(self, examples: list[Any], index: int) -> Any:
        try:
            return self.collate_fn(examples)
        except Exception as error:
            raise _failed(f"batch {index}, of {len(examples)} examples,", error) from error

    _converted = _collated

    def _check(self, sampler: Any, batch_sampler: Any) -> None:
        """Refuse arguments that exclude each other, and what is no dataset."""
        for name, least in (("batch_size", 1), ("num_workers", 0), ("prefetch_factor", 1)):
            value = getattr(self, name)
            if not (value is None and name == "batch_size") and (not is_whole(value) or value < least):
                raise ArgumentError(f"DataLoader: {name} cannot be used", f"a whole number from {least}", repr(value))
        given = {
            "shuffle": self.shuffle,
            "sampler": sampler is not None,
            "batch_sampler": batch_sampler is not None,
            "batch_size": self.batch_size != 1,
            "drop_last": self.drop_last,
        }
        excluded = [("sampler", "shuffle"), *(("batch_sampler", name) for name in given if name != "batch_sampler")]
        for first, second in excluded:
            if given[first] and given[second]:
                raise ArgumentError(f"DataLoader: {first} does not go with {second}", fix=f"leave out {second}=")
        if self._streams and any(given[name] for name in ("shuffle", "sampler", "batch_sampler")):
            fix = "shuffle where the examples are made, by set_epoch(epoch)"
            raise ArgumentError("DataLoader: the order of a stream is its own", "no shuffle and no sampler", fix=fix)


def _is_stream(dataset: Any) -> bool:
    """Whether examples come one after the other; refuses what is no dataset."""
    if isinstance(dataset, tuple) and dataset and all(hasattr(part, "shape") for part in dataset):
        raise ArgumentError(
            "DataLoader: a tuple of arrays would be taken for examples",
            "a dataset",
            describe(dataset),
            "TensorDataset(x, y)",
        )
    if isinstance(dataset, IterableDataset) or hasattr(dataset, "__iter__") and not hasattr(dataset, "__getitem__"):
        if iter(dataset) is not dataset:
            return True
    elif _is_indexed(dataset):
        return False
    raise CallError(
        "DataLoader: this is no dataset",
        "an object with __getitem__ and __len__, or an IterableDataset, which can be gone through again",
        describe(dataset),
    )


def _is_indexed(dataset: Any) -> bool:
    """Whether examples have numbers; for a Dataset whose methods are not written yet the answer is no."""
    own = getattr(type(dataset), "__getitem__", None)
    return own is not None and own is not Dataset.__getitem__ and hasattr(dataset, "__len__")


def _check_options(options: Mapping[str, Any]) -> None:
    for name in options:
        if name in NOT_OFFERED:
            raise CallError(f"DataLoader: {name}= is not offered: {NOT_OFFERED[name]}", fix=f"leave out {name}=")
        known = [key for key in inspect.signature(DataLoader).parameters if key != "options"]
        raise CallError(f"DataLoader has no option {name!r}", ", ".join(known), fix=nearest(name, known))


def _ahead(jobs: Iterator[Callable[[], Any]], threads: int, depth: int) -> Iterator[Any]:
    """The results of jobs in their order; threads work on up to `depth` of them before they are asked for."""
    pool = ThreadPoolExecutor(threads, "minigrad-data")
    waiting = deque(pool.submit(job) for job in islice(jobs, depth))
    try:
        while waiting:
            first = waiting.popleft()
            made = first.result()
            waiting.extend(pool.submit(job) for job in islice(jobs, 1))
            yield made
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _explained(stream: Iterator[Any], first: int) -> Iterator[Any]:
    """The examples of a stream; an error says which of them it was."""
    number = first
    try:
        for number, example in enumerate(stream, first + 1):  # noqa: B007  (the error tells it)
            yield example
    except Exception as error:
        raise _failed(f"example {number} of the stream", error) from error


def _failed(what: str, error: Exception) -> DataError:
    fix = "mend the dataset or collate_fn; the error above this one says where it is"
    return DataError(f"DataLoader: {what} cannot be loaded: {type(error).__name__}: {error}", fix=fix)
